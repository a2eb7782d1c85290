"""What a stored snapshot is: an entry of layer rows, in a file of entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._layers import PREAMBLE_KEY, join_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class SnapshotFileError(CtxfpError):
    """A snapshot file that can't be read, or couldn't be written; it is left as it was.

    Args:
        path: the file.
        line: 1-based line of the fault, or None where the whole file is meant.
        reason: what is wrong and how to mend it.
    """

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path = path
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}"


class LayerRow(NamedTuple):
    r"""One layer as stored: a tuple, because every check of a snapshot compares a few.

    ``hash``, ``bytes`` and ``lines`` are None for an ignored layer; ``header`` is None where the
    header text is ``## KEY\n`` (for ``(preamble)``: where it is empty).
    """

    key: str
    hash: str | None
    bytes: int | None
    lines: int | None
    header: str | None = None

    @property
    def is_ignored(self) -> bool:
        """Whether only name and place of this layer are stored."""
        return self.hash is None

    @property
    def header_text(self) -> str:
        """The header text, exactly as in the context."""
        return default_header(self.key) if self.header is None else self.header


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEntry:
    """One snapshot: SHA-256 and bytes of all layers that aren't ignored together, and the layers in order."""

    key: str
    sha256: str
    bytes: int
    layers: tuple[LayerRow, ...]


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A snapshot file, read and checked; ``entries`` is empty where there is no file."""

    path: Path
    entries: Mapping[str, SnapshotEntry]


def default_header(key: str) -> str:
    """Return the header text that a stored layer of this key has unless its line says otherwise."""
    return "" if key == PREAMBLE_KEY else f"## {key}\n"


def make_row(key: str, header: str, *, content: tuple[str, int, int] | None) -> LayerRow:
    """Return the line to store for a layer.

    Args:
        key: the layer's key.
        header: its exact header text.
        content: hash, bytes and lines of its body, or None for an ignored layer.
    """
    key, header = join_surrogates(key), join_surrogates(header)
    digest, n_bytes, n_lines = content or (None, None, None)
    return LayerRow(key, digest, n_bytes, n_lines, None if header == default_header(key) else header)
