"""Finding the files that a folder or a list of patterns stands for, the same way on every machine."""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Parts = tuple[str, ...]
"""A path's components, relative to the folder that the hash is relative to."""

_SKIPPED_NAMES = frozenset(
    {
        ".git",
        ".hg",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".ctxfp",
        "__ctxfp__",
        ".DS_Store",
    }
)
_SKIPPED_SUFFIX = ".egg-info"
_LEADS_NOWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_WINDOWS_LINK_LOOP = 1921
_ANY_DEPTH = "**"
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A file, a folder or a glob, relative to the rootdir, split in components.

    A pattern covers what it matches and, where that is a folder, everything below. ``*`` and ``?`` stay
    within a component, ``**`` is any number of components. Letters match in their case only.

    Args:
        text: the pattern as the user wrote it, for messages.
        parts: its components.
        is_glob: whether ``* ? [`` in the components are magic.
    """

    text: str
    parts: Parts
    is_glob: bool

    @property
    def fixed_parts(self) -> Parts:
        """The leading components without magic: where a search begins."""
        if not self.is_glob:
            return self.parts
        n_fixed = next(index for index, part in enumerate(self.parts) if _MAGIC.search(part))
        return self.parts[:n_fixed]

    def covers(self, parts: Parts) -> bool:
        """Whether the pattern matches this path or a folder above it."""
        return len(self.parts) in self._positions(parts)

    def may_lead_to(self, parts: Parts) -> bool:
        """Whether anything below this folder can be covered."""
        return bool(self._positions(parts))

    def _positions(self, parts: Parts) -> set[int]:
        """Return how many pattern components can be used up by these path components."""
        positions = self._skip_any_depth({0})
        for part in parts:
            if len(self.parts) in positions:
                break
            positions = self._skip_any_depth({after for at in positions for after in self._step(at, part)})
        return positions

    def _step(self, position: int, part: str) -> tuple[int, ...]:
        wanted = self.parts[position]
        if self.is_glob and wanted == _ANY_DEPTH:
            return (position,)
        matches = fnmatch.fnmatchcase(part, wanted) if self.is_glob else part == wanted
        return (position + 1,) if matches else ()

    def _skip_any_depth(self, positions: set[int]) -> set[int]:
        for start in tuple(positions):
            position = start
            while self.is_glob and position < len(self.parts) and self.parts[position] == _ANY_DEPTH:
                position += 1
                positions.add(position)
        return positions


def parse_pattern(text: str, rootdir: str) -> PathPattern:
    """Read one pattern, without its leading ``!``.

    What exists under exactly this name is meant by it, even where the name holds ``*``, ``?`` or ``[``.

    Args:
        text: a path or glob, relative to the rootdir or absolute, with ``/`` or the system's separator.
        rootdir: an absolute path.

    Raises:
        CtxfpError: an empty pattern or one that can't be a path.
    """
    if not text.strip() or "\0" in text:
        message = f"{text!r} is no path: write a file, a folder or a glob relative to the rootdir"
        raise CtxfpError(message)
    absolute = os.path.normpath(os.path.join(rootdir, text))
    relative = os.path.relpath(absolute, rootdir)
    parts = () if relative == os.curdir else tuple(relative.split(os.sep))
    is_glob = any(map(_MAGIC.search, parts)) and not os.path.lexists(absolute)
    return PathPattern(text, parts, is_glob)


def find_matching(
    pattern: PathPattern, rootdir: str, *, excluded: Iterable[PathPattern] = ()
) -> Iterator[tuple[Parts, str]]:
    """Yield the files that a pattern covers and no excluded pattern does, in no particular order.

    The skip list holds for what a search finds, not for the leading components that the user spelled out.

    Yields:
        the components relative to the rootdir, and a path to open.

    Raises:
        CtxfpError: a folder that can't be read.
    """
    unwanted = tuple(excluded)

    def enter(parts: Parts) -> bool:
        return pattern.may_lead_to(parts) and not any(other.covers(parts) for other in unwanted)

    def take(parts: Parts) -> bool:
        return pattern.covers(parts) and not any(other.covers(parts) for other in unwanted)

    start = pattern.fixed_parts
    top = os.path.join(rootdir, *start)
    status = _status_of(top)
    if status is None:
        return
    if stat.S_ISREG(status.st_mode) and take(start):
        yield start, top
    elif stat.S_ISDIR(status.st_mode) and enter(start):
        yield from walk_files(top, prefix=start, enter=enter, take=take)


def walk_files(
    top: str,
    *,
    take: Callable[[Parts], bool],
    enter: Callable[[Parts], bool] = lambda _: True,
    prefix: Parts = (),
) -> Iterator[tuple[Parts, str]]:
    """Yield the regular files below a folder, in no particular order, links followed.

    A folder inside itself, links that lead nowhere, non-regular files and the skip list are passed over.

    Args:
        top: the folder.
        take: whether a file, by its components, is wanted.
        enter: whether a folder, by its components, is to be searched.
        prefix: components of ``top`` itself.

    Raises:
        CtxfpError: a folder that can't be read.
    """
    # A list of its own, not recursion: folders nest deeper than Python's stack.
    pending: list[tuple[str, Parts, frozenset[tuple[int, int]]]] = [(top, prefix, frozenset())]
    while pending:
        folder, parts, above = pending.pop()
        status = _status_of(folder)
        if status is None or (status.st_dev, status.st_ino) in above:
            continue
        inside = above | {(status.st_dev, status.st_ino)}
        for entry in _list_folder(folder):
            here = (*parts, entry.name)
            kind = _kind_of(entry)
            if kind == stat.S_IFDIR and enter(here):
                pending.append((entry.path, here, inside))
            elif kind == stat.S_IFREG and take(here):
                yield here, entry.path


def unreadable(path: str, error: OSError) -> CtxfpError:
    """Return the error for a file or folder that has to be hashed and can't be read."""
    return CtxfpError(
        f"can't read {path!r}: {error.strerror or error}: make it readable, or leave it out of what is hashed"
    )


def _status_of(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError as error:
        if _leads_nowhere(error):
            return None
        raise unreadable(path, error) from None


def _list_folder(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not _is_skipped(entry.name)]
    except OSError as error:
        raise unreadable(folder, error) from None


def _kind_of(entry: os.DirEntry[str]) -> int | None:
    try:
        if entry.is_dir():
            return stat.S_IFDIR
        return stat.S_IFREG if entry.is_file() else None
    except OSError as error:
        if _leads_nowhere(error):
            return None
        raise unreadable(entry.path, error) from None


def _is_skipped(name: str) -> bool:
    return name in _SKIPPED_NAMES or name.endswith(_SKIPPED_SUFFIX)


def _leads_nowhere(error: OSError) -> bool:
    return error.errno in _LEADS_NOWHERE or getattr(error, "winerror", None) == _WINDOWS_LINK_LOOP
