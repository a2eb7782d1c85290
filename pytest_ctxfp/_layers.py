"""A context -> layers: which part of it stands under which name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, AnyStr, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PREAMBLE_KEY = "(preamble)"
"""Key of the text before the first header: never the key of a layer with a name."""

WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space property; `str.strip` also strips U+001C to U+001F, which don't have it."""

_HEADING_MARK = re.compile(r"\A#{1,6} ")
_FENCE_LINE = r"^ {0,3}(`{3,}|~{3,})([^\n]*)$"
_CHARACTERS_A_SIGN = 64
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One part of a context; header and body of all layers, in order, are the context.

    Args:
        key: unique in its context.
        name: what the header says, the same for all ``## Document`` layers; None for text that stands
            before the first header.
        header: the exact header text with its line end; empty where there is no header.
        body: the exact text below the header. Text and bytes as in the context.
    """

    key: str
    name: str | None
    header: str | bytes
    body: str | bytes


class LayerKeys:
    """Hands out unique keys: the name where it is free, else ``name#2``, ``name#3``..., the first free."""

    def __init__(self) -> None:
        self._taken = {PREAMBLE_KEY}
        self._next_number: dict[str, int] = {}

    def claim(self, name: str) -> str:
        """Return a key for a layer of this name, and take it."""
        key = name
        while key in self._taken:
            number = self._next_number.get(name, 2)
            self._next_number[name] = number + 1
            key = f"{name}#{number}"
        self._taken.add(key)
        return key


def markdown_layers(
    text: AnyStr, level: int = 2, *, fences: Literal["split", "opaque"] = "split"
) -> list[Layer]:
    r"""Split a text at its headings; the layers partition it.

    A header is a line that begins with exactly ``level`` signs ``#`` and a space; lines end at LF only.

    Args:
        text: the context; header and body of the layers are of its type. Names of bytes that are not
            UTF-8 are decoded with ``surrogateescape``.
        level: 1 to 6; deeper headings stay in the bodies, and so do higher ones.
        fences: ``split`` also splits inside of fenced code blocks (as car-memgine does), ``opaque``
            doesn't (fences as in CommonMark 0.31, section 4.5).

    Returns:
        The layers in order; none for an empty text.

    Raises:
        ValueError: another type of text, another level or another word for fences.

    Examples:
        >>> [(layer.key, layer.body) for layer in markdown_layers("Hi\n## Facts\n- a\n## Facts\n- b\n")]
        [('(preamble)', 'Hi\n'), ('Facts', '- a\n'), ('Facts#2', '- b\n')]
    """
    if type(level) is not int or not 1 <= level <= 6:
        message = f"level must be a whole number from 1 to 6, got {level!r}"
        raise ValueError(message)
    if fences not in {"split", "opaque"}:
        message = f"fences must be 'split' or 'opaque', got {fences!r}"
        raise ValueError(message)
    if not isinstance(text, (str, bytes)):
        message = f"markdown_layers splits text or bytes, got {type(text).__name__!r}"
        raise ValueError(message)
    return list(iter_headed_layers(text, level=level, fences=fences))


def encode_text(text: str | bytes) -> bytes:
    """Return the bytes that are hashed for a text: UTF-8, lone surrogates included."""
    # The base class's method: a subclass of str may encode in a way of its own.
    return str.encode(text, "utf-8", "surrogatepass") if isinstance(text, str) else text


def iter_headed_layers(
    text: AnyStr, *, level: int = 2, fences: Literal["split", "opaque"] = "split"
) -> Iterator[Layer]:
    """Yield the layers of `markdown_layers` one by one, so that few copies of bodies live at a time."""
    keys = LayerKeys()
    spans = _header_spans(text, level)
    if fences == "opaque":
        spans = _outside_of_fences(spans, _fence_spans(text))
    header, key, name, body_start = text[:0], PREAMBLE_KEY, None, 0
    for start, end in spans:
        if start:
            yield Layer(key=key, name=name, header=header, body=text[body_start:start])
        header, body_start = text[start:end], end
        name = _name_of(header[level + 1 :])
        key = keys.claim(name)
    if text:
        yield Layer(key=key, name=name, header=header, body=text[body_start:])


def _header_spans(text: AnyStr, level: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the header lines, each with its LF if it has one."""
    sign, mark, line_feed = (_as_type_of(text, one) for one in ("#", "#" * level + " ", "\n"))
    position = text.find(sign)
    # Memory is searched for a rare character ten times faster than for a pattern; a text full of signs
    # would be slow that way, so it is left to the pattern.
    for _ in range(len(text) // _CHARACTERS_A_SIGN + 1):
        if position == -1:
            return
        end = position + 1
        if text.startswith(mark, position) and (not position or text.startswith(line_feed, position - 1)):
            end = text.find(line_feed, position) + 1 or len(text)
            yield position, end
        position = text.find(sign, end)
    if position != -1:
        pattern = re.compile(line_feed + mark + _as_type_of(text, "[^\n]*"))
        for match in pattern.finditer(text, max(position - 1, 0)):
            yield match.start() + 1, min(match.end() + 1, len(text))


def _as_type_of(text: AnyStr, ascii_text: str) -> AnyStr:
    return ascii_text if isinstance(text, str) else ascii_text.encode("ascii")


def heading_name(header: str) -> str:
    r"""Return the name in a header line: what follows its mark, stripped of White_Space.

    Examples:
        >>> heading_name("##  Current Facts\r\n")
        'Current Facts'
    """
    return _name_of(_HEADING_MARK.sub("", header))


def _name_of(title: str | bytes) -> str:
    text = title if isinstance(title, str) else title.decode("utf-8", "surrogateescape")
    return join_surrogates(text.strip(WHITE_SPACE))


def join_surrogates(text: str) -> str:
    """Return the text with each surrogate pair as the one character it stands for.

    JSON can't tell the two apart: names that differ in that alone would be one name when read back.
    """
    if text.isascii() or _SURROGATE_PAIR.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _fence_spans(text: AnyStr) -> Iterator[tuple[int, int]]:
    """Yield start and end of the fenced code blocks; one that is not closed ends with the text."""
    tilde, backtick, blanks = (_as_type_of(text, characters) for characters in ("~", "`", " \t\r"))
    opening: re.Match[AnyStr] | None = None
    for line in re.finditer(_as_type_of(text, _FENCE_LINE), text, re.MULTILINE):
        fence, rest = line.groups()
        if opening is None:
            # Three backticks and more of them later in the line are inline code.
            if fence.startswith(tilde) or backtick not in rest:
                opening = line
        elif fence.startswith(opening[1]) and not rest.strip(blanks):
            yield opening.start(), line.end()
            opening = None
    if opening is not None:
        yield opening.start(), len(text)


def _outside_of_fences(
    headers: Iterable[tuple[int, int]], blocks: Iterator[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    block = next(blocks, None)
    for header in headers:
        while block is not None and block[1] <= header[0]:
            block = next(blocks, None)
        if block is None or header[0] < block[0]:
            yield header
