"""Exceptions: they carry data, build their text from it and pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._misses import Difference


_MAX_LINE = 1_000
_MAX_ID = 200


class CtxfpError(Exception):
    """The base of every error this package raises on purpose."""


class GoldenError(CtxfpError):
    """A golden file, or one case in it, that can't be used.

    Args:
        path: the golden file, as the user would type it.
        line: 1-based line of the fault, or None where the whole file is meant.
        case: id of the case, or None outside of a case.
        reason: what is wrong and how to mend it.
        more: further faults of the same file: all are reported at once.
    """

    def __init__(
        self,
        path: str,
        line: int | None,
        case: str | None,
        reason: str,
        more: Sequence[GoldenError] = (),
    ) -> None:
        super().__init__(path, line, case, reason, tuple(more))
        self.path = path
        self.line = line
        self.case = case
        self.reason = reason
        self.more = tuple(more)

    def at(self, path: str) -> GoldenError:
        """Return the same faults with the file spelled another way, relative to a folder for instance."""
        return GoldenError(path, self.line, self.case, self.reason, [fault.at(path) for fault in self.more])

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        subject = "" if self.case is None else f"case {_shown_id(self.case)}: "
        return "\n".join([f"{place}: {subject}{self.reason}", *map(str, self.more)])


def _shown_id(case_id: str) -> str:
    return repr(case_id) if len(case_id) <= _MAX_ID else f"{case_id[:_MAX_ID]!r}..."


class CacheMiss(CtxfpError):
    """No stored answer for a key, where asking the agent is not allowed.

    Args:
        key: the key that was looked up.
        explanation: what differs from the newest stored answer of that case, and the remedy.
        corrupt: what is wrong with the stored file, where there is one.
        why: the same explanation, a part for each difference.
        estimated_cost: USD that asking would cost, or None where unknown.
    """

    def __init__(
        self,
        key: CaseKey,
        explanation: str,
        corrupt: str | None = None,
        why: tuple[Difference, ...] = (),
        estimated_cost: float | None = None,
    ) -> None:
        super().__init__(key, explanation, corrupt, why, estimated_cost)
        self.key = key
        self.explanation = explanation
        self.corrupt = corrupt
        self.why = why
        self.estimated_cost = estimated_cost

    def __str__(self) -> str:
        return self.explanation


class AgentError(CtxfpError):
    """The agent (or assembler) gave no answer: it raised, timed out or returned what can't be stored.

    Never scored as a wrong answer and never cached.
    """


class ScorerError(CtxfpError):
    """A scorer, or the database, gave no verdict: the answer stays unscored, and the item errors."""


class _AssertionText(CtxfpError, AssertionError):
    """An assertion failure that carries its own text, so it reads the same with ``--assert=plain``."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


class CaseMismatch(_AssertionText):
    """The answer is not what the golden case expects."""


class SnapshotMismatch(_AssertionText):
    """A context differs from its stored fingerprint in a layer that was not accepted."""


class SnapshotMissing(_AssertionText):
    """No fingerprint is stored for this context yet."""


class BudgetExceeded(_AssertionText):
    """A layer, or the whole context, has more tokens than its budget."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type's name where it has none.

    Errors come from agents and drivers too: the line is escaped and cut, and says so where the text can't
    be had.
    """
    try:
        text = str(error).strip()
    except Exception as failure:  # noqa: BLE001 - somebody's __str__ raises what it likes
        text = f"(its text can't be read: its __str__ raised {type(failure).__name__})"
    return escape_line(text.split("\n", 1)[0] or type(error).__name__, limit=_MAX_LINE)


def describe_error(error: BaseException) -> str:
    """Return what somebody else's code raised, on one line: ``ValueError: bad value``."""
    return f"{escape_line(type(error).__name__)}: {first_line(error)}"


for _error in (
    CtxfpError,
    GoldenError,
    CacheMiss,
    AgentError,
    ScorerError,
    CaseMismatch,
    SnapshotMismatch,
    SnapshotMissing,
    BudgetExceeded,
):
    _error.__module__ = "pytest_ctxfp"  # where users import them from, and what a traceback shows
