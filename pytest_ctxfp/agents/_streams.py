"""A program's standard streams as files: none of them blocks it, and what it prints has a limit."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import IO

from pytest_ctxfp._errors import AgentError

MAX_OUTPUT = 32 * 2**20
"""Bytes that a program may print, to either stream."""

_LONGEST_TAIL = 64 * 2**10
_LOOK_EVERY = 0.2


class Streams:
    """Temporary files without a name; pipes would fill up, and stay open while a grandchild lives.

    Its ``repr`` shows nothing of what was printed: pytest prints the arguments of functions that raise.

    Args:
        given: what the program finds on its standard input.
    """

    def __init__(self, given: bytes) -> None:
        import tempfile

        with ExitStack() as files:
            self.given: IO[bytes] = files.enter_context(tempfile.TemporaryFile())
            self.out: IO[bytes] = files.enter_context(tempfile.TemporaryFile())
            self.err: IO[bytes] = files.enter_context(tempfile.TemporaryFile())
            self.given.write(given)
            self.given.seek(0)
            self._files = files.pop_all()

    def close(self) -> None:
        """Remove the files."""
        self._files.close()

    def is_over_limit(self) -> bool:
        """Whether the program has printed more than an answer can be."""
        return any(os.fstat(file.fileno()).st_size > MAX_OUTPUT for file in (self.out, self.err))

    def read_out(self) -> bytes:
        """Return what was printed to standard output."""
        self.out.seek(0)
        return self.out.read()

    def read_tail(self) -> bytes:
        """Return the end of what was printed to standard error, or else to standard output."""
        return _read_tail(self.err) or _read_tail(self.out)


class Watch:
    """Says how long to wait for a program before it is looked at again.

    Args:
        program: its name, for errors.
        streams: where it prints.
        seconds: how long it may take.
    """

    def __init__(self, program: str, streams: Streams, *, seconds: float) -> None:
        self._program = program
        self._streams = streams
        self._end = time.monotonic() + seconds

    def next_wait(self) -> float:
        """Return seconds; raises TimeoutError after its time, AgentError where it has printed too much."""
        self.check_output()
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, _LOOK_EVERY)

    def check_output(self) -> None:
        """Raise AgentError where the program has printed too much."""
        if self._streams.is_over_limit():
            message = (
                f"{self._program!r} printed more than {MAX_OUTPUT:,} bytes: let it print just the answer"
            )
            raise AgentError(message)


def _read_tail(file: IO[bytes]) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LONGEST_TAIL))
    return file.read().strip()
