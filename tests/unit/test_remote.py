from __future__ import annotations

import os
import time

import pytest

from pytest_ctxfp import CaseKey, Trace, _copies, _remote
from pytest_ctxfp._backend import StoreUnreachable, is_url, local_folder, mask_url
from pytest_ctxfp._copies import Copies
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._hashing import Manifest, git_blob_sha
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._store import TraceStore

URL = "s3://bucket/shop/traces"
ROOT = "bucket/shop/traces"


def make_key(n: int = 0) -> CaseKey:
    """Return the key of one of many cases."""
    return CaseKey(f"q{n}", "how many?", "A", "m", "C")


def make_trace(key: CaseKey, result: object = 1, **parts) -> Trace:
    """Return an answer to a key."""
    base = {name: getattr(key, name) for name in ("case_id", "agent_sha", "model", "context_sha", "question")}
    return Trace(**base, result=result, latency_ms=1, **parts)


class FakeFiles:
    """A file system in memory that counts requests and fails as it is told to."""

    protocol: object = ("s3", "s3a")

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.failures: list[BaseException] = []
        self.is_down = False
        self.n_versions = 0
        self.versions: dict[str, int] = {}
        self.times: dict[str, float] = {}

    def _count(self, request: str) -> None:
        self.requests.append(request)
        if self.is_down:
            raise ConnectionError("no route")
        if self.failures:
            raise self.failures.pop(0)

    def cat_file(self, path: str) -> bytes:
        """Return an object."""
        self._count("get")
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def cat(self, path: list[str], *, on_error: str) -> dict[str, bytes]:
        """Return those objects that are there."""
        assert on_error == "omit"
        self._count(f"get {len(path)}")
        return {one: self.objects[one] for one in path if one in self.objects}

    def pipe_file(self, path: str, value: bytes) -> None:
        """Write an object."""
        self._count("put")
        self.n_versions += 1
        self.objects[path], self.versions[path] = value, self.n_versions
        self.times[path] = time.time() + self.n_versions / 1000

    def ls(self, path: str, *, detail: bool) -> list[dict[str, object]]:
        """Return what is in a folder."""
        assert detail
        self._count("list")
        found = [name for name in self.objects if name.rpartition("/")[0] == path]
        if not found:
            raise FileNotFoundError(path)
        entries: list[dict[str, object]] = [
            {
                "name": name,
                "type": "file",
                "size": len(self.objects[name]),
                "ETag": f'"{self.versions[name]}"',
                "mtime": self.times[name],
            }
            for name in found
        ]
        return [*entries, {"name": f"{path}/folder", "type": "directory", "size": 0}]

    def makedirs(self, path: str, *, exist_ok: bool) -> None:
        """Make a folder, which needs nothing here."""
        assert exist_ok
        self._count(f"mkdir {path}")

    def mv(self, path1: str, path2: str) -> None:
        """Rename an object."""
        self._count("move")
        self.objects[path2], self.versions[path2] = self.objects.pop(path1), self.versions.pop(path1)


@pytest.fixture
def files(monkeypatch) -> FakeFiles:
    """Return the place behind the URL, where waiting takes no time."""
    fake = FakeFiles()
    monkeypatch.setattr(_remote, "_open", lambda _url: (fake, ROOT))
    monkeypatch.setattr(_remote.time, "sleep", lambda _seconds: None)
    return fake


def open_store(copies=None, mode: str = "auto") -> TraceStore:
    """Return a store of a new process."""
    return TraceStore(URL, mode, copies=copies)


def test_store_and_load(files, tmp_path):
    """What one machine stores another loads, by the same names as in a folder."""
    key = make_key()
    stored = open_store(tmp_path / "a").store(key, make_trace(key))
    assert list(files.objects) == [f"{ROOT}/{key.hash()}.json"]
    assert open_store(tmp_path / "b").load(key) == stored
    assert open_store().load(key) == stored
    assert open_store().load(make_key(1)) is None


def test_manifests_are_beside_traces(files):
    """A manifest is an object beside the folder ``traces``."""
    manifest = Manifest(git_blob_sha(b""), ())
    open_store().write_manifest(manifest)
    assert list(files.objects) == [f"bucket/shop/manifests/{manifest.sha}"]
    assert open_store().read_manifest(manifest.sha) == manifest


def test_a_warm_run_lists_once_and_fetches_nothing(files, tmp_path):
    """With copies of all answers a run costs one listing, whatever it has to explain."""
    keys = [make_key(n) for n in range(20)]
    for key in keys:
        open_store().store(key, make_trace(key))
    first = open_store(tmp_path)
    for key in keys:
        assert first.load(key) is not None
    files.requests.clear()
    again = open_store(tmp_path)
    for key in keys:
        assert again.load(key) is not None
        assert again.newest(key.case_id) is not None
    assert files.requests == ["list"]


def test_explaining_a_miss_fetches_the_newest_answers_at_once(files, tmp_path, monkeypatch):
    """All that is read to explain misses is fetched in one go, and of many answers only the newest."""
    for n in range(6):
        open_store().store(make_key(n), make_trace(make_key(n)))
    monkeypatch.setattr(_remote, "N_RECENT", 4)
    files.requests.clear()
    store = open_store(tmp_path)
    assert [store.newest(f"q{n}") is not None for n in range(6)] == [False, False, True, True, True, True]
    assert files.requests == ["list", "get 4"]


@pytest.mark.usefixtures("files")
def test_an_answer_that_came_after_the_listing_is_found():
    """What another machine has stored meanwhile is a hit."""
    store, key = open_store(), make_key()
    assert store.load(key) is None
    open_store().store(key, make_trace(key))
    assert store.load(key) is not None


@pytest.mark.usefixtures("files")
def test_a_refreshed_answer_replaces_its_copy(tmp_path):
    """A copy is of one version; a newer object is fetched."""
    key = make_key()
    open_store().store(key, make_trace(key, 1))
    assert open_store(tmp_path).load(key).result == 1
    open_store().store(key, make_trace(key, 2))
    assert open_store(tmp_path).load(key).result == 2


@pytest.mark.parametrize("n_failures", [1, 2, 3])
def test_transient_errors_are_tried_again(files, n_failures):
    """Up to three errors in a row are overcome, with growing pauses, and nothing is said."""
    key = make_key()
    open_store().store(key, make_trace(key))
    files.failures = [TimeoutError("slow")] * n_failures
    store = open_store()
    assert store.load(key) is not None
    assert store.outage is None
    assert list(_remote.PAUSES) == sorted(_remote.PAUSES)


def test_no_retry_storm(files):
    """After four attempts the place is left alone: a thousand cases cost no further request."""
    files.is_down = True
    store = open_store()
    for n in range(1_000):
        assert store.lookup(make_key(n)).trace is None
        with pytest.raises(StoreUnreachable, match="no route"):
            store.store(make_key(n), make_trace(make_key(n)))
    assert len(files.requests) == 4
    assert store.outage == f"the store {URL} can't be reached: ConnectionError: no route"


def test_hopeless_errors_are_not_tried_again(files):
    """Who is not let in is told so at once."""
    files.failures = [PermissionError("Forbidden")]
    store = open_store()
    assert store.lookup(make_key()).problem is None
    assert files.requests == ["list"]
    assert "PermissionError: Forbidden" in store.outage


def test_a_place_that_comes_back_is_used_again(files, monkeypatch):
    """After a minute one attempt is made; where it works, all is as before."""
    files.is_down = True
    store, key = open_store(), make_key()
    store.lookup(key)
    now = time.monotonic()
    monkeypatch.setattr(_remote.time, "monotonic", lambda: now + _remote.OUTAGE_SECONDS + 1)
    files.requests.clear()
    store.lookup(key)
    assert files.requests == ["list"]
    monkeypatch.setattr(_remote.time, "monotonic", lambda: now + 2 * _remote.OUTAGE_SECONDS + 2)
    files.is_down = False
    store.store(key, make_trace(key))
    assert store.load(key) is not None
    assert store.outage is None


def test_who_may_not_write_goes_on_reading(files):
    """A refused write is not tried again for a minute, and stops no stored answer from being used."""
    key = make_key()
    open_store().store(key, make_trace(key))
    store = open_store()
    assert store.load(key) is not None
    files.failures = [PermissionError("Access Denied")]
    files.requests.clear()
    for n in range(1, 4):
        with pytest.raises(StoreUnreachable, match="can't be written: PermissionError: Access Denied"):
            store.store(make_key(n), make_trace(make_key(n)))
    assert files.requests == ["put"]
    assert store.outage is None
    assert store.lookup(key).trace is not None


def test_a_refused_object_is_that_objects_problem(files):
    """An object that can't be read is said to be so; the next one is read all the same."""
    for n in range(2):
        open_store().store(make_key(n), make_trace(make_key(n)))
    store = open_store()
    assert store.load(make_key(0)) is not None
    files.failures = [PermissionError("Forbidden")]
    assert store.lookup(make_key(1)).problem.endswith(".json: can't be read: PermissionError: Forbidden")
    assert store.lookup(make_key(1)).trace is not None


def test_copies_serve_while_the_place_is_out_of_reach(files, tmp_path):
    """A copy answers exactly its key, so it is used in an outage; that it was is noted."""
    key = make_key()
    open_store().store(key, make_trace(key))
    open_store(tmp_path).load(key)
    files.is_down = True
    found = open_store(tmp_path).lookup(key)
    assert found.trace is not None
    assert found.notes == (f"the store {URL} can't be reached: ConnectionError: no route",)


def test_pending_answers(files, tmp_path):
    """An answer that can't be uploaded is kept, found again, and uploaded by a later run that writes."""
    key = make_key()
    files.is_down = True
    with pytest.raises(StoreUnreachable, match=r"kept in .*pending"):
        open_store(tmp_path).store(key, make_trace(key))
    assert open_store(tmp_path).load(key) is not None
    files.is_down = False
    assert open_store(tmp_path, "replay").load(key) is not None
    assert files.objects == {}
    assert open_store(tmp_path).load(key) is not None
    assert list(files.objects) == [f"{ROOT}/{key.hash()}.json"]
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if name == f"{key.hash()}.json"]


def test_a_pending_refresh_is_not_lost(files, tmp_path):
    """An answer that was to replace an older one replaces it later, and no copy of the older is used."""
    key = make_key()
    open_store().store(key, make_trace(key, 1))
    files.times = dict.fromkeys(files.times, time.time() - 60)
    open_store(tmp_path).load(key)
    files.is_down = True
    with pytest.raises(StoreUnreachable):
        open_store(tmp_path, "refresh").store(key, make_trace(key, 2))
    files.is_down = False
    assert open_store(tmp_path).load(key).result == 2
    assert open_store().load(key).result == 2


def test_what_a_process_stores_it_lists(files):
    """The names are listed once, and what is stored afterwards is among them."""
    store = open_store()
    assert list(store.entries()) == []
    store.store(make_key(), make_trace(make_key()))
    assert [path.name for path, _ in store.entries()] == [f"{make_key().hash()}.json"]
    assert files.requests == ["list", "put", "get 1"]


def test_pending_answers_follow_the_next_that_is_stored(files, tmp_path, monkeypatch):
    """A place that comes back within a run gets what it missed: the machine may be gone afterwards."""
    files.is_down = True
    store = open_store(tmp_path)
    with pytest.raises(StoreUnreachable):
        store.store(make_key(0), make_trace(make_key(0)))
    files.is_down = False
    now = time.monotonic()
    monkeypatch.setattr(_remote.time, "monotonic", lambda: now + _remote.OUTAGE_SECONDS + 1)
    store.store(make_key(1), make_trace(make_key(1)))
    assert sorted(files.objects) == sorted(f"{ROOT}/{make_key(n).hash()}.json" for n in range(2))


def test_a_pending_answer_yields_to_one_that_came_since(files, tmp_path):
    """Another machine's answer to the same key is not overwritten."""
    key = make_key()
    files.is_down = True
    with pytest.raises(StoreUnreachable):
        open_store(tmp_path).store(key, make_trace(key, 1))
    files.is_down = False
    open_store().store(key, make_trace(key, 2))
    assert open_store(tmp_path).load(key).result == 2
    assert open_store().load(key).result == 2


def test_elsewhere_files_get_their_names_when_complete(files):
    """Where a file grows while it is written it is written under another name first."""
    files.protocol = "sftp"
    key = make_key()
    store = open_store()
    store.store(key, make_trace(key))
    store.store(key, make_trace(key))
    assert files.requests == [f"mkdir {ROOT}", "put", "move", "put", "move"]
    assert list(files.objects) == [f"{ROOT}/{key.hash()}.json"]


def test_off_asks_nobody(monkeypatch):
    """With the cache off a URL is not even opened."""
    monkeypatch.setattr(_remote, "_open", lambda _url: pytest.fail("opened"))
    store = TraceStore(URL, CacheMode.OFF)
    store.store(make_key(), make_trace(make_key()))
    assert store.load(make_key()) is None


def test_unknown_protocol():
    """A URL that fsspec doesn't know is an error that names it without its secrets."""
    with pytest.raises(CtxfpError, match=r"nonsense://\*\*\*@x can't be used: .*nonsense"):
        TraceStore("nonsense://me:secret@x", "auto")


def test_copies_are_bounded(tmp_path, monkeypatch):
    """The oldest copies go where there are too many or too large ones; pending answers stay."""
    monkeypatch.setattr(_copies, "_WRITES_BETWEEN_CHECKS", 1)
    copies = Copies(tmp_path / "c", max_files=10, max_bytes=10_000)
    copies.keep_pending("p", b"x" * 20_000)
    for n in range(30):
        copies.write(f"f{n:02}", "v", b"x")
        path = next((tmp_path / "c").glob(f"f{n:02}.*"), None)
        if path is not None:
            os.utime(path, (n, n))
        copies._delete_oldest()
    assert len(list((tmp_path / "c").glob("f*"))) <= 10
    assert copies.read("f29", "v") == b"x"
    assert copies.read("f00", "v") is None
    copies.write("large", "v", b"x" * 9_990)
    copies._delete_oldest()
    assert sum(path.stat().st_size for path in (tmp_path / "c").glob("*.*")) <= 10_000
    assert copies.read_pending("p") is not None


def test_a_copy_that_cannot_be_written_is_no_error(tmp_path):
    """Copies are a courtesy: a file in the place of their folder is passed over."""
    (tmp_path / "c").touch()
    copies = Copies(tmp_path / "c" / "d")
    copies.write("f", "v", b"x")
    assert copies.read("f", "v") is None
    assert copies.read_latest("f") is None
    assert not copies.keep_pending("f", b"x")
    assert copies.pending() == []


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("s3://bucket/x", None),
        ("simplecache::s3://bucket/x", None),
        ("memory://x", None),
        ("file:///srv/traces", "/srv/traces"),
        ("FILE:///srv/traces", "/srv/traces"),
        ("local:///srv/traces", "/srv/traces"),
        ("/srv/traces", "/srv/traces"),
        ("c:/x", os.path.abspath("c:/x")),
        ("a::b", os.path.abspath("a::b")),
    ],
)
def test_urls_and_folders(place, expected):
    """A URL is told from a path, and a URL of a local file is a folder."""
    folder = local_folder(place)
    assert (None if folder is None else str(folder)) == expected
    assert expected is not None or is_url(place)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/x", "s3://bucket/x"),
        ("s3://id:se/c@ret@bucket/x", "s3://***@bucket/x"),
        ("https://host/x?sig=abc&se=1", "https://host/x?sig=***&se=***"),
        ('no "http://h/x?key=1" here', 'no "http://h/x?key=***" here'),
    ],
)
def test_masked_urls(url, shown):
    """Nothing before the @ and no value of a query is shown."""
    assert mask_url(url) == shown
