"""A case of this run as a report has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from pytest_ctxfp._report_json import case_to_dict
from pytest_ctxfp._reporting import CasePlace, case_report
from pytest_ctxfp.plugin.reports import escape_serialized

if TYPE_CHECKING:
    import pytest

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import SampleReport
    from pytest_ctxfp._runner import Outcome
    from pytest_ctxfp.plugin.case_runs import CaseRun


def place_of(run: CaseRun, item: pytest.Item, *, model: str) -> CasePlace:
    """Return what tells a case apart in a report."""
    path = run.case.path or str(item.path)
    file = os.path.relpath(path, item.config.rootpath).replace(os.sep, "/")
    return CasePlace(file, run.position, model, run.variant)


def describe_case(
    run: CaseRun, item: pytest.Item, sample: SampleReport, *, model: str, outcome: Outcome | None = None
) -> dict[str, JSONValue]:
    """Return a case with one of its samples as a report has it, fit to be sent by a worker."""
    place = place_of(run, item, model=model)
    entry = case_to_dict(case_report(run.case, place=place, samples=[sample], outcome=outcome))
    return cast("dict[str, JSONValue]", escape_serialized(entry))
