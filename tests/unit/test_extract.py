"""Finding the answer in a text."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ctxfp._extract import extract_result, has_shape, read_verdict_field
from pytest_ctxfp._model import ResultKind
from pytest_ctxfp._strict_json import MAX_NESTING, find_objects

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

_DATA = Path(__file__).parent.parent / "data" / "extract.jsonl"
_VECTORS = [json.loads(line) for line in _DATA.read_text(encoding="utf-8").splitlines()]
_SIZE = 2**18


def _table(cell: object) -> str:
    return json.dumps({"rows": [[cell]]})


def _first_cell(text: str) -> JSONValue:
    found: Any = extract_result(text)
    return None if found is None else found["rows"][0][0]


@pytest.mark.parametrize("kind", ["table", "verdict"])
@pytest.mark.parametrize("vector", _VECTORS, ids=[vector["name"] for vector in _VECTORS])
def test_vectors(vector: dict[str, Any], kind: str) -> None:
    """Table and verdict are found in a text as the vectors say."""
    assert extract_result(vector["input"]["text"], kind) == vector["expected"][kind]


def test_kind_as_enum_or_text() -> None:
    """A kind is taken as its value or as the enum; a text is its own answer; no other kind is known."""
    assert extract_result(_table(1), ResultKind.TABLE) == {"rows": [[1]]}
    assert extract_result("", "text") == ""
    assert extract_result(_table(1), "json") == {"rows": [[1]]}
    with pytest.raises(ValueError, match="tabel"):
        extract_result("", "tabel")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("```\n{1}\n```\n{0}", 1),
        ("{0}\n```\n{1}\n```", 1),
        ("```\n{0}\n```\n~~~\n{1}\n~~~\n{0}", 1),
        ("```\n{0}\n{1}\n```\n", 1),
        ("```\r\n{1}\r\n```\r\n{0}", 1),
        ("```json\n{1}\n```  \t\n{0}", 1),
        ("````\n```\n{1}\n```\n{1}\n````\n{0}", 1),
        ("```\n~~~\n{1}\n```\n{0}", 1),
        ("```\n``` no\n{1}\n```\n{0}", 1),
        ("   ```\n{1}\n  ```\n{0}", 1),
        ("```\n{0}\n    ```\n{1}", 1),
        ("    ```\n{0}\n    ```\n{1}", 1),
        ("\t```\n{0}\n\t```\n{1}", 1),
        ("``\n{0}\n``\n{1}", 1),
        ("```a`b\n{0}\n```\n{1}", 1),
        ("~~~a`b\n{1}\n~~~\n{0}", 1),
        ("``` {0}\n{1}\n```\n{0}", 1),
        ("```{1}```", 1),
        ("```sql\nselect 1\n```\n{0} {1}", 1),
        ("x```\n{0}\n{1}", 1),
        ("a\u2028```\n{0}\n{1}", 1),
    ],
)
def test_fences(text: str, cell: int) -> None:
    """The last table in a fenced block wins, else the last one; fences are CommonMark's."""
    assert _first_cell(text.replace("{0}", _table(0)).replace("{1}", _table(1))) == cell


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ('{"a": ' + _table(0) + "} " + _table(1) + ' {"b": ' + _table(0) + "}", 1),
        ('{"a": "' + _table(1) + '"', 1),
        ("{" + _table(1) + "}", 1),
        ("[" + _table(1) + "]", 1),
        ('{"a":1,' + _table(1) + "}", 1),
        ("{'a': " + _table(1) + "}", 1),
        (_table(1) + ' {"rows": [["', 1),
        (_table(1) + '{"rows": [[NaN]]}', 1),
        ('{"x {"rows":[[1]]} y": 2}', 1),
    ],
)
def test_outermost(text: str, cell: int) -> None:
    """Only outermost objects count, and a brace that begins none hides nothing behind it."""
    assert _first_cell(text) == cell


@pytest.mark.parametrize(
    ("spelled", "cell"),
    [
        ("9007199254740993", 2**53 + 1),
        ("1" + "0" * 308, 10**308),
        ("-" + "1" * 309, -int("1" * 309)),
        ("1e308", 1e308),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("1e-400", 0.0),
        ("1" + "0" * 400 + "e-200", 1e200),
        ("0e999999999", 0.0),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\uD83D\\uDE00"', "😀"),
        ('"\x7f\x85"', "\x7f\x85"),
        ("[" * 125 + "]" * 125, json.loads("[" * 125 + "]" * 125)),
    ],
)
def test_read(spelled: str, cell: JSONValue) -> None:
    """What a strict decoder takes is taken; integers keep all their digits."""
    assert _first_cell(f'{{"rows":[[{spelled}]]}}') == cell


@pytest.mark.parametrize(
    "spelled",
    [
        "Infinity",
        "-Infinity",
        "1e309",
        "-1e309",
        "2" + "0" * 308,
        "9" * 5000,
        "1e999999999999",
        "01",
        "-",
        "1.",
        "1e",
        "\u0661",
        "True",
        "nul",
        "1_0",
        "0x1",
        '"\\udc00"',
        '"\\ud83dx"',
        '"\\ud83d\\u0041"',
        '"\\ud83d\ude00"',
        '"\ud83d\\ude00"',
        '"\ud83d"',
        '"\\u00g0"',
        '"\\u\uff10\uff10\uff10\uff10"',
        '"\x00"',
        '"\\',
        "1,",
        ",1",
        "1 2",
        '{"a":1,}',
        '{"a" 1}',
        "{a:1}",
        "{1:1}",
        "[1}",
        "[" * 126 + "]" * 126,
        "/**/1",
    ],
)
def test_refused(spelled: str) -> None:
    """What a strict decoder refuses makes the object none."""
    assert extract_result(f'{{"rows":[[{spelled}]]}}') is None


def test_nesting_bound() -> None:
    """128 levels are read; of 129 the outermost falls away and the next one counts."""
    deep = "[" * (MAX_NESTING - 1) + "]" * (MAX_NESTING - 1)
    assert list(find_objects(f'{{"a":{deep}}}')) == [(0, len(deep) + 6)]
    assert list(find_objects(f'{{"b":{{"a":{deep}}}}}')) == [(5, len(deep) + 11)]


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [
        ({"rows": []}, "table", True),
        ({"rows": [], "columns": []}, "table", True),
        ({"rows": [], "columns": [1]}, "table", False),
        ({"rows": ()}, "table", False),
        ([], "table", False),
        ({"verdict": None}, "verdict", True),
        ({"blocks": None}, "verdict", False),
        ("verdict", "verdict", False),
        ("", "text", True),
        (1, "text", False),
        (None, "json", True),
    ],
)
def test_shape(value: JSONValue, kind: str, fits: bool) -> None:
    """A value has the shape of its kind or it hasn't."""
    assert has_shape(value, ResultKind(kind)) is fits


@pytest.mark.parametrize(
    ("envelope", "fresh", "severity"),
    [
        ({"verdict": {"fresh": False, "severity": "warn"}}, False, "warn"),
        ({"verdict": {"fresh": "true"}}, None, None),
        ({"verdict": {"fresh": 1, "severity": 3}}, None, None),
        ({"verdict": "fresh"}, None, None),
        ({"blocks": [{"type": "text", "severity": "a"}, {"type": "status", "severity": "b"}]}, None, "b"),
        ({"blocks": [{"type": "status"}, {"type": "status", "severity": "b"}]}, None, None),
        ({"blocks": [{"type": "status", "severity": 3}], "verdict": {"severity": "c"}}, None, "c"),
        ({"blocks": [{"type": "status", "severity": ""}], "verdict": {"severity": "c"}}, None, ""),
        ({"blocks": [None, 1]}, None, None),
        ({"blocks": "status"}, None, None),
        ({"fresh": True, "severity": "a"}, None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_verdict_fields(envelope: JSONValue, fresh: bool | None, severity: str | None) -> None:
    """Fresh is a boolean of the verdict; severity a text of the first status block, else of the verdict."""
    assert read_verdict_field(envelope, "fresh") is fresh
    assert read_verdict_field(envelope, "severity") == severity


def test_unknown_verdict_field() -> None:
    """A verdict field that does not exist is a ValueError."""
    with pytest.raises(ValueError, match="'age' is no verdict field"):
        read_verdict_field({}, "age")


@pytest.mark.parametrize(
    "piece",
    [
        "{ ",
        "{}",
        "{\n",
        "{{",
        '{"',
        '{"a":',
        '{"a":"',
        '{"a":[',
        '{"a":{},',
        '{"a":1}',
        '{"\\n',
        '":{"',
        "[",
        '"',
        "`",
        "```\n",
        "```x`\n",
        "9",
        "\\n",
        '{"a":NaN},',
        '{"a":["\\ud800",',
        '{"a":"\\ud800"},',
        '{"a":1e999},',
    ],
)
@pytest.mark.parametrize("head", ["", '{"a":"', '{"a":', '{"r":["{",":["'])
def test_linear(head: str, piece: str) -> None:
    """256 KiB of anything are read in seconds: a second look at every brace would take minutes."""
    text = head + piece * (_SIZE // len(piece))
    began = time.perf_counter()
    assert extract_result(text) is None
    assert time.perf_counter() - began < 5
