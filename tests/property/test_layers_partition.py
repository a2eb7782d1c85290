from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp import ContextFingerprint, _layers, diff_fingerprints, fingerprint_context, markdown_layers
from pytest_ctxfp import _pairing as pairing
from pytest_ctxfp._pairing import longest_common_subsequence, moved_items, pair_contents

LINES = st.one_of(
    st.sampled_from(
        ["## A", "## B", "## A#2", "## (preamble)", "## ", "##", "### C", "# D", "##  A ", "## \x1cA"]
    ),
    st.sampled_from(
        ["", "x", "y", "```", "~~~~", "   ```py", "```a`", " ## A", "\ufeff## A", "## \ud83d\ude00"]
    ),
    st.builds("## {}".format, st.text(max_size=3)),
    st.text(st.characters(codec=None, exclude_categories=()), max_size=4),
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\u2028", ""])
TEXTS = st.lists(st.tuples(LINES, ENDS), max_size=12).map(lambda parts: "".join(map("".join, parts)))
BYTES = st.one_of(
    TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(
        st.sampled_from([b"## ", b"\n", b"A", b"\xff", b"\xc3", b"\xa9", b"\r", b"```"]), max_size=20
    ).map(b"".join),
)
MAPPINGS = st.dictionaries(
    st.one_of(st.sampled_from(["A", "(preamble)", "A#2"]), st.text(max_size=3)), TEXTS, max_size=5
)
CONTEXTS = st.one_of(TEXTS, BYTES, MAPPINGS)
CONTENTS = st.integers(1, 6).flatmap(lambda n: st.lists(st.sampled_from("abcdef"[:n]), max_size=14))


WAYS_TO_RANK = pytest.mark.parametrize(
    "limit", [pytest.param(10**9, id="by match"), pytest.param(0, id="by bit rows")]
)


@given(text=st.one_of(TEXTS, BYTES), level=st.integers(1, 6), fences=st.sampled_from(["split", "opaque"]))
def test_layers_partition_the_context(text, level, fences):
    """Header and body of all layers, in order, are the context byte for byte."""
    layers = markdown_layers(text, level, fences=fences)
    assert text[:0].join(part for layer in layers for part in (layer.header, layer.body)) == text
    assert len({layer.key for layer in layers}) == len(layers)
    assert all(layer.header or layer.key == "(preamble)" for layer in layers)
    assert all(layer.body for layer in layers if layer.key == "(preamble)")


@pytest.mark.parametrize(
    "n", [pytest.param(1, id="by sign"), pytest.param(8, id="both"), pytest.param(10**9, id="by pattern")]
)
@given(text=st.one_of(TEXTS, st.text("# \nA", max_size=80)), level=st.integers(1, 3))
def test_layers_are_those_of_a_line_by_line_reading(n, text, level):
    """A header is a line between LFs that begins with the mark, and nothing else is, however it is found."""
    mark = "#" * level + " "
    headers = [line for line in text.split("\n") if line.startswith(mark)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_layers, "_CHARACTERS_A_SIGN", n)
        found = [layer.header for layer in markdown_layers(text, level) if layer.key != "(preamble)"]
    assert [header.removesuffix("\n") for header in found] == headers


@given(text=TEXTS)
def test_opaque_layers_are_unions_of_split_layers(text):
    """Opaque fences only hide headers: they never make one."""
    split = [layer.header + layer.body for layer in markdown_layers(text)]
    for layer in markdown_layers(text, fences="opaque"):
        part = layer.header + layer.body
        while part:
            first = split.pop(0)
            assert part.startswith(first)
            part = part[len(first) :]
    assert split == []


@given(text=TEXTS)
def test_text_and_bytes_are_one_context(text):
    """The bytes of a text have its hashes, sizes and headers."""
    as_text = fingerprint_context(text)
    as_bytes = fingerprint_context(text.encode("utf-8", "surrogatepass"))
    assert diff_fingerprints(as_text, as_bytes).identical
    assert [(layer.hash, layer.lines, layer.header) for layer in as_text.layers.values()] == [
        (layer.hash, layer.lines, layer.header) for layer in as_bytes.layers.values()
    ]


@given(context=CONTEXTS)
def test_fingerprints_survive_json(context):
    """What was written to JSON and read again is the same fingerprint, with or without our extra fields."""
    found = fingerprint_context(context)
    assert ContextFingerprint.from_dict(found.to_dict()) == found
    assert ContextFingerprint.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    foreign = {name: value for name, value in found.to_dict().items() if name != "sha256"}
    read = ContextFingerprint.from_dict(foreign)
    assert ContextFingerprint.from_dict(json.loads(json.dumps(read.to_dict()))) == read
    assert diff_fingerprints(read, found).identical


@given(before=CONTEXTS, after=CONTEXTS)
def test_every_difference_is_attributed(before, after):
    """The law: what is not identical is changed, added, removed or reordered; and nothing else is."""
    first, second = fingerprint_context(before), fingerprint_context(after)
    found = diff_fingerprints(first, second)
    assert found.identical == (first.sha256 == second.sha256)
    assert found.identical != bool(found.changed or found.added or found.removed or found.reordered)
    assert found.byte_delta == second.total_bytes - first.total_bytes
    assert "\n" not in found.summary()
    assert found.summary().isprintable()


@given(context=CONTEXTS)
def test_a_context_is_identical_to_itself(context):
    """Fingerprints of one context are equal and pair each layer with itself."""
    found = diff_fingerprints(fingerprint_context(context), fingerprint_context(context))
    assert found.identical
    assert all(before == after for before, after in found.pairs.items())


@given(before=TEXTS, after=TEXTS)
def test_a_diff_accounts_for_every_layer(before, after):
    """Each layer is in a pair, removed or added; pairs have one name; unchanged pairs have one body."""
    first, second = fingerprint_context(before), fingerprint_context(after)
    found = diff_fingerprints(first, second)
    assert sorted(first.order) == sorted([*found.pairs, *found.removed])
    assert sorted(second.order) == sorted([*found.pairs.values(), *found.added])
    assert all(first.layers[b].name == second.layers[a].name for b, a in found.pairs.items())
    changed = {delta.layer for delta in found.changed}
    for b, a in found.pairs.items():
        one, other = first.layers[b], second.layers[a]
        assert (a in changed) == ((one.hash, one.header) != (other.hash, other.header))


@given(before=TEXTS, after=TEXTS)
def test_without_the_moved_layers_nothing_is_reordered(before, after):
    """What did not move stands in the same relative order, and one moved layer fewer would not do."""
    first, second = fingerprint_context(before), fingerprint_context(after)
    found = diff_fingerprints(first, second)
    stayed = [second.order.index(a) for a in found.pairs.values() if a not in found.moved]
    assert stayed == sorted(stayed)
    assert found.reordered == bool(found.moved)
    assert list(found.moved) == [key for key in second.order if key in found.moved]


def oracle_pairs(before: list[str], after: list[str]) -> list[tuple[int, int]]:
    """Return the longest common subsequence by the quadratic table, earliest of before, then of after."""
    n, m = len(before), len(after)
    tail = [[0] * (m + 1) for _ in range(n + 1)]
    for i in reversed(range(n)):
        for j in reversed(range(m)):
            skip = max(tail[i + 1][j], tail[i][j + 1])
            tail[i][j] = tail[i + 1][j + 1] + 1 if before[i] == after[j] else skip
    pairs: list[tuple[int, int]] = []
    column = 0
    for i in range(n):
        fits = [
            j for j in range(column, m) if before[i] == after[j] and tail[i + 1][j + 1] + 1 == tail[i][column]
        ]
        if fits:
            pairs.append((i, fits[0]))
            column = fits[0] + 1
    return pairs


@WAYS_TO_RANK
@given(before=CONTENTS, after=CONTENTS)
def test_common_subsequence_is_that_of_the_table(limit, before, after):
    """Both fast ways give exactly the pairs of the quadratic table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairing, "_MATCHES_PER_ITEM", limit)
        assert list(longest_common_subsequence(before, after)) == oracle_pairs(before, after)


@WAYS_TO_RANK
@given(before=CONTENTS, after=CONTENTS)
def test_pairs_are_those_of_the_rule(limit, before, after):
    """Common prefix, common suffix, the longest common subsequence between, and leftovers gap by gap."""
    anchors = []
    start, end = 0, 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        anchors.append((start, start))
        start += 1
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
        anchors.append((len(before) - end, len(after) - end))
    middle = oracle_pairs(before[start : len(before) - end], after[start : len(after) - end])
    anchors = sorted([*anchors, *((i + start, j + start) for i, j in middle)])
    expected = list(anchors)
    for (b0, a0), (b1, a1) in zip([(-1, -1), *anchors], [*anchors, (len(before), len(after))], strict=True):
        expected += zip(range(b0 + 1, b1), range(a0 + 1, a1), strict=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairing, "_MATCHES_PER_ITEM", limit)
        assert pair_contents(before, after) == sorted(expected)


@given(places=st.permutations(range(9)))
def test_moved_items_are_the_fewest(places):
    """The rest ascends, and is as long as the longest ascending subsequence."""
    moved = moved_items(places)
    kept = [place for item, place in enumerate(places) if item not in moved]
    assert kept == sorted(kept)
    assert len(kept) == len(oracle_pairs(list(places), list(range(9))))
