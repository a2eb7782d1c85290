"""JSON answers against what is expected of them: ``exact`` and ``subset``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ctxfp._cells import KeyReader
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._mismatch import explain_cells
from pytest_ctxfp._model import Comparison
from pytest_ctxfp._tolerance import cells_match, read_tolerance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._tolerance import Tolerance

JSON_MODES = ("exact", "subset")

_MAX_SHOWN = 80
_MAX_LISTED = 3


def match_json(case: GoldenCase, answer: JSONValue) -> Comparison:
    """Score a JSON value by its case's match mode; one of the modes, no scorer.

    Numbers are compared as cells of tables are, within the tolerance; all other leaves exactly. Lists must
    be of equal length and in order. Under ``subset`` objects may have further keys.

    Raises:
        CtxfpError: a tolerance that JSON has not.
    """
    try:
        tolerance = read_tolerance(case.tolerance or None, ()).general
    except ValueError as error:
        message = f"case {case.id!r}: {error}"
        raise CtxfpError(message) from error
    matcher = _Matcher(tolerance, is_subset=case.match == "subset")
    faults = matcher.differences(case.expected, answer, path="$")  # type: ignore[arg-type] # no table here
    found = [fault for fault, _ in zip(faults, range(_MAX_LISTED + 1), strict=False)]
    if not found:
        return Comparison(passed=True, reason="the value is as expected")
    more = "; and more" if len(found) > _MAX_LISTED else ""
    return Comparison(passed=False, reason="; ".join(found[:_MAX_LISTED]) + more)


class _Matcher:
    """Walks two values side by side."""

    def __init__(self, tolerance: Tolerance, *, is_subset: bool) -> None:
        self._tolerance = tolerance
        self._is_subset = is_subset
        self._reader = KeyReader()

    def differences(self, expected: JSONValue, actual: JSONValue, path: str) -> Iterator[str]:
        """Yield what differs, in the order of what is expected: ``$.n: expected 3, actual 4 (off by 1)``."""
        if isinstance(expected, dict) and isinstance(actual, dict):
            yield from self._of_objects(expected, actual, path)
        elif isinstance(expected, list) and isinstance(actual, list):
            yield from self._of_lists(expected, actual, path)
        elif not self._is_equal(expected, actual):
            yield f"{path}: {self._explain(expected, actual)}"

    def _of_objects(
        self, expected: dict[str, JSONValue], actual: dict[str, JSONValue], path: str
    ) -> Iterator[str]:
        for key, value in expected.items():
            inner = f"{path}{_step(key)}"
            if key in actual:
                yield from self.differences(value, actual[key], inner)
            else:
                has = ", ".join(map(_spell, list(actual)[:5])) or "none"
                yield f"{inner} is missing (keys there: {has})"
        if not self._is_subset:
            for key, value in actual.items():
                if key not in expected:
                    hint = "match: subset allows it"
                    yield f"{path}{_step(key)} is not expected: {_spell(value)}; {hint}"

    def _of_lists(self, expected: list[JSONValue], actual: list[JSONValue], path: str) -> Iterator[str]:
        if len(expected) != len(actual):
            yield f"{path}: expected a list of {len(expected):,}, actual {len(actual):,}: {_spell(actual)}"
        for index, (wanted, given) in enumerate(zip(expected, actual, strict=False)):
            yield from self.differences(wanted, given, f"{path}[{index}]")

    def _is_equal(self, expected: JSONValue, actual: JSONValue) -> bool:
        if _is_number(expected):
            is_cell = _is_number(actual) or isinstance(actual, str)
            return is_cell and cells_match(self._reader, expected, actual, self._tolerance)
        return type(expected) is type(actual) and expected == actual

    def _explain(self, expected: JSONValue, actual: JSONValue) -> str:
        if _is_number(expected) and (_is_number(actual) or isinstance(actual, str)):
            return explain_cells(self._reader, expected, actual, self._tolerance)
        return f"expected {_spell(expected)}, actual {_spell(actual)}"


def _is_number(value: JSONValue) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{_spell(key)}]"


def _spell(value: JSONValue) -> str:
    return escape_line(json.dumps(value, ensure_ascii=False), limit=_MAX_SHOWN)
