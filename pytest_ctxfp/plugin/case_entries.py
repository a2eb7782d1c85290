"""A case of this run as a report has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._report_json import case_to_dict
from pytest_ctxfp._report_redaction import redact_case, strip_case
from pytest_ctxfp._reporting import CasePlace, case_report
from pytest_ctxfp.plugin.collect import GoldenItem
from pytest_ctxfp.plugin.items import names_below_file, path_in_reports
from pytest_ctxfp.plugin.redacting import get_redactor
from pytest_ctxfp.plugin.reports import escape_serialized

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import CaseReport, SampleReport
    from pytest_ctxfp._runner import Outcome
    from pytest_ctxfp.plugin.case_runs import CaseRun


def _place_of(run: CaseRun, item: pytest.Item, *, model: str) -> CasePlace:
    """Return what tells a case apart in a report."""
    file = path_in_reports(run.case.path or item.path, item.config)
    is_golden_item = isinstance(item, GoldenItem)
    test = None if is_golden_item else f"{path_in_reports(item.path, item.config)}::{names_below_file(item)}"
    return CasePlace(file, run.position, model, run.variant, test)


def report_case(
    run: CaseRun,
    item: pytest.Item,
    samples: Sequence[SampleReport],
    *,
    model: str,
    confirming: Sequence[SampleReport] = (),
    outcome: Outcome | None = None,
) -> CaseReport:
    """Return a case as a report has it, without secrets; where a hook fails, without all its texts."""
    case = case_report(
        run.case,
        place=_place_of(run, item, model=model),
        samples=samples,
        confirming=confirming,
        outcome=outcome,
    )
    try:
        return redact_case(case, get_redactor(item.config))
    except (CtxfpError, ValueError):
        return strip_case(case)


def describe_case(
    run: CaseRun, item: pytest.Item, sample: SampleReport, *, model: str, outcome: Outcome | None = None
) -> dict[str, JSONValue]:
    """Return a case with one of its samples as a report has it, fit to be sent by a worker."""
    entry = case_to_dict(report_case(run, item, [sample], model=model, outcome=outcome))
    return cast("dict[str, JSONValue]", escape_serialized(entry))
