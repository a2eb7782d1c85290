"""A golden case as one test runs it: under which model and variant; and which cases a run selects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._display import item_name
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._model import GoldenCase, GoldenSet


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRun:
    """A case, and what a test runs it with.

    Attributes:
        case: the golden case.
        position: its 0-based place in its file.
        model: label of the model where the command line names some, else None: the suite names it.
        variant: label of the assembler's variant, or None.
        label: tells the case's tests apart where there are several: ``opus-b``.
        dataset: the golden file's dataset, if it names one.
        context_version: the golden file's pin, if it has one.
        place: what tells the case from all others, and what cases are sorted by.
    """

    case: GoldenCase
    position: int
    model: str | None
    variant: str | None
    label: str
    dataset: str | None
    context_version: str | None
    place: tuple[str, int, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", (self.case.path, self.position, self.case.id))

    @property
    def tags(self) -> tuple[str, ...]:
        """The case's tags."""
        return self.case.tags

    @property
    def item_name(self) -> str:
        """Name of the golden item: ``total_orders``, ``total_orders[opus-b]`` where several run."""
        name = item_name(self.case.id)
        return f"{name}[{item_name(self.label)}]" if self.label else name

    @property
    def parameter_name(self) -> str:
        """The same between the brackets of a Python test: ``total_orders-opus-b``."""
        name = item_name(self.case.id)
        return f"{name}-{item_name(self.label)}" if self.label else name


def expand_cases(golden: GoldenSet, config: pytest.Config) -> Iterator[CaseRun]:
    """Yield each case of a golden file once for each model and variant."""
    settings = get_settings(config)
    models, variants = settings.models or (None,), settings.variants or (None,)
    for position, case in enumerate(golden.cases):
        for model, variant in product(models, variants):
            yield CaseRun(
                case=case,
                position=position,
                model=model,
                variant=variant,
                label="-".join(
                    label
                    for label, labels in ((model, models), (variant, variants))
                    if label is not None and len(labels) > 1
                ),
                dataset=golden.dataset,
                context_version=golden.context_version,
            )


def run_of(item: pytest.Item) -> CaseRun | None:
    """Return what a golden item, or a Python test with a marker ``ctx_golden``, runs."""
    run = getattr(item, "run", None)
    if run is None and hasattr(item, "callspec"):
        run = item.callspec.params.get("ctx_case")
    return run if isinstance(run, CaseRun) else None


def model_named_for(item: pytest.Item) -> str | None:
    """Return the one model that the command line names for a test, or None where there is no such."""
    run, models = run_of(item), get_settings(item.config).models
    if run is not None:
        return run.model
    return models[0] if len(models) == 1 else None


def run_for(case: GoldenCase, item: pytest.Item) -> CaseRun:
    """Return what a test runs a case with: its own case, or one that it has from elsewhere.

    Raises:
        CtxfpError: several models or variants are named, and the test runs only once.
    """
    run = run_of(item)
    if run is not None:
        return run if case is run.case else replace(run, case=case, position=case.line)
    settings = get_settings(item.config)
    for option, labels in (("--ctx-models", settings.models), ("--ctx-variants", settings.variants)):
        if len(labels) > 1:
            message = (
                f"{option} names several, and this test traces its case once: let the marker"
                ' @pytest.mark.ctx_golden("golden/*.yaml") give it the case, as the fixture ctx_case'
            )
            raise CtxfpError(message)
    return CaseRun(
        case=case,
        position=case.line,
        model=next(iter(settings.models), None),
        variant=next(iter(settings.variants), None),
        label="",
        dataset=None,
        context_version=None,
    )


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """Which of the collected cases a run selects.

    Attributes:
        selected: how many cases are to run.
        total: how many were collected.
        note: what was selected, for people; empty for all of them.
        fault: why no case is left, if so.
    """

    selected: int
    total: int
    note: str = ""
    fault: str = ""


AUDITED = pytest.StashKey["frozenset[pytest.Item]"]()
"""The tests whose stored answers are asked for again, as far as they are stored."""
SELECTION = pytest.StashKey[CaseSelection]()


def apply_selection(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases that ``--ctx-tags`` and ``--ctx-subset`` leave out, whatever the items' order is."""
    runs = {item: run for item in items if (run := run_of(item)) is not None}
    by_place = {run.place: run for run in runs.values()}
    settings = get_settings(config)
    if not (settings.tags or settings.subset):
        config.stash[SELECTION] = CaseSelection(len(by_place), len(by_place))
        return
    from pytest_ctxfp._select import Selection, select_cases

    cases = [by_place[place] for place in sorted(by_place)]
    fault = ""
    try:
        selection = select_cases(cases, settings.tags, settings.subset)
    except ValueError as error:
        selection, fault = Selection((), ""), str(error)
    kept = {cases[index].place for index in selection.indices}
    config.stash[SELECTION] = CaseSelection(len(kept), len(cases), selection.note, fault)
    dropped = [item for item, run in runs.items() if run.place not in kept]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]


def choose_audited(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of ``--ctx-audit``, spread evenly over the cases; the same ones in every process."""
    n = get_settings(config).audit
    if not n:
        return
    from pytest_ctxfp._select import Selection, select_cases

    runs = {item: run for item in items if (run := run_of(item)) is not None}
    ordered = sorted(runs, key=lambda item: (runs[item].place, runs[item].label, str(item.nodeid)))
    chosen = select_cases([runs[item] for item in ordered], sample=str(n)) if ordered else Selection((), "")
    config.stash[AUDITED] = frozenset(ordered[index] for index in chosen.indices)
