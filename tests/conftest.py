"""What all tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis
import pytest

from pytest_ctxfp.plugin.reports import escape_serialized

if TYPE_CHECKING:
    from collections.abc import Generator

hypothesis.settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("unhurried")


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    """Let tests of lone surrogates log them when this suite itself runs on workers."""
    return escape_serialized((yield))
