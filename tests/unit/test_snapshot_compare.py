"""A context against its stored snapshot: verdicts, ignored and redacted parts, partial acceptance."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp._layers import Layer
from pytest_ctxfp._snapshot import CurrentContext, SnapshotState, check_snapshot
from pytest_ctxfp._snapshot_file import (
    SnapshotReader,
    parse_snapshots,
    read_snapshots,
    render_snapshots,
    update_snapshots,
    write_snapshots,
)
from pytest_ctxfp._snapshot_model import LayerRow, SnapshotEntry
from pytest_ctxfp._snapshot_rules import layer_names

BASE = "You are CAR.\n## Rules\n- be exact\n## Facts\n- a\n- b\n## Recent\nuser: hi\n## Question\nHow many?\n"


def now(context, **options):
    """Return a context as it is now."""
    return CurrentContext(context, key="t#0", **options)


def stored(context, **options):
    """Return the entry of a context, having gone through a file's text."""
    entry = now(context, **options).entry()
    return parse_snapshots(render_snapshots([entry]).encode(), path="t")["t#0"]


def check(before, after, *, accept=(), **options):
    """Return the verdict on a context after another one was stored under the same options."""
    return check_snapshot(stored(before, **options), now(after, **options), accept=accept)


def marks(changes):
    """Return changes as ``~ Rules``."""
    return [f"{change.kind.value} {change.layer}" for change in changes]


def docs(*names, tail="## Question\nq\n"):
    """Return a context of rules, documents and a question."""
    return "## Rules\nr\n" + "".join(f"## Document {name}\n{name * 3}\n" for name in names) + tail


# Whole contexts


def test_missing():
    """Without a stored entry the state is missing, and the entry to write records the context."""
    verdict = check_snapshot(None, now(BASE))
    assert verdict.state is SnapshotState.MISSING
    assert verdict.entry() == stored(BASE)
    assert not verdict.is_accepted


def test_matched():
    """An equal context matches, and what would be written equals what is stored."""
    verdict = check(BASE, BASE)
    assert verdict.state is SnapshotState.MATCHED
    assert verdict.entry() == verdict.stored


def test_text_and_its_bytes_match():
    """A text and its UTF-8 bytes are the same context."""
    assert check(BASE, BASE.encode()).state is SnapshotState.MATCHED


def test_a_match_does_not_split(monkeypatch):
    """A context whose digest is stored is not taken apart."""
    entry = stored(BASE)
    context = now(BASE)
    monkeypatch.setattr("pytest_ctxfp._snapshot._make_row", None)
    assert check_snapshot(entry, context).state is SnapshotState.MATCHED


def test_the_entry_is_what_the_design_says():
    """The digest and size are those of the whole, and a layer line holds key, hash, bytes, lines."""
    entry = stored(BASE)
    assert (entry.sha256, entry.bytes) == (hashlib.sha256(BASE.encode()).hexdigest(), len(BASE))
    body = b"- a\n- b\n"
    assert entry.layers[2] == ("Facts", hashlib.sha256(body).hexdigest()[:16], 8, 2, None)
    assert [row.key for row in entry.layers] == ["(preamble)", "Rules", "Facts", "Recent", "Question"]


CHANGES = {
    "body": (BASE, BASE.replace("exact", "quick"), ["~ Rules"]),
    "header line": (BASE, BASE.replace("## Facts", "##  Facts"), ["~ Facts"]),
    "line ends": (BASE, BASE.replace("- a\n", "- a\r\n"), ["~ Facts"]),
    "preamble": (BASE, BASE[1:], ["~ (preamble)"]),
    "no preamble": (BASE, BASE.removeprefix("You are CAR.\n"), ["- (preamble)"]),
    "header like the preamble": ("x\n", "## (preamble)\nx\n", ["+ (preamble)#2", "- (preamble)"]),
    "added": (BASE, BASE + "## Notes\n", ["+ Notes"]),
    "removed": (BASE, BASE.replace("## Recent\nuser: hi\n", ""), ["- Recent"]),
    "renamed": (BASE, BASE.replace("## Facts", "## Data"), ["+ Data", "- Facts"]),
    "one move is one row": (
        BASE,
        BASE.replace("## Question\nHow many?\n", "").replace("## Rules", "## Question\nHow many?\n## Rules"),
        ["> Question"],
    ),
    "first of three equal names removed": (
        "## D\n1\n## D\n2\n## D\n3\n",
        "## D\n2\n## D\n3\n",
        ["- D"],
    ),
    "one of three equal names changed": (
        "## D\n1\n## D\n2\n## D\n3\n",
        "## D\n1\n## D\nX\n## D\n3\n",
        ["~ D#2"],
    ),
    "a name that looks numbered": ("## D\n1\n## D#2\n2\n", "## D#2\n2\n", ["- D"]),
    "emptied": (BASE, "", ["- (preamble)", "- Facts", "- Question", "- Recent", "- Rules"]),
    "moved and changed": ("## A\n1\n## B\n2\n## C\n3\n", "## C\nX\n## A\n1\n## B\n2\n", ["~ C", "> C"]),
    "mapping": ({"a": "1", "b": "2"}, {"a": "1", "b": "3"}, ["~ b"]),
    "order of a mapping": ({"a": "1", "b": "2", "c": "3"}, {"c": "3", "a": "1", "b": "2"}, ["> c"]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changes_are_named(case):
    """Every kind of change is named with its mark, and updating to it makes the check green."""
    before, after, expected = CHANGES[case]
    verdict = check(before, after)
    assert verdict.state is SnapshotState.CHANGED
    assert marks(verdict.rejected) == expected
    assert verdict.accepted == ()
    assert check_snapshot(verdict.entry(), now(after)).state is SnapshotState.MATCHED


def test_a_moved_layer_says_where_it_stands():
    """A moved layer names the layer before it, or none where it is first."""
    verdict = check("## A\n1\n## B\n2\n## C\n3\n", "## C\n3\n## A\n1\n## B\n2\n")
    assert [change.follows for change in verdict.rejected] == [None]
    verdict = check("## A\n1\n## B\n2\n## C\n3\n", "## B\n2\n## C\n3\n## A\n1\n")
    assert [change.follows for change in verdict.rejected] == ["C"]


def test_unchanged_layers_are_counted():
    """Layers without a change are a number, ignored ones another."""
    verdict = check(BASE, BASE.replace("exact", "quick"), ignore=("Recent",))
    assert (verdict.n_unchanged, verdict.n_ignored) == (3, 1)


def test_a_contradictory_entry_is_changed():
    """An entry whose layers match and whose digest doesn't isn't taken as a match, nor accepted."""
    good = stored(BASE)
    edited = SnapshotEntry(key="t#0", sha256="0" * 64, bytes=good.bytes, layers=good.layers)
    verdict = check_snapshot(edited, now(BASE), accept=("*",))
    assert verdict.state is SnapshotState.CHANGED
    assert verdict.is_inexplicable
    assert not verdict.is_accepted


surrogate_texts = st.text(st.sampled_from("ab#\n \r\u2028\ud83d\ude00\udc80é"), max_size=40)
contexts = st.one_of(
    st.lists(st.tuples(st.sampled_from("ABCD"), st.sampled_from(["", "1\n", "2\n", "2"])), max_size=6).map(
        lambda layers: "".join(f"## {name}\n{body}\n" for name, body in layers)
    ),
    surrogate_texts.map(lambda text: text.replace("#", "## ")),
    st.binary(max_size=20).map(lambda data: b"## " + data + b"\n## \xff\n"),
    st.dictionaries(surrogate_texts, surrogate_texts, max_size=3),
)
ignores = st.lists(st.sampled_from(["A", "A#2", "B*", "*", "(preamble)", "D"]), max_size=3).map(tuple)


@given(contexts, contexts, ignores)
def test_a_difference_is_attributed_and_an_update_mends_it(before, after, ignore):
    """Not matched means named changes; after an update the check matches, and another changes nothing."""
    entry = stored(before, ignore=ignore)
    verdict = check_snapshot(entry, now(after, ignore=ignore))
    is_named = bool(verdict.rejected) or verdict.is_inexplicable
    assert (verdict.state is SnapshotState.CHANGED) == is_named
    if verdict.is_inexplicable:
        assert isinstance(before, dict) != isinstance(after, dict)
    if not ignore:
        assert (verdict.state is SnapshotState.MATCHED) == (now(before).sha256 == now(after).sha256)
    updated = verdict.entry()
    again = check_snapshot(updated, now(after, ignore=ignore))
    assert again.state is SnapshotState.MATCHED
    assert again.entry() == updated
    if verdict.state is SnapshotState.MATCHED and not {"B*", "*"}.intersection(ignore):
        assert updated == entry


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(["a#0", "a#1", "b#0"]), contexts), max_size=4), max_size=4),
    st.dictionaries(st.sampled_from(["a#0", "a#1", "b#0"]), contexts, min_size=1),
)
def test_any_history_then_one_update_then_green(tmp_path_factory, history, final):
    """After any updates and checks, one update and a check is green; a second update changes no byte."""
    path = tmp_path_factory.mktemp("snapshots") / "t.ctxfp"

    def run(context_of, *, update):
        entries = read_snapshots(path).entries
        verdicts = [
            check_snapshot(entries.get(key), CurrentContext(context, key=key, ignore=("B*", "A#2")))
            for key, context in context_of.items()
        ]
        if update:
            update_snapshots(path, [verdict.entry() for verdict in verdicts])
        return [verdict.state for verdict in verdicts]

    for number, step in enumerate(history):
        run(dict(step), update=number % 2 == 0)
    run(final, update=True)
    data = path.read_bytes()
    assert set(run(final, update=False)) == {SnapshotState.MATCHED}
    run(final, update=True)
    assert path.read_bytes() == data


# Ignored layers


def test_the_stored_form_of_an_ignored_layer():
    """An ignored layer's line is its name and null, with its header text where that isn't the usual one."""
    entry = now("## A\n1\n##  Recent\r\nx\n## Recent 2\ny\n", ignore=("Recent*",)).entry()
    lines = render_snapshots([entry]).splitlines()
    assert lines[3:] == ['["Recent", null, null, null, "##  Recent\\r\\n"]', '["Recent 2", null]']
    assert entry.sha256 == hashlib.sha256(b"## A\n1\n").hexdigest()
    assert entry.bytes == 7


def test_content_and_header_of_an_ignored_layer_are_not_compared():
    """The content and the spelling of the header line of an ignored layer may change."""
    after = BASE.replace("user: hi\n", "user: bye\n\n").replace("## Recent", "##   Recent")
    verdict = check(BASE, after, ignore=("Recent",))
    assert verdict.state is SnapshotState.MATCHED
    assert verdict.entry() == verdict.stored


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BASE.replace("## Recent\nuser: hi\n", ""), ["- Recent"]),
        (BASE.replace("Recent", "Latest"), ["+ Latest", "- Recent"]),
        (BASE + "## Recent\nx\n", ["+ Recent#2"]),
    ],
)
def test_presence_and_name_of_an_ignored_layer_are_compared(after, expected):
    """A layer ignored by its exact name must stay, under its name, and no other of it may come."""
    verdict = check(BASE, after, ignore=("Recent",))
    assert marks(verdict.rejected) == expected


def test_an_ignored_layer_must_keep_its_place():
    """An ignored layer that moved is a change, whatever its content."""
    verdict = check(
        "## A\n1\n## R\nx\n## B\n2\n## C\n3\n", "## A\n1\n## B\n2\n## C\n3\n## R\ny\n", ignore=("R",)
    )
    assert marks(verdict.rejected) == ["> R"]


def test_an_update_keeps_the_line_of_an_ignored_layer():
    """An update for another layer's change leaves the stored lines of ignored layers alone."""
    before = "## A\n1\n##  R\nx\n"
    verdict = check(before, "## A\n2\n##   R\ny\n", ignore=("R",))
    assert marks(verdict.rejected) == ["~ A"]
    assert verdict.entry().layers[1] == verdict.stored.layers[1]
    assert verdict.entry().layers[0] != verdict.stored.layers[0]


COMING_AND_GOING = {
    "fewer": (docs("a", "b", "c"), docs("b")),
    "more": (docs("b"), docs("a", "b", "c")),
    "other names": (docs("a", "b"), docs("c", "d")),
    "other order": (docs("a", "b"), docs("b", "a")),
    "none now": (docs("a"), docs()),
    "none stored": (docs(), docs("a")),
    "at the end": ("## A\n1\n## Document\nx\n", "## A\n1\n"),
    "the first of two places is empty": (
        "## Document\nx\n## Q\n1\n## Document\ny\n",
        "## Q\n1\n## Document\nz\n",
    ),
}


@pytest.mark.parametrize("case", COMING_AND_GOING)
def test_layers_under_a_glob_come_and_go(case):
    """Layers that match an ignored glob may come and go where such layers were, and no line churns."""
    before, after = COMING_AND_GOING[case]
    verdict = check(before, after, ignore=("Document*",))
    assert verdict.state is SnapshotState.MATCHED
    if case != "none stored":
        assert verdict.entry() == verdict.stored


def test_the_lines_of_layers_under_a_glob_stay_when_another_layer_changes():
    """An update for another layer's change keeps the stored lines of five documents when three are there."""
    verdict = check(
        docs("a", "b", "c"), docs("b").replace("## Rules\nr", "## Rules\nR"), ignore=("Document*",)
    )
    assert marks(verdict.rejected) == ["~ Rules"]
    assert verdict.entry().layers[1:] == verdict.stored.layers[1:]


@pytest.mark.parametrize("name", ["a", "z"])
def test_layers_under_a_glob_keep_their_place(name):
    """A document where no document stood before is a change, and an update records the new place."""
    after = docs("a", "b") + f"## Document {name}\n"
    verdict = check(docs("a", "b"), after.replace("## Document a\naaa\n", ""), ignore=("Document*",))
    assert marks(verdict.rejected) == [f"> Document {name}"]
    entry = verdict.entry()
    assert [row.key for row in entry.layers] == ["Rules", "Document b", "Question", f"Document {name}"]


def test_a_new_layer_beside_ignored_ones_does_not_move_them():
    """A layer added before the documents is the only change that is reported."""
    after = docs("a", "b").replace("## Document a", "## Tools\nt\n## Document a")
    assert marks(check(docs("a"), after, ignore=("Document*",)).rejected) == ["+ Tools"]


def test_a_key_that_looks_like_a_glob_is_named_exactly():
    """A layer whose key is spelled like the pattern is ignored by name, so it must stay."""
    before = "## Rules [v2]\n1\n## B\n2\n"
    assert check(before, before.replace("1", "3"), ignore=("Rules [v2]",)).state is SnapshotState.MATCHED
    assert marks(check(before, "## B\n2\n", ignore=("Rules [v2]",)).rejected) == ["- Rules [v2]"]


def test_ignoring_a_layer_that_is_stored_with_its_hash():
    """A test that starts to ignore a layer passes at once, and the next update drops the hash."""
    current = now(BASE.replace("hi", "bye"), ignore=("Recent",))
    verdict = check_snapshot(stored(BASE), current)
    assert verdict.state is SnapshotState.MATCHED
    assert verdict.entry() == current.entry()
    assert check_snapshot(verdict.entry(), current).entry() == verdict.entry()


@pytest.mark.parametrize("context", [BASE, {"Recent": "x", "Rules": "r"}])
def test_no_longer_ignoring_a_layer_is_a_change(context):
    """A layer of which nothing is stored can't match, though nothing else changed."""
    verdict = check_snapshot(stored(context, ignore=("Recent",)), now(context))
    assert marks(verdict.rejected) == ["~ Recent"]
    assert verdict.rejected[0].before == LayerRow(
        "Recent", None, None, None, verdict.rejected[0].before.header
    )


def test_ignoring_everything():
    """A context whose layers are all ignored still has names and places."""
    assert check("## A\n1\n## B\n2\n", "## A\n3\n## B\n4\n", ignore=("A", "B")).state is SnapshotState.MATCHED
    assert check("## A\n1\n## B\n2\n", "## A\n3\n", ignore=("A", "B")).state is SnapshotState.CHANGED


def test_mapping_with_ignored_entries_that_come_and_go():
    """A mapping may lose its last ignored entry without a change, whatever its digest is made of."""
    before, after = {"Rules": "r", "Document a": "x"}, {"Rules": "r"}
    verdict = check(before, after, ignore=("Document*",))
    assert verdict.state is SnapshotState.MATCHED
    assert verdict.entry() == verdict.stored
    assert check(after, before, ignore=("Document*",)).state is SnapshotState.MATCHED


def test_names_that_match_no_entry_of_a_mapping():
    """Adding names to ignore that match nothing changes no verdict."""
    context = {"Rules": "r"}
    assert check_snapshot(stored(context), now(context, ignore=("No*",))).state is SnapshotState.MATCHED
    assert check_snapshot(stored(context, ignore=("No*",)), now(context, ignore=("No*",))).entry() == stored(
        context, ignore=("No*",)
    )


@pytest.mark.parametrize("ignore", [3, ("A", 3), {"A": 1}, b"A", [None]])
def test_bad_names_are_refused(ignore):
    """Names that are no texts are an error that shows the form."""
    with pytest.raises(ValueError, match=r"write \('Recent\*',\)"):
        now(BASE, ignore=ignore)


def test_a_single_text_is_a_single_name():
    """``ignore="Recent"`` names one layer, not six of one letter."""
    assert now(BASE, ignore="Recent").entry() == now(BASE, ignore=["Recent"]).entry()


# Redaction


@pytest.mark.parametrize("as_bytes", [False, True])
def test_redaction_before_hashing(as_bytes):
    """What is redacted doesn't count, in text and in bytes alike."""
    redact = ((r"\d{4}-\d\d-\d\d", "<date>"), (r"run (\w+)", r"run <\1>"))
    texts = [BASE + f"## Now\n{date} run x\n" for date in ("2026-01-02", "2027-03-04")]
    before, after = [text.encode() if as_bytes else text for text in texts]
    verdict = check(before, after, redact=redact)
    assert verdict.state is SnapshotState.MATCHED
    assert verdict.current.unmatched_redactions == ()
    assert verdict.current.contents["Now"] == (b"## Now\n", b"<date> run <x>\n")


def test_redaction_across_line_ends_and_layers():
    """A pattern may span line ends and headers, since the text is searched as a whole."""
    current = now("## A\nx\nBEGIN\n## B\nEND\ny\n", redact=((r"(?s)BEGIN.*END", "<cut>"),))
    assert [row.key for row in current.rows] == ["A"]
    assert current.contents["A"][1] == b"x\n<cut>\ny\n"


def test_redaction_of_mappings():
    """The texts of a mapping are redacted, each by itself, and its keys stay."""
    current = now({"day 1": "day 1", "b": "day 2\n"}, redact=((r"day \d", "<day>"),))
    assert current.contents == {"day 1": (b"", b"<day>"), "b": (b"", b"<day>\n")}


def test_redaction_of_a_context_for_a_splitter():
    """Texts in lists and in objects with model_dump are redacted before a splitter sees them."""

    class Request:
        def model_dump(self):
            return {"messages": [{"role": "user", "content": "day 1"}], "n": 1, "none": None}

    seen = []

    def split(context):
        seen.append(context)
        return [Layer(key="all", name="all", header="", body=str(context))]

    now(Request(), redact=((re.compile(r"day \d"), "<day>"),), split=split)
    assert seen == [{"messages": [{"role": "user", "content": "<day>"}], "n": 1, "none": None}]


def test_a_redaction_that_matches_nothing_is_reported():
    """Patterns without a match are named, in order."""
    assert now(BASE, redact=(("never", ""), ("exact", ""), ("x{9}", ""))).unmatched_redactions == (
        "never",
        "x{9}",
    )


def test_bytes_that_are_not_utf8_survive_redaction():
    """Redaction changes nothing but the matches, whatever the bytes are."""
    current = now(b"## A\n\xff\xed\xa0\x80 day 1\n", redact=((r"day \d", "<day>"),))
    assert current.contents["A"][1] == b"\xff\xed\xa0\x80 <day>\n"


@pytest.mark.parametrize(
    ("redact", "message"),
    [
        (((r"(", ""),), r"redact\[0\]: bad regular expression '\('"),
        ((("a", ""), ("x", r"\1")), r"redact\[1\]: bad replacement"),
        ((("exact", r"\g<no>"),), r"redact\[0\]: bad replacement"),
        (("exact", ""), "redact takes pairs"),
        ("exact", "redact takes pairs"),
        ((("exact", 1),), "redact takes pairs"),
        (((b"exact", b""),), "redact takes pairs"),
        (((re.compile(b"exact"), ""),), "redact takes pairs"),
        (({"exact": ""},), "redact takes pairs"),
        (7, "redact takes pairs"),
    ],
)
def test_bad_redactions_are_named(redact, message):
    """A bad pattern, replacement or form is a ValueError that says which and how to write it."""
    with pytest.raises(ValueError, match=message):
        now("x exact", redact=redact)


def test_a_context_inside_itself_is_refused():
    """Redaction of an endless context is an error, not a crash."""
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested deeper"):
        now(endless, redact=(("a", "b"),), split=lambda _: [])


# Partial acceptance


AFTER_TWO = BASE.replace("exact", "quick").replace("- b\n", "- c\n")


def test_only_accepted_layers_changed():
    """Changes in accepted layers alone are accepted, and the entry to write holds them."""
    verdict = check(BASE, AFTER_TWO, accept=("Ru*", "Facts"))
    assert verdict.is_accepted
    assert verdict.state is SnapshotState.CHANGED
    assert marks(verdict.accepted) == ["~ Facts", "~ Rules"]
    assert verdict.entry() == stored(AFTER_TWO)


def test_another_layer_changed_too():
    """With a change elsewhere nothing is accepted, and only the other layer is rejected."""
    verdict = check(BASE, AFTER_TWO, accept=("Rules",))
    assert not verdict.is_accepted
    assert marks(verdict.rejected) == ["~ Facts"]
    assert marks(verdict.accepted) == ["~ Rules"]


@pytest.mark.parametrize(("accept", "is_accepted"), [("Notes", True), ("Note", False), ("*", True)])
def test_acceptance_of_added_layers(accept, is_accepted):
    """Added, removed and moved layers are accepted by name like changed ones."""
    assert check(BASE, BASE + "## Notes\n", accept=accept).is_accepted is is_accepted
    assert check(BASE + "## Notes\n", BASE, accept=accept).is_accepted is is_accepted


def test_a_match_accepts_nothing():
    """A matching context has nothing to accept."""
    verdict = check(BASE, BASE, accept=("*",))
    assert (verdict.state, verdict.is_accepted) == (SnapshotState.MATCHED, False)


def test_a_missing_snapshot_is_not_accepted():
    """Accepting layers doesn't create snapshots."""
    assert not check_snapshot(None, now(BASE), accept=("*",)).is_accepted


def test_names_that_match_nothing_can_be_told():
    """The patterns that match some layer of a run are known, so that the others can be named."""
    names = layer_names(["Rules", "Fa*", "Rulse", "Q?"])
    assert names.matching(row.key for row in stored(BASE).layers) == {"Rules", "Fa*"}


@pytest.mark.parametrize("key", ["a\ud800", "\ud83d\ude00", "\u202e", "\n", ""])
def test_any_key_is_found_again(tmp_path, key):
    """A snapshot is found under the key it was stored under, whatever characters are in it."""
    path = tmp_path / "t.ctxfp"
    current = CurrentContext(BASE, key=key)
    for _ in range(2):
        update_snapshots(path, [current.entry()])
    assert check_snapshot(SnapshotReader().find(path, key), current).state is SnapshotState.MATCHED


# Reading once


def test_files_are_read_once(tmp_path):
    """A reader reads a file when first asked and keeps it; a missing file has no snapshots."""
    path = tmp_path / "t.ctxfp"
    reader = SnapshotReader()
    write_snapshots(path, [stored(BASE)])
    assert reader.find(path, "t#0") == stored(BASE)
    path.unlink()
    assert reader.find(path, "t#0") == stored(BASE)
    assert reader.find(path, "t#1") is None
    assert reader.find(tmp_path / "other.ctxfp", "t#0") is None
