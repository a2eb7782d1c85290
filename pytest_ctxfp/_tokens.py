"""How many tokens a text has: an estimate, or an exact count where a tokeniser is at hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import BudgetExceeded
from pytest_ctxfp._layers import encode_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ctxfp._split import Splitter

_BYTES_PER_TOKEN = 4
_VOCABULARY = "o200k_base"
_TOTAL = "*"
_MAX_BLANKS = 10_000  # in a row: tiktoken's regular expression panics on a million of them


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """A way to count tokens.

    Args:
        name: what to call it where counts are shown or stored.
        count: returns the number of tokens of a text.
        is_estimate: the numbers are near, not exact; they are shown with ``~``.
    """

    name: str
    count: Callable[[str], int]
    is_estimate: bool = False

    def show(self, n_tokens: int) -> str:
        """Return ``512``, or ``~512`` for an estimate; a difference keeps its sign: ``~-12``."""
        return f"~{n_tokens}" if self.is_estimate else str(n_tokens)


AnyCounter: TypeAlias = "TokenCounter | Callable[[str], int] | str"
"""A counter, a function from text to number of tokens, or a word: ``estimate`` or ``tiktoken``."""


class Encoding(Protocol):
    """What is used of a ``tiktoken.Encoding``."""

    @property
    def name(self) -> str:
        """The name of its vocabulary."""

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the tokens of a text in which special tokens are ordinary text."""


def estimate_tokens(n_bytes: int) -> int:
    """Return the estimate for a text of so many bytes in UTF-8: one token for four, rounded up.

    OpenAI's rule of thumb for English. It needs no text, so sizes kept from long ago have it too.
    """
    return -(-n_bytes // _BYTES_PER_TOKEN)


ESTIMATE = TokenCounter(
    name="estimate", count=lambda text: estimate_tokens(len(encode_text(text))), is_estimate=True
)


def encoding_counter(encoding: Encoding) -> TokenCounter:
    """Return a counter that counts what a ``tiktoken.Encoding`` encodes."""

    def count(text: str) -> int:
        return sum(len(encoding.encode_ordinary(part)) for part in _cut_long_blanks(text))

    return TokenCounter(name=encoding.name, count=count)


def _cut_long_blanks(text: str) -> Iterator[str]:
    """Yield the text in parts, in none of which more than 10,000 blanks follow each other."""
    start = 0
    if len(text) > _MAX_BLANKS:
        for blanks in re.finditer(r"\s+", text):
            for end in range(blanks.start() + _MAX_BLANKS, blanks.end(), _MAX_BLANKS):
                yield text[start:end]
                start = end
    yield text[start:]


@cache
def load_tiktoken(vocabulary: str = _VOCABULARY) -> TokenCounter:
    """Return a counter with one of tiktoken's vocabularies, which tiktoken may have to download.

    Where tiktoken or the vocabulary isn't there: the estimate, and one warning a process.
    """
    try:
        import tiktoken

        return encoding_counter(tiktoken.get_encoding(vocabulary))
    except ImportError:
        _warn("tiktoken is not installed: pip install 'pytest-ctxfp[tokens]'")
    except Exception as error:  # noqa: BLE001 - a download, a cache folder and a checksum fail in many ways
        reason = f"tiktoken has no vocabulary {vocabulary!r} ({type(error).__name__})"
        _warn(f"{reason}: run once with network, or set TIKTOKEN_CACHE_DIR to a folder that holds it")
    return ESTIMATE


def _warn(reason: str) -> None:
    import warnings

    warnings.warn(f"tokens are estimated, as {reason}", stacklevel=3)


def resolve_counter(counter: AnyCounter | None = None) -> TokenCounter:
    """Return the counter that an argument stands for; None stands for the estimate.

    Raises:
        ValueError: another word, or something that can't be called.
    """
    if isinstance(counter, TokenCounter):
        return counter
    if counter is None or counter == "estimate":
        return ESTIMATE
    if counter == "tiktoken":
        return load_tiktoken()
    if isinstance(counter, str) or not callable(counter):
        message = f"a counter is 'estimate', 'tiktoken' or a function from text to int, got {counter!r:.100}"
        raise ValueError(message)
    return TokenCounter(name=getattr(counter, "__name__", type(counter).__name__), count=counter)


def count_tokens(text: str | bytes, counter: AnyCounter | None = None) -> int:
    """Return the number of tokens of a text.

    Args:
        text: bytes count as the UTF-8 text they are, what is none of it as U+FFFD.
        counter: None or ``estimate`` for the estimate, a token for four bytes of UTF-8, rounded up, which
            needs nothing; ``tiktoken`` for its ``o200k_base`` (the extra ``tokens``), which tiktoken
            downloads where it isn't there yet; or a function from text to number of tokens.

    Raises:
        ValueError: something that is no text or no counter, or a counter that returns no number of tokens.

    Example:
        >>> count_tokens("FACTS:")
        2
    """
    if not isinstance(text, (str, bytes)):
        message = f"count_tokens counts text or bytes, got {type(text).__name__!r}"
        raise ValueError(message)
    counter = resolve_counter(counter)
    n_tokens: object = counter.count(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    if not isinstance(n_tokens, int) or isinstance(n_tokens, bool) or n_tokens < 0:
        message = (
            f"the counter {counter.name!r} must return a whole number of at least 0, got {n_tokens!r:.100}"
        )
        raise ValueError(message)
    return n_tokens


def check_budget(
    context: object,
    budget: Mapping[str, int],
    *,
    counter: AnyCounter | None = None,
    split: Splitter | None = None,
) -> None:
    r"""Fail where a layer of a context, or the whole, has more tokens than it may.

    Args:
        context: what `fingerprint_context` takes.
        budget: the most tokens by key of a layer, whose body is counted; ``*`` is the whole context, headers
            included (of a mapping, the texts together).
        counter: as in `count_tokens`.
        split: as in `fingerprint_context`.

    Raises:
        BudgetExceeded: all that is over its budget, and by how much.
        ValueError: a layer that the context doesn't have, a limit that is no whole number of at least 0, or
            what `fingerprint_context` and `count_tokens` refuse.

    Example:
        >>> check_budget("## Facts\n- a\n", {"Facts": 400, "*": 4000})
    """
    counter = resolve_counter(counter)
    n_tokens = _count_parts(context, split, counter=counter)
    _check_limits(budget, n_tokens)
    over = [
        _describe_excess(key, n_tokens[key], limit=limit, counter=counter)
        for key, limit in budget.items()
        if n_tokens[key] > limit
    ]
    if over:
        raise BudgetExceeded("\n".join(over))


def _count_parts(context: object, split: Splitter | None, *, counter: TokenCounter) -> dict[str, int]:
    """Return the number of tokens of each layer's body, by key, and of the whole, by ``*``."""
    from pytest_ctxfp._split import split_context

    whole, layers = split_context(context, split)
    layers = list(layers)
    n_tokens = {layer.key: count_tokens(layer.body, counter) for layer in layers}
    if isinstance(context, (str, bytes, bytearray, memoryview)):
        n_tokens[_TOTAL] = count_tokens(whole, counter)
    else:
        texts = (text for layer in layers for text in (layer.header, layer.body))
        n_tokens[_TOTAL] = sum(count_tokens(text, counter) for text in texts)
    return n_tokens


def _check_limits(budget: Mapping[str, int], n_tokens: Mapping[str, int]) -> None:
    for key, limit in budget.items():
        if type(limit) is not int or limit < 0:
            message = f"the budget of {key!r} must be a whole number of at least 0, got {limit!r:.100}"
            raise ValueError(message)
        if key not in n_tokens:
            present = ", ".join(repr(name) for name in n_tokens if name != _TOTAL) or "none"
            message = (
                f"the context has no layer {key!r}, which has a budget; its layers: "
                f"{escape_line(present, limit=500)}"
            )
            raise ValueError(message)


def _describe_excess(key: str, n_tokens: int, *, limit: int, counter: TokenCounter) -> str:
    """Return ``layer 'Project Facts' has ~512 tokens, its budget is 400: cut ~112``."""
    subject = "the context" if key == _TOTAL else f"layer {escape_line(repr(key), limit=100)}"
    n_over = counter.show(n_tokens - limit)
    return f"{subject} has {counter.show(n_tokens)} tokens, its budget is {limit}: cut {n_over}"
