"""What survives when a run is killed, when many processes write the same answers, and when the disk fails.

As a script it does the same for longer: ``python tests/integration/test_crash.py [number of killed runs]``.
"""

from __future__ import annotations

import builtins
import errno
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from pytest_ctxfp import CaseKey, Trace, TraceStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .conftest import Project

N_CASES = 30
N_KILLED = int(os.environ.get("CTXFP_TEST_KILLED_RUNS", "20"))
N_WRITERS = 8
N_KEYS = 200
LONG = "CTXFP_TEST_KILLED_RUNS" in os.environ
WRITING_SECONDS = 20 if LONG else 3

CONFTEST = """
import os
import pathlib
import time

import pytest

LOG = pathlib.Path(__file__).parent / "begun.txt"


@pytest.fixture
def ctx_agent():
    def ask(question):
        # One write of the system a line: what a killed process has begun is known for sure.
        log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, f"{os.getpid()} {question}\\n".encode())
        os.close(log)
        time.sleep(0.004)
        return {"rows": [[int(question)]], "pad": "x" * 20_000}

    return ask
"""
WITHOUT = " ".join(
    f"-p no:{name}" for name in ("cacheprovider", "hypothesispytest", "anyio", "asyncio", "rerunfailures")
)
INI = f"[pytest]\nctx_agent_paths = prompt.md\naddopts = {WITHOUT}\n"

WRITER = """
import random
import sys
import time

from pytest_ctxfp import CaseKey, Trace, TraceStore

folder, seed, seconds, n_keys = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
store, chance, end = TraceStore(folder), random.Random(seed), time.monotonic() + seconds
n_written = 0
while time.monotonic() < end:
    key = CaseKey(f"q{chance.randrange(n_keys)}", "how many?", "A", "m", "C")
    found = store.lookup(key)
    assert found.problem is None, found.problem
    store.store(key, Trace(
        case_id=key.case_id, agent_sha="A", model="m", context_sha="C", question="how many?",
        result="x" * chance.randrange(60_000), latency_ms=seed))
    n_written += 1
print(n_written)
"""


def write_suite(folder: Path) -> None:
    """Write a suite of golden cases whose stub agent logs the beginning of each call."""
    folder.mkdir(parents=True)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text(INI)
    (folder / "prompt.md").write_text("be right\n")
    cases = [
        f"  - {{id: c{n}, question: '{n}', match: scalar, expected: {{columns: [n], rows: [[{n}]]}}}}\n"
        for n in range(N_CASES)
    ]
    (folder / "golden.yaml").write_text("cases:\n" + "".join(cases))


def start(folder: Path, *args: str) -> subprocess.Popen[str]:
    """Start pytest in the suite, in a process group of its own."""
    command = [sys.executable, "-m", "pytest", "--ctx-cache", "-q", *args]
    return subprocess.Popen(
        command,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path)}


def kill_somewhere(folder: Path, moment: float, *args: str) -> bool:
    """Kill a run, its workers too, so many seconds after its first call; return whether it still ran."""
    run = start(folder, *args)
    log = folder / "begun.txt"
    while not log.exists() and run.poll() is None:
        time.sleep(0.002)
    time.sleep(moment)
    was_running = run.poll() is None
    try:
        os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        was_running = False
    run.communicate()
    return was_running


def read_begun(folder: Path) -> dict[str, list[str]]:
    """Return the questions that each process has begun to ask, in order, and forget them."""
    begun: dict[str, list[str]] = {}
    log = folder / "begun.txt"
    if log.exists():
        for line in log.read_text().splitlines():
            pid, question = line.split()
            begun.setdefault(pid, []).append(question)
        log.unlink()
    return begun


def check_after_kill(folder: Path, *, is_parallel: bool) -> None:
    """Assert that no finished answer was lost, that all files are whole, and that a run makes the rest."""
    begun = read_begun(folder)
    stored = read_stored(folder)
    for questions in begun.values():
        lost = set(questions[:-1]) - set(stored)
        assert not lost, f"answers lost: {sorted(lost)}"
    rest = start(folder, *(["-n4"] if is_parallel else []))
    output, _ = rest.communicate()
    assert rest.returncode == 0, output
    asked = sorted(question for questions in read_begun(folder).values() for question in questions)
    assert asked == sorted(set(map(str, range(N_CASES))) - set(stored)), output
    assert len(read_stored(folder)) == N_CASES
    if asked:
        assert list((folder / ".ctxfp/traces/.locks").iterdir()) == []


def read_stored(folder: Path) -> dict[str, Trace]:
    """Return the stored answers by question, having verified each file under the key that it claims."""
    store = TraceStore(folder / ".ctxfp/traces")
    found = {}
    for path, entry in store.entries():
        assert entry.trace is not None, entry.problem
        trace = entry.trace
        key = CaseKey(
            trace.case_id,
            trace.question,
            trace.agent_sha,
            trace.model,
            trace.context_sha,
            params=trace.params,
        )
        assert path.stem == key.hash()
        assert store.load(key) == trace
        found[trace.question] = trace
    return found


def run_killed(folder: Path, n_runs: int, seed: int) -> int:
    """Kill so many runs at random moments, every tenth on four workers; return how many were killed."""
    chance = random.Random(seed)
    n_killed = 0
    for n in range(n_runs):
        suite = folder / f"suite{n}"
        write_suite(suite)
        is_parallel = n % 10 == 9
        length = 0.2 if is_parallel else 0.3
        args = ["-n4"] if is_parallel else []
        n_killed += kill_somewhere(suite, chance.uniform(0, length), *args)
        check_after_kill(suite, is_parallel=is_parallel)
        shutil.rmtree(suite)
    return n_killed


def write_together(folder: Path, seconds: float) -> int:
    """Let processes write the same keys for so many seconds; return how many answers they wrote."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(seed), str(seconds), str(N_KEYS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        for seed in range(N_WRITERS)
    ]
    n_written = 0
    for writer in writers:
        output, errors = writer.communicate()
        assert writer.returncode == 0, errors
        n_written += int(output)
    return n_written


def check_written(folder: Path) -> None:
    """Assert that every file is whole and that nothing else is in the folder."""
    entries = list(TraceStore(folder).entries())
    assert all(entry.trace is not None for _, entry in entries)
    assert sorted(path.name for path, _ in entries) == sorted(os.listdir(folder))


def test_killed_runs_lose_no_answer(tmp_path: Path) -> None:
    """After a kill at any moment every answer that was followed by another call is stored, every file is
    whole, and the next run makes exactly the calls that are missing.
    """
    assert run_killed(tmp_path, N_KILLED, seed=7) > N_KILLED / 2


def test_many_writers_tear_no_file(tmp_path: Path) -> None:
    """Processes that write the same keys at once leave whole files and no temporary ones."""
    assert write_together(tmp_path / "traces", WRITING_SECONDS) > N_KEYS
    check_written(tmp_path / "traces")


def test_temporary_files_of_killed_writers_go(tmp_path: Path) -> None:
    """The first write of a process deletes temporary files older than an hour, and nothing else."""
    folder = tmp_path / "traces"
    folder.mkdir()
    key = CaseKey("q", "how many?", "A", "m", "C")
    old, new, foreign = (
        folder / f".{key.hash()}.json.{'0' * 16}.tmp",
        folder / f".{key.hash()}.json.{'1' * 16}.tmp",
        folder / "notes.tmp",
    )
    for path in (old, new, foreign):
        path.write_text("half")
        os.utime(path, (time.time() - 3700,) * 2)
    os.utime(new)
    store = TraceStore(folder)
    assert store.load(key) is None
    assert old.exists()
    trace = Trace(
        case_id="q", agent_sha="A", model="m", context_sha="C", question="how many?", result=1, latency_ms=1
    )
    store.store(key, trace)
    assert not old.exists()
    assert new.exists()
    assert foreign.exists()
    assert [path.name for path, _ in store.entries()] == [f"{key.hash()}.json"]


class BrokenHandle:
    """A file open for writing, on a disk that fails after the first bytes."""

    def __init__(self, handle: IO[Any], refuse: Callable[[object], None]) -> None:
        self._handle = handle
        self._refuse = refuse

    def __getattr__(self, name: str) -> object:
        return getattr(self._handle, name)

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_error: object) -> None:
        self._handle.close()

    def write(self, data: Any) -> None:
        """Write a part, then fail."""
        self._handle.write(data[:100])
        self._refuse(self._handle.name)


def break_disk(patch: pytest.MonkeyPatch, step: str, code: int) -> None:
    """Let one system call of a store fail: ``open``, ``write``, ``fsync``, ``replace`` or ``mkdir``."""
    real_open, real_mkdir = builtins.open, Path.mkdir

    def refuse(path: object) -> None:
        if ".ctxfp" in str(path):
            raise OSError(code, os.strerror(code), str(path))

    def open_file(path: Any, mode: str = "r", *args: Any, **options: Any) -> object:
        is_ours = ".ctxfp" in str(path) and "x" in mode
        if is_ours and step == "open":
            refuse(path)
        handle = real_open(path, mode, *args, **options)
        return BrokenHandle(handle, refuse) if is_ours and step == "write" else handle

    def call_os(real: Callable[..., object], *args: Any, **options: Any) -> object:
        refuse(args[-1] if step == "replace" else os.readlink(f"/proc/self/fd/{args[0]}"))
        return real(*args, **options)

    def make_folder(path: Path, *args: Any, **options: Any) -> None:
        refuse(path)
        real_mkdir(path, *args, **options)

    if step in {"fsync", "replace"}:
        patch.setattr(os, step, functools.partial(call_os, getattr(os, step)))
    elif step == "mkdir":
        patch.setattr(Path, "mkdir", make_folder)
    else:
        patch.setattr(builtins, "open", open_file)


@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace", "mkdir"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_a_disk_that_fails_costs_no_verdict(project: Project, step: str, code: int) -> None:
    """Whatever system call of a store fails, the verdicts are right, one warning counts what was not stored,
    and neither a half file nor a temporary one is left.
    """
    project.edit("golden.yaml", "[[99]]", "[[98]]")
    with pytest.MonkeyPatch.context() as patch:
        break_disk(patch, step, code)
        result = project.run("--ctx-cache")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"warning*2 answers could not be stored: *{os.strerror(code)}*"])
    assert result.stdout.str().count("could not be stored") == 1
    left = [path.name for path in (project.path / ".ctxfp").rglob("*") if path.is_file()]
    assert left == []


def test_a_failing_disk_keeps_the_last_answer(project: Project) -> None:
    """A refresh that can't be stored leaves the answer of the time before, whole."""
    project.run("--ctx-cache")
    before = {path.name: path.read_bytes() for path in project.traces()}
    project.answer({"How many orders?": {"rows": [[1]]}, "How many customers?": {"rows": [[2]]}})
    with pytest.MonkeyPatch.context() as patch:
        break_disk(patch, "write", errno.ENOSPC)
        result = project.run("--ctx-refresh")
    result.assert_outcomes(failed=2)
    assert {path.name: path.read_bytes() for path in project.traces()} == before


def main(arguments: list[str]) -> None:
    """Kill as many runs as asked for, then let processes write together, and print what was done."""
    n_runs = int(arguments[0]) if arguments else 200
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    with tempfile.TemporaryDirectory() as name:
        n_killed = run_killed(Path(name), n_runs, seed)
        n_written = write_together(Path(name, "traces"), 20)
        check_written(Path(name, "traces"))
    facts: Mapping[str, int] = {"runs": n_runs, "killed": n_killed, "written": n_written, "seed": seed}
    print(json.dumps(facts))  # noqa: T201 - a script's result


if __name__ == "__main__":
    main(sys.argv[1:])
