"""What a decorated helper's key is made of, and the texts that a function is made with."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ctxfp import CtxfpError, cached_call
from pytest_ctxfp._cached_call import RUNNING_TESTS
from pytest_ctxfp._reads import free_names, read_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._cached_call import HelperCall
    from pytest_ctxfp._model import JSONValue

MODULE_TEXT = "of the module"


class FakeTest:
    """A test that answers every call with what it consists of."""

    def call_helper(self, call: HelperCall) -> Any:
        """Return the call itself."""
        return call

    async def await_helper(self, call: HelperCall) -> JSONValue:
        """Not used here."""
        raise NotImplementedError


@pytest.fixture
def running() -> Iterator[None]:
    """A test runs, with the cache on."""
    test = FakeTest()
    RUNNING_TESTS.append(test)
    yield
    RUNNING_TESTS.remove(test)


@pytest.mark.usefixtures("running")
def test_arguments_are_bound_by_name_with_their_defaults() -> None:
    """However an argument is passed, and whether it is or not, the same call has the same key."""

    @cached_call(ignore=["client"], key={"v": 1})
    def ask(client: object, question: str, n: int = 3, *more: int, **rest: int) -> str:
        return f"{client}{question}{n}{more}{rest}"

    first: Any = ask(object(), "q")
    second: Any = ask(client=object(), question="q", n=3)
    assert first.question == "q"
    assert first.params == second.params
    assert first.params["arguments"] == {"n": 3, "more": [], "rest": {}}
    assert first.params["key"] == {"v": 1}


@pytest.mark.usefixtures("running")
def test_key_may_be_made_of_what_is_ignored() -> None:
    """A function given as ``key`` is called with the helper's arguments."""

    @cached_call(ignore=["client"], key=lambda client: {"model": client["model"]})
    def ask(client: dict[str, str]) -> str:
        return client["model"]

    call: Any = ask({"model": "m"})
    assert call.params["key"] == {"model": "m"}


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("bad", [object(), {1: 2}, b"\xff", 10**5000, {"a": {"b": object()}}], ids="ABCDE")
def test_argument_json_cant_hold_is_an_error(bad: object) -> None:
    """Nothing is put in the key by its ``str()``."""

    @cached_call
    def ask(thing: object) -> object:
        return thing

    with pytest.raises(CtxfpError, match=r"argument 'thing' of .*ask can't be in the key"):
        ask(bad)


def test_unknown_name_to_ignore_is_refused_at_once() -> None:
    """A misspelt name would leave the real argument in the key."""
    with pytest.raises(CtxfpError, match="names 'klient', which is no argument"):

        @cached_call(ignore=["klient"])
        def ask(client: object) -> object:
            return client


def test_decorated_helper_keeps_its_face() -> None:
    """Name, docstring, signature and being async stay those of the helper; outside of a test it is itself."""

    @cached_call
    def ask(question: str) -> tuple[str, int]:
        """Ask."""
        return question, 1

    @cached_call()
    async def later(question: str) -> str:
        return question

    assert (ask.__name__, ask.__doc__) == ("ask", "Ask.")
    assert list(inspect.signature(ask).parameters) == ["question"]
    assert ask("x") == ("x", 1)
    assert inspect.iscoroutinefunction(later)


def test_texts_of_a_function_are_found_wherever_they_stand() -> None:
    """Constants, closure, defaults, the module's texts and a partial's arguments; no docstring."""
    around, counter = "of the closure", [1]

    def ask(prompt: str = "of the default", *, tone: str = "kind") -> str:
        """Of the docstring."""
        counter.append(2)
        return f"{prompt}{tone}{around}{MODULE_TEXT}" + "of the code"

    texts = {pair[1] for pair in read_texts(functools.partial(ask, "of the partial"))}  # type: ignore[index, union-attr]
    assert texts >= {
        "of the closure",
        "of the default",
        "kind",
        "of the code",
        "of the module",
        "of the partial",
    }
    assert "Of the docstring." not in texts
    assert free_names(ask) == ("around", "counter")
    before = read_texts(ask)
    ask()
    assert read_texts(ask) == before
