"""Copies of large golden files in a form that is read far quicker: most of a collection's time is YAML's."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_ctxfp._atomic import write_atomically
from pytest_ctxfp._hashing import git_text_sha
from pytest_ctxfp._model import GoldenCase, GoldenSet, ResultKind, Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ctxfp._model import JSONValue

WORTH_A_COPY = 1 << 15
"""Characters from which on a copy is made: about 200 cases. A smaller file is parsed in no time."""

_BLANK = GoldenCase(id="", question="")
_OPTIONAL = tuple(
    one.name for one in fields(GoldenCase) if one.name not in {"id", "question", "expected", "path"}
)
_TUPLES = ("tags", "marks")


class GoldenCopies:
    """Golden files that were read before, each as one JSON file that holds the hash of the text it is of.

    A copy that can't be used, for whatever reason, is as none: the golden file is read in its place.

    Args:
        open_folder: makes the folder of copies, when a file is worth one, and returns it.
        version: of this program; another version's copies are not used.
    """

    def __init__(self, open_folder: Callable[[], Path], *, version: str) -> None:
        self._open_folder = open_folder
        self._version = version

    @cached_property
    def _folder(self) -> Path:
        return self._open_folder()

    def find(self, path: str, text: str) -> GoldenSet | None:
        """Return what a golden file holds whose text is known, or None without a copy of just that text."""
        if len(text) < WORTH_A_COPY:
            return None
        try:
            copy = json.loads(self._place_of(path).read_bytes())
            if copy["version"] != self._version or copy["sha"] != git_text_sha(text):
                return None
            return GoldenSet(
                path=path,
                cases=tuple(_read_case(case, path) for case in copy["cases"]),
                dataset=copy["dataset"],
                context_version=copy["context_version"],
                metadata=copy["metadata"],
            )
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None

    def keep(self, golden: GoldenSet, text: str) -> None:
        """Keep a copy of a golden file that was read from a text, in place of an older copy."""
        if len(text) < WORTH_A_COPY:
            return
        copy = {
            "version": self._version,
            "sha": git_text_sha(text),
            "dataset": golden.dataset,
            "context_version": golden.context_version,
            "metadata": golden.metadata,
            "cases": [_case_to_json(case) for case in golden.cases],
        }
        try:
            write_atomically(self._place_of(golden.path), json.dumps(copy).encode(), sync=False)
        except (OSError, ValueError):  # a number of more digits than this interpreter prints
            return  # it only saves time

    def _place_of(self, path: str) -> Path:
        return self._folder / f"{git_text_sha(os.path.abspath(path))}.json"


def _case_to_json(case: GoldenCase) -> dict[str, Any]:
    data: dict[str, Any] = {"id": case.id, "question": case.question}
    for name in _OPTIONAL:
        value = getattr(case, name)
        if value != getattr(_BLANK, name):
            data[name] = value
    if isinstance(case.expected, Table):
        data["table"] = [case.expected.columns, case.expected.rows]
    elif case.expected is not None:
        data["expected"] = case.expected
    return data


def _read_case(data: dict[str, Any], path: str) -> GoldenCase:
    table = data.pop("table", None)
    if table is not None:
        data["expected"] = _read_table(*table)
    if "result_kind" in data:
        data["result_kind"] = ResultKind(data["result_kind"])
    for name in _TUPLES:
        if name in data:
            data[name] = tuple(data[name])
    return GoldenCase(**data, path=path)


def _read_table(columns: list[str] | None, rows: list[list[JSONValue]]) -> Table:
    return Table(None if columns is None else tuple(columns), tuple(map(tuple, rows)))
