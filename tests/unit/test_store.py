from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ctxfp import _backend
from pytest_ctxfp._hashing import Manifest, git_blob_sha, hash_paths
from pytest_ctxfp._key import CaseKey
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._store import Lookup, TraceStore
from pytest_ctxfp._trace import Trace

KEY = CaseKey("q1", "how many?", "A", "opus", "C")


def make_trace(key: CaseKey = KEY, **parts) -> Trace:
    """Return an answer to a key with some fields of one's own."""
    base = {
        "case_id": key.case_id,
        "agent_sha": key.agent_sha,
        "model": key.model,
        "context_sha": key.context_sha,
        "question": key.question,
        "result": {"columns": ["n"], "rows": [[42]]},
        "latency_ms": 20,
    }
    return Trace(**{**base, **parts})


@pytest.fixture
def folder(tmp_path) -> Path:
    """Return the default folder, not made yet."""
    return tmp_path / ".ctxfp" / "traces"


@pytest.fixture
def store(folder) -> TraceStore:
    """Return a store that reads and writes."""
    return TraceStore(folder, CacheMode.AUTO)


def path_of(store: TraceStore, key: CaseKey = KEY) -> Path:
    """Return the file of a key."""
    return store.dir / f"{key.hash()}.json"


def files_below(folder: Path) -> list[str]:
    """Return the relative paths of all that is no folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize(
    ("mode", "reads", "writes"),
    [("auto", True, True), ("refresh", False, True), ("replay", True, False), ("off", False, False)],
)
def test_modes(folder, store, mode, reads, writes):
    """Each mode reads and writes as its row in the table says, and leaves the rest alone."""
    assert (CacheMode(mode).reads, CacheMode(mode).writes) == (reads, writes)
    store.store(KEY, make_trace(result=1))
    other = TraceStore(folder, mode)
    assert (other.load(KEY) is not None) == reads
    other.store(KEY, make_trace(result=2))
    assert store.load(KEY).result == (2 if writes else 1)


def test_unknown_mode(folder):
    """A mode that is none is refused."""
    with pytest.raises(ValueError, match="never"):
        TraceStore(folder, "never")


@pytest.mark.parametrize("mode", list(CacheMode))
def test_nothing_is_made_before_a_write(tmp_path, folder, mode):
    """Looking and listing make no folder; neither does storing in a mode that doesn't write."""
    store = TraceStore(folder, mode)
    assert store.lookup(KEY) == Lookup()
    assert list(store.traces()) == []
    assert store.newest("q1") is None
    if not mode.writes:
        store.store(KEY, make_trace())
        store.write_manifest(Manifest(git_blob_sha(b""), ()))
    assert list(tmp_path.iterdir()) == []


def test_store_and_load(store):
    """What is stored is loaded, from one file that is named by the key's hash."""
    trace = make_trace(raw="é\r\n\ud800", cost=0.1)
    store.store(KEY, trace)
    assert store.load(KEY) == trace
    assert files_below(store.dir) == [f"{KEY.hash()}.json"]
    data = path_of(store).read_bytes()
    assert data.endswith(b"}\n")
    assert b"\r" not in data
    assert data.decode() == trace.to_json()


def test_what_store_returns_is_what_a_load_gives(store):
    """A miss is scored as a hit will be: under the key and through JSON."""
    key = replace(KEY, sample=3, backend="vercel", params={"inputs": [1]})
    returned = store.store(key, make_trace(result={"rows": [(1, 2)], 5: "x"}))
    assert returned == store.load(key)
    assert returned.result == {"rows": [[1, 2]], "5": "x"}
    assert returned.key_parts() == key.parts()


def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch):
    """A test that changes the working directory doesn't move the store."""
    monkeypatch.chdir(tmp_path)
    store = TraceStore("cache")
    monkeypatch.chdir("/")
    store.store(KEY, make_trace())
    assert (tmp_path / "cache" / f"{KEY.hash()}.json").is_file()


def test_warble_files_are_read(store):
    """A file with Warble's fields only is a hit, though it has no sample."""
    store.dir.mkdir(parents=True)
    key = replace(KEY, sample=2)
    fields = json.loads(make_trace().to_json())
    warble = {name: fields[name] for name in list(fields)[:13]}
    assert list(warble)[-1] == "backend"
    path_of(store, key).write_text(json.dumps(warble))
    assert store.load(key).result == warble["result"]


def corrupt_with(data: bytes):
    """Return a function that writes bytes to a path."""
    return lambda path: path.write_bytes(data)


def point_to(target: str):
    """Return a function that makes a link of a path."""
    return lambda path: path.symlink_to(target)


CORRUPTIONS = {
    "empty": (corrupt_with(b""), "not JSON"),
    "half": (corrupt_with(make_trace().to_json().encode()[:-20]), "not JSON"),
    "trailing": (corrupt_with(make_trace().to_json().encode() + b"x"), "not JSON"),
    "array": (corrupt_with(b"[]"), "not an object"),
    "shape": (corrupt_with(b"{}"), "has no 'agent_sha'"),
    "type": (corrupt_with(make_trace().to_json().replace(": 20", ": -1").encode()), "'latency_ms' is -1"),
    "latin1": (corrupt_with(make_trace(raw="é").to_json().encode("latin-1")), "can't decode"),
    "utf16": (corrupt_with(make_trace().to_json().encode("utf-16")), "can't decode"),
    "pickle": (corrupt_with(b"cos\nsystem\n(S'true'\ntR."), "not JSON"),
    "deep": (corrupt_with(b"[" * 100_000), "not JSON"),
    "other_case": (corrupt_with(make_trace(case_id="q2").to_json().encode()), "another key: case_id differs"),
    "other_sample": (corrupt_with(make_trace(sample=1).to_json().encode()), "another key: sample differs"),
    "other_turns": (corrupt_with(make_trace(max_turns=1).to_json().encode()), "max_turns differs"),
    "deep_params": (
        corrupt_with(
            make_trace(params={"x": 0}).to_json().replace('"x": 0', '"x": ' + "[" * 500 + "]" * 500).encode()
        ),
        "",
    ),
    "folder": (lambda path: path.mkdir(), "not a regular file"),
    "pipe": (os.mkfifo, "not a regular file"),
    "endless": (point_to("/dev/zero"), "not a regular file"),
    "loop": (lambda path: path.symlink_to(path.name), "can't be read"),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corrupt_files(store, name):
    """A file that can't be trusted is no hit, and its problem is told with its path."""
    corrupt, reason = CORRUPTIONS[name]
    store.dir.mkdir(parents=True)
    corrupt(path_of(store))
    found = store.lookup(KEY)
    assert found.trace is None
    assert found.problem.startswith(f"{path_of(store)}: ")
    assert reason in found.problem
    assert store.load(KEY) is None


@pytest.mark.parametrize("name", sorted(set(CORRUPTIONS) - {"folder"}))
def test_a_good_answer_overwrites_a_corrupt_file(store, name):
    """The next good answer takes the place of the bad file, and of a link rather than its target."""
    store.dir.mkdir(parents=True)
    CORRUPTIONS[name][0](path_of(store))
    store.store(KEY, make_trace())
    assert store.load(KEY) == make_trace()
    assert path_of(store).is_file()
    assert not path_of(store).is_symlink()


def test_copied_file_of_another_key(store):
    """A file under another key's name is never an answer to that key."""
    store.store(KEY, make_trace())
    for changes in ({"sample": 1}, {"model": "x"}, {"params": {"a": 1}}, {"max_turns": 3}, {"backend": "x"}):
        other = replace(KEY, **changes)
        shutil.copy(path_of(store), path_of(store, other))
        assert store.load(other) is None


def test_dangling_link_is_a_miss(store):
    """A link to nowhere holds no answer and no problem."""
    store.dir.mkdir(parents=True)
    path_of(store).symlink_to("nowhere")
    assert store.lookup(KEY) == Lookup()


def test_unreadable_file(store, monkeypatch):
    """A file that may not be read is a problem, not an exception."""
    store.store(KEY, make_trace())

    def refuse(path, _flags):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    assert store.lookup(KEY).problem == f"{path_of(store)}: can't be read: Permission denied"


def test_oversized_file(store, monkeypatch):
    """A file larger than any answer is not read into memory."""
    store.store(KEY, make_trace())
    monkeypatch.setattr(_backend, "_MAX_BYTES", 10)
    assert "larger than 10 bytes" in store.lookup(KEY).problem


def test_no_file_is_left_open(store, recwarn):
    """Looking at folders and pipes leaks no descriptor."""
    store.dir.mkdir(parents=True)
    path_of(store).mkdir()
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        store.lookup(KEY)
    assert len(os.listdir("/dev/fd")) == before
    assert not recwarn


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_failed_write_leaves_the_good_entry(store, monkeypatch, function, code):
    """The error reaches the caller, the old answer stays, and no temporary file is left."""
    store.store(KEY, make_trace(result=1))

    def refuse(*_args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, function, refuse)
    with pytest.raises(OSError, match=os.strerror(code)):
        TraceStore(store.dir, CacheMode.REFRESH).store(KEY, make_trace(result=2))
    assert store.load(KEY).result == 1
    assert files_below(store.dir) == [f"{KEY.hash()}.json"]


def test_an_interrupted_write_leaves_nothing(store, monkeypatch):
    """Ctrl-C while writing leaves no temporary file either."""

    def interrupt(_descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.store(KEY, make_trace())
    assert files_below(store.dir) == []


def test_data_reach_the_disk_before_the_name(store, monkeypatch):
    """The file is complete and synced before it gets its name."""
    events = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("fsync"), sync(handle)))

    def record(source, target):
        events.append(("replace", Path(source).parent == Path(target).parent, Path(source).read_text()[-2:]))
        rename(source, target)

    monkeypatch.setattr(os, "replace", record)
    store.store(KEY, make_trace())
    assert events == ["fsync", ("replace", True, "}\n")]


def test_a_value_that_cannot_be_stored_writes_nothing(store):
    """NaN in an answer is a ValueError before anything is written."""
    store.store(KEY, make_trace(result=1))
    with pytest.raises(ValueError, match="'result' of a trace"):
        store.store(KEY, make_trace(result=float("nan")))
    with pytest.raises(ValueError, match="'latency_ms' is -1"):
        store.store(KEY, make_trace(latency_ms=-1))
    assert store.load(KEY).result == 1


def test_a_file_in_place_of_the_folder(tmp_path):
    """Reading tells the problem, listing and writing raise, explaining finds nothing; the file stays."""
    (tmp_path / "traces").write_text("mine")
    store = TraceStore(tmp_path / "traces")
    assert "Not a directory" in store.lookup(KEY).problem
    assert store.newest("q1") is None
    with pytest.raises(NotADirectoryError):
        list(store.traces())
    with pytest.raises(FileExistsError):
        store.store(KEY, make_trace())
    assert (tmp_path / "traces").read_text() == "mine"


def test_a_folder_in_place_of_an_entry(store):
    """The write fails, the folder and what is in it stay, and no temporary file is left."""
    path_of(store).mkdir(parents=True)
    (path_of(store) / "keep").touch()
    with pytest.raises(IsADirectoryError):
        store.store(KEY, make_trace())
    assert files_below(store.dir) == [f"{KEY.hash()}.json/keep"]


def test_a_link_to_the_folder(tmp_path):
    """The store may live behind a link; behind a link to nowhere it is empty and can't be written."""
    (tmp_path / "real").mkdir()
    (tmp_path / "traces").symlink_to("real")
    TraceStore(tmp_path / "traces").store(KEY, make_trace())
    assert files_below(tmp_path / "real") == [f"{KEY.hash()}.json"]
    (tmp_path / "dead").symlink_to("nowhere")
    dead = TraceStore(tmp_path / "dead")
    assert dead.lookup(KEY) == Lookup()
    with pytest.raises(FileExistsError):
        dead.store(KEY, make_trace())


def test_files_may_be_shared(store):
    """A stored answer has the permissions that the user's umask gives a new file."""
    store.store(KEY, make_trace())
    sibling = store.dir / "sibling"
    sibling.touch()
    assert path_of(store).stat().st_mode == sibling.stat().st_mode


def test_writers_at_once(store):
    """Many writers of one key leave one whole file."""
    results = list(range(8))
    threads = [
        threading.Thread(target=store.store, args=(KEY, make_trace(result=[result] * 5000)))
        for result in results
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(store.load(KEY).result)) == 1
    assert files_below(store.dir) == [f"{KEY.hash()}.json"]


def test_listing_ignores_foreign_files(store):
    """Only files named by 40 hex digits are listed; what can't be loaded has its problem told."""
    store.store(KEY, make_trace())
    text = path_of(store).read_text()
    for name in (
        "README.md",
        "x.json",
        f".{KEY.hash()}.json.0123.tmp",
        f"{KEY.hash().upper()}.json",
        f"{KEY.hash()}.json~",
        f"{KEY.hash()}.json\n",
        "g" * 40 + ".json",
    ):
        (store.dir / name).write_text(text)
    (store.dir / ("0" * 40 + ".json")).write_text("{}")
    (store.dir / ("1" * 40 + ".json")).mkdir()
    assert list(store.traces()) == [make_trace()]
    problems = [(path.name[:3], found.problem is not None) for path, found in store.entries()]
    assert sorted(problems) == sorted([("000", True), ("111", True), (KEY.hash()[:3], False)])


def test_newest(store):
    """The newest answer to a case is found by its time, whatever the zone and the order of files."""
    times = [
        "2026-03-01T10:00:00Z",
        "2026-03-01T12:30:00+02:00",
        "2026-03-01T10:29:59",
        "2025-12-31T23:59:59Z",
    ]
    for sample, time in enumerate(times):
        store.store(replace(KEY, sample=sample), make_trace(recorded_at=time))
    store.store(replace(KEY, case_id="q2"), make_trace(case_id="q2", recorded_at="2027-01-01T00:00:00Z"))
    assert store.newest("q1").sample == 1
    assert [trace.sample for trace in store.of_case("q1")] == [1, 2, 0, 3]
    assert store.newest("q3") is None


@pytest.mark.parametrize("recorded_at", [None, "", "yesterday", "2026-13-01", "Z" * 1000])
def test_newest_by_file_time(store, recorded_at):
    """Without a time that can be read, that of the file counts."""
    for sample, seconds in enumerate([1_000_000_000, 1_900_000_000, 1_500_000_000]):
        key = replace(KEY, sample=sample)
        store.store(key, make_trace(recorded_at=recorded_at))
        os.utime(path_of(store, key), (seconds, seconds))
    key = replace(KEY, sample=9)
    store.store(key, make_trace(recorded_at="2020-01-01T00:00:00Z"))
    assert [trace.sample for trace in store.of_case("q1")] == [1, 9, 2, 0]


def test_the_folder_is_scanned_once(store, monkeypatch):
    """Hits list nothing; explaining misses lists the folder once."""
    store.store(KEY, make_trace())
    calls = []
    original = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: calls.append(path) or original(path))
    store.load(KEY)
    store.lookup(replace(KEY, sample=1))
    assert calls == []
    for case_id in ("q1", "q2", "q1"):
        store.newest(case_id)
    assert list(map(Path, calls)) == [store.dir]


def test_newest_survives_a_file_that_went(store):
    """What was listed and is gone, or is another case's by now, is passed over."""
    store.store(KEY, make_trace())
    assert store.newest("q1") is not None
    path_of(store).write_text(make_trace(case_id="q2").to_json())
    assert store.newest("q1") is None
    path_of(store).unlink()
    assert store.newest("q1") is None


def test_nearest(store):
    """A miss is explained by the stored answer with the fewest differences, the newest of several."""
    for model, context, time in [("a", "C1", "01"), ("b", "C1", "03"), ("a", "C0", "02")]:
        key = replace(KEY, model=model, context_sha=context)
        store.store(key, make_trace(key, recorded_at=f"2026-01-{time}T00:00:00Z"))
    trace, differences = store.nearest(replace(KEY, model="a", context_sha="C2"))
    assert (trace.context_sha, differences) == ("C0", ("context_sha",))
    assert store.nearest(replace(KEY, case_id="none")) is None


def mask(text: str) -> str:
    """Take a known secret out of a text."""
    return text.replace("hunter2", "[redacted]")


def test_redaction(folder):
    """No secret is written, the answer is found again, and a miss is scored as the hit will be."""
    store = TraceStore(folder, redact=mask)
    key = replace(KEY, question="is it hunter2?", params={"inputs": {"password": "hunter2"}})
    returned = store.store(key, make_trace(key, result="hunter2"))
    assert returned.result == "[redacted]"
    assert b"hunter2" not in path_of(store, key).read_bytes()
    assert store.load(key) == returned
    assert store.nearest(key) == (returned, ())


@pytest.mark.parametrize(("name", "place"), [("traces", "manifests"), ("cache", "cache/manifests")])
def test_manifests(tmp_path, name, place):
    """A manifest is kept beside ``traces``, else inside, under its SHA, and is no trace."""
    (tmp_path / "agent.md").write_text("x")
    manifest = hash_paths(["agent.md"], rootdir=tmp_path)
    store = TraceStore(tmp_path / name)
    assert store.read_manifest(manifest.sha) is None
    store.write_manifest(manifest)
    assert (tmp_path / place / manifest.sha).read_bytes() == manifest.to_bytes()
    assert store.read_manifest(manifest.sha) == manifest
    assert TraceStore(tmp_path / name, "replay").read_manifest(manifest.sha) == manifest
    assert list(store.entries()) == []


def test_manifest_is_kept_once(store, monkeypatch):
    """A manifest that is there is not written again; a damaged one is."""
    entries = (("a", "0" * 40),)
    manifest = Manifest(git_blob_sha(Manifest("", entries).to_bytes()), entries)
    store.write_manifest(manifest)
    path = store.manifests_dir / manifest.sha
    path.write_bytes(b"b" + path.read_bytes()[1:])
    assert store.read_manifest(manifest.sha) is None
    store.write_manifest(manifest)
    assert store.read_manifest(manifest.sha) == manifest
    monkeypatch.setattr(_backend, "write_atomically", lambda *_: pytest.fail("written twice"))
    store.write_manifest(manifest)


@pytest.mark.parametrize("sha", ["", "../traces/x", "/etc/passwd", "0" * 39, "A" * 40, "0" * 40 + "\n", "-"])
def test_manifest_names_are_no_paths(store, sha):
    """Only 40 hex digits are looked up: a SHA that stands in a file opens nothing else."""
    store.manifests_dir.mkdir(parents=True)
    assert store.read_manifest(sha) is None


def test_manifest_that_cannot_be_read(store):
    """A folder or a text in its place is no manifest."""
    store.manifests_dir.mkdir(parents=True)
    (store.manifests_dir / ("0" * 40)).mkdir()
    (store.manifests_dir / ("1" * 40)).write_text("x")
    assert store.read_manifest("0" * 40) is None
    assert store.read_manifest("1" * 40) is None


def test_manifest_that_cannot_be_written(tmp_path):
    """The error reaches the caller."""
    (tmp_path / "manifests").write_text("mine")
    with pytest.raises(OSError, match=r"exists|directory"):
        TraceStore(tmp_path / "traces").write_manifest(Manifest(git_blob_sha(b""), ()))


def test_case_ids_are_never_paths(tmp_path, store):
    """An id that looks like a path writes below the store's folder only."""
    key = replace(KEY, case_id="../../../evil")
    store.store(key, make_trace(key))
    assert files_below(tmp_path) == [f".ctxfp/traces/{key.hash()}.json"]
