"""YAML texts to trees, on both of PyYAML's parsers."""

from __future__ import annotations

import json

import pytest
import yaml

from pytest_ctxfp._json import parse_json
from pytest_ctxfp._tree import Mapping, Scalar, Sequence, TreeError, construct, resolve_plain
from pytest_ctxfp._yaml import parse_yaml


@pytest.fixture(params=["c", "python"], autouse=True)
def parser(request, monkeypatch):
    """Run every test on both of PyYAML's parsers."""
    if request.param == "python":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)
    return request.param


def load(text):
    """Return the value of a YAML text that must have no faults."""
    parsed = parse_yaml(text)
    faults = list(parsed.faults)
    value = construct(parsed.roots[0], faults)
    assert faults == []
    return value


def faults_of(text):
    """Return ``(line, reason)`` of every fault of a YAML text, values included."""
    parsed = parse_yaml(text)
    faults = list(parsed.faults)
    construct(parsed.roots[0], faults)
    return [(fault.line, fault.reason) for fault in faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, None) for text in ("null", "Null", "NULL", "~", "")],
        *[(text, True) for text in ("true", "True", "TRUE")],
        *[(text, False) for text in ("false", "False", "FALSE")],
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("0o17", 15),
        ("0xFf", 255),
        ("9007199254740993", 9007199254740993),
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5e1", -5.0),
        ("0e0", 0.0),
        ("1E3", 1000.0),
    ],
)
def test_plain_scalar_of_the_core_schema_has_its_type(text, value):
    """A plain scalar that the core schema names becomes that value, of that type."""
    result = load(f"[{text}, x]")[0] if text else load("a:")["a"]
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "on",
        "yes",
        "Off",
        "y",
        "2024-01-01",
        "1:30",
        "0123",
        "00",
        "-01",
        "01.5",
        "00e1",
        "1_000",
        "0b1",
        "+0x10",
        "0o8",
        "1e",
        ".",
        "-",
        "+",
        "e5",
        "nULL",
        "tRUE",
        "١٢",
        "1.2.3",
        "NaN",
        "inf",
        "<<",
        "=",
    ],
)
def test_everything_else_is_text(text):
    """What YAML 1.1 or Python would convert, but the core schema doesn't, stays text as written."""
    assert load(f"- {text}") == [text] if text != "-" else load('["-"]') == ["-"]


def test_quoted_scalars_are_text():
    """Quotes and block styles make a text of whatever is inside."""
    assert load("['1', \"true\", '']") == ["1", "true", ""]
    assert load("a: |\n  1\nb: >-\n  true") == {"a": "1\n", "b": "true"}


def test_plain_scalar_keeps_its_text():
    """A scalar that is a number keeps its text for whoever wants one."""
    (root,) = parse_yaml("id: 12e4567").roots
    assert root.entries["id"] == Scalar("12e4567", 1, plain=True)


def test_nodes_know_their_lines():
    """Every node has the 1-based line where it begins, keys included."""
    (root,) = parse_yaml("# comment\na: 1\nb:\n  - x\n  -\n    c: [y,\n    z]\n").roots
    assert root == Mapping(
        2,
        {
            "a": Scalar("1", 2, plain=True),
            "b": Sequence(
                4,
                [
                    Scalar("x", 4, plain=True),
                    Mapping(
                        6,
                        {"c": Sequence(6, [Scalar("y", 6, plain=True), Scalar("z", 7, plain=True)])},
                        {"c": 6},
                    ),
                ],
            ),
        },
        {"a": 2, "b": 3},
    )


def test_core_tags_decide():
    """A core tag decides the type, and the non-specific tag makes a text."""
    assert load("[!!str 1, ! 2, !!int 0x10, !!float 3, !!null '', !!bool 'true', !!seq [], !!map {}]") == [
        "1",
        "2",
        16,
        3,
        None,
        True,
        [],
        {},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a:\n  !!python/name:os.system x", "unknown tag 'tag:yaml.org,2002:python/name:os.system'"),
        ("a:\n  !!timestamp 2024-01-01", "unknown tag"),
        ("a:\n  !!set {x: null}", "unknown tag"),
        ("a:\n  !own [x]", "unknown tag '!own'"),
        ("a:\n  !<str> x", "unknown tag 'str'"),
        ("a:\n  !!int x", "'x' is no int"),
        ("a:\n  !!bool yes", "'yes' is no bool"),
        ("a: 1\na: 2", "duplicate key 'a', first on line 1"),
        ("1: 1\n'1': 2", "duplicate key '1', first on line 1"),
        ("a: 1\n? [x]\n: y", "a key is a list or a mapping"),
        ("a: 1\n? {x: [1]}\n: {y: 2}", "a key is a list or a mapping"),
        ("a\n---\nb", "a second document begins here"),
        ("a:\n  1e999", "the number '1e999' is beyond a double"),
        ("a:\n  -1e-999", "the number '-1e-999' is beyond a double"),
        ("a:\n  .inf", 'write the text "Infinity"'),
        ("a:\n  -.INF", 'write the text "-Infinity"'),
        ("a:\n  .NaN", 'write the text "NaN"'),
        ("a:\n  " + "9" * 4301, "has more than 4,300 digits"),
        ("a:\n  0x" + "f" * 3600, "has more than 4,300 digits"),
    ],
)
def test_fault_is_told_with_its_line(text, reason):
    """What can't be meant is a fault on its own line, and the only one."""
    ((line, found),) = faults_of(text)
    assert reason in found
    assert line == 2


def test_longest_integers_are_read():
    """Integers of up to 4,300 digits are read exactly, whatever their base."""
    assert load("[" + "9" * 4300 + "]") == [10**4300 - 1]
    assert load("[0x" + "f" * 3571 + "]") == [16**3571 - 1]


def test_faults_do_not_hide_each_other():
    """Reading goes on after a fault, so that all of them are reported at once."""
    faults = faults_of("a: !x 1\na: 2\n? [b]\n: {c: 1, c: 2}\nd: 1e999\n---\n!y z")
    assert [line for line, _ in faults] == [1, 2, 3, 4, 6, 7, 5]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", None, "the file is empty"),
        ("# only a comment\n", None, "the file is empty"),
        ("a: [1\nb: 2", 2, "is no YAML"),
        ("a: b: c", 1, "is no YAML: mapping values are not allowed"),
        ("a\n\x07", 2, 'the character U+0007: write "\\u0007" instead'),
        ("a\n\x00", 2, "the character U+0000"),
        ('- "\\ud800"', 1, "is no YAML"),
        ('- "\\ud83d\\ude00"', 1, "is no YAML"),
        ('- "\\UFFFFFFFF"', ..., "is no YAML"),
        ("a: 1\nb: *c", 2, "the alias *c has no anchor before it"),
        ("a:\n  &b [*b]", 2, "the alias *b stands within its own anchor"),
        ("[" * 101 + "]" * 101, 1, "more than 100 levels"),
        ("- " * 100_000, 1, "more than 100 levels"),
        ("%TAG !a! tag:a,2000:\n" * 300, None, "more than 100 %TAG directives"),
    ],
)
def test_unreadable_text_is_an_error(text, line, reason):
    """A text that can't be read to its end is one error, with its line where there is one."""
    with pytest.raises(TreeError) as caught:
        parse_yaml(text)
    assert reason in caught.value.reason
    assert line in (..., caught.value.line)


def test_hundred_levels_are_read():
    """The bound on levels is 100, not fewer."""
    assert load("[" * 100 + "]" * 100)


def test_merge_key_is_an_ordinary_key():
    """YAML 1.2 has no merge: ``<<`` is a key like any other."""
    assert load("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2") == {"a": {"x": 1}, "b": {"<<": {"x": 1}, "y": 2}}


def test_aliases_repeat_their_anchor():
    """An alias stands for its anchor's node, also as a key and after the anchor is defined anew."""
    assert load("[&a x, *a, &a [y], *a]") == ["x", "x", ["y"], ["y"]]
    assert load("a: &k key\n*k : 1") == {"a": "key", "key": 1}
    assert "duplicate key" in faults_of("&k a: 1\n*k : 2")[0][1]


def test_alias_bomb_is_refused_at_once():
    """Aliases of aliases are refused before anything is expanded."""
    levels = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    with pytest.raises(TreeError, match="aliases stand for more than 100,000 nodes"):
        parse_yaml(f"a0: &a0 [x]\n{levels}")


def test_deep_alias_chain_is_refused():
    """Levels are counted through aliases, so that a chain of them can't exhaust the stack."""
    chain = "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 120))
    with pytest.raises(TreeError, match="more than 100 levels"):
        parse_yaml(f"a0: &a0 [x]\n{chain}")


def test_expansion_has_a_generous_bound():
    """Up to 100,000 nodes may come from aliases, and nodes that are written out don't count."""
    assert len(load("[&a x" + ", *a" * 100_000 + "]")) == 100_001
    with pytest.raises(TreeError, match="100,000"):
        parse_yaml("[&a x" + ", *a" * 100_001 + "]")


def test_line_breaks_of_yaml_1_1_are_ordinary_characters():
    """NEL, LS and PS neither fold nor count as lines, quoted, plain or in a block."""
    parsed = parse_yaml("a: \"x\x85y\u2028z\"\nb: x\u2029y\nc: |\n  x\x85  y\nd: '\ue000'")
    assert construct(parsed.roots[0], []) == {
        "a": "x\x85y\u2028z",
        "b": "x\u2029y",
        "c": "x\x85  y\n",
        "d": "\ue000",
    }
    assert parsed.roots[0].lines == {"a": 1, "b": 2, "c": 3, "d": 5}


@pytest.mark.parametrize("read", [parse_yaml, parse_json])
def test_json_is_read_alike(read):
    """A JSON text gives the same values from both readers, numbers as written included."""
    text = json.dumps(
        {"a": [1, 1.5, -2e-7, True, None, "x\ty", {}, []], "é": {"b": [[]]}}, ensure_ascii=False
    )
    parsed = read(text)
    assert construct(parsed.roots[0], []) == json.loads(text)
    assert parsed.faults == ()


def test_number_beyond_the_interpreters_own_limit_is_refused(monkeypatch):
    """A lower limit on digits, set for the interpreter, gives the same clear error."""

    def refuse(text):
        raise ValueError(text)

    monkeypatch.setattr("pytest_ctxfp._tree.int", refuse, raising=False)
    with pytest.raises(ValueError, match="more than 4,300 digits"):
        resolve_plain("123")
