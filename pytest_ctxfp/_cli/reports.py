"""Run reports as the commands read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._cli.files import read_text
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from pytest_ctxfp._report import RunReport


def read_report(name: str) -> RunReport:
    """Return the report in a file.

    Raises:
        CtxfpError: the file holds none; the message names it.
        OSError: no such file, or one that can't be read.
    """
    from pytest_ctxfp._report_json import report_from_json

    try:
        return report_from_json(read_text(name))
    except CtxfpError as error:
        message = str(error) if str(error).startswith(name) else f"{name}: {error}"
        raise CtxfpError(message) from None
