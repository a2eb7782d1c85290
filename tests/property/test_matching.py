"""Matchings of boxes and points are maximum ones, by whichever way they are found."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp import _boxes
from pytest_ctxfp._bipartite import NONE, ListedCandidates, complete_matching
from pytest_ctxfp._boxes import Boxes, BoxTree, match_boxes

N_PLACES = 6


@st.composite
def boxes_and_points(draw: st.DrawFn, max_size: int = 5) -> tuple[Boxes, int, int]:
    """Boxes and points in zero to three dimensions."""
    n_boxes, n_points = draw(st.integers(0, max_size)), draw(st.integers(0, max_size))
    n_dimensions = draw(st.integers(0, 3))
    place = st.integers(0, N_PLACES)
    lows = [draw(st.lists(place, min_size=n_boxes, max_size=n_boxes)) for _ in range(n_dimensions)]
    sizes = [draw(st.lists(place, min_size=n_boxes, max_size=n_boxes)) for _ in range(n_dimensions)]
    highs = [
        [low + size - 1 for low, size in zip(*pair, strict=True)] for pair in zip(lows, sizes, strict=True)
    ]
    places = [draw(st.lists(place, min_size=n_points, max_size=n_points)) for _ in range(n_dimensions)]
    return Boxes(lows, highs, places), n_boxes, n_points


def largest(boxes: Boxes, n_boxes: int, n_points: int) -> int:
    """The size of the largest matching, by trying them all."""
    slots = [*range(n_points), *[NONE] * n_boxes]
    return max(
        sum(point != NONE and boxes.holds(box, point) for box, point in enumerate(order))
        for order in set(permutations(slots, n_boxes))
    )


def check(partners: list[int], boxes: Boxes) -> int:
    """Assert that a matching is one, and return its size."""
    pairs = [(box, point) for box, point in enumerate(partners) if point != NONE]
    assert len({point for _, point in pairs}) == len(pairs)
    assert all(boxes.holds(box, point) for box, point in pairs)
    return len(pairs)


@given(case=boxes_and_points(max_size=4))
def test_matchings_are_as_large_as_any(case: tuple[Boxes, int, int]) -> None:
    """No matching is larger than the one returned."""
    assert check(match_boxes(*case), case[0]) == largest(*case)


@pytest.mark.parametrize("leaf_size", [2, 8])
@given(case=boxes_and_points(max_size=60))
def test_tree_and_lists_agree(leaf_size: int, case: tuple[Boxes, int, int]) -> None:
    """Searching a tree of points, listing pairs by halving and listing all pairs match equally many."""
    boxes, n_boxes, n_points = case
    every_pair = ListedCandidates(
        [[point for point in range(n_points) if boxes.holds(box, point)] for box in range(n_boxes)]
    )
    partners = every_pair.match_greedily()
    complete_matching(partners, n_points, every_pair)
    size = check(partners, boxes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_boxes, "_LEAF_SIZE", leaf_size)
        patch.setattr(_boxes, "_LISTED_SIZE", leaf_size)
        assert check(match_boxes(*case), boxes) == size
        patch.setattr(_boxes, "_WORK_PER_ROW", 0)
        assert check(match_boxes(*case), boxes) == size
        if n_points and boxes.places:
            found = [NONE] * n_boxes
            complete_matching(found, n_points, BoxTree(boxes, n_points))
            assert check(found, boxes) == size
