"""Hooks and fixtures, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_ctxfp.plugin.options import (
    COLLECTED,
    add_no_cache_option,
    add_options,
    are_calls_limited,
    are_cases_judged_together,
    are_snapshots_asked_for,
    check_options,
    has_case_loaders,
    is_cache_asked_for,
    is_cache_flag_given,
    may_be_golden,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from pathlib import Path

    from pytest_ctxfp._model import CaseView, GoldenCase
    from pytest_ctxfp.plugin.settings import Settings
    from pytest_ctxfp.plugin.snapshots import ContextSnapshot
    from pytest_ctxfp.plugin.tracing import CaseTracer


class WorkerController(Protocol):
    """What pytest-xdist, which may be absent, hands over for each worker."""

    config: pytest.Config
    workerinput: dict[str, object]


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that conftests may implement."""
    from pytest_ctxfp.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the flags and ini options."""
    add_options(parser)


@pytest.hookimpl(trylast=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    """Register ``--no-cache`` where it is used and no conftest has defined it."""
    add_no_cache_option(parser, args)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse options that contradict each other."""
    check_options(config)
    config.addinivalue_line(
        "markers",
        "ctx_golden(*globs): run the test once for every case of these golden files, as the fixture ctx_case",
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Check that a cache that was asked for can work; on an xdist controller, listen for reports."""
    config = session.config
    if is_cache_asked_for(config):
        from pytest_ctxfp.plugin.calls import CallHooks

        config.pluginmanager.register(CallHooks(), "ctxfp-calls")
    if are_snapshots_asked_for(config) or are_cases_judged_together(config):
        from pytest_ctxfp.plugin.session import ensure_session

        ensure_session(config)
    if not hasattr(config, "workerinput") and is_cache_flag_given(config):
        from pytest_ctxfp.plugin.runner import check_usage

        check_usage(config)
    if not hasattr(config, "workerinput") and config.getoption("ctx_baseline") is not None:
        from pytest_ctxfp.plugin.baseline import check_baseline

        check_baseline(config)
    if config.pluginmanager.has_plugin("dsession"):
        from pytest_ctxfp.plugin.session import ensure_session

        ensure_session(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker of pytest-xdist where calls are counted."""
    if are_calls_limited(node.config):
        from pytest_ctxfp.plugin.runner import LEDGER_INPUT, get_ledger_path

        node.workerinput[LEDGER_INPUT] = str(get_ledger_path(node.config))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect golden files, beside what other plugins collect."""
    collectors = yield
    load = None
    if has_case_loaders(file_path, parent.session):
        from pytest_ctxfp.plugin.loading import find_loader

        load = find_loader(file_path, parent.session)
    if load is None and not may_be_golden(file_path, parent.session, is_taken=bool(collectors)):
        return collectors
    from pytest_ctxfp.plugin.collect import GoldenFile
    from pytest_ctxfp.plugin.session import ensure_session

    ensure_session(parent.config)
    return [*collectors, GoldenFile.for_path(parent, file_path, load=load)]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keep other plugins' globs, such as those of doctest, out of the folders of snapshots."""
    return True if collection_path.name == "__ctxfp__" else None


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Keep what was collected: it is the evidence for calling a snapshot unused."""
    if report.passed and report.result:
        report.result[0].config.stash.setdefault(COLLECTED, []).append(report)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise ``ctx_case`` where a Python test is marked with ``ctx_golden``."""
    marker = metafunc.definition.get_closest_marker("ctx_golden")
    if marker is not None and "ctx_case" in metafunc.fixturenames:
        from pytest_ctxfp.plugin.collect import parametrise_cases
        from pytest_ctxfp.plugin.session import ensure_session

        ensure_session(metafunc.config)
        parametrise_cases(metafunc, marker)


@pytest.fixture(scope="session")
def ctx_agent() -> Callable[..., object]:
    """The agent under test: override it with a fixture that returns a callable.

    It is called with those of ``question, context, inputs, case, model, sample, variant`` that it names.
    """
    from pytest_ctxfp.plugin.tracing import refuse_without_agent

    return refuse_without_agent()


@pytest.fixture(scope="session")
def ctx_assembler() -> Callable[..., object] | None:
    """The assembler of contexts: override it with a fixture that returns a callable; None for no assembler.

    It is called with those of ``question, inputs, case, model, sample, variant`` that it names.
    """
    return None


@pytest.fixture(scope="session")
def ctx_agent_key() -> dict[str, object]:
    """What else makes an answer what it is: ``backend``, ``max_turns``, ``tier_binding``, ``params``."""
    return {}


@pytest.fixture(scope="session")
def ctx_scorers() -> dict[str, Callable[..., object]]:
    """Scorers of your own, by the name that a case's ``match`` has: override it with a dict of functions.

    Each is called with those of ``case, answer, expected, context, trace`` that it names, and returns a bool,
    a score from 0 to 1 or a `Comparison`. One that costs money is declared with `cached_scorer`.
    """
    return {}


@pytest.fixture(scope="session")
def ctx_execute() -> Callable[[str], object] | None:
    """What runs ``expected_sql``: override it with a function from SQL to a cursor, DataFrame or table."""
    return None


def _scope_of_model(fixture_name: str, config: pytest.Config) -> str:  # noqa: ARG001 - pytest's signature
    return "function" if config.getoption("ctx_models") else "session"


@pytest.fixture(scope=_scope_of_model)  # type: ignore[arg-type] # a scope's name
def ctx_model(request: pytest.FixtureRequest) -> str:
    """The label of the model in keys and reports: the ini option ``ctx_model``.

    With ``--ctx-models`` it is each case's own, for one test at a time: fixtures that ask for it must have
    the scope of a test too.
    """
    from pytest_ctxfp.plugin.tracing import model_of

    return model_of(request)


@pytest.fixture
def ctx_case(request: pytest.FixtureRequest) -> CaseView | GoldenCase:
    """The golden case: in golden items what an agent may see, in tests marked ``ctx_golden`` all of it."""
    from pytest_ctxfp.plugin.tracing import case_of

    return case_of(request)


@pytest.fixture
def ctx_trace(request: pytest.FixtureRequest) -> CaseTracer:
    """A function from a golden case to its outcome, whose ``check()`` asserts; see `CaseTracer`."""
    from pytest_ctxfp.plugin.session import ensure_session
    from pytest_ctxfp.plugin.tracing import CaseTracer

    ensure_session(request.config)
    return CaseTracer(request)


@pytest.fixture
def ctx_snapshot(request: pytest.FixtureRequest) -> ContextSnapshot:
    """Check a context against its stored fingerprint: ``ctx_snapshot.check(context)``."""
    from pytest_ctxfp.plugin.session import ensure_session
    from pytest_ctxfp.plugin.snapshots import ContextSnapshot

    ensure_session(request.config)
    return ContextSnapshot(request.node)


@pytest.fixture(scope="session")
def ctx_await(pytestconfig: pytest.Config) -> Callable[[Awaitable[object]], object]:
    """Run what agents and assemblers return to its end, on one loop for the session."""
    from pytest_ctxfp._loop import SessionLoop

    loop = SessionLoop()
    pytestconfig.add_cleanup(loop.close)
    return loop


@pytest.fixture(scope="session")
def ctx_settings(pytestconfig: pytest.Config) -> Settings:
    """What flags, ini options and the environment say, frozen."""
    from pytest_ctxfp.plugin.settings import get_settings

    return get_settings(pytestconfig)
