"""The texts that a function is made with: a question in a lambda decides its answer as an argument does."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ctxfp._model import JSONValue


def read_texts(function: Callable[..., object]) -> JSONValue:
    """Return the texts in a function's code, closure, defaults and globals, by where they stand.

    Texts only: numbers and lists around a function often count what it does, and would change with each run.
    """
    texts = sorted(set(_texts(function)))
    return [list(pair) for pair in texts]


def free_names(function: object) -> tuple[str, ...]:
    """Return the names that a function takes from the function around it."""
    return function.__code__.co_freevars if isinstance(function, FunctionType) else ()


def _texts(function: object) -> Iterator[tuple[str, str]]:
    while isinstance(function, functools.partial):
        yield from _if_texts({str(index): value for index, value in enumerate(function.args)})
        yield from _if_texts(function.keywords)
        function = function.func
    if not isinstance(function, FunctionType):
        return
    for constant in function.__code__.co_consts:
        if constant != function.__doc__:
            yield from _if_texts({"": constant})
    yield from _if_texts(dict(_closure(function)))
    yield from _if_texts({f"default {i}": value for i, value in enumerate(function.__defaults__ or ())})
    yield from _if_texts(function.__kwdefaults__ or {})
    yield from _if_texts({name: function.__globals__.get(name) for name in function.__code__.co_names})


def _closure(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _if_texts(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for place, value in values.items():
        if isinstance(value, str):
            yield place, str.__str__(value)
