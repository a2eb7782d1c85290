from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from functools import partial
from pathlib import Path

import pytest

from pytest_ctxfp import (
    ContextFingerprint,
    Layer,
    LayerDelta,
    LayerFingerprint,
    diff_fingerprints,
    fingerprint_context,
    markdown_layers,
)
from pytest_ctxfp._fingerprint import context_bytes

DATA = Path(__file__).parents[1] / "data"
CHAT = "## Document\nalpha\n## Document\nbeta\n## Document\ngamma\n"


def vectors(name: str) -> list[object]:
    """Return the cases of a vector file as parameters."""
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [pytest.param(case["input"], case["expected"], id=case["name"]) for case in map(json.loads, lines)]


def diff(before: object, after: object):
    """Return the difference of two contexts."""
    return diff_fingerprints(fingerprint_context(before), fingerprint_context(after))


def layer(key: str, body: str | bytes, *, name: str | None = "x", header: str | bytes = "") -> Layer:
    """Return a layer as a custom splitter would."""
    return Layer(key=key, name=name, header=header, body=body)


# The vectors


@pytest.mark.parametrize(("given", "expected"), vectors("fingerprint"))
def test_fingerprint_vector(given, expected):
    """A fingerprint contains what the original tool and the rules give."""
    found = fingerprint_context(given["context"]).to_dict()
    assert {**found, "layers": found["layers"].keys()} == {
        **found,
        **expected,
        "layers": expected["layers"].keys(),
    }
    for key, values in expected["layers"].items():
        assert found["layers"][key] == {**found["layers"][key], **values}


@pytest.mark.parametrize(("given", "expected"), vectors("fingerprint_diff"))
def test_diff_vector(given, expected):
    """A difference is attributed as the original tool and the rules do."""
    found = diff(given["before"], given["after"])
    assert {
        "identical": found.identical,
        "changed": [delta.layer for delta in found.changed],
        "added": list(found.added),
        "removed": list(found.removed),
        "reordered": found.reordered,
        "byte_delta": found.byte_delta,
    } == expected


# Fingerprints


def test_hashes_are_of_exact_bytes():
    """Layer hashes are of the body, the whole one of everything, header lines included."""
    text = "p\n## Caf\xe9\r\nx\r\ny"
    found = fingerprint_context(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert found == ContextFingerprint(
        layers={
            "(preamble)": LayerFingerprint(hash=hashlib.sha256(b"p\n").hexdigest()[:16], bytes=2, lines=1),
            "Caf\xe9": LayerFingerprint(
                hash=hashlib.sha256(b"x\r\ny").hexdigest()[:16],
                bytes=4,
                lines=2,
                name="Caf\xe9",
                header="## Caf\xe9\r\n",
            ),
        },
        order=("(preamble)", "Caf\xe9"),
        full_hash=digest[:16],
        total_bytes=len(text.encode()),
        sha256=digest,
    )


def test_text_and_its_bytes_are_the_same_context():
    """It does not matter whether an assembler encodes."""
    text = "p \u2028\n## \U0001f600 \nx\n##  B\r\n\xe9"
    found = fingerprint_context(text)
    for same in (text.encode(), bytearray(text.encode()), memoryview(text.encode())):
        assert fingerprint_context(same) == found
        assert context_bytes(same) == context_bytes(text) == text.encode()


def test_a_subclass_of_text_is_its_text():
    """Overridden methods of a text class don't change what is hashed."""

    class Loud(str):
        __slots__ = ()

        def encode(self, *_args: str) -> bytes:
            return b"LOUD"

        def __getitem__(self, index: object) -> Loud:
            return Loud(super().__getitem__(index).upper())

        def strip(self, *_args: str) -> Loud:
            return self

    found = fingerprint_context(Loud("## a\nx\n"))
    assert found == fingerprint_context("## a\nx\n")
    assert [type(key) for key in [*found.order, *fingerprint_context({Loud("a"): Loud("x")}).order]] == [
        str,
        str,
    ]


def test_lone_surrogates_are_hashed():
    """No text is refused, and the name keeps its surrogate."""
    found = fingerprint_context("## \ud800\n\udfff")
    assert found.order == ("\ud800",)
    assert found.layers["\ud800"].bytes == 3
    assert context_bytes("\ud800") == b"\xed\xa0\x80"


def test_to_dict_prints_extras_only_where_needed():
    """Plain layers have the original's three fields, others what else it takes to read them back."""
    found = fingerprint_context("p\n## A\n1\n## A\n2\n## B \n3\n").to_dict()
    assert list(found) == ["layers", "order", "full_hash", "total_bytes", "sha256"]
    extras = {
        key: {k: v for k, v in value.items() if k in {"name", "header", "tokens"}}
        for key, value in found["layers"].items()
    }
    assert extras == {"(preamble)": {}, "A": {}, "A#2": {"name": "A"}, "B": {"header": "## B \n"}}
    counted = LayerFingerprint(hash="0" * 16, bytes=1, lines=1, tokens=7, name="A", header="## A\n")
    whole = ContextFingerprint(layers={"A": counted}, order=("A",), full_hash="0" * 16, total_bytes=6)
    assert whole.to_dict()["layers"] == {"A": {"hash": "0" * 16, "bytes": 1, "lines": 1, "tokens": 7}}


def test_to_dict_sorts_layers_by_key():
    """The JSON of a fingerprint does not depend on the order of the layers, but for ``order``."""
    found = fingerprint_context("## b\n## a\n## C\n").to_dict()
    assert list(found["layers"]) == ["C", "a", "b"]
    assert found["order"] == ["b", "a", "C"]


@pytest.mark.parametrize(
    "context",
    [
        "",
        "p\n## A\n1\n##  A\n2\n## (preamble)\n## A#2\n",
        b"\xff\n## \xff\n##\t\n## \xfe \n\xfd",
        "## \ud83d\ude00\n## \U0001f600\n## \ud83d \n\ude00",
        {"": "", "(preamble)": "x", "A\nB": "\ud800", "\ud83d\ude00": "y"},
    ],
)
def test_json_round_trip(context):
    """What `to_dict` gives is JSON from which the same fingerprint is read."""
    found = fingerprint_context(context)
    assert ContextFingerprint.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_from_dict_reads_the_originals_files():
    """Without our fields names come from the keys, numbered ones included."""
    now = fingerprint_context("p\n## A\n1\n## A\n2\n## (preamble)\n## B#2\n")
    foreign = now.to_dict()
    del foreign["sha256"]
    foreign["layers"] = {
        key: {k: value[k] for k in ("hash", "bytes", "lines")} for key, value in foreign["layers"].items()
    }
    foreign["version"] = 1
    read = ContextFingerprint.from_dict(foreign)
    assert read.sha256 is None
    assert read.layers == now.layers
    assert ContextFingerprint.from_dict(read.to_dict()) == read
    assert diff_fingerprints(read, now).identical
    assert not diff_fingerprints(read, fingerprint_context("p\n## A\n1\n")).identical


GOOD = fingerprint_context("## A\nx\n").to_dict()
GOOD_LAYER = GOOD["layers"]["A"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "must have 'layers'"),
        ([], "must have 'layers'"),
        ({}, "must have 'layers'"),
        ({**GOOD, "layers": []}, "'layers' in a fingerprint must be an object, got 'list'"),
        ({**GOOD, "layers": {"A": None}}, "'A' in a fingerprint must be an object"),
        ({**GOOD, "layers": {}}, "must have 'A'"),
        ({**GOOD, "order": "A"}, "'order' in a fingerprint must be a list of texts"),
        ({**GOOD, "order": [["A"]]}, "'order' in a fingerprint must be a list of texts"),
        ({**GOOD, "order": []}, "order must name each of the layers once"),
        ({**GOOD, "order": ["A", "A"]}, "order must name each of the layers once"),
        ({**GOOD, "full_hash": 1}, "'full_hash' in a fingerprint must be a text"),
        ({**GOOD, "sha256": 1}, "'sha256' in a fingerprint must be a text"),
        ({**GOOD, "total_bytes": -1}, "'total_bytes' in a fingerprint must be a whole number"),
        ({**GOOD, "total_bytes": 1.0}, "'total_bytes' in a fingerprint must be a whole number"),
        ({**GOOD, "layers": {"A": {**GOOD_LAYER, "bytes": True}}}, "'bytes' in a fingerprint"),
        ({**GOOD, "layers": {"A": {**GOOD_LAYER, "lines": "1"}}}, "'lines' in a fingerprint"),
        ({**GOOD, "layers": {"A": {**GOOD_LAYER, "hash": None}}}, "'hash' in a fingerprint"),
        ({**GOOD, "layers": {"A": {**GOOD_LAYER, "name": 1}}}, "'name' in a fingerprint"),
        ({**GOOD, "layers": {"A": {**GOOD_LAYER, "header": None}}}, "'header' in a fingerprint"),
        ({**GOOD, "layers": {"A": {**GOOD_LAYER, "tokens": -1}}}, "'tokens' in a fingerprint"),
    ],
)
def test_from_dict_refuses_other_data(data, reason):
    """A field that is missing or of a wrong kind is named."""
    with pytest.raises(ValueError, match=reason):
        ContextFingerprint.from_dict(data)


# Other contexts


def test_a_mapping_has_a_layer_for_each_entry():
    """The whole is canonical JSON of the pairs in order; bodies are the texts."""
    found = fingerprint_context(OrderedDict({"Facts": "- \xe9\n", "": "x"}))
    assert found.order == ("Facts", "")
    assert found.total_bytes == len('[["Facts","- \xe9\\n"],["","x"]]'.encode())
    assert found.sha256 == hashlib.sha256('[["Facts","- \xe9\\n"],["","x"]]'.encode()).hexdigest()
    assert found.layers["Facts"].bytes == 5
    assert found.layers["Facts"].header == ""
    assert found.to_dict()["layers"]["Facts"]["header"] == ""


def test_the_order_of_a_mapping_counts():
    """Entries in another order are a change, and it is called so."""
    found = diff({"A": "1", "B": "2"}, {"B": "2", "A": "1"})
    assert (found.identical, found.reordered, found.changed) == (False, True, ())


def test_the_reserved_key_is_not_free_for_an_entry():
    """An entry spelled as the preamble is a layer with a name."""
    assert fingerprint_context({"(preamble)": "x"}).order == ("(preamble)#2",)


def test_split_takes_a_callable():
    """Its layers are hashed as they are, and the whole is the text."""
    text = "# A\n## B\nx\n"
    found = fingerprint_context(text, split=partial(markdown_layers, level=1))
    assert found.order == ("A",)
    assert found.layers["A"].header == "# A\n"
    assert found.sha256 == fingerprint_context(text).sha256
    assert fingerprint_context(text.encode(), split=partial(markdown_layers, level=1)) == found


def test_a_callable_takes_any_context():
    """For what is no text, the layers stand for the whole."""
    found = fingerprint_context(
        [1, 2], split=lambda numbers: (layer(str(n), f"{n}\n", name=str(n)) for n in numbers)
    )
    assert found.order == ("1", "2")
    assert found.sha256 == hashlib.sha256(b'[["1","1\\n"],["2","2\\n"]]').hexdigest()
    assert ContextFingerprint.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    ("context", "split", "reason"),
    [
        ("abc", lambda _: [layer("A", "ab")], "leave out the last 1 bytes"),
        (
            "abc",
            lambda _: [layer("A", "a"), layer("B", "c")],
            "layer 'B' is not what the context holds from byte 1",
        ),
        ("abc", lambda _: [layer("A", "abcd")], "layer 'A' is not what the context holds"),
        (
            "ab",
            lambda _: [layer("A", "a"), layer("A", "b")],
            "two layers have the key 'A': number them, as 'A#2'",
        ),
        ("a", lambda _: [layer("(preamble)", "a")], "kept for text without name and header"),
        ("a", lambda _: [layer("(preamble)", "", name=None, header="a")], "kept for text without name"),
        ("a", lambda _: [("A", "a")], "got 'tuple' among them"),
        ("a", lambda _: 1, "split must return layers, got 'int'"),
        ("a", lambda _: [layer("A", None)], "must be texts"),
        ("a", lambda _: [layer(1, "a")], "must be texts"),
        ("a", lambda _: [layer("A", "a", name=2)], "must be texts"),
        ([1], lambda _: [layer("A", b"a")], "holds bytes"),
        ("a", "markdown", "split must be a function"),
    ],
)
def test_layers_of_a_callable_are_checked(context, split, reason):
    """A splitter that loses, adds or repeats something is named, before anything is hashed."""
    with pytest.raises(ValueError, match=reason):
        fingerprint_context(context, split=split)


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (None, "a list of messages or a mapping of names to texts, got 'NoneType'"),
        (1, "got 'int'"),
        (["## A\n"], "got 'list'"),
        (Path("context.md"), "Path'"),
        ({"A": 1}, "got 'str' to 'int' at 'A'"),
        ({"A": b"x"}, "got 'str' to 'bytes'"),
        ({"A": ["x"]}, "got 'str' to 'list'"),
        ({1: "x"}, "got 'int' to 'str' at 1"),
    ],
)
def test_other_contexts_are_value_errors(context, reason):
    """The message says what is accepted and what was given."""
    with pytest.raises(ValueError, match=reason):
        fingerprint_context(context)


# Differences


def test_identical_contexts_have_an_empty_diff():
    """Identity rests on the bytes, even where the layers were cut in another way."""
    before = fingerprint_context("# A\n## B\n")
    after = fingerprint_context("# A\n## B\n", split=partial(markdown_layers, level=1))
    found = diff_fingerprints(before, after)
    assert found.identical
    assert (found.changed, found.added, found.removed, found.moved) == ((), (), (), ())
    assert (found.reordered, found.byte_delta) == (False, 0)
    assert found.summary() == "context identical: a difference in a metric is noise"


def test_a_changed_layer_has_its_sizes():
    """Bytes and lines before and after are those of the body."""
    found = diff("## A\nx\ny\n", "## A\nx\r\n")
    assert found.changed == (
        LayerDelta(
            layer="A", before_bytes=4, after_bytes=3, before_lines=2, after_lines=1, header_changed=False
        ),
    )


def test_a_change_of_the_header_line_alone_is_a_change():
    """The body is the same, so only ``header_changed`` tells."""
    (delta,) = diff("## A\nx\n", "## A \nx\n").changed
    assert (delta.header_changed, delta.before_bytes, delta.after_bytes) == (True, 2, 2)


def test_removing_the_first_of_equal_names_is_one_removal():
    """Layers of one name are paired by content, not by number."""
    found = diff(CHAT, "## Document\nbeta\n## Document\ngamma\n")
    assert (found.changed, found.added, found.removed) == ((), (), ("Document",))
    assert found.pairs == {"Document#2": "Document", "Document#3": "Document#2"}


def test_a_key_may_stand_on_both_sides():
    """The removed key is before's, the added one after's, and they may be spelled alike."""
    found = diff("## D\na\n## D\nb\n## D\nc\n", "## D\nb\n## D\nc\n## D\nx\n")
    assert (found.removed, found.added, found.changed) == (("D",), ("D#3",), ())
    found = diff("## D\na\n## D\nb\n", "## D\nb\n## D\nx\n## E\n")
    assert (found.removed, found.added) == (("D",), ("D#2", "E"))


def test_leftovers_of_a_gap_are_changed():
    """Between equal contents the rest is paired in order."""
    found = diff("## D\na\n## D\n1\n## D\n2\n## D\nz\n", "## D\na\n## D\n3\n## D\nz\n## D\nnew\n")
    assert [delta.layer for delta in found.changed] == ["D#2"]
    assert (found.removed, found.added) == (("D#3",), ("D#4",))


def test_a_preamble_pairs_with_a_preamble_only():
    """A header spelled as the reserved key is another layer, even if its number matches."""
    found = diff("x\n", "## (preamble)\nx\n")
    assert (found.added, found.removed, found.changed) == (("(preamble)#2",), ("(preamble)",), ())


def test_a_literal_number_is_no_repetition():
    """Names, not keys, are paired: a new ``## N`` does not shift ``## N#2``."""
    found = diff("## N\n1\n## N#2\n2\n", "## N\n1\n## N\n3\n## N#2\n2\n")
    assert (found.added, found.removed, found.changed) == (("N#2",), (), ())
    assert found.pairs == {"N": "N", "N#2": "N#2#2"}


def test_one_moved_layer_is_one_entry():
    """The first of six moved to the end: five stayed."""
    names = "ABCDEF"
    before = "".join(f"## {name}\n" for name in names)
    after = "".join(f"## {name}\n" for name in names[1:] + names[0])
    found = diff(before, after)
    assert found.reordered
    assert found.moved == ("A",)
    assert (found.changed, found.added, found.removed) == ((), (), ())


def test_moved_keys_are_in_the_later_order():
    """Keys and order are those of the later context."""
    found = diff("## A\n## B\n## C\n## D\n## E\n", "## D\n## A\n## E\n## B\n## C\n")
    assert found.moved == ("D", "E")


def test_added_and_removed_layers_do_not_reorder():
    """Only layers of both contexts can stand in another relative order."""
    found = diff("## A\n## B\n## C\n", "## X\n## B\n## Y\n## C\n")
    assert (found.reordered, found.moved) == (False, ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", {}),
        ({"x": "abc"}, {"x\ud83d\ude00": "abc"}),
        ({"\ud83d\ude00": "abc"}, {"\U0001f600": "abc"}),
        ("## \udcff\n", b"## \xff\n"),
        ("x", {"(preamble)": "x"}),
        ("## A\nx", {"A": "x"}),
    ],
)
def test_contexts_of_different_kinds_differ_somewhere(before, after):
    """What is not identical is attributed, across types and spellings too."""
    found = diff(before, after)
    assert not found.identical
    assert found.changed or found.added or found.removed or found.reordered


def test_text_outside_of_the_layers_is_called_preamble():
    """The original tool drops a blank preamble: a change there is still named."""
    data = {"layers": {}, "order": [], "full_hash": "0" * 16, "total_bytes": 3}
    other = {**data, "full_hash": "1" * 16, "total_bytes": 4}
    found = diff_fingerprints(ContextFingerprint.from_dict(data), ContextFingerprint.from_dict(other))
    (delta,) = found.changed
    assert (delta.layer, delta.before_bytes, delta.after_bytes) == ("(preamble)", 3, 4)


def test_summary_is_one_unambiguous_line():
    """Parts in a fixed order, names with separators or invisible characters quoted."""
    found = diff(
        {"Facts": "1", "A, B": "2", "gone": "3", "m": "", "n": ""},
        {"Facts": "one", "A, B": "two", "": "4", "new; line\n": "5", "n": "", "m": ""},
    )
    assert found.summary() == (
        "context differs: changed: 'A, B', Facts; added: '', 'new; line\\n'; removed: gone; reordered: m"
        " (+20 bytes)"
    )
    assert diff("## A\nxy\n", "## A\n").summary() == "context differs: changed: A (-3 bytes)"


@pytest.mark.parametrize("name", ["'A'", '"A"', "A\u202e", "A\ud800", "A;", ",", "A\xa0B", "A\tB"])
def test_names_that_could_be_misread_are_quoted(name):
    """What is printed is printable and shows where the name ends."""
    summary = diff("", f"## {name}\n").summary()
    assert f"added: {name!r} (" in summary
    assert summary.isprintable()


def test_many_equal_names_are_compared_quickly():
    """Two thousand layers of one name, whatever their contents, take no quadratic time."""
    n = 2_000
    contexts = {
        "distinct": "".join(f"## D\n{i}\n" for i in range(n)),
        "backwards": "".join(f"## D\n{i}\n" for i in reversed(range(n))),
        "equal": "## D\nx\n" * n,
        "two": "".join(f"## D\n{i * i % 7 % 2}\n" for i in range(n)),
        "other two": "".join(f"## D\n{i * i % 11 % 2}\n" for i in range(n)),
        "named": "".join(f"## {i * 7 % n}\n" for i in range(n)),
        "renamed": "".join(f"## {i * 3 % n}\n" for i in range(n)),
    }
    fingerprints = [fingerprint_context(context) for context in contexts.values()]
    start = time.perf_counter()
    for before in fingerprints:
        for after in fingerprints:
            diff_fingerprints(before, after)
    assert time.perf_counter() - start < 10
