"""The commands ``ctxfp cache ls|show|verify|prune``: stored answers from a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest

from pytest_ctxfp import CaseKey, RunReport, Trace, TraceStore
from pytest_ctxfp._cli import main
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_json import report_to_json

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(".ctxfp/traces")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CTXFP_CACHE_DIR", raising=False)


def store(
    case_id: str = "orders", *, days: float = 1, redact: Callable[[str], str] | None = None, **fields: object
) -> CaseKey:
    """Store an answer that was given some days ago, and return its key."""
    names = ("question", "agent_sha", "model", "sample", "params")
    parts = {name: fields.pop(name) for name in names if name in fields}
    key = CaseKey(**{"case_id": case_id, "question": "How many?", "agent_sha": "a" * 40, "model": "m",
                     "context_sha": "-", **parts})  # fmt: skip
    recorded = datetime.now(timezone.utc) - timedelta(days=days)
    fields = {"recorded_at": recorded.isoformat(), **fields}
    trace = Trace(
        case_id=key.case_id, agent_sha=key.agent_sha, model=key.model, context_sha="-", question=key.question,
        **{"result": {"rows": [[99]]}, "latency_ms": 5, "cost": 0.02, **fields},
    )  # fmt: skip
    TraceStore(FOLDER, redact=redact).store(key, trace)
    return key


def names() -> set[str]:
    """Return the files of the cache."""
    return {path.name for path in FOLDER.iterdir()}


def write_report(*keys: CaseKey, name: str = "run.json", **fields: object) -> None:
    """Write the report of a run that used these answers."""
    cases = tuple(
        CaseReport(id=key.case_id, samples=(SampleReport(state="passed", key=key.hash(), origin="hit"),))
        for key in keys
    )
    Path(name).write_text(report_to_json(RunReport(cases=cases, **fields)), encoding="utf-8")


def run(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    """Return what a command prints; its exit status must be the given one."""
    assert main(["cache", *args]) == code
    return capsys.readouterr().out


def test_ls_lists_the_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Each answer is a line, with its key, what it cost and when; unknown costs are said."""
    old, new = store("old", days=9), store("new\x1b[2J", days=1, cost=None)
    lines = run(capsys, "ls").splitlines()
    assert lines[0].split() == ["KEY", "CASE", "SAMPLE", "MODEL", "AGENT", "RECORDED", "USD", "STATUS"]
    assert lines[1].split()[:2] == [new.hash()[:12], r"new\x1b[2J"]
    assert lines[2].split()[:2] == [old.hash()[:12], "old"]
    assert lines[3].startswith("2 stored answers, 0.0200 USD and 1 of unknown cost in ")
    said = json.loads(run(capsys, "ls", "--json"))
    assert [trace["key"] for trace in said["traces"]] == [new.hash(), old.hash()]
    assert said["traces"][1] == {
        "key": old.hash(), "case_id": "old", "sample": 0, "model": "m", "agent_sha": "a" * 40,
        "recorded_at": said["traces"][1]["recorded_at"], "cost": 0.02, "status": "ok", "is_verdict": False,
    }  # fmt: skip


def test_the_folder_is_found_as_a_run_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--dir wins over the environment, that over the ini file of a folder above, that over the default."""
    store()
    (tmp_path / "sub").mkdir()
    Path("pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path / "sub")
    assert run(capsys, "ls").endswith(f"in {tmp_path}/.ctxfp/traces\n")
    Path("../pytest.ini").write_text("[pytest]\nctx_cache_dir = kept\n")
    assert run(capsys, "ls") == f"no stored answer in {tmp_path}/kept\n"
    monkeypatch.setenv("CTXFP_CACHE_DIR", "from-env")
    assert run(capsys, "ls") == f"no stored answer in {tmp_path}/from-env\n"
    assert "orders" in run(capsys, "ls", "--dir", "../.ctxfp/traces")
    run(capsys, "ls", "--dir", "gone", code=2)


def test_a_url_is_read_and_never_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is behind a URL is listed, shown and checked under its address; prune deletes in folders only."""
    key = store("orders")
    text = (FOLDER / f"{key.hash()}.json").read_text()
    url = f"memory://{tmp_path.name}/traces"
    files = fsspec.filesystem("memory")
    files.pipe_file(f"/{tmp_path.name}/traces/{key.hash()}.json", text.encode())
    files.pipe_file(f"/{tmp_path.name}/traces/{'0' * 40}.json", b"half")
    assert run(capsys, "ls", "--dir", url).endswith(
        f"1 stored answer, 0.0200 USD in {url}\n1 corrupt file: see ctxfp cache verify\n"
    )
    monkeypatch.setenv("CTXFP_CACHE_DIR", url)
    for name in (key.hash()[:4], "orders"):
        assert f"key          {key.hash()}\n" in run(capsys, "show", name)
    said = json.loads(run(capsys, "verify", "--json", code=1))
    assert said["dir"] == url
    assert [one["file"] for one in said["corrupt"]] == [f"{url}/{'0' * 40}.json"]
    assert main(["cache", "show", "gone"]) == 2
    assert f"no stored answer in {url} has" in capsys.readouterr().err
    assert main(["cache", "prune", "--corrupt", "--yes"]) == 2
    error = capsys.readouterr().err
    assert error == f"ctxfp: cache prune deletes only in a folder on this machine: {url} is none\n"
    assert not Path(".ctxfp/remote-cache").exists()
    monkeypatch.setenv("CTXFP_CACHE_DIR", "nonsense://me:secret@x/y")
    assert main(["cache", "ls"]) == 2
    error = capsys.readouterr().err
    assert "Protocol not known: nonsense" in error
    assert "secret" not in error


def test_a_url_of_a_folder_is_that_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``file://`` names a folder of this machine, where prune deletes too; a missing one is refused."""
    store(days=40)
    url = f"file://{tmp_path}/.ctxfp/traces"
    assert run(capsys, "ls", "--dir", url).endswith(f"0.0200 USD in {tmp_path}/.ctxfp/traces\n")
    run(capsys, "prune", "--older-than", "30d", "--yes", "--dir", url)
    assert names() == set()
    assert main(["cache", "ls", "--dir", f"file://{tmp_path}/gone"]) == 2
    assert capsys.readouterr().err == f"ctxfp: file://{tmp_path}/gone: no such folder: correct --dir\n"


def test_show_takes_a_hash_its_beginning_or_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    """A trace is found by its key or its case's id, and --json prints it as it is stored."""
    key = store(days=2, params={"x": 1}, context={"layers": {"B": {"bytes": 3, "hash": "h"}}, "order": ["B"]})
    newer = store(days=1, sample=1, passed_then=False, result="é\n")
    for name in (key.hash(), key.hash()[:4], key.hash()[:8].upper()):
        out = run(capsys, "show", name)
        assert f"key          {key.hash()}\n" in out
        assert "question     How many?\n" in out
        assert 'answer       {"rows": [[99]]}\n' in out
        assert "layer        B (3 bytes, h)\n" in out
    out = run(capsys, "show", "orders")
    assert f"key          {newer.hash()}\n" in out
    assert f"older        {key.hash()[:12]}\n" in out
    assert "failed then" in out
    said = json.loads(run(capsys, "show", "orders", "--json"))
    assert said["result"] == "é\n"
    assert len(json.loads(run(capsys, "show", key.hash(), newer.hash(), "--json"))) == 2
    run(capsys, "show", "nobody", code=2)
    run(capsys, "show", "abc", code=2)


def test_show_refuses_a_beginning_of_several_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """Where several keys begin so, none is shown and they are named."""
    key = store()
    data = (FOLDER / f"{key.hash()}.json").read_bytes()
    for last in "01":
        (FOLDER / f"{'f' * 39}{last}.json").write_bytes(data)
    assert main(["cache", "show", "ffff"]) == 2
    assert "'ffff' begins 2 keys" in capsys.readouterr().err


def test_verify_names_what_is_corrupt(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that can't be loaded, or that is named as another key, is corrupt; its problem is said."""
    good, renamed = store("good"), store("renamed")
    (FOLDER / f"{renamed.hash()}.json").rename(FOLDER / f"{'0' * 40}.json")
    (FOLDER / f"{'1' * 40}.json").write_text('{"case_id": "\x1b')
    (FOLDER / f"{'2' * 40}.json").mkdir()
    (FOLDER / "notes.txt").write_text("mine")
    out = run(capsys, "verify", code=1)
    assert f"{'0' * 40}.json: holds the answer to another key, {renamed.hash()}" in out
    assert f"{'1' * 40}.json: not JSON" in out
    assert f"{'2' * 40}.json: not a regular file" in out
    assert "4 files in " in out
    assert good.hash() not in out
    said = json.loads(run(capsys, "verify", "--json", code=1))
    assert (said["checked"], len(said["corrupt"])) == (4, 3)


def test_absurd_costs_are_no_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """An amount that nobody pays is listed as an unknown cost, and breaks nothing."""
    store(cost=2**62)
    store("b", cost=1e308)
    store("c", cost=1)
    assert "3 stored answers, 1.0000 USD and 2 of unknown cost" in run(capsys, "ls")
    assert json.loads(run(capsys, "prune", "--older-than", "1h", "--json"))["unknown_costs"] == 2
    run(capsys, "ls", "--json")
    assert "an unknown cost" in run(capsys, "show", "b")


def test_verify_accepts_what_a_run_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    """Redacted traces, and those of other programs without our fields, are not called corrupt."""
    store("hidden", question="hunter2?", redact=lambda text: text.replace("hunter2", "[redacted]"))
    store("split", question="\ud83d\ude00")
    store("plain", params={"a": [1, 1.5, True, None]}, backend="other")
    foreign = {"case_id": "w", "agent_sha": "x", "model": "m", "context_sha": "-", "question": "q",
               "result": 1, "latency_ms": 1}  # fmt: skip
    (FOLDER / f"{'3' * 40}.json").write_text(json.dumps(foreign))
    assert "4 files in " in run(capsys, "verify")
    key = store("secret", question="hunter2?", redact=lambda text: text.replace("hunter2", "<key>"))
    assert f"{key.hash()}.json" in run(capsys, "verify", code=1)
    Path("pytest.ini").write_text("[pytest]\nctx_redact = hunter[0-9]\n")
    assert "1 corrupt" in run(capsys, "verify", "--dir", str(FOLDER), code=1)


def test_prune_lists_and_deletes_only_when_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --yes nothing goes; with it, what is older goes and nothing else in the folder."""
    old, new = store("old", days=40), store("new", days=2)
    (FOLDER / f"{'1' * 40}.json").write_text("corrupt")
    os.utime(FOLDER / f"{'1' * 40}.json", (0, 0))
    (FOLDER / "notes.json").write_text("{}")
    before = names()
    out = run(capsys, "prune", "--older-than", "30d")
    assert old.hash()[:12] in out
    assert "selected: 1 stored answer, which cost 0.0200 USD\nnothing was deleted: add --yes" in out
    assert names() == before
    run(capsys, "prune", "--older-than", "30d", "--yes")
    assert names() == before - {f"{old.hash()}.json"}
    said = json.loads(run(capsys, "prune", "--older-than", "24h", "--corrupt", "--json"))
    assert (said["deleted"], [trace["key"] for trace in said["traces"]]) == (False, [new.hash()])
    run(capsys, "prune", "--corrupt", "--yes")
    assert names() == {f"{new.hash()}.json", "notes.json"}
    assert run(capsys, "prune", "--older-than", "2w").endswith("selected: nothing\n")


def test_prune_by_reports_keeps_what_they_used(capsys: pytest.CaptureFixture[str]) -> None:
    """An answer goes only if none of the reports used it, and with both selectors only if it is old too."""
    used, other, old, new = (store(name, days=days) for name, days in zip("abcd", (9, 9, 9, 0), strict=True))
    write_report(used)
    write_report(other, name="b.json")
    both = ("prune", "--unused-by", "run.json", "b.json")
    assert {trace["case_id"] for trace in json.loads(run(capsys, *both, "--json"))["traces"]} == {"c", "d"}
    run(capsys, *both, "--older-than", "1w", "--yes")
    assert names() == {f"{key.hash()}.json" for key in (used, other, new)}
    assert f"{old.hash()}.json" not in names()


def test_prune_says_what_a_report_can_not_prove(capsys: pytest.CaptureFixture[str]) -> None:
    """A report of a part of the suite is noted, and answers that no report lists are left alone."""
    store("judged", agent_sha="scorer")
    store("call", recorded_by="pytest-ctxfp 0.1.0")
    store("helper", params={"helper": "x", "arguments": {}})
    store("case", recorded_by="pytest-ctxfp 0.1.0", expectation_sha="e")
    write_report(selected_cases=1, total_cases=30, complete=False)
    before = names()
    out = run(capsys, "prune", "--unused-by", "run.json", "--yes")
    assert "note: run.json is of a part of the suite (1 of 30 cases, interrupted)" in out
    assert "3 answers to calls and judges left alone" in out
    assert len(before - names()) == 1
    assert "selected: 3 stored answers" in run(capsys, "prune", "--older-than", "1h")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "add --older-than 30d, --unused-by run.json or both"),
        (["--unused-by", "gone.json"], "gone.json: can't be read"),
        (["--unused-by", "good.json", "bad.json"], "bad.json: this is no report"),
        (["--older-than", "1h", "--unused-by", "latin.json"], "latin.json: not UTF-8"),
    ],
)
def test_prune_deletes_nothing_where_it_can_not_know(
    capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    """Without a selector, or with a report that can't be read, nothing goes: exit 2 and one line."""
    store(days=90)
    write_report(name="good.json")
    Path("bad.json").write_text("{}")
    Path("latin.json").write_bytes(b"\xe9")
    assert main(["cache", "prune", *args, "--yes"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert len(names()) == 1


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1.5h", "1y", "9999999w", "३d"])
def test_prune_refuses_an_age_that_is_none(capsys: pytest.CaptureFixture[str], age: str) -> None:
    """An age is a number of hours, days or weeks."""
    with pytest.raises(SystemExit, match="2"):
        main(["cache", "prune", f"--older-than={age}"])
    assert "12h, 30d or 2w" in capsys.readouterr().err


def test_prune_collects_what_killed_runs_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Temporary files of ours go once they are a day old; those of others never."""
    store()
    ours, fresh = (FOLDER / f".{digit * 40}.json.{'0' * 16}.tmp" for digit in "ab")
    foreign = FOLDER / "editor.tmp"
    for path in (ours, fresh, foreign):
        path.write_text("half")
    for path in (ours, foreign):
        os.utime(path, (time.time() - 90_000,) * 2)
    assert f"leftover of a killed run: {ours.absolute()}" in run(
        capsys, "prune", "--older-than", "30d", "--yes"
    )
    assert {path.name for path in (ours, fresh, foreign)} & names() == {fresh.name, foreign.name}


@pytest.mark.parametrize("args", [[], ["show"], ["verify"], ["prune"]])
def test_help_has_an_example(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    """Every command's help says how it is used."""
    with pytest.raises(SystemExit, match="0"):
        main(["cache", *(args or ["ls"]), "--help"])
    assert "example:\n  ctxfp cache " in capsys.readouterr().out


def test_the_exit_status_reaches_the_shell() -> None:
    """In a process of its own the command needs neither pytest nor a folder that exists."""
    code = (
        "import sys; from pytest_ctxfp._cli import main; code = main();"
        "assert 'pytest' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, "cache", "verify"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    store()
    (FOLDER / f"{'1' * 40}.json").write_text("")
    done = subprocess.run([sys.executable, "-c", code, "cache", "verify"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
