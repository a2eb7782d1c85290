"""Extraction finds what a naive scan finds: a strict decoder tried at each brace in turn."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ctxfp._extract import extract_result
from pytest_ctxfp._strict_json import MAX_NESTING, find_objects

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

_PIECES = [
    *'{}[]",:\\ a1-e.0\n\t\x00\u00a0\ud800\udc00',
    "true",
    "null",
    "NaN",
    "-Infinity",
    "1e400",
    "-1.5E+3",
    "9" * 310,
    "\\u0041",
    "\\ud83d",
    "\\ude00",
    "\\n",
    '\\"',
    '{"',
    '":',
    '","',
    '"a":',
    '{"a":',
    '":{"',
    '{"a":{}}',
    '{"b":"{',
    '["{",":[",',
]
_texts = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)
_nested = st.recursive(
    st.sampled_from(['"x"', "1", "null", '"{"', '"}{\\""', "1e999", '"\\ud800"', "{}", "[]"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "[" + ",".join(parts) + "]"),
        st.lists(inner, max_size=3).map(
            lambda parts: "{" + ", ".join(f'"{place}" : {part}' for place, part in enumerate(parts)) + "}"
        ),
    ),
    max_leaves=12,
)


def _refuse(text: str) -> None:
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text)
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, parse_int=_whole)


def _check(value: JSONValue, depth: int = 1) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, (list, dict)):
        if depth > MAX_NESTING:
            _refuse("too deep")
        for inner in value if isinstance(value, list) else [*value, *value.values()]:
            _check(inner, depth + 1)


def _scan_naively(text: str) -> list[tuple[int, int]]:
    found, position = [], text.find("{")
    while position >= 0:
        try:
            value, end = _DECODER.raw_decode(text, position)
            _check(value)
        except ValueError:
            end = position + 1
        else:
            if value:
                found.append((position, end))
        position = text.find("{", end)
    return found


@given(_texts)
@example('{"a":"{"b":1}')
@example('{"x {"a":1} y": 2}')
@example('{"r":["{",":["}]}')
@example('{"' + 30 * "\\n" + '":{"' + 30 * "\\n")
def test_any_text(text: str) -> None:
    """The objects found are those of the naive scan, whatever the text."""
    assert list(find_objects(text)) == _scan_naively(text)


@given(st.lists(st.one_of(_nested, st.sampled_from(_PIECES)), max_size=6).map("".join))
def test_well_formed_pieces_in_noise(text: str) -> None:
    """The objects found are those of the naive scan where most of the text is JSON."""
    assert list(find_objects(text)) == _scan_naively(text)


@given(st.data(), _nested)
def test_damaged_json(data: st.DataObject, text: str) -> None:
    """The objects found are those of the naive scan after one piece was put into JSON."""
    text = '{"k": ' + text + "}"
    place = data.draw(st.integers(0, len(text)))
    text = text[:place] + data.draw(st.sampled_from(_PIECES)) + text[place:]
    assert list(find_objects(text)) == _scan_naively(text)


@given(st.integers(1, 300), st.integers(0, 300), st.sampled_from(['{"a":', "[", '{"a":[']))
def test_nesting_around_the_bound(n_open: int, n_close: int, opening: str) -> None:
    """Of objects nested too deep the outermost within the bound is found, as by the naive scan."""
    closing = {'{"a":': "}", "[": "]", '{"a":[': "]}"}[opening]
    text = '{"k":' + opening * n_open + '{"z":1}' + closing * n_close + "}"
    assert list(find_objects(text)) == _scan_naively(text)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_a_written_table_is_read_back(cell: JSONValue) -> None:
    """A table survives being written into prose, fenced or not."""
    table = {"columns": ["c"], "rows": [[cell]]}
    for text in (f"So: {json.dumps(table)}.", f"So {{x}}:\n```json\n{json.dumps(table, indent=1)}\n```\n"):
        assert extract_result(text) == table
