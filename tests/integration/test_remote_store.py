"""``--ctx-cache-dir=URL``: a cache that machines share, against a server that speaks S3 on this one."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import s3fs

from pytest_ctxfp import _remote
from pytest_ctxfp._cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Project

BUCKET = "answers"
URL = f"s3://{BUCKET}/shop/traces"


class Server:
    """A server of S3 that can be stopped and started again, empty."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.url, timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop it; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def running_server() -> Iterator[Server]:
    """A server for all tests."""
    server = Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(running_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, emptied but for a bucket, and the environment that leads to it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", running_server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    request = urllib.request.Request(f"{running_server.url}/moto-api/reset", method="POST")
    urllib.request.urlopen(request).close()
    files().mkdir(BUCKET)
    return running_server


@pytest.fixture
def dead_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address where nobody answers, given up quickly."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1, raising=False)
    monkeypatch.setattr(_remote, "PAUSES", (0.01,))
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


def files() -> s3fs.S3FileSystem:
    """Return access to the server of the environment."""
    return s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)


def stored() -> list[str]:
    """Return the paths of all objects of the bucket."""
    return sorted(files().find(BUCKET))


@pytest.mark.usefixtures("server")
def test_two_machines_share_answers(project: Project, how: list[str]) -> None:
    """What one checkout has asked another finds: 0 calls; the summary shows the address."""
    result = project.run("--ctx-cache", f"--ctx-cache-dir={URL}", *how)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"cache*auto, {URL}", "answers*0 hit, 2 miss*"])
    assert len(project.calls()) == 2
    assert [path.rpartition("/")[0] for path in stored()] == [
        f"{BUCKET}/shop/manifests",
        f"{BUCKET}/shop/traces",
        f"{BUCKET}/shop/traces",
    ]
    assert project.traces() == []
    shutil.rmtree(project.path / ".ctxfp", ignore_errors=True)
    result = project.run("--ctx-cache", f"--ctx-cache-dir={URL}", *how)
    result.stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])
    assert "warning" not in result.stdout.str()
    assert project.calls() == []


@pytest.mark.usefixtures("server")
def test_environment_and_ini_name_a_url(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """``CTXFP_CACHE_DIR`` and ini ``ctx_cache_dir`` take URLs as the flag does."""
    project.edit("pytest.ini", "[pytest]\n", f"[pytest]\nctx_cache_dir = {URL}\n")
    project.run("--ctx-cache").stdout.fnmatch_lines([f"cache*auto, {URL}"])
    monkeypatch.setenv("CTXFP_CACHE_DIR", f"s3://{BUCKET}/other")
    project.run("--ctx-cache").stdout.fnmatch_lines([f"cache*auto, s3://{BUCKET}/other", "answers*2 miss*"])
    assert f"{BUCKET}/other/manifests" in {path.rpartition("/")[0] for path in stored()}


@pytest.mark.usefixtures("server")
def test_a_shell_looks_at_the_shared_store(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ctxfp cache`` lists, shows and checks what is behind a URL; half an object has its address."""
    project.run("--ctx-cache", f"--ctx-cache-dir={URL}")
    monkeypatch.chdir(project.path)
    capsys.readouterr()
    assert main(["cache", "ls", "--dir", URL]) == 0
    assert capsys.readouterr().out.endswith(f"2 stored answers, an unknown cost in {URL}\n")
    monkeypatch.setenv("CTXFP_CACHE_DIR", URL)
    assert main(["cache", "show", "orders"]) == 0
    assert '"rows": [[99]]' in capsys.readouterr().out
    assert main(["rescore", "golden.yaml"]) == 0
    assert main(["cache", "verify"]) == 0
    path = next(path for path in stored() if path.endswith(".json"))
    files().pipe_file(path, files().cat_file(path)[:100])
    capsys.readouterr()
    assert main(["cache", "verify"]) == 1
    assert f"s3://{path}: " in capsys.readouterr().out
    assert main(["cache", "ls", "--dir", "s3://anwsers/traces"]) == 2
    assert "the store s3://anwsers/traces can't be reached: " in capsys.readouterr().err


@pytest.mark.usefixtures("server")
def test_misses_are_explained(project: Project) -> None:
    """A changed file of the agent is named: its list of files, and the last answers, are in the store."""
    project.run("--ctx-cache", f"--ctx-cache-dir={URL}")
    shutil.rmtree(project.path / ".ctxfp", ignore_errors=True)
    project.write("agent/prompt.md", "Be brief.\n")
    result = project.run("--ctx-cache", f"--ctx-cache-dir={URL}")
    result.stdout.fnmatch_lines(["missed*2 agent: agent/prompt.md"])


@pytest.mark.usefixtures("server")
def test_copies_save_the_transfer_and_never_hide_a_newer_answer(project: Project) -> None:
    """A copy is read in place of the object that it is of; an answer refreshed elsewhere is fetched anew."""
    flag = f"--ctx-cache-dir={URL}"
    project.run("--ctx-cache", flag)
    project.run("--ctx-cache", flag)
    copies = list((project.path / ".ctxfp/remote-cache").rglob("*.json.*"))
    assert len(copies) == 2
    assert (project.path / ".ctxfp/remote-cache/.gitignore").read_text() == "*\n"
    for path in copies:
        path.write_text(path.read_text().replace("99", "98").replace("12", "11"))
    project.run("--ctx-cache", flag).assert_outcomes(failed=2)
    for path in stored():
        if path.endswith(".json"):
            trace = json.loads(files().cat_file(path))
            trace["result"]["rows"] = [[7]]
            files().pipe_file(path, json.dumps(trace).encode())
    result = project.run("--ctx-cache", flag)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*7*"])
    assert len(project.calls()) == 2


@pytest.mark.usefixtures("server")
def test_corrupt_object_is_a_miss(project: Project) -> None:
    """Half an object, or an answer to another key, is never replayed; it is asked for again and replaced."""
    flag = f"--ctx-cache-dir={URL}"
    project.run("--ctx-cache", flag)
    project.calls()
    first, second = (path for path in stored() if path.endswith(".json"))
    files().pipe_file(second, files().cat_file(first))
    files().pipe_file(first, files().cat_file(first)[:100])
    result = project.run("--ctx-cache", flag)
    result.stdout.fnmatch_lines(["answers*0 hit, 2 miss, 2 corrupt*", f"warning*corrupt, {URL}/*"])
    assert len(project.calls()) == 2
    project.run("--ctx-cache", flag).stdout.fnmatch_lines(["answers*2 hit*"])


@pytest.mark.usefixtures("dead_server")
def test_unreachable_store_doesnt_stop_a_run(project: Project) -> None:
    """Where the store doesn't answer each case is asked once; the summary says so once, and what was kept."""
    started = time.monotonic()
    result = project.run("--ctx-cache", f"--ctx-cache-dir={URL}")
    assert time.monotonic() - started < 40
    result.assert_outcomes(passed=2)
    assert len(project.calls()) == 2
    result.stdout.fnmatch_lines(
        [f"missed*2 the store {URL} can't be reached: *", "warning*2 answers could not be stored: *"]
    )
    assert result.stdout.str().count("missed ") == 1


@pytest.mark.usefixtures("dead_server")
def test_unreachable_store_and_no_call_allowed(project: Project) -> None:
    """With ``--ctx-on-miss=fail`` each case is an error that names the place and what it said."""
    result = project.run("--ctx-on-miss=fail", f"--ctx-cache-dir={URL}")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"*the store {URL} can't be reached: *Could not connect*"])
    assert project.calls() == []


@pytest.mark.usefixtures("server")
def test_answers_that_could_not_be_stored_are_uploaded_later(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid for while the store was out of reach is kept, and uploaded when it is back."""
    flag = f"--ctx-cache-dir={URL}"
    with monkeypatch.context() as context:
        context.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        context.setenv("AWS_MAX_ATTEMPTS", "1")
        context.setattr(s3fs.S3FileSystem, "retries", 1, raising=False)
        context.setattr(_remote, "PAUSES", ())
        project.run("--ctx-cache", flag).assert_outcomes(passed=2)
        assert len(project.calls()) == 2
        again = project.run("--ctx-cache", flag)
        again.stdout.fnmatch_lines(["answers*2 hit, 0 miss*", f"warning*the store {URL} can't be reached*"])
    result = project.run("--ctx-cache", flag)
    result.stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])
    assert project.calls() == []
    assert len([path for path in stored() if path.endswith(".json")]) == 2
    shutil.rmtree(project.path / ".ctxfp")
    project.run("--ctx-cache", flag).stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])


@pytest.mark.usefixtures("server")
def test_a_bucket_that_is_not_there(project: Project) -> None:
    """A misspelt bucket is no empty store: the summary says that it doesn't exist."""
    result = project.run("--ctx-on-miss=fail", "--ctx-cache-dir=s3://anwsers/traces")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*the store s3://anwsers/traces can't be reached: *bucket does not exist*"])


@pytest.mark.parametrize(
    ("url", "reason"),
    [("nonsense://x/y", "*Protocol not known: nonsense*"), ("xx::yy://z", "*can't be used*")],
)
def test_a_url_that_nobody_knows(project: Project, url: str, reason: str) -> None:
    """An unknown kind of URL is a usage error before the first call."""
    result = project.run("--ctx-cache", f"--ctx-cache-dir={url}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{reason}"])
    assert project.calls() == []


def test_without_fsspec_the_extra_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL without fsspec installed is a usage error that says what to install."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    result = project.run("--ctx-cache", f"--ctx-cache-dir={URL}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *pip install 'pytest-ctxfp[[]remote]' s3fs*"])
    project.run(f"--ctx-cache-dir={URL}").assert_outcomes(passed=2)


def test_credentials_are_never_shown(project: Project) -> None:
    """What stands before the @ of a URL is masked, in the summary, in errors and in commands."""
    url = "memory://me:pa/ss@host/traces?token=t0k3n"
    for flags in (["--ctx-cache"], ["--ctx-on-miss=fail"]):
        output = project.run(*flags, f"--ctx-cache-dir={url}", "-v").stdout.str()
        assert "memory://***@host/traces?token=***" in output
        assert "pa/ss" not in output
        assert "t0k3n" not in output


def test_a_file_url_is_a_folder(project: Project) -> None:
    """``file://`` names a local folder, with all that a local folder guarantees, and no copies."""
    url = f"file://{project.path}/shared/traces"
    result = project.run("--ctx-cache", f"--ctx-cache-dir={url}")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"cache*auto, {url}"])
    assert len(project.traces("shared/traces")) == 2
    assert len(list((project.path / "shared/manifests").iterdir())) == 1
    assert not (project.path / ".ctxfp").exists()
    project.run("--ctx-cache", f"--ctx-cache-dir={url}").stdout.fnmatch_lines(["answers*2 hit*"])
    project.write("file", "")
    bad = project.run("--ctx-cache", f"--ctx-cache-dir=file://{project.path}/file")
    assert bad.ret == pytest.ExitCode.USAGE_ERROR


def test_memory(project: Project) -> None:
    """``memory://`` lives as long as the process: good for tests of one's own."""
    url = f"memory://{project.path.name}/traces"
    project.run("--ctx-cache", f"--ctx-cache-dir={url}").assert_outcomes(passed=2)
    project.run("--ctx-cache", f"--ctx-cache-dir={url}").stdout.fnmatch_lines(["answers*2 hit*"])
    assert len(project.calls()) == 2
    assert os.listdir(Path(project.path, ".ctxfp")) == ["remote-cache"]
