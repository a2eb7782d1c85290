"""The hooks that a conftest or another plugin may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_ctxfp._layers import Layer
    from pytest_ctxfp._model import GoldenCase, JSONValue


@pytest.hookspec(firstresult=True)
def pytest_ctxfp_split_layers(context: object) -> Iterable[Layer] | None:
    """Split a context into layers where a test names no ``split``.

    Asked for every context that is fingerprinted: those of ``ctx_snapshot`` and of the assembler. Header and
    body of the layers of a text must be the text. The first answer that is not None counts.

    Args:
        context: whatever a test or an assembler made.

    Returns:
        The layers, or None to let another plugin, or the context's type, decide.

    Example::

        from pytest_ctxfp import tag_layers

        def pytest_ctxfp_split_layers(context):
            if isinstance(context, str) and context.startswith("<"):
                return tag_layers(context)
            return None
    """


@pytest.hookspec(firstresult=True)
def pytest_ctxfp_load_cases(path: Path) -> Iterable[GoldenCase | Mapping[str, JSONValue]] | None:
    """Read golden cases from a file of another format.

    Asked for every file that pytest comes across but Python's own, and for the files of a ``ctx_golden``
    marker. The first answer that is not None counts.

    Args:
        path: the file.

    Returns:
        The cases, each as it would stand in a golden file or as a `GoldenCase`; None if the file is no such
        file: golden files are then read as ever.

    Example::

        import json

        def pytest_ctxfp_load_cases(path):
            if path.name != "goldens.json":
                return None
            return [
                {"id": f"golden-{n}", "question": golden["input"], "result_kind": "text",
                 "match": "contains", "expected": golden["expected_output"]}
                for n, golden in enumerate(json.loads(path.read_text(encoding="utf-8")))
            ]
    """


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


@pytest.hookspec
def pytest_ctxfp_redact(text: str) -> str:  # type: ignore[empty-body] # a specification
    """Leave secrets out of a text before it is written or shown; hashes are of the unchanged text.

    Asked for every text of a stored answer, of a snapshot and of a report, and for the failures of golden
    items. Every implementation is applied, one to what another returned, after the patterns of the ini option
    ``ctx_redact``. It must return the same text for the same text, or stored answers are not found again, and
    leave a text that it returned as it is: what is reported may have been stored before.

    Args:
        text: any text, from a single word to a whole context.

    Returns:
        The text to be written.

    Example::

        def pytest_ctxfp_redact(text):
            return text.replace(os.environ["SHOP_TOKEN"], "[redacted]")
    """
