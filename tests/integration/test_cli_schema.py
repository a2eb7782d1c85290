"""``ctxfp schema``."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_ctxfp import golden_schema
from pytest_ctxfp._cli import main
from pytest_ctxfp._report_json import report_schema

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("args", "schema"),
    [([], golden_schema()), (["golden"], golden_schema()), (["report"], report_schema())],
    ids=["default", "golden", "report"],
)
def test_it_prints_the_schema(ctxfp, args, schema) -> None:
    """The schema of golden files is printed, or that of reports, in ASCII and ready to be saved."""
    done = ctxfp("schema", *args)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert json.loads(done.stdout) == schema
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))


def test_closed_standard_output_is_refused(capsys, monkeypatch) -> None:
    """Where there is no standard output, that is said on standard error."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["schema"]) == 2
    assert capsys.readouterr().err.startswith("ctxfp: standard output is closed")


def test_full_standard_output_is_refused(capsys, monkeypatch) -> None:
    """Where what is printed has no room, that is a line and exit status 2, not half an answer."""

    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["schema"]) == 2
    assert "(standard output): can't be written: No space left" in capsys.readouterr().err


def test_another_kind_is_wrong_usage(capsys) -> None:
    """A schema that there isn't ends with the usage, which names those that there are."""
    with pytest.raises(SystemExit) as stop:
        main(["schema", "trace"])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert "golden" in err
    assert "report" in err


def test_help_has_an_example(capsys) -> None:
    """The help shows how an editor gets to know the schema."""
    with pytest.raises(SystemExit):
        main(["schema", "--help"])
    assert "ctxfp schema > golden.schema.json" in capsys.readouterr().out


def test_commands_are_listed(capsys) -> None:
    """The help of the command names its commands, and without one it is wrong usage."""
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"\n    {name}" in out for name in ("fingerprint", "diff", "gate", "report", "schema"))
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2


LINE = "# yaml-language-server: $schema=golden.schema.json"
CASES = "cases:\n  - {id: a, question: q, expected: {rows: [[1]]}}\n"


def write_all(folder: Path, **files: str) -> None:
    """Write files, their line ends as given."""
    for name, text in files.items():
        (folder / f"{name}.yaml").write_bytes(text.encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CASES, f"{LINE}\n{CASES}"),
        ("", f"{LINE}\n"),
        (f"\ufeff{CASES}", f"\ufeff{LINE}\n{CASES}"),
        (CASES.replace("\n", "\r\n"), f"{LINE}\n{CASES}".replace("\n", "\r\n")),
        (CASES.replace("\n", "\r"), f"{LINE}\n{CASES}".replace("\n", "\r")),
        (f"---\n{CASES}", f"{LINE}\n---\n{CASES}"),
        (f"%YAML 1.2\n---\n{CASES}...\n", f"{LINE}\n%YAML 1.2\n---\n{CASES}...\n"),
        (f"# ours\n\n{CASES}# end", f"{LINE}\n# ours\n\n{CASES}# end"),
        ("{cases: []}", f"{LINE}\n{{cases: []}}"),
        (f"# yaml-language-server: $schema=https://e.x/y.json\n{CASES}", f"{LINE}\n{CASES}"),
        (f"# a\n---\n#  yaml-language-server : $schema=a b\n{CASES}", None),
        (f"--- # doc\n# yaml-language-server: $schema=old.json\r\n{CASES}", f"--- # doc\n{LINE}\r\n{CASES}"),
        (f"# yaml-language-server: nothing\n{CASES}", f"{LINE}\n# yaml-language-server: nothing\n{CASES}"),
        (f"{CASES}# yaml-language-server: $schema=late.json\n", None),
        (f"metadata: |\n  {LINE}x\n{CASES}", f"{LINE}\nmetadata: |\n  {LINE}x\n{CASES}"),
        ("cases: [\n", f"{LINE}\ncases: [\n"),
    ],
    ids=[
        *("plain", "empty", "bom", "crlf", "cr", "marker", "directive", "comments", "flow", "other-schema"),
        *("after-the-marker", "comment-on-the-marker", "no-schema", "late", "block-text", "broken"),
    ],
)
def test_write_puts_the_line_at_the_head(ctxfp, tmp_path, before, after) -> None:
    """The line is put first, or its schema replaced where it stands; each other byte stays; twice is once."""
    if after is None:  # only what the line names is replaced, or the line comes before all else
        named = before.replace("$schema=a b", "$schema=golden.schema.json b")
        after = f"{LINE}\n{before}" if "late.json" in before else named
    write_all(tmp_path, golden=before)
    for word in ("written", "unchanged"):
        done = ctxfp("schema", "--write", "golden.yaml")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{word:<10}golden.schema.json\n{word:<10}golden.yaml\n"
        assert (tmp_path / "golden.yaml").read_bytes() == after.encode()
    assert json.loads((tmp_path / "golden.schema.json").read_bytes()) == golden_schema()


def test_write_names_the_schema_of_the_project(ctxfp, tmp_path) -> None:
    """All golden files of a project name one schema, beside its ini file, by a path from where they lie."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "tests of ours" / "deep"
    folder.mkdir(parents=True)
    write_all(tmp_path, golden=CASES)
    write_all(folder, golden=CASES)
    done = ctxfp("schema", "--write", "golden.yaml", "tests of ours/deep/golden.yaml")
    assert done.returncode == 0
    assert (tmp_path / "golden.yaml").read_text().startswith(f"{LINE}\n")
    reference = (folder / "golden.yaml").read_text().splitlines()[0].partition("=")[2]
    assert reference == "../../golden.schema.json"
    assert (folder / reference).resolve() == tmp_path / "golden.schema.json"
    assert [path.name for path in tmp_path.rglob("*.schema.json")] == ["golden.schema.json"]


def test_the_written_schema_is_not_collected(ctxfp, project) -> None:
    """The same cases run as before: neither the schema nor the line is its business."""
    assert ctxfp("schema", "--write", str(project.path / "golden.yaml")).returncode == 0
    project.run("--ctx-cache").assert_outcomes(passed=2)


def test_write_renews_an_older_schema(ctxfp, tmp_path) -> None:
    """A schema of another version of the plugin is replaced."""
    write_all(tmp_path, golden=f"{LINE}\n{CASES}")
    (tmp_path / "golden.schema.json").write_text(json.dumps({"title": golden_schema()["title"]}))
    done = ctxfp("schema", "--write", "golden.yaml")
    assert done.stdout == "written   golden.schema.json\nunchanged golden.yaml\n"
    assert json.loads((tmp_path / "golden.schema.json").read_bytes()) == golden_schema()


def test_write_sets_the_key_of_json(ctxfp, tmp_path) -> None:
    """In JSON the key $schema is put first, or its value replaced; what else stands there stays."""
    path = tmp_path / "golden.json"
    rest = '"cases": [{"id": "a", "question": "q", "expected": {"rows": [[1.50]]}}]\r\n}\r\n'
    for before in ("{\r\n  " + rest, '{\r\n  "$schema": "old.json",\r\n  ' + rest):
        path.write_bytes(before.encode())
        assert ctxfp("schema", "--write", "golden.json").returncode == 0
        assert path.read_bytes().decode() == '{\r\n  "$schema": "golden.schema.json",\r\n  ' + rest
        assert "unchanged golden.json" in ctxfp("schema", "--write", "golden.json").stdout


def test_write_keeps_links_and_permissions(ctxfp, tmp_path) -> None:
    """What a link leads to is edited, and stays as readable as it was."""
    write_all(tmp_path, real=CASES)
    (tmp_path / "real.yaml").chmod(0o640)
    (tmp_path / "golden.yaml").symlink_to("real.yaml")
    assert ctxfp("schema", "--write", "golden.yaml").returncode == 0
    assert (tmp_path / "golden.yaml").is_symlink()
    assert (tmp_path / "real.yaml").read_text() == f"{LINE}\n{CASES}"
    assert (tmp_path / "real.yaml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("args", "name", "data", "fault"),
    [
        (["missing.yaml"], None, b"", "missing.yaml: can't be read"),
        (["golden.jsonl"], "golden.jsonl", b"{}", "golden.jsonl: only YAML and JSON"),
        (["golden.json"], "golden.json", b"[]", "golden.json"),
        (["golden.json"], "golden.json", b"{", "golden.json"),
        (["latin.yaml"], "latin.yaml", b"a: \xe9", "latin.yaml: 'utf-8' codec"),
        (["good.yaml"], "golden.schema.json", b"{}", "golden.schema.json: is no schema of golden files"),
        (["good.yaml"], "golden.schema.json", b"\xff", "golden.schema.json: is no schema of golden files"),
    ],
    ids=["missing", "jsonl", "list", "broken-json", "latin-1", "anothers-schema", "anothers-bytes"],
)
def test_write_refuses_and_leaves_all_as_it_is(ctxfp, tmp_path, args, name, data, fault) -> None:
    """What can't be done is one line with exit status 2, and no file is touched, the good ones neither."""
    write_all(tmp_path, good=CASES)
    if name is not None:
        (tmp_path / name).write_bytes(data)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = ctxfp("schema", "--write", "good.yaml", *args)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ctxfp: {fault}")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_write_is_for_golden_files(ctxfp, tmp_path) -> None:
    """Nothing names the schema of reports at its head."""
    write_all(tmp_path, golden=CASES)
    done = ctxfp("schema", "report", "--write", "golden.yaml")
    assert done.returncode == 2
    assert "leave 'report' out" in done.stderr


def test_write_edits_nothing_where_the_disk_is_full(monkeypatch, tmp_path, capsys) -> None:
    """A write that fails leaves the file whole, as it was."""
    write_all(tmp_path, golden=CASES)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "golden.schema.json")

    monkeypatch.setattr("pytest_ctxfp._atomic.write_atomically", full)
    assert main(["schema", "--write", str(tmp_path / "golden.yaml")]) == 2
    assert "No space left" in capsys.readouterr().err
    assert (tmp_path / "golden.yaml").read_text() == CASES
