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
    _pair_by(_test_of, list(baseline), list(current), partners)
    rest = [case for case in current if id(case) not in partners]
    _pair_by(_case_of, list(baseline), rest, partners)
    for identity in _OTHER_NAMES:
        taken = {id(case) for case in partners.values()}
        before = [case for case in baseline if id(case) not in taken]
        rest = [case for case in current if id(case) not in partners]
        _pair_by(identity, before, rest, partners, must_be_only=True)
    taken = {id(case) for case in partners.values()}
    pairs: list[Pair] = [(partners.get(id(case)), case) for case in current]
    return [*pairs, *((case, None) for case in baseline if id(case) not in taken)]


def _test_of(case: CaseReport) -> Hashable:
    return (case.file, case.id, case.model, case.variant, case.test)


def _case_of(case: CaseReport) -> Hashable:
    return (case.file, case.id, case.model, case.variant)


_OTHER_NAMES: tuple[Callable[[CaseReport], Hashable], ...] = (
    lambda case: (case.file, case.id, case.variant),
    lambda case: (case.id, case.model, case.variant),
    lambda case: (case.id, case.variant),
)


def _pair_by(
    identity: Callable[[CaseReport], Hashable],
    before: list[CaseReport],
    after: list[CaseReport],
    partners: dict[int, CaseReport],
    *,
    must_be_only: bool = False,
) -> None:
    """Pair the n-th case of a name with the n-th of ``before``, and what is beyond with the last."""
    theirs, ours = _group(identity, before), _group(identity, after)
    for key in theirs.keys() & ours.keys():
        if must_be_only and (len(theirs[key]) > 1 or len(ours[key]) > 1):
            continue
        for number, new in enumerate(ours[key]):
            partners[id(new)] = theirs[key][min(number, len(theirs[key]) - 1)]


def _group(
    identity: Callable[[CaseReport], Hashable], cases: list[CaseReport]
) -> dict[Hashable, list[CaseReport]]:
    groups: dict[Hashable, list[CaseReport]] = {}
    for case in cases:
        groups.setdefault(identity(case), []).append(case)
    return groups
