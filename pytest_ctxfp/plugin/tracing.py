"""The fixture ``ctx_trace``: a golden case in, its outcome out; what it saw goes into the item's records."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

import pytest

from pytest_ctxfp._chain import Call
from pytest_ctxfp._errors import AgentError, CtxfpError, first_line
from pytest_ctxfp._loop import run_without_loop, within
from pytest_ctxfp._model import GoldenCase
from pytest_ctxfp._reads import free_names, read_texts
from pytest_ctxfp._suite import Suite
from pytest_ctxfp._values import to_json_value
from pytest_ctxfp.plugin.calls import calls_of
from pytest_ctxfp.plugin.case_runs import model_named_for, run_for, run_of
from pytest_ctxfp.plugin.collect import GoldenItem
from pytest_ctxfp.plugin.fixture_values import FIXTURE_VALUES
from pytest_ctxfp.plugin.items import command_to_refresh, fixtures_of, shown_path
from pytest_ctxfp.plugin.runner import get_runner
from pytest_ctxfp.plugin.sampling import CaseSampler
from pytest_ctxfp.plugin.settings import get_settings
from pytest_ctxfp.plugin.splitting import splitter_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping

    from pytest_ctxfp._model import CaseView, JSONValue
    from pytest_ctxfp._runner import Outcome
    from pytest_ctxfp.plugin.case_runs import CaseRun

    Settle = Callable[[object, float | None], Awaitable[object]]

T = TypeVar("T")
CASE_SEEN = pytest.StashKey[bool]()
MODEL_SEEN = pytest.StashKey[bool]()


class CaseTracer:
    """Resolves cases for one test: ``ctx_trace(case)``, or ``await ctx_trace(case)`` in an async test.

    Args:
        request: the test's own request, through which its fixtures are found.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._runner = get_runner(request.config)
        self._notes: list[str] = []
        self._agent_asked_for_model = False

    def __call__(self, case: GoldenCase) -> Outcome:
        """Find or pay for the answer to a case and score it; ``check()`` of what comes back asserts.

        Raises:
            AgentError: the assembler or the agent gave nothing that can be scored.
            CacheMiss: no answer is stored and ``--ctx-on-miss=fail`` allows no call.
            CtxfpError: fixtures that don't fit together, a context that isn't reproducible.
        """
        if not isinstance(case, GoldenCase):
            message = f"ctx_trace takes a golden case, got {type(case).__name__}: pass the fixture ctx_case"
            raise CtxfpError(message)
        if _is_loop_running():
            # In an async test this is the awaitable; anything else done with it says so.
            return PendingOutcome(self._sampler(case, _settle_in_test).resolve())  # type: ignore[return-value]
        __tracebackhide__ = True
        try:
            return run_without_loop(self._sampler(case, self._settle_in_session_loop).resolve())
        except CtxfpError as error:
            raise error.with_traceback(None)  # noqa: B904 - the same error, without our own frames

    def call(
        self,
        id: str,  # noqa: A002 - the published name
        fn: Callable[[], object],
        *,
        question: str | None = None,
        key: Mapping[str, object] = MappingProxyType({}),
        agent: bool = True,
        chain: bool = True,
    ) -> JSONValue:
        """Answer any call from the cache, or make it and store what it returned; awaitable in async tests.

        The key holds the texts in ``fn`` and the test's parameters that it uses, but it can't see into
        objects: name in ``question`` and ``key`` whatever else decides the answer.

        Args:
            id: names the call in keys and summaries.
            fn: makes the call, sync or async; it may return an ``AgentResult`` to say what it cost.
            question: what is asked.
            key: what else decides the answer, as JSON.
            agent: False for a call that doesn't use the agent's files.
            chain: False for a call that doesn't follow from the test's earlier ones.

        Returns:
            what JSON gives back of what ``fn`` returned, on a hit and on a miss alike.

        Raises:
            AgentError: an answer that JSON can't hold.
            CacheMiss: no answer is stored and ``--ctx-on-miss=fail`` allows no call.
            CtxfpError: a key that JSON can't hold.
        """
        calls = calls_of(self._request.node)
        call = self._make_call(id, fn, question=question, key=key)
        call = replace(call, of_agent=agent, chained=chain)
        if _is_loop_running():
            # In an async test this is the awaitable; anything else done with it says so.
            return PendingOutcome(calls.resolve(call, _settle_call))  # type: ignore[return-value]
        return run_without_loop(calls.resolve(call, self._settle_call_in_session_loop))

    def _make_call(
        self, call_id: str, fn: Callable[[], object], *, question: str | None, key: Mapping[str, object]
    ) -> Call:
        if not callable(fn):
            message = f"ctx_trace.call({call_id!r}, ...) takes a function, got {type(fn).__name__}"
            raise CtxfpError(message)
        try:
            params: dict[str, JSONValue] = {"arguments": read_texts(fn)}
            if key:
                params["key"] = to_json_value(dict(key))
        except AgentError as error:
            message = f"ctx_trace.call({call_id!r}, key=...): {first_line(error)}"
            raise CtxfpError(message) from None
        parameters = calls_of(self._request.node).parameters_behind(free_names(fn))
        if parameters:
            params["parameters"] = parameters
        return Call(
            id=call_id,
            run=fn,
            question=call_id if question is None else question,
            params=params,
            of_agent=True,
            chained=True,
            model=model_named_for(self._request.node) or self._model(),
            key_parts=_checked(self._fixture("ctx_agent_key"), dict, "ctx_agent_key", "a dict"),
        )

    async def _settle_call_in_session_loop(self, value: object) -> object:
        if not inspect.isawaitable(value):
            return value
        run: Callable[[Awaitable[object]], object] = self._request.getfixturevalue("ctx_await")
        return run(value)

    def _sampler(self, case: GoldenCase, settle: Settle) -> CaseSampler:
        item = self._request.node
        run = run_for(case, item)
        return CaseSampler(
            item,
            self._runner,
            run,
            make_suite=lambda sample: self._suite(run, sample, settle),
            notes=self._notes,
        )

    def _suite(self, run: CaseRun, sample: int, settle: Settle) -> Suite:
        item = self._request.node
        reached = fixtures_of(item, "ctx_agent")
        return Suite(
            sample=sample,
            variant=run.variant,
            is_model_given=run.model is not None,
            knows_model=lambda: self._knows_model(reached),
            build_agent=lambda: self._build_agent(reads_case="ctx_case" in reached),
            assembler=self._fixture("ctx_assembler"),  # type: ignore[arg-type]
            model=run.model or self._model(),
            key_parts=_checked(self._fixture("ctx_agent_key"), dict, "ctx_agent_key", "a dict"),
            reads_case="ctx_case" in reached,
            parameters=_keyed_parameters(item, reached),
            scope=str(item.path),
            settle=settle,
            ask_again=lambda: command_to_refresh(item),
            load_scorers=lambda: self._fixture("ctx_scorers"),
            load_execute=lambda: self._fixture("ctx_execute"),
            split=splitter_of(item),
            show_path=lambda path: shown_path(Path(path), item.config),
            let_through=(CtxfpError, pytest.exit.Exception),
        )

    def _model(self) -> str:
        return _checked(self._fixture("ctx_model"), str, "ctx_model", "a text")

    def _build_agent(self, *, reads_case: bool) -> Callable[..., object]:
        stash = self._request.node.stash
        had_seen, knew_model = stash.get(CASE_SEEN, False), stash.get(MODEL_SEEN, False)
        stash[MODEL_SEEN] = False  # may be of the test itself, or of an earlier attempt
        agent = self._fixture("ctx_agent")
        self._agent_asked_for_model |= stash[MODEL_SEEN]
        stash[MODEL_SEEN] |= knew_model
        if stash.get(CASE_SEEN, False) and not had_seen and not reads_case:
            message = (
                "the fixtures behind ctx_agent ask for ctx_case while they run, which the key can't know of:"
                " name ctx_case as an argument of the fixture instead"
            )
            raise CtxfpError(message)
        return agent  # type: ignore[return-value] # named_arguments refuses what is not callable

    def _knows_model(self, reached: frozenset[str]) -> bool:
        """Whether the fixtures behind the agent have asked for the model; that the test did says nothing."""
        is_asked_for = self._agent_asked_for_model or "ctx_model" in reached
        return is_asked_for and self._request.node.stash.get(MODEL_SEEN, False)

    def _fixture(self, name: str) -> object:
        item = self._request.node
        if not isinstance(item, GoldenItem):  # which may have parameters to choose by
            return self._look_up(name)
        known = item.config.stash[FIXTURE_VALUES].by_file(name)
        if item.parent not in known:
            known[item.parent] = self._look_up(name)
        return known[item.parent]

    def _look_up(self, name: str) -> object:
        value: object
        try:
            value = self._request.getfixturevalue(name)
        except pytest.fail.Exception as error:
            raise _explain_unresolved(name, str(error)) or error from None
        if inspect.iscoroutine(value) or inspect.isasyncgen(value):
            if inspect.iscoroutine(value):
                value.close()
            raise _refuse_async(name)
        return value

    async def _settle_in_session_loop(self, value: object, seconds: float | None) -> object:
        if not inspect.isawaitable(value):
            self._note_timeout(seconds)
            return value
        run: Callable[[Awaitable[object]], object] = self._request.getfixturevalue("ctx_await")
        return run(value if seconds is None else within(value, seconds))

    def _note_timeout(self, seconds: float | None) -> None:
        if seconds is not None and not self._request.config.pluginmanager.hasplugin("timeout"):
            self._notes.append(
                "a timeout of a case ends only async agents: install pytest-timeout for others"
            )


def _explain_unresolved(name: str, reason: str) -> CtxfpError | None:
    """Return our words for what pytest can't resolve outside of a parametrised or an async test."""
    if "requested an async fixture" in reason:
        return _refuse_async(name)
    if "ScopeMismatch" in reason and "ctx_model" in reason:
        return CtxfpError(
            f"fixture {name}, or one behind it, has a wider scope than ctx_model, which --ctx-models gives"
            " each test for itself: make it a fixture of function scope, or let the agent have an argument"
            " 'model'"
        )
    if "has no parameter defined" not in reason:
        return None
    return CtxfpError(
        f"fixture {name} has params, which a golden case can't choose from: override it without"
        f" params, or write a test with @pytest.mark.ctx_golden that asks for {name} and ctx_trace"
    )


def _refuse_async(name: str) -> CtxfpError:
    return CtxfpError(
        f"fixture {name} is async, and pytest alone can't run it here: make it a plain fixture"
        " (what it returns may be async)"
    )


class PendingOutcome(Generic[T]):
    """What ``ctx_trace`` gives where an event loop runs: to be awaited, and nothing else."""

    def __init__(self, coroutine: Coroutine[object, None, T]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[object, None, T]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> NoReturn:
        self._coroutine.close()
        message = f"in an async test write 'await ctx_trace(case)' before asking for its {name!r}"
        raise CtxfpError(message)


async def _settle_call(value: object) -> object:
    return await value if inspect.isawaitable(value) else value


async def _settle_in_test(value: object, seconds: float | None) -> object:
    if not inspect.isawaitable(value):
        return value
    return await (value if seconds is None else within(value, seconds))


def _keyed_parameters(item: pytest.Item, reached: frozenset[str]) -> dict[str, JSONValue]:
    """Return the test's own parameters that the agent reads; those in ``ctx_agent_key`` are keyed there.

    Raises:
        CtxfpError: a parameter that JSON can't hold, so that no key can tell it from another.
    """
    parameters: dict[str, object] = item.callspec.params if hasattr(item, "callspec") else {}
    names = reached.intersection(parameters) - {"ctx_case"}
    if not names:
        return {}
    names -= fixtures_of(item, "ctx_agent_key")
    try:
        return {name: to_json_value(parameters[name]) for name in sorted(names)}
    except AgentError as error:
        message = (
            f"ctx_agent depends on the parameter {', '.join(sorted(names))}, which can't be in the key"
            f" ({first_line(error)}): let ctx_agent_key ask for it too and name it there"
        )
        raise CtxfpError(message) from None


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _checked(value: object, kind: type[T], name: str, wanted: str) -> T:
    if not isinstance(value, kind):
        message = f"fixture {name} gave {type(value).__name__}: return {wanted}"
        raise CtxfpError(message)
    return value


def refuse_without_agent() -> NoReturn:
    """Raise the error that shows how to give the agent."""
    message = """no agent to ask: give one in conftest.py, for instance

    @pytest.fixture
    def ctx_agent():
        def ask(question, context):
            return my_agent.answer(question, context)
        return ask"""
    raise CtxfpError(message)


def case_of(request: pytest.FixtureRequest) -> CaseView | GoldenCase:
    """Return the case of a test: in a golden item, what an agent may see of it.

    Raises:
        CtxfpError: the test has no case.
    """
    request.node.stash[CASE_SEEN] = True
    run = run_of(request.node)
    if run is None:
        message = (
            "ctx_case is there in golden files and in tests with a marker such as"
            ' @pytest.mark.ctx_golden("golden/*.yaml"): add the marker'
        )
        raise CtxfpError(message)
    return run.case.view if isinstance(request.node, GoldenItem) else run.case


def model_of(request: pytest.FixtureRequest) -> str:
    """Return the model of a test: what the command line says, else the ini option ``ctx_model``."""
    settings = get_settings(request.config)
    if not settings.models:
        return settings.model
    request.node.stash[MODEL_SEEN] = True
    return model_named_for(request.node) or settings.model
