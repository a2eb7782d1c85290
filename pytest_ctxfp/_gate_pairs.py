"""Which case of one report is which of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pytest_ctxfp._report import CaseReport

Pair = tuple["CaseReport | None", "CaseReport | None"]


def pair_cases(baseline: tuple[CaseReport, ...], current: tuple[CaseReport, ...]) -> list[Pair]:
    """Pair each case with itself: the current ones in their order, then those that only the baseline has.

    A case is first sought under its own file, model, variant and test. One that is left over is paired with
    the only other one left over that has the same id and variant under another model label, or in another
    file: a relabelled model or a renamed file makes nothing new. Nor does a further test of the same case.
    """
    partners: dict[int, CaseReport] = {}
    rest_before, rest_after = list(baseline), list(current)
    for identity, is_strict in _IDENTITIES:
        rest_before, rest_after = _pair_by(
            identity, rest_before, rest_after, partners, must_be_only=is_strict
        )
    pairs: list[Pair] = [(partners.get(id(case)), case) for case in current]
    return [*pairs, *((case, None) for case in rest_before)]


_IDENTITIES: tuple[tuple[Callable[[CaseReport], Hashable], bool], ...] = (
    (lambda case: (case.file, case.id, case.model, case.variant, case.test), False),
    (lambda case: (case.file, case.id, case.model, case.variant), False),
    (lambda case: (case.file, case.id, case.variant), True),
    (lambda case: (case.id, case.model, case.variant), True),
    (lambda case: (case.id, case.variant), True),
)


def _pair_by(
    identity: Callable[[CaseReport], Hashable],
    before: list[CaseReport],
    after: list[CaseReport],
    partners: dict[int, CaseReport],
    *,
    must_be_only: bool,
) -> tuple[list[CaseReport], list[CaseReport]]:
    theirs, ours = _group(identity, before), _group(identity, after)
    paired: set[int] = set()
    for key in theirs.keys() & ours.keys():
        if must_be_only and (len(theirs[key]) > 1 or len(ours[key]) > 1):
            continue
        for number, new in enumerate(ours[key]):
            old = theirs[key][min(number, len(theirs[key]) - 1)]
            partners[id(new)] = old
            paired |= {id(old), id(new)}
    return [case for case in before if id(case) not in paired], [
        case for case in after if id(case) not in paired
    ]


def _group(
    identity: Callable[[CaseReport], Hashable], cases: list[CaseReport]
) -> dict[Hashable, list[CaseReport]]:
    groups: dict[Hashable, list[CaseReport]] = {}
    for case in cases:
        groups.setdefault(identity(case), []).append(case)
    return groups
