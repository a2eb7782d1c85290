"""The commands ``ctxfp verify-context`` and ``ctxfp stamp``: pins of golden files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ctxfp import classify_pin, load_golden
from pytest_ctxfp._cli import main
from pytest_ctxfp._cli.project import DEFAULT_GOLDEN_FILES, find_project
from pytest_ctxfp._hashing import hash_paths
from pytest_ctxfp.plugin import options

CACHE, TOML = "ctx_cache_dir = %h/x\n", "ctx_cache_dir = '%h/x'\n"
CASES = "cases:\n- {id: a, question: q, expected: {rows: [[1]]}}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose ini file names its context sources; the current folder."""
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "rules.md").write_text("count all\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nctx_context_paths = context\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CTXFP_CACHE_DIR", raising=False)
    return tmp_path


def sha_of(project: Path) -> str:
    """Return what a run would hash the sources to."""
    return hash_paths(["context"], rootdir=project).sha


def write(name: str, text: str) -> Path:
    """Write a file as it is, without changing line ends."""
    path = Path(name)
    path.write_bytes(text.encode())
    return path


# Texts with the place of the pin as %s: what stands there before, and what `stamp` writes (@ for its digits).
EDITS = {
    "plain": ("context_version: %s\n" + CASES, "shop@0000000", "shop@@"),
    "trailing comment": ("context_version: %s   # pinned\n" + CASES, "shop@0000000", "shop@@"),
    "double quotes": ("context_version: %s # x\n" + CASES, '"shop@v1"', '"shop@@"'),
    "single quotes": ("context_version:   %s\n" + CASES, "'it''s@v1'", "'it''s@@'"),
    "quoted key": ('"context_version" : %s\n' + CASES, "shop@v1", "shop@@"),
    "last of the file": (CASES + "context_version: %s", "shop@v1", "shop@@"),
    "windows": ("dataset: shop\r\ncontext_version: %s\r\n" + CASES.replace("\n", "\r\n"), "x@v1", "x@@"),
    "mark": ("\ufeff# é\ncontext_version: %s\n" + CASES, "shop@v1", "shop@@"),
    "next line": ("context_version:\n  %s # here\n" + CASES, "shop@v1", "shop@@"),
    "null": ("context_version: %s\ndataset: shop\n" + CASES, "null", "shop@@"),
    "no dataset": ("context_version: %s\n" + CASES, "nightly", "nightly@@"),
    "wide": ("# 😀 \u2028 \u0085\ncontext_version: %s\n" + CASES, "shop@v1", "shop@@"),
    "braces": ("{context_version: %s, cases: [{id: a, question: q, expected: {rows: [[1]]}}]}", "x@1", "x@@"),
    "indented": (
        "  context_version: %s\n  cases: [{id: a, question: q, expected: {rows: [[1]]}}]\n",
        "s@1",
        "s@@",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_stamp_changes_the_pin_and_no_other_byte(project: Path, name: str) -> None:
    """Comments, quotes, line ends and marks stay; the pin becomes 12 digits under the same dataset."""
    template, before, after = EDITS[name]
    path = write("golden.yaml", template.replace("%s", before))
    assert main(["stamp", "golden.yaml"]) == 0
    pin = sha_of(project)[:12]
    assert path.read_bytes().decode() == template.replace("%s", after.replace("@@", f"@{pin}"))
    assert classify_pin(load_golden(path).context_version, sha_of(project)).freshness == "fresh"


def test_stamp_needs_no_parser_in_c(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML has only its Python parser, the same places are found."""
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    for name, (template, before, after) in EDITS.items():
        path = write("golden.yaml", template.replace("%s", before))
        assert main(["stamp", "golden.yaml"]) == 0, name
        pin = sha_of(project)[:12]
        assert path.read_bytes().decode() == template.replace("%s", after.replace("@@", f"@{pin}")), name


INSERTS = {
    "dataset": (
        f"# head\ndataset: shop # the shop\n{CASES}",
        f"# head\ndataset: shop # the shop\nV\n{CASES}",
    ),
    "none": (f"# head\n\n{CASES}", f"# head\n\nV\n{CASES}"),
    "windows": (
        "dataset: s\r\ncases: [{id: a, question: q, expected: {rows: [[1]]}}]\r\n",
        "dataset: s\r\nV\r\ncases: [{id: a, question: q, expected: {rows: [[1]]}}]\r\n",
    ),
    "block": (f"dataset: >-\n  shop\n\n{CASES}", f"dataset: >-\n  shop\n\nV\n{CASES}"),
    "document": (f"---\n{CASES}", f"---\nV\n{CASES}"),
    "commented": (f"#context_version: old\n{CASES}", f"#context_version: old\nV\n{CASES}"),
}


@pytest.mark.parametrize("name", INSERTS)
def test_stamp_adds_a_line_where_there_is_no_pin(project: Path, name: str) -> None:
    """A file without a pin gets one below its dataset, else above its first entry."""
    before, after = INSERTS[name]
    path = write("golden.yaml", before)
    assert main(["stamp", "golden.yaml"]) == 0
    dataset = {"dataset": "shop", "windows": "s", "block": "shop"}.get(name, "golden")
    line = f"context_version: {dataset}@{sha_of(project)[:12]}"
    assert path.read_bytes().decode() == after.replace("V\r\n", f"{line}\r\n").replace("V\n", f"{line}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"cases": [{"id": "a", "question": "q", "expected": {"rows": [[1]]}}]}',
         '{"context_version": "golden@V", "cases"'),
        (('{\n  "dataset": "shöp",\n  "cases": [{"id": "a", "question": "\\ud83d\\ude00",'
         ' "expected": {"rows": [[1]]}}]\n}\n'),
         '{\n  "context_version": "sh\\u00f6p@V",\n  "dataset"'),
        ('{"context_version":"s@v1","cases":[{"id":"a","question":"q","expected":{"rows":[[1]]}}]}',
         '{"context_version":"s@V","cases"'),
    ],
)  # fmt: skip
def test_stamp_edits_json_files(project: Path, before: str, after: str) -> None:
    """A JSON file keeps its spacing, and its other values as they are spelled."""
    path = write("golden.json", before)
    assert main(["stamp", "golden.json"]) == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith(after.replace("V", sha_of(project)[:12]))
    assert text.endswith(before[before.index('"cases"') :])
    assert classify_pin(load_golden(path).context_version, sha_of(project)).freshness == "fresh"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("golden.jsonl", '{"id": "a", "question": "q", "expected": {"rows": [[1]]}}\n', "JSON Lines"),
        ("golden.yaml", f"context_version: >-\n  shop@v1\n{CASES}", "on a line of its own"),
        ("golden.yaml", f"context_version: &v shop@v1\nmetadata: {{v: *v}}\n{CASES}", "on a line of its own"),
        ("golden.yaml", "cases: [", "golden.yaml:2: is no YAML"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("project")
def test_stamp_leaves_files_alone_where_it_has_no_safe_place(
    capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    """A file that can't be edited safely is refused with the way out, and so are all others of the call."""
    path, good = write(name, text), write("good.yaml", CASES)
    assert main(["stamp", "good.yaml", name]) == 2
    assert said in capsys.readouterr().err
    assert (path.read_bytes().decode(), good.read_text()) == (text, CASES)


def test_stamp_refuses_a_file_that_is_its_own_source(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pin of a state that the pin is part of would be stale at once: the exclusion to write is said."""
    write("context/golden.yaml", CASES)
    assert main(["stamp", "context/golden.yaml"]) == 2
    assert "leave it out of them with '!context/golden.yaml'" in capsys.readouterr().err
    (project / "pytest.ini").write_text("[pytest]\nctx_context_paths = context !context/golden.yaml\n")
    assert main(["stamp", "context/golden.yaml"]) == 0
    assert main(["verify-context"]) == 0


def test_stamp_leaves_a_fresh_pin_and_keeps_links_and_permissions(project: Path) -> None:
    """A pin that is right is not touched, however short; a link stays one, and modes stay as they were."""
    short = f"context_version: shop@{sha_of(project)[:7].upper()}\n{CASES}"
    path = write("fresh.yaml", short)
    stale = write("real.yaml", f"context_version: shop@0000000\n{CASES}")
    stale.chmod(0o640)
    os.symlink("real.yaml", "golden.yaml")
    assert main(["stamp", "fresh.yaml", "golden.yaml"]) == 0
    assert path.read_text() == short
    assert Path("golden.yaml").is_symlink()
    assert stale.stat().st_mode & 0o777 == 0o640
    assert f"shop@{sha_of(project)[:12]}" in stale.read_text()
    assert not list(project.glob(".*.tmp"))


def test_verify_context_tells_fresh_from_stale(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each golden file is fresh, stale or unpinned, and the exit status is 0 only if all are fresh."""
    write("golden.yaml", f"context_version: shop@{sha_of(project)}\n{CASES}")
    assert main(["verify-context"]) == 0
    write("golden_b.yaml", f"context_version: shop@0000000\n{CASES}")
    write("sub.golden.json", '{"cases": [{"id": "a", "question": "q", "expected": {"rows": [[1]]}}]}')
    write("golden_other.yaml", "someone: else\n")
    capsys.readouterr()
    assert main(["verify-context", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert {file["path"]: file["freshness"] for file in said["files"]} == {
        "golden.yaml": "fresh",
        "golden_b.yaml": "stale",
        "sub.golden.json": "unpinned",
    }
    assert said["sha"] == sha_of(project)
    (project / "context" / "rules.md").write_text("count none\n")
    assert main(["verify-context", "golden.yaml"]) == 1
    assert capsys.readouterr().out.startswith("stale     golden.yaml  shop@")


def test_paths_on_the_command_line_hash_as_those_of_the_ini_file(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are relative to the current folder, and the files are named from the rootdir all the same."""
    write("golden.yaml", CASES)
    assert main(["stamp", "golden.yaml"]) == 0
    write("pytest.ini", "[pytest]\n")
    monkeypatch.chdir(project / "context")
    assert main(["verify-context", "../golden.yaml", "--paths", "."]) == 0
    assert main(["verify-context", "../golden.yaml", "--paths", ".", "--paths", "!rules.md"]) == 2
    assert main(["verify-context", "../golden.yaml"]) == 2
    assert "add ctx_context_paths = ... there, or give --paths" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\nctx_context_paths =\n  context\n  'a b'\n" + CACHE),
        ("tox.ini", "[testenv]\ncommands =\n  x\n[pytest]\nctx_context_paths = context 'a b'\n" + CACHE),
        ("setup.cfg", "[tool:pytest]\nctx_context_paths = context 'a b'\n" + CACHE),
        ("pyproject.toml", "[tool.pytest.ini_options]\nctx_context_paths = ['context', 'a b']\n" + TOML),
        ("pyproject.toml", "[tool.pytest.ini_options]\nctx_context_paths = \"context 'a b'\"\n" + TOML),
        ("pytest.toml", "[pytest]\nctx_context_paths = ['context', 'a b']\n" + TOML),
    ],
)  # fmt: skip
def test_projects_are_found_as_pytest_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """Every file that can configure pytest is read, from any folder below; words split as pytest does."""
    monkeypatch.delenv("CTXFP_CACHE_DIR", raising=False)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / name).write_text(text)
    (tmp_path / "a" / "tox.ini").write_text("[tox]\n")
    project = find_project(below)
    assert (project.rootdir, project.words("ctx_context_paths")) == (tmp_path, ("context", "a b"))
    assert project.cache_dir() == tmp_path / "%h/x"
    monkeypatch.setenv("CTXFP_CACHE_DIR", "from-env")
    assert project.cache_dir() == tmp_path / "from-env"
    monkeypatch.chdir(below)
    assert project.cache_dir("given") == below / "given"


def test_bad_ini_files_are_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that pytest could not read either is named, without a traceback."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("pyproject.toml", "[tool"), ("pytest.ini", "no section\n")):
        (tmp_path / name).write_text(text)
        assert main(["verify-context", "x.yaml"]) == 2
        err = capsys.readouterr().err
        assert name in err
        assert err.count("\n") == 1


def test_defaults_are_those_of_the_plugin() -> None:
    """The commands, which never import pytest, look for the files and the folder that the plugin uses."""
    assert list(DEFAULT_GOLDEN_FILES) == options.DEFAULT_GOLDEN_FILES
    from pytest_ctxfp._cli.project import DEFAULT_CACHE_DIR, GOLDEN_SUFFIXES

    assert (DEFAULT_CACHE_DIR, GOLDEN_SUFFIXES) == (options.DEFAULT_CACHE_DIR, options.GOLDEN_SUFFIXES)


@pytest.mark.usefixtures("project")
def test_the_command_runs_in_a_process_of_its_own() -> None:
    """From a shell, the exit status and both streams are the command's."""
    write("golden.yaml", CASES)
    code = "import sys; from pytest_ctxfp._cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "verify-context"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("unpinned  golden.yaml\n")
