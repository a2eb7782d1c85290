"""What a run does with stored answers."""

from __future__ import annotations

from enum import Enum


class CacheMode(str, Enum):
    """Whether stored answers are used and new ones kept."""

    AUTO = "auto"
    REFRESH = "refresh"
    REPLAY = "replay"
    OFF = "off"

    @property
    def reads(self) -> bool:
        """Whether a stored answer is used in place of a call."""
        return self in (CacheMode.AUTO, CacheMode.REPLAY)

    @property
    def writes(self) -> bool:
        """Whether a new answer is stored."""
        return self in (CacheMode.AUTO, CacheMode.REFRESH)
