"""Texts of contexts on their way into reports: each process sends each layer once, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._display import escape_surrogates
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._report_texts import read_layer_texts
from pytest_ctxfp.plugin.redacting import get_redactor
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from pytest_ctxfp._split import Splitter

SENT = pytest.StashKey["set[str]"]()


def take_texts(item: pytest.Item, context: object, split: Splitter | None) -> dict[str, str]:
    """Return the texts of a context's layers that this process has not sent yet, by hash.

    A layer of which a hook can't tell the secrets is left out.
    """
    settings = get_settings(item.config)
    if context is None or not (settings.report_texts and settings.compares_runs):
        return {}
    sent = item.config.stash.setdefault(SENT, set())
    redact = get_redactor(item.config)
    try:
        texts = read_layer_texts(context, split)
        new = {digest: text for digest, text in texts.items() if digest not in sent}
        redacted = {digest: escape_surrogates(redact(text)) for digest, text in new.items()}
    except (CtxfpError, ValueError):
        return {}
    sent.update(new)
    return redacted
