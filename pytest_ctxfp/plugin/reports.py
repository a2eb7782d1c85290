"""Failure texts of our own exceptions in pytest's reports, and texts of agents made fit for a terminal."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING, Any

import pytest

import pytest_ctxfp
from pytest_ctxfp._display import escape_line, escape_lines, escape_surrogates
from pytest_ctxfp._errors import AgentError, CaseMismatch, CtxfpError, ScorerError, first_line
from pytest_ctxfp.plugin.collect import GoldenItem

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_CAUSE_LINES = 40
_MAX_CAUSE_WIDTH = 2_000
_OWN_FOLDER = os.path.join(os.path.dirname(pytest_ctxfp.__file__), "")


def show_own_text(
    report: pytest.TestReport, excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item
) -> None:
    """Let a report of one of our exceptions say what the exception says.

    In golden items that text stands alone, at the case's line; elsewhere pytest's traceback stays. In both
    the message that pytest repeats in its short summary is the first line, which says why. Whatever else
    fails in a golden item keeps pytest's traceback, but may quote an agent: it is escaped.
    """
    error = excinfo.value
    if isinstance(error, CtxfpError):
        _show_reason(report, excinfo, item)
    elif isinstance(item, GoldenItem):
        report.longrepr = change_texts(report.longrepr, escape_lines)


def _show_reason(
    report: pytest.TestReport, excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item
) -> None:
    error = excinfo.value
    assert isinstance(error, CtxfpError)
    if isinstance(item, GoldenItem):
        report.longrepr = _own_repr(excinfo, error, item)
    else:
        report.longrepr = change_texts(report.longrepr, escape_lines)
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = first_line(error)


def expect_failure(item: pytest.Item, reason: str) -> None:
    """Mark an item, while it runs, as one whose wrong answer does not fail the run."""
    item.add_marker(pytest.mark.xfail(reason=escape_line(reason), raises=CaseMismatch, strict=False))


def place_skip(report: pytest.TestReport, item: pytest.Item) -> None:
    """Let the skip of a golden item point at its case, not at the line of ours that skipped.

    The reason may be an agent's, who called ``pytest.skip`` or ``pytest.xfail``: it is escaped.
    """
    if not isinstance(item, GoldenItem) or not report.skipped:
        return
    if isinstance(report.longrepr, tuple):
        path, line, _ = item.reportinfo()
        report.longrepr = (str(path), line + 1, escape_line(report.longrepr[2]))
    else:
        report.longrepr = change_texts(report.longrepr, escape_lines)
    if hasattr(report, "wasxfail"):
        report.wasxfail = escape_line(report.wasxfail)


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Pass all texts of a representation of pytest's through a function, in place where it is an object."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(change_texts(inner, change) for inner in value)
    for name, inner in getattr(value, "__dict__", {}).items():
        setattr(value, name, change_texts(inner, change))
    return value


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
    if not isinstance(error, (AgentError, ScorerError)) or cause is None:
        return ""
    frames = [
        frame
        for frame in traceback.extract_tb(cause.__traceback__)
        if not frame.filename.startswith(_OWN_FOLDER)
    ]
    lines = "".join(
        [*traceback.format_list(frames), *traceback.format_exception_only(type(cause), cause)]
    ).splitlines()
    shown = lines if len(lines) <= _MAX_CAUSE_LINES else ["  ...", *lines[-_MAX_CAUSE_LINES:]]
    return "\n" + escape_lines("\n".join(map(_cut, shown))) + "\n"


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_CAUSE_WIDTH else f"{line[:_MAX_CAUSE_WIDTH]}..."


def escape_serialized(value: object) -> object:
    r"""Return a serialized report in which every text can be sent: lone surrogates stand as ``\uNNNN``."""
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, dict):
        return {escape_serialized(key): escape_serialized(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(escape_serialized, value))
    return value
