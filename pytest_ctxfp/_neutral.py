"""Texts of facts, made unable to look like anything but one part of one fact."""

from __future__ import annotations

import re
from unicodedata import category

from pytest_ctxfp._layers import WHITE_SPACE

_MAX_LENGTH = 200  # code points
_BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_JOINERS = "\u200c\u200d"  # ZWNJ and ZWJ: scripts and emoji need them
_LOOKALIKES = str.maketrans({"<": "‹", ">": "›", "`": "'", "|": "¦"})


def neutral_text(text: str) -> str:
    r"""Return a text on one line, without the characters that separate facts, and never long.

    Example:
        >>> neutral_text("one\r\n## two|`x`=<y>\u202e ")
        "one ## two¦'x'=‹y›"
    """
    if not text.isprintable():
        text = "".join(filter(_is_kept, _BREAKS.sub(" ", text)))
    text = text.translate(_LOOKALIKES).strip(WHITE_SPACE)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


def _is_kept(char: str) -> bool:
    return category(char) not in ("Cc", "Cf") or char in _JOINERS


def neutral_key(text: str) -> str:
    """Return a key or category that doesn't hold ``=``, which ends it."""
    return neutral_text(text).replace("=", ":")


neutral_category = neutral_key


def neutral_topic(text: str) -> str:
    """Return a topic that doesn't hold the bracket which ends it."""
    return neutral_text(text).replace("[", "(").replace("]", ")")
