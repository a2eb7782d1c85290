"""Plain scalars against the rules of the YAML 1.2 core schema, told a second time without its expressions."""

from __future__ import annotations

import json
import math

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ctxfp._json import parse_json
from pytest_ctxfp._tree import construct, resolve_plain
from pytest_ctxfp._yaml import parse_yaml

DIGITS = "0123456789"
HEX_DIGITS = "0123456789abcdefABCDEF"
CONSTANTS = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}
# Pieces of numbers and of what looks like them: random text alone would hardly ever be a number.
PIECES = st.sampled_from(
    [*DIGITS, "00", "0x", "0o", "0b", "+", "-", ".", "e", "E", "_", ":", "f", "٣", "²", "\n"]
)
WORDS = st.sampled_from(
    ["null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "inf", "nan"]
)
NUMBER_LIKE = st.lists(PIECES, max_size=9).map("".join)
WORD_LIKE = st.tuples(
    st.sampled_from(["", "", "+", "-", "--"]),
    WORDS,
    st.sampled_from([str, str.upper, str.title, str.capitalize, str.swapcase]),
).map(lambda parts: parts[0] + parts[2](parts[1]))
SCALARS = st.one_of(NUMBER_LIKE, WORD_LIKE, st.text(max_size=6))

JSON_TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=20
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | JSON_TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(JSON_TEXTS, inner, max_size=4),
    max_leaves=20,
)


def all_in(text, allowed):
    """Tell whether a text isn't empty and holds only allowed characters."""
    return text != "" and all(char in allowed for char in text)


def is_decimal(text):
    """Tell whether a text is an unsigned decimal integer without a leading zero."""
    return all_in(text, DIGITS) and (text == "0" or text[0] != "0")


def is_float(text):
    """Tell whether an unsigned text is digits, a point, digits and an exponent, with enough of them."""
    mantissa, mark, exponent = text.replace("E", "e").partition("e")
    if mark and not all_in(exponent[1:] if exponent[:1] in ("+", "-") else exponent, DIGITS):
        return False
    whole, point, fraction = mantissa.partition(".")
    if point and fraction and not all_in(fraction, DIGITS):
        return False
    return is_decimal(whole) or (whole == "" and fraction != "")


def oracle(text):
    """Resolve a plain scalar by the tables of the specification, section 10.3.2."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if text in CONSTANTS:
        value = CONSTANTS[text]
    elif (text[:2] == "0x" and all_in(text[2:], HEX_DIGITS)) or (
        text[:2] == "0o" and all_in(text[2:], "01234567")
    ):
        value = int(text, 0)
    elif unsigned in (".inf", ".Inf", ".INF"):
        value = -math.inf if text[0] == "-" else math.inf
    elif is_decimal(unsigned):
        value = int(text)
    else:
        value = float(text) if is_float(unsigned) else text
    return value


def is_beyond_a_double(text, value):
    """Tell whether digits were read as infinity, or digits that aren't all zeros as zero."""
    if not isinstance(value, float) or "n" in text.lower():
        return False
    mantissa = text.lower().partition("e")[0]
    return math.isinf(value) or (value == 0 and any(char in "123456789" for char in mantissa))


def same(left, right):
    """Tell whether two values are the same value of the same type, NaN and the sign of zero included."""
    return type(left) is type(right) and repr(left) == repr(right)


@given(SCALARS)
@settings(max_examples=100)
def test_plain_scalar_is_what_the_specification_says(text):
    """Whatever a plain scalar looks like, its value is the oracle's, or it is refused as beyond a double."""
    expected = oracle(text)
    if is_beyond_a_double(text, expected):
        with pytest.raises(ValueError, match="beyond a double"):
            resolve_plain(text)
    else:
        assert same(resolve_plain(text), expected)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_number_survives_being_written(number):
    """A finite number that Python writes is read back as the same number."""
    assert same(resolve_plain(repr(number)), number)


@pytest.mark.parametrize("has_c_parser", [True, False])
@given(value=JSON_VALUES, indent=st.none() | st.integers(0, 3), ascii_only=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_json_text_means_the_same_as_yaml(has_c_parser, value, indent, ascii_only):
    """JSON text is YAML: both readers give the value that was written."""
    if ascii_only and any(ord(char) > 0xFFFF for char in json.dumps(value, ensure_ascii=False)):
        ascii_only = False  # YAML has no pairs of surrogate escapes
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "__with_libyaml__", has_c_parser and yaml.__with_libyaml__)
        parsed = parse_yaml(text)
    faults = list(parsed.faults)
    assert same(construct(parsed.roots[0], faults), value)
    assert same(construct(parse_json(text).roots[0], faults), value)
    assert faults == []
