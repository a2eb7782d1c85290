"""The hook that splits contexts, as a function that the rest of the plugin passes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_ctxfp._split import Splitter


def splitter_of(item: pytest.Item) -> Splitter | None:
    """Return what splits the contexts of a test where it names no ``split``; None where types decide."""
    if not item.config.hook.pytest_ctxfp_split_layers.get_hookimpls():  # those of all folders
        return None
    hook = item.ihook.pytest_ctxfp_split_layers
    if not hook.get_hookimpls():
        return None
    return lambda context: hook(context=context)
