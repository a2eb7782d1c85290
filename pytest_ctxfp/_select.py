"""Which cases of a suite to run: by tag, then a spread-out or covering subset of those."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from pytest_ctxfp._layers import WHITE_SPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

_COUNT = re.compile("[0-9]+")
_PER_TAG = re.compile(rf"per-tag(?::[{WHITE_SPACE}]*\+?([0-9]+))?")
_SHARE = re.compile(r"\+?((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?(%?)")
_MAX_DIGITS = 18
"""Longer counts are beyond any suite; a limit also keeps Python from refusing to read them."""
_MAX_LENGTH = 400
_MAX_EXPONENT = 400
_SUBSETS = "write a count (20), a share (0.2 or 20%), per-tag or per-tag:K"


class Tagged(Protocol):
    """What selection looks at; a golden case is one."""

    @property
    def tags(self) -> Sequence[str]:
        """The case's tags."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The cases that were kept.

    Attributes:
        indices: positions in the list of cases, ascending.
        note: what was left out and why, for summary and reports; empty where nothing was asked for.
            Example: ``12 of 53 cases (tags orders,easy; subset per-tag:2)``.
    """

    indices: tuple[int, ...]
    note: str


def select_cases(cases: Sequence[Tagged], tags: str = "", sample: str | None = None) -> Selection:
    """Keep the cases with one of some tags, then a subset of those; the same ones on every run.

    Args:
        cases: all cases, in the order of their files.
        tags: comma-separated, each matched exactly; ``""`` keeps all cases.
        sample: ``N`` (cases spread evenly), a share ``0.2`` or ``20%`` (rounded up), ``per-tag:K`` (in
            order, a case that has a tag kept fewer than K times so far); None keeps all.

    Raises:
        ValueError: tags without a name, a subset of another form, or a selection that leaves no case.
    """
    kept = list(range(len(cases))) if tags == "" else _with_tags(cases, _read_tags(tags))
    if sample is not None:
        kept = _take_subset(cases, kept, sample)
    if tags == "" and sample is None:
        return Selection(tuple(kept), "")
    asked = "; ".join(
        [*([f"tags {tags}"] if tags else []), *([f"subset {sample}"] if sample is not None else [])]
    )
    if not kept:
        message = f"no case is left of {len(cases)} by {asked}: widen the selection"
        raise ValueError(message)
    return Selection(tuple(kept), f"{len(kept)} of {len(cases)} cases ({asked})")


def check_selection(tags: str, sample: str | None) -> None:
    """Refuse what no selection can be read from, before there are cases.

    Raises:
        ValueError: tags without a name, a subset of another form.
    """
    if tags != "":
        _read_tags(tags)
    if sample is not None:
        _take_subset([], [], sample)


def _read_tags(text: str) -> frozenset[str]:
    names = frozenset(name for piece in text.split(",") if (name := piece.strip(WHITE_SPACE)))
    if not names:
        message = f"tags {text!r} name no tag: write them separated by commas"
        raise ValueError(message)
    return names


def _with_tags(cases: Sequence[Tagged], wanted: frozenset[str]) -> list[int]:
    return [index for index, case in enumerate(cases) if not wanted.isdisjoint(case.tags)]


def _take_subset(cases: Sequence[Tagged], kept: list[int], sample: str) -> list[int]:
    text = sample.strip(WHITE_SPACE)
    match = _PER_TAG.fullmatch(text)
    if match:
        return _cover_tags(cases, kept, limit=_read_count(match[1] or "1", sample))
    n = _read_count(text, sample) if _COUNT.fullmatch(text) else _read_share(text, len(kept), sample)
    return kept if n >= len(kept) else [kept[j * len(kept) // n] for j in range(n)]


def _read_count(digits: str, sample: str) -> int:
    significant = digits.lstrip("0")
    if not significant:
        message = f"subset {sample!r} keeps no case: {_SUBSETS}"
        raise ValueError(message)
    return int(significant) if len(significant) <= _MAX_DIGITS else 10**_MAX_DIGITS


def _read_share(text: str, n_cases: int, sample: str) -> int:
    """Return how many of the cases a share is, rounded up, in exact arithmetic: 0.07 of 100 is 7."""
    share = _exact_share(text)
    if share is None:
        message = f"subset {_shorten(sample)} is none: {_SUBSETS}"
        raise ValueError(message)
    return -(-share.numerator * n_cases // share.denominator)


def _exact_share(text: str) -> Fraction | None:
    match = _SHARE.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    # A share as small as that is one case, however much smaller it is.
    exponent = max(int(match[2] or 0), -_MAX_EXPONENT)
    if exponent > _MAX_EXPONENT:
        return None
    value = Fraction(match[1] + "0" if match[1].endswith(".") else match[1]) * Fraction(10) ** exponent
    if match[3]:
        return value / 100 if 0 < value <= 100 else None
    return value if 0 < value < 1 else None


def _cover_tags(cases: Sequence[Tagged], kept: list[int], *, limit: int) -> list[int]:
    counts: Counter[str | None] = Counter()
    chosen = []
    for index in kept:
        # None stands for "untagged", which no tag can be taken for.
        groups: set[str | None] = set(cases[index].tags) or {None}
        if any(counts[group] < limit for group in groups):
            counts.update(groups)
            chosen.append(index)
    return chosen


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:79]}…")
