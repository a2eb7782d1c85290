"""Naming layers by name or glob: which are ignored, which changes are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class LayerNames:
    """Layer keys, as failures and snapshot files show them, and globs of them.

    A key that is spelled exactly like a pattern is named, whatever ``*``, ``?`` or ``[`` is in it.
    """

    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.patterns, tuple) or not all(isinstance(one, str) for one in self.patterns):
            message = f"layers are named by a tuple of texts, not {self.patterns!r}: write ('Recent*',)"
            raise ValueError(message)

    def is_named(self, key: str) -> bool:
        """Whether a pattern is exactly this key."""
        return key in self.patterns

    def glob_of(self, key: str) -> str | None:
        """Return the first glob that matches a key which isn't named exactly."""
        if key in self.patterns:
            return None
        return next((pattern for pattern in self.patterns if fnmatchcase(key, pattern)), None)

    def matches(self, key: str) -> bool:
        """Whether a key is named exactly or by a glob."""
        return key in self.patterns or self.glob_of(key) is not None

    def matching(self, keys: Iterable[str]) -> set[str]:
        """Return the patterns that match at least one of the keys; the others may be typing errors."""
        keys = tuple(keys)
        return {
            pattern for pattern in self.patterns if any(LayerNames((pattern,)).matches(key) for key in keys)
        }


def layer_names(patterns: object) -> LayerNames:
    """Return the names from what a user passes: a text, or any list or tuple of texts.

    Raises:
        ValueError: something else.
    """
    if isinstance(patterns, str):
        return LayerNames((patterns,))
    if isinstance(patterns, (list, set, frozenset)):
        return LayerNames(tuple(patterns))
    return LayerNames(patterns)  # type: ignore[arg-type]  # it refuses what is no tuple of texts
