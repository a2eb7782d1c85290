"""Files and standard streams as the commands read and write them."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._atomic import write_atomically
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError, first_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ctxfp._model import JSONValue

STDIN = "-"


def show_name(name: str) -> str:
    """Return a file's name as messages have it: on one line, without what steers a terminal."""
    return "(standard input)" if name == STDIN else escape_line(name)


def refuse_second_stdin(names: Iterable[str]) -> None:
    """Refuse more than one ``-``: standard input can be read once.

    Raises:
        CtxfpError: there is more than one.
    """
    if list(names).count(STDIN) > 1:
        message = "only one file can be '-', standard input: save the other one and name it"
        raise CtxfpError(message)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn a fault found in a file's content into one line that begins with the file's name.

    Raises:
        CtxfpError: for what the block raised: this package's own errors, values that are wrong, too large
            or nested too deep.
    """
    try:
        yield
    except RecursionError:
        message = f"{show_name(name)}: nested too deep: flatten it"
        raise CtxfpError(message) from None
    except (CtxfpError, ValueError, OverflowError) as error:
        message = f"{show_name(name)}: {first_line(error)}"
        raise CtxfpError(message) from None


def read_bytes(name: str) -> bytes:
    """Return what a file holds; ``-`` is standard input.

    Raises:
        CtxfpError: no such file, one that can't be read, or standard input is closed.
    """
    if name == STDIN and sys.stdin is None:
        message = "standard input is closed: name a file in place of '-'"
        raise CtxfpError(message)
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or str(error)
        message = f"{show_name(name)}: can't be read ({reason}): correct the path or its permissions"
        raise CtxfpError(message) from None


def read_text(name: str) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Raises:
        CtxfpError: no such file, or one that can't be read or is not UTF-8.
    """
    try:
        return read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{show_name(name)}: not UTF-8 (byte {error.start}): save it as UTF-8"
        raise CtxfpError(message) from None


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, whatever the terminal's encoding: what it can't show is escaped."""
    _write("".join(f"{line}\n" for line in lines))


def print_json(value: JSONValue) -> None:
    """Print a value for a program to read; plain ASCII, so that no encoding can spoil it."""
    _write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def _write(text: str) -> None:
    """Write to standard output; a reader that has seen enough (`| head`) doesn't change the exit status."""
    if sys.stdout is None:
        message = "standard output is closed: send it to a file or to /dev/null"
        raise CtxfpError(message)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # What is buffered, and what is still to come, must go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        message = f"(standard output): can't be written: {error.strerror or error}"
        raise CtxfpError(message) from None


def write_text(name: str, text: str) -> None:
    """Write a file in UTF-8 with LF line ends, whole or not at all; ``-`` is standard output.

    Raises:
        OSError: the file can't be written.
    """
    if name == STDIN:
        _write(text)
        return
    write_atomically(Path(name), text.encode("utf-8"))


def replace_bytes(name: str, data: bytes) -> None:
    """Replace what an existing file holds, whole or not at all; its permissions stay.

    Raises:
        OSError: the file can't be written.
    """
    # A link stays a link: what it leads to is replaced.
    path = Path(os.path.realpath(name))
    mode = stat.S_IMODE(os.stat(path).st_mode)
    write_atomically(path, data)
    os.chmod(path, mode)
