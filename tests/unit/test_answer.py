"""What an agent returned becomes something that can be stored."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock, Mock

import pytest

from pytest_ctxfp._answer import Answer, re_extract, take_answer, to_json_value
from pytest_ctxfp._errors import AgentError
from pytest_ctxfp._model import AgentResult, ResultKind
from pytest_ctxfp._strict_json import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._model import JSONValue

TABLE: dict[str, JSONValue] = {"columns": ["n"], "rows": [[42]]}
ENVELOPE: dict[str, JSONValue] = {"verdict": {"fresh": True}}


class Colour(str, Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


def _nest(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_text_is_searched() -> None:
    """Text is kept as it is and its answer is extracted."""
    text = f"So:\n```json\n{json.dumps(TABLE)}\n```"
    assert take_answer(text, "table") == Answer(text, TABLE, "ok")
    assert take_answer(text.encode(), ResultKind.TABLE) == Answer(text, TABLE, "ok")
    assert take_answer(bytearray(text.encode()), "table") == Answer(text, TABLE, "ok")


@pytest.mark.parametrize("text", ["", " ", "I don't know.", "42", '{"columns": ["n"]}'])
def test_prose_is_unparseable(text: str) -> None:
    """Text without a table has no value, and is kept."""
    assert take_answer(text, "table") == Answer(text, None, "unparseable")


@pytest.mark.parametrize("text", ["", "yes", json.dumps(TABLE)])
def test_text_kind(text: str) -> None:
    """For a text case the text is the answer."""
    assert take_answer(text, "text") == Answer(text, text, "ok")


def test_other_values_are_stored_as_json() -> None:
    """A value of the wanted shape is the answer, and its JSON the raw text."""
    assert take_answer(TABLE, "table") == Answer('{"columns": ["n"], "rows": [[42]]}', TABLE, "ok")
    assert take_answer(ENVELOPE, "verdict").value == ENVELOPE
    assert take_answer([1, None], "json") == Answer("[1, null]", [1, None], "ok")
    assert take_answer(42, "text") == Answer("42", "42", "ok")
    assert take_answer(MappingProxyType({"rows": ((1,),)}), "table").value == {"rows": [[1]]}


@pytest.mark.parametrize("value", [42, [], {}, {"rows": [1]}, {"a": TABLE}, {"rows": [[1]], "columns": [1]}])
def test_other_shapes_are_unparseable(value: object) -> None:
    """A JSON value that is no table has no value, and its JSON is kept."""
    answer = take_answer(value, "table")
    assert (answer.value, answer.status) == (None, "unparseable")
    assert json.loads(answer.raw) == value


@pytest.mark.parametrize(
    "returned", [TABLE, [TABLE], [{"a": 1}, TABLE], {"a": TABLE}, 42, "x", "", {"rows": []}]
)
@pytest.mark.parametrize("kind", ["table", "verdict", "text"])
def test_a_reload_finds_the_same(returned: object, kind: str) -> None:
    """Extracting again from the stored text gives what was found at first."""
    answer = take_answer(returned, kind)
    assert re_extract(answer.raw, kind) == answer


def test_agent_result() -> None:
    """The value inside of an AgentResult is the answer; one inside another is refused."""
    assert take_answer(AgentResult(TABLE, cost=0.1), "table").value == TABLE
    with pytest.raises(AgentError, match="AgentResult"):
        take_answer(AgentResult(AgentResult(TABLE)), "table")


@pytest.mark.parametrize("returned", [None, AgentResult(None)])
def test_nothing(returned: object) -> None:
    """An agent that returned nothing gave no answer."""
    with pytest.raises(AgentError, match="the agent returned nothing: return text, a mapping"):
        take_answer(returned, "json")


def test_verdict_field() -> None:
    """An envelope without the field that the case reads is unparseable, also on a reload."""
    assert take_answer(ENVELOPE, "verdict", verdict_field="fresh").status == "ok"
    answer = take_answer(ENVELOPE, "verdict", verdict_field="severity")
    assert answer == Answer(json.dumps(ENVELOPE), None, "unparseable")
    assert re_extract(answer.raw, "verdict", verdict_field="severity") == answer
    assert re_extract(answer.raw, "verdict").value == ENVELOPE
    assert take_answer(TABLE, "table", verdict_field="severity").status == "ok"


def test_re_extract_without_text() -> None:
    """A trace that kept no text stays unparseable."""
    assert re_extract(None, "table") == Answer("", None, "unparseable")


def test_unknown_kind() -> None:
    """An unknown kind is a ValueError."""
    with pytest.raises(ValueError, match="tabel"):
        take_answer("x", "tabel")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        (True, True),
        (2**63, 2**63),
        (-0.0, -0.0),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Text("text"), "text"),
        (b"caf\xc3\xa9", "café"),
        (memoryview(b"x"), "x"),
        (date(2024, 1, 1), "2024-01-01"),
        (datetime(2024, 1, 1, 2, 3, 4, tzinfo=timezone.utc), "2024-01-01T02:03:04+00:00"),
        (time(1, 30), "01:30:00"),
        (Decimal(42), 42),
        (Decimal("42.50"), 42.5),
        (Decimal("0.1"), 0.1),
        (Decimal("1E+3"), 1000),
        (Decimal("-0"), 0),
        (Decimal(123456789012345678901), 123456789012345678901),
        (Decimal("0.1000000000000000000001"), "0.1000000000000000000001"),
        (Decimal("1E+309"), "1E+309"),
        (Decimal("1E+999999999"), "1E+999999999"),
        (Decimal("1E-999999999"), "1E-999999999"),
        (Decimal("NaN"), "NaN"),
        (Decimal("sNaN"), "NaN"),
        (Decimal("Infinity"), "Infinity"),
        (Decimal("-Infinity"), "-Infinity"),
        ((1, [2], {"a": (3,)}), [1, [2], {"a": [3]}]),
        (_nest(MAX_NESTING), _nest(MAX_NESTING)),
    ],
)
def test_to_json_value(value: object, stored: JSONValue) -> None:
    """Values become JSON without losing a digit, and their types are JSON's own."""
    found = to_json_value(value)
    assert found == stored
    assert type(found) is type(stored)


@pytest.mark.parametrize(
    "value", [{1}, iter([1]), object(), 1j, timedelta(1), Exception("x"), int, Mock(), MagicMock()]
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"rows": [[value]]}])
def test_refused_types(value: object, wrap: Any) -> None:
    """An object that JSON can't hold is an error that names its type and what is accepted."""
    with pytest.raises(AgentError) as caught:
        take_answer(wrap(value), "table")
    assert type(value).__qualname__ in str(caught.value)
    assert "lists, mappings with text keys" in str(caught.value)
    assert "DataFrame" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\xff", "not UTF-8"),
        ({1: 2}, "a key of type 'int'"),
        (10**309, "beyond the range of a double"),
        ([-(10**5000)], "beyond the range of a double"),
        (_nest(MAX_NESTING + 1), "more than 128 levels"),
    ],
)
def test_refused_values(value: object, message: str) -> None:
    """A value that JSON can't hold is an error that says why."""
    with pytest.raises(AgentError, match=message):
        take_answer(value, "json")


def test_cycle() -> None:
    """A list that holds itself is an error, not a hang."""
    value: list[object] = []
    value.append(value)
    with pytest.raises(AgentError, match="hold themselves"):
        to_json_value(value)


def test_surrogates_read_as_a_reload_reads_them() -> None:
    """Two surrogates that make a character become it, a lone one stays: so JSON files give them back."""
    assert take_answer({"rows": [["\ud83d\ude00\ud800"]]}, "table").value == {"rows": [["😀\ud800"]]}
    assert take_answer('{"rows":[["\ud83d\ude00"]]} \ud800', "table").value == {"rows": [["😀"]]}


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    """An empty database in memory."""
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


def test_cursor(database: sqlite3.Connection) -> None:
    """A cursor gives the columns' names and all rows, equal names and no rows included."""
    rows = database.execute("select 1 as n, 'x' as n, null as z union all select 2, 'y', 0.5")
    assert take_answer(rows, "table").value == {
        "columns": ["n", "n", "z"],
        "rows": [[1, "x", None], [2, "y", 0.5]],
    }
    assert take_answer(database.execute("select 1 as n where 0"), "table").value == {
        "columns": ["n"],
        "rows": [],
    }
    database.row_factory = sqlite3.Row
    assert take_answer(database.execute("select 1 as n, 2 as n"), "table").value == {
        "columns": ["n", "n"],
        "rows": [[1, 2]],
    }


def test_cursor_with_dictionary_rows() -> None:
    """Rows that a driver gives as dictionaries are put in the order of the columns."""

    class Cursor:
        description = (("a", None), ("b", None))

        def fetchall(self) -> list[dict[str, int]]:
            return [{"b": 2, "a": 1}]

    assert take_answer(Cursor(), "table").value == {"columns": ["a", "b"], "rows": [[1, 2]]}


def test_cursor_without_result_set(database: sqlite3.Connection) -> None:
    """A cursor without a result set, or whose database fails, is an error that says so."""
    with pytest.raises(AgentError, match=r"'sqlite3\.Cursor' has no result set"):
        take_answer(database.execute("create table t (n)"), "table")
    failing = database.execute("select 1 union all select abs(-9223372036854775808)")
    with pytest.raises(AgentError, match="OperationalError: integer overflow"):
        take_answer(failing, "table")


@dataclass
class FakePandas:
    """A frame as pandas shows it; dtypes have a ``kind`` each."""

    columns: list[object]
    data: list[tuple[object, ...]]
    kinds: str

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.data), len(self.columns)

    @property
    def dtypes(self) -> list[SimpleNamespace]:
        """The type of each column."""
        return [SimpleNamespace(kind=kind) for kind in self.kinds]

    def itertuples(self, *, index: bool, name: str | None) -> list[tuple[object, ...]]:
        """Give the rows as tuples."""
        assert (index, name) == (False, None)
        return self.data


class NAType:
    """Stands for pandas' marker of a missing value."""


class NaTType(datetime):
    """Stands for pandas' marker of a missing time, which is a datetime."""


def test_pandas_like() -> None:
    """A frame gives columns and rows; gaps are null, but NaN among floats is NaN."""
    nan = float("nan")
    rows = [(1, nan, nan, NAType()), ("x", 0.5, "y", NaTType(1, 1, 1))]
    answer = take_answer(FakePandas(["a", 0, ("b", 1), "d"], rows, "OfOO"), "table")
    assert answer.value == {
        "columns": ["a", "0", '["b",1]', "d"],
        "rows": [[1, "NaN", None, None], ["x", 0.5, "y", None]],
    }


def test_polars_like() -> None:
    """A frame with a list of columns and a method for rows gives both."""

    class Frame:
        shape = (1, 2)
        columns = ("a", "b")

        def rows(self) -> list[tuple[int, date]]:
            return [(1, date(2024, 1, 1))]

    assert take_answer(Frame(), "table").value == {"columns": ["a", "b"], "rows": [[1, "2024-01-01"]]}


def test_arrow_like() -> None:
    """A table of columns is turned into rows; a frame that fails is an error with its reason."""

    class Column:
        def __init__(self, cells: list[object]) -> None:
            self.cells = cells

        def to_pylist(self) -> list[object]:
            return self.cells

    def build(*columns: Column) -> object:
        return SimpleNamespace(column_names=["a", "a"][: len(columns)], columns=list(columns))

    found = take_answer(build(Column([1, None]), Column(["x", b"y"])), "table").value
    assert found == {"columns": ["a", "a"], "rows": [[1, "x"], [None, "y"]]}
    assert take_answer(build(), "table").value == {"columns": [], "rows": []}
    with pytest.raises(AgentError, match=r"SimpleNamespace' can't be read: ValueError: zip\(\)"):
        take_answer(build(Column([1]), Column([])), "table")


class FakeScalar:
    """A scalar or array as numpy shows it."""

    def __init__(self, held: Any, *, shape: tuple[int, ...] = (), kind: str = "i") -> None:
        self.held, self.shape, self.dtype = held, shape, SimpleNamespace(kind=kind)

    def item(self) -> object:
        """Give the Python value; a long double gives itself."""
        return self if self.held is None else self.held

    def __iter__(self) -> Iterator[object]:
        return iter(self.held)

    def astype(self, name: str) -> FakeScalar:
        """Give the time in microseconds."""
        assert name == "datetime64[us]"
        return FakeScalar(datetime(2024, 1, 1))  # noqa: DTZ001  # numpy's times have no zone


class FakeArrowScalar:
    def as_py(self) -> Decimal:
        """Give the Python value."""
        return Decimal("0.5")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (FakeScalar(3), 3),
        (FakeScalar(float("nan"), kind="f"), "NaN"),
        (FakeScalar(1704067200000000000, kind="M"), "2024-01-01T00:00:00"),
        (FakeScalar([FakeScalar(1), 2], shape=(2,)), [1, 2]),
        (FakeArrowScalar(), 0.5),
    ],
)
def test_scalars_of_other_libraries(value: object, stored: JSONValue) -> None:
    """Scalars and arrays give what they hold; times of nanoseconds don't turn into integers."""
    assert to_json_value(value) == stored


@pytest.mark.parametrize("value", [FakeScalar(None, kind="g"), FakeScalar(5, kind="m")])
def test_scalars_without_a_python_value(value: object) -> None:
    """A long double, which holds itself, and a time span have no JSON value."""
    with pytest.raises(AgentError, match="FakeScalar"):
        to_json_value(value)
