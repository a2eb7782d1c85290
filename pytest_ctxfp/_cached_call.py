"""``cached_call``: one decorator on one helper lets an existing suite use the trace cache."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, overload

from pytest_ctxfp._errors import AgentError, CtxfpError, first_line
from pytest_ctxfp._hashing import git_text_sha
from pytest_ctxfp._model import AgentResult
from pytest_ctxfp._values import to_json_value

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from pytest_ctxfp._model import JSONValue

    Key = Mapping[str, object] | Callable[..., Mapping[str, object]]
    Cost = float | Callable[[object], float | None]

F = TypeVar("F", bound="Callable[..., object]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperCall:
    """One call of a decorated helper.

    Attributes:
        name: of the helper.
        run: makes the call.
        question: the first text among the arguments.
        params: all else that decides the answer.
        ignored: names of the arguments that are not in the key.
        agent: keyed on the agent's files.
        chain: keyed on the calls before it.
    """

    name: str
    run: Callable[[], object]
    question: str
    params: Mapping[str, JSONValue]
    ignored: frozenset[str]
    agent: bool
    chain: bool


class RunningTest(Protocol):
    """A test whose helper calls are cached."""

    def call_helper(self, call: HelperCall) -> JSONValue:
        """Return the answer, stored or new."""

    def await_helper(self, call: HelperCall) -> Coroutine[object, object, JSONValue]:
        """Return the answer, stored or new, of an async helper."""


RUNNING_TESTS: list[RunningTest] = []
"""The tests that run now, the innermost last: of the process, since a pool's threads see no context."""


@overload
def cached_call(function: F, /) -> F: ...


@overload
def cached_call(
    *,
    ignore: Iterable[str] = (),
    key: Key | None = None,
    agent: bool = True,
    chain: bool = True,
    cost: Cost | None = None,
    name: str | None = None,
) -> Callable[[F], F]: ...


def cached_call(
    function: F | None = None,
    /,
    *,
    ignore: Iterable[str] = (),
    key: Key | None = None,
    agent: bool = True,
    chain: bool = True,
    cost: Cost | None = None,
    name: str | None = None,
) -> F | Callable[[F], F]:
    """Answer the calls of a helper from the trace cache, in tests of a run with the cache on.

    Anywhere else the helper is called as it is. What it returns is what JSON gives back, on a hit and on a
    miss alike: tuples become lists. The key holds the helper's own code and all its arguments.

    Args:
        function: the helper, sync or async, where the decorator is used without arguments.
        ignore: names of arguments that can't be in the key: clients, connections, ``self``.
        key: what else decides the answer: a mapping, or a function of the helper's arguments that gives one.
        agent: False for a helper that doesn't use the agent's files, such as a retrieval.
        chain: False for a helper that remembers nothing: its calls stand alone, not in a conversation.
        cost: USD of a call, or a function from what the helper returned to that; unknown where None.
        name: what keys and summaries call the helper: its module and name where None.

    Raises:
        CtxfpError: a name in ``ignore`` that is no argument; when called, an argument JSON can't hold.
    """

    def decorate(helper: F) -> F:
        unknown = sorted({*ignore} - {*inspect.signature(helper).parameters})
        if unknown:
            message = f"cached_call(ignore=...) names {unknown[0]!r}, which is no argument of {helper!r}"
            raise CtxfpError(message)
        wanted = _Helper(
            function=helper,
            ignored=frozenset(ignore),
            key=key,
            agent=agent,
            chain=chain,
            cost=cost,
            name=name or f"{helper.__module__}.{helper.__qualname__}",
        )
        return cast("F", _wrap_async(wanted) if inspect.iscoroutinefunction(helper) else _wrap(wanted))

    return decorate if function is None else decorate(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Helper:
    function: Callable[..., object]
    ignored: frozenset[str]
    key: Key | None
    agent: bool
    chain: bool
    cost: Cost | None
    name: str

    def bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> HelperCall:
        """Return a call with its key parts.

        Raises:
            CtxfpError: an argument, or something of ``key``, that JSON can't hold.
            TypeError: arguments that the helper doesn't take.
        """
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = {
            name: self._to_json(name, value)
            for name, value in bound.arguments.items()
            if name not in self.ignored
        }
        asked = next((name for name, value in arguments.items() if isinstance(value, str)), None)
        question = "" if asked is None else str(arguments.pop(asked))
        params: dict[str, JSONValue] = {"arguments": arguments, "helper": self._code_sha()}
        extra = self.key(*args, **kwargs) if callable(self.key) else self.key
        if extra:
            params["key"] = self._to_json("key", dict(extra))
        return HelperCall(
            name=self.name,
            run=self._runner(args, kwargs),
            question=question,
            params=params,
            ignored=self.ignored,
            agent=self.agent,
            chain=self.chain,
        )

    def _to_json(self, name: str, value: object) -> JSONValue:
        try:
            return to_json_value(value)
        except AgentError as error:
            message = (
                f"argument {name!r} of {self.name} can't be in the key: {first_line(error)};"
                f" leave it out with @cached_call(ignore=[{name!r}]), and put what it decides in key="
            )
            raise CtxfpError(message) from None

    def _code_sha(self) -> str | None:
        try:
            return git_text_sha(inspect.getsource(self.function))
        except (OSError, TypeError):
            return None

    def _runner(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Callable[[], object]:
        def run() -> object:
            returned = self.function(*args, **kwargs)
            return (
                self._with_cost_later(returned) if inspect.isawaitable(returned) else self._priced(returned)
            )

        return run

    async def _with_cost_later(self, returned: object) -> object:
        return self._priced(await returned)  # type: ignore[misc] # it is awaitable

    def _priced(self, returned: object) -> object:
        if isinstance(returned, AgentResult) or self.cost is None:
            return returned
        cost = self.cost(returned) if callable(self.cost) else self.cost
        return AgentResult(returned, cost=cost)


def _wrap(helper: _Helper) -> Callable[..., object]:
    @functools.wraps(helper.function)
    def call(*args: object, **kwargs: object) -> object:
        test = RUNNING_TESTS[-1] if RUNNING_TESTS else None
        if test is None:
            return helper.function(*args, **kwargs)
        return test.call_helper(helper.bind(args, kwargs))

    return call


def _wrap_async(helper: _Helper) -> Callable[..., object]:
    @functools.wraps(helper.function)
    async def call(*args: object, **kwargs: object) -> object:
        test = RUNNING_TESTS[-1] if RUNNING_TESTS else None
        if test is None:
            return await cast("Coroutine[object, object, object]", helper.function(*args, **kwargs))
        return await test.await_helper(helper.bind(args, kwargs))

    return call
