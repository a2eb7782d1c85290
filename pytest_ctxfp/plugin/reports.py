"""Failure texts of our own exceptions in pytest's reports."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, escape_lines
from pytest_ctxfp._errors import AgentError, CtxfpError, first_line
from pytest_ctxfp.plugin.collect import GoldenItem

if TYPE_CHECKING:
    import pytest

_MAX_CAUSE_LINES = 40


def show_own_text(
    report: pytest.TestReport, excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item
) -> None:
    """Let a report of one of our exceptions say what the exception says.

    In golden items that text stands alone, at the case's line; elsewhere pytest's traceback stays. In both
    the message that pytest repeats in its short summary is the first line, which says why.
    """
    error = excinfo.value
    if not isinstance(error, CtxfpError):
        return
    if isinstance(item, GoldenItem):
        report.longrepr = _own_repr(excinfo, error, item)
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = escape_line(first_line(error))


def place_skip(report: pytest.TestReport, item: pytest.Item) -> None:
    """Let the skip of a golden item point at its case, not at the line of ours that skipped."""
    if isinstance(item, GoldenItem) and report.skipped and isinstance(report.longrepr, tuple):
        path, line, _ = item.reportinfo()
        report.longrepr = (str(path), line + 1, escape_line(report.longrepr[2]))


def _own_repr(excinfo: pytest.ExceptionInfo[BaseException], error: CtxfpError, item: GoldenItem):  # type: ignore[no-untyped-def]
    """Return pytest's plainest representation with our text in place of the traceback's."""
    representation = excinfo.getrepr(style="native")
    path, line, _ = item.reportinfo()
    text = f"{escape_lines(str(error))}\n{_describe_cause(error)}"
    representation.reprtraceback.reprentries[0].lines = [text]
    if representation.reprcrash is not None:
        representation.reprcrash.path = str(path)
        representation.reprcrash.lineno = line + 1
    return representation


def _describe_cause(error: CtxfpError) -> str:
    """Return the traceback of what the agent or assembler raised, without the plugin's own frames."""
    cause = error.__cause__
    if not isinstance(error, AgentError) or cause is None:
        return ""
    frames = [
        frame for frame in traceback.extract_tb(cause.__traceback__) if "pytest_ctxfp" not in frame.filename
    ]
    lines = "".join(
        [*traceback.format_list(frames), *traceback.format_exception_only(type(cause), cause)]
    ).splitlines()
    shown = lines if len(lines) <= _MAX_CAUSE_LINES else ["  ...", *lines[-_MAX_CAUSE_LINES:]]
    return "\n" + escape_lines("\n".join(shown)) + "\n"
