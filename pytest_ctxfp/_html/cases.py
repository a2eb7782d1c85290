"""The cases as the page shows them: one row each, and what opens below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, shorten_time
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._html.answers import ShownAnswer, show_both
from pytest_ctxfp._html.layers import ShownContext, read_fingerprint, show_context
from pytest_ctxfp._html.texts import (
    MAX_NAME,
    UNKNOWN,
    ShownText,
    show_cost,
    show_count,
    show_name,
    show_seconds,
    show_text,
)
from pytest_ctxfp._table_text import show_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ctxfp._gate_model import GateCase
    from pytest_ctxfp._html.diffs import DiffBook
    from pytest_ctxfp._html.layers import LayerPalette
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import CaseReport, SampleReport

MAX_ANSWERS = 5
MAX_SAMPLES = 50
_MAX_REASON = 400
_MAX_TAGS = 30
_ORDER = ("error", "failed", "skipped", "passed")
_EXPECTATION = ("match", "tolerance", "extra_columns", "ignore_case", "min_score", "expected_sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleLine:
    """One answer's figures; ``confirms`` if it was asked for only because the verdict flipped."""

    number: int
    state: str
    confirms: bool
    origin: str
    score: str
    cost: str
    latency: str
    turns: str
    recorded_at: str
    served_model: str
    key: str
    reason: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBlock:
    """Answers that are the same: which samples gave it, with what verdict, beside what was expected."""

    samples: str
    state: str
    expected: ShownAnswer | None
    actual: ShownAnswer | None

    @property
    def is_alike(self) -> bool:
        """Whether both sides look the same, so that one of them is enough."""
        return self.expected is not None and self.expected == self.actual


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One case.

    Attributes:
        number: 1-based place in the report; names the case's place in the page.
        name: the id, with model and variant where several ran.
        place: file, and test if one ran it.
        label: model and variant.
        tags: the tags.
        state: ``passed``, ``failed``, ``error`` or ``skipped``.
        rank: what verdicts are sorted by.
        share: ``2 of 3``, where there are several samples.
        flaky: the samples disagree.
        origins: how it was answered: of ``hit``, ``miss``, ``refreshed``, ``uncached``, ``re-scored``.
        kind: the class of what changed since the baseline; empty without one.
        changes: what changed.
        verdict: what became of it since the baseline.
        cost: USD; ``cost_key`` is what it is sorted by, empty where unknown.
        question: what was asked, or that nobody kept it.
        reason: why that verdict.
        expectation: how answers are judged.
        answers: what was answered, beside what was expected.
        samples: figures of each answer.
        notes: what else is to be said.
        context: the context's layers, or None without.
    """

    number: int
    name: str
    place: str
    label: str
    tags: tuple[str, ...]
    n_more_tags: int
    state: str
    rank: int
    share: str
    flaky: bool
    origins: tuple[str, ...]
    kind: str
    changes: str
    verdict: str
    cost: str
    cost_key: str
    latency: str
    latency_key: str
    turns: str
    turns_key: str
    tokens_key: str
    question: ShownText | None
    reason: str
    expectation: tuple[tuple[str, str], ...]
    answers: tuple[AnswerBlock, ...]
    n_more_answers: int
    samples: tuple[SampleLine, ...]
    notes: tuple[str, ...]
    context: ShownContext | None
    context_note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDesk:
    """What is needed to show any case of a run: names, colours, and the diffs collected so far."""

    name_of: Callable[[CaseReport], str]
    palette: LayerPalette
    book: DiffBook


def show_case(number: int, case: CaseReport, found: GateCase | None, desk: CaseDesk) -> CaseRow:
    """Return a case as a row.

    Args:
        number: its 1-based place in the report.
        case: what the report has of it.
        found: what the gate says of it, if there is a baseline.
        desk: names, colours and diffs.
    """
    fold = case.fold
    name = show_name(desk.name_of(case))
    before = None if found is None else found.before
    context, context_note = _show_context(case, before, desk, place=(number, name))
    answers, n_more_answers = _show_answers(case)
    return CaseRow(
        number=number,
        name=name,
        place=show_name(f"{case.file} ({case.test})" if case.test else case.file),
        label=show_name(case.label),
        tags=tuple(map(show_name, fold.tags[:_MAX_TAGS])),
        n_more_tags=max(0, len(fold.tags) - _MAX_TAGS),
        state=fold.state,
        rank=_ORDER.index(fold.state),
        share=f"{fold.passes:,} of {fold.samples:,}" if fold.samples > 1 else "",
        flaky=fold.flaky,
        origins=tuple(_origins(case)),
        kind="" if found is None else found.kind,
        changes="" if found is None else show_name("; ".join(map(str, found.changes))),
        verdict="" if found is None else found.verdict.value,
        cost=show_cost(fold.cost),
        cost_key=_sort_key(fold.cost),
        latency=show_seconds(fold.latency_ms),
        latency_key=_sort_key(fold.latency_ms),
        turns=show_count(fold.turns),
        turns_key=_sort_key(fold.turns),
        tokens_key="" if context is None else str(context.n_tokens),
        question=_show_question(case),
        reason=escape_line(fold.reason, limit=_MAX_REASON),
        expectation=tuple(_describe_expectation(case)),
        answers=answers,
        n_more_answers=n_more_answers,
        samples=tuple(_show_samples(case)),
        notes=tuple(_notes(case, found)),
        context=context,
        context_note=context_note,
    )


def _sort_key(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.10g}"


def _show_question(case: CaseReport) -> ShownText | None:
    """Return the question; reports of older versions have it in keys only."""
    question: JSONValue = case.question
    for sample in case.samples:
        if question is None and sample.key_parts is not None:
            question = sample.key_parts.get("question")
    return show_text(question) if isinstance(question, str) else None


def _origins(case: CaseReport) -> Iterator[str]:
    yield from dict.fromkeys(sample.origin for sample in case.samples if sample.origin is not None)
    if any(sample.rescored for sample in case.samples):
        yield "re-scored"


def _describe_expectation(case: CaseReport) -> Iterator[tuple[str, str]]:
    expectation = case.expectation or {}
    for name in _EXPECTATION:
        value = expectation.get(name)
        if value is not None and value is not False and value != {}:
            text = value if isinstance(value, str) else show_cell(value, limit=MAX_NAME)
            yield name.replace("_", " "), show_name(text)
    if case.scorer:
        yield "scorer", show_name(case.scorer)
    if case.min_pass_rate is not None:
        yield "min pass rate", f"{case.min_pass_rate:g}"


def _show_answers(case: CaseReport) -> tuple[tuple[AnswerBlock, ...], int]:
    """Return the different answers, wrong ones first, each beside what was expected."""
    groups: dict[tuple[str, str], list[SampleReport]] = {}
    for sample in case.all_samples:
        if sample.state in ("passed", "failed"):
            groups.setdefault((sample.state, _identity(sample)), []).append(sample)
    ordered = sorted(groups.values(), key=_is_right)
    n_samples = len(case.all_samples)
    return tuple(_block(case, samples, n_samples) for samples in ordered[:MAX_ANSWERS]), max(
        0, len(ordered) - MAX_ANSWERS
    )


def _identity(sample: SampleReport) -> str:
    try:
        return canonical_json(sample.answer)
    except (ValueError, RecursionError):
        return str(sample.sample)


def _is_right(samples: list[SampleReport]) -> bool:
    return samples[0].state == "passed"


def _block(case: CaseReport, samples: list[SampleReport], n_samples: int) -> AnswerBlock:
    expected, actual = show_both(case.expectation, samples[0])
    numbers = ", ".join(str(sample.sample + 1) for sample in samples[:MAX_SAMPLES])
    more = f" and {len(samples) - MAX_SAMPLES:,} more" if len(samples) > MAX_SAMPLES else ""
    word = "sample" if len(samples) == 1 else "samples"
    return AnswerBlock(
        samples=f"{word} {numbers}{more}" if n_samples > 1 else "",
        state=samples[0].state,
        expected=expected,
        actual=actual,
    )


def _show_samples(case: CaseReport) -> Iterator[SampleLine]:
    n_plain = len(case.samples)
    for index, sample in enumerate(case.all_samples[:MAX_SAMPLES]):
        yield SampleLine(
            number=sample.sample + 1,
            state=sample.state,
            confirms=index >= n_plain,
            origin=(sample.origin or "not answered") + (", re-scored" if sample.rescored else ""),
            score="" if sample.score is None else f"{sample.score:.3g}",
            cost=show_cost(sample.cost),
            latency=show_seconds(sample.latency_ms),
            turns=show_count(sample.turns),
            recorded_at=shorten_time(sample.recorded_at) if sample.recorded_at else UNKNOWN,
            served_model=show_name(sample.served_model or ""),
            key=show_name(sample.key or ""),
            reason=escape_line(sample.reason, limit=_MAX_REASON),
            why=show_name("; ".join(sample.why)),
        )


def _notes(case: CaseReport, found: GateCase | None) -> Iterator[str]:
    if case.xfail is not None:
        yield f"expected to fail: {show_name(case.xfail)}"
    if len(case.all_samples) > MAX_SAMPLES:
        yield f"{MAX_SAMPLES} of {len(case.all_samples):,} samples listed; the JSON report has all"
    estimated = [sample.estimated_cost for sample in case.samples if sample.estimated_cost is not None]
    if estimated:
        yield f"asking would cost about {show_cost(sum(estimated))}"
    if found is not None and found.rescored:
        yield "the baseline's answer was scored again under today's expectation; its verdict changed"


def _show_context(
    case: CaseReport, before: CaseReport | None, desk: CaseDesk, *, place: tuple[int, str]
) -> tuple[ShownContext | None, str]:
    now = read_fingerprint(case.context)
    if now is None:
        return None, _why_no_context(case.samples[0].key_parts)
    then = None if before is None else read_fingerprint(before.context)
    return show_context(now, then, palette=desk.palette, book=desk.book, case=place), ""


def _why_no_context(parts: Mapping[str, JSONValue] | None) -> str:
    if parts is None:
        return "no context is known: nobody was asked"
    return "no context was recorded: the suite has no ctx_assembler, and the agent told none"
