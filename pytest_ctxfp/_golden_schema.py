"""The JSON schema of golden files, for editors and for programs that write them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue


def golden_schema() -> dict[str, JSONValue]:
    """Return the JSON schema (draft 2020-12) of golden files; that of one case is ``#/$defs/case``.

    It accepts what `load_golden` accepts and refuses unknown keys. What no schema can say is left to
    `load_golden`: ids that are used twice, tolerances of columns that aren't expected, broken regular
    expressions.
    """
    schema: dict[str, JSONValue] = json.loads(_schema_text())
    return schema


@lru_cache(maxsize=1)
def _schema_text() -> str:
    from importlib.resources import files

    return files("pytest_ctxfp").joinpath("golden.schema.json").read_text(encoding="utf-8")
