from __future__ import annotations

import hashlib
import json
import os
import pickle
from pathlib import Path

import pytest

from pytest_ctxfp import _paths
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._hashing import (
    FileChanges,
    Manifest,
    canonical_json,
    git_blob_sha,
    git_text_sha,
    hash_paths,
    tree_sha,
)

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "dir_sha.jsonl").read_text("utf-8").split("\n")
    if line
]


def write_files(root: Path, files: dict[str, str]) -> None:
    """Write texts to files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def names(manifest: Manifest) -> list[str]:
    """Return the file names of a manifest."""
    return [name for name, _ in manifest.entries]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_tree_sha_vectors(vector, tmp_path):
    """A folder's SHA is the recorded one, for all files and for three suffixes, or an error for none."""
    write_files(tmp_path, vector["input"]["files"])
    expected = vector["expected"]
    assert tree_sha(tmp_path) == expected["tree_sha"]
    if expected["tree_sha_yml_yaml_md"] is None:
        with pytest.raises(CtxfpError, match="no file with a suffix of"):
            tree_sha(tmp_path, suffixes=[".yml", ".yaml", ".md"])
    else:
        assert tree_sha(tmp_path, suffixes=[".yml", ".yaml", ".md"]) == expected["tree_sha_yml_yaml_md"]


def test_blob_sha_is_gits():
    """Known blobs have the SHA that git gives them."""
    assert git_blob_sha(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert git_blob_sha(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_text_sha_takes_lone_surrogates():
    """No text is refused, and two surrogates are not the character that they could make up."""
    assert git_text_sha("\ud83d\ude00") != git_text_sha("\U0001f600")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, 1.0]}, '{"a":[true,null,1.0],"b":1}'),
        ({"é": "\u2028"}, '{"é":"\u2028"}'),
        ((1, 2), "[1,2]"),
        (-0.0, "-0.0"),
    ],
)
def test_canonical_json(value, text):
    """Keys are sorted, nothing is escaped without need, no space is left."""
    assert canonical_json(value) == text


def nested(depth: int) -> list[object]:
    """Return lists inside each other."""
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def inside_itself() -> list[object]:
    """Return a list that holds itself."""
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {1: "a"},
        [{"a": {None: 1}}],
        ({"a": ({True: 1},)},),
        {1: 1, "1": 2},
        {1, 2},
        b"x",
        object(),
        10**5000,
        nested(200_000),
        inside_itself(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_canonical_json_refuses(value):
    """What JSON can't hold exactly is a ValueError, never a text that another value has too."""
    with pytest.raises(ValueError, match=r"."):
        canonical_json(value)


def test_tree_sha_is_the_sha_of_the_manifest(tmp_path):
    """The definition: a line a file, sorted by components as bytes, hashed as a blob."""
    write_files(tmp_path, {"a/z.md": "1", "a.md": "2", "a-b/c": "3", "é": "4", "Z": "5"})
    lines = "".join(
        f"{name} {git_blob_sha(text)}\n"
        for name, text in [("Z", b"5"), ("a/z.md", b"1"), ("a-b/c", b"3"), ("a.md", b"2"), ("é", b"4")]
    )
    assert tree_sha(tmp_path) == git_blob_sha(lines.encode())


def test_skip_list(tmp_path):
    """Folders and files that tools leave behind are not hashed."""
    write_files(tmp_path, {"a.md": "x"})
    before = tree_sha(tmp_path)
    skipped = [
        ".git/HEAD",
        ".hg/x",
        ".venv/x",
        "venv/x",
        "node_modules/x",
        "sub/__pycache__/x",
        ".pytest_cache/x",
        ".mypy_cache/x",
        ".ruff_cache/x",
        ".ctxfp/x",
        "sub/__ctxfp__/x",
        "x.egg-info/PKG-INFO",
        "y.egg-info",
        "sub/.DS_Store",
        "other/.git",
    ]
    write_files(tmp_path, dict.fromkeys(skipped, "y"))
    assert tree_sha(tmp_path) == before


def test_a_root_named_as_a_skipped_folder_is_hashed(tmp_path):
    """The skip list holds below the root only."""
    write_files(tmp_path / "venv", {"a": "x"})
    write_files(tmp_path / "other", {"a": "x"})
    assert tree_sha(tmp_path / "venv") == tree_sha(tmp_path / "other")


def test_links_are_followed_and_loops_are_not(tmp_path):
    """A link stands for what it leads to; a folder inside itself and links to nowhere change nothing."""
    write_files(tmp_path, {"tree/a/f.md": "1", "outside/g.md": "2", "copy/a/f.md": "1", "copy/out/g.md": "2"})
    write_files(tmp_path, {"copy/h.md": "1"})
    tree = tmp_path / "tree"
    (tree / "out").symlink_to(tmp_path / "outside")
    (tree / "h.md").symlink_to(tree / "a" / "f.md")
    (tree / "a" / "up").symlink_to(tree)
    (tree / "gone").symlink_to(tmp_path / "nothing")
    (tree / "through_a_file").symlink_to(tree / "h.md" / "x")
    (tree / "me").symlink_to(tree / "me")
    (tree / "long").symlink_to("x" * 3000)
    os.mkfifo(tree / "pipe")
    assert tree_sha(tree) == tree_sha(tmp_path / "copy")


@pytest.fixture
def deep_folder(tmp_path):
    """Make 1,200 folders inside each other, and take them away again: pytest's own clean-up recurses."""
    folders = [tmp_path / ("d/" * depth) for depth in range(1, 1201)]
    for folder in folders:
        folder.mkdir()
    yield folders[-1]
    for folder in reversed(folders):
        folder.rmdir()


def test_folders_may_nest_deeper_than_the_stack(tmp_path, deep_folder):
    """Depth alone is no error."""
    deepest = deep_folder / "f"
    deepest.touch()
    assert len(tree_sha(tmp_path)) == 40
    deepest.unlink()


def test_line_feed_in_a_name(tmp_path):
    """A name that could forge a manifest line is refused."""
    write_files(tmp_path, {"a\nb.md": "x"})
    with pytest.raises(CtxfpError, match="line feed"):
        tree_sha(tmp_path)


def test_names_that_are_not_utf8(tmp_path):
    """Names are hashed as the bytes that the file system has, and are read back from a manifest."""
    with open(os.fsencode(tmp_path) + b"/\xff.md", "wb") as handle:
        handle.write(b"x")
    manifest = hash_paths(["."], rootdir=tmp_path)
    assert manifest.to_bytes() == b"\xff.md " + git_blob_sha(b"x").encode() + b"\n"
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest
    assert tree_sha(tmp_path) == manifest.sha


@pytest.mark.parametrize("name", ["missing", "file"])
def test_tree_sha_of_no_folder(tmp_path, name):
    """What is not a folder is an error that names it."""
    write_files(tmp_path, {"file": "x"})
    with pytest.raises(CtxfpError, match=f"{name}' is not a folder"):
        tree_sha(tmp_path / name)


def test_empty_folder(tmp_path):
    """No file is an error, not the hash of nothing."""
    (tmp_path / "sub").mkdir()
    with pytest.raises(CtxfpError, match="holds no file: nothing to hash"):
        tree_sha(tmp_path)


def test_one_suffix_as_text(tmp_path):
    """A single suffix may be given as it is."""
    write_files(tmp_path, {"a.md": "x", "b.d": "y"})
    assert tree_sha(tmp_path, suffixes=".md") == tree_sha(tmp_path, suffixes={".md"})


def test_unreadable_file(tmp_path, monkeypatch):
    """A file that can't be read is an error that names it, never left out."""
    write_files(tmp_path, {"a.md": "x"})

    def refuse(path, *_args, **_options):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(CtxfpError, match=r"can't read '.*a\.md': Permission denied"):
        tree_sha(tmp_path)


@pytest.mark.parametrize("function", ["scandir", "stat"])
def test_unreadable_folder(tmp_path, monkeypatch, function):
    """A folder that can't be read is an error that names it, never left out."""
    write_files(tmp_path, {"sub/a.md": "x", "b.md": "x"})
    original = getattr(os, function)

    def refuse(path, *args, **options):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", path)
        return original(path, *args, **options)

    monkeypatch.setattr(_paths.os, function, refuse)
    with pytest.raises(CtxfpError, match=r"can't read '.*sub': Permission denied"):
        tree_sha(tmp_path)


def test_file_that_grows_while_it_is_hashed(tmp_path, monkeypatch):
    """A hash of half a write is an error: git's SHA holds the length."""
    write_files(tmp_path, {"a.md": "x" * 10})

    class Status:
        st_size = 9

    monkeypatch.setattr("pytest_ctxfp._hashing.os.fstat", lambda _: Status)
    with pytest.raises(CtxfpError, match="changed while it was being hashed"):
        tree_sha(tmp_path)


def test_large_file(tmp_path):
    """A file is hashed piece by piece to the same SHA."""
    data = b"0123456789" * 300_000
    (tmp_path / "big").write_bytes(data)
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    assert hash_paths(["big"], rootdir=tmp_path).entries == (("big", blob),)


FILES = {
    "agent/main.py": "1",
    "agent/tools/search.py": "2",
    "agent/tools/notes.md": "3",
    "agent/tests/test_main.py": "4",
    "agent/.hidden.md": "5",
    "prompts/a.md": "6",
    "prompts/b.MD": "7",
    "top.md": "8",
    "odd[1].md": "9",
    "odd1.md": "10",
    "!bang": "11",
    "agent/__pycache__/main.pyc": "12",
}


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["top.md"], ["top.md"]),
        (["prompts"], ["prompts/a.md", "prompts/b.MD"]),
        (["prompts/"], ["prompts/a.md", "prompts/b.MD"]),
        (["./prompts/../top.md", "top.md"], ["top.md"]),
        (["*.md"], ["odd1.md", "odd[1].md", "top.md"]),
        (["odd[1].md"], ["odd[1].md"]),
        (["odd[0-9].md"], ["odd1.md"]),
        (["agent/tools/*"], ["agent/tools/notes.md", "agent/tools/search.py"]),
        (["agent/*", "!agent/tests", "!**/*.py"], ["agent/.hidden.md", "agent/tools/notes.md"]),
        (["agent/**/*.py"], ["agent/main.py", "agent/tests/test_main.py", "agent/tools/search.py"]),
        (["!agent/tests/**", "agent/**/*.py"], ["agent/main.py", "agent/tools/search.py"]),
        (["**/*.md", "!odd*"], ["agent/.hidden.md", "agent/tools/notes.md", "prompts/a.md", "top.md"]),
        (["**/**/tools"], ["agent/tools/notes.md", "agent/tools/search.py"]),
        (["*/tools/?earch.py"], ["agent/tools/search.py"]),
        (["./!bang"], ["!bang"]),
        (["prompts", "prompts/a.md", "*/a.md", "prompts/*"], ["prompts/a.md", "prompts/b.MD"]),
        (["agent/tools", "!**/*.py"], ["agent/tools/notes.md"]),
        (["../root/top.md"], ["top.md"]),
        (["../beside/x.md"], ["../beside/x.md"]),
        (["../bes*/*.md"], ["../beside/x.md"]),
    ],
    ids=" ".join,
)  # fmt: skip
def test_patterns(tmp_path, patterns, expected):
    """Files, folders and globs are relative to the rootdir, each file counts once, ``!`` excludes."""
    write_files(tmp_path / "root", FILES)
    write_files(tmp_path / "beside", {"x.md": "1"})
    assert names(hash_paths(patterns, rootdir=tmp_path / "root")) == expected


def test_absolute_pattern(tmp_path):
    """An absolute path names the same files as a relative one."""
    write_files(tmp_path, FILES)
    absolute = hash_paths([str(tmp_path / "agent")], rootdir=tmp_path)
    assert absolute == hash_paths(["agent"], rootdir=tmp_path)


def test_the_whole_rootdir_is_its_tree(tmp_path):
    """``.`` gives the tree SHA of the rootdir."""
    write_files(tmp_path, FILES)
    assert hash_paths(["."], rootdir=tmp_path).sha == tree_sha(tmp_path)
    assert hash_paths(["**"], rootdir=tmp_path).sha == tree_sha(tmp_path)


def test_order_of_patterns_does_not_matter(tmp_path):
    """The SHA is that of a set of files."""
    write_files(tmp_path, FILES)
    patterns = ["agent", "*.md", "!agent/tests", "prompts"]
    assert hash_paths(patterns, rootdir=tmp_path) == hash_paths(patterns[::-1], rootdir=tmp_path)


def test_unmatched_patterns_are_reported(tmp_path):
    """A pattern that gives no file is named, where others give some."""
    write_files(tmp_path, FILES)
    (tmp_path / "dangling").symlink_to("nowhere")
    manifest = hash_paths(["top.md", "typo/*.md", "dangling", "prompts", "!prompts"], rootdir=tmp_path)
    assert manifest.unmatched == ("typo/*.md", "dangling", "prompts")
    assert names(manifest) == ["top.md"]


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (
            ["typo.md", "no/*"],
            r"no file below '.*' is matched by 'typo.md', 'no/\*', or each is excluded: name a",
        ),
        (["top.md", "!*"], r"is matched by 'top.md'"),
        ([], "no pattern says what to hash"),
        (["!top.md"], "no pattern says what to hash"),
        ([" "], "' ' is no path"),
        (["!"], "'' is no path"),
        (["a\0b"], "is no path"),
        (["agent/__pycache__/*/x"], "is matched by"),
    ],
)
def test_nothing_to_hash(tmp_path, patterns, message):
    """No file at all is an error that names the patterns."""
    write_files(tmp_path, FILES)
    with pytest.raises(CtxfpError, match=message) as raised:
        hash_paths(patterns, rootdir=tmp_path)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_pipe_is_no_file(tmp_path):
    """A named pipe gives nothing, and reading it is never tried."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CtxfpError, match="is matched by 'pipe'"):
        hash_paths(["pipe"], rootdir=tmp_path)


def test_excluded_folders_are_not_entered(tmp_path, monkeypatch):
    """What is excluded need not be readable, nor have a name that a manifest can hold."""
    write_files(tmp_path, {"a/x.md": "1", "a/locked/y.md": "2", "a/bad\nname": "3"})
    original = os.scandir

    def refuse(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return original(path)

    monkeypatch.setattr(_paths.os, "scandir", refuse)
    assert names(hash_paths(["a", "!a/locked", "!a/bad*"], rootdir=tmp_path)) == ["a/x.md"]


def test_searches_only_where_a_pattern_leads(tmp_path, monkeypatch):
    """A glob without ``**`` reads no folder that can't hold a match."""
    write_files(tmp_path, {"a/x.md": "1", "data/deep/y.md": "2", "b/sub/z.md": "3"})
    listed = []
    original = os.scandir
    monkeypatch.setattr(_paths.os, "scandir", lambda path: listed.append(str(path)) or original(path))
    assert names(hash_paths(["[ab]/*.md"], rootdir=tmp_path)) == ["a/x.md"]
    assert sorted(os.path.relpath(path, tmp_path) for path in listed) == [".", "a", "b"]


def test_many_any_depth_components(tmp_path):
    """A pattern of many ``**`` takes no exponential time."""
    deep = "/".join("d" * 60)
    write_files(tmp_path, {f"{deep}/f.md": "x"})
    assert len(hash_paths(["/".join(["**", "d"] * 25) + "/*.md"], rootdir=tmp_path).entries) == 1


def test_manifest_round_trip(tmp_path):
    """A manifest is read back from its bytes, with the same SHA."""
    write_files(tmp_path, {"a b.md": "1", "c": "2"})
    manifest = hash_paths(["."], rootdir=tmp_path)
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest
    assert git_blob_sha(manifest.to_bytes()) == manifest.sha


@pytest.mark.parametrize(
    "data",
    [b"a", b"a\n", b"a b\n", b"\n", b" " + b"0" * 40 + b"\n", b"a " + b"A" * 40 + b"\n", b"a " + b"0" * 40],
)
def test_manifest_that_is_none(data):
    """Bytes that are no manifest are a ValueError."""
    with pytest.raises(ValueError, match="manifest"):
        Manifest.from_bytes(data)


def test_changes(tmp_path):
    """Two manifests tell which files changed, came and went."""
    write_files(tmp_path, {"a": "1", "b": "2", "c": "3"})
    before = hash_paths(["."], rootdir=tmp_path)
    write_files(tmp_path, {"a": "one", "d": "4"})
    (tmp_path / "b").unlink()
    after = hash_paths(["."], rootdir=tmp_path)
    assert before.changes(after) == FileChanges(changed=("a",), added=("d",), removed=("b",))
    assert before.changes(before) == FileChanges()
