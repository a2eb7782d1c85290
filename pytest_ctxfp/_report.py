"""What a run came to, as records: one a sample, one a case, one for the whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pytest_ctxfp._fold import CaseFold, Totals, aggregate, fold_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ctxfp._fold import State
    from pytest_ctxfp._model import JSONValue

MAX_ANSWER_BYTES = 64 * 1024
ROOT_FOLDER = "./"

Origin = Literal["hit", "miss", "refreshed", "uncached"]
"""Where an answer came from: the cache, or a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReport:
    """One answer to a case.

    Attributes:
        state: the verdict, or why there is none.
        reason: the verdict's reason, on one line.
        sample: 0-based number of the repetition.
        origin: where the answer came from, or None without one.
        rescored: a stored answer, recorded under another expectation.
        score: 0..1 where a scorer gave one.
        key: hash of the case's key.
        key_parts: what the hash is made of, by name.
        answer: the extracted value that was scored.
        answer_cut: the answer is more than 64 kB of JSON; ``answer`` is the beginning of that text.
        answer_bytes: length of that JSON in bytes where it was cut, else None.
        cost: USD, or None where unknown.
        latency_ms: milliseconds, or None where unknown.
        turns: model turns, or None where unknown.
        scorer_cost: USD that the scorer cost in this run, or None where none was paid.
        recorded_at: when the answer was given, UTC, ISO 8601.
        served_model: the model that the provider says it ran.
        why: on a miss, what differs from the nearest stored answer: ``context: Business Rules``.
        estimated_cost: USD that asking would cost, where nobody was asked and that is known.
    """

    state: State
    reason: str = ""
    sample: int = 0
    origin: Origin | None = None
    rescored: bool = False
    score: float | None = None
    key: str | None = None
    key_parts: Mapping[str, JSONValue] | None = None
    answer: JSONValue = None
    answer_cut: bool = False
    answer_bytes: int | None = None
    cost: float | None = None
    latency_ms: int | None = None
    turns: int | None = None
    scorer_cost: float | None = None
    recorded_at: str | None = None
    served_model: str | None = None
    why: tuple[str, ...] = ()
    estimated_cost: float | None = None

    @property
    def hit(self) -> bool:
        """Whether the answer was replayed from the cache."""
        return self.origin == "hit"

    @property
    def was_asked(self) -> bool:
        """Whether the agent was called for it in this run."""
        return self.origin not in (None, "hit")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """One case under one model and one variant.

    Attributes:
        id: the case's id.
        file: its golden file, relative to the rootdir, with ``/``.
        position: 0-based place in that file.
        model: label of the model.
        variant: label of the assembler's variant, or None.
        test: the Python test that ran it, as ``tests/test_x.py::test_answer[a]``; None for a golden item.
        question: what is asked; None in reports of older versions, whose keys may have it.
        tags: the case's tags.
        min_pass_rate: share of samples that must pass, or None for all.
        xfail: why the case is expected to fail, or None.
        expectation_sha: identity of what is expected.
        expectation: what is expected, as JSON, so that an older answer can be scored by it; None where it
            was too large to carry.
        scorer: name and version of the scorer, where it isn't one of the built-in match modes.
        context: the fingerprint of the context of the first sample, as a mapping.
        metadata: the case's metadata.
        samples: the answers that make the verdict; at least one.
        confirming: answers that were asked for only because the verdict flipped; they weigh the flip.
        fold: what the samples come to.

    Raises:
        ValueError: no sample.
    """

    id: str
    file: str = ""
    position: int = 0
    model: str = ""
    variant: str | None = None
    test: str | None = None
    question: str | None = None
    tags: tuple[str, ...] = ()
    min_pass_rate: float | None = None
    xfail: str | None = None
    expectation_sha: str | None = None
    expectation: Mapping[str, JSONValue] | None = None
    scorer: str | None = None
    context: Mapping[str, JSONValue] | None = None
    metadata: Mapping[str, JSONValue] = field(default_factory=dict)
    samples: tuple[SampleReport, ...]
    confirming: tuple[SampleReport, ...] = ()
    fold: CaseFold = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("samples", "confirming"):
            ordered = tuple(sorted(getattr(self, name), key=lambda sample: sample.sample))
            object.__setattr__(self, name, ordered)
        fold = fold_samples(self.id, self.samples, tags=self.tags, min_pass_rate=self.min_pass_rate)
        object.__setattr__(self, "fold", fold)

    @property
    def all_samples(self) -> tuple[SampleReport, ...]:
        """The samples and then the confirming ones."""
        return (*self.samples, *self.confirming)

    @property
    def place(self) -> tuple[str, int, str, str, str]:
        """What cases of a report are sorted by."""
        return (self.file, self.position, self.model, self.variant or "", self.test or "")

    @property
    def label(self) -> str:
        """Model and variant: ``opus``, ``opus-b``."""
        return "-".join(filter(None, (self.model, self.variant)))


def case_namer(cases: Iterable[CaseReport]) -> Callable[[CaseReport], str]:
    """Return what names a case for people.

    Examples: ``total_orders``; ``total_orders[opus-b]`` where there are several models or variants.
    """
    if len({case.label for case in cases}) < 2:
        return lambda case: case.id
    return lambda case: f"{case.id}[{case.label}]" if case.label else case.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What answers took.

    Attributes:
        answers: how many there are.
        cost: USD of those whose cost is known.
        unknown_costs: answers whose cost isn't known; absent is not zero.
        latency_ms: milliseconds, added up, of those whose latency is known.
        turns: model turns, added up, of those whose turns are known.
    """

    answers: int
    cost: float
    unknown_costs: int
    latency_ms: int
    turns: int

    @classmethod
    def of(cls, samples: Iterable[SampleReport]) -> Usage:
        """Add up what some answers took."""
        samples = list(samples)
        cost = 0.0
        for sample in samples:
            cost += sample.cost or 0.0
        return cls(
            answers=len(samples),
            cost=cost,
            unknown_costs=sum(sample.cost is None for sample in samples),
            latency_ms=sum(sample.latency_ms or 0 for sample in samples),
            turns=sum(sample.turns or 0 for sample in samples),
        )

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the figures by name."""
        return {
            "answers": self.answers,
            "cost": self.cost,
            "unknown_costs": self.unknown_costs,
            "latency_ms": self.latency_ms,
            "turns": self.turns,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A whole run; its cases are sorted by file, position, model and variant, their samples by number.

    Attributes:
        cases: one record a case, model and variant.
        complete: the run was not interrupted.
        selected_cases: golden cases that were to run; by default those of ``cases``.
        total_cases: golden cases that were collected; by default the selected ones.
        selection: what was selected, for people; empty for a full run.
        dataset: the golden files' dataset, where they name one.
        context_version: their pin, where they have one.
        recorded_at: when the run ended, UTC, ISO 8601.
        recorded_by: name and version of the program.
        manifests: for a tree SHA of a key, the SHA of each of its files by name.
        covered: golden files of which all cases were to run, and folders (ending in ``/``) of which all
            files were; None where nobody kept that, which then is all of it in a full run.
        mode: how the cache was used: ``auto``, ``refresh``, ``replay``, ``off``; None where nobody kept that.
        texts: bodies of layers of the contexts, by hash, as far as they are kept, to show what changed.
        notes: what a reader should know of the run.
    """

    cases: tuple[CaseReport, ...]
    complete: bool = True
    selected_cases: int = -1
    total_cases: int = -1
    selection: str = ""
    dataset: str | None = None
    context_version: str | None = None
    recorded_at: str | None = None
    recorded_by: str | None = None
    manifests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    covered: tuple[str, ...] | None = None
    mode: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "cases", tuple(sorted(self.cases, key=lambda case: case.place)))
        if self.selected_cases < 0:
            n = len({(case.file, case.id) for case in self.cases})
            object.__setattr__(self, "selected_cases", n)
        if self.total_cases < 0:
            object.__setattr__(self, "total_cases", self.selected_cases)

    @property
    def is_full(self) -> bool:
        """Whether all collected cases ran."""
        return self.complete and self.selected_cases == self.total_cases

    def lacks(self, case: CaseReport) -> bool:
        """Whether a case that isn't here is gone: all of its file, or of its file's folder, was to run."""
        if self.covered is None:
            return self.is_full
        if not self.complete or case.file in self.covered:
            return self.complete
        is_file_here = any(case.file == other.file for other in self.cases)
        return not is_file_here and any(
            case.file.startswith(folder) or (folder == ROOT_FOLDER and not case.file.startswith("../"))
            for folder in self.covered
            if folder.endswith("/")
        )

    @property
    def totals(self) -> Totals:
        """The figures over all cases."""
        return aggregate(case.fold for case in self.cases)

    @property
    def configs(self) -> dict[tuple[str, str | None], Totals]:
        """The figures by model and variant, sorted."""
        groups: dict[tuple[str, str | None], list[CaseFold]] = {}
        for case in self.cases:
            groups.setdefault((case.model, case.variant), []).append(case.fold)
        ordered = sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        return {config: aggregate(folds) for config, folds in ordered}

    @property
    def spent(self) -> Usage:
        """What the calls of this run took, confirming ones too."""
        return Usage.of(sample for case in self.cases for sample in case.all_samples if sample.was_asked)

    @property
    def replayed(self) -> Usage:
        """What the answers that were replayed took when they were given."""
        return Usage.of(sample for case in self.cases for sample in case.all_samples if sample.hit)

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the report as JSON; its schema is ``report_schema()``."""
        from pytest_ctxfp._report_json import report_to_dict

        return report_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, JSONValue]) -> RunReport:
        """Read a report back. Figures are computed anew from the samples, not taken over.

        Raises:
            CtxfpError: no report, one of another version, or a field of a wrong type.
        """
        from pytest_ctxfp._report_json import report_from_dict

        return report_from_dict(data)


def fit_answer(value: JSONValue) -> tuple[JSONValue, int | None]:
    """Return an answer as a report carries it, and how long it was if it was cut.

    Args:
        value: the value that was scored.

    Returns:
        The value itself and None up to 64 kB of JSON, else the beginning of that JSON as a text, and the
        length of all of it in bytes.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= MAX_ANSWER_BYTES:
        return value, None
    # Half of it: as a JSON text its quotes and backslashes take two bytes each, and it stands in quotes.
    return data[: MAX_ANSWER_BYTES // 2 - 1].decode("utf-8", "ignore"), len(data)
