"""Contexts as files hold them: a text, a chat request as JSON, or a fingerprint and no text."""

from __future__ import annotations

import json
import sys
from codecs import BOM_UTF8
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.files import naming, read_bytes, show_name
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._fingerprint import ContextFingerprint, fingerprint_context
from pytest_ctxfp._layers import encode_text, markdown_layers
from pytest_ctxfp._messages import is_request
from pytest_ctxfp._split import split_context
from pytest_ctxfp._tags import tag_layers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import TypeGuard

    from pytest_ctxfp._split import Splitter

SPLIT_HELP = """\
A file is text, whatever its suffix, and its layers are its '## ' headings; the bytes are hashed as they are.
With --split=messages it is JSON: a chat request, a list of messages, or an object of names and texts."""

_FINGERPRINT_FIELDS = frozenset({"layers", "order", "full_hash", "total_bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContext:
    """A context from a file.

    Args:
        name: the file, fit for a terminal.
        fingerprint: what is kept of the context.
        texts: header and body by layer; None where the file holds nothing but a fingerprint.
    """

    name: str
    fingerprint: ContextFingerprint
    texts: Mapping[str, tuple[bytes, bytes]] | None = None


def add_split_options(parser: argparse.ArgumentParser) -> None:
    """Register the options that say how a context falls into layers."""
    parser.add_argument(
        "--split",
        choices=("markdown", "messages", "tags"),
        help="layers are headings (markdown, the default), the parts of a chat request in JSON (messages),"
        " or sections <name> ... </name> (tags)",
    )
    parser.add_argument(
        "--level",
        type=int,
        choices=range(1, 7),
        metavar="N",
        help="split at headings of N signs '#', 1 to 6; the default is 2",
    )
    parser.add_argument(
        "--fences",
        choices=("split", "opaque"),
        help="whether headings inside of fenced code split too (split, the default) or not (opaque)",
    )


def check_split_options(arguments: argparse.Namespace) -> None:
    """Refuse options that the chosen split has no use for.

    Raises:
        CtxfpError: ``--level`` or ``--fences`` beside another split than markdown.
    """
    for option in ("level", "fences"):
        if getattr(arguments, option) is not None and arguments.split not in (None, "markdown"):
            message = f"--{option} is about headings, which --split={arguments.split} ignores: leave one out"
            raise CtxfpError(message)


def read_context(name: str, arguments: argparse.Namespace) -> FileContext:
    """Read a context and split it as the options say.

    Raises:
        CtxfpError: the file can't be read, or isn't what ``--split`` expects.
    """
    return _split(name, read_bytes(name), arguments)


def read_side(name: str, arguments: argparse.Namespace) -> FileContext:
    """Read one side of a diff: a context, or the fingerprint that ``ctxfp fingerprint --json`` printed.

    Raises:
        CtxfpError: as `read_context`; also a fingerprint with a fault, or several in one file.
    """
    data = read_bytes(name)
    value = _load_json(data)
    if isinstance(value, list) and value and all(map(_is_fingerprint, value)):
        message = (
            f"{show_name(name)}: holds the fingerprints of {len(value)} files:"
            " print those that are to be compared one by one"
        )
        raise CtxfpError(message)
    if not _is_fingerprint(value):
        return _split(name, data, arguments)
    with naming(name):
        return FileContext(name=show_name(name), fingerprint=ContextFingerprint.from_dict(value))


def _load_json(data: bytes) -> object:
    """Return the value of a file that is JSON, else None."""
    if not data.removeprefix(BOM_UTF8).lstrip().startswith((b"{", b"[")):
        return None
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _is_fingerprint(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict) and value.keys() >= _FINGERPRINT_FIELDS


def _split(name: str, data: bytes, arguments: argparse.Namespace) -> FileContext:
    splitter: Splitter | None = None
    context: object = data
    if arguments.split == "messages":
        context = _parse_request(name, data)
    elif arguments.split == "tags":
        splitter = tag_layers
    else:
        splitter = partial(markdown_layers, level=arguments.level or 2, fences=arguments.fences or "split")
        _mention_messages(name, data, arguments)
    with naming(name):
        _, layers = split_context(context, splitter)
        texts = {layer.key: (encode_text(layer.header), encode_text(layer.body)) for layer in layers}
        fingerprint = fingerprint_context(context, split=splitter)
        return FileContext(name=show_name(name), fingerprint=fingerprint, texts=texts)


def _parse_request(name: str, data: bytes) -> object:
    try:
        value: object = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
        if isinstance(value, dict) or is_request(value):
            return value
        reason = "neither a chat request, nor a list of messages, nor an object of names and texts"
    except RecursionError:
        reason = "JSON nested too deep"
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 (byte {error.start})"
    except ValueError as error:
        reason = f"no JSON: {error}"
    message = f"{show_name(name)}: {reason}, so --split=messages can't read it: for a text leave that out"
    raise CtxfpError(message)


def _refuse_constant(text: str) -> None:
    message = f"{text} is no JSON number"
    raise ValueError(message)


def _mention_messages(name: str, data: bytes, arguments: argparse.Namespace) -> None:
    """Say that a chat request was taken for a text, where nobody asked for that."""
    if arguments.split is None and name.lower().endswith(".json") and is_request(_load_json(data)):
        hint = "taken as text; for the layers of a chat request add --split=messages"
        sys.stderr.write(f"ctxfp: {show_name(name)}: {hint}\n")
