"""The forms that a report is written in, by the suffix of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._report_json import report_to_json
from pytest_ctxfp._report_markdown import report_to_markdown

if TYPE_CHECKING:
    from pytest_ctxfp._gate_model import GateResult
    from pytest_ctxfp._report import RunReport


def render_report(
    suffix: str, report: RunReport, gate: GateResult | None = None, baseline: RunReport | None = None
) -> str:
    """Return the text of a report file.

    Args:
        suffix: ``.json``, ``.html``, or ``.md`` for anything else; case doesn't matter.
        report: the run.
        gate: what it came to against a baseline, if it was compared with one.
        baseline: that baseline, which may hold the texts of layers that are gone.

    Raises:
        CtxfpError: HTML without jinja2.
    """
    if suffix.lower() == ".json":
        return report_to_json(report)
    if suffix.lower() == ".html":
        from pytest_ctxfp._html import report_to_html

        return report_to_html(report, gate, baseline)
    return report_to_markdown(report, gate)
