"""Which layer of one context is which of another: pairs of equal names, and what moved."""

from __future__ import annotations

from bisect import bisect_left
from math import isqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MATCHES_PER_ITEM = 16
"""Up to here listing the matches is cheaper than the bit rows, whose cost is quadratic / word size."""


def pair_contents(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the items of two sequences: equal contents first, leftovers in order within each gap.

    Equal contents are paired along the common prefix, the common suffix and, between them, the longest
    common subsequence; where there are several of that length, the one whose pairs are the earliest of
    ``before``, and for these the earliest of ``after``.

    Args:
        before: contents (hashes of them) of the layers of one name.
        after: the same of the other context.

    Returns:
        Pairs of indices, ascending in both; what is in no pair was removed or added.

    Example:
        >>> pair_contents(["a", "b", "c"], ["b", "X"])
        [(1, 0), (2, 1)]
    """
    pairs: list[tuple[int, int]] = []
    start = (0, 0)
    for anchor in [*_equal_pairs(before, after), (len(before), len(after))]:
        pairs.extend(zip(range(start[0], anchor[0]), range(start[1], anchor[1]), strict=False))
        pairs.append(anchor)
        start = (anchor[0] + 1, anchor[1] + 1)
    return pairs[:-1]


def _equal_pairs(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    shorter = min(len(before), len(after))
    prefix = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    rest = shorter - prefix
    suffix = next((i for i in range(rest) if before[-1 - i] != after[-1 - i]), rest)
    yield from ((i, i) for i in range(prefix))
    middle = longest_common_subsequence(
        before[prefix : len(before) - suffix], after[prefix : len(after) - suffix]
    )
    yield from ((i + prefix, j + prefix) for i, j in middle)
    yield from zip(
        range(len(before) - suffix, len(before)), range(len(after) - suffix, len(after)), strict=True
    )


def longest_common_subsequence(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the longest common subsequence as pairs of indices; of several, the earliest of ``before``.

    A match (i, j) has a rank: the length of the longest common subsequence that begins with it. Item i
    is in the earliest one if its first match still open has the rank that is wanted next.
    """
    if not before or not after:
        return
    positions: dict[str, list[int]] = {}
    for j, content in enumerate(after):
        positions.setdefault(content, []).append(j)
    places = [positions.get(content, []) for content in before]
    is_sparse = sum(map(len, places)) <= _MATCHES_PER_ITEM * (len(before) + len(after))
    ranks = _MatchRanks(places) if is_sparse else _BitRanks(places, len(after))
    wanted, column = ranks.longest, 0
    for i, row in enumerate(places):
        k = bisect_left(row, column)
        if k < len(row) and ranks.rank(i, k) == wanted:
            yield i, row[k]
            wanted, column = wanted - 1, row[k] + 1


class _MatchRanks:
    """Ranks match by match: O(matches * log n) (Hunt and Szymanski 1977, from the end).

    Args:
        places: for each item of before, the ascending indices of its equals in after.
    """

    def __init__(self, places: Sequence[list[int]]) -> None:
        # heads[r]: the greatest j that begins a common subsequence of length r + 1; negated to ascend.
        heads: list[int] = []
        self._ranks: list[list[int]] = []
        for row in reversed(places):
            self._ranks.append([_lower_head(heads, -j) for j in row])
        self._ranks.reverse()
        self.longest = len(heads)

    def rank(self, i: int, k: int) -> int:
        """Return the rank of the k-th match of item i."""
        return self._ranks[i][k]


def _lower_head(heads: list[int], head: int) -> int:
    index = bisect_left(heads, head)
    heads[index : index + 1] = [head]
    return index + 1


class _BitRanks:
    """Ranks from bit rows: O(n * m / word size) time, whatever matches (Hyyro 2004), and little memory.

    Row i has a bit for each item of after, the last one lowest; the zeros among its q lowest bits
    count the longest common subsequence of ``before[i:]`` and the last q items of after.

    Args:
        places: for each item of before, the ascending indices of its equals in after.
        width: number of items in after.
    """

    def __init__(self, places: Sequence[list[int]], width: int) -> None:
        self._places = places
        self._width = width
        self._masks: dict[int, int] = {}
        self._block = isqrt(len(places)) + 1
        # All rows at once would be gigabytes for 100,000 items: keep some, and one block between two.
        n = len(places)
        rows = self._rows((1 << width) - 1, n, 0)
        self._kept = {i: row for i, row in rows if i % self._block == 0 or i == n}
        self._near: dict[int, int] = {}
        self.longest = width - self._kept[0].bit_count()

    def rank(self, i: int, k: int) -> int:
        """Return the rank of the k-th match of item i; quick where i ascends from call to call."""
        if i + 1 not in self._near:
            upper = min(-(-(i + 1) // self._block) * self._block, len(self._places))
            self._near = dict(self._rows(self._kept[upper], upper, i + 1))
        n_lowest = self._width - 1 - self._places[i][k]
        ones = self._near[i + 1] & ((1 << n_lowest) - 1)
        return 1 + n_lowest - ones.bit_count()

    def _rows(self, row: int, upper: int, lower: int) -> Iterator[tuple[int, int]]:
        yield upper, row
        all_ones = (1 << self._width) - 1
        for i in range(upper - 1, lower - 1, -1):
            matches = row & self._mask(self._places[i])
            row = ((row + matches) | (row - matches)) & all_ones
            yield i, row

    def _mask(self, places: list[int]) -> int:
        # Masks of rare contents are quickly made again, and too many to keep.
        if len(places) <= _MATCHES_PER_ITEM:
            return self._make_mask(places)
        if places[0] not in self._masks:
            self._masks[places[0]] = self._make_mask(places)
        return self._masks[places[0]]

    def _make_mask(self, places: list[int]) -> int:
        bits = bytearray(self._width // 8 + 1)
        for j in places:
            bit = self._width - 1 - j
            bits[bit >> 3] |= 1 << (bit & 7)
        return int.from_bytes(bits, "little")


def moved_items(positions: Sequence[int]) -> list[int]:
    """Return the fewest items whose removal leaves the rest in ascending order (patience sorting).

    Args:
        positions: distinct numbers, the places of the items in the other sequence.

    Returns:
        Indices into ``positions``, ascending.

    Example:
        >>> moved_items([5, 0, 1, 2])
        [0]
    """
    tails: list[int] = []
    tail_items: list[int] = []
    previous: list[int] = []
    for item, position in enumerate(positions):
        length = bisect_left(tails, position)
        tails[length : length + 1] = [position]
        tail_items[length : length + 1] = [item]
        previous.append(tail_items[length - 1] if length else -1)
    kept = set()
    item = tail_items[-1] if tail_items else -1
    while item >= 0:
        kept.add(item)
        item = previous[item]
    return [item for item in range(len(positions)) if item not in kept]
