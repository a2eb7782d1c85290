"""Facts and their files: what is read, and what is said about those that can't be."""

from __future__ import annotations

import json
import pickle
import time

import pytest

from pytest_ctxfp import GoldenError, KnowledgeFact, load_facts

FACTS = [
    KnowledgeFact("policies", "return window", "30 days: with the receipt"),
    KnowledgeFact("terms", "year", "0123", 0.5),
    KnowledgeFact("", "empty", "", -1),
]
YAML = """\
# what the agent is told
- {category: policies, key: return window, value: "30 days: with the receipt"}
- category: terms
  key: year
  value: 0123
  salience: 0.5
- {category: "", key: empty, value: "", salience: -1}
"""
RECORDS = [
    {"category": "policies", "key": "return window", "value": "30 days: with the receipt", "salience": None},
    {"category": "terms", "key": "year", "value": "0123", "salience": 0.5},
    {"category": "", "key": "empty", "value": "", "salience": -1},
]
LINES = "\n\n".join(map(json.dumps, RECORDS)) + "\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a facts file into the current folder and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write_file(text, name="facts.yaml"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return name

    return write_file


def errors_of(path):
    """Return the lines of the error that loading a facts file must raise."""
    with pytest.raises(GoldenError) as caught:
        load_facts(path)
    return str(caught.value).split("\n")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (YAML, "facts.yaml"),
        ("facts:\n" + YAML, "facts.yml"),
        ("\ufeff" + YAML, "facts.YAML"),
        (json.dumps(RECORDS), "facts.json"),
        (json.dumps({"$schema": "x", "facts": RECORDS}), "facts.json"),
        (LINES, "facts.jsonl"),
        (LINES.replace("\n", "\r\n"), "facts.JSONL"),
    ],
)
def test_each_format_gives_the_same_facts(write, text, name):
    """YAML, JSON and JSON Lines hold the same facts, in the order of the file."""
    assert load_facts(write(text, name)) == FACTS


def test_a_path_may_be_an_object(write, tmp_path):
    """Anything that names a file is taken."""
    assert load_facts(tmp_path / write(YAML)) == FACTS


@pytest.mark.parametrize(("text", "name"), [("[]", "a.json"), ("[]", "a.yaml"), ("\n \n", "a.jsonl")])
def test_no_facts_is_an_empty_list(write, text, name):
    """An empty list and a file without a line of JSON are no error."""
    assert load_facts(write(text, name)) == []


@pytest.mark.parametrize("value", ["no", "16", "1.0", "1_000", "2024-01-01", "true", "9" * 5000, "1e999999"])
def test_values_are_taken_as_written(write, value):
    """What isn't quoted is the text that stands there, however long a number it looks like."""
    facts = load_facts(write(f"- {{category: c, key: {value}, value: {value}}}"))
    assert facts == [KnowledgeFact("c", value, value)]


def test_numbers_in_json_are_taken_as_written(write):
    """A number as a value is its digits, all of them."""
    assert load_facts(write('[{"category": "c", "key": "k", "value": 1.50}]', "f.json"))[0].value == "1.50"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {category: c, value: v}", "facts.yaml:1: a fact has no `key`: write {category: ..., "),
        ("\n- {category: c, key: k}", "facts.yaml:2: a fact has no `value`: write "),
        ("- {key: k, value: v}", "facts.yaml:1: a fact has no `category`: write "),
        ("- category: [a]\n  key: k\n  value: v", "facts.yaml:1: the `category` of a fact is a list: "),
        (
            "- category: 2024\n  key: k\n  value: v",
            "facts.yaml:1: the `category` of a fact is the int 2024: ",
        ),
        ("- {category: true, key: k, value: v}", "facts.yaml:1: the `category` of a fact is the bool true: "),
        ("- {category: , key: k, value: v}", "facts.yaml:1: the `category` of a fact is empty: "),
        ("- key: k\n  category: c\n  value:", "facts.yaml:3: the `value` of a fact is empty: "),
        ("- key: ' '\n  category: c\n  value: v", "facts.yaml:1: the `key` of a fact is empty: name "),
        ("- key: k\n  category: c\n  value: {a: b}", "facts.yaml:3: the `value` of a fact is a mapping: "),
        ("- {category: c, key: k, value: v}\n- text", "facts.yaml:2: a fact is the text 'text': write "),
        ("- {category: c, key: k, value: v}\n- 12", "facts.yaml:2: a fact is the int 12: write "),
        (
            "- {category: c, key: k, value: v, salence: 1}",
            "facts.yaml:1: unknown key 'salence' in a fact: did ",
        ),
        (
            "- {category: c, key: k, value: v, salience: high}",
            "facts.yaml:1: `salience` is the text 'high': ",
        ),
        ("- {category: c, key: k, value: v, salience: .nan}", "facts.yaml:1: `salience` is the float .nan, "),
        ("- {category: c, key: k, key: j, value: v}", "facts.yaml:1: duplicate key 'key', first on line 1: "),
        ("a: 1", "facts.yaml:1: the facts are a mapping: write a list, each {"),
        ("facts: x", "facts.yaml:1: the facts are the text 'x': write a list"),
        ("other: 1\nfacts: []", "facts.yaml:1: unknown key 'other' at the top level: "),
        ("", "facts.yaml: the file is empty: write a list of facts, or `[]` for none"),
        ("# none\n\n  # yet\n", "facts.yaml: the file is empty: write a list of facts"),
        ("- [", "facts.yaml:2: is no YAML: "),
        (b"- a\n- \xff", "facts.yaml:2: is not UTF-8 (byte 0xff): save it as UTF-8"),
    ],
)
def test_faults_are_named_with_their_line(write, text, message):
    """A file that can't be read says where, what and how to mend it, in one line."""
    (error,) = errors_of(write(text))
    assert error.startswith(message)


@pytest.mark.parametrize("head", ["[\n", '{"facts":\n[\n'])
def test_faults_in_json_have_the_line_of_their_fact(write, head):
    """A fact in a list of JSON has the line where it begins."""
    tail = "]" if head[0] == "[" else "]}"
    text = (
        head
        + '{"category": "c", "key": "k", "value": "v"},\n{"category": 7, "key": "k",\n"value": "v"}'
        + tail
    )
    (error,) = errors_of(write(text, "f.json"))
    assert error == f"f.json:{head.count(chr(10)) + 2}: the `category` of a fact is the int 7: quote it"


def test_faults_in_json_lines_have_their_line(write):
    """A line that is no JSON and one that is no fact are both named."""
    text = '{"category": "c", "key": "k", "value": "v"}\n{\n["k", "v"]\n'
    first, second = errors_of(write(text, "f.jsonl"))
    assert first.startswith("f.jsonl:2: is no JSON: ")
    assert second.startswith("f.jsonl:3: a fact is a list: write {")


def test_all_faults_are_reported_at_once(write):
    """Two bad facts are two lines of one error, which pickles."""
    path = write("- {category: c, key: k}\n- {category: c, value: v}")
    assert [error.split(":")[1] for error in errors_of(path)] == ["1", "2"]
    with pytest.raises(GoldenError) as caught:
        load_facts(path)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing.yaml", "can't be read (No such file"), ("facts.txt", "the suffix '.txt' tells no format")],
)
def test_files_that_cannot_be_read_are_named(write, name, reason):
    """A file that isn't there, and one of another kind, are errors of the whole file."""
    write("x", "facts.txt")
    (error,) = errors_of(name)
    assert error.startswith(f"{name}: {reason}")


def test_an_alias_bomb_is_refused_at_once(write):
    """Aliases that would stand for a thousand million facts are an error with a line, without expanding."""
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
    )
    start = time.perf_counter()
    (error,) = errors_of(write(f"{bomb}facts: *a9\n"))
    assert time.perf_counter() - start < 2
    assert error.startswith("facts.yaml:6: aliases stand for more than 100,000 nodes")


def test_a_file_of_hash_signs_is_read_at_once(write):
    """Whether a file is empty is told in linear time."""
    start = time.perf_counter()
    (error,) = errors_of(write("#" * 100_000 + " " * 100_000 + "\nx"))
    assert time.perf_counter() - start < 2
    assert error.startswith("facts.yaml:2: the facts are the text 'x'")


@pytest.mark.parametrize(
    "arguments",
    [
        (1, "k", "v"),
        ("c", None, "v"),
        ("c", "k", b"v"),
        ("c", "k", "v", "high"),
        ("c", "k", "v", True),
        ("c", "k", "v", float("nan")),
        ("c", "k", "v", float("inf")),
    ],
)
def test_a_fact_of_other_types_is_refused(arguments):
    """Category, key and value are texts, and the salience a finite number."""
    with pytest.raises(ValueError, match="of a fact must be a"):
        KnowledgeFact(*arguments)
