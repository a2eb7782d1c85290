from __future__ import annotations

import time

import pytest

from pytest_ctxfp import Layer, markdown_layers
from pytest_ctxfp._layers import WHITE_SPACE, LayerKeys, heading_name


def keys(text: str | bytes, **options: object) -> list[str]:
    """Return the keys of a text's layers."""
    return [layer.key for layer in markdown_layers(text, **options)]


def join(layers: list[Layer]) -> str | bytes:
    """Return header and body of all layers in order."""
    empty = layers[0].header[:0]
    return empty.join(part for layer in layers for part in (layer.header, layer.body))


def test_a_layer_holds_exact_header_and_body():
    """Header and body are slices of the text, line ends and spaces included."""
    assert markdown_layers("Hi\r\n##  A \r\nx\n\n## B") == [
        Layer(key="(preamble)", name=None, header="", body="Hi\r\n"),
        Layer(key="A", name="A", header="##  A \r\n", body="x\n\n"),
        Layer(key="B", name="B", header="## B", body=""),
    ]


def test_an_empty_text_has_no_layers():
    """Nothing before the first header means no preamble."""
    assert markdown_layers("") == []
    assert markdown_layers(b"") == []


def test_bytes_give_layers_of_bytes():
    """Bytes are split as they are, and names that are no UTF-8 still become text."""
    layers = markdown_layers(b"\xff\n## caf\xc3\xa9 \xfe\nx")
    assert [layer.name for layer in layers] == [None, "caf\xe9 \udcfe"]
    assert join(layers) == b"\xff\n## caf\xc3\xa9 \xfe\nx"


@pytest.mark.parametrize(
    "line", ["##", "##A", "##\tA", " ## A", "### A", "# A", "\u00a0## A", "\ufeff## A", "x ## A"]
)
def test_other_lines_are_no_headers(line):
    """Only two signs at column 0 and a space begin a layer."""
    assert keys(f"{line}\nx\n") == ["(preamble)"]
    assert keys(f"## Z\n{line}\nx\n") == ["Z"]


@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\x85", "\u2028", "\u2029", "\x1c"])
def test_only_lf_ends_a_line(end):
    """Other line boundaries of Unicode neither end a header nor begin one."""
    assert keys(f"## A\nx{end}## B\ny\n") == ["A"]
    assert [layer.body for layer in markdown_layers(f"## A{end}x\ny")] == ["y"]


def test_headers_may_follow_each_other():
    """A header right after a header line gives an empty body."""
    assert [(layer.key, layer.body) for layer in markdown_layers("## A\n## B\n## \n## C")] == [
        ("A", ""),
        ("B", ""),
        ("", ""),
        ("C", ""),
    ]


def test_names_are_stripped_of_white_space_alone():
    """All of White_Space goes, U+001C to U+001F stay."""
    assert heading_name(f"## {WHITE_SPACE}A B{WHITE_SPACE}\n") == "A B"
    assert heading_name("## \x1cA\x1f\n") == "\x1cA\x1f"
    assert len(WHITE_SPACE) == 25


def test_heading_name_takes_off_one_mark():
    """A name may itself begin with signs."""
    assert heading_name("## # A") == "# A"
    assert heading_name("###### A\n") == "A"
    assert heading_name("no mark # here") == "no mark # here"


def test_surrogate_pairs_are_one_character_in_names():
    """Two halves and the character they make are the same name, as JSON reads them."""
    layers = markdown_layers("## \ud83d\ude00\n## \U0001f600\n## \ud83d\n")
    assert [layer.key for layer in layers] == ["\U0001f600", "\U0001f600#2", "\ud83d"]
    assert layers[0].header == "## \ud83d\ude00\n"


def test_keys_are_the_first_free_number():
    """A number that a literal name took is passed over."""
    claim = LayerKeys().claim
    assert [claim(name) for name in ["N#3", "N", "N", "N", "N#3", "N"]] == [
        "N#3",
        "N",
        "N#2",
        "N#4",
        "N#3#2",
        "N#5",
    ]


def test_preamble_is_never_the_key_of_a_header():
    """A header spelled as the reserved key is numbered, with and without a preamble."""
    assert keys("## (preamble)\nx\n") == ["(preamble)#2"]
    assert keys("p\n## (preamble)\nx\n") == ["(preamble)", "(preamble)#2"]


def test_level_picks_the_headings():
    """Higher and deeper headings stay in the bodies."""
    text = "# A\n## B\n### C\n#### D\n"
    assert [keys(text, level=level) for level in (1, 2, 3)] == [
        ["A"],
        ["(preamble)", "B"],
        ["(preamble)", "C"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\n## A\n```\n## B\n", ["(preamble)", "B"]),
        ("~~~ `x` \n## A\n```\n## B\n~~~\n## C\n", ["(preamble)", "C"]),
        ("````\n```\n## A\n`````  \r\n## B\n", ["(preamble)", "B"]),
        ("   ```py\n## A\n  ```\n## B\n", ["(preamble)", "B"]),
        ("    ```\n## A\n", ["(preamble)", "A"]),
        ("```a`b\n## A\n", ["(preamble)", "A"]),
        ("``\n## A\n", ["(preamble)", "A"]),
        ("```\n## A\n``` x\n## B\n", ["(preamble)"]),
        ("```\n## A\n", ["(preamble)"]),
        ("## A\n```\n## B\n```\n## C\n```\n## D\n```\n## E\n", ["A", "C", "E"]),
    ],
)
def test_opaque_fences_hide_headings(text, expected):
    """Inside of a CommonMark fence nothing is a header, and the layers still make up the text."""
    layers = markdown_layers(text, fences="opaque")
    assert [layer.key for layer in layers] == expected
    assert join(layers) == text


def test_fences_are_split_by_default():
    """A heading inside of a code block begins a layer unless fences are opaque."""
    assert keys("```\n## A\n```\n") == ["(preamble)", "A"]


@pytest.mark.parametrize(
    ("arguments", "options", "reason"),
    [
        (("x", 0), {}, "level must be a whole number from 1 to 6, got 0"),
        (("x", 7), {}, "got 7"),
        (("x", True), {}, "got True"),
        (("x", "2"), {}, "got '2'"),
        (("x",), {"fences": "closed"}, "fences must be 'split' or 'opaque', got 'closed'"),
        ((None,), {}, "text or bytes, got 'NoneType'"),
        ((["x"],), {}, "text or bytes, got 'list'"),
    ],
)
def test_unusable_arguments_are_value_errors(arguments, options, reason):
    """The message names what was given and what is accepted."""
    with pytest.raises(ValueError, match=reason):
        markdown_layers(*arguments, **options)


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 2_000_000,
        "\n#" * 1_000_000,
        "## N\n" * 200_000,
        "## N#2\n## N\n" * 100_000,
        "## " + "`" * 2_000_000 + "x",
        "```x\n" * 400_000,
        "`" * 1_000_000 + "x`\n" + "~" * 1_000_000,
        "## " + "\ud83d" * 500_000,
    ],
    ids=range(8),
)
def test_hostile_texts_are_split_in_linear_time(text):
    """Neither headings, fences, names nor surrogates make it quadratic."""
    start = time.perf_counter()
    layers = markdown_layers(text, fences="opaque")
    assert time.perf_counter() - start < 10
    assert join(layers) == text
