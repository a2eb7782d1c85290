"""How this run counts tokens: by a hook, by tiktoken where the ini file consents, else by the estimate."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._tokens import TokenCounter, resolve_counter
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTER = pytest.StashKey["tuple[TokenCounter | None, list[str]]"]()


def get_counter(config: pytest.Config) -> TokenCounter | None:
    """Return the counter of this run, or None where ini ``ctx_tokens = off``."""
    return _counter_and_notes(config)[0]


def exact_counter(config: pytest.Config) -> TokenCounter | None:
    """Return the counter if its numbers are exact: only those are stored."""
    counter = get_counter(config)
    return None if counter is None or counter.is_estimate else counter


def take_notes(config: pytest.Config) -> list[str]:
    """Return, once, what a user should know: that a vocabulary could not be loaded."""
    notes = _counter_and_notes(config)[1]
    taken = list(notes)
    notes.clear()
    return taken


def _counter_and_notes(config: pytest.Config) -> tuple[TokenCounter | None, list[str]]:
    if COUNTER not in config.stash:
        config.stash[COUNTER] = _choose_counter(config)
    return config.stash[COUNTER]


def _choose_counter(config: pytest.Config) -> tuple[TokenCounter | None, list[str]]:
    hook = config.hook.pytest_ctxfp_count_tokens
    if hook.get_hookimpls():
        return TokenCounter(name="pytest_ctxfp_count_tokens", count=_ask_hook(hook)), []
    word = get_settings(config).tokens
    if word == "off":
        return None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counter = resolve_counter(word)
    return counter, [str(warning.message) for warning in caught]


def _ask_hook(hook: Callable[..., int | None]) -> Callable[[str], int]:
    def count(text: str) -> int:
        n_tokens = hook(text=text)
        if n_tokens is None:
            message = "no implementation of pytest_ctxfp_count_tokens gave a number: return one"
            raise ValueError(message)
        return n_tokens

    return count
