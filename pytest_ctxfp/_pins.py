"""Pins of golden files: which state of the context sources their expectations were written for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_SHA_PREFIX = re.compile("[0-9a-fA-F]{7,64}")

Freshness = Literal["fresh", "stale", "unpinned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PinStatus:
    """What a ``context_version`` says, held against the current state.

    Attributes:
        dataset: the text before the first ``@``, or None without one.
        pin: the text after it, as written.
        freshness: ``fresh`` (the pin is the current SHA or its beginning), ``stale`` (it is another one) or
            ``unpinned`` (it is not 7 to 64 hex digits).
    """

    dataset: str | None
    pin: str
    freshness: Freshness


def classify_pin(context_version: str | None, current_sha: str) -> PinStatus:
    """Tell whether a golden file was written for the current state of its context sources.

    Args:
        context_version: ``dataset@pin`` or a bare pin, as in the golden file; None where it has none.
        current_sha: tree SHA of the context sources, in hex; upper and lower case are the same.
    """
    head, at, tail = (context_version or "").partition("@")
    pin = tail if at else head
    return PinStatus(dataset=head if at else None, pin=pin, freshness=_judge(pin, current_sha))


def _judge(pin: str, current_sha: str) -> Freshness:
    if _SHA_PREFIX.fullmatch(pin) is None:
        return "unpinned"
    return "fresh" if current_sha.lower().startswith(pin.lower()) else "stale"
