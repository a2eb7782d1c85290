"""Golden files, read by the hook of another format where one answers, else by ourselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._errors import GoldenError, describe_error
from pytest_ctxfp._golden import golden_set, load_golden, load_if_golden
from pytest_ctxfp.plugin.options import has_case_loaders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from pytest_ctxfp._model import GoldenSet


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
    return load_golden(path) if load is None else load()


def load_file(path: Path, session: pytest.Session) -> GoldenSet | None:
    """Return the cases of a file that pytest came across, or None where it is someone else's.

    Raises:
        GoldenError: one that can't be used.
    """
    return load_golden(path) if session.isinitpath(path) else load_if_golden(path)
