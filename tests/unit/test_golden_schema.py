"""The JSON schema of golden files says what the loader says."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from pytest_ctxfp import GoldenError, golden_schema, load_golden
from pytest_ctxfp._case import CASE_KEYS, case_from_dict
from pytest_ctxfp._expectation import TABLE_KEYS, TABLE_MATCHES, TEXT_MATCHES, TOLERANCE_KEYS
from pytest_ctxfp._extract import VERDICT_FIELDS
from pytest_ctxfp._golden import TOP_KEYS
from pytest_ctxfp._model import ResultKind
from pytest_ctxfp._tree import construct
from pytest_ctxfp._tree_file import parse_text, read_file

EXAMPLES = sorted((Path(__file__).parents[2] / "example_suite").rglob("golden*.yaml"))
SCHEMA = golden_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NOT_SET = object()
VALUES = (
    *(None, True, 1, 0.5, -1, "", "  ", "x", "99"),
    *([], ["x"], ["99"], [""], [None], [["x"]], ["a", ["b"]]),
    *({}, {"any": ["x"]}, {"any": []}, {"any": ["99"]}, {"any": [None]}, {"any": ["x"], "b": 1}),
    *(
        {"rows": [[1]]},
        {"rows": [[1, 2]]},
        {"rows": []},
        {"rows": [[1], [2]]},
        {"rows": [1]},
        {"columns": []},
    ),
    *({"columns": ["n"], "rows": [[None]]}, {"columns": None, "rows": [[1]]}, {"rows": [[1]], "x": 1}),
    *({"columns": [""], "rows": [[1]]}, {"columns": [None], "rows": [[1]]}),
)
FIELD_VALUES = (
    *(*VALUES, "allow", "forbid", "severity", "fresh", "json", "verdict", 1.5, 60, False),
    *(["slow"], ["_x"], ["a b"], ["ünï"], ["a-b"]),
    *({"numeric": 1}, {"numeric": None}, {"numeric": -1}, {"relative": 0}, {"bogus": 1}),
    *({"columns": {"n": 1}}, {"columns": {"n": "1"}}, {"columns": None}),
)
KINDS = [*(kind.value for kind in ResultKind), "bogus"]
MATCHES = (NOT_SET, *TABLE_MATCHES, *TEXT_MATCHES, "subset", "mine", "", None, True)


def is_accepted(case: dict[str, object]) -> bool:
    """Tell whether the loader takes a case."""
    try:
        case_from_dict(case)
    except GoldenError as error:
        # What a schema can't say: whether a text is a regular expression.
        return "regular expression" in str(error)
    return True


def make_case(**fields: object) -> dict[str, object]:
    """Return a case with these fields, as far as they are set."""
    case = {"id": "a", "question": "q", **fields}
    return {key: value for key, value in case.items() if value is not NOT_SET}


def test_it_is_a_schema() -> None:
    """The schema itself is valid, and each call returns one of its own."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    golden_schema().clear()
    assert golden_schema() == SCHEMA


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_golden_files_are_valid(path: Path) -> None:
    """Every golden file of the example suite, which the loader takes, is valid."""
    assert load_golden(path).cases
    value = construct(parse_text(str(path), read_file(str(path))).roots[0], [])
    VALIDATOR.validate(value)


def test_there_are_golden_files() -> None:
    """The test above sees golden files."""
    assert len(EXAMPLES) >= 3


def test_it_knows_the_keys_of_the_loader() -> None:
    """Schema and loader name the same keys and words, so neither can move without the other."""
    definitions = SCHEMA["$defs"]
    case = definitions["case"]["properties"]
    assert set(SCHEMA["properties"]) == set(TOP_KEYS)
    assert set(case) == set(CASE_KEYS)
    assert set(definitions["table"]["properties"]) == set(TABLE_KEYS)
    assert set(definitions["tolerance"]["properties"]) == set(TOLERANCE_KEYS)
    assert case["result_kind"]["enum"] == [kind.value for kind in ResultKind]
    assert case["verdict_field"]["enum"] == list(VERDICT_FIELDS)
    words = json.dumps(SCHEMA, separators=(",", ":"))
    assert json.dumps({"enum": TEXT_MATCHES}, separators=(",", ":")) in words
    assert json.dumps({"enum": TABLE_MATCHES}, separators=(",", ":")) in words


def described() -> list[tuple[str, dict[str, object]]]:
    """Return every key that a person can write, with its part of the schema."""
    parts = {"": SCHEMA, **SCHEMA["$defs"]}
    keys = [(f"{name}.{key}", value) for name, part in parts.items() for key, value in _keys(part)]
    return [*parts.items(), *keys]


def _keys(part: dict[str, object]) -> list[tuple[str, dict[str, object]]]:
    return list(part.get("properties", {}).items())


@pytest.mark.parametrize(("name", "part"), described(), ids=[name or "top" for name, _ in described()])
def test_every_key_is_described(name: str, part: dict[str, object]) -> None:
    """Each key has a title, a description and at least one example that is valid itself."""
    assert part["title"], name
    assert part["description"], name
    examples = part["examples"]
    assert examples, name
    own = jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], "allOf": [part]})
    if name != "text_expectation":
        assert all(own.is_valid(example) for example in examples), name


def undescribed(node: object, place: str, *, known: frozenset[str]) -> list[str]:
    """Return the places of properties without a description whose names are described nowhere either."""
    if isinstance(node, list):
        return [
            name for n, item in enumerate(node) for name in undescribed(item, f"{place}/{n}", known=known)
        ]
    if not isinstance(node, dict):
        return []
    own = node.get("properties", {})
    found = [f"{place}.{key}" for key, part in own.items() if "description" not in part and key not in known]
    return found + [
        name for key, value in node.items() for name in undescribed(value, f"{place}/{key}", known=known)
    ]


def test_no_property_is_without_a_description() -> None:
    """At any depth a property has a description, or narrows one that has: no editor shows it bare."""
    known = frozenset(SCHEMA["$defs"]["case"]["properties"]) | frozenset(TABLE_KEYS)
    assert undescribed(SCHEMA, "", known=known) == []


BASES = (
    make_case(expected={"columns": ["n"], "rows": [[1]]}),
    make_case(expected={"columns": ["total"], "rows": [[1]]}),
    make_case(result_kind="verdict", expected="high"),
    make_case(result_kind="text", expected=["30 days"]),
    make_case(result_kind="text", match="number", expected=9),
    make_case(result_kind="json", expected={}),
    make_case(result_kind="text", match="mine", expected="x"),
    make_case(),
)


@pytest.mark.parametrize("key", CASE_KEYS)
def test_examples_are_what_the_loader_takes(key: str) -> None:
    """Every example of a key stands in a case that both the schema and the loader take."""
    for example in SCHEMA["$defs"]["case"]["properties"][key]["examples"]:
        cases = [{**base, key: example} for base in BASES]
        assert any(VALIDATOR.is_valid({"cases": [case]}) and is_accepted(case) for case in cases), example


def test_an_editor_that_knows_draft_7_judges_alike() -> None:
    """Read by draft 7, which the YAML extension of editors is built on, the schema takes the same cases."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    older = jsonschema.Draft7Validator(SCHEMA)
    cases = [
        {**base, key: value} for base in BASES for key in ("expected", "match", "id") for value in VALUES
    ]
    judged = {json.dumps(case): older.is_valid({"cases": [case]}) for case in cases}
    assert judged == {json.dumps(case): VALIDATOR.is_valid({"cases": [case]}) for case in cases}


@pytest.mark.parametrize("kind", [NOT_SET, *KINDS, None], ids=["not set", *KINDS, "null"])
def test_it_judges_expectations_as_the_loader_does(kind: object) -> None:
    """Whatever kind, match mode, expectation and SQL stand together, the schema agrees with the loader."""
    cases = [
        make_case(result_kind=kind, match=match, expected=expected, expected_sql=sql)
        for match in MATCHES
        for expected in (NOT_SET, *VALUES)
        for sql in (NOT_SET, None, "select 1", "")
    ]
    judged = {json.dumps(case): VALIDATOR.is_valid({"cases": [case]}) for case in cases}
    assert judged == {json.dumps(case): is_accepted(case) for case in cases}


@pytest.mark.parametrize("key", CASE_KEYS)
def test_it_judges_fields_as_the_loader_does(key: str) -> None:
    """Whatever value a field has, in a table's case or a text's, the schema accepts what the loader does."""
    table = make_case(expected={"columns": ["n"], "rows": [[1]]})
    text = make_case(result_kind="text", expected="x")
    cases = [{**case, key: value} for case in (table, text) for value in FIELD_VALUES]
    judged = {json.dumps(case): VALIDATOR.is_valid({"cases": [case]}) for case in cases}
    assert judged == {json.dumps(case): is_accepted(case) for case in cases}


@pytest.mark.parametrize(
    "golden",
    [
        {"cases": [], "case": []},
        {"cases": [make_case(expected={"rows": [[1]]}, expect=1)]},
        {"cases": [make_case(expected={"rows": [[1]], "colums": ["n"]})]},
        {"cases": [make_case(expected={"rows": [[1]]}, tolerance={"absolute": 1})]},
        {"cases": {}},
        {},
        [],
    ],
    ids=["top", "case", "table", "tolerance", "no list", "no cases", "a list"],
)
def test_it_refuses_unknown_keys_and_shapes(golden: object) -> None:
    """A key that the loader doesn't know is refused at every level, and so is a file without cases."""
    assert not VALIDATOR.is_valid(golden)


def test_top_level_values_may_be_what_the_loader_takes(tmp_path: Path) -> None:
    """All top-level keys together are valid, and are loaded."""
    golden = {
        "$schema": "golden.schema.json",
        "dataset": "shop",
        "context_version": "shop@3f9c1a2",
        "metadata": {"owner": "data-team"},
        "cases": [make_case(expected={"rows": [[1]]})],
    }
    path = tmp_path / "golden.json"
    path.write_text(json.dumps(golden))
    assert load_golden(path).dataset == "shop"
    VALIDATOR.validate(golden)
