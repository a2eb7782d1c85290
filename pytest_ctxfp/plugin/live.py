"""What a terminal shows while agents are asked: what each test took, and that a long call still runs."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pytest

from pytest_ctxfp._display import escape_line
from pytest_ctxfp._fold import sum_known
from pytest_ctxfp.plugin.case_runs import run_of
from pytest_ctxfp.plugin.options import GOLDEN_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pytest_ctxfp._records import CaseRecord

FIRST_BEAT = 30.0
"""Seconds after which a test that still runs is told; then after twice as long each time."""


class LiveOutput:
    """Adds what answers took to pytest's words under ``-v``, and tells of tests that take long.

    It is registered only where the output is a terminal.

    Args:
        config: pytest's.
        reporter: pytest's own terminal.
    """

    def __init__(self, config: pytest.Config, reporter: pytest.TerminalReporter) -> None:
        self._is_verbose = config.get_verbosity() > 0
        self._has_workers = config.pluginmanager.has_plugin("dsession")
        self._is_running = True
        self._terminal = Terminal(config, reporter)
        self._heart = Heartbeat(self._terminal.tell)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> Generator[None, object, object]:
        """Say behind the word whether answers were hits or misses, and what they took."""
        status = yield
        records = [r for r in getattr(report, "ctxfp", []) if r["kind"] in ("case", "call")]
        if not (self._is_verbose and self._is_running and records and isinstance(status, tuple)):
            return status
        category, letter, word = status
        facts = describe_answers(records)
        if isinstance(word, tuple):
            return category, letter, (_append(word[0], facts), word[1])
        return category, letter, _append(word, facts) if word else word

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Begin to wait for a test that may ask an agent."""
        if run_of(item) is not None or "ctx_trace" in getattr(item, "fixturenames", ()):
            self._heart.start(str(item.nodeid))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Do the same for a golden item that a worker runs: of its other tests nothing is known here."""
        if self._has_workers and Path(nodeid.partition("::")[0]).suffix in GOLDEN_SUFFIXES:
            self._heart.start(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """End to wait for a test."""
        self._heart.stop(nodeid)

    def pytest_sessionfinish(self) -> None:
        """Leave the words of the summary as they are, and stop the clock."""
        self._is_running = False
        self._heart.close()
        self._terminal.close()


def describe_answers(records: Sequence[CaseRecord]) -> str:
    """Return what answers took: ``miss 3.2 s, 0.0120 USD, 4 turns``; of hits what asking took then.

    What is unknown is left out: absent is not zero.
    """
    states = {record["state"] for record in records}
    cost = sum_known([record.get("cost") for record in records])
    latencies = [record.get("latency_ms") for record in records]
    turns = [record.get("turns") for record in records]
    facts = [
        f"{sum(known) / 1000:.1f} s" if (known := _all_known(latencies)) else "",
        f"{cost:.4f} USD" if cost is not None else "",
        f"{sum(known)} turn{'s' * (sum(known) != 1)}" if (known := _all_known(turns)) else "",
    ]
    told = ", ".join(filter(None, facts))
    if states == {"hit"}:
        return f"saved {told}" if told else "hit"
    return f"{'/'.join(sorted(states))} {told}".strip()


def _all_known(values: Sequence[int | None]) -> list[int]:
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _append(word: str, facts: str) -> str:
    return f"{word[:-1]}, {facts})" if word.endswith(")") else f"{word} ({facts})"


class Terminal:
    """Prints lines from another thread than the tests'.

    While a test runs, pytest's own file is captured, and to end that from another thread would show what
    the test prints meanwhile, or leave it captured after the test. So this keeps the terminal open for
    itself, as pytest does for faulthandler.

    Args:
        config: pytest's.
        reporter: pytest's own terminal.
    """

    def __init__(self, config: pytest.Config, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        capture = config.pluginmanager.get_plugin("capturemanager")
        with nullcontext() if capture is None else capture.global_and_fixture_disabled():
            self._encoding = sys.stdout.encoding or "utf-8"
            self._copy = _copy_descriptor(sys.stdout)

    def tell(self, line: str) -> None:
        """Print a line of its own; what pytest prints next begins another one."""
        if self._copy is None:
            return
        start = "\n" if self._reporter.currentfspath else ""
        self._reporter.currentfspath = None
        with suppress(OSError):  # the terminal is gone
            os.write(self._copy, f"{start}{line}\n".encode(self._encoding, "backslashreplace"))

    def close(self) -> None:
        """Leave the terminal."""
        if self._copy is not None:
            os.close(self._copy)
        self._copy = None


def _copy_descriptor(file: TextIO) -> int | None:
    """Return a descriptor of the same terminal; None where an IDE's file has none."""
    try:
        return os.dup(file.fileno())
    except (OSError, ValueError):
        return None


class Heartbeat:
    """Tells of tests that still run, from a thread that starts with the first of them.

    Args:
        tell: prints a line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._due: dict[str, tuple[float, float]] = {}
        """When each running test began, and after how many seconds it is told next."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def start(self, name: str) -> None:
        """Begin to wait for a test."""
        with self._changed:
            self._due[name] = (time.monotonic(), FIRST_BEAT)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ctxfp-heartbeat", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self, name: str) -> None:
        """End to wait for a test."""
        with self._changed:
            self._due.pop(name, None)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                for name, (began, seconds) in self._due.items():
                    if now - began >= seconds:
                        self._tell(f"ctxfp: {escape_line(name)} still runs, after {seconds:g} s")
                        self._due[name] = (began, 2 * seconds)
                waits = [began + seconds - now for began, seconds in self._due.values()]
                self._changed.wait(max(0.01, min(waits)) if waits else None)
