"""Free text against what is expected of it: the match modes of text answers."""

from __future__ import annotations

import re
import unicodedata
import warnings
from typing import TYPE_CHECKING

from pytest_ctxfp._cells import key_of_decimal, parse_finite, trim
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._mismatch import describe_numbers
from pytest_ctxfp._model import Comparison
from pytest_ctxfp._numbers import find_numbers
from pytest_ctxfp._tolerance import is_within, read_tolerance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal

    from pytest_ctxfp._model import GoldenCase
    from pytest_ctxfp._numbers import FoundNumber
    from pytest_ctxfp._tolerance import Tolerance

_MAX_WHOLE = 160
_MAX_END = 70
_MAX_PATTERN = 50_000
_MAX_SOUGHT = 80


def match_text(case: GoldenCase, answer: str) -> Comparison:
    """Score a text by its case's match mode; one of the modes, no scorer.

    The answer and what is sought in it are looked at without White_Space at their ends and in NFC.

    Raises:
        CtxfpError: what the case expects doesn't fit its mode: golden files are checked when they are read,
            cases made in Python only now.
    """
    return _MODES[case.match](case, normalise(answer))


def normalise(text: str) -> str:
    """Return a text as it is compared: stripped of White_Space, NFC."""
    trimmed = trim(text)
    return trimmed if trimmed.isascii() else unicodedata.normalize("NFC", trimmed)


def compile_pattern(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    """Compile what ``match: regex`` looks for.

    Raises:
        ValueError: no regular expression of Python's `re`, or one so long that compiling it takes seconds.
    """
    if len(pattern) > _MAX_PATTERN:
        message = (
            f"the regular expression has {len(pattern):,} characters: write one of at most {_MAX_PATTERN:,}"
        )
        raise ValueError(message)
    text = pattern if pattern.isascii() else unicodedata.normalize("NFC", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set": what it means today is what is sought
            return re.compile(text, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        message = f"the regular expression {escape_line(repr(pattern), limit=_MAX_SOUGHT)} is none: {error}"
        raise ValueError(message) from None


def show_answer(text: str) -> str:
    """Return an answer as a reason shows it: on one line, of a long one head and tail.

    Example::

        'Our return window is 30 d' ... 'see you soon.' (2,344 characters)
    """
    if len(text) <= _MAX_WHOLE:
        return escape_line(repr(text))
    head, tail = escape_line(repr(text[:_MAX_END])), escape_line(repr(text[-_MAX_END:]))
    return f"{head} ... {tail} ({len(text):,} characters)"


def _match_exact(case: GoldenCase, answer: str) -> Comparison:
    def is_equal(sought: str) -> bool:
        return _fold(sought, case) == _fold(answer, case)

    def explain(sought: str) -> str:
        difference = _first_difference(sought, answer)
        return f"expected {_show_sought(sought)}, actual {show_answer(answer)}{difference}"

    return _judge(case, is_equal, passed="the answer is the expected text", explain=explain)


def _match_contains(case: GoldenCase, answer: str) -> Comparison:
    folded = _fold(answer, case)

    def explain(sought: str) -> str:
        text = f"{_show_sought(sought)} is not in the answer {show_answer(answer)}"
        is_other_case = not case.ignore_case and normalise(sought).casefold() in answer.casefold()
        return text + ("; it is there in other letters: set ignore_case: true" if is_other_case else "")

    return _judge(
        case, lambda sought: _fold(sought, case) in folded, passed="all is in the answer", explain=explain
    )


def _match_not_contains(case: GoldenCase, answer: str) -> Comparison:
    folded = _fold(answer, case)
    _, texts = _read_sought(case)
    for sought in texts:
        place = folded.find(_fold(sought, case))
        if place >= 0:
            around = answer[max(0, place - _MAX_END) : place + len(sought) + _MAX_END]
            reason = f"{_show_sought(sought)} is in the answer: {escape_line(repr(around))}"
            return Comparison(passed=False, reason=reason)
    return Comparison(passed=True, reason="nothing of it is in the answer")


def _match_regex(case: GoldenCase, answer: str) -> Comparison:
    def is_found(sought: str) -> bool:
        try:
            return compile_pattern(sought, ignore_case=case.ignore_case).search(answer) is not None
        except ValueError as error:
            message = f"case {case.id!r}: {error}"
            raise CtxfpError(message) from None

    def explain(sought: str) -> str:
        return f"nothing in the answer matches {_show_sought(sought)}: {show_answer(answer)}"

    return _judge(case, is_found, passed="the answer matches", explain=explain)


def _match_number(case: GoldenCase, answer: str) -> Comparison:
    try:
        tolerance = read_tolerance(case.tolerance or None, ()).general
    except ValueError as error:
        message = f"case {case.id!r}: {error}"
        raise CtxfpError(message) from error
    sought = [_as_number(case, text) for text in _read_sought(case)[1]]
    numbers = list(find_numbers(answer))
    if not numbers:
        return Comparison(
            False, f"expected {_show_numbers(sought)}, no number in the answer {show_answer(answer)}"
        )
    return _compare_number(sought, numbers[-1], n_numbers=len(numbers), tolerance=tolerance)


def _compare_number(
    sought: Sequence[str], actual: FoundNumber, *, n_numbers: int, tolerance: Tolerance
) -> Comparison:
    given = key_of_decimal(actual.value)
    keys = [key_of_decimal(_read_number(text)) for text in sought]
    passed = any(is_within(key, given, tolerance) for key in keys)
    written = _show_sought(actual.written)
    last = f"; the last of {n_numbers} numbers in the answer" if n_numbers > 1 else ""
    hint = (
        "" if passed or len(keys) > 1 else f" ({describe_numbers(keys[0], given, tolerance, is_label=False)})"
    )
    return Comparison(passed, f"expected {_show_numbers(sought)}, actual {written}{hint}{last}")


def _show_numbers(texts: Sequence[str]) -> str:
    return escape_line(" or ".join(texts), limit=_MAX_SOUGHT)


def _read_number(text: str) -> Decimal:
    value = parse_finite(text)
    assert value is not None, "checked by _as_number"
    return value


def _as_number(case: GoldenCase, text: str) -> str:
    if parse_finite(text) is None:
        message = f"case {case.id!r}: match number expects a number, not {_show_sought(text)}"
        raise CtxfpError(message)
    return trim(text)


_MODES: dict[str, Callable[[GoldenCase, str], Comparison]] = {
    "exact": _match_exact,
    "contains": _match_contains,
    "not_contains": _match_not_contains,
    "regex": _match_regex,
    "number": _match_number,
}
TEXT_MODES = tuple(_MODES)


def _judge(
    case: GoldenCase, fits: Callable[[str], bool], *, passed: str, explain: Callable[[str], str]
) -> Comparison:
    """Return the verdict on a text, a list of which all, or ``{any: [...]}`` of which one must fit."""
    is_any, texts = _read_sought(case)
    missing = [sought for sought in texts if not fits(sought)]
    if not missing or (is_any and len(missing) < len(texts)):
        return Comparison(passed=True, reason=passed)
    reason = explain(missing[0])
    if is_any and len(texts) > 1:
        reason = f"none of {len(texts)} fits; {reason}"
    return Comparison(passed=False, reason=reason)


def _read_sought(case: GoldenCase) -> tuple[bool, list[str]]:
    """Return whether one of the texts is enough, and the texts."""
    expected = case.expected
    is_any = isinstance(expected, dict)
    values = expected.get("any") if isinstance(expected, dict) else expected
    texts = [_as_text(value) for value in (values if isinstance(values, (list, tuple)) else [values])]
    if not texts or None in texts:
        message = (
            f"case {case.id!r}: match {case.match} expects a text, a list of texts or {{any: [...]}}, not"
            f" {escape_line(repr(expected), limit=_MAX_SOUGHT)}"
        )
        raise CtxfpError(message)
    return is_any, [text for text in texts if text is not None]


def _as_text(value: object) -> str | None:
    """Return a text, or a number as one writes it; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value)


def _fold(text: str, case: GoldenCase) -> str:
    return normalise(normalise(text).casefold()) if case.ignore_case else normalise(text)


def _show_sought(text: str) -> str:
    return escape_line(repr(text), limit=_MAX_SOUGHT)


def _first_difference(sought: str, answer: str) -> str:
    """Say where two texts begin to differ, for those too long to see it."""
    sought = normalise(sought)
    if len(sought) <= _MAX_SOUGHT and len(answer) <= _MAX_WHOLE:
        return ""
    pairs = zip(sought, answer, strict=False)
    same = next((i for i, (one, two) in enumerate(pairs) if one != two), min(len(sought), len(answer)))
    there = escape_line(repr(answer[same : same + _MAX_END]))
    return f"; they differ from character {same + 1:,} on: {there}"
