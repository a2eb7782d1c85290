"""Content hashes: git's blob SHA, canonical JSON, and one SHA for many files."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._paths import find_matching, parse_pattern, unreadable, walk_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pytest_ctxfp._paths import Parts, PathPattern

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SHA = re.compile(r"[0-9a-f]{40}")
_CHUNK_BYTES = 1 << 20


def git_blob_sha(data: bytes) -> str:
    """Return the 40 hex digits that ``git hash-object`` prints for these bytes.

    Source: git's object format: SHA-1 of ``blob``, a space, the length in decimal, a NUL and the data.
    """
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def git_text_sha(text: str) -> str:
    """Return the git blob SHA of a text in UTF-8; lone surrogates are hashed too, none is refused."""
    return git_blob_sha(text.encode("utf-8", "surrogatepass"))


def canonical_json(value: object) -> str:
    """Return the one compact JSON text of a value: keys sorted, nothing but text as keys.

    Raises:
        ValueError: a value that JSON can't hold exactly (NaN, infinity, other objects, keys that are no
            text, a value inside itself, nesting too deep, an integer too long to print).
    """
    try:
        text = _CANONICAL.encode(value)
    except (TypeError, RecursionError) as error:
        message = f"not a JSON value: {error}"
        raise ValueError(message) from None
    _refuse_other_keys(value)
    return text


def _refuse_other_keys(value: object) -> None:
    """Refuse keys that the encoder would turn into text: ``{1: ...}`` must not equal ``{"1": ...}``."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            for key in current:
                if not isinstance(key, str):
                    message = f"not a JSON value: the key {key!r} is no text"
                    raise ValueError(message)
            pending.extend(current.values())
        elif isinstance(current, (list, tuple)):
            pending.extend(current)


def is_sha(text: str) -> bool:
    """Whether this is a git SHA in full: 40 lower-case hex digits."""
    return _SHA.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What differs between two manifests: posix paths, sorted as in the manifest."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files behind one SHA.

    Args:
        sha: git blob SHA of the manifest's bytes.
        entries: posix relative path and git blob SHA of every file, sorted by path components.
        unmatched: patterns that gave no file, as the user wrote them.
    """

    sha: str
    entries: tuple[tuple[str, str], ...]
    unmatched: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the manifest as it is hashed and kept.

        Example::

            agent/prompt.md 8baef1b4abc478178b004d62031cf7fe6db6f903
            agent/tools.py e69de29bb2d1d6434b8b29ae775ad8c2e48c5391
        """
        return b"".join(b"%s %s\n" % (os.fsencode(path), sha.encode()) for path, sha in self.entries)

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Read a manifest back.

        Raises:
            ValueError: a line that is not ``<path> <40 hex digits>`` and a line feed.
        """
        *lines, rest = data.split(b"\n")
        entries = tuple(_parse_line(line) for line in lines)
        if rest:
            message = "the last line of the manifest is unfinished"
            raise ValueError(message)
        return cls(git_blob_sha(data), entries)

    def changes(self, other: Manifest) -> FileChanges:
        """Return what changed from this manifest to a later one."""
        before, after = dict(self.entries), dict(other.entries)
        return FileChanges(
            changed=tuple(path for path in after if path in before and before[path] != after[path]),
            added=tuple(path for path in after if path not in before),
            removed=tuple(path for path in before if path not in after),
        )


def tree_sha(root: str | os.PathLike[str], *, suffixes: Collection[str] | None = None) -> str:
    """Return one SHA for all files below a folder: names and bytes, without git's filters.

    Args:
        root: the folder; names are relative to it.
        suffixes: only files with one of these suffixes (``.yml``), in exactly this case; None for all.

    Raises:
        CtxfpError: no folder, no file in it, a file that can't be read, a line feed in a name.
    """
    top = os.path.abspath(os.fspath(root))
    if not os.path.isdir(top):
        message = f"{top!r} is not a folder"
        raise CtxfpError(message)
    wanted = {suffixes} if isinstance(suffixes, str) else suffixes and frozenset(suffixes)

    def take(parts: Parts) -> bool:
        return wanted is None or os.path.splitext(parts[-1])[1] in wanted

    files = dict(walk_files(top, take=take))
    if not files:
        kinds = "" if wanted is None else f" with a suffix of {', '.join(sorted(wanted))}"
        message = f"{top!r} holds no file{kinds}: nothing to hash"
        raise CtxfpError(message)
    return _manifest_of(files, unmatched=()).sha


def hash_paths(patterns: Iterable[str], *, rootdir: str | os.PathLike[str]) -> Manifest:
    """Return the manifest of the files that a list of patterns stands for.

    Args:
        patterns: files, folders and globs relative to the rootdir; ``!pattern`` excludes, wherever in the
            list it stands. A folder, also one that a glob matches, stands for all files below it.
        rootdir: what patterns and the manifest's names are relative to.

    Raises:
        CtxfpError: no file at all, a file that can't be read, a line feed in a name, a bad pattern.
    """
    root = os.path.abspath(os.fspath(rootdir))
    given = tuple(patterns)
    excluded = [parse_pattern(text[1:], root) for text in given if text.startswith("!")]
    wanted = [parse_pattern(text, root) for text in given if not text.startswith("!")]
    files: dict[Parts, str] = {}
    unmatched = []
    for pattern in wanted:
        found = dict(find_matching(pattern, root, excluded=excluded))
        files.update(found)
        if not found:
            unmatched.append(pattern.text)
    if not files:
        raise _nothing_matched(wanted, root)
    return _manifest_of(files, unmatched=tuple(unmatched))


def _nothing_matched(wanted: Iterable[PathPattern], root: str) -> CtxfpError:
    names = ", ".join(repr(pattern.text) for pattern in wanted)
    what = (
        f"no file below {root!r} is matched by {names}, or each is excluded"
        if names
        else "no pattern says what to hash"
    )
    return CtxfpError(f"{what}: name a file, a folder or a glob, relative to the rootdir")


def _manifest_of(files: dict[Parts, str], *, unmatched: tuple[str, ...]) -> Manifest:
    ordered = sorted(files.items(), key=lambda item: [os.fsencode(part) for part in item[0]])
    entries = tuple((_manifest_name(parts), _file_sha(path)) for parts, path in ordered)
    sha = git_blob_sha(Manifest("", entries).to_bytes())
    return Manifest(sha, entries, unmatched)


def _manifest_name(parts: Parts) -> str:
    name = "/".join(parts)
    if "\n" in name:
        message = f"the name {name!r} holds a line feed, which a manifest can't hold: rename the file"
        raise CtxfpError(message)
    return name


def _file_sha(path: str) -> str:
    """Hash a file piece by piece: a database may be larger than the memory."""
    n_read = 0
    try:
        with open(path, "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
            while chunk := handle.read(_CHUNK_BYTES):
                digest.update(chunk)
                n_read += len(chunk)
    except OSError as error:
        raise unreadable(path, error) from None
    if n_read != size:
        message = f"{path!r} changed while it was being hashed: run again when nothing writes to it"
        raise CtxfpError(message)
    return digest.hexdigest()


def _parse_line(line: bytes) -> tuple[str, str]:
    name, _, sha = line.rpartition(b" ")
    digits = sha.decode("ascii", "replace")
    if not name or not is_sha(digits):
        message = f"{line[:200]!r} is not a manifest line: '<path> <40 hex digits>'"
        raise ValueError(message)
    return os.fsdecode(name), digits
