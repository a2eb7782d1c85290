"""Snapshot files: what is written, what is read back, and what is refused."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp._snapshot_file import (
    parse_snapshots,
    read_snapshots,
    render_snapshots,
    update_snapshots,
    write_snapshots,
)
from pytest_ctxfp._snapshot_model import LayerRow, SnapshotEntry, SnapshotFileError, make_row

PLAIN = LayerRow("System", "3f9c1a2b4d5e6f70", 412, 9)
HEADED = LayerRow("Facts", "0123456789abcdef", 5, 1, "##  Facts\n")
IGNORED = LayerRow("Recent Context", None, None, None)
IGNORED_HEADED = LayerRow("Now", None, None, None, "##  Now\r\n")
TEXT = """\
{"ctxfp": 1}
{"key": "TestX::test_y[a]#0", "sha256": "SHA", "bytes": 430, "layers": 4}
["System", "3f9c1a2b4d5e6f70", 412, 9]
["Facts", "0123456789abcdef", 5, 1, "##  Facts\\n"]
["Recent Context", null]
["Now", null, null, null, "##  Now\\r\\n"]
{"key": "test_a#0", "sha256": "SHA", "bytes": 0, "layers": 0}
""".replace("SHA", "a" * 64)


def entry(key="test_a#0", *rows, sha256="a" * 64, n_bytes=0):
    """Return an entry of these rows."""
    return SnapshotEntry(key=key, sha256=sha256, bytes=n_bytes, layers=rows)


def parse(text):
    """Return the entries in a text by key."""
    return dict(parse_snapshots(text if isinstance(text, bytes) else text.encode(), path="t.ctxfp"))


ENTRIES = [entry(), entry("TestX::test_y[a]#0", PLAIN, HEADED, IGNORED, IGNORED_HEADED, n_bytes=430)]

texts = st.text(st.characters(codec=None), max_size=12)
lone = st.sampled_from(["\ud800", "x\udfff", "\u2028", "\u202e", "\x85", "\r\n", "<<<<<<< "])
names = texts | lone
counts = st.integers(0, 2**40)
contents = st.none() | st.tuples(st.text("0123456789abcdef", min_size=16, max_size=16), counts, counts)
rows = st.builds(lambda key, header, content: make_row(key, header, content=content), names, names, contents)
entries_lists = st.lists(
    st.builds(
        SnapshotEntry,
        key=names.map(lambda key: make_row(key, "", content=None).key),
        sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
        bytes=counts,
        layers=st.lists(rows, max_size=4).map(tuple),
    ),
    max_size=4,
    unique_by=lambda one: one.key,
)


def test_the_format_is_the_documented_one():
    """Entries are rendered line for line as the format says, sorted by key."""
    assert render_snapshots(ENTRIES) == TEXT
    assert render_snapshots(reversed(ENTRIES)) == TEXT


@given(entries_lists)
def test_parse_undoes_render(entries):
    """What is rendered reads back equal, in UTF-8, and renders to the same text again."""
    text = render_snapshots(entries)
    read = parse(text.encode("utf-8"))
    assert read == {one.key: one for one in entries}
    assert render_snapshots(read.values()) == text


@pytest.mark.parametrize("text", [TEXT.replace("\n", "\r\n"), TEXT[:-1], "\ufeff" + TEXT])
def test_line_ends_of_git_and_editors_are_read(text):
    """CRLF, a missing final newline and a byte order mark change nothing that is read."""
    assert parse(text) == {one.key: one for one in ENTRIES}


def test_plain_header_is_not_stored():
    """Only a header text that isn't the usual one is kept, and it is given back exactly."""
    assert make_row("A", "## A\n", content=None) == LayerRow("A", None, None, None)
    assert make_row("(preamble)", "", content=None).header is None
    assert make_row("A#2", "## A\n", content=None).header_text == "## A\n"
    assert make_row("A", "", content=None).header_text == ""
    assert PLAIN.header_text == "## System\n"


HEAD = TEXT.splitlines()[1]
ROW = TEXT.splitlines()[2]
LINES = TEXT.splitlines(keepends=True)

FAULTS = {
    "conflict": (LINES[0] + "<<<<<<< HEAD\n" + "".join(LINES[1:]), 2, "conflict marker '<<<<<<<'"),
    "conflict middle": ("".join(LINES[:3]) + "=======\r\n" + "".join(LINES[3:]), 4, "conflict marker"),
    "conflict first line": (">>>>>>> theirs\n" + TEXT, 1, "conflict marker"),
    "conflict base": (TEXT + "||||||| base\n", 8, "conflict marker"),
    "same key twice": (TEXT + LINES[-1], 8, "'test_a#0' is in line 7 too"),
    "a layer too many": ("".join(LINES[:4]) + LINES[3] + "".join(LINES[4:]), 7, "more layer lines than"),
    "a layer too few": ("".join(LINES[:4] + LINES[5:]), 2, "has 3 of 4 layer lines"),
    "layers at the end cut off": ("".join(LINES[:4]), 2, "has 2 of 4 layer lines"),
    "cut off in a line": (TEXT[:-20], 7, "cut off in the middle of a line"),
    "newer version": (TEXT.replace('{"ctxfp": 1}', '{"ctxfp": 2}'), 1, "unknown to this version"),
    "more in the version line": (TEXT.replace('"ctxfp": 1', '"ctxfp": 1, "x": 0'), 1, "unknown to"),
    "huge version": (TEXT.replace('"ctxfp": 1', f'"ctxfp": {"1" * 5000}'), 1, "not a line of JSON"),
    "boolean version": (TEXT.replace('"ctxfp": 1', '"ctxfp": true'), 1, "the first line is not"),
    "no version": ("".join(LINES[1:]), 1, "the first line is not"),
    "layers only": (ROW + "\n", 1, "the first line is not"),
    "empty": ("", None, "empty"),
    "bytes that aren't UTF-8": (TEXT.encode() + b"\n\xff", 9, "not UTF-8"),
    "UTF-16": (TEXT.encode("utf-16"), 1, "not UTF-8"),
    "blank line": (LINES[0] + "\n" + "".join(LINES[1:]), 2, "not a line of JSON"),
    "two values in a line": (LINES[0] + "1,2\n" + "".join(LINES[1:]), 2, "not a line of JSON"),
    "a value over two lines": (TEXT.replace("412, 9]", "412,\n9]"), 3, "not a line of JSON"),
    "a list over two lines": (TEXT.replace(ROW, '["System"\n"b"]'), 3, "not a line of JSON"),
    "other JSON": (TEXT.replace(HEAD, "null"), 2, "not the first line of a snapshot"),
    "unknown field": (TEXT.replace('"bytes": 430', '"bytes": 430, "x": 1'), 2, "not the first line of"),
    "missing field": (TEXT.replace('"bytes": 430, ', ""), 2, "not the first line of a snapshot"),
    "negative count": (TEXT.replace('"layers": 4', '"layers": -4'), 2, "not the first line of a snapshot"),
    "boolean count": (TEXT.replace('"layers": 4', '"layers": true'), 2, "not the first line of a snapshot"),
    "infinite count": (TEXT.replace('"layers": 4', '"layers": 1e999999'), 2, "not the first line of"),
    "huge count": (TEXT.replace('"layers": 4', f'"layers": {"9" * 4000}'), 2, "not the first line of"),
    "short sha": (TEXT.replace("a" * 64, "a" * 63), 2, "not the first line of a snapshot"),
    "sha with a line feed": (TEXT.replace("a" * 64, "a" * 63 + "\\n"), 2, "not the first line of a"),
    "short hash": (TEXT.replace("3f9c1a2b4d5e6f70", "3f9c"), 3, "is not a layer"),
    "layer without bytes": (TEXT.replace(ROW, '["System", "3f9c1a2b4d5e6f70"]'), 3, "is not a layer"),
    "layer of six": (TEXT.replace("412, 9]", '412, 9, "h", 1]'), 3, "is not a layer"),
    "layer with null header": (TEXT.replace("412, 9]", "412, 9, null]"), 3, "is not a layer"),
    "ignored with bytes": (
        TEXT.replace('["Recent Context", null]', '["R", null, 1, 1]'),
        5,
        "is not a layer",
    ),
    "number as key": (TEXT.replace('"System"', "1"), 3, "is not a layer"),
    "empty layer": (TEXT.replace(ROW, "[]"), 3, "is not a layer"),
    "deep nesting": (TEXT.replace(ROW, "[" * 900 + "]" * 900), 3, "is not a layer"),
    "very deep nesting": (TEXT.replace(ROW, "[" * 99999 + "]" * 99999), 3, "not a line of JSON"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_file_is_named_with_line_and_remedy(fault):
    """Every broken file is an error that names file, line and remedy, on one line of bounded length."""
    text, line, what = FAULTS[fault]
    with pytest.raises(SnapshotFileError) as caught:
        parse(text)
    message = str(caught.value)
    assert caught.value.line == line
    assert message.startswith("t.ctxfp: " if line is None else f"t.ctxfp:{line}: ")
    assert what in message
    assert "git checkout" in message or "pip install" in message
    assert "\n" not in message
    assert len(message) < 600


def test_the_error_pickles():
    """An error that crosses a process keeps its data and text."""
    error = SnapshotFileError("a.ctxfp", 3, "why")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.path, copy.line, copy.reason) == ("a.ctxfp:3: why", "a.ctxfp", 3, "why")


def test_no_file_has_no_entries(tmp_path):
    """A file that doesn't exist, or whose folder is a file, reads as empty."""
    (tmp_path / "file").write_text("")
    assert not read_snapshots(tmp_path / "none.ctxfp").entries
    assert not read_snapshots(tmp_path / "file" / "x.ctxfp").entries


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path):
    """What can't be read at all is an error that names it, not an empty snapshot file."""
    with pytest.raises(SnapshotFileError, match="can't be read"):
        read_snapshots(tmp_path)


def test_write_and_read(tmp_path):
    """What is written reads back, in a folder that is made for it, with nothing else in there."""
    path = tmp_path / "__ctxfp__" / "test_x.ctxfp"
    assert write_snapshots(path, ENTRIES)
    assert read_snapshots(path).entries == {one.key: one for one in ENTRIES}
    assert path.read_bytes() == TEXT.encode()
    assert os.listdir(path.parent) == ["test_x.ctxfp"]


def test_equal_bytes_are_not_written(tmp_path):
    """A file that holds these bytes isn't touched, so neither its time nor its inode changes."""
    path = tmp_path / "t.ctxfp"
    write_snapshots(path, ENTRIES)
    before = path.stat()
    assert not write_snapshots(path, ENTRIES)
    after = path.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_disk_leaves_the_old_file_whole(tmp_path, monkeypatch, call):
    """Any OSError while writing leaves the old bytes, no temporary file, and names the file and remedy."""
    path = tmp_path / "t.ctxfp"
    write_snapshots(path, ENTRIES)

    def fail(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(SnapshotFileError) as caught:
            write_snapshots(path, [])
    assert str(caught.value).startswith(f"{path}: can't be written: No space left on device")
    assert "run the same command again" in str(caught.value)
    assert path.read_bytes() == TEXT.encode()
    assert os.listdir(tmp_path) == ["t.ctxfp"]


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    """A folder that can't be made is an error that names the snapshot file."""
    (tmp_path / "__ctxfp__").write_text("")
    with pytest.raises(SnapshotFileError, match=r"t\.ctxfp: can't be written: "):
        write_snapshots(tmp_path / "__ctxfp__" / "t.ctxfp", ENTRIES)


def test_update_replaces_adds_and_removes(tmp_path):
    """An update changes the named entries and keeps every other one."""
    path = tmp_path / "t.ctxfp"
    write_snapshots(path, [entry("a"), entry("b"), entry("c")])
    changed = entry("b", PLAIN)
    assert update_snapshots(path, [changed, entry("d")], removed=["a", "unknown"])
    assert dict(read_snapshots(path).entries) == {"b": changed, "c": entry("c"), "d": entry("d")}
    assert not update_snapshots(path, [changed])


def test_update_deletes_a_file_without_entries(tmp_path):
    """Removing the last entry removes the file, and an update of nothing makes none."""
    path = tmp_path / "t.ctxfp"
    write_snapshots(path, [entry("a")])
    assert update_snapshots(path, [], removed=["a"])
    assert not path.exists()
    assert not update_snapshots(path, [])
    assert not path.exists()


@pytest.mark.parametrize("fault", ["conflict", "newer version", "cut off in a line", "empty"])
def test_a_broken_file_is_never_rewritten(tmp_path, fault):
    """An update of a file that can't be read raises and leaves its bytes alone."""
    path = tmp_path / "t.ctxfp"
    path.write_bytes(FAULTS[fault][0].encode())
    with pytest.raises(SnapshotFileError):
        update_snapshots(path, [entry("a")])
    assert path.read_bytes() == FAULTS[fault][0].encode()


def test_bidi_and_line_separators_are_escaped():
    """Characters that reorder or break lines in a review stand escaped in the file."""
    text = render_snapshots([entry("a\u202eb\u2028c\x7f")])
    assert '"a\\u202eb\\u2028c\\u007f"' in text
    assert list(parse(text)) == ["a\u202eb\u2028c\x7f"]


def test_paths_in_messages_are_the_users(tmp_path):
    """The error names the path as it was given."""
    path = Path(tmp_path / "x.ctxfp")
    path.write_text("{}\n")
    with pytest.raises(SnapshotFileError) as caught:
        read_snapshots(path)
    assert caught.value.path == str(path)
