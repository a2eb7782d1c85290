"""The key of a stored answer: everything that determines it, and nothing that only judges it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ctxfp._hashing import canonical_json, git_text_sha

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

DEFAULT_BACKEND = "claude-code-cli"
"""The backend that a key leaves out, so that Warble's caches from before it had others stay readable."""

TEXT_PARTS = ("case_id", "question", "agent_sha", "model", "context_sha")
OPTIONAL_PARTS = ("sample", "backend", "max_turns", "tier_binding", "params")

_MAX_TURNS = 2**32 - 1
_BACKEND = re.compile(r"[a-z][a-z0-9._-]*")
_BINDING = r"[A-Za-z_][A-Za-z0-9_.-]*=[^,=\x00-\x1f\x7f-\x9f]+"
_TIER_BINDING = re.compile(f"{_BINDING}(?:,{_BINDING})*")
_PARTS = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, eq=False)
class CaseKey:
    """What an answer hangs on. Two keys are equal exactly if their canonical forms are.

    Args:
        case_id: the case's id.
        question: the question as the agent sees it.
        agent_sha: SHA of the agent's files.
        model: the model, or ``frontmatter`` where it is bound in the agent.
        context_sha: SHA of the assembled context, or of the files it is made from, or ``-``.
        sample: 0-based number of the repetition.
        backend: ``[a-z][a-z0-9._-]*``; ``claude-code-cli`` is stored as None.
        max_turns: 0 to 2**32-1.
        tier_binding: ``name=value[,name=value]...``.
        params: whatever else the agent can read, as JSON; an empty mapping is stored as None.

    Raises:
        ValueError: a part of another form: forms are what keeps two different keys from sharing one text.
    """

    case_id: str
    question: str
    agent_sha: str
    model: str
    context_sha: str
    sample: int = 0
    backend: str | None = None
    max_turns: int | None = None
    tier_binding: str | None = None
    params: Mapping[str, JSONValue] | None = None
    _canonical: str = field(init=False, repr=False)
    _sha: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in TEXT_PARTS:
            _check_text(name, getattr(self, name))
        params_text = _params_text(self.params)
        # The caller may go on changing its mapping: keep a copy of what was hashed.
        _set(self, "params", json.loads(params_text) if params_text else None)
        _set(self, "sample", _checked_count("sample", self.sample))
        _set(self, "backend", _checked_backend(self.backend))
        if self.max_turns is not None:
            _set(self, "max_turns", _checked_count("max_turns", self.max_turns, most=_MAX_TURNS))
        _check_tier_binding(self.tier_binding)
        canonical = _PARTS.encode(self._texts(params_text))
        _set(self, "_canonical", canonical)
        _set(self, "_sha", git_text_sha(canonical))

    def canonical(self) -> str:
        """Return the key as a compact JSON array of texts, byte-compatible with Warble's eval runner.

        Example::

            ["q1","how many orders?","3f9c...","opus","8bae...","0","8"]
        """
        return self._canonical

    def hash(self) -> str:
        """Return the git blob SHA of the canonical form: 40 hex digits, the stored answer's file name."""
        return self._sha

    def parts(self) -> dict[str, JSONValue]:
        """Return every part by its name."""
        return {
            "case_id": self.case_id,
            "question": self.question,
            "agent_sha": self.agent_sha,
            "model": self.model,
            "context_sha": self.context_sha,
            "sample": self.sample,
            "backend": self.backend,
            "max_turns": self.max_turns,
            "tier_binding": self.tier_binding,
            "params": None if self.params is None else dict(self.params),
        }

    def explain(self, other: CaseKey) -> tuple[str, ...]:
        """Return the names of the parts that differ; of params, the names inside (``inputs``, ``env``)."""
        return differing_parts(self.parts(), other.parts())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CaseKey):
            return NotImplemented
        return self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)

    def _texts(self, params_text: str | None) -> list[str]:
        texts = [self.case_id, self.question, self.agent_sha, self.model, self.context_sha, str(self.sample)]
        optional = (
            self.backend,
            None if self.max_turns is None else str(self.max_turns),
            self.tier_binding,
            params_text,
        )
        return [*texts, *(text for text in optional if text is not None)]


def differing_parts(ours: Mapping[str, JSONValue], theirs: Mapping[str, JSONValue]) -> tuple[str, ...]:
    """Return the names of the key parts, present on both sides, that differ, in the key's order.

    Of ``params`` the names inside are given, as ``params.NAME`` where a part has that name too.
    """
    names = [
        name
        for name in (*TEXT_PARTS, *OPTIONAL_PARTS[:-1])
        if name in ours and name in theirs and ours[name] != theirs[name]
    ]
    if "params" in ours and "params" in theirs:
        names += _differing_params(ours["params"], theirs["params"])
    return tuple(names)


def _differing_params(ours: JSONValue, theirs: JSONValue) -> list[str]:
    # As text: in Python True == 1 == 1.0, to an agent they are three values.
    left, right = _texts_by_name(ours), _texts_by_name(theirs)
    names = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    parts = (*TEXT_PARTS, *OPTIONAL_PARTS)
    return [f"params.{name}" if name in parts else name for name in names]


def _texts_by_name(params: JSONValue) -> dict[str, str]:
    if not isinstance(params, dict):
        return {}
    return {name: canonical_json(value) for name, value in params.items()}


def _set(key: CaseKey, name: str, value: object) -> None:
    object.__setattr__(key, name, value)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        message = f"{name} is {value!r}: a key takes a text here"
        raise ValueError(message)


def _checked_count(name: str, value: object, *, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (most and value > most):
        limit = "of at least 0" if most is None else f"from 0 to {most}"
        message = f"{name} is {value!r}: a key takes a whole number {limit} here"
        raise ValueError(message)
    return int(value)


def _checked_backend(value: object) -> str | None:
    if value is None or value == DEFAULT_BACKEND:
        return None
    if not isinstance(value, str) or not _BACKEND.fullmatch(value):
        message = f"backend is {value!r}: write it as [a-z][a-z0-9._-]*, or None"
        raise ValueError(message)
    return value


def _check_tier_binding(value: object) -> None:
    if value is not None and not (isinstance(value, str) and _TIER_BINDING.fullmatch(value)):
        message = f"tier_binding is {value!r}: write it as name=value[,name=value]..., or None"
        raise ValueError(message)


def _params_text(params: object) -> str | None:
    if params is None:
        return None
    if not isinstance(params, Mapping):
        message = f"params is {params!r}: a key takes a mapping here, or None"
        raise ValueError(message)
    try:
        return canonical_json(dict(params)) if params else None
    except ValueError as error:
        message = f"params of a key: {error}"
        raise ValueError(message) from None
