"""What an answer depends on outside of files: environment variables and installed packages."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Iterable

_N_DIGITS = 16
_SEPARATORS = re.compile("[-_.]+")


def hash_variables(names: Iterable[str]) -> dict[str, str | None]:
    """Return a hash of each variable's value as it is now, None where it isn't set.

    The value itself goes nowhere. The name is hashed along, so that equal values don't show as equal.

    Returns:
        the first 16 hex digits of SHA-256, by name.

    Raises:
        CtxfpError: something that is no name, such as ``NAME=value``.
    """
    return {name: _hash_variable(name) for name in sorted(set(names))}


def _hash_variable(name: str) -> str | None:
    if not name or "=" in name or "\0" in name:
        # Not shown in full: what stands behind the = may be a secret.
        message = (
            f"{name.partition('=')[0]!r} is followed by a value: write the names of variables only,"
            " their values are read from the environment"
        )
        raise CtxfpError(message)
    value = os.environ.get(name)
    if value is None:
        return None
    return hashlib.sha256(b"\0".join((os.fsencode(name), os.fsencode(value)))).hexdigest()[:_N_DIGITS]


def read_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages, by their normalised names (PEP 503).

    Raises:
        CtxfpError: a package that isn't installed.
    """
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in names:
        try:
            versions[_SEPARATORS.sub("-", name).lower()] = str(version(name))
        except (PackageNotFoundError, ValueError):
            message = f"package {name!r} is not installed: install it, or take its name out"
            raise CtxfpError(message) from None
    return dict(sorted(versions.items()))
