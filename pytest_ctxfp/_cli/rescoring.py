"""``ctxfp rescore``: stored answers under today's golden files, without pytest and without a call."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.cache import add_command, add_dir_option, count, known_cost, open_store, read_traces
from pytest_ctxfp._cli.files import print_json, print_lines
from pytest_ctxfp._cli.project import find_project
from pytest_ctxfp._cli.reports import read_report
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._fold import aggregate, fold_samples
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._match import has_own_scorer, rescore
from pytest_ctxfp._stats import format_interval, format_percent, wilson_interval
from pytest_ctxfp._store import JUDGE_SHA
from pytest_ctxfp._texts import map_texts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ctxfp._fold import CaseFold, State, Totals
    from pytest_ctxfp._model import GoldenCase, GoldenSet, JSONValue
    from pytest_ctxfp._report import CaseReport, RunReport, SampleReport
    from pytest_ctxfp._store import TraceStore
    from pytest_ctxfp._trace import Trace

_NEEDS_PYTEST = "needs pytest"
_CHECKED_PARTS = ("agent_sha", "model", "context_sha")


@dataclass(frozen=True, slots=True)
class Scored:
    """A stored answer and today's verdict on it; it folds as a report's sample does."""

    trace: Trace
    state: State
    reason: str

    @property
    def cost(self) -> float | None:
        """USD, or None where unknown."""
        return known_cost(self.trace)

    @property
    def latency_ms(self) -> int | None:
        """Milliseconds."""
        return self.trace.latency_ms

    @property
    def turns(self) -> int | None:
        """Model turns, or None where unknown."""
        return self.trace.turns

    @property
    def is_changed(self) -> bool:
        """Whether the answer was judged otherwise when it was given, which some traces don't say."""
        then = self.trace.passed_then
        return then is not None and then != (self.state == "passed")


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """A case, under one model and variant where a report tells them apart, and its answers."""

    case: GoldenCase
    name: str
    samples: tuple[Scored, ...]
    fold: CaseFold


@dataclass(frozen=True, slots=True)
class Unscored:
    """A case, or an answer to it, without a verdict, and why."""

    name: str
    why: str


@dataclass(slots=True)
class Rescoring:
    """What rescoring came to; filled case by case.

    Attributes:
        scored: cases with a verdict.
        untraced: cases, or samples of them, whose answer isn't stored.
        unscored: cases that can't be scored here, or are skipped.
    """

    scored: list[ScoredCase] = field(default_factory=list)
    untraced: list[Unscored] = field(default_factory=list)
    unscored: list[Unscored] = field(default_factory=list)

    @property
    def totals(self) -> Totals:
        """The figures over all scored cases."""
        return aggregate(one.fold for one in self.scored)

    @property
    def failed(self) -> list[ScoredCase]:
        """The cases that fail and are not expected to."""
        return [one for one in self.scored if one.fold.state == "failed" and one.case.xfail is None]

    @property
    def changed(self) -> list[tuple[ScoredCase, Scored]]:
        """The answers that were judged otherwise when they were given."""
        return [(one, sample) for one in self.scored for sample in one.samples if sample.is_changed]


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    parser = add_command(
        subparsers,
        "rescore",
        "score stored answers by what golden files expect today; nobody is asked",
        "ctxfp rescore golden.yaml --report run.json",
    )
    parser.add_argument("golden", nargs="+", metavar="GOLDEN", help="golden files")
    parser.add_argument(
        "--report",
        metavar="REPORT",
        help="a report of --ctx-report=run.json: its answers are scored (default: of each case the newest)",
    )
    add_dir_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_rescore)


def _rescore(arguments: argparse.Namespace) -> int:
    from pytest_ctxfp._golden import load_golden

    golden = [load_golden(name) for name in arguments.golden]
    report = None if arguments.report is None else read_report(arguments.report)
    result = rescore_cases(golden, open_store(arguments.dir), report)
    if arguments.json:
        print_json(_to_json(result, arguments.report))
    else:
        print_lines(result_lines(result, arguments.report))
    if not result.scored:
        return 2
    return 1 if result.failed else 0


def rescore_cases(golden: Sequence[GoldenSet], store: TraceStore, report: RunReport | None) -> Rescoring:
    """Score the stored answers to the cases of golden files.

    Args:
        golden: the golden files.
        store: where the answers are.
        report: the run whose answers are scored; None for the newest answer to each case.

    Raises:
        CtxfpError: what a case expects doesn't fit its kind, or a store that has ceased to answer.
        OSError: the store's folder can't be listed.
    """
    result = Rescoring()
    with _without_collector():
        answers = NewestAnswers(store, golden) if report is None else ReportedAnswers(store, report)
        for one in golden:
            for case in one.cases:
                score_case(case, answers, result)
    return result


@contextmanager
def _without_collector() -> Iterator[None]:
    """Spare the collector of garbage looking through thousands of answers, none of which is any."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Found:
    """The stored answers to a case under one name, and why others are not there."""

    name: str
    traces: tuple[Trace, ...]
    missing: tuple[str, ...] = ()


class ReportedAnswers:
    """Stored answers by the keys in a run's report."""

    def __init__(self, store: TraceStore, report: RunReport) -> None:
        from pytest_ctxfp._report import case_namer

        self._store = store
        self._name_of = case_namer(report.cases)
        self._project = find_project()
        self._redact = self._project.redactor()
        self._file_names: dict[str, str] = {}
        self._cases: dict[str, list[CaseReport]] = {}
        for case in report.cases:
            self._cases.setdefault(case.id, []).append(case)

    def find(self, case: GoldenCase) -> Iterator[Found]:
        """Yield the answers to a case, once a model and variant."""
        reported = self._of_file(case)
        if not reported:
            yield Found(case.id, (), ("the report has no such case",))
        for one in reported:
            loaded = [self._load(sample, case) for sample in one.all_samples]
            traces = tuple(trace for trace in loaded if not isinstance(trace, str))
            yield Found(
                self._name_of(one), traces, tuple(reason for reason in loaded if isinstance(reason, str))
            )

    def _of_file(self, case: GoldenCase) -> list[CaseReport]:
        """Return the reports of a case; where several files have its id, only those of its own file."""
        reported = self._cases.get(case.id, [])
        files = {one.file for one in reported}
        if len(files) < 2:
            return reported
        name = self._file_names.get(case.path)
        if name is None:
            name = self._file_names[case.path] = self._project.name_of(case.path)
        return [one for one in reported if one.file == name]

    def _load(self, sample: SampleReport, case: GoldenCase) -> Trace | str:
        """Return the answer of a sample, or why there is none for the case as it is today."""
        if sample.key is None:
            return "the report has no key of its answer"
        found = self._store.by_hash(sample.key)
        trace = found.trace
        if trace is None:
            return found.problem or self._store.outage or f"no stored answer {sample.key[:12]}"
        parts = sample.key_parts or {}
        if any(parts.get(name, getattr(trace, name)) != getattr(trace, name) for name in _CHECKED_PARTS):
            return f"{sample.key[:12]} holds the answer to another key: ctxfp cache verify"
        return (
            trace if is_answer_to(trace, case, self._redact) else "its question, or its inputs, have changed"
        )


class NewestAnswers:
    """Of each case the newest stored answer to its question as it is today."""

    def __init__(self, store: TraceStore, golden: Sequence[GoldenSet]) -> None:
        wanted: dict[str, list[GoldenCase]] = {}
        for one in golden:
            for case in one.cases:
                wanted.setdefault(case.id, []).append(case)
        self._newest: dict[tuple[str, str], tuple[float, Trace]] = {}
        redact = find_project().redactor()
        for trace, name in read_traces(store):
            for case in wanted.get(trace.case_id, ()):
                if trace.agent_sha != JUDGE_SHA and is_answer_to(trace, case, redact):
                    self._keep(case, trace, store.recorded_time(trace, name))

    def _keep(self, case: GoldenCase, trace: Trace, time: float) -> None:
        place = (case.path, case.id)
        if place not in self._newest or time > self._newest[place][0]:
            self._newest[place] = (time, trace)

    def find(self, case: GoldenCase) -> Iterator[Found]:
        """Yield the answer to a case."""
        newest = self._newest.get((case.path, case.id))
        if newest is None:
            yield Found(case.id, (), ("no stored answer to its question",))
        else:
            yield Found(case.id, (newest[1],))


def is_answer_to(trace: Trace, case: GoldenCase, redact: Callable[[str], str]) -> bool:
    """Whether a stored answer is one to the case as it is today, as far as its golden file says.

    Args:
        trace: the stored answer.
        case: the case.
        redact: what leaves secrets out of what is stored.
    """
    if trace.case_id != case.id or (
        trace.question != case.question and trace.question != redact(case.question)
    ):
        return False
    params = trace.params
    if not params:
        return True
    given, view = params.get("inputs"), params.get("case")
    return (given is None or _is_same(given, dict(case.inputs), redact)) and (
        view is None or _is_same(view, case.view.to_dict(), redact)
    )


def _is_same(stored: JSONValue, today: JSONValue, redact: Callable[[str], str]) -> bool:
    # As texts: in Python True == 1 == 1.0, to an agent they are three values.
    stored_text = canonical_json(stored)
    return stored_text in (canonical_json(today), canonical_json(map_texts(today, redact)))


def score_case(case: GoldenCase, answers: ReportedAnswers | NewestAnswers, result: Rescoring) -> None:
    """Score the stored answers to a case, and note those that can't be scored.

    Raises:
        CtxfpError: what the case expects doesn't fit its kind.
    """
    why = _why_not_here(case)
    if why is not None:
        result.unscored.append(Unscored(case.id, why))
        return
    for found in answers.find(case):
        samples = []
        result.untraced += [Unscored(found.name, why) for why in found.missing]
        for trace in found.traces:
            comparison = rescore(trace, case)
            if comparison is None:
                shape = f"{_NEEDS_PYTEST}: the stored answer holds no {case.result_kind.value}"
                result.unscored.append(Unscored(found.name, shape))
                continue
            state: State = "passed" if comparison.passed else "failed"
            samples.append(Scored(trace, state, comparison.reason))
        if samples:
            fold = fold_samples(case.id, samples, tags=case.tags, min_pass_rate=case.min_pass_rate)
            result.scored.append(ScoredCase(case, found.name, tuple(samples), fold))


def _why_not_here(case: GoldenCase) -> str | None:
    if case.skip is not None:
        return f"skipped: {case.skip}"
    if case.expected_sql is not None:
        return f"{_NEEDS_PYTEST}: expected_sql"
    if has_own_scorer(case):
        return f"{_NEEDS_PYTEST}: scorer {case.match}"
    return None


def result_lines(result: Rescoring, report: str | None) -> list[str]:
    """Return what rescoring came to.

    Example::

        scored 6 cases (the answers of run.json): 5 passed, 1 failed
        accuracy 83.3% (95% interval 43.6% to 97%)
        changed since they were recorded: 1
          orders: passed -> failed: row 1, column n: expected 98, actual 99
    """
    source = "the newest stored answer of each case" if report is None else f"the answers of {report}"
    totals, n = result.totals, len(result.scored)
    verdicts = f"{totals.n_passed} passed, {n - totals.n_passed} failed"
    lines = [f"scored {count(n, 'case')} ({escape_line(source)}): {verdicts}"]
    if n:
        interval = format_interval(_passes(totals), totals.n)
        lines.append(f"accuracy {format_percent(totals.accuracy)} (95% interval {interval})")
    changed = result.changed
    lines.append(f"changed since they were recorded: {len(changed)}")
    lines += [f"  {_change_line(one, sample)}" for one, sample in changed]
    lines += _group("failed", [Unscored(one.name, one.fold.reason or "") for one in result.failed])
    lines += _group("without a stored answer", result.untraced)
    return lines + _group("not scored", result.unscored)


def _passes(totals: Totals) -> float:
    """Return the sum of the cases' pass rates, which rounding takes beyond their number."""
    return min(totals.accuracy * totals.n, totals.n)


def _change_line(one: ScoredCase, sample: Scored) -> str:
    now, then = ("passed", "failed") if sample.state == "passed" else ("failed", "passed")
    number = f" (sample {sample.trace.sample})" if len(one.samples) > 1 else ""
    return escape_line(f"{one.name}{number}: {then} -> {now}: {sample.reason}", limit=1_000)


def _group(title: str, items: Iterable[Unscored]) -> list[str]:
    lines = [escape_line(f"  {item.name}: {item.why}", limit=1_000) for item in items]
    return [f"{title}: {len(lines)}", *lines] if lines else []


def _to_json(result: Rescoring, report: str | None) -> dict[str, JSONValue]:
    totals = result.totals
    low, high = wilson_interval(_passes(totals), totals.n)
    changed: list[JSONValue] = [
        {
            "case": one.name,
            "sample": sample.trace.sample,
            "passed_then": sample.trace.passed_then,
            "passed": sample.state == "passed",
            "reason": sample.reason,
        }
        for one, sample in result.changed
    ]
    return {
        "report": report,
        **totals.to_dict(),
        "interval": [low, high],
        "changed": changed,
        "failed": [{"case": one.name, "reason": one.fold.reason} for one in result.failed],
        "without_trace": [{"case": item.name, "why": item.why} for item in result.untraced],
        "not_scored": [{"case": item.name, "why": item.why} for item in result.unscored],
    }
