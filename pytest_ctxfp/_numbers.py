"""The numbers in a text: not those in dates, times, versions and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pytest_ctxfp._cells import parse_finite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_DAY = r"[0-3]?[0-9](?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)[0-9]{2}(?![0-9])"
# Letters of scripts that set spaces between words; elsewhere a number stands in the midst of text.
_LETTER = r"A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u052f"
_TOKEN = re.compile(
    rf"""(?P<skip>
        (?<![0-9]) [0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}} (?![0-9])
        (?: [T ][0-9]{{1,2}}:[0-9:.]* (?:Z|[+-][0-9:]+)? )?
      | (?<![0-9]) [0-9]{{1,4}}([/.])[0-9]{{1,2}}\2[0-9]{{1,4}} (?![0-9.])
      | (?<![0-9]) [0-9]{{1,2}}(?::[0-9]{{2}})+
      | \b{_DAY}[ ]{_MONTH}(?:,?[ ]{_YEAR})?(?![{_LETTER}0-9]) | \b{_MONTH}[ ](?:{_DAY},?[ ])?{_YEAR}
      | [{_LETTER}][{_LETTER}0-9]*(?:[.-][{_LETTER}0-9]+)*
    )
    | (?P<number>
        (?P<sign>(?<![{_LETTER}0-9)])[+\-−])? (?:\p(?P<sign2>[+\-−])?)?
        (?P<digits>\.?[0-9](?:[0-9.,]*[0-9])?\.?) (?P<exponent>[eE][+-]?[0-9]+(?![{_LETTER}]))?
        (?P<rest>[{_LETTER}]?)
    )""".replace(r"\p", "[$¢£¤¥₠-⃀]"),
    re.VERBOSE,
)
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")


class FoundNumber(NamedTuple):
    """A number in a text: as it is written, and its value."""

    written: str
    value: Decimal


def find_numbers(text: str) -> Iterator[FoundNumber]:
    """Yield the finite decimals in a text, in order.

    A number may have thousands commas, a currency sign before and a ``%`` after it (which changes nothing:
    ``5%`` is 5). What stands in a date, a time, a version (``1.2.3``) or a word (``Q3``, ``2nd``, ``5kg``) is
    no number, nor is ``1.234,56``, which could be read in two ways.

    Example:
        >>> [str(number.value) for number in find_numbers("On 2024-06-30 (Q2) we had 1,204 orders, +3.5%")]
        ['1204', '3.5']
    """
    for token in _TOKEN.finditer(text):
        digits = token["digits"]
        if digits is None or token["rest"] or (token["sign"] and token["sign2"]):
            continue
        if not (_PLAIN.fullmatch(digits) or _GROUPED.fullmatch(digits)):
            continue
        sign = (token["sign"] or token["sign2"] or "").replace("−", "-")
        value = parse_finite(f"{sign}{digits.replace(',', '')}{token['exponent'] or ''}")
        if value is not None:
            yield FoundNumber(token["number"], value)
