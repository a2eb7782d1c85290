"""The numbers of an answer's column in order, and which of them each expected number accepts.

An expected number is the span of ranks that it accepts, found once with exact decimals; all later work is
done on small integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from operator import le, lt
from typing import TYPE_CHECKING, cast

from pytest_ctxfp._cells import decimal_of_key, is_key_in_reach, is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pytest_ctxfp._cells import Key, NumberKey
    from pytest_ctxfp._tolerance import Tolerance


@dataclass(frozen=True, slots=True)
class Spans:
    """First and last rank that each of some expected cells accepts; the last is below the first for none."""

    lows: list[int]
    highs: list[int]

    def covered(self, n_ranks: int) -> list[bool]:
        """Return which ranks some cell accepts."""
        depth, changes = 0, [0] * (n_ranks + 1)
        for low, high in zip(self.lows, self.highs, strict=True):
            if low <= high:
                changes[low] += 1
                changes[high + 1] -= 1
        covered = []
        for change in changes[:n_ranks]:
            depth += change
            covered.append(depth > 0)
        return covered


class Ladder:
    """The distinct keys of the answer's column: its numbers by rank, then all others.

    Numbers out of reach stand above all others. A label such as ``007`` has a place of its own, and its
    number is on the ladder too.

    Args:
        keys: the distinct keys of the column.
        odd_values: the numbers behind labels such as ``007``.
    """

    def __init__(self, keys: AbstractSet[Key], odd_values: Mapping[str, NumberKey]) -> None:
        self._odd_values = odd_values
        near, far = split_by_reach(_find_numbers(keys, odd_values))
        self._near = _decimals(near)
        self.n_ranks = len(near) + len(far)
        self.index: dict[Key, int] = {value: rank for rank, value in enumerate(near + far)}
        for key in keys:
            if key is None or isinstance(key, str):
                self.index[key] = len(self.index)

    def rank_of(self, key: Key) -> int | None:
        """Return the rank of a number, or of the number behind an odd label; None for anything else."""
        value = self._odd_values.get(key) if isinstance(key, str) else key
        return None if value is None else self.index.get(value)

    def find_spans(self, near: Sequence[NumberKey], far: Sequence[NumberKey], tolerance: Tolerance) -> Spans:
        """Return the ranks that expected numbers accept: those in reach within the tolerance."""
        if tolerance.is_exact:
            near, far = [], [*near, *far]
        lows, highs = tolerance.bounds(_decimals(near))
        ranks = [self.index.get(number) for number in far]
        return Spans(
            _count_below(self._near, lows, lt) + [1 if rank is None else rank for rank in ranks],
            [n - 1 for n in _count_below(self._near, highs, le)]
            + [0 if rank is None else rank for rank in ranks],
        )


def _find_numbers(keys: AbstractSet[Key], odd_values: Mapping[str, NumberKey]) -> AbstractSet[NumberKey]:
    if are_short(keys):
        return cast("AbstractSet[NumberKey]", keys)
    values = {odd_values.get(key) if isinstance(key, str) else key for key in keys}
    return set(filter(is_number, values))


def split_by_reach(numbers: Iterable[NumberKey]) -> tuple[list[NumberKey], list[NumberKey]]:
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
    n, n_values = 0, len(values)
    for number in sorted(range(len(bounds)), key=bounds.__getitem__):
        bound = bounds[number]
        while n < n_values and is_below(values[n], bound):
            n += 1
        counts[number] = n
    return counts
