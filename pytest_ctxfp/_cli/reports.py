"""Run reports as the commands read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._cli.files import naming, read_text

if TYPE_CHECKING:
    from pytest_ctxfp._report import RunReport


def read_report(name: str) -> RunReport:
    """Return the report in a file.

    Raises:
        CtxfpError: no such file, or one that holds no report; the message names it.
    """
    from pytest_ctxfp._report_json import report_from_json

    text = read_text(name)
    with naming(name):
        return report_from_json(text)
