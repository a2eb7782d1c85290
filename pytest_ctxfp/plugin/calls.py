"""The calls that a test makes itself, by ``ctx_trace.call`` or a helper with ``cached_call``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_ctxfp._cached_call import RUNNING_TESTS
from pytest_ctxfp._calls import CallResolver
from pytest_ctxfp._chain import KNOWS_TEST, Call
from pytest_ctxfp._errors import AgentError, CacheMiss, CtxfpError, first_line
from pytest_ctxfp._limits import LimitReached
from pytest_ctxfp._loop import run_without_loop
from pytest_ctxfp._values import to_json_value
from pytest_ctxfp.plugin.case_runs import CaseRun, model_named_for
from pytest_ctxfp.plugin.item_records import add_record
from pytest_ctxfp.plugin.items import command_to_ask, fixtures_of
from pytest_ctxfp.plugin.runner import get_runner
from pytest_ctxfp.plugin.session import ensure_session
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable

    from pytest_ctxfp._cached_call import HelperCall
    from pytest_ctxfp._model import JSONValue

    Settle = Callable[[object], Awaitable[object]]

CALLS = pytest.StashKey["ItemCalls"]()


class ItemCalls:
    """Answers a test's calls, and notes them in its records.

    Args:
        item: the test.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._resolver: CallResolver | None = None

    def start(self) -> None:
        """Begin an attempt: its conversation starts anew."""
        self._resolver = None

    def call_helper(self, call: HelperCall) -> JSONValue:
        """Return the answer to a call of a sync helper, from whatever thread."""
        return run_without_loop(self.resolve(self._complete(call), _settle_plain))

    async def await_helper(self, call: HelperCall) -> JSONValue:
        """Return the answer to a call of an async helper."""
        return await self.resolve(self._complete(call), _settle_awaiting)

    async def resolve(self, call: Call, settle: Settle) -> JSONValue:
        """Return the answer to a call; without one that may be had, skip or fail as the run is told to."""
        ensure_session(self._item.config)
        if self._resolver is None:
            self._resolver = CallResolver(
                get_runner(self._item.config), lambda record: add_record(self._item, record)
            )
        try:
            return await self._resolver.resolve(call, settle)
        except CacheMiss as miss:
            self._refuse(miss)
        except LimitReached as limit:
            pytest.skip(first_line(limit))

    def _refuse(self, miss: CacheMiss) -> NoReturn:
        if get_settings(self._item.config).on_miss == "skip":
            pytest.skip(miss.explanation)
        command = command_to_ask(self._item)
        raise CacheMiss(miss.key, f"{miss.explanation}\nask and store it: {command}", miss.corrupt) from None

    def parameters_behind(self, names: Iterable[str]) -> dict[str, JSONValue]:
        """Return the test's own parameters that fixtures of these names are made from.

        Raises:
            CtxfpError: a parameter that JSON can't hold, so that no key can tell it from another.
        """
        parameters: dict[str, object] = self._item.callspec.params if hasattr(self._item, "callspec") else {}
        known = getattr(self._item, "fixturenames", ())
        reached = {
            parameter
            for name in names
            if parameters and name in known
            for parameter in {name, *fixtures_of(self._item, name)}
            if parameter in parameters
        }
        return {name: _to_json(name, parameters[name]) for name in sorted(reached)}

    def _complete(self, call: HelperCall) -> Call:
        parameters = self.parameters_behind(call.ignored)
        return Call(
            id=call.name,
            run=call.run,
            question=call.question,
            params={**call.params, **({"parameters": parameters} if parameters else {})},
            of_agent=call.agent,
            chained=call.chain,
            model=model_named_for(self._item) or get_settings(self._item.config).model,
        )


class CallHooks:
    """Makes the running test known to its helpers, in a run with the cache on."""

    def __init__(self) -> None:
        KNOWS_TEST.set(True)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let helpers find the test, in whatever thread they are called."""
        calls = calls_of(item)
        RUNNING_TESTS.append(calls)
        try:
            return (yield)
        finally:
            RUNNING_TESTS.remove(calls)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin anew, also where the test is run again."""
        calls_of(item).start()


def calls_of(item: pytest.Item) -> ItemCalls:
    """Return what answers a test's calls."""
    if CALLS not in item.stash:
        item.stash[CALLS] = ItemCalls(item)
    return item.stash[CALLS]


def _to_json(name: str, value: object) -> JSONValue:
    if isinstance(value, CaseRun):
        return value.case.view.to_dict()
    try:
        return to_json_value(value)
    except AgentError as error:
        message = (
            f"the call depends on the parameter {name}, which can't be in the key ({first_line(error)}):"
            f" parametrise with a text or number that the value is made from"
        )
        raise CtxfpError(message) from None


async def _settle_plain(returned: object) -> object:
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        message = "a helper with cached_call returned an awaitable: define it with 'async def'"
        raise CtxfpError(message)
    return returned


async def _settle_awaiting(returned: object) -> object:
    return await returned if inspect.isawaitable(returned) else returned
