"""Text files, line diffs and failure texts of snapshots: what people read; none of it decides."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp._layers import Layer
from pytest_ctxfp._redaction import Redactor, compile_patterns
from pytest_ctxfp._snapshot import CurrentContext, SnapshotState, check_snapshot
from pytest_ctxfp._snapshot_diff import LayerTexts, changed_texts, diff_layers, name_invisible_change
from pytest_ctxfp._snapshot_failure import (
    describe_diffs,
    describe_mismatch,
    describe_missing,
    describe_reason,
)
from pytest_ctxfp._snapshot_text import render_text, snapshot_path, split_text, text_folder, text_path

BASE = "Hi.\n## Rules\n- be exact\n## Facts\n- a\n- b\n## Recent\nuser: hi\n## Question\nHow many?\n"
COMMAND = "pytest tests/test_x.py::test_y --ctx-snapshot-update"


def now(context, **options):
    """Return a context as it is now."""
    return CurrentContext(context, key="TestX::test_y[a]#0", **options)


def text_of(context, **options):
    """Return the text file of a context and its entry."""
    current = now(context, **options)
    return current.text(current.entry()), current.entry()


def check(before, after, *, accept=(), **options):
    """Return the verdict on a context after another one was stored under the same options."""
    return check_snapshot(now(before, **options).entry(), now(after, **options), accept=accept)


def mismatch(before, after, *, accept=(), **options):
    """Return the failure text, with the notes that the stored text gives."""
    verdict = check(before, after, accept=accept, **options)
    texts = changed_texts(verdict, text_of(before, **options)[0])
    return describe_mismatch(verdict, path="tests/__ctxfp__/test_x.ctxfp", command=COMMAND, texts=texts)


def diff(before, after, *, accept=(), **options):
    """Return the line diffs between the stored text of a context and another context."""
    verdict = check(before, after, accept=accept, **options)
    return diff_layers(changed_texts(verdict, text_of(before, **options)[0]))


# File names


def test_paths_beside_the_module():
    """Snapshot file and text folder stand in __ctxfp__ beside the module, under its name."""
    assert snapshot_path(Path("tests/test_x.py")) == Path("tests/__ctxfp__/test_x.ctxfp")
    assert text_folder(Path("tests/test_x.py")) == Path("tests/__ctxfp__/test_x")
    assert snapshot_path(Path("golden.yaml")) == Path("__ctxfp__/golden.yaml.ctxfp")


def test_a_text_file_name_is_readable():
    """Letters and digits of the key stay in the name."""
    name = text_path(Path("d"), "TestX::test_y[a b]#0").name
    assert re.fullmatch(r"TestX-test_y-a-b-0-[0-9a-f]{8}\.md", name)


ODD_KEYS = [
    "CON", "con", "NUL.txt", "COM1", "a", "A", "é", "e\u0301", "\u00fc", "日本", "日本語", "", ".", "..",
    "../x", "a/b", "a\\b", "a:b", "a b", "a  b", "a.", "a ", "-a", "~", "x" * 300, "x" * 301, "X" * 300,
    "\ud800", "\0", "a\nb", "a*b", "a?b", "test[a-b]", "test[a_b]", "test[a.b]",
]  # fmt: skip


def test_odd_keys_get_different_safe_names():
    """Keys that differ only in case, in dropped characters or far beyond any length don't share a file."""
    names = [text_path(Path("d"), key).name for key in ODD_KEYS]
    assert len({name.lower() for name in names}) == len(ODD_KEYS)


@given(st.text(st.characters(codec=None)))
def test_every_file_name_is_safe(key):
    """A name is ASCII, short, no reserved word of Windows, and stays in its folder."""
    path = text_path(Path("d"), key)
    assert path.parent == Path("d")
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,88}-[0-9a-f]{8}\.md", path.name)
    assert path.name.split(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt1"}


# The text


@pytest.mark.parametrize(
    "context", [BASE, BASE[:-1], BASE.encode(), b"## A\n\xff\r\n## B\r\nx", "", "## A", "\n\n"]
)
def test_a_text_is_kept_exactly(context):
    """The text of a text context is the context, byte for byte."""
    assert text_of(context)[0] == (context.encode() if isinstance(context, str) else context)


def test_redacted_and_ignored_parts_in_the_text():
    """Redaction shows in the text, and of an ignored layer only its header line, so that it doesn't churn."""
    data, _ = text_of(BASE, ignore=("Recent",), redact=(("exact", "<word>"),))
    assert data.decode() == BASE.replace("exact", "<word>").replace("user: hi", "(ignored)")


def test_the_text_does_not_churn_with_ignored_layers():
    """The text that an update writes is the same whatever ignored layers hold and however many there are."""
    before = "## A\n1\n## Doc a\nx\n## Doc b\ny\n## Now\nz\n"
    after = "## A\n1\n## Doc c\n\n\n##   Now\nzzz"
    verdict = check(before, after, ignore=("Doc*", "Now"))
    assert verdict.state is SnapshotState.MATCHED
    assert verdict.current.text(verdict.entry()) == text_of(before, ignore=("Doc*", "Now"))[0]


def test_a_mapping_is_readable():
    """The layers of other contexts are told apart by a comment each, and end with a line."""
    data, _ = text_of({"system": "Be exact.", "x-->y": "- a\n", "Recent": "?"}, ignore=("Recent",))
    assert data.decode() == (
        '<!-- layer "system" -->\nBe exact.\n<!-- layer "x-\\u002d>y" -->\n- a\n'
        '<!-- layer "Recent" -->\n(ignored)\n'
    )


def test_layers_that_end_within_a_line_are_told_apart():
    """A splitter may cut within a line; the text then marks the layers instead of gluing lines."""

    def split(text):
        return [
            Layer(key="a", name="a", header="", body=text[:3]),
            Layer(key="b", name="b", header="", body=text[3:]),
        ]

    data, entry = text_of("one two\n", split=split)
    assert data == b'<!-- layer "a" -->\none\n<!-- layer "b" -->\n two\n'
    assert {key: layer.body for key, layer in split_text(data, entry).items()} == {
        "a": b"one",
        "b": b" two\n",
    }


texts = st.lists(
    st.tuples(
        st.sampled_from(["## A", "##  B", "## C\r", "x", ""]), st.sampled_from(["\n", "y\n", "y\r\nz\n", "y"])
    ),
    max_size=6,
).map(lambda pairs: "".join(f"{header}\n{body}" for header, body in pairs))
CONVERSIONS = {
    "as written": lambda data: data,
    "LF to CRLF": lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "CRLF to LF": lambda data: data.replace(b"\r\n", b"\n"),
}


@given(texts | st.dictionaries(st.sampled_from("ABC"), texts), st.sampled_from(sorted(CONVERSIONS)))
def test_the_text_reads_back(context, conversion):
    """A text file is cut into its layers whatever git did to its line ends; exact ones are said to be."""
    data, entry = text_of(context, ignore=("B",))
    layers = split_text(CONVERSIONS[conversion](data), entry)
    contents = now(context, ignore=("B",)).contents
    assert list(layers) == [row.key for row in entry.layers if not row.is_ignored]
    for key, layer in layers.items():
        if layer.is_exact:
            assert layer.body == contents[key][1]
        else:
            assert layer.body.split() == contents[key][1].split()
    if conversion == "as written" or r"\r" not in repr(context):
        assert all(layer.is_exact for layer in layers.values())


@pytest.mark.parametrize(
    "data", [b"", b"x\n", b"\n" * 50, BASE.encode() + b"one more\n", BASE[:-5].encode()[:30]]
)
def test_another_text_is_not_cut(data):
    """A text with another number of lines isn't taken for the text of the snapshot."""
    assert split_text(data, now(BASE).entry()) is None


def test_an_edited_text_is_not_exact():
    """A layer of a text that was edited is given as it stands, and not as what was hashed."""
    layers = split_text(BASE.replace("exact", "quick").encode(), now(BASE).entry())
    assert (layers["Rules"].body, layers["Rules"].is_exact) == (b"- be quick\n", False)
    assert layers["Facts"].is_exact


def test_render_needs_no_content_of_ignored_layers():
    """The text of an entry needs the contents of its other layers only."""
    entry = now("## A\n1\n## B\n2\n", ignore=("B",)).entry()
    assert render_text(entry, {"A": b"## A\n1\n"}, is_text=True) == b"## A\n1\n## B\n(ignored)\n"


# Diffs


def test_a_diff_names_the_layer_and_its_lines():
    """The diff of a changed layer is a unified diff under the layer's name."""
    assert diff(BASE, BASE.replace("- b\n", "- c\n- d\n")) == (
        "--- Facts (stored)\n+++ Facts (now)\n@@ -1,3 +1,4 @@\n ## Facts\n - a\n-- b\n+- c\n+- d"
    )


def test_diffs_survive_line_ends_that_git_changed():
    """A stored text with CRLF line ends gives the same diff."""
    verdict = check(BASE, BASE.replace("exact", "quick"))
    crlf = text_of(BASE)[0].replace(b"\n", b"\r\n")
    assert diff_layers(changed_texts(verdict, crlf)) == diff(BASE, BASE.replace("exact", "quick"))


def test_added_and_removed_layers_are_shown():
    """An added layer is all plus, a removed one all minus, under headers that say so."""
    assert (
        diff(BASE, BASE + "## Notes\nn\n")
        == "--- (not stored)\n+++ Notes (now)\n@@ -0,0 +1,2 @@\n+## Notes\n+n"
    )
    removed = diff(BASE, BASE.replace("## Facts\n- a\n- b\n", ""))
    assert removed == "--- Facts (stored)\n+++ (gone)\n@@ -1,3 +0,0 @@\n-## Facts\n-- a\n-- b"


def test_layers_whose_number_shifted_are_diffed_with_their_own_text():
    """After a document was removed, the next one's diff is against its own stored text."""
    before = "## D\n1\n## D\n2\n2\n## D\n3\n"
    shown = diff(before, "## D\n2\nX\n## D\n3\n")
    assert "-1" in shown
    assert shown.count("+++") == len(check(before, "## D\n2\nX\n## D\n3\n").rejected)


def test_an_unfinished_last_line_shows():
    """A missing line end at the end is visible."""
    assert "-How many?\n+How many? (no line end)" in diff(BASE, BASE[:-1])


def test_only_rejected_changes_are_diffed():
    """Accepted changes aren't shown."""
    after = BASE.replace("exact", "quick").replace("- b\n", "- c\n")
    assert "Rules" not in diff(BASE, after, accept=("Rules",))


def test_moves_have_no_lines():
    """A move alone has no diff, and that is said."""
    verdict = check("## A\n1\n## B\n2\n", "## B\n2\n## A\n1\n")
    texts = changed_texts(verdict, text_of("## A\n1\n## B\n2\n")[0])
    assert describe_diffs(texts, text_file="t.md") == "no diff: layers moved, and no layer's text changed"


def test_without_a_stored_text_there_is_no_diff():
    """Where no text is stored, that is said with its place and the way to get one."""
    text = describe_diffs(None, text_file="tests/__ctxfp__/test_x/a.md")
    assert text.startswith("no diff: no text of this snapshot is stored at tests/__ctxfp__/test_x/a.md")
    assert "--ctx-snapshot-update" in text


def test_another_text_is_diffed_as_a_whole():
    """A stored text that isn't the snapshot's is compared with the whole current text."""
    verdict = check(BASE, BASE.replace("exact", "quick"))
    shown = diff_layers(changed_texts(verdict, BASE.encode() + b"edited\n"))
    assert shown.startswith("--- (whole text) (stored)\n+++ (whole text) (now)\n")
    assert "-edited" in shown


def test_secrets_are_scrubbed_from_the_current_text():
    """What is left out of written texts doesn't appear in a diff either."""
    secrets = Redactor(compile_patterns(["key-[0-9]+"]))
    verdict = check(BASE, BASE.replace("exact", "key-123"), secrets=secrets)
    texts = changed_texts(verdict, text_of(BASE)[0])
    assert "+- be [redacted]" in diff_layers(texts)
    assert "key-123" not in diff_layers(texts)


def test_no_visible_difference_is_said():
    """Where the texts are equal though the hashes aren't, the diff says so."""
    assert "no difference" in diff_layers([LayerTexts(layer="A", before=b"x\n", after=b"x\n")])


def test_control_and_bidi_characters_are_escaped_in_diffs():
    """A diff can't move the cursor, hide text or reorder it."""
    shown = diff(BASE, BASE.replace("exact", "\x1b[2J\u202e\ud800\x00"))
    assert "\\x1b[2J\\u202e" in shown
    assert shown.encode("utf-8").decode().isprintable() is False  # its line feeds
    assert shown.replace("\n", "").isprintable()


def test_diffs_are_capped_in_lines_and_bytes():
    """Long diffs are cut, and say what they leave out."""
    before = "".join(f"## L{i}\n" + f"{i}\n" * 30 for i in range(100))
    shown = diff(before, before.replace("0\n", "1\n"))
    assert len(shown.splitlines()) <= 401
    assert re.fullmatch(r"\.\.\. cut: the rest of 'L\d+' and \d+ more layers", shown.splitlines()[-1])
    wide = [LayerTexts(layer="w", before=b"", after=b"x" * 10_000_000 + b"\n" + b"y\n" * 5)]
    assert len(diff_layers(wide)) < 1_000
    assert len(diff_layers(wide * 200).encode()) < 33_000


def test_one_rewritten_layer_does_not_hide_the_others():
    """The diff of a long layer is cut, so that the next layer still shows."""
    before = "## A\n" + "x\n" * 300 + "## B\n1\n"
    shown = diff(before, before.replace("x", "y").replace("1", "2"))
    assert "more lines of this layer" in shown
    assert shown.endswith("-1\n+2")


@pytest.mark.parametrize("n_kinds", [1, 2, 50, 400, 10**9])
@pytest.mark.parametrize("n_lines", [900, 20_000])
def test_a_diff_is_never_slow(n_kinds, n_lines):
    """Whatever repeats in large layers, a diff takes a moment: beyond a size it lists heads and tails."""
    random.seed(n_lines)
    sides = [
        "".join(f"{random.randrange(n_kinds)} line\n" for _ in range(n_lines - side)).encode()
        for side in (0, 1)
    ]
    start = time.perf_counter()
    shown = diff_layers([LayerTexts(layer="A", before=sides[0], after=sides[1])] * 20)
    assert time.perf_counter() - start < 5
    assert shown.startswith("--- A (stored)\n+++ A (now)\n")


def test_a_layer_too_large_for_a_diff_is_listed():
    """Beyond the size of a diff, the first and last lines of both sides are shown."""
    before = "".join(f"a{i}\n" for i in range(5000)).encode()
    shown = diff_layers([LayerTexts(layer="A", before=before, after=before.replace(b"a", b"b"))]).splitlines()
    assert shown[2] == "-a0"
    assert "-... 4980 lines not shown: too many for a diff" in shown
    assert shown[-1] == "+b4999"


def test_a_small_change_in_a_large_layer_is_diffed():
    """Size alone doesn't prevent a diff: equal beginnings and ends cost nothing."""
    before = "".join(f"a{i}\n" for i in range(50_000)).encode()
    shown = diff_layers([LayerTexts(layer="A", before=before, after=before.replace(b"a777\n", b"X\n"))])
    assert shown.splitlines()[2:] == [
        "@@ -775,7 +775,7 @@", " a774", " a775", " a776", "-a777", "+X", " a778", " a779", " a780",
    ]  # fmt: skip


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_a_diff_is_right(before, after):
    """The lines without a sign and with minus are the old text, those with plus instead the new one."""
    sides = ["".join(f"{line}\n" for line in side).encode() for side in (before, after)]
    lines = diff_layers([LayerTexts(layer="A", before=sides[0], after=sides[1])]).splitlines()[2:]
    if before == after:
        return
    shown_before = [line[1:] for line in lines if line[0] in " -"]
    shown_after = [line[1:] for line in lines if line[0] in " +"]
    hunks = [
        re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line) for line in lines if line[0] == "@"
    ]
    place = 0
    for hunk in hunks:
        start, length = int(hunk[1]), int(hunk[2] or 1)
        begin = start - 1 if length else start
        assert before[begin : begin + length] == shown_before[place : place + length]
        place += length
    assert place == len(shown_before)
    assert sum(int(hunk[4] or 1) for hunk in hunks) == len(shown_after)


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ("a\nb\n", "a\r\nb\r\n", "only line ends"),
        ("a\nb\n", "a\rb\n", "only line ends"),
        ("caf\u00e9", "cafe\u0301", "only Unicode normalisation"),
        ("a b\n", "a  b", "only white space"),
        ("a b\n", "ab\n", "only white space"),
        ("caf\u00e9\n", "cafe\u0301 \r\n", "only white space and Unicode normalisation"),
        ("a\n", "b\n", None),
        ("a\n", "", None),
        ("", " \n", "only white space"),
    ],
)
def test_invisible_changes_are_named(before, after, note):
    """A change that an eye can't see is said to be one."""
    assert name_invisible_change(before.encode(), after.encode()) == note
    assert name_invisible_change(after.encode(), before.encode()) == note


# The failure text


def test_a_failure_reads_like_this():
    """The whole failure text, as a user sees it."""
    after = BASE.replace("Hi.\n", "Hi. \n").replace("exact", "very exact\n- ok") + "## Notes\nn\n"
    after = after.replace("## Question\nHow many?\n", "").replace(
        "## Rules", "## Question\nHow many?\n## Rules"
    )
    assert mismatch(BASE, after, ignore=("Recent",)) == (
        "2 layers changed: (preamble), Rules; 1 added: Notes; 1 moved: Question (+22 bytes)\n"
        "\n"
        "snapshot TestX::test_y[a]#0 in tests/__ctxfp__/test_x.ctxfp\n"
        "  ~ (preamble)  4 -> 5 bytes (+1), 1 line: only white space\n"
        "  ~ Rules       11 -> 21 bytes (+10), 1 -> 2 lines (+1)\n"
        "  + Notes       2 bytes, 1 line\n"
        "  > Question    now after (preamble)\n"
        "  1 layer unchanged, 1 ignored\n"
        "accept with: " + COMMAND
    )


def test_partial_acceptance_names_only_the_other_layer():
    """With an accepted and another change, only the other is named, and that nothing was written is said."""
    text = mismatch(BASE, BASE.replace("exact", "quick").replace("- b", "- cc"), accept=("Rules",))
    assert text.startswith("1 layer changed: Facts (+1 byte)\n\n")
    assert "nothing of this snapshot was written, not even what is accepted: Rules" in text
    assert text.count("Rules") == 1


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BASE.replace("- a\n", "- a\r\n"), "~ Facts  8 -> 9 bytes (+1), 2 lines: only line ends"),
        (
            BASE.replace("## Facts", "##  Facts"),
            "8 bytes, 2 lines: only its header line, '## Facts' -> '##  Facts'",
        ),
        (BASE.replace("## Facts\n- a", "##  Facts\n- c"), "8 bytes, 2 lines, its header line too"),
        (BASE.replace("## Facts\n- a\n- b\n", ""), "- Facts  8 bytes, 2 lines"),
        (
            "## Question\nHow many?\n" + BASE.replace("## Question\nHow many?\n", "")[4:],
            "> Question    now first",
        ),
    ],
)
def test_rows(after, expected):
    """Each kind of change has its row with bytes and lines."""
    assert expected in mismatch(BASE, after)


def test_a_layer_that_was_ignored_says_so():
    """A layer of which no content is stored isn't given a made-up difference."""
    verdict = check_snapshot(now(BASE, ignore=("Recent",)).entry(), now(BASE))
    text = describe_mismatch(verdict, path="p", command=COMMAND)
    assert "~ Recent  9 bytes, 1 line: was ignored until now" in text


@pytest.mark.parametrize("n_layers", [100, 2000])
def test_many_changes_stay_readable(n_layers):
    """A hundred changed layers are a bounded text whose first line still names some."""
    before = "".join(f"## Layer {i:04}\n{i}\n" for i in range(n_layers))
    text = mismatch(before, before.replace("\n## L", " new\n## L"))
    lines = text.splitlines()
    assert lines[0].startswith(f"{n_layers - 1} layers changed: Layer 0000, Layer 0001, ")
    assert f"{n_layers - 5} more" in lines[0]
    assert len(lines) < 30
    assert f"  ... {n_layers - 21} more changes" in lines


def test_the_first_line_is_short_enough_to_begin_with_layers():
    """At 80 columns the first line shows the number of layers and at least one name."""
    reason = describe_reason(check(BASE, BASE.replace("exact", "quick")))
    assert reason == "1 layer changed: Rules (same number of bytes)"


def test_names_cannot_forge_the_text():
    """Control and bidi characters in names are escaped, separators quoted, and long names cut."""
    before = "## A\n"
    after = "## a\x1b[31m\u202eb\n## x, y\n## " + "n" * 500 + "\n## \r\n"
    text = mismatch(before, after)
    assert "\\x1b[31m\\u202eb" in text
    assert '"x, y"' in text
    assert '""' in text
    assert "n" * 41 not in text
    assert text.replace("\n", "").isprintable()
    assert max(map(len, text.splitlines())) < 200


def test_a_missing_snapshot_says_how_to_store_it():
    """The text for a missing snapshot has the reason first and the command last."""
    verdict = check_snapshot(None, now(BASE))
    text = describe_missing(
        verdict, path="tests/__ctxfp__/test_x.ctxfp", command="pytest --ctx-snapshot-create"
    )
    assert (
        text.splitlines()[0] == f"no snapshot is stored for TestX::test_y[a]#0 (5 layers, {len(BASE)} bytes)"
    )
    assert text.splitlines()[-1] == "store it with: pytest --ctx-snapshot-create"


def test_an_inexplicable_change_is_explained():
    """Where no layer differs and the whole does, the reason says what that can be."""
    verdict = check("", {})
    assert verdict.is_inexplicable
    text = describe_mismatch(verdict, path="p", command=COMMAND)
    assert text.startswith("the whole changed and no layer did")
    assert text.endswith(f"accept with: {COMMAND}")
