"""What an item is called: below its file, and on the command line."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def names_below_file(item: pytest.Item) -> str:
    """Return the names of classes and test joined by ``::``.

    Not cut from the node id: pytest-xdist appends its groups to that.
    """
    chain = item.listchain()
    below = next(i for i, node in enumerate(chain) if isinstance(node, pytest.File)) + 1
    return "::".join(node.name for node in chain[below:])


def command_for(item: pytest.Item, flag: str) -> str:
    """Return the command that runs this one test with a flag, from where pytest was started."""
    return f"pytest {shlex.quote(f'{shown_path(item.path, item.config)}::{names_below_file(item)}')} {flag}"


def shown_path(path: Path, config: pytest.Config) -> str:
    """Return a path as one would type it where pytest was started."""
    return os.path.relpath(path, config.invocation_params.dir)
