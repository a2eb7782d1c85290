"""A text -> layers at its tagged sections, ``<rules>`` ... ``</rules>``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, AnyStr

from pytest_ctxfp._layers import PREAMBLE_KEY, Layer, LayerKeys, join_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAG_LINE = re.compile(r"^<(/?)([^ \t\r\n\v\f<>/]+)((?:[ \t][^\n<>]*)?)>[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_TEXT_NAME = "(text)"


def tag_layers(text: AnyStr) -> list[Layer]:
    r"""Split a text at its top-level tags; the layers partition it.

    A section begins with a line that is ``<name>`` or ``<name attr...>`` and ends with the line ``</name>``
    that closes it: the same name may stand in it again. The opening line is the layer's header, the rest with
    the closing line its body. Text before the first section is ``(preamble)``, other text ``(text)#2`` and
    so on, or ``(text)`` where there is no preamble; a tag that is not closed is text.

    Args:
        text: the context, text or bytes; header and body of the layers are of its type.

    Raises:
        ValueError: another type of text.

    Examples:
        >>> [layer.key for layer in tag_layers("Hi\n<rules>\n- a\n</rules>\n<facts>\n- b\n</facts>\nBye\n")]
        ['(preamble)', 'rules', 'facts', '(text)#2']
    """
    if not isinstance(text, (str, bytes)):
        message = f"tag_layers splits text or bytes, got {type(text).__name__!r}"
        raise ValueError(message)
    return list(_layers(text))


def _layers(text: AnyStr) -> Iterator[Layer]:
    keys = LayerKeys()
    position = 0
    for start, header_end, end, name in _sections(text):
        if start > position:
            yield _text_layer(text[position:start], keys, is_first=position == 0)
        key = keys.claim(name)
        yield Layer(key=key, name=name, header=text[start:header_end], body=text[header_end:end])
        position = end
    if position < len(text):
        yield _text_layer(text[position:], keys, is_first=position == 0)


def _text_layer(text: AnyStr, keys: LayerKeys, *, is_first: bool) -> Layer:
    key = keys.claim(_TEXT_NAME)  # claimed by a preamble too: it is the first text
    if is_first:
        return Layer(key=PREAMBLE_KEY, name=None, header=text[:0], body=text)
    return Layer(key=key, name=_TEXT_NAME, header=text[:0], body=text)


def _sections(text: AnyStr) -> Iterator[tuple[int, int, int, str]]:
    """Yield start, end of the opening line, end and name of the top-level sections."""
    # Bytes as one character each: offsets stay, and all that makes a tag is ASCII.
    scanned = text if isinstance(text, str) else text.decode("latin-1")
    position = 0
    for opening, end in _find_closed(scanned):
        if opening.start() >= position:
            name = text[slice(*opening.span(2))]
            as_text = name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
            yield opening.start(), opening.end(), end, join_surrogates(as_text)
            position = end


def _find_closed(scanned: str) -> list[tuple[re.Match[str], int]]:
    """Return the openings that are closed, in order, each with the end of its closing line."""
    open_tags: dict[str, list[re.Match[str]]] = {}
    closed = []
    for line in _TAG_LINE.finditer(scanned):
        is_closing, name, attributes = line.groups()
        if not is_closing and not attributes.endswith("/"):
            open_tags.setdefault(name, []).append(line)
        elif is_closing and not attributes and open_tags.get(name):
            closed.append((open_tags[name].pop(), line.end()))
    return sorted(closed, key=_start_of)


def _start_of(section: tuple[re.Match[str], int]) -> int:
    return section[0].start()
