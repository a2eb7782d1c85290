"""JSON texts and Python values to trees."""

from __future__ import annotations

import json

import pytest

from pytest_ctxfp._json import node_from_value, parse_json, parse_json_lines
from pytest_ctxfp._tree import Scalar, TreeError, construct


def test_json_cases_have_lines():
    """A JSON reader gives each top-level key and each case the line where it begins."""
    (root,) = parse_json('{\n"a": 1,\n"cases": [\n {"id":\n  1},\n {"id": 2}]\n, "b": [\n]}\n').roots
    assert root.lines == {"a": 2, "cases": 3, "b": 7}
    assert [case.line for case in root.entries["cases"].items] == [4, 6]
    assert root.entries["cases"].items[0].entries["id"] == Scalar("1", 4, plain=True)


@pytest.mark.parametrize(
    "text", ["{}", "[]", ' { "cases" : [ ] } ', '{"cases": {"a": [1]}}', "[1, [2]]", '"x"']
)
def test_json_shapes_are_read(text):
    """Empty and unusual JSON texts are read as the standard library reads them."""
    assert construct(parse_json(text).roots[0], []) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the file is empty"),
        ("\n \n", ..., "the file is empty"),
        ('{\n"a": 1,\n}', 3, "is no JSON: expecting property name"),
        ('{"cases": [\n1\n2]}', 3, "is no JSON: expecting ',' delimiter"),
        ('{"a"\n1}', 2, "is no JSON: expecting ':' delimiter"),
        ('{"a": 1}\n{}', 2, "is no JSON: extra data"),
        ('{"cases": [\n{"a": NaN}]}', 2, "NaN is no JSON number"),
        ('{"cases": [\n"a\tb"]}', 2, "is no JSON: invalid control character"),
        ("{'a': 1}", 1, "is no JSON"),
        ('{"cases": [1', 1, "is no JSON"),
        ("[" * 101 + "]" * 101, 1, "more than 100 levels"),
        ("[" * 100_000, 1, "more than 100 levels"),
        ('{"a":' * 50 + "[" * 60 + "]" * 60 + "}" * 50, 1, "more than 100 levels"),
    ],
)
def test_unreadable_json_is_an_error(text, line, reason):
    """A JSON text that can't be read is one error with its line."""
    with pytest.raises(TreeError) as caught:
        parse_json(text)
    assert reason in caught.value.reason
    assert line in (..., caught.value.line)


def test_duplicate_json_keys_are_faults():
    """Duplicate keys of JSON are faults on the line of their case, or of their own at the top."""
    parsed = parse_json('{"a": 1,\n"a": 2,\n"cases": [\n{"b": {"c": 1, "c": 2}}]}')
    assert [(fault.line, fault.reason[:17]) for fault in parsed.faults] == [
        (2, "duplicate key 'a'"),
        (4, "duplicate key 'c'"),
    ]


def test_json_lines_are_read_line_by_line():
    """Blank lines are skipped, broken ones are faults, and only LF ends a line."""
    parsed = parse_json_lines('{"a": "x\u2028y"}\r\n\n{"b":\n[2]\n')
    assert [root.line for root in parsed.roots] == [1, 4]
    assert [fault.line for fault in parsed.faults] == [3]
    assert parsed.starts == (1, 3, 4)


def test_python_values_become_nodes():
    """A Python value gives the nodes that its JSON text would give, floats beyond JSON included."""
    value = {"a": [1, -0.0, 1e22, True, None, "1"], "b": ({},)}
    assert construct(node_from_value(value), []) == {"a": [1, -0.0, 1e22, True, None, "1"], "b": [{}]}
    assert [node_from_value(x).text for x in (float("inf"), float("-inf"), float("nan"))] == [
        ".inf",
        "-.inf",
        ".nan",
    ]


@pytest.mark.parametrize("value", [{1: 2}, {"a": {1}}, b"x", object()])
def test_python_values_beyond_json_are_refused(value):
    """Values that JSON can't hold are errors, never guesses."""
    with pytest.raises(TreeError):
        node_from_value(value)


def test_overlong_integer_is_refused():
    """An integer that Python itself refuses to write is an error that says so."""
    with pytest.raises(TreeError, match="more than 4,300 digits"):
        node_from_value([10**5000])


def test_python_values_are_bounded():
    """A list within itself and lists that share lists end in an error, not in a hang."""
    endless = []
    endless.append(endless)
    with pytest.raises(TreeError, match="100 levels"):
        node_from_value(endless)
    shared = [0]
    for _ in range(60):
        shared = [shared, shared]
    with pytest.raises(TreeError, match="1,000,000 values"):
        node_from_value(shared)
