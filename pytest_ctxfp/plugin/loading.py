"""Golden files, read by the hook of another format where one answers, else by ourselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._errors import GoldenError, describe_error
from pytest_ctxfp._golden import golden_set, load_with_copies
from pytest_ctxfp._golden_copies import GoldenCopies
from pytest_ctxfp.plugin.options import has_case_loaders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ctxfp._model import GoldenSet

COPIES = pytest.StashKey["GoldenCopies | None"]()


def find_loader(path: Path, session: pytest.Session) -> Callable[[], GoldenSet] | None:
    """Return what gives the cases that a hook read from a file, or None where no hook claims the file.

    What a hook raises is raised by the loader: only there can pytest say which file it was about.
    """
    if not has_case_loaders(path, session):
        return None
    try:
        cases = session.gethookproxy(path).pytest_ctxfp_load_cases(path=path)
        found = None if cases is None else list(cases)
    except GoldenError as error:
        return _raising(error)
    except Exception as error:  # noqa: BLE001 - a hook is somebody else's code
        reason = f"the hook pytest_ctxfp_load_cases raised {describe_error(error)}"
        return _raising(GoldenError(str(path), None, None, reason))
    if found is None:
        return None
    return lambda: golden_set(str(path), found)


def _raising(error: GoldenError) -> Callable[[], GoldenSet]:
    def load() -> GoldenSet:
        raise error

    return load


def load_cases(path: Path, session: pytest.Session) -> GoldenSet:
    """Return the cases of a file that a marker names.

    Raises:
        GoldenError: one that can't be used.
    """
    load = find_loader(path, session)
    if load is not None:
        return load()
    golden = load_with_copies(str(path), _copies_of(session.config), must_be_golden=True)
    assert golden is not None
    return golden


def load_file(path: Path, session: pytest.Session) -> GoldenSet | None:
    """Return the cases of a file that pytest came across, or None where it is someone else's.

    Raises:
        GoldenError: one that can't be used.
    """
    is_named = session.isinitpath(path)
    return load_with_copies(str(path), _copies_of(session.config), must_be_golden=is_named)


def _copies_of(config: pytest.Config) -> GoldenCopies | None:
    """Return the copies of golden files in pytest's cache, which ``--cache-clear`` empties."""
    if COPIES not in config.stash:
        cache: pytest.Cache | None = getattr(config, "cache", None)  # absent with -p no:cacheprovider
        config.stash[COPIES] = None if cache is None else _make_copies(cache)
    return config.stash[COPIES]


def _make_copies(cache: pytest.Cache) -> GoldenCopies:
    from pytest_ctxfp import __version__

    def open_folder() -> Path:
        try:
            cache.set("ctxfp/version", __version__)  # in pytest 8.0 this alone writes the folder's .gitignore
        except pytest.PytestCacheWarning as warning:  # with -W error, in a folder that nobody may write to
            raise OSError from warning
        return cache.mkdir("ctxfp-golden")

    return GoldenCopies(open_folder, version=__version__)
