"""Golden files: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

import codecs
import json
import pickle

import pytest

from pytest_ctxfp import GoldenCase, GoldenError, load_golden
from pytest_ctxfp._display import item_name
from pytest_ctxfp._golden import load_if_golden
from pytest_ctxfp._model import ResultKind, Table

CASE = {"id": "a", "question": "q", "expected": {"columns": ["n"], "rows": [[99]]}}

SHOP = """\
# yaml-language-server: $schema=schema.json
dataset: shop
context_version: 1234567
metadata: {owner: data-team, since: 2024-01-01}
cases:
  - id: total_orders
    question: "How many orders are there?"
    tags: [easy, 0123, no]
    match: scalar
    tolerance: { numeric: 0.01, relative: 0, columns: {n: 1} }
    expected: { columns: [n], rows: [[99]] }
    extra_columns: allow
    metadata: {ticket: 7}
    min_pass_rate: 0.8
    timeout: 60
    marks: [slow]
  - id: refund_window
    question: How long do I have to return shoes?
    inputs: { history: [hi, {role: user}], tenant: acme }
    result_kind: text
    match: contains
    expected: ["30 days", 1.0]
    ignore_case: true
    min_score: 1
    skip: no agent yet
  - id: stale
    question: Is it fresh?
    result_kind: verdict
    verdict_field: severity
    expected: warn
    xfail: 12
  - id: 12e4567
    question: 1.0
    expected_sql: select 1
    match: set
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a golden file into the current folder and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write_file(text, name="golden.yaml"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
        return name

    return write_file


def errors_of(path):
    """Return the lines of the error that loading a golden file must raise."""
    with pytest.raises(GoldenError) as caught:
        load_golden(path)
    return str(caught.value).split("\n")


def case_errors(data):
    """Return the reasons why a case, given as a mapping, is refused."""
    with pytest.raises(GoldenError) as caught:
        GoldenCase.from_dict(data)
    return [error.reason for error in (caught.value, *caught.value.more)]


def test_file_is_read_as_written(write):
    """Every key of a golden file arrives in the record, texts as they are written."""
    golden = load_golden(write(SHOP))
    assert (golden.path, golden.dataset, golden.context_version) == ("golden.yaml", "shop", "1234567")
    assert golden.metadata == {"owner": "data-team", "since": "2024-01-01"}
    assert golden.cases == (
        GoldenCase(
            id="total_orders",
            question="How many orders are there?",
            tags=("easy", "0123", "no"),
            tolerance={"numeric": 0.01, "relative": 0, "columns": {"n": 1}},
            expected=Table(("n",), ((99,),)),
            extra_columns=True,
            metadata={"ticket": 7},
            min_pass_rate=0.8,
            timeout=60.0,
            marks=("slow",),
            line=6,
        ),
        GoldenCase(
            id="refund_window",
            question="How long do I have to return shoes?",
            inputs={"history": ["hi", {"role": "user"}], "tenant": "acme"},
            result_kind=ResultKind.TEXT,
            match="contains",
            expected=["30 days", "1.0"],
            ignore_case=True,
            min_score=1.0,
            skip="no agent yet",
            line=17,
        ),
        GoldenCase(
            id="stale",
            question="Is it fresh?",
            result_kind=ResultKind.VERDICT,
            verdict_field="severity",
            expected=Table(("severity",), (("warn",),)),
            xfail="12",
            line=26,
        ),
        GoldenCase(id="12e4567", question="1.0", expected_sql="select 1", match="set", line=32),
    )


def test_files_of_other_tools_shape_load(write):
    """Block tables, ordered matches and verdicts with a table of one cell are read."""
    text = """\
cases:
  - id: by_status
    question: "Break down the orders."
    tags: [group-by]
    match: set
    tolerance: { numeric: 0.01 }
    expected:
      columns: [status, orders, revenue]
      rows:
        - [completed, 67, 1103.0]
        - [placed, null, true]

  - id: fresh
    question: "Report the verdict."
    match: scalar
    tolerance: { numeric: 0.0 }
    result_kind: verdict
    verdict_field: fresh
    expected: { columns: [fresh], rows: [[true]] }
"""
    first, second = load_golden(write(text)).cases
    rows = (("completed", 67, 1103.0), ("placed", None, True))
    assert first.expected == Table(("status", "orders", "revenue"), rows)
    assert second.expected == Table(("fresh",), ((True,),))


def test_json_and_json_lines_are_read_by_the_same_rules(write):
    """A JSON file, JSON Lines and YAML give the same cases; JSON has numbers as written too."""
    cases = '[{"id": 1.0, "question": "q", "expected": {"columns": [1], "rows": [[9007199254740993]]}}]'
    expected = GoldenCase(id="1.0", question="q", expected=Table(("1",), ((9007199254740993,),)), line=1)
    for text, name in (
        (f'{{"cases": {cases}}}', "a.json"),
        (cases[1:-1], "a.jsonl"),
        (f"cases: {cases}", "a.yml"),
    ):
        assert load_golden(write(text, name)).cases == (expected,)


def test_json_may_name_its_schema(write):
    """``$schema`` is how editors find the schema of a JSON file, so it is no unknown key."""
    assert load_golden(write('{"$schema": "x.json", "cases": []}', "a.json")).cases == ()


def test_byte_order_mark_is_skipped(write):
    """A UTF-8 byte order mark is no part of a file, whatever its format."""
    for name, text in (("a.yaml", "cases: []"), ("a.json", '{"cases": []}'), ("a.jsonl", json.dumps(CASE))):
        assert load_golden(write(codecs.BOM_UTF8 + text.encode(), name)).path == name


def test_verdict_may_be_written_short():
    """``expected: true`` stands for a table of the verdict field alone."""
    case = GoldenCase.from_dict({**CASE, "result_kind": "verdict", "expected": True})
    assert case.expected == Table(("fresh",), ((True,),))
    assert case.match == "scalar"


@pytest.mark.parametrize(
    ("kind", "expected", "read"),
    [
        ("text", "x", "x"),
        ("text", 30, "30"),
        ("text", ["a", 1.5], ["a", "1.5"]),
        ("text", {"any": ["a", "b"]}, {"any": ["a", "b"]}),
        ("json", None, None),
        ("json", {"a": [1, None]}, {"a": [1, None]}),
        ("json", "x", "x"),
    ],
)
def test_text_and_json_expectations_are_kept(kind, expected, read):
    """Texts are texts, JSON values are JSON values, and the match mode is exact by default."""
    case = GoldenCase.from_dict({**CASE, "result_kind": kind, "expected": expected})
    assert (case.expected, case.match) == (read, "exact")


def test_custom_scorer_may_expect_anything():
    """Any other match of a text is a scorer's name, whose expectation only the scorer knows."""
    case = GoldenCase.from_dict(
        {**CASE, "result_kind": "text", "match": "rubric", "expected": {"points": [1, {"x": 2}]}}
    )
    assert case.expected == {"points": [1, {"x": 2}]}


def test_null_is_the_same_as_absent():
    """A null leaves an optional key unset, as tools write it for what they have nothing for."""
    optional = ["tags", "tolerance", "inputs", "metadata", "min_pass_rate", "min_score", "timeout", "marks"]
    assert GoldenCase.from_dict(
        {**CASE, **dict.fromkeys([*optional, "expected_sql"])}
    ) == GoldenCase.from_dict(CASE)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": None}, "`id` is empty"),
        ({"id": " "}, "`id` is empty"),
        ({"id": ["a"]}, "`id` is a list: write a text"),
        ({"question": ""}, "`question` is empty"),
        ({"question": {}}, "`question` is a mapping"),
        ({"tags": "easy"}, "`tags` is the text 'easy': write a list"),
        ({"tags": [["x"]]}, "`tags[0]` is a list"),
        ({"tags": [""]}, "`tags[0]` is empty"),
        ({"match": "sett"}, "unknown `match` 'sett' for a table: did you mean 'set'?"),
        ({"match": "contains"}, "unknown `match` 'contains' for a table: write scalar, set or ordered"),
        ({"match": ["set"]}, "`match` is a list"),
        ({"match": None}, "`match` is empty"),
        ({"result_kind": "verdicts"}, "`result_kind` is the text 'verdicts': did you mean 'verdict'?"),
        ({"result_kind": 3}, "`result_kind` is the int 3: write table, verdict, text or json"),
        ({"verdict_field": "freshness"}, "`verdict_field` is the text 'freshness': did you mean 'fresh'?"),
        ({"extra_columns": True}, "`extra_columns` is the bool true: write forbid or allow"),
        ({"ignore_case": "true"}, "`ignore_case` is the text 'true': write true or false"),
        ({"inputs": [1]}, "`inputs` is a list: write a mapping"),
        ({"metadata": "x"}, "`metadata` is the text 'x': write a mapping"),
        ({"metadata": {"a": [float("nan")]}}, '.nan is no JSON number: write the text "NaN"'),
        ({"tolerance": 0.1}, "`tolerance` is the float 0.1: write a mapping, tolerance: {numeric: 0.01}"),
        ({"tolerance": {"numeric": -1}}, "`tolerance.numeric` is the int -1, out of range"),
        ({"tolerance": {"relative": float("inf")}}, "`tolerance.relative` is the float .inf, out of range"),
        ({"tolerance": {"numeric": float("nan")}}, "`tolerance.numeric` is the float .nan, out of range"),
        ({"tolerance": {"numeric": 10**400}}, "out of range"),
        ({"tolerance": {"numeric": True}}, "`tolerance.numeric` is the bool true: write a number"),
        ({"tolerance": {"numeric": "0.1"}}, "`tolerance.numeric` is the text '0.1'"),
        ({"tolerance": {"numeric": None}}, "`tolerance.numeric` is empty"),
        ({"tolerance": {"columns": [1]}}, "`tolerance.columns` is a list"),
        ({"tolerance": {"columns": {"n": "x"}}}, "`tolerance.columns.n` is the text 'x'"),
        ({"tolerance": {"columns": {"m": 1}}}, "names 'm', which `expected.columns` has not: it has n"),
        ({"tolerance": {"abs": 1}}, "unknown key 'abs' in `tolerance`: remove it"),
        (
            {"min_pass_rate": 1.01},
            "`min_pass_rate` is the float 1.01, out of range: write a number from 0 to 1",
        ),
        ({"min_score": -0.5}, "`min_score` is the float -0.5, out of range"),
        ({"min_score": "1"}, "`min_score` is the text '1'"),
        ({"timeout": 0}, "`timeout` is the int 0, out of range: write a number of seconds above 0"),
        ({"timeout": "60s"}, "`timeout` is the text '60s'"),
        ({"skip": False}, "`skip` is the bool false: write why"),
        ({"xfail": None}, "`xfail` is empty: write why"),
        ({"skip": ["x"]}, "`skip` is a list"),
        ({"marks": ["a b"]}, "the mark 'a b' is no name"),
        ({"marks": ["_x"]}, "the mark '_x' is no name"),
        ({"expected": None}, "`expected` is empty: write expected: {columns: [n], rows: [[99]]}"),
        ({"expected": 99}, "`expected` is the int 99: write {columns: [n], rows: [[99]]}"),
        ({"expected": {"columns": ["n"]}}, "`expected.rows` is missing"),
        ({"expected": {"rows": 1}}, "`expected.rows` is the int 1"),
        ({"expected": {"rows": [99]}}, "`expected.rows[0]` is the int 99: write a list"),
        ({"expected": {"columns": "n", "rows": [[1]]}}, "`expected.columns` is the text 'n'"),
        ({"expected": {"columns": [["n"]], "rows": [[1]]}}, "`expected.columns[0]` is a list"),
        (
            {"expected": {"row": [[1]], "rows": [[1]]}},
            "unknown key 'row' in `expected`: did you mean 'rows'?",
        ),
        ({"expected": {"rows": [[1], [2]]}}, "`expected` has 2 rows of 1 cells: scalar wants a single cell"),
        ({"expected": {"rows": [[1, 2]]}}, "`expected` has 1 rows of 2 cells"),
        ({"expected": {"rows": []}}, "`expected` has 0 rows"),
        ({"expected": {"rows": [[float("inf")]]}}, 'write the text "Infinity"'),
        ({"expected_sql": "select 1"}, "both `expected` and `expected_sql`: keep one"),
        ({"expected": None, "expected_sql": " "}, "`expected_sql` is empty"),
        ({"exepcted": 1}, "unknown key 'exepcted': did you mean 'expected'?"),
        ({"<<": {}}, "unknown key '<<': YAML 1.2 has no merge keys"),
        ({"zzz": 1}, "unknown key 'zzz': remove it, known are id, question"),
        ({"result_kind": "text", "expected": [["x"]]}, "`expected` is a list: write a text, a list of texts"),
        ({"result_kind": "text", "expected": {"any": "x"}}, "`expected` is a mapping: write a text"),
        ({"result_kind": "text", "match": "contains", "expected": ""}, "holds an empty text"),
        ({"result_kind": "text", "match": "contains", "expected": []}, "is an empty list"),
        ({"result_kind": "verdict", "expected": [1]}, "`expected` is a list"),
    ],
)
def test_fault_of_a_case_is_told(change, reason):
    """A value of a wrong kind is refused with what it is and what to write instead, and nothing else is."""
    (found,) = case_errors({**CASE, **change})
    assert reason in found


@pytest.mark.parametrize("key", ["id", "question", "expected"])
def test_missing_key_is_told(key):
    """A case without id, question or expectation is refused."""
    (found,) = case_errors({name: value for name, value in CASE.items() if name != key})
    assert "without" in found
    assert f"add {key}: " in found


def test_sql_expects_tables_only():
    """``expected_sql`` gives a table, so a case of another kind can't have it."""
    case = {"id": "a", "question": "q", "expected_sql": "select 1", "result_kind": "text"}
    assert case_errors(case) == [
        "`expected_sql` gives a table, but `result_kind` is text: write `expected` instead"
    ]


@pytest.mark.parametrize("data", [None, [], "x", {1: 2}, {"id": {1}}, {**CASE, "inputs": {"a": 10**5000}}])
def test_from_dict_refuses_what_is_no_case(data):
    """Whatever isn't a mapping of JSON values is refused as a case, not with a Python error."""
    assert case_errors(data)


def test_from_dict_keeps_its_own_values():
    """A case doesn't change when the mapping that it was read from does."""
    data = {**CASE, "inputs": {"history": []}}
    case = GoldenCase.from_dict(data)
    data["inputs"]["history"].append("x")
    assert case.inputs == {"history": []}


def test_all_faults_are_reported_at_once_in_order(write):
    """One error carries every fault, each with line, case and remedy, ordered by line."""
    text = """\
datset: a
cases:
  - id: a
    question: q
    tolerance: {numeric: -1}
    tolerance: {numeric: 1}
    expected: {rows: [[!x 1]]}
  - question: q
    timout: 3
    expected: {rows: [[1]]}
  - id: a
    question: q
    expected: {rows: [[1]]}
"""
    assert errors_of(write(text)) == [
        "golden.yaml:1: unknown key 'datset' at the top level: did you mean 'dataset'?",
        "golden.yaml:6: case 'a': duplicate key 'tolerance', first on line 5: keep one of them",
        "golden.yaml:7: case 'a': unknown tag '!x': remove it, only YAML's core schema is read here",
        'golden.yaml:8: a case without `id`: add id: "..."',
        "golden.yaml:9: unknown key 'timout': did you mean 'timeout'?",
        "golden.yaml:11: case 'a': duplicate id, first on line 3: give each case its own",
    ]


def test_error_pickles(write):
    """An error with further faults survives the way between processes."""
    with pytest.raises(GoldenError) as caught:
        load_golden(write("cases: [1, 2]"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert [error.line for error in (copy, *copy.more)] == [1, 1]


def test_ids_are_compared_as_text(write):
    """``1`` and ``"1"`` are the same id, ``1`` and ``1.0`` are not."""
    case = "{{id: {}, question: q, expected: {{rows: [[1]]}}}}"
    assert errors_of(write(f"cases:\n- {case.format(1)}\n- {case.format(repr('1'))}")) == [
        "golden.yaml:3: case '1': duplicate id, first on line 2: give each case its own"
    ]
    cases = load_golden(write(f"cases:\n- {case.format(1)}\n- {case.format('1.0')}")).cases
    assert [case.id for case in cases] == ["1", "1.0"]


def test_equal_item_names_are_refused(write):
    """Two ids that give one test item's name would hide each other."""
    case = "- {{id: '{}', question: q, expected: {{rows: [[1]]}}}}\n"
    assert errors_of(write(f"cases:\n{case.format('a::b')}{case.format('a∷b')}")) == [
        "golden.yaml:3: case 'a∷b': its item name 'a∷b' is that of 'a::b' too, on line 2: rename one"
    ]


def test_repeated_alias_is_a_duplicate(write):
    """A case that stands twice by an alias is a duplicate id."""
    text = "cases:\n- &a {id: x, question: q, expected: {rows: [[1]]}}\n- *a\n"
    assert "duplicate id" in errors_of(write(text))[0]


@pytest.mark.parametrize(
    ("case_id", "name"),
    [
        ("a", "a"),
        ("a b[é]", "a b[é]"),
        ("a::b:::c", "a∷b∷:c"),
        ("\0\t\n\x1b\x7f\x9b", r"\x00\x09\x0a\x1b\x7f\x9b"),
        ("\u061c\u200e\u200f\u202e\u2066\u2069", r"\u061c\u200e\u200f\u202e\u2066\u2069"),
        ("\ud800x\udfff", r"\ud800x\udfff"),
        ("\u200d\u2028\xa0\ue000", "\u200d\u2028\xa0\ue000"),
    ],
)
def test_item_name_can_be_shown(case_id, name):
    """Only what breaks node ids, lines or the reading direction is rewritten."""
    assert item_name(case_id) == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "other: 1"),
        ("a.yaml", "---"),
        ("a.yaml", "[cases]"),
        ("a.yaml", "a: !Ref b\n---\n? [x]\n: y\n"),
        ("a.json", '{"case": []}'),
        ("a.json", '[{"cases": []}]'),
        ("a.jsonl", ""),
        ("a.jsonl", '{"id": "a", "question": "q"}'),
        ("a.jsonl", '{"id": "a", "expected": 1}\n{'),
        ("a.jsonl", "[1]"),
    ],
)
def test_files_of_others_are_left_alone(write, name, text):
    """A file without cases is no error where it was only found, and one where it was asked for."""
    assert load_if_golden(write(text, name)) is None
    assert errors_of(name)[0].startswith(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", ""),
        ("a.yaml", "cases: ["),
        ("a.yaml", b"\xff\xfec\0"),
        ("a.yaml", "cases: 1"),
        ("a.yaml", "x: 1\n---\ncases: []"),
        ("a.json", "{"),
        ("a.jsonl", '{"id": "a",'),
        ("a.jsonl", '\n{"id": "a", "question": "q", "expected": 1}\n{'),
    ],
)
def test_broken_file_is_reported_wherever_it_is_found(write, name, text):
    """A file that may be ours and can't be read is an error: its cases must not vanish unseen."""
    path = write(text, name)
    with pytest.raises(GoldenError) as caught:
        load_if_golden(path)
    assert str(caught.value) == "\n".join(errors_of(path))


def test_golden_file_is_recognised(write):
    """A file that was only found gives the same cases as one that was asked for."""
    path = write(SHOP)
    assert load_if_golden(path) == load_golden(path)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("case: []", "golden.yaml:1: no `cases` at the top level, which is a mapping of 'case': "),
        ("- a", "golden.yaml:1: no `cases` at the top level, which is a list: "),
        ("cases:", "golden.yaml:1: `cases` is empty: "),
        ("cases: {a: b}", "golden.yaml:1: `cases` is a mapping: "),
        ("cases: []\ndataset: [a]", "golden.yaml:2: `dataset` is a list: "),
        ("cases: []\ncontext_version: {}", "golden.yaml:2: `context_version` is a mapping: "),
        ("cases: []\nmetadata: 1", "golden.yaml:2: `metadata` is the int 1: "),
        ("cases:\n- 17", "golden.yaml:2: a case is the int 17: "),
        ("cases: []\n---\na: 1", "golden.yaml:2: a second document begins here: "),
        (
            "cases:\n- id: '\xe9".encode("latin-1"),
            "golden.yaml:2: is not UTF-8 (byte 0xe9): save it as UTF-8",
        ),
        ("cases:\n- id: '\x07'", "golden.yaml:2: is no YAML: it holds the character U+0007"),
    ],
)
def test_fault_of_a_file_is_told(write, text, error):
    """A fault outside of a case is told with its line, and names no case."""
    (found,) = errors_of(write(text))
    assert found.startswith(error)


def test_fault_after_the_cases_is_of_no_case(write):
    """A duplicate key below the cases isn't laid at the last one's door."""
    case = "- {id: a, question: q, expected: {rows: [[1]]}}"
    (found,) = errors_of(write(f"dataset: x\ncases:\n{case}\ndataset: y\n"))
    assert found.startswith("golden.yaml:4: duplicate key 'dataset'")


def test_fault_on_a_line_of_many_cases_is_of_no_case(write):
    """Where a JSON file is one line, a parser's fault may be of any case, so none is named."""
    text = '{"cases": [{"id": "a", "id": "b", "question": "q", "expected": {"rows": [[1]]}}, {"id": "c"}]}'
    assert errors_of(write(text, "a.json"))[0].startswith("a.json:1: duplicate key 'id'")


def test_broken_line_of_json_lines_is_one_of_all_faults(write):
    """In JSON Lines a broken line doesn't hide the faults of the others."""
    lines = [json.dumps(CASE), "", "{", json.dumps(CASE)]
    first, second = errors_of(write("\n".join(lines), "a.jsonl"))
    assert first.startswith("a.jsonl:3: is no JSON: ")
    assert second == "a.jsonl:4: case 'a': duplicate id, first on line 1: give each case its own"


def test_unreadable_path_is_told(tmp_path):
    """A path that can't be read, or whose format is unknown, is an error of that path."""
    text = tmp_path / "cases.txt"
    text.write_text("cases: []")
    assert "tells no format: name it .yaml, .yml, .json, .jsonl" in errors_of(text)[0]
    for path in (tmp_path / "none.yaml", tmp_path, f"{tmp_path}/a\0.yaml"):
        assert "can't be read" in errors_of(path)[0]


def test_path_is_told_as_given(write, tmp_path):
    """Errors name the path as the user gave it, relative or not."""
    write("cases: 1")
    assert errors_of("./golden.yaml")[0].startswith("./golden.yaml:1: ")
    assert errors_of(tmp_path / "golden.yaml")[0].startswith(f"{tmp_path}/golden.yaml:1: ")


def test_huge_texts_do_not_flood_messages(write):
    """A value of any length is cut where a message shows it."""
    (found,) = errors_of(write(f"cases:\n- {{id: a, question: q, expected: {{rows: [[{'9' * 10**6}]]}}}}"))
    assert len(found) < 200
