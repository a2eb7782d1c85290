"""What an item is called, below its file and on the command line, and what its fixtures need."""

from __future__ import annotations

import inspect
import os
import shlex
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._backend import mask_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FIXTURES_OF = pytest.StashKey["dict[str, frozenset[str]]"]()


def names_below_file(item: pytest.Item) -> str:
    """Return the names of classes and test joined by ``::``.

    Not cut from the node id: pytest-xdist appends its groups to that.
    """
    chain = item.listchain()
    below = next(i for i, node in enumerate(chain) if isinstance(node, pytest.File)) + 1
    return "::".join(node.name for node in chain[below:])


def command_for(item: pytest.Item, flag: str) -> str:
    """Return the command that runs this one test with a flag, from where pytest was started.

    The models and variants of the run go with it: a test's name holds them.
    """
    place = shlex.quote(f"{shown_path(item.path, item.config)}::{names_below_file(item)}")
    return " ".join(["pytest", place, flag, *_labels_of_run(item.config)])


def command_to_refresh(item: pytest.Item) -> str:
    """Return the command that asks the agent anew for all that this run scored of an item."""
    return command_for(item, " ".join(["--ctx-refresh", *_repeats_of_run(item.config)]))


def command_to_ask(item: pytest.Item) -> str:
    """Return the command that asks and stores what an item needs, where this run looks for it."""
    folder = item.config.getoption("ctx_cache_dir")
    place = [f"--ctx-cache-dir={shlex.quote(mask_url(folder))}"] if folder else []
    flags = ["--ctx-cache", "--ctx-on-miss=call", *place, *_repeats_of_run(item.config)]
    return command_for(item, " ".join(flags))


def _labels_of_run(config: pytest.Config) -> Iterator[str]:
    for option in ("models", "variants"):
        labels = config.getoption(f"ctx_{option}")
        if labels:
            yield shlex.quote(f"--ctx-{option}={','.join(labels)}")


def _repeats_of_run(config: pytest.Config) -> list[str]:
    n = config.getoption("ctx_repeat")
    return [f"--ctx-repeat={n}"] if n > 1 else []


def shown_path(path: Path, config: pytest.Config) -> str:
    """Return a path as one would type it where pytest was started."""
    return os.path.relpath(path, config.invocation_params.dir)


def path_in_reports(path: str | Path, config: pytest.Config) -> str:
    """Return a path relative to the rootdir, with ``/``: the same one wherever pytest was started."""
    return os.path.relpath(path, config.rootpath).replace(os.sep, "/")


def fixtures_of(item: pytest.Item, name: str) -> frozenset[str]:
    """Return the names of all fixtures and parameters that a fixture needs, the test's autouse ones included.

    Nothing is built to find out: pytest works out the fixtures of a function that asks for it.
    """
    parent = item.parent
    assert parent is not None
    known = parent.stash.setdefault(FIXTURES_OF, {})
    if name not in known:
        probe = pytest.Function.from_parent(parent, name=name, callobj=_probe_for(parent, name))
        known[name] = frozenset(probe.fixturenames)
    return known[name]


def _probe_for(parent: pytest.Collector, name: str) -> Callable[..., None]:
    """Return a function that asks for one fixture; in a class it is a method."""

    def probe(*arguments: object) -> None:
        """Never called: only the names of its arguments matter."""

    names = ["self", name] if isinstance(parent, pytest.Class) else [name]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    probe.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return probe
