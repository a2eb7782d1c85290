"""Hooks that a project or another plugin can implement."""

from __future__ import annotations

import pytest


@pytest.hookspec(firstresult=True)
def pytest_ctxfp_count_tokens(text: str) -> int | None:
    """Count the tokens of a text, in place of the ini option ``ctx_tokens``.

    Args:
        text: the body of a layer, or a whole context.

    Returns:
        The number of tokens, or None to leave it to another implementation.

    Example, in conftest.py::

        def pytest_ctxfp_count_tokens(text):
            return len(my_tokenizer.encode(text))
    """
