"""All answers to one case of a test: its samples, what confirms a flip, and the audit of a stored one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_ctxfp._display import escape_surrogates
from pytest_ctxfp._errors import CacheMiss, CtxfpError, first_line
from pytest_ctxfp._limits import LimitReached
from pytest_ctxfp._records import add_known, add_notes, add_why, unscored_record
from pytest_ctxfp._report import SampleReport
from pytest_ctxfp._reporting import outcome_record, sample_report
from pytest_ctxfp.plugin.baseline import excuse_failure, get_baseline, is_to_be_confirmed, weigh_case
from pytest_ctxfp.plugin.case_entries import describe_case, report_case
from pytest_ctxfp.plugin.case_runs import AUDITED
from pytest_ctxfp.plugin.counting import take_notes
from pytest_ctxfp.plugin.item_records import add_record
from pytest_ctxfp.plugin.items import command_to_ask
from pytest_ctxfp.plugin.layer_texts import take_texts
from pytest_ctxfp.plugin.reports import expect_failure
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._fold import State
    from pytest_ctxfp._gate_model import GateCase
    from pytest_ctxfp._records import CaseRecord
    from pytest_ctxfp._report import CaseReport
    from pytest_ctxfp._runner import Outcome, Runner
    from pytest_ctxfp._suite import Suite
    from pytest_ctxfp.plugin.case_runs import CaseRun

RESOLUTIONS = pytest.StashKey[int]()
_ENDS = (pytest.skip.Exception, pytest.fail.Exception, pytest.xfail.Exception)


class CaseSampler:
    """Resolves one case as often as the run asks for it, and notes what came of each answer.

    Args:
        item: the test.
        runner: the process's store, identity and limits.
        run: the case, and what it runs under.
        make_suite: gives the suite for a sample's number.
        notes: what the test's fixtures had to say, filled while they run.
    """

    def __init__(
        self,
        item: pytest.Item,
        runner: Runner,
        run: CaseRun,
        *,
        make_suite: Callable[[int], Suite],
        notes: list[str],
    ) -> None:
        self._item = item
        self._runner = runner
        self._run = run
        self._make_suite = make_suite
        self._notes = notes
        self._settings = get_settings(item.config)
        self._outcomes: list[Outcome] = []
        self._confirming: list[Outcome] = []
        self._problems: list[CtxfpError] = []
        self._number = item.stash.get(RESOLUTIONS, 0)
        item.stash[RESOLUTIONS] = self._number + 1

    async def resolve(self) -> Outcome:
        """Return the first sample's outcome, which knows the others.

        Raises:
            CtxfpError: as ``Runner.resolve``, of any sample: the others have been asked and stored.
        """
        for sample in range(self._settings.repeat):
            try:
                self._outcomes.append(await self._resolve_sample(sample))
            except CtxfpError as problem:
                self._problems.append(problem)
        if self._problems:
            self._raise_worst()
        await self._weigh()
        if self._item in self._item.config.stash.get(AUDITED, ()) and self._outcomes[0].hit:
            await self._audit(self._outcomes[0])
        first, *further = self._outcomes
        return replace(first, further=tuple(further)) if further else first

    async def _resolve_sample(self, sample: int, *, kind: str = "case") -> Outcome:
        counted = self._runner.n_calls, self._runner.judges.n_calls
        suite = self._make_suite(sample)
        try:
            outcome = await self._runner.resolve(self._run.case, suite)
        except CtxfpError as problem:
            self._note(self._describe_problem(problem, suite), suite, counted, kind=kind)
            raise
        except _ENDS as end:
            self._note(self._describe_end(end, suite), suite, counted, kind=kind)
            raise
        record = outcome_record(outcome)
        add_notes(record, [*self._notes, *take_notes(self._item.config)])
        if self._settings.wants_report:
            record["report"] = describe_case(
                self._run, self._item, sample_report(outcome), model=suite.model, outcome=outcome
            )
            texts = take_texts(self._item, outcome.context, suite.split)
            if texts:
                record["texts"] = texts
        self._note(record, suite, counted, kind=kind)
        return outcome

    def _note(self, record: CaseRecord, suite: Suite, counted: tuple[int, int], *, kind: str) -> None:
        """Note a sample's facts, and the calls that were made for it since they were ``counted``."""
        record["kind"] = kind
        record["resolution"] = self._number
        record["sample"] = suite.sample
        record["model"] = escape_surrogates(suite.model)
        add_known(record, variant=self._run.variant, min_pass_rate=self._run.case.min_pass_rate)
        record["calls"] = self._runner.n_calls - counted[0]
        if self._runner.judges.n_calls > counted[1]:
            record["judge_calls"] = self._runner.judges.n_calls - counted[1]
        add_record(self._item, record)

    def _describe_problem(self, problem: CtxfpError, suite: Suite) -> CaseRecord:
        reason = first_line(problem)
        if isinstance(problem, CacheMiss):
            record = unscored_record(self._run.case, "refused", reason)
            add_why(record, problem.why)
            add_known(record, corrupt=problem.corrupt, estimated_cost=problem.estimated_cost)
        elif isinstance(problem, LimitReached):
            record = unscored_record(self._run.case, "skipped", reason)
            record["limit"] = reason
        else:
            record = unscored_record(self._run.case, "error", reason)
        self._add_report(record, suite, state="skipped" if self._is_skip(problem) else "error")
        return record

    def _describe_end(self, end: BaseException, suite: Suite) -> CaseRecord:
        """Describe a sample whose agent or fixture ended the test as a test may, by ``pytest.skip`` say."""
        is_failure = isinstance(end, pytest.fail.Exception) and not isinstance(end, pytest.xfail.Exception)
        state: State = "error" if is_failure else "skipped"
        reason = first_line(CtxfpError(f"{type(end).__name__}: {end}"))
        record = unscored_record(self._run.case, state, reason)
        self._add_report(record, suite, state=state)
        return record

    def _add_report(self, record: CaseRecord, suite: Suite, *, state: State) -> None:
        """Add to the record of a sample without a verdict what a report says of it."""
        if self._settings.wants_report:
            sample = SampleReport(
                state=state,
                reason=record["reason"],
                sample=suite.sample,
                why=tuple(record.get("why", ())),
                estimated_cost=record.get("estimated_cost"),
            )
            record["report"] = describe_case(self._run, self._item, sample, model=suite.model)

    def _is_skip(self, problem: CtxfpError) -> bool:
        is_skipped_miss = isinstance(problem, CacheMiss) and self._settings.on_miss == "skip"
        return is_skipped_miss or isinstance(problem, LimitReached)

    def _raise_worst(self) -> NoReturn:
        """Raise an error before a refused miss, and either before a mere skip."""
        __tracebackhide__ = True
        worst = min(
            self._problems, key=lambda problem: (self._is_skip(problem), isinstance(problem, CacheMiss))
        )
        if self._is_skip(worst):
            pytest.skip(worst.explanation if isinstance(worst, CacheMiss) else first_line(worst))
        if isinstance(worst, CacheMiss):
            command = command_to_ask(self._item)
            raise CacheMiss(worst.key, f"{worst.explanation}\nask and store it: {command}", worst.corrupt)
        raise worst

    async def _weigh(self) -> None:
        """Hold the case against the baseline: a flip under a changed key is asked again before it counts."""
        if self._settings.min_accuracy and not self._describe().fold.passed:
            expect_failure(self._item, "counts for --ctx-min-accuracy")
        if get_baseline(self._item.config) is None:
            return
        found = self._hold_against_baseline()
        if is_to_be_confirmed(found):
            await self._confirm()
            found = self._hold_against_baseline()
        excuse_failure(self._item, found)

    async def _confirm(self) -> None:
        first = self._settings.repeat
        for sample in range(first, first + self._settings.confirm):
            try:
                self._confirming.append(await self._resolve_sample(sample, kind="confirming"))
            except (CacheMiss, LimitReached):
                return
            except CtxfpError:
                continue

    def _hold_against_baseline(self) -> GateCase:
        baseline = get_baseline(self._item.config)
        assert baseline is not None
        return weigh_case(self._describe(), baseline, self._runner.identity)

    def _describe(self) -> CaseReport:
        first = self._outcomes[0]
        return report_case(
            self._run,
            self._item,
            [sample_report(outcome) for outcome in self._outcomes],
            model=first.key.model,
            confirming=[sample_report(outcome) for outcome in self._confirming],
            outcome=first,
        )

    async def _audit(self, stored: Outcome) -> None:
        """Ask for a stored answer again and note whether the verdict is the same; nothing is stored."""
        counted = self._runner.n_calls, self._runner.judges.n_calls
        suite = self._make_suite(stored.key.sample)
        try:
            again = await self._runner.ask_again(stored, suite)
        except CtxfpError as problem:
            record = unscored_record(self._run.case, "error", first_line(problem))
        else:
            record = outcome_record(again)
            record["passed_then"] = stored.comparison.passed
        self._note(record, suite, counted, kind="audit")
