"""Files and standard streams as the commands read and write them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._atomic import write_atomically
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._model import JSONValue

STDIN = "-"


def read_bytes(name: str) -> bytes:
    """Return what a file holds; ``-`` is standard input.

    Raises:
        OSError: no such file, or one that can't be read.
    """
    return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()


def read_text(name: str) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Raises:
        CtxfpError: the file is not UTF-8.
        OSError: no such file, or one that can't be read.
    """
    try:
        return read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{name}: not UTF-8 (byte {error.start}): save it as UTF-8"
        raise CtxfpError(message) from None


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, whatever the terminal's encoding: what it can't show is escaped."""
    for line in lines:
        _write(f"{line}\n")


def print_json(value: JSONValue) -> None:
    """Print a value for a program to read; plain ASCII, so that no encoding can spoil it."""
    _write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_text(name: str, text: str) -> None:
    """Write a file in UTF-8 with LF line ends, whole or not at all; ``-`` is standard output.

    Raises:
        OSError: the file can't be written.
    """
    if name == STDIN:
        _write(text)
        return
    write_atomically(Path(name), text.encode("utf-8"))
