"""A run's report as one page of HTML: nothing is fetched, nothing of a case can become markup or script."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._html.page import build_page

if TYPE_CHECKING:
    from jinja2 import Template

    from pytest_ctxfp._gate_model import GateResult
    from pytest_ctxfp._report import RunReport

MISSING = "a report in HTML needs jinja2, which isn't installed: pip install 'pytest-ctxfp[html]'"


def report_to_html(
    report: RunReport, gate: GateResult | None = None, baseline: RunReport | None = None
) -> str:
    """Return a run's report as a page that stands alone: style and script are in it, nothing is fetched.

    Args:
        report: the run.
        gate: what it came to against a baseline, if it was compared with one.
        baseline: that baseline; it holds the texts of layers that changed or are gone.

    Raises:
        CtxfpError: jinja2 is not installed.
    """
    check_renderer()
    from markupsafe import Markup

    style, script = _read("style.css"), _read("script.js")
    page = build_page(report, gate, baseline)
    # A lone surrogate that got past all escapes must not keep the page from being written.
    text = _template().render(
        page=page,
        # Our own files: all that is not escaped.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def check_renderer() -> None:
    """Refuse where a page could not be made, before anything is paid for.

    Raises:
        CtxfpError: jinja2 is not installed.
    """
    from importlib.util import find_spec

    if find_spec("jinja2") is None:
        raise CtxfpError(MISSING)


def _policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy under which exactly this style and this script work.

    Source of the rule: W3C Content Security Policy Level 3, hash-source.
    """
    return (
        f"default-src 'none'; style-src '{_hash_source(style)}'; script-src '{_hash_source(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.j2")


def _read(name: str) -> str:
    """Return one of our own files with LF, as a browser reads it: that is what is hashed."""
    text = files("pytest_ctxfp._html").joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")
