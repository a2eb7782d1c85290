"""Matching boxes to points: rows with several columns that each need their tolerance.

A box is a span in each dimension, a point a place in each. Where boxes hold few points, their pairs are
listed by halving the space; where they hold many, points are found and removed in a search tree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING

from pytest_ctxfp._bipartite import NONE, ListedCandidates, complete_matching, sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ctxfp._bipartite import Take

_LEAF_SIZE = 8
_LISTED_SIZE = 64  # so few points are looked through in order
_SAMPLE_SIZE = 16
_WORK_PER_ROW = 60  # beyond, listing costs more than the tree


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes and points, by dimension: ``lows[d][box]``, ``highs[d][box]``, ``places[d][point]``."""

    lows: Sequence[Sequence[int]]
    highs: Sequence[Sequence[int]]
    places: Sequence[Sequence[int]]

    def holds(self, box: int, point: int) -> bool:
        """Whether the point lies in the box."""
        return all(
            low[box] <= place[point] <= high[box]
            for low, high, place in zip(self.lows, self.highs, self.places, strict=True)
        )

    def without_idle(self) -> Boxes:
        """Return them without the dimensions in which every box holds every point."""
        needed = [
            dimension
            for dimension in zip(self.lows, self.highs, self.places, strict=True)
            if max(dimension[0]) > min(dimension[2]) or max(dimension[2]) > min(dimension[1])
        ]
        return Boxes([d[0] for d in needed], [d[1] for d in needed], [d[2] for d in needed])


def match_boxes(boxes: Boxes, n_boxes: int, n_points: int) -> list[int]:
    """Return the point of each box in a maximum matching, NONE where it has none.

    Args:
        boxes: with any number of dimensions.
        n_boxes: how many boxes there are.
        n_points: how many points there are.
    """
    if not n_boxes or not n_points:
        return [NONE] * n_boxes
    needed = boxes.without_idle()
    if not needed.lows:
        return [box if box < n_points else NONE for box in range(n_boxes)]
    if len(needed.lows) == 1:
        return sweep(needed.lows[0], needed.highs[0], needed.places[0])
    lists = _list_candidates(needed, n_boxes, n_points)
    if lists is not None:
        candidates = ListedCandidates(lists)
        partners = candidates.match_greedily()
        complete_matching(partners, n_points, candidates)
        return partners
    partners = _match_close(needed, n_boxes, n_points)
    complete_matching(partners, n_points, BoxTree(needed, n_points))
    return partners


def _list_candidates(boxes: Boxes, n_boxes: int, n_points: int) -> list[Sequence[int]] | None:
    """Return the points in each box, or None where there are too many to list."""
    lists: list[Sequence[int]] = [()] * n_boxes
    work_left = _WORK_PER_ROW * (n_boxes + n_points)
    pending = [(list(range(n_boxes)), list(range(n_points)))]
    while pending and work_left >= 0:
        inside, points = pending.pop()
        work_left -= len(inside) + len(points)
        halves = _halve(boxes, inside, points) if len(points) > _LISTED_SIZE else []
        pending += [(some, others) for some, others in halves if some]
        if not halves:
            work_left -= _list_few(boxes, inside, points, lists)
    return lists if work_left >= 0 else None


def _list_few(boxes: Boxes, inside: Sequence[int], points: Sequence[int], lists: list[Sequence[int]]) -> int:
    """Add the points in each box to its list; return how many points were looked at."""
    place = boxes.places[0]
    order = sorted(points, key=place.__getitem__)
    heights = [place[point] for point in order]
    rest = list(zip(boxes.lows, boxes.highs, boxes.places, strict=True))[1:]
    n_seen = 0
    for box in inside:
        start = bisect_left(heights, boxes.lows[0][box])
        found = order[start : bisect_right(heights, boxes.highs[0][box], lo=start)]
        n_seen += len(found)
        for lows, highs, place in rest:
            low, high = lows[box], highs[box]
            found = [point for point in found if low <= place[point] <= high]
        if found:
            lists[box] = [*lists[box], *found] if lists[box] else found
    return n_seen


def _halve(boxes: Boxes, inside: Sequence[int], points: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Split points near a median, and boxes by what they reach; nothing where all points are the same.

    The cut is made across the dimension where the fewest boxes of a sample lie on both sides.
    """
    cuts = []
    for dimension, place in enumerate(boxes.places):
        pivot = _find_pivot(place, points)
        if pivot is not None:
            low, high = boxes.lows[dimension], boxes.highs[dimension]
            n_torn = sum(low[box] < pivot <= high[box] for box in _sample(inside))
            cuts.append((n_torn, dimension, pivot))
    if not cuts:
        return []
    _, dimension, pivot = min(cuts)
    low, high, place = boxes.lows[dimension], boxes.highs[dimension], boxes.places[dimension]
    return [
        ([box for box in inside if low[box] < pivot], [point for point in points if place[point] < pivot]),
        ([box for box in inside if high[box] >= pivot], [point for point in points if place[point] >= pivot]),
    ]


def _find_pivot(place: Sequence[int], points: Sequence[int]) -> int | None:
    """Return a place that has points below it and at it or above, near the median; None if there is none."""
    values = sorted({place[point] for point in _sample(points)})
    if len(values) == 1:
        values = sorted({place[point] for point in points})
    return values[len(values) // 2] if len(values) > 1 else None


def _sample(items: Sequence[int]) -> Sequence[int]:
    return items[:: max(1, len(items) // _SAMPLE_SIZE)]


def _match_close(boxes: Boxes, n_boxes: int, n_points: int) -> list[int]:
    """Return a matching, not a maximum one, of boxes and points that stand at the same height in order."""
    partners = [NONE] * n_boxes
    centers = [list(map(add, low, high)) for low, high in zip(boxes.lows, boxes.highs, strict=True)]
    pending = [(list(range(n_boxes)), list(range(n_points)), 0)]
    while pending:
        some, points, dimension = pending.pop()
        if min(len(some), len(points)) <= _LEAF_SIZE:
            _match_leaf(boxes, some, points[: 4 * _LEAF_SIZE], partners)
            continue
        some.sort(key=centers[dimension].__getitem__)
        points.sort(key=boxes.places[dimension].__getitem__)
        middle, center = len(some) // 2, len(points) // 2
        following = (dimension + 1) % len(boxes.lows)
        pending.append((some[:middle], points[:center], following))
        pending.append((some[middle:], points[center:], following))
    return partners


def _match_leaf(boxes: Boxes, some: Iterable[int], points: Iterable[int], partners: list[int]) -> None:
    free = list(points)
    for box in some:
        found = next((point for point in free if boxes.holds(box, point)), NONE)
        if found != NONE:
            partners[box] = found
            free.remove(found)


class BoxTree:
    """Points in a balanced tree of bounding boxes, to find one in a box and take it out.

    Nodes are numbered as in a heap: 1 is the root, the children of n are 2n and 2n+1.
    """

    def __init__(self, boxes: Boxes, n_points: int) -> None:
        self._boxes = boxes
        self._first_leaf = 1
        while self._first_leaf * _LEAF_SIZE < n_points:
            self._first_leaf *= 2
        self._leaves = self._build_leaves(list(range(n_points)))
        self._leaf_of = [0] * n_points
        for leaf, points in enumerate(self._leaves, start=self._first_leaf):
            for point in points:
                self._leaf_of[point] = leaf
        self._bounds = [self._bound_nodes(place) for place in boxes.places]

    def _build_leaves(self, points: list[int]) -> list[list[int]]:
        level = [points]
        depth = 0
        while len(level) < self._first_leaf:
            place = self._boxes.places[depth % len(self._boxes.places)]
            for part in level:
                part.sort(key=place.__getitem__)
            level = [half for part in level for half in (part[: len(part) // 2], part[len(part) // 2 :])]
            depth += 1
        return level

    def _bound_nodes(self, place: Sequence[int]) -> list[tuple[int, int]]:
        """Return the least and greatest place below each node."""
        bounds = [(1, 0)] * self._first_leaf
        bounds += [
            (min(map(place.__getitem__, points)), max(map(place.__getitem__, points)))
            for points in self._leaves
        ]
        for node in range(self._first_leaf - 1, 0, -1):
            (low, high), (other_low, other_high) = bounds[2 * node], bounds[2 * node + 1]
            bounds[node] = (min(low, other_low), max(high, other_high))
        return bounds

    def pool(self, rights: Iterable[int]) -> Take:
        """Return a function that takes a point in a box out of these points."""
        counts = [0] * (2 * self._first_leaf)
        members: dict[int, list[int]] = {}
        for point in rights:
            leaf = self._leaf_of[point]
            members.setdefault(leaf, []).append(point)
            _add_upwards(counts, leaf, 1)

        def take(box: int) -> int:
            for leaf in self._leaves_touching(box, counts):
                for point in members[leaf]:
                    if self._boxes.holds(box, point):
                        members[leaf].remove(point)
                        _add_upwards(counts, leaf, -1)
                        return point
            return NONE

        return take

    def _leaves_touching(self, box: int, counts: Sequence[int]) -> Iterator[int]:
        spans = [
            (low[box], high[box], bounds)
            for low, high, bounds in zip(self._boxes.lows, self._boxes.highs, self._bounds, strict=True)
        ]
        pending = [1]
        while pending:
            node = pending.pop()
            if not counts[node] or any(
                bounds[node][1] < low or high < bounds[node][0] for low, high, bounds in spans
            ):
                continue
            if node >= self._first_leaf:
                yield node
            else:
                pending += (2 * node, 2 * node + 1)


def _add_upwards(counts: list[int], node: int, change: int) -> None:
    while node:
        counts[node] += change
        node >>= 1
