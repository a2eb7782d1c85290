"""The fixture ``ctx_trace``: a golden case in, its outcome out; what it saw goes into the item's records."""

from __future__ import annotations

import asyncio
import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import pytest

from pytest_ctxfp._errors import CacheMiss, CtxfpError, first_line
from pytest_ctxfp._loop import run_without_loop, within
from pytest_ctxfp._model import GoldenCase
from pytest_ctxfp._records import outcome_record, unscored_record
from pytest_ctxfp._suite import Suite
from pytest_ctxfp.plugin.items import command_for
from pytest_ctxfp.plugin.options import get_settings
from pytest_ctxfp.plugin.session import add_record, get_runner

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from pytest_ctxfp._model import CaseView
    from pytest_ctxfp._runner import Outcome

    Settle = Callable[[object, float | None], Awaitable[object]]

T = TypeVar("T")
ASSEMBLER_SEEN = pytest.StashKey[bool]()
READS_CASE = pytest.StashKey[bool]()


class CaseTracer:
    """Resolves cases for one test: ``ctx_trace(case)``, or ``await ctx_trace(case)`` in an async test.

    Args:
        request: the test's own request, through which its fixtures are found.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._runner = get_runner(request.config)

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
            return PendingOutcome(self._resolve(case, _settle_in_test))  # type: ignore[return-value]
        return run_without_loop(self._resolve(case, self._settle_in_session_loop))

    async def _resolve(self, case: GoldenCase, settle: Settle) -> Outcome:
        try:
            outcome = await self._runner.resolve(case, self._suite(settle))
        except CacheMiss as miss:
            self._refuse(case, miss)
        except CtxfpError as error:
            add_record(self._request.node, unscored_record(case, "error", first_line(error)))
            raise
        record = outcome_record(outcome)
        add_record(self._request.node, record)
        note = self._note_on_assembler()
        if note is not None:
            record["notes"] = [note]
        return outcome

    def _note_on_assembler(self) -> str | None:
        """Warn, once a process, of an assembler whose own file is one of the agent's."""
        config = self._request.config
        agent = self._runner.identity.agent
        if agent is None or ASSEMBLER_SEEN in config.stash:
            return None
        config.stash[ASSEMBLER_SEEN] = True
        file = _source_file(self._fixture("ctx_assembler"))
        names = [name for name, _ in agent.entries if file == config.rootpath / name]
        if not names:
            return None
        return (
            f"{names[0]} defines ctx_assembler and is in ctx_agent_paths: refactoring it asks every question"
            f" again, though the contexts stay the same; exclude it with '!{names[0]}'"
        )

    def _refuse(self, case: GoldenCase, miss: CacheMiss) -> NoReturn:
        add_record(self._request.node, unscored_record(case, "refused", first_line(miss)))
        if get_settings(self._request.config).on_miss == "skip":
            pytest.skip(miss.explanation)
        remedy = f"{miss.explanation}\nask and store it: {command_for(self._request.node, '--ctx-cache')}"
        raise CacheMiss(miss.key, remedy) from None

    def _suite(self, settle: Settle) -> Suite:
        return Suite(
            build_agent=lambda: self._fixture("ctx_agent"),  # type: ignore[arg-type, return-value]
            assembler=self._fixture("ctx_assembler"),  # type: ignore[arg-type]
            model=_checked(self._fixture("ctx_model"), str, "ctx_model", "a text"),
            key_parts=_checked(self._fixture("ctx_agent_key"), dict, "ctx_agent_key", "a dict"),
            reads_case=reads_case(self._request.node),
            settle=settle,
            ask_again=command_for(self._request.node, "--ctx-refresh"),
            let_through=(CtxfpError, pytest.exit.Exception),
        )

    def _fixture(self, name: str) -> object:
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
            return value
        run: Callable[[Awaitable[object]], object] = self._request.getfixturevalue("ctx_await")
        return run(value if seconds is None else within(value, seconds))


def _explain_unresolved(name: str, reason: str) -> CtxfpError | None:
    """Return our words for what pytest can't resolve outside of a parametrised or an async test."""
    if "requested an async fixture" in reason:
        return _refuse_async(name)
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


class PendingOutcome:
    """What ``ctx_trace(case)`` gives where an event loop runs: to be awaited, and nothing else."""

    def __init__(self, coroutine: Coroutine[object, None, Outcome]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[object, None, Outcome]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> NoReturn:
        self._coroutine.close()
        message = f"in an async test write 'await ctx_trace(case)' before asking for its {name!r}"
        raise CtxfpError(message)


async def _settle_in_test(value: object, seconds: float | None) -> object:
    if not inspect.isawaitable(value):
        return value
    return await (value if seconds is None else within(value, seconds))


def reads_case(item: pytest.Item) -> bool:
    """Whether the fixtures that make ``ctx_agent`` reach ``ctx_case``: then the case belongs in the key.

    The agent itself is not built to find out: pytest works out the fixtures of a function that asks for it.
    """
    parent = item.parent
    assert parent is not None
    if READS_CASE not in parent.stash:
        probe = pytest.Function.from_parent(parent, name="ctx_agent", callobj=_probe_for(parent))
        parent.stash[READS_CASE] = "ctx_case" in probe.fixturenames
    return parent.stash[READS_CASE]


def _probe_for(parent: pytest.Collector) -> Callable[..., None]:
    if isinstance(parent, pytest.Class):
        return lambda self, ctx_agent: None  # noqa: ARG005 - only the names matter
    return lambda ctx_agent: None  # noqa: ARG005 - only the name matters


def _source_file(function: object) -> Path | None:
    while isinstance(function, functools.partial):
        function = function.func
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))  # type: ignore[arg-type]
    except TypeError:
        return None
    return None if file is None else Path(file)


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


def case_of(request: pytest.FixtureRequest) -> CaseView:
    """Return what the fixtures of a golden item may see of its case.

    Raises:
        CtxfpError: the test has no case.
    """
    case: GoldenCase | None = getattr(request.node, "case", None)
    if case is None:
        message = (
            "ctx_case is there in golden files and in tests with a marker such as"
            ' @pytest.mark.ctx_golden("golden/*.yaml"): add the marker'
        )
        raise CtxfpError(message)
    return case.view
