"""Bad input of every kind, in every way a run is made: a clear message, pytest's exit code, nothing lost."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .conftest import Project

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
LONE = "\ud83d"
NOISE = f"{ESCAPE}{LONE}\r\u202e"
ONE_CELL = {"columns": ["n"], "rows": [[1]]}

AGENT = """
import asyncio
import json
import pathlib
import sys
import threading

import pytest
from collections import UserDict
from pytest_ctxfp import AgentResult

NOISE = "\\x1b]0;owned\\x07\\x1b[2J\\ud83d\\r\\u202e"
TABLE = {"columns": ["n"], "rows": [[1]]}


class Textless(Exception):
    def __str__(self): raise RuntimeError(NOISE)


class Unpicklable(Exception):
    def __init__(self, first, second):
        super().__init__(first)
        self.lock = threading.Lock()


class Lazy:
    def __getattr__(self, name): raise RuntimeError("lazy " + NOISE)


class Hostile(UserDict):
    def items(self): raise KeyError(NOISE)


def throw(error): raise error


async def throw_later(error): raise error


async def cancel_itself(): raise asyncio.CancelledError(NOISE)


async def sleep_long(): await asyncio.sleep(60)


def released():
    view = memoryview(b"x")
    view.release()
    return view


DO = {
    "raises noise": lambda: throw(ValueError("bad " + NOISE)),
    "raises control characters": lambda: throw(ValueError("a\\0b\\x08c\\x9b2J")),
    "raises many lines": lambda: throw(ValueError("line\\n" * 100_000)),
    "raises a long line": lambda: throw(ValueError("x" * 1_000_000)),
    "raises a textless error": lambda: throw(Textless()),
    "raises an unpicklable error": lambda: throw(Unpicklable(1, 2)),
    "raises an oddly named error": lambda: throw(type("Odd\\x1b[2J", (Exception,), {})()),
    "raises later": lambda: throw_later(ValueError("bad " + NOISE)),
    "raises StopIteration": lambda: throw(StopIteration(3)),
    "exits": lambda: sys.exit(NOISE),
    "exits with 0": lambda: sys.exit(0),
    "exits later": lambda: throw_later(SystemExit(NOISE)),
    "cancels itself": cancel_itself,
    "times out": sleep_long,
    "fails by pytest": lambda: pytest.fail("failed " + NOISE),
    "skips by pytest": lambda: pytest.skip("skipped " + NOISE),
    "xfails by pytest": lambda: pytest.xfail("xfailed " + NOISE),
    "returns nothing": lambda: None,
    "returns a set": lambda: {1},
    "returns an object": lambda: object(),
    "returns a class": lambda: dict,
    "returns bytes that are no text": lambda: b"\\xff\\xfe",
    "returns a generator": lambda: (i for i in range(3)),
    "returns a lazy object": lambda: Lazy(),
    "returns a hostile mapping": lambda: Hostile(a=1),
    "returns a released buffer": released,
    "returns keys that are no texts": lambda: {1: 2},
    "returns a huge integer": lambda: {"rows": [[10**5000]]},
    "returns a set in a cell": lambda: {"rows": [[{1}]]},
    "answers with a cost that is no number": lambda: AgentResult(TABLE, cost=NOISE),
    "answers with a cost that is NaN": lambda: AgentResult(TABLE, cost=float("nan")),
    "answers with an object as latency": lambda: AgentResult(TABLE, latency_ms=object()),
    "answers with bytes as SQL": lambda: AgentResult(TABLE, sql=b"x"),
    "answers with a set as tool calls": lambda: AgentResult(TABLE, tool_calls={1}),
    "says prose": lambda: "There are many, I think. " + NOISE,
    "says nothing": lambda: "",
    "says megabytes": lambda: {"columns": ["n"], "rows": [["y" * 1_000_000]]},
    "says noise in a cell": lambda: {"columns": ["n" + NOISE], "rows": [[NOISE]]},
    "says NaN": lambda: float("nan"),
    "says NaN in a cell": lambda: {"rows": [[float("nan")]]},
    "says a bare integer": lambda: 1,
    "answers": lambda: TABLE,
    "answers in bytes": lambda: b'{"rows": [[1]]}',
    "answers with noise beside": lambda: AgentResult(
        TABLE, served_model=NOISE, sql=NOISE, tool_calls=[NOISE], turns=10**30, latency_ms=10**25
    ),
}


@pytest.fixture
def ctx_agent():
    return lambda question: DO[question]()


@pytest.fixture
def ctx_model(): return "model " + NOISE
"""
BEHAVIOURS = [line.split('"')[1] for line in AGENT.splitlines() if line.startswith('    "')]


def write_cases(project: Project, cases: Iterable[dict[str, object]], name: str = "golden.json") -> None:
    """Replace the project's golden file by one of cases that expect a single 1 unless they say otherwise."""
    (project.path / "golden.yaml").unlink(missing_ok=True)
    whole = [{"question": "answers", "match": "scalar", "expected": ONE_CELL, **case} for case in cases]
    project.write(name, json.dumps({"cases": whole}))


@pytest.fixture
def odd_project(project: Project) -> Project:
    """A project whose agent does what the question says, a case for each thing it can do."""
    project.write("conftest.py", AGENT)
    project.write("pytest.ini", "[pytest]\nctx_agent_paths = agent\naddopts = -p no:cacheprovider\n")
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nfilterwarnings = error\n")
    write_cases(project, ({"id": what, "question": what, "timeout": 0.2} for what in BEHAVIOURS))
    return project


def output_of(result: pytest.RunResult) -> str:
    """Return all that a run printed, which holds nothing raw and tells of no internal error."""
    output = f"{result.stdout.str()}\n{result.stderr.str()}"
    assert "INTERNALERROR" not in output
    assert "crashed" not in output
    assert not set(output) & {"\x1b", "\x07", "\x9b", "\x08", "\x00", "\u202e", LONE}
    return output


def outcome_of(what: str) -> str:
    """Return the outcome that pytest must give to what the agent does."""
    if what.endswith("by pytest"):
        return {"f": "errors", "s": "skipped", "x": "xfailed"}[what[0]]
    return {"answers": "passed", "says": "failed"}.get(what.split(maxsplit=1)[0], "errors")


def test_whatever_an_agent_does_is_told_case_by_case(odd_project: Project, how: list[str]) -> None:
    """What an agent raises is an error, never a failure; every case is told, and nothing raw is printed."""
    result = odd_project.run(*how, "--ctx-cache", "-rA", "--junit-xml=junit.xml")
    counts = dict.fromkeys(map(outcome_of, BEHAVIOURS), 0)
    for what in BEHAVIOURS:
        counts[outcome_of(what)] += 1
    result.assert_outcomes(**counts)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    output = output_of(result)
    assert "the agent raised ValueError: bad \\x1b]0;owned\\x07\\x1b[2J\\ud83d" in output
    assert "the agent raised SystemExit: 0" in output
    assert "no answer within its timeout of 0.2 s" in output
    assert "the agent returned nothing" in output
    assert "no table in the answer: 'There are many" in output
    assert max(map(len, output.splitlines())) < 5_000
    assert len(output.splitlines()) < 1_500
    cases = ET.parse(odd_project.path / "junit.xml").getroot().findall(".//testcase")
    assert {case.get("name") for case in cases} == set(BEHAVIOURS)


def test_errors_are_not_stored_and_all_else_is(odd_project: Project) -> None:
    """After a run in which much went wrong just the answers are stored, and the next run replays them."""
    odd_project.run("--ctx-cache")
    n_answers = sum(outcome_of(what) in {"passed", "failed"} for what in BEHAVIOURS)
    assert len(odd_project.traces()) == n_answers
    result = odd_project.run("--ctx-cache", "-k", "answers or says", "-v")
    output_of(result)
    result.stdout.fnmatch_lines([f"answers * {n_answers} hit, 0 miss; *"])


FAULTY = r"""datset: shop
cases:
  - {id: unknown, question: q, expectd: 1, expected: {rows: [[1]]}}
  - {id: twice, question: q, question: p, expected: {rows: [[1]]}}
  - {id: same, question: q, expected: {rows: [[1]]}}
  - {id: "same", question: q, expected: {rows: [[1]]}}
  - {id: bare, question: q}
  - {id: wide, question: q, match: scalar, expected: {rows: [[1, 2]]}}
  - {id: negative, question: q, tolerance: {numeric: -1}, expected: {rows: [[1]]}}
  - {id: "\x1b[2J\x1b[2J\x1b[2J", question: q, match: fuzzy, expected: {rows: [[1]]}}
  - {id: marked, question: q, marks: ["no name"], expected: {rows: [[1]]}}
  - {id: "a::b", question: q, expected: {rows: [[1]]}}
  - {id: a∷b, question: q, expected: {rows: [[1]]}}
"""
FAULTY_LINES = [
    "golden.yaml:1: unknown key 'datset' at the top level: did you mean 'dataset'?",
    "golden.yaml:3: case 'unknown': unknown key 'expectd': did you mean 'expected'?",
    "golden.yaml:4: case 'twice': duplicate key 'question', first on line 4: keep one of them",
    "golden.yaml:6: case 'same': duplicate id, first on line 5: give each case its own",
    "golden.yaml:7: case 'bare': a case without an expectation: add expected: *",
    "golden.yaml:8: case 'wide': `expected` has 1 rows of 2 cells: scalar wants a single cell*",
    "golden.yaml:9: case 'negative': `tolerance.numeric` is *: write a number of at least 0",
    "golden.yaml:10: case '\\x1b[[]2J*': unknown `match` 'fuzzy' for a table: write *",
    "golden.yaml:11: case 'marked': the mark 'no name' is no name: *",
    "golden.yaml:13: case 'a∷b': its item name 'a∷b' is that of 'a::b' too, on line 12: rename one",
]


def bomb(n_levels: int) -> str:
    """Return a YAML text whose aliases stand for ten to the power of ``n_levels`` nodes."""
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, n_levels)]
    return "\n".join([*lines, "cases: []\n"])


UNREADABLE = {
    "golden_bomb.yaml": (bomb(9).encode(), "golden_bomb.yaml*: *100,000 *"),
    "golden_latin.yaml": (b"cases:\n  - {id: \xe4}\n", "golden_latin.yaml:2: is not UTF-8 (byte 0xe4): *"),
    "golden_empty.yaml": (b"", "golden_empty.yaml*: *empty*"),
    "golden_two.yaml": (b"cases: []\n---\ncases: []\n", "golden_two.yaml*: *document*"),
    "golden_broken.yaml": (b"cases: [\n", "golden_broken.yaml:*: *"),
    "golden_tag.yaml": (b"cases: !!python/object:os.system []\n", "golden_tag.yaml:1: *"),
    "golden_nul.yaml": (b"cases:\n  - {id: a\0b}\n", "golden_nul.yaml*: *"),
    "golden_deep.yaml": (b"cases: " + b"[" * 5000 + b"]" * 5000, "golden_deep.yaml:1: *nesting*"),
    "golden_broken.json": (b'{"cases": [\n}', "golden_broken.json:2: is no JSON: *"),
    "golden_nan.json": (b'{"cases": [{"id": NaN}]}', "golden_nan.json:1: *NaN*"),
    "golden_deep.json": (b'{"cases": ' + b"[" * 100_000, "golden_deep.json*: *"),
    "golden_lines.jsonl": (b'{"question": "q", "expected": 1}\n{"id"\n', "golden_lines.jsonl:2: *"),
}


def test_all_faults_of_a_golden_file_are_told_at_once(project: Project, how: list[str]) -> None:
    """Every fault is told with its line and case, without a traceback; only xdist then goes on."""
    project.write("golden.yaml", FAULTY)
    project.write("test_fine.py", "def test_fine(): pass\n")
    result = project.run(*how)
    result.stdout.fnmatch_lines(FAULTY_LINES)
    assert "Traceback" not in output_of(result)
    assert "pytest_ctxfp" not in result.stdout.str()
    if how == ["-n2"]:
        result.assert_outcomes(errors=1, passed=1)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
    else:
        result.assert_outcomes(errors=1)
        assert result.ret == pytest.ExitCode.INTERRUPTED


def test_unreadable_golden_files_stop_nothing_else(project: Project) -> None:
    """With ``--continue-on-collection-errors`` each unreadable file is one error and all tests run."""
    for name, (data, _) in UNREADABLE.items():
        (project.path / name).write_bytes(data)
    project.write("test_fine.py", "def test_fine(): pass\n")
    result = project.run("--continue-on-collection-errors")
    output = output_of(result)
    assert "Traceback" not in output
    for _, line in UNREADABLE.values():
        result.stdout.fnmatch_lines([line])
    result.assert_outcomes(errors=len(UNREADABLE), passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("flags", [("--strict-markers",), ("-W", "error")])
def test_refused_marks_are_told_at_their_cases(project: Project, flags: list[str]) -> None:
    """A mark that pytest refuses is a fault of its case, with file and line."""
    write_cases(project, [{"id": "a", "marks": ["unheard_of"]}, {"id": "b", "marks": ["slwo"]}])
    result = project.run(*flags)
    result.stdout.fnmatch_lines(["golden.json:1: case 'a': *unheard_of*", "golden.json:1: case 'b': *slwo*"])
    result.assert_outcomes(errors=1)
    output_of(result)


@pytest.mark.parametrize("glob", ["/abs/*.yaml", "", "nothing.*", "**x", "\ud83d\x1b[2J"])
def test_globs_of_a_marker_that_match_nothing(project: Project, glob: str) -> None:
    """A marker whose glob is wrong or matches nothing is a collection error; nothing else is lost."""
    project.write(
        "test_marked.py",
        f"import pytest\n@pytest.mark.ctx_golden({glob!a})\ndef test_it(ctx_case): pass\n",
    )
    result = project.run("--continue-on-collection-errors")
    result.assert_outcomes(errors=1, passed=2)
    result.stdout.fnmatch_lines(["marker ctx_golden(*"])
    assert "Traceback" not in output_of(result)


def test_markers_that_run_no_case_take_none_away(project: Project) -> None:
    """Plain items stay where the marked test has no ``ctx_case``, or where a closer marker is used."""
    write_cases(project, [{"id": "other", "question": "How many orders?", "expected": {"rows": [[99]]}}])
    project.write("golden.yaml", "cases: [{id: a, question: How many orders?, expected: {rows: [[99]]}}]\n")
    project.write(
        "test_marked.py",
        """
import pytest

@pytest.mark.ctx_golden("/absolute/*.yaml")
def test_without_case(): pass

@pytest.mark.ctx_golden("golden.yaml")
class TestMarked:
    @pytest.mark.ctx_golden("golden.json")
    def test_with_case(self, ctx_case): pass
""",
    )
    result = project.run("-v")
    result.assert_outcomes(passed=3, deselected=1)
    output_of(result)


def test_golden_file_in_a_folder_with_an_odd_name(project: Project) -> None:
    """Folders may be named in any script, with spaces and quotes."""
    folder = "gölden 🎉 it's (1)"
    (project.path / folder).mkdir()
    (project.path / "golden.yaml").rename(project.path / folder / "golden.yaml")
    project.run().assert_outcomes(passed=2)
    project.run(f"{folder}/golden.yaml::orders").assert_outcomes(passed=1)
    project.answer({"How many orders?": 98})
    project.run("--ctx-cache")
    result = project.run("--ctx-cache", f"{folder}/golden.yaml::orders")
    result.stdout.fnmatch_lines(["ask again * --ctx-refresh"])
    result.assert_outcomes(failed=1)
    output_of(result)


IDS = [
    *("a::b", "::", "()", "()::x", "a[b]", "[x", "x]", "[]", 'it\'s "so"', "🎉", "x" * 300, "../../up"),
    *(
        "/abs/path",
        "C:\\x\\y",
        "\\",
        f"esc {ESCAPE}",
        f"lone {LONE}",
        "tab\tline\n",
        "a\rb",
        "a\u2028b",
        "\u202e",
    ),
    *("-k", "--co", "@group", "%s {} $X `id`", "'; exit 1 #", "None", "e\u0301", "\ufffe", "<b>&amp;", " a "),
]


def test_odd_ids(odd_project: Project) -> None:
    """Cases of any id run, replay, fail, are told apart and stand in junit's file; nothing raw is printed."""
    cases = [{"id": case_id, "tags": [f"tag {case_id}"]} for case_id in IDS]
    cases[3:3] = [{"id": f"{case_id} fails", "expected": {"rows": [[2]]}} for case_id in IDS]
    write_cases(odd_project, cases)
    counts = {"passed": len(IDS), "failed": len(IDS)}
    result = odd_project.run("--ctx-cache", "-v", "-rA", "--junit-xml=junit.xml")
    result.assert_outcomes(**counts)
    output_of(result)
    assert len(odd_project.traces()) == 2 * len(IDS)
    assert len(ET.parse(odd_project.path / "junit.xml").getroot().findall(".//testcase")) == 2 * len(IDS)
    result = odd_project.run("--ctx-cache", "-q")
    result.assert_outcomes(**counts)
    result.stdout.fnmatch_lines([f"answers * {2 * len(IDS)} hit, 0 miss; *"])


@pytest.mark.parametrize("case_id", [case_id for case_id in IDS if "\u2028" not in case_id])
def test_a_case_is_selected_by_the_name_that_is_shown(odd_project: Project, case_id: str) -> None:
    """What ``--co -q`` prints is what selects that case."""
    write_cases(odd_project, [{"id": case_id}, {"id": "other"}])
    shown, *_ = odd_project.run("--co", "-q").outlines
    result = odd_project.run(shown)
    result.assert_outcomes(passed=1)
    output_of(result)


def test_keyword_expressions_reach_odd_ids(odd_project: Project, how: list[str]) -> None:
    """``-k`` matches parts of ids and tags that its syntax can spell."""
    write_cases(odd_project, [{"id": "a[ä]", "tags": ["größe"]}, {"id": "qqq::www"}, {"id": "🎉"}])
    for expression in ("größe", "ä", "qqq", "not www and not größe"):
        odd_project.run(*how, "-k", expression).assert_outcomes(
            passed=1, deselected=0 if how == ["-n2"] else 2
        )


def test_texts_of_a_case_are_printed_escaped(odd_project: Project) -> None:
    """Question, reasons, tags, columns, expectation and tolerance of a case reach the terminal escaped."""
    table = {"columns": [f"n{NOISE}"], "rows": [[NOISE]]}
    texts = {"question": f"says noise in a cell {NOISE}", "tags": [NOISE]}
    write_cases(
        odd_project,
        [
            {"id": "skip", "skip": NOISE, **texts},
            {"id": "xfail", **texts, "xfail": NOISE, "question": "says noise in a cell"},
            {"id": "fail", **texts, "question": "says noise in a cell", "expected": table},
            {
                "id": "tolerance",
                "question": "says noise in a cell",
                "expected": {"columns": [f"n{NOISE}"], "rows": [[1]]},
                "tolerance": {"columns": {f"n{NOISE}": 1}},
            },
            {
                "id": "verdict",
                "result_kind": "verdict",
                "expected": NOISE,
                "question": "says noise in a cell",
            },
            {"id": "unknown question", **texts},
        ],
    )
    result = odd_project.run("--ctx-cache", "-rA", "-vv", "--junit-xml=junit.xml")
    output_of(result)
    outcomes = result.parseoutcomes()
    assert (outcomes["skipped"], outcomes["xfailed"], outcomes["errors"]) == (1, 1, 1)
    ET.parse(odd_project.path / "junit.xml")


CONTEXTS = {
    "crlf": "## A\r\none\r\n## B\r\ntwo\r\n",
    "cr": "## A\rone\r## B\rtwo\r",
    "nul": "## A\none\0two\n## B\nthree\n",
    "separators": "## A\u2028one\n## B\ntwo\u2028## C\u2029\x85\x0b\x0c\n",
    "lone": f"## A {LONE}\none {LONE}\n## B\n\udc80\n",
    "noise": f"## A {ESCAPE}\n{ESCAPE}\n## B\n\u202e\n",
    "empty": "",
    "large": "## A\n" + "line\n" * 500_000 + "## B\n" + "x" * 2_500_000,
}
CONTEXT_FILE = """
import json, pathlib
HERE = pathlib.Path(__file__).parent
NAMES = {names!r}
def context_of(name): return json.loads((HERE / "contexts.json").read_text())[name]
"""
CONTEXT_CONFTEST = """
@pytest.fixture
def ctx_assembler(): return lambda inputs: context_of(inputs["name"])

@pytest.fixture
def ctx_agent(): return lambda context, inputs: {"columns": ["n"], "rows": [[1]]}
"""
SNAPSHOT_TEST = """
@pytest.mark.parametrize("name", NAMES)
def test_text(name, ctx_snapshot): ctx_snapshot.check(context_of(name))

@pytest.mark.parametrize("name", NAMES)
def test_bytes(name, ctx_snapshot):
    assert context_of(name).encode("utf-8", "surrogatepass") == ctx_snapshot

@pytest.mark.parametrize("name", NAMES)
def test_mapping(name, ctx_snapshot):
    ctx_snapshot.check({f"{name} \\x1b[2J\\ud83d": context_of(name)}, name=f"{name} \\x1b[2J\\ud83d")
"""


def write_contexts(project: Project, more: str = "") -> None:
    """Let the contexts of the project be those above, each with something more in its first line."""
    changed = {name: text.replace("A", f"A{more}", 1) or more for name, text in CONTEXTS.items()}
    project.write("contexts.json", json.dumps(changed))


def test_golden_cases_with_contexts_of_any_text(odd_project: Project) -> None:
    """Any text is a context: asked once, replayed, and asked again when a character of it changed."""
    source = CONTEXT_FILE.format(names=list(CONTEXTS))
    odd_project.write("conftest.py", f"import pytest\n{source}\n{CONTEXT_CONFTEST}")
    write_cases(odd_project, ({"id": name, "inputs": {"name": name}} for name in CONTEXTS))
    n = len(CONTEXTS)
    for more, counted in [
        ("", f"answers * 0 hit, {n} miss"),
        ("", f"answers * {n} hit, 0 miss; *"),
        (" more", f"answers * 0 hit, {n} miss"),
    ]:
        write_contexts(odd_project, more)
        result = odd_project.run("--ctx-cache")
        result.assert_outcomes(passed=n)
        result.stdout.fnmatch_lines([counted])
        output = output_of(result)
    assert "context: A more" in output


def test_snapshots_of_contexts_of_any_text(odd_project: Project) -> None:
    """Any text is stored, matches itself, and fails with its layer's name when a character changed."""
    source = CONTEXT_FILE.format(names=list(CONTEXTS))
    odd_project.write("test_contexts.py", f"import pytest\n{source}\n{SNAPSHOT_TEST}")
    n = 3 * len(CONTEXTS)
    for more, flags, outcomes in [
        ("", ["--ctx-snapshot-create"], {"passed": n}),
        ("", [], {"passed": n}),
        (" more", [], {"failed": n}),
        (" more", ["--ctx-snapshot-update"], {"passed": n}),
        (" more", [], {"passed": n}),
    ]:
        write_contexts(odd_project, more)
        result = odd_project.run("test_contexts.py", "-vv", *flags)
        result.assert_outcomes(**outcomes)
        assert result.ret == (1 if "failed" in outcomes else 0)
        output = output_of(result)
        assert max(map(len, output.splitlines())) < 5_000


CACHE_FAULTS = {
    "no folder can be made": 'patch.setattr(pathlib.Path, "mkdir", refuse)',
    "no file can be opened": 'patch.setattr(builtins, "open", refuse_open)',
    "no file can be moved": 'patch.setattr(os, "replace", refuse)',
    "the disk is full": 'patch.setattr(os, "fsync", refuse)',
}
CACHE_PATCH = """
import builtins, errno, os
really_open = open

def refuse(*args, **options): raise OSError(errno.EROFS, "Read-only file system", "\\x1b[2J.ctxfp")

def refuse_open(path, *args, **options):
    return refuse() if ".ctxfp" in str(path) else really_open(path, *args, **options)

@pytest.fixture(scope="session", autouse=True)
def break_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        {fault}
        yield
"""


@pytest.mark.parametrize("fault", CACHE_FAULTS.values(), ids=CACHE_FAULTS)
def test_cache_that_cannot_be_written(project: Project, fault: str) -> None:
    """Answers that can't be stored are scored all the same; the summary says that and why."""
    conftest = (project.path / "conftest.py").read_text(encoding="utf-8")
    project.write("conftest.py", conftest + CACHE_PATCH.format(fault=fault))
    result = project.run("--ctx-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*2 answers could not be stored: *Read-only file system"])
    output_of(result)
    assert project.traces() == []
    assert not list(project.path.glob(".ctxfp/**/*.tmp"))


def test_cache_that_is_a_file(project: Project) -> None:
    """A file in the place of the cache is a usage error before anything is asked."""
    project.write(".ctxfp/traces", "not a folder")
    result = project.run("--ctx-cache")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "is not a folder: name one with --ctx-cache-dir" in output_of(result)
    assert project.calls() == []


BROKEN_TRACES = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "not UTF-8": lambda data: b"\xff" + data,
    "NUL": lambda data: bytes(len(data)),
    "noise": lambda _: b'{"case_id": "\x1b[2J"}',
    "a list": lambda _: b"[]",
    "deep": lambda _: b"[" * 100_000,
    "of another version": lambda data: data.replace(b'"format": 1', b'"format": 2'),
    "of another question": lambda data: data.replace(b'"question": "answers"', b'"question": "other"'),
}


def test_corrupt_traces_are_asked_again(odd_project: Project) -> None:
    """A trace that can't be trusted is named, counted, asked again and replaced."""
    write_cases(odd_project, ({"id": damage} for damage in BROKEN_TRACES))
    odd_project.run("--ctx-cache")
    for path, damage in zip(odd_project.traces(), BROKEN_TRACES.values(), strict=True):
        path.write_bytes(damage(path.read_bytes()))
    n = len(BROKEN_TRACES)
    result = odd_project.run("--ctx-cache")
    result.assert_outcomes(passed=n)
    result.stdout.fnmatch_lines([f"answers * 0 hit, {n} miss, {n} corrupt", "warning * corrupt, *"])
    output_of(result)
    odd_project.run("--ctx-cache").stdout.fnmatch_lines([f"answers * {n} hit, 0 miss; *"])


def test_traces_renamed_to_each_others_keys(project: Project) -> None:
    """Traces that changed names are never taken for an answer, even where no call is allowed."""
    project.run("--ctx-cache")
    first, second = project.traces()
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    result = project.run("--ctx-on-miss=fail")
    result.assert_outcomes(errors=2)
    assert "holds the answer to another key" in output_of(result)


def test_traces_that_are_no_files(project: Project) -> None:
    """A folder in the place of a trace stops nothing: its answer can't be stored, and is scored."""
    project.run("--ctx-cache")
    first, _ = project.traces()
    first.unlink()
    first.mkdir()
    result = project.run("--ctx-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["answers * 1 hit, 1 miss, 1 corrupt*", "*1 answer could not be stored: *"])
    output_of(result)


ASSEMBLED = {
    "an integer": "5",
    "nothing": "None",
    "a set": "{1}",
    "NaN": "float('nan')",
    "keys that are no texts": "{1: 'x'}",
    "texts that are none": "{'x': 1}",
    "a list": "['x']",
    "a hostile mapping": "Hostile(a=1)",
    "a lazy object": "Lazy()",
    "a coroutine that raises": "throw_later(ValueError(NOISE))",
    "an exit": "sys.exit(NOISE)",
}


def test_assemblers_that_build_no_context(odd_project: Project) -> None:
    """What is no context is an error of the case that says so, and nobody is asked."""
    returns = ", ".join(f"{what!r}: lambda: {code}" for what, code in ASSEMBLED.items())
    conftest = (odd_project.path / "conftest.py").read_text(encoding="utf-8")
    odd_project.write(
        "conftest.py",
        f"{conftest}\nRETURNS = {{{returns}}}\n\n"
        "@pytest.fixture\ndef ctx_assembler(): return lambda question: RETURNS[question]()\n\n"
        "@pytest.fixture\ndef ctx_agent(): raise AssertionError('the agent was built')\n",
    )
    write_cases(odd_project, ({"id": what, "question": what} for what in ASSEMBLED))
    result = odd_project.run("--ctx-cache")
    result.assert_outcomes(errors=len(ASSEMBLED))
    output = output_of(result)
    assert output.count(" - the assembler r") + output.count(" - what the assembler r") == len(ASSEMBLED)
    assert "the agent was built" not in output
    assert odd_project.traces() == []


FIXTURES = {
    "agent that is none": "def ctx_agent(): return 5",
    "agent with arguments nobody has": "def ctx_agent(): return lambda wish: 1",
    "agent that raises": "def ctx_agent(): raise ValueError(NOISE)",
    "agent that exits": "def ctx_agent(): raise SystemExit(NOISE)",
    "agent that stops": "def ctx_agent(): raise StopIteration(NOISE)",
    "agent that asks for a missing fixture": "def ctx_agent(missing): return lambda: 1",
    "model that is none": "def ctx_model(): return 5",
    "key that is none": "def ctx_agent_key(): return [1]",
    "key with a set": "def ctx_agent_key(): return {'params': {'a': {1}}}",
    "key with NaN": "def ctx_agent_key(): return {'params': {'a': float('nan')}}",
    "key with noise": "def ctx_agent_key(): return {'backend': NOISE}",
    "key with a part that none has": "def ctx_agent_key(): return {NOISE: 1}",
    "assembler that is none": "def ctx_assembler(): return 5",
    "teardown that raises": "def ctx_agent():\n    yield DO['answers']\n    raise ValueError(NOISE)",
    "autouse fixture that raises": "def other(): raise ValueError(NOISE)",
    "autouse fixture whose teardown raises": "def other():\n    yield\n    raise ValueError(NOISE)",
}


def test_fixtures_that_give_what_cannot_be_used(odd_project: Project) -> None:
    """Each case in a folder with a broken fixture is one error, told without anything raw."""
    for i, (what, code) in enumerate(FIXTURES.items()):
        folder = f"folder{i}"
        write_cases(odd_project, [{"id": what}], f"{folder}/golden.json")
        odd_project.write(
            f"{folder}/conftest.py",
            f"import pytest\nNOISE = {NOISE!a}\nDO = {{'answers': lambda: {{'rows': [[1]]}}}}\n"
            f"@pytest.fixture{'(autouse=True)' * what.startswith('autouse')}\n{code}\n",
        )
    write_cases(odd_project, [{"id": "fine"}])
    result = odd_project.run("--ctx-cache", "-rA")
    n_torn_down = sum("teardown" in what for what in FIXTURES)
    output = output_of(result)
    result.assert_outcomes(errors=len(FIXTURES), passed=1 + n_torn_down)
    assert "never awaited" not in output


def test_agent_that_is_interrupted(odd_project: Project) -> None:
    """Ctrl-C in an agent, called or awaited, ends the run as pytest does; the answers given are kept."""
    for what in ("raise KeyboardInterrupt", "pytest.exit('enough')"):
        for prefix in ("", "async "):
            odd_project.write(
                "conftest.py",
                f"import pytest\n@pytest.fixture\ndef ctx_agent():\n    {prefix}def ask(question):\n"
                f"        if question == 'stop': {what}\n        return {{'rows': [[1]]}}\n    return ask\n",
            )
            write_cases(odd_project, [{"id": "first"}, {"id": "second", "question": "stop"}, {"id": "third"}])
            result = odd_project.run_apart("--ctx-cache")
            assert result.ret == pytest.ExitCode.INTERRUPTED
            result.assert_outcomes(passed=1)
            output_of(result)
            assert len(odd_project.traces()) == 1
            odd_project.traces()[0].unlink()


PYTHON_TEST = """
import logging
import pytest

@pytest.mark.ctx_golden("golden.json")
def test_case(ctx_case, ctx_trace): ctx_trace(ctx_case).check()
"""


def test_python_tests_with_hostile_agents(odd_project: Project) -> None:
    """In Python tests too nothing that an agent says is printed raw or ends a run on workers."""
    odd_project.write("test_cases.py", PYTHON_TEST)
    said = [what for what in BEHAVIOURS if not what.endswith(("by pytest", "long line", "many lines"))]
    write_cases(odd_project, ({"id": what, "question": what, "timeout": 0.2} for what in said))
    result = odd_project.run("--ctx-cache", "-rA", "--junit-xml=junit.xml")
    n_passed = sum(outcome_of(what) == "passed" for what in said)
    result.assert_outcomes(passed=n_passed, failed=len(said) - n_passed, deselected=len(said))
    output_of(result)
    ET.parse(odd_project.path / "junit.xml")


def test_reruns_pay_for_errors_alone(odd_project: Project) -> None:
    """With pytest-rerunfailures a wrong answer is replayed, an error asked again; each call is counted."""
    write_cases(odd_project, [{"id": what, "question": what} for what in ("answers", "says prose", "exits")])
    result = odd_project.run("--ctx-cache", "--reruns=2")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    assert result.parseoutcomes()["rerun"] == 4
    result.stdout.fnmatch_lines(["cases * 3: 1 passed, 1 failed, 1 error", "cost * in 5 calls, *"])
    output_of(result)


FLAGS = [
    *(("-p", "no:terminal"), ("-p", "no:cacheprovider"), ("-p", "no:junitxml"), ("-p", "no:logging")),
    *(("--tb=long",), ("--tb=short",), ("--tb=line",), ("--tb=native",), ("--tb=no",), ("--full-trace",)),
    *(("-x",), ("--maxfail=2",), ("-q",), ("-qq",), ("-vv",), ("-rA", "--showlocals"), ("--capture=no",)),
    *(
        ("-p", "no:warnings"),
        ("--setup-show",),
        ("--durations=3",),
        ("--assert=plain",),
        ("--color=no", "-v"),
    ),
]


NOISY = "not times and not lines and not long and not megabytes and (not returns or lazy or hostile)"
"""What has something raw in it; what is slow, large or plain is told once, case by case."""


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_flags_of_pytest_do_not_let_anything_through(odd_project: Project, flags: tuple[str, ...]) -> None:
    """Whatever pytest is told to print, nothing raw is printed and the exit code stays pytest's."""
    result = odd_project.run("--ctx-cache", *flags, "-k", NOISY)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    output_of(result)


@pytest.mark.parametrize(
    "flags", [("-x",), ("--maxfail=2", "-vv"), ("--tb=native", "-rA"), ("-qq",)], ids=" ".join
)
def test_environment_of_a_small_terminal_in_ci(
    odd_project: Project, flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``CI=true`` and 40 columns the run ends the same way."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("COLUMNS", "40")
    result = odd_project.run("--ctx-cache", *flags, "-k", NOISY)
    assert result.ret in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    output_of(result)


ANY_REPORT = """
import logging
import pytest

NOISE = "\\ud83d"

@pytest.fixture
def ctx_agent():
    def ask(question):
        if question == "skip": pytest.skip("why " + NOISE)
        if question == "fail": pytest.fail("why " + NOISE)
        if question == "xfail": pytest.xfail("why " + NOISE)
        logging.getLogger().warning("asked %s", NOISE)
        return {"rows": [[1]]}
    return ask
"""


def test_lone_surrogates_in_any_part_of_a_report(project: Project) -> None:
    """A lone surrogate in a log record, a property or a reason ends no run, in tests of any kind."""
    project.write("conftest.py", ANY_REPORT)
    cases = [
        f"{{id: {q}, question: {q}, match: scalar, expected: {{rows: [[1]]}}}}"
        for q in ("log", "skip", "fail", "xfail")
    ]
    project.write("golden.yaml", f"cases: [{', '.join(cases)}]\n")
    project.write("more/golden.yaml", f"cases: [{', '.join(cases)}]\n")
    project.write(
        "test_more.py",
        """
import logging
import pytest

@pytest.mark.ctx_golden("more/golden.yaml")
def test_case(ctx_case, ctx_trace): ctx_trace(ctx_case).check()

def test_property(request, ctx_snapshot):
    request.node.user_properties.append(("name", "\\ud83d"))
    logging.getLogger().warning("\\ud83d")
    ctx_snapshot.check("x")
""",
    )
    result = project.run("--ctx-cache", "--ctx-snapshot-create", "--junit-xml=junit.xml", "-rA")
    result.assert_outcomes(passed=3, skipped=2, xfailed=2, errors=1, failed=1, deselected=4)
    assert "INTERNALERROR" not in result.stdout.str()


@pytest.mark.parametrize("place", ["x" * 300, "agent/prompt.md/below"])
def test_cache_folder_that_can_never_be(project: Project, place: str) -> None:
    """A cache folder with an impossible name, or below a file, is a usage error before anything is asked."""
    result = project.run("--ctx-cache", f"--ctx-cache-dir={place}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "INTERNALERROR" not in result.stdout.str()
    assert project.calls() == []
