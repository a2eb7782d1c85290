"""Secrets left out of stored answers, records, failures and snapshots, as the ini file and hooks say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._errors import CtxfpError, first_line
from pytest_ctxfp._redaction import Redactor, compile_patterns
from pytest_ctxfp.plugin.reports import change_texts
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    import pluggy

    from pytest_ctxfp._records import Record

REDACTOR = pytest.StashKey[Redactor]()

# What names a case, a test or a file, is to be read back as it is, or was redacted field by field.
_KEPT = frozenset(
    (
        *("kind", "id", "tags", "state", "key", "model", "file", "text_file", "entry", "text"),
        *("names", "whole", "folders", "matched_names"),
        *("variant", "scorer", "recorded_at", "report", "texts"),
    )
)
_TEXTS = (str, list, dict)


def get_redactor(config: pytest.Config) -> Redactor:
    """Return what leaves secrets out of texts, made once in a process."""
    if REDACTOR not in config.stash:
        settings = get_settings(config)
        config.stash[REDACTOR] = Redactor(
            compile_patterns(settings.redact),
            has_key_shapes=settings.redact_defaults,
            further=lambda text: _ask_hooks(config, text),
        )
    return config.stash[REDACTOR]


def _ask_hooks(config: pytest.Config, text: str) -> str:
    """Pass a text through every implementation of the hook: pluggy would give each the same text.

    Raises:
        CtxfpError: one of them raised or returned no text.
    """
    for implementation in config.hook.pytest_ctxfp_redact.get_hookimpls():
        arguments = {"text": text} if implementation.argnames else {}
        try:
            redacted = implementation.function(**arguments)
        except Exception as error:  # noqa: BLE001 - a hook may raise anything, also with a secret in it
            raise _bad_hook(implementation, f"raised {type(error).__name__}: return the text") from None
        if not isinstance(redacted, str):
            raise _bad_hook(implementation, f"returned {type(redacted).__name__}: return the text")
        text = redacted
    return text


def _bad_hook(implementation: pluggy.HookImpl, what: str) -> CtxfpError:
    return CtxfpError(f"the hook pytest_ctxfp_redact of {implementation.plugin_name} {what}")


def redact_record(record: Record, config: pytest.Config) -> None:
    """Leave secrets out of a record, in place; where a hook fails, all that may hold one is left out."""
    redactor = get_redactor(config)
    for name in [name for name, fact in record.items() if isinstance(fact, _TEXTS) and name not in _KEPT]:
        try:
            record[name] = redactor.redact_json(record[name])  # type: ignore[literal-required]
        except (CtxfpError, ValueError):
            del record[name]  # type: ignore[misc]


def redact_report(report: pytest.TestReport, config: pytest.Config) -> None:
    """Leave secrets out of what a report shows: the failure or skip, and captured output.

    Where a hook fails, that is shown in place of all: an error in here would end the whole run.
    """
    redactor = get_redactor(config)
    try:
        report.longrepr = change_texts(report.longrepr, redactor)
        report.sections = [(title, redactor(content)) for title, content in report.sections]
        if hasattr(report, "wasxfail"):
            report.wasxfail = redactor(report.wasxfail)
    except CtxfpError as error:
        note = f"left out: {first_line(error)}"
        shown = report.longrepr
        report.longrepr = (shown[0], shown[1], note) if isinstance(shown, tuple) else note
        report.sections = []
        if hasattr(report, "wasxfail"):
            report.wasxfail = note
