"""Golden files and their cases as pytest's own modules and functions, so that everything works on them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._display import escape_line, escape_lines
from pytest_ctxfp._errors import CaseMismatch, GoldenError, first_line
from pytest_ctxfp.plugin.case_runs import expand_cases, run_of
from pytest_ctxfp.plugin.items import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_ctxfp._model import GoldenCase, GoldenSet
    from pytest_ctxfp._runner import Outcome
    from pytest_ctxfp.plugin.case_runs import CaseRun


class GoldenFile(pytest.Module):
    """A golden file as a test module: its synthetic module object serves autouse fixtures."""

    load: Callable[[], GoldenSet | None]

    @classmethod
    def for_path(
        cls, parent: pytest.Collector, path: Path, *, load: Callable[[], GoldenSet | None] | None = None
    ) -> GoldenFile:
        """Return the collector of a file; ``load`` gives its cases where a hook read them."""
        from pytest_ctxfp.plugin.loading import load_file

        file: GoldenFile = cls.from_parent(parent, path=path)
        file.load = load or partial(load_file, path, parent.session)
        file.obj = ModuleType(f"ctxfp_golden_{path.stem}")
        file.obj.__file__ = str(path)
        file.add_marker(pytest.mark.ctx_golden)
        return file

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item a case.

        Raises:
            CollectError: with all faults of the file, without a traceback.
        """
        try:
            golden = self.load()
            items = self._make_items(expand_cases(golden, self.config)) if golden else []
        except GoldenError as error:
            raise self.CollectError(_describe_faults(error, self.config)) from None
        yield from items

    def _make_items(self, runs: Iterable[CaseRun]) -> list[GoldenItem]:
        items: list[GoldenItem] = []
        faults: list[GoldenError] = []
        for run in runs:
            case = run.case
            try:
                items.append(GoldenItem.for_run(self, run, beside=items[0] if items else None))
            except (pytest.fail.Exception, pytest.PytestUnknownMarkWarning) as error:
                # As pytest refuses a mark: with --strict-markers, and where warnings are errors.
                reason = f"{first_line(error)}: register the mark in the ini option markers"
                faults.append(GoldenError(str(self.path), case.line, case.id, reason))
        if faults:
            first, *more = faults
            raise GoldenError(first.path, first.line, first.case, first.reason, more)
        return items


class GoldenItem(pytest.Function):
    """A golden case as a test function. Its answer is found or paid for in setup; the call is the verdict."""

    run: CaseRun
    case: GoldenCase
    outcome: Outcome | None = None

    @classmethod
    def for_run(cls, parent: GoldenFile, run: CaseRun, *, beside: GoldenItem | None) -> GoldenItem:
        """Return the item of a case, with its marks and its tags as keywords.

        Args:
            parent: the case's file.
            run: the case, and what it runs under.
            beside: another item of the file, which needs the same fixtures: they are worked out once, as
                pytest does for the parameters of a test.
        """
        item: GoldenItem = cls.from_parent(
            parent,
            name=run.item_name,
            callobj=_golden_case,
            fixtureinfo=getattr(beside, "_fixtureinfo", None),
        )
        item.fixturenames = [*item.fixturenames]  # plugins insert into it for what has a mark of its own
        item.run = run
        item.case = case = run.case
        item.extra_keyword_matches.update(case.tags)
        for mark in _marks_of(case, has_timeout_plugin=item.config.pluginmanager.hasplugin("timeout")):
            item.add_marker(mark)
        return item

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case stands: file, 0-based line, name."""
        return self.path, max(self.case.line - 1, 0), self.name

    def setup(self) -> None:
        """Set fixtures up, then resolve the case: what goes wrong here is an error, not a failure."""
        super().setup()
        if not self.config.getoption("setuponly", False):
            request = self.funcargs["request"]
            assert isinstance(request, pytest.FixtureRequest)
            self.outcome = self._resolve(request)

    def _resolve(self, request: pytest.FixtureRequest) -> Outcome:
        """Do what the fixture ``ctx_trace`` does, without the cost of a fixture for every case."""
        from pytest_ctxfp.plugin.tracing import CaseTracer

        return CaseTracer(request)(self.case)


def _golden_case(request: pytest.FixtureRequest) -> None:
    # The call phase of every golden item. No docstring: --co -v would print it below each case.
    __tracebackhide__ = True
    assert isinstance(request.node, GoldenItem)
    outcome, request.node.outcome = request.node.outcome, None  # the items outlive their tests
    assert outcome is not None
    outcome.check()


def _marks_of(case: GoldenCase, *, has_timeout_plugin: bool) -> Iterator[pytest.MarkDecorator]:
    for name in case.marks:
        yield getattr(pytest.mark, name)
    if case.skip is not None:
        yield pytest.mark.skip(reason=escape_line(case.skip))
    if case.xfail is not None:
        yield pytest.mark.xfail(reason=escape_line(case.xfail), raises=CaseMismatch)
    if case.timeout is not None and has_timeout_plugin:
        yield pytest.mark.timeout(case.timeout)


def _describe_faults(error: GoldenError, config: pytest.Config) -> str:
    """Return all faults of a golden file, with its path as one would type it."""
    return escape_lines(str(error.at(shown_path(Path(error.path), config))))


def parametrise_cases(metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
    """Run a Python test once for every case of the golden files that its marker names.

    Raises:
        CollectError: no such file, or one that can't be used.
    """
    from pytest_ctxfp.plugin.loading import load_cases

    runs: list[CaseRun] = []
    try:
        for path in _marked_files(metafunc.definition.path, marker):
            runs += expand_cases(load_cases(path, metafunc.definition.session), metafunc.config)
    except GoldenError as error:
        raise pytest.Collector.CollectError(_describe_faults(error, metafunc.config)) from None
    if not runs:
        message = (
            f"marker ctx_golden{marker.args!r}: no golden file is matched, relative to the test's folder"
        )
        raise pytest.Collector.CollectError(message)
    has_timeout_plugin = metafunc.config.pluginmanager.hasplugin("timeout")
    metafunc.parametrize(
        "ctx_case",
        [
            pytest.param(
                run,
                id=run.parameter_name,
                marks=[*_marks_of(run.case, has_timeout_plugin=has_timeout_plugin)],
            )
            for run in runs
        ],
        indirect=True,
    )


def add_tag_keywords(item: pytest.Item) -> None:
    """Let ``-k`` find a Python test by the tags of the case it runs."""
    run = None if isinstance(item, GoldenItem) else run_of(item)
    if run is not None:
        item.extra_keyword_matches.update(run.tags)


def drop_claimed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the plain items of golden files whose cases Python tests of this session run by a marker."""
    claimed = {
        path
        for item in items
        if (marker := _used_marker(item)) is not None
        for path in _marked_files(item.path, marker)
    }
    dropped = [item for item in items if isinstance(item, GoldenItem) and item.path in claimed]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if not (isinstance(item, GoldenItem) and item.path in claimed)]


def _used_marker(item: pytest.Item) -> pytest.Mark | None:
    """Return the marker that a Python test's cases come from; without ``ctx_case`` it runs none."""
    if isinstance(item, GoldenItem) or "ctx_case" not in getattr(item, "fixturenames", ()):
        return None
    return item.get_closest_marker("ctx_golden")


def _marked_files(test_file: Path, marker: pytest.Mark) -> list[Path]:
    """Return the files that a marker's globs match, relative to the folder of the test's file."""
    try:
        return sorted(
            {
                path
                for pattern in marker.args
                for path in test_file.parent.glob(str(pattern))
                if path.is_file()
            }
        )
    except (NotImplementedError, ValueError) as error:  # an absolute or an empty one
        message = f"marker ctx_golden{marker.args!r}: {first_line(error)}; write globs relative to the test"
        raise pytest.Collector.CollectError(message) from None
