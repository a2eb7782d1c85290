"""All texts of a JSON value, and texts that must stay apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_ctxfp._model import JSONValue


def map_texts(value: JSONValue, change: Callable[[str], str]) -> JSONValue:
    """Return a JSON value with every text in it, keys too, passed through a function.

    Keys that become equal are numbered, so that no entry is lost.

    Raises:
        ValueError: a value nested too deep.
    """
    try:
        return _map_texts(value, change)
    except RecursionError:
        message = "a value is nested too deep"
        raise ValueError(message) from None


def _map_texts(value: JSONValue, change: Callable[[str], str]) -> JSONValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        keys = unique_names(map(change, value))
        return {key: _map_texts(inner, change) for key, inner in zip(keys, value.values(), strict=True)}
    if isinstance(value, (list, tuple)):
        return [_map_texts(inner, change) for inner in value]
    return value


def unique_names(names: Iterable[str]) -> list[str]:
    """Return names in their order, repeated ones as ``name#2``, ``name#3``: the first that is free."""
    given = list(names)
    if len(set(given)) == len(given):
        return given
    taken: set[str] = set(given)
    counts: dict[str, int] = {}
    return [_next_free(name, taken, counts) for name in given]


def _next_free(name: str, taken: set[str], counts: dict[str, int]) -> str:
    number = counts[name] = counts.get(name, 0) + 1
    if number == 1:
        return name
    while f"{name}#{number}" in taken:
        number += 1
    counts[name] = number
    taken.add(f"{name}#{number}")
    return f"{name}#{number}"
