"""Replacing volatile parts of a context, such as dates, before it is hashed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Union

Redactions = Sequence[tuple[Union[str, "re.Pattern[str]"], str]]
"""Pairs of a pattern and what stands in its place, as `re.sub` takes them; applied in order."""

_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Redacted:
    """A context after redaction; ``unmatched`` are the patterns that matched nothing, in order."""

    context: object
    unmatched: tuple[str, ...]


def redact_context(context: object, redact: Redactions) -> Redacted:
    r"""Replace every match of the patterns in a context.

    A text is searched as a whole, so a pattern may cross line ends and layers (use ``(?m)`` and
    ``(?s)`` as for `re`). bytes are searched as UTF-8. Of a mapping or a list all texts in it are
    searched, each by itself; its keys stay.

    Args:
        context: whatever a fingerprint can be taken of.
        redact: ``((r"\d{4}-\d\d-\d\d", "<date>"), ...)``.

    Raises:
        ValueError: not pairs of a pattern and a text, a bad regular expression or a bad replacement.
    """
    if not redact:
        return Redacted(context, ())
    patterns = _compile_all(redact)
    walker = _Redactor(patterns)
    result = walker.redact(context, 0)
    unmatched = tuple(
        pattern.pattern for (pattern, _), count in zip(patterns, walker.counts, strict=True) if not count
    )
    return Redacted(result, unmatched)


class _Redactor:
    """Walks a context and counts how often each pattern matched."""

    def __init__(self, patterns: Sequence[tuple[re.Pattern[str], str]]) -> None:
        self.patterns = patterns
        self.counts = [0] * len(patterns)

    def redact(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self._redact_text(value)
        if isinstance(value, bytes):
            text = value.decode("utf-8", "surrogateescape")
            return self._redact_text(text).encode("utf-8", "surrogateescape")
        if depth > _MAX_DEPTH:
            message = f"context nested deeper than {_MAX_DEPTH} levels: redact it before the check"
            raise ValueError(message)
        if isinstance(value, Mapping):
            return {key: self.redact(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.redact(item, depth + 1) for item in value]
        dump = getattr(value, "model_dump", None)
        return self.redact(dump(), depth + 1) if callable(dump) else value

    def _redact_text(self, text: str) -> str:
        for index, (pattern, replacement) in enumerate(self.patterns):
            try:
                text, count = pattern.subn(replacement, text)
            except (re.error, IndexError) as error:
                message = f"redact[{index}]: bad replacement {replacement!r} for {pattern.pattern!r}: {error}"
                raise ValueError(message) from error
            self.counts[index] += count
        return text


def _compile_all(redact: Redactions) -> list[tuple[re.Pattern[str], str]]:
    if isinstance(redact, (str, bytes)) or not isinstance(redact, Sequence):
        raise ValueError(_not_pairs(redact))
    return [_compile_pair(index, pair) for index, pair in enumerate(redact)]


def _compile_pair(index: int, pair: object) -> tuple[re.Pattern[str], str]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(_not_pairs(pair))
    pattern, replacement = pair
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        compiled = pattern
    elif isinstance(pattern, str):
        compiled = _compile(index, pattern)
    else:
        raise ValueError(_not_pairs(pair))
    if not isinstance(replacement, str):
        raise ValueError(_not_pairs(pair))
    return compiled, replacement


def _compile(index: int, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        message = f"redact[{index}]: bad regular expression {pattern!r}: {error}"
        raise ValueError(message) from error


def _not_pairs(value: object) -> str:
    return (
        f"redact takes pairs of a pattern and its replacement, both texts, not {value!r}: "
        r'write redact=((r"\d{4}-\d\d-\d\d", "<date>"),)'
    )
