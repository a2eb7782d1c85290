"""Maximum matchings between spans and places: sweep, Hopcroft-Karp, and the ways to find candidates.

Source: J. Hopcroft, R. Karp, "An n^5/2 algorithm for maximum matchings in bipartite graphs" (1973); the
geometric form, which finds and removes candidates in a search tree instead of listing them, is that of
A. Efrat, A. Itai, M. Katz, "Geometry helps in bottleneck matching" (2001).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Take = Callable[[int], int]

NONE = -1


class Candidates(Protocol):
    """Who may be paired with whom."""

    def pool(self, rights: Iterable[int]) -> Take:
        """Return a function that takes a candidate of a left one out of these rights; NONE if there is none.

        Each right is handed out once.
        """


def sweep(lows: Sequence[int], highs: Sequence[int], places: Sequence[int]) -> list[int]:
    """Match spans to places in one dimension: each place goes to the open span that ends first.

    Returns:
        the partner of each span, an index into ``places``, or NONE. The matching is a maximum one.
    """
    partners = [NONE] * len(lows)
    waiting = sorted(range(len(lows)), key=lows.__getitem__, reverse=True)
    ready: list[tuple[int, int]] = []
    for right in sorted(range(len(places)), key=places.__getitem__):
        place = places[right]
        while waiting and lows[waiting[-1]] <= place:
            left = waiting.pop()
            heappush(ready, (highs[left], left))
        while ready and ready[0][0] < place:
            heappop(ready)
        if ready:
            partners[heappop(ready)[1]] = right
    return partners


def complete_matching(partners: list[int], n_rights: int, candidates: Candidates) -> None:
    """Turn a matching into a maximum one, in place.

    Args:
        partners: the right partner of each left one, or NONE.
        n_rights: how many rights there are.
        candidates: who may be paired with whom.
    """
    lefts = [NONE] * n_rights
    for left, right in enumerate(partners):
        if right != NONE:
            lefts[right] = left
    while layers := _find_layers(partners, lefts, candidates):
        _augment(partners, lefts, [candidates.pool(layer) for layer in layers])


def _find_layers(
    partners: Sequence[int], lefts: Sequence[int], candidates: Candidates
) -> list[list[int]] | None:
    """Return the rights by their distance from the free lefts, up to the first layer with a free right."""
    take = candidates.pool(range(len(lefts)))
    frontier = [left for left, right in enumerate(partners) if right == NONE]
    layers: list[list[int]] = []
    while frontier:
        layer = []
        for left in frontier:
            while (right := take(left)) != NONE:
                layer.append(right)
        layers.append(layer)
        frontier = [lefts[right] for right in layer]
        if NONE in frontier:
            return layers
    return None


def _augment(partners: list[int], lefts: list[int], takes: Sequence[Take]) -> None:
    """Flip as many disjoint shortest paths as there are, each from a free left to a free right."""
    for root in [left for left, right in enumerate(partners) if right == NONE]:
        path_lefts, path_rights = [root], list[int]()
        while path_lefts:
            depth = len(path_lefts) - 1
            right = takes[depth](path_lefts[-1]) if depth < len(takes) else NONE
            if right == NONE:
                path_lefts.pop()
                if path_rights:
                    path_rights.pop()
                continue
            path_rights.append(right)
            if lefts[right] == NONE:
                _flip(partners, lefts, zip(path_lefts, path_rights, strict=True))
                break
            path_lefts.append(lefts[right])


def _flip(partners: list[int], lefts: list[int], pairs: Iterable[tuple[int, int]]) -> None:
    for left, right in pairs:
        partners[left] = right
        lefts[right] = left


class ListedCandidates:
    """Candidates as a list for each left one."""

    def __init__(self, lists: Sequence[Sequence[int]]) -> None:
        self._lists = lists

    def pool(self, rights: Iterable[int]) -> Take:
        """Return a function that takes a listed candidate out of these rights."""
        left_over = set(rights)
        readers: dict[int, Iterator[int]] = {}

        def take(left: int) -> int:
            reader = readers.get(left)
            if reader is None:
                reader = readers[left] = iter(self._lists[left])
            for right in reader:
                if right in left_over:
                    left_over.discard(right)
                    return right
            return NONE

        return take

    def match_greedily(self) -> list[int]:
        """Return a matching that gives each left, those of few candidates first, its first free candidate."""
        partners = [NONE] * len(self._lists)
        taken: set[int] = set()
        for left in sorted(range(len(self._lists)), key=lambda left: len(self._lists[left])):
            for right in self._lists[left]:
                if right not in taken:
                    taken.add(right)
                    partners[left] = right
                    break
        return partners
