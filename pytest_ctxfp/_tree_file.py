"""A file -> the trees it holds: its suffix says which parser reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_ctxfp._tree import TreeError

if TYPE_CHECKING:
    from pytest_ctxfp._tree import Parsed

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")


def read_file(path: str) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Raises:
        TreeError: a file that can't be read or is not UTF-8.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"is not UTF-8 (byte 0x{data[error.start]:02x}): save it as UTF-8"
        raise TreeError(line, reason) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise TreeError(None, f"can't be read ({reason}): correct the path or its permissions") from None


def parse_text(path: str, text: str) -> Parsed:
    """Parse the text of a file as its suffix says.

    Args:
        path: the file, for its suffix.
        text: what `read_file` returned.

    Raises:
        TreeError: an unknown suffix, or a text that its parser can't read to the end.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix in (".yaml", ".yml"):
        from pytest_ctxfp._yaml import parse_yaml

        return parse_yaml(text)
    if suffix in (".json", ".jsonl"):
        from pytest_ctxfp._json import parse_json, parse_json_lines

        return parse_json_lines(text) if suffix == ".jsonl" else parse_json(text)
    reason = f"the suffix {suffix!r} tells no format: name it {', '.join(SUFFIXES)}"
    raise TreeError(None, reason)
