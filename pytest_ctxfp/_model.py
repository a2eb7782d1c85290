"""Frozen records that the modules hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from collections.abc import Mapping

# Union, not |: a text can't stand beside | before Python 3.14.
JSONValue = Union[None, bool, int, float, str, "list[JSONValue]", "dict[str, JSONValue]"]


class ResultKind(str, Enum):
    """What an answer is: a table of rows, a verdict envelope, free text or any JSON value."""

    TABLE = "table"
    VERDICT = "verdict"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of JSON cells under optional column names."""

    columns: tuple[str, ...] | None
    rows: tuple[tuple[JSONValue, ...], ...]

    def to_dict(self) -> dict[str, JSONValue]:
        """Return ``{"columns": [...], "rows": [[...]]}``, without ``columns`` where none are named."""
        rows: list[JSONValue] = [list(row) for row in self.rows]
        return {"rows": rows} if self.columns is None else {"columns": list(self.columns), "rows": rows}


Expectation = Union[Table, JSONValue]  # noqa: UP007 - JSONValue names itself by text
"""What a case expects: a ``Table`` for tables and verdicts, else the value as written in the golden file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """What an agent may see of a case: nothing of what is expected of it, and no tags."""

    id: str
    question: str
    inputs: Mapping[str, JSONValue] = field(default_factory=dict)
    metadata: Mapping[str, JSONValue] = field(default_factory=dict)
    result_kind: ResultKind = ResultKind.TABLE

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the view as JSON: this is what enters the key of an agent that names ``case``."""
        return {
            "id": self.id,
            "question": self.question,
            "inputs": dict(self.inputs),
            "metadata": dict(self.metadata),
            "result_kind": self.result_kind.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenCase:
    """One golden case; attributes are named as the keys of the golden file.

    ``expected`` is a ``Table`` for tables and verdicts. ``tolerance`` is a mapping with any of
    ``numeric``, ``relative`` (a share of the expected value) and ``columns`` (``{name: n}``).
    ``timeout`` is in seconds; ``line`` is 1-based, and 0 where the case is from no file or unknown there;
    ``path`` is the file as it was loaded.
    """

    id: str
    question: str
    result_kind: ResultKind = ResultKind.TABLE
    match: str = "scalar"
    expected: Expectation = None
    expected_sql: str | None = None
    tolerance: Mapping[str, JSONValue] = field(default_factory=dict)
    extra_columns: bool = False
    verdict_field: str = "fresh"
    ignore_case: bool = False
    tags: tuple[str, ...] = ()
    inputs: Mapping[str, JSONValue] = field(default_factory=dict)
    metadata: Mapping[str, JSONValue] = field(default_factory=dict)
    min_pass_rate: float | None = None
    min_score: float | None = None
    skip: str | None = None
    xfail: str | None = None
    marks: tuple[str, ...] = ()
    timeout: float | None = None
    line: int = 0
    path: str = field(default="", compare=False, repr=False)

    @property
    def view(self) -> CaseView:
        """The case as an agent may see it."""
        return CaseView(
            id=self.id,
            question=self.question,
            inputs=self.inputs,
            metadata=self.metadata,
            result_kind=self.result_kind,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, JSONValue]) -> GoldenCase:
        """Read one case as it stands in a golden file.

        Args:
            data: the case's mapping, with the keys of the golden file.

        Raises:
            GoldenError: an unknown key, a missing expectation or a value of a wrong kind.
        """
        from pytest_ctxfp._golden import case_from_dict

        return case_from_dict(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenSet:
    """A golden file, read and validated."""

    path: str
    cases: tuple[GoldenCase, ...]
    dataset: str | None = None
    context_version: str | None = None
    metadata: Mapping[str, JSONValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What an agent returns when it has more to say than the answer.

    Args:
        value: the answer: text, a table, any JSON value or a DataFrame-like object.
        cost: USD, or None where unknown (absent is not zero).
        turns: number of model turns.
        latency_ms: milliseconds; measured around the call where None.
        tool_calls: anything JSON can hold.
        sql: the SQL that the agent ran.
        tokens: token counts by name.
        served_model: the model that the provider says it ran.
        context: what the agent really sent, for fingerprints after the fact; not in the key.
    """

    value: object
    cost: float | None = None
    turns: int | None = None
    latency_ms: int | None = None
    tool_calls: object = None
    sql: str | None = None
    tokens: Mapping[str, int] | None = None
    served_model: str | None = None
    context: object = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on one answer.

    ``reason`` is one line a person can act on; ``score`` is 0..1 where a scorer gave one.
    """

    passed: bool
    reason: str
    score: float | None = None
