"""What steers a terminal, breaks XML or names a path, in every text a run takes in, stays harmless."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

NOISE = "\x1b]8;;http://evil\x07click\x1b]8;;\x07\x9b2J\x85\u202e\u2066\ud800<b>&\r"
RAW = ("\x1b", "\x07", "\x9b", "\x85", "\u202e", "\u2066", "\ud800", "\r")
PATHS = [
    "../../evil",
    "/etc/evil",
    "CON",
    "con.json",
    "a" * 300,
    "a\x00b",
    "..\\evil",
    "~/evil",
    ".",
    "..",
    "a/b",
]

CONFTEST = """
import json
import pathlib

import pytest
from pytest_ctxfp import AgentResult, Comparison

NOISE = json.loads((pathlib.Path(__file__).parent / "noise.json").read_text())


@pytest.fixture
def ctx_model():
    return "model " + NOISE


@pytest.fixture
def ctx_agent_key():
    return {"params": {NOISE: NOISE}}


@pytest.fixture
def ctx_assembler():
    rules = (pathlib.Path(__file__).parent / "rules.md").read_text()
    return lambda question: f"## Layer {NOISE}\\n{rules}{NOISE}\\n## {question}\\n"


@pytest.fixture
def ctx_agent():
    with open(pathlib.Path(__file__).parent / "calls.txt", "a") as log:
        log.write("built\\n")
    return lambda question, context: AgentResult(
        "answer " + NOISE, served_model="served " + NOISE, sql=NOISE, tokens={NOISE: -1}, turns=NOISE
    )


@pytest.fixture
def ctx_scorers():
    return {"own " + NOISE: lambda answer: Comparison(False, "reason " + NOISE, 0.5)}
"""
SNAPSHOT = """
import json
import pathlib

NOISE = json.loads((pathlib.Path(__file__).parent / "noise.json").read_text())


def test_context(ctx_snapshot):
    rules = (pathlib.Path(__file__).parent / "rules.md").read_text()
    ctx_snapshot.check({"Layer " + NOISE: rules + NOISE, NOISE: NOISE}, name="n" + NOISE)
"""
INI = "[pytest]\nctx_agent_paths = agent\naddopts = -p no:cacheprovider\n"


@pytest.fixture
def noisy(empty_project: Project) -> Project:
    """A project all of whose texts hold what nobody wants printed."""
    empty_project.write("conftest.py", CONFTEST)
    empty_project.write("noise.json", json.dumps(NOISE))
    empty_project.write("rules.md", "- one\n")
    empty_project.write("pytest.ini", INI)
    empty_project.write("agent/prompt.md", "Answer.\n")
    empty_project.write("test_context.py", SNAPSHOT)
    texts = {"question": "q " + NOISE, "tags": ["tag " + NOISE], "result_kind": "text"}
    cases = [
        {**texts, "id": "own " + NOISE, "match": "own " + NOISE, "expected": "e " + NOISE},
        {**texts, "id": "text " + NOISE, "match": "exact", "expected": "e " + NOISE},
        {**texts, "id": "skipped " + NOISE, "match": "exact", "expected": "x", "skip": "why " + NOISE},
        {**texts, "id": "xfailed " + NOISE, "match": "exact", "expected": "x", "xfail": "why " + NOISE},
    ]
    empty_project.write("golden.json", json.dumps({"cases": cases}))
    return empty_project


def raw_in(text: str) -> list[str]:
    """Return which of the harmful characters a text holds."""
    return [char for char in RAW if char in text]


def test_nothing_raw_is_printed_or_reported(noisy: Project, how: list[str]) -> None:
    """Ids, questions, answers, tags, models, scorers, layers and reasons reach no output as they are."""
    runs = [("--ctx-cache", "--ctx-snapshot-create"), ("--ctx-cache",), ("--ctx-on-miss=fail",)]
    for number, flags in enumerate(runs):
        if number == 1:
            noisy.write("rules.md", "- two\n")
        result = noisy.run("-rA", "-v", "--color=no", "--junitxml=junit.xml", *flags, *how)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert raw_in(str(result.stdout) + str(result.stderr)) == []
        junit = (noisy.path / "junit.xml").read_text(encoding="utf-8")
        assert raw_in(junit) == []
        values = [value for element in ET.fromstring(junit).iter() for value in element.attrib.values()]
        assert raw_in("".join(values)) == []
    result.stdout.fnmatch_lines(["*own \\x1b*"])


def test_ids_that_look_like_paths_name_no_file(noisy: Project) -> None:
    """A case may be called whatever a path may be: its answer is stored in the cache, nothing elsewhere."""
    noisy.write("test_context.py", "")
    case = {"question": "q", "result_kind": "text", "match": "contains", "expected": "answer"}
    noisy.write("golden.json", json.dumps({"cases": [{**case, "id": name} for name in PATHS]}))
    around = sorted(noisy.path.parent.iterdir())
    for n_calls in (len(PATHS), 0):
        noisy.run("--ctx-cache").assert_outcomes(passed=len(PATHS))
        assert len(noisy.calls()) == n_calls
    assert len(noisy.traces()) == len(PATHS)
    assert sorted(noisy.path.parent.iterdir()) == around
    names = {path.name for path in noisy.path.iterdir()} - {"junit.xml", "__pycache__"}
    assert names == {
        "conftest.py",
        "noise.json",
        "rules.md",
        "pytest.ini",
        "agent",
        "test_context.py",
        "golden.json",
        ".ctxfp",
    }


def test_a_cache_folder_may_be_a_link_and_a_trace_must_not_lead_out(noisy: Project) -> None:
    """A linked folder is used; a trace that is a link to another file is corrupt, and that file stays."""
    noisy.write("test_context.py", "")
    case = {"question": "q", "result_kind": "text", "match": "contains", "expected": "answer", "id": "a"}
    noisy.write("golden.json", json.dumps({"cases": [case]}))
    (noisy.path / "elsewhere").mkdir()
    (noisy.path / ".ctxfp").mkdir()
    (noisy.path / ".ctxfp/traces").symlink_to(noisy.path / "elsewhere")
    noisy.run("--ctx-cache").assert_outcomes(passed=1)
    noisy.run("--ctx-on-miss=fail").assert_outcomes(passed=1)
    trace = next((noisy.path / "elsewhere").glob("*.json"))
    trace.unlink()
    victim = noisy.write("victim.txt", "keep me, I am private\n")
    trace.symlink_to(victim)
    result = noisy.run("--ctx-cache")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*1 corrupt*"])
    assert "private" not in str(result.stdout)
    assert victim.read_text() == "keep me, I am private\n"
    assert not trace.is_symlink()
