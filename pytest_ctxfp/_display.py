"""Texts of unknown origin, made fit for a terminal, a report and a UTF-8 file."""

from __future__ import annotations

import re

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNPRINTABLE = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}]")
_UNPRINTABLE_BUT_LINES = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}]")
_UNSHOWABLE_IN_NAME = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff{_BIDI}]")
_UTC_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_COUNTABLE_REASONS = {"new case", "new call", "new sample"}


def escape_line(text: str, *, limit: int | None = None) -> str:
    r"""Return a text on one line, its control, bidi-control and surrogate code points as ``\xNN``/``\uNNNN``.

    Args:
        text: anything.
        limit: cut to this many characters, the last being ``…``; None for the whole text.
    """
    # Cut before escaping, too: what is cut off may be megabytes.
    escaped = _sub(_UNPRINTABLE, text if limit is None else text[: limit + 1])
    return escaped if limit is None or len(escaped) <= limit else escaped[: limit - 1] + "…"


def escape_lines(text: str) -> str:
    r"""Return a text with the same escapes as `escape_line`, but with its line feeds and tabs."""
    return _sub(_UNPRINTABLE_BUT_LINES, text)


def escape_surrogates(text: str) -> str:
    r"""Return a text that UTF-8 can hold: lone surrogates stand as ``\uNNNN``."""
    return text if text.isascii() else _SURROGATE.sub(_escape, text)


def item_name(case_id: str) -> str:
    r"""Return the name of a case's test item.

    ``a::b`` gives ``a∷b``, as pytest splits node ids at ``::``; control, bidi-control and surrogate code
    points are written ``\x1b`` or ``\u202e``.
    """
    name = case_id.replace("::", "∷")
    return _sub(_UNSHOWABLE_IN_NAME, name)


def name_reason(why: str, n: int) -> str:
    """Return why something missed as it is said of ``n`` answers: ``new case`` becomes ``new cases``."""
    return f"{why}s" if n > 1 and why in _COUNTABLE_REASONS else why


def plural(n: int, noun: str) -> str:
    """Return a count and its noun: ``1 case``, ``2 cases``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def shorten_time(recorded_at: str) -> str:
    """Return a time as people read it: ``2026-11-30T19:21:54.123+00:00`` is ``2026-11-30 19:21:54 UTC``."""
    match = _UTC_TIME.fullmatch(recorded_at)
    return f"{match[1]} {match[2]} UTC" if match else escape_line(recorded_at, limit=40)


def _sub(unshowable: re.Pattern[str], text: str) -> str:
    return text if text.isprintable() else unshowable.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
