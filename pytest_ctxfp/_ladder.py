"""The numbers of an answer's column in order, and which of them each expected number accepts.

An expected number is the span of ranks that it accepts, found once with exact decimals; all later work is
done on small integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from operator import le, lt
from typing import TYPE_CHECKING, Union

from pytest_ctxfp._cells import decimal_of_key, is_key_in_reach, is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pytest_ctxfp._cells import Key, NumberKey
    from pytest_ctxfp._tolerance import Tolerance

# An expected cell: the key of a number, or a label's key in a tuple of its own.
Token = Union["Key", "tuple[Key]"]


@dataclass(frozen=True, slots=True)
class Spans:
    """First and last rank of what each expected cell accepts; cells that accept nothing are left out."""

    lows: dict[Token, int]
    highs: dict[Token, int]

    def add(self, token: Token, low: int, high: int) -> None:
        """Add a span, which must not be empty."""
        self.lows[token] = low
        self.highs[token] = high


class Ladder:
    """The distinct numbers of the answer's column by rank; those out of reach stand above all others.

    Args:
        keys: the distinct keys of the column.
        odd_values: the numbers behind labels such as ``007``.
    """

    def __init__(self, keys: Iterable[Key], odd_values: Mapping[str, NumberKey]) -> None:
        self.odd_values = odd_values
        values = {odd_values.get(key, key) if isinstance(key, str) else key for key in keys}
        near, far = _split_by_reach(filter(is_number, values))
        self._near = _decimals(near)
        self._ranks: dict[Key, int] = {value: rank for rank, value in enumerate(near + far)}

    def __len__(self) -> int:
        return len(self._ranks)

    def rank_of(self, key: Key) -> int | None:
        """Return the rank of a number, or of the number behind an odd label; None for anything else."""
        return self._ranks.get(self.odd_values.get(key, key) if isinstance(key, str) else key)

    def find_places(self, keys: AbstractSet[Key], is_covered: Sequence[bool]) -> dict[Key, int]:
        """Return the ranks of those keys of the answer that some expected number accepts."""
        places = {key: rank for key, rank in self._ranks.items() if is_covered[rank] and key in keys}
        for label in self.odd_values.keys() & keys:
            rank = self.rank_of(label)
            if rank is not None and is_covered[rank]:
                places[label] = rank
        return places

    def find_spans(self, numbers: Iterable[NumberKey], tolerance: Tolerance) -> Spans:
        """Return the ranks that each expected number accepts."""
        near, far = _split_by_reach(numbers)
        if tolerance.is_exact:
            near, far = [], near + far
        lows, highs = tolerance.bounds(_decimals(near))
        n_below = _count_below(self._near, lows, lt)
        n_reached = _count_below(self._near, highs, le)
        spans = Spans(
            {number: low for number, low, end in zip(near, n_below, n_reached, strict=True) if low < end},
            {number: end - 1 for number, low, end in zip(near, n_below, n_reached, strict=True) if low < end},
        )
        for number in far:
            rank = self._ranks.get(number)
            if rank is not None:
                spans.add(number, rank, rank)
        return spans


def _split_by_reach(numbers: Iterable[NumberKey]) -> tuple[list[NumberKey], list[NumberKey]]:
    """Return the numbers that tolerances apply to, in order, and the others."""
    near = list(numbers)
    if are_short(near):
        return sorted(near), []
    far = [number for number in near if not is_key_in_reach(number)]
    return sorted(filter(is_key_in_reach, near), key=decimal_of_key), far


def are_short(keys: Iterable[object]) -> bool:
    """Whether all are ints and floats; as keys they have the order of their shortest decimals."""
    return {int, float}.issuperset(map(type, keys))


def _decimals(keys: Sequence[NumberKey]) -> list[Decimal]:
    return list(map(Decimal, map(repr, keys))) if are_short(keys) else list(map(decimal_of_key, keys))


def _count_below(
    values: Sequence[Decimal], bounds: Sequence[Decimal], is_below: Callable[[Decimal, Decimal], bool]
) -> list[int]:
    """Return how many of these sorted values are below each bound; bounds almost in order cost least."""
    counts = [0] * len(bounds)
    n = 0
    for number in sorted(range(len(bounds)), key=bounds.__getitem__):
        bound = bounds[number]
        while n < len(values) and is_below(values[n], bound):
            n += 1
        counts[number] = n
    return counts
