"""A stored answer, and its form as a JSON file."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pytest_ctxfp._key import DEFAULT_BACKEND, OPTIONAL_PARTS, TEXT_PARTS, differing_parts
from pytest_ctxfp._layers import join_surrogates
from pytest_ctxfp._redaction import redact_fingerprint
from pytest_ctxfp._texts import map_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._model import JSONValue

FORMAT = 1

_SURROGATE = re.compile("[\ud800-\udfff]")
OPEN_PARTS = ("question", "params")
"""The parts of a key that may hold a secret; the others are hashes and labels."""
_REDACTED = (*OPEN_PARTS, "sql_executed", "result", "tool_calls", "raw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What an agent answered to a key, first in Warble's fields, then in ours.

    Args:
        context_version: the golden file's pin.
        sql_executed: the SQL that the agent ran.
        result: the answer, as JSON; null where none could be extracted.
        cost: USD, or None where unknown: absent is not zero.
        latency_ms: milliseconds.
        turns: number of model turns, or None where unknown.
        tool_calls: anything JSON can hold.
        format: version of this file format.
        raw: what the agent returned, as text.
        status: ``unparseable`` where ``raw`` held no answer of the wanted kind.
        recorded_at: UTC, ISO 8601.
        recorded_by: name and version of the program that stored it.
        served_model: the model that the provider says it ran.
        expectation_sha: hash of the expectation that the answer was first scored under.
        passed_then: the verdict under that expectation.
        sql_gave_answer: whether ``sql_executed``, run once more when the answer was recorded, gave the same
            table; None where that was not tried.
        context: fingerprint of the context, as a mapping.
        tokens: token counts by name.
        absent_parts: key parts that the file doesn't have, which therefore can't be verified.
        is_redacted: the answer's texts were redacted; a second time could change them again.
    """

    case_id: str
    agent_sha: str
    model: str
    context_version: str | None = None
    context_sha: str
    question: str
    sql_executed: str | None = None
    result: JSONValue
    cost: float | None = None
    latency_ms: int
    turns: int | None = None
    tool_calls: JSONValue = None
    backend: str = DEFAULT_BACKEND
    format: int = FORMAT
    sample: int = 0
    max_turns: int | None = None
    tier_binding: str | None = None
    params: Mapping[str, JSONValue] | None = None
    raw: str | None = None
    status: Literal["ok", "unparseable"] = "ok"
    recorded_at: str | None = None
    recorded_by: str | None = None
    served_model: str | None = None
    expectation_sha: str | None = None
    passed_then: bool | None = None
    sql_gave_answer: bool | None = None
    context: Mapping[str, JSONValue] | None = None
    tokens: Mapping[str, int] | None = None
    absent_parts: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    is_redacted: bool = field(default=False, compare=False, repr=False)

    def to_json(self) -> str:
        r"""Return the file's text: one field a line, so that a diff names it; a line feed at the end.

        Lone surrogates are escaped, so the text is valid UTF-8. A high one right before a low one reads
        back as the character that JSON means by the two.

        Example::

            {
              "case_id": "q1",
              "result": {"columns": ["n"], "rows": [[42]]},
              "latency_ms": 20000
            }

        Raises:
            ValueError: a value that JSON can't hold.
        """
        lines = [
            f"  {_encode(name, name)}: {_encode(name, getattr(self, name))}"
            for name in _FIELD_NAMES
            if name not in self.absent_parts
        ]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Read a trace, ours or one of Warble's; fields of other programs are left out.

        Raises:
            ValueError: not one JSON object, a required field missing, a field of a wrong type.
        """
        return _read_trace(text)

    def for_key(self, key: CaseKey) -> Trace:
        """Return the trace with the key's question and optional parts in place of its own."""
        return replace(
            self,
            question=key.question,
            sample=key.sample,
            backend=key.backend or DEFAULT_BACKEND,
            max_turns=key.max_turns,
            tier_binding=key.tier_binding,
            params=key.params,
            absent_parts=frozenset(),
        )

    def redacted(self, redact: Callable[[str], str]) -> Trace:
        """Return the trace with every text that may hold a secret passed through ``redact``.

        Names of cases, models and backends, hashes and times stay: listing and verification need them. Of a
        trace that was redacted before only what `for_key` sets is: what was scored must be what is stored.

        Raises:
            ValueError: a value nested too deep.
        """
        names = OPEN_PARTS if self.is_redacted else _REDACTED
        changes: dict[str, Any] = {name: map_texts(getattr(self, name), redact) for name in names}
        if self.context is not None and not self.is_redacted:
            changes["context"] = redact_fingerprint(self.context, redact)
        return replace(self, **changes, is_redacted=True)

    def key_parts(self) -> dict[str, JSONValue]:
        """Return the parts of the key that the trace states, by name."""
        stated: dict[str, JSONValue] = {
            "case_id": self.case_id,
            "question": self.question,
            "agent_sha": self.agent_sha,
            "model": self.model,
            "context_sha": self.context_sha,
            "sample": self.sample,
            "backend": None if self.backend == DEFAULT_BACKEND else self.backend,
            "max_turns": self.max_turns,
            "tier_binding": self.tier_binding,
            "params": None if self.params is None else dict(self.params),
        }
        if not self.absent_parts:
            return stated
        return {name: value for name, value in stated.items() if name not in self.absent_parts}

    def differences(self, key: CaseKey, *, redact: Callable[[str], str] | None = None) -> tuple[str, ...]:
        """Return the names of the stated parts that differ from a key, as ``CaseKey.explain`` does.

        Args:
            key: the key to compare with.
            redact: what was applied to the question and the params when the trace was written.

        Raises:
            ValueError: params nested too deep.
        """
        stated, wanted = self.key_parts(), key.parts()
        if redact is not None:
            wanted |= {name: map_texts(wanted[name], redact) for name in OPEN_PARTS}
        if (wanted["params"] is None and stated == wanted) or not differing_parts(stated, wanted):
            return ()
        # Only now the slow way: a file can't tell two surrogates from the character they make up.
        return differing_parts(_joined(stated), _joined(wanted))

    def mismatch(self, key: CaseKey, *, redact: Callable[[str], str] | None = None) -> str | None:
        """Return the name of the first stated part that differs from a key, or None."""
        return next(iter(self.differences(key, redact=redact)), None)


_DEFAULTS = {part.name: part.default for part in fields(Trace) if part.default is not MISSING}
_FIELD_NAMES = tuple(part.name for part in fields(Trace) if part.compare)
_OPTIONAL_PARTS = frozenset(OPTIONAL_PARTS)
_REQUIRED = frozenset({*TEXT_PARTS, "result", "latency_ms"})
_COUNTS = ("latency_ms", "turns", "sample", "max_turns", "cost")
_MAX_SHAPES = 64
FIGURE_LIMIT = 1 << 63  # a sum of whole numbers must stay one that a double can hold
_STATES = ("ok", "unparseable")

_NONE = type(None)
_Kind = tuple[str, frozenset[type]]
_TEXT: _Kind = ("text", frozenset({str}))
_TEXT_OR_NULL: _Kind = ("text or null", frozenset({str, _NONE}))
_COUNT: _Kind = ("an integer >= 0", frozenset({int}))
_COUNT_OR_NULL: _Kind = ("an integer >= 0 or null", frozenset({int, _NONE}))
_NUMBER_OR_NULL: _Kind = ("a number >= 0 or null", frozenset({int, float, _NONE}))
_TRUTH_OR_NULL: _Kind = ("true, false or null", frozenset({bool, _NONE}))
_OBJECT_OR_NULL: _Kind = ("an object or null", frozenset({dict, _NONE}))
_ANYTHING: _Kind = ("a JSON value", frozenset({str, int, float, bool, list, dict, _NONE}))

# Exact types, not isinstance: true is no number here.
_TYPES: dict[str, _Kind] = {
    "case_id": _TEXT,
    "agent_sha": _TEXT,
    "model": _TEXT,
    "context_version": _TEXT_OR_NULL,
    "context_sha": _TEXT,
    "question": _TEXT,
    "sql_executed": _TEXT_OR_NULL,
    "result": _ANYTHING,
    "cost": _NUMBER_OR_NULL,
    "latency_ms": _COUNT,
    "turns": _COUNT_OR_NULL,
    "tool_calls": _ANYTHING,
    "backend": _TEXT,
    "format": _COUNT,
    "sample": _COUNT,
    "max_turns": _COUNT_OR_NULL,
    "tier_binding": _TEXT_OR_NULL,
    "params": _OBJECT_OR_NULL,
    "raw": _TEXT_OR_NULL,
    "status": _TEXT,
    "recorded_at": _TEXT_OR_NULL,
    "recorded_by": _TEXT_OR_NULL,
    "served_model": _TEXT_OR_NULL,
    "expectation_sha": _TEXT_OR_NULL,
    "passed_then": _TRUTH_OR_NULL,
    "sql_gave_answer": _TRUTH_OR_NULL,
    "context": _OBJECT_OR_NULL,
    "tokens": _OBJECT_OR_NULL,
}


def _joined(parts: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    return {name: map_texts(value, join_surrogates) for name, value in parts.items()}


def _escape_surrogate(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def _as_dict(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(value)
    message = f"a {type(value).__name__} is none"
    raise TypeError(message)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_as_dict)


def _encode(name: str, value: object) -> str:
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"{name!r} of a trace is no JSON value: {error}"
        raise ValueError(message) from None
    return text if text.isascii() else _SURROGATE.sub(_escape_surrogate, text)


def _refuse_constant(text: str) -> float:
    message = f"{text} is no JSON number"
    raise ValueError(message)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        message = f"the number {text[:40]} is too large"
        raise ValueError(message)
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _read_trace(text: str) -> Trace:
    try:
        data = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        message = f"not JSON: {error}"
        raise ValueError(message) from None
    if type(data) is not dict:
        message = f"not an object: {reprlib.repr(data)}"
        raise ValueError(message)
    known = data if data.keys() <= _TYPES.keys() else {name: data[name] for name in data if name in _TYPES}
    names = tuple(known)
    misfit = _find_misfit(names, tuple(map(type, known.values()))) or _find_bad_figure(known)
    if misfit is not None:
        message = f"{misfit!r} is {reprlib.repr(known[misfit])}, not {_TYPES[misfit][0]}"
        raise ValueError(message)
    _check_words(known)
    return _make_trace({**_DEFAULTS, **known, "absent_parts": _find_absent_parts(names)})


def _make_trace(values: Mapping[str, object]) -> Trace:
    """Return a trace of checked values: the generated ``__init__`` of so many fields takes thrice as long."""
    trace = object.__new__(Trace)
    for name, value in values.items():
        object.__setattr__(trace, name, value)
    return trace


@lru_cache(maxsize=_MAX_SHAPES)
def _find_misfit(names: tuple[str, ...], types: tuple[type, ...]) -> str | None:
    """Return the first field of a wrong type: the files of a store have few shapes."""
    return next((name for name, kind in zip(names, types, strict=True) if kind not in _TYPES[name][1]), None)


@lru_cache(maxsize=_MAX_SHAPES)
def _find_absent_parts(names: tuple[str, ...]) -> frozenset[str]:
    """Return the parts of the key that no field states.

    Raises:
        ValueError: a field is missing that every trace has.
    """
    missing = _REQUIRED.difference(names)
    if missing:
        message = f"has no {min(missing)!r}"
        raise ValueError(message)
    return _OPTIONAL_PARTS.difference(names)


def _find_bad_figure(known: Mapping[str, Any]) -> str | None:
    for name in _COUNTS:
        value = known.get(name)
        if value is not None and not (value >= 0 and (type(value) is float or value < FIGURE_LIMIT)):
            return name
    return None


def _check_words(known: Mapping[str, object]) -> None:
    if known.get("format", FORMAT) != FORMAT:
        message = f"'format' is {known['format']!r}, and this version reads {FORMAT}: update pytest-ctxfp"
        raise ValueError(message)
    if known.get("status", "ok") not in _STATES:
        message = f"'status' is {reprlib.repr(known['status'])}, not one of {', '.join(_STATES)}"
        raise ValueError(message)
