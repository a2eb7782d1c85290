"""``ctxfp fingerprint`` and ``ctxfp diff``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp import (
    ContextFingerprint,
    diff_fingerprints,
    fingerprint_context,
    markdown_layers,
    tag_layers,
)
from pytest_ctxfp._cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEFORE = "Hello\n## Identity\nYou answer.\n## Rules\n- count all\n## Facts\n- a\n- b\n"
AFTER = "Hello\n## Rules\n- count all\n- but tests\n## Identity\nYou answer.\n## Glossary\n- n: number\n"
REQUEST = {"model": "m", "messages": [{"role": "system", "content": "Be kind."}], "temperature": 0}
ESCAPE = "\x1b[31m"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | bytes], str]:
    """A function that writes a file to the current folder and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, data: str | bytes) -> str:
        (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return name

    return write


def refusal(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that a command refuses to work with."""
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ctxfp: ")
    assert err.count("\n") == 1
    return err


def test_fingerprint_is_a_table(write, capsys) -> None:
    """Layers stand in their order with hash, sizes and an estimate of tokens, and the whole at the end."""
    assert main(["fingerprint", write("a.md", BEFORE)]) == 0
    lines = capsys.readouterr().out.splitlines()
    fingerprint = fingerprint_context(BEFORE)
    assert lines[0].split() == ["layer", "hash", "bytes", "lines", "tokens"]
    assert lines[4].split() == ["Facts", fingerprint.layers["Facts"].hash, "8", "2", "~2"]
    assert [line.split()[0] for line in lines[1:5]] == list(fingerprint.order)
    assert lines[5:] == ["", f"whole: {fingerprint.full_hash}, {len(BEFORE)} bytes, ~17 tokens, 4 layers"]


def test_fingerprint_as_json_is_the_dict(write, capsys) -> None:
    """For one file ``--json`` prints what ``to_dict`` returns, for several a list with their names."""
    name = write("a.md", BEFORE)
    assert main(["fingerprint", "--json", name]) == 0
    assert json.loads(capsys.readouterr().out) == fingerprint_context(BEFORE).to_dict()
    assert main(["fingerprint", "--json", name, write("b.md", AFTER)]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"file": "a.md", **fingerprint_context(BEFORE).to_dict()},
        {"file": "b.md", **fingerprint_context(AFTER).to_dict()},
    ]


def test_several_tables_have_titles(write, capsys) -> None:
    """With several files each table stands under the name of its file."""
    assert main(["fingerprint", write("a.md", BEFORE), write("b.md", AFTER)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("a.md:\nlayer ")
    assert "\n\nb.md:\nlayer " in out


@pytest.mark.parametrize(
    ("options", "split"),
    [
        ([], markdown_layers),
        (["--split=markdown", "--level=1"], partial(markdown_layers, level=1)),
        (["--level", "3"], partial(markdown_layers, level=3)),
        (["--fences=opaque"], partial(markdown_layers, fences="opaque")),
        (["--split=tags"], tag_layers),
    ],
)
def test_options_choose_the_splitter(write, capsys, options, split) -> None:
    """Headings of other levels, fenced blocks and tags are split as the functions of that name do."""
    text = "# A\n## B\n### C\n```\n## D\n```\n<rules>\n- x\n</rules>\n"
    assert main(["fingerprint", "--json", *options, write("a.md", text)]) == 0
    assert json.loads(capsys.readouterr().out) == fingerprint_context(text, split=split).to_dict()


@pytest.mark.parametrize("context", [REQUEST, REQUEST["messages"], {"Rules": "- x\n", "Facts": "- y\n"}])
def test_messages_are_read_from_json(write, capsys, context) -> None:
    """With ``--split=messages`` a request, a list of messages and a mapping are what they are in Python."""
    for data in (json.dumps(context).encode(), b"\xef\xbb\xbf" + json.dumps(context, indent=3).encode()):
        assert main(["fingerprint", "--json", "--split=messages", write("a.json", data)]) == 0
        assert json.loads(capsys.readouterr().out) == fingerprint_context(context).to_dict()


def test_a_request_taken_for_text_is_mentioned(write, capsys) -> None:
    """A JSON file is text like any other; where it holds a chat request, a line on stderr says so."""
    text = json.dumps(REQUEST)
    assert main(["fingerprint", "--json", write("a.json", text)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == fingerprint_context(text).to_dict()
    assert "--split=messages" in err
    for args in (["--split=markdown", "a.json"], [write("b.json", '{"a": 1}')], [write("a.md", text)]):
        assert main(["fingerprint", *args]) == 0
        assert capsys.readouterr().err == ""


def test_bytes_are_hashed_as_they_are(write, capsys) -> None:
    """A context needs no UTF-8, and neither line ends nor a byte order mark are lost."""
    data = b"\xef\xbb\xbfa\r\n## \xff\r\n\xfe"
    assert main(["fingerprint", "--json", write("a.md", data)]) == 0
    assert json.loads(capsys.readouterr().out) == fingerprint_context(data).to_dict()


def test_standard_input_is_a_context(ctxfp) -> None:
    """``-`` is standard input, for both commands."""
    done = ctxfp("fingerprint", "--json", "-", input=BEFORE)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == fingerprint_context(BEFORE).to_dict()


def test_identical_contexts(write, capsys) -> None:
    """Exit status 0 says that both are the same, and the line says what that means."""
    assert main(["diff", write("a.md", BEFORE), write("b.md", BEFORE)]) == 0
    assert capsys.readouterr().out == "context identical: a difference in a metric is noise\n"


def test_diff_names_layers_and_lines(write, capsys) -> None:
    """Exit status 1: summary, a row a layer with its mark, and the lines that differ."""
    assert main(["diff", write("a.md", BEFORE), write("b.md", AFTER)]) == 1
    assert capsys.readouterr().out == (
        "context differs: changed: Rules; added: Glossary; removed: Facts; reordered: Identity (+19 bytes)\n"
        "\n"
        "  ~ Rules     12 -> 24 bytes (+12), 1 -> 2 lines (+1), ~+3 tokens\n"
        "  + Glossary  12 bytes, 1 line\n"
        "  - Facts     8 bytes, 2 lines\n"
        "  > Identity  now after Rules\n"
        "  1 layer unchanged\n"
        "\n"
        "--- Rules (a.md)\n"
        "+++ Rules (b.md)\n"
        "@@ -1,2 +1,3 @@\n"
        " ## Rules\n"
        " - count all\n"
        "+- but tests\n"
        "--- (not in a.md)\n"
        "+++ Glossary (b.md)\n"
        "@@ -0,0 +1,2 @@\n"
        "+## Glossary\n"
        "+- n: number\n"
        "--- Facts (a.md)\n"
        "+++ (not in b.md)\n"
        "@@ -1,3 +0,0 @@\n"
        "-## Facts\n"
        "-- a\n"
        "-- b\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "row"),
    [
        ("## A\nx\n", "##  A\nx\n", r"  ~ A  2 bytes, 1 line: only its header line, '## A' -> '##  A'"),
        ("## A\nx\ny\n", "## A\nx\r\ny\r\n", "  ~ A  4 -> 6 bytes (+2), 2 lines, ~+1 tokens: only line ends"),
        ("## A\n", "a\n## A\n", "  + (preamble)  2 bytes, 1 line"),
        ("## D\n1\n## D\n2\n", "## D\n2\n", "  - D  2 bytes, 1 line"),
        ("## A\n1\n## B\n2\n", "## B\n2\n## A\n1\n", "  > A  now after B"),
    ],
)
def test_rows_are_those_of_snapshots(write, capsys, before, after, row) -> None:
    """What is said of a layer is what a failed snapshot says of it."""
    assert main(["diff", write("a.md", before), write("b.md", after)]) == 1
    assert row in capsys.readouterr().out.splitlines()


def test_diff_as_json_is_the_difference(write, capsys) -> None:
    """``--json`` has the parts of a ContextDiff by name."""
    assert main(["diff", "--json", write("a.md", BEFORE), write("b.md", AFTER)]) == 1
    found = json.loads(capsys.readouterr().out)
    diff = diff_fingerprints(fingerprint_context(BEFORE), fingerprint_context(AFTER))
    assert found["summary"] == diff.summary()
    assert found["changed"] == [
        {
            "layer": "Rules",
            "before_bytes": 12,
            "after_bytes": 24,
            "before_lines": 1,
            "after_lines": 2,
            "header_changed": False,
        }
    ]
    assert (found["added"], found["removed"], found["moved"]) == (["Glossary"], ["Facts"], ["Identity"])
    assert (found["identical"], found["reordered"], found["byte_delta"]) == (False, True, diff.byte_delta)


def test_a_fingerprint_stands_for_a_context(write, capsys) -> None:
    """Either side may be what ``fingerprint --json`` printed; then no lines are shown, and it says so."""
    fingerprint = json.dumps(fingerprint_context(BEFORE).to_dict())
    names = write("a.json", fingerprint), write("b.md", AFTER)
    assert main(["diff", *names]) == 1
    out = capsys.readouterr().out
    assert "  ~ Rules     12 -> 24 bytes (+12)" in out
    assert out.endswith("\nno line diffs: a.json holds a fingerprint, not the text\n")
    assert main(["diff", *reversed(names)]) == 1
    assert "  - Glossary  " in capsys.readouterr().out
    assert main(["diff", "a.json", write("a.md", BEFORE)]) == 0
    assert main(["diff", "a.json", "a.json"]) == 0


def test_a_fingerprint_that_an_old_powershell_marked_is_read(write, capsys) -> None:
    """A byte order mark before a fingerprint does no harm."""
    fingerprint = json.dumps(fingerprint_context(BEFORE).to_dict())
    names = write("a.json", b"\xef\xbb\xbf" + fingerprint.encode()), write("a.md", BEFORE)
    assert main(["diff", *names]) == 0
    assert "identical" in capsys.readouterr().out


def test_a_difference_outside_of_layers_is_explained(write, capsys) -> None:
    """Where no layer differs and the whole does, that is said instead of naming a layer."""
    entries = write("a.json", json.dumps({"A": "x"}))
    assert main(["fingerprint", "--json", "--split=messages", entries]) == 0
    data = json.loads(capsys.readouterr().out)
    other = ContextFingerprint.from_dict({**data, "sha256": "0" * 64})
    names = write("one.json", json.dumps(data)), write("two.json", json.dumps(other.to_dict()))
    assert main(["diff", *names]) == 1
    out = capsys.readouterr().out
    assert "no layer differs, but the whole does" in out
    assert "no line diffs: one.json and two.json hold fingerprints, not the text" in out


def test_requests_are_diffed_by_message(write, capsys) -> None:
    """With ``--split=messages`` the layers of a diff are messages and tools, whatever the file's layout."""
    later = {**REQUEST, "messages": [{"role": "system", "content": "Be brief."}]}
    names = write("a.json", json.dumps(REQUEST)), write("b.json", json.dumps(later, indent=2))
    assert main(["diff", "--split=messages", *names]) == 1
    out = capsys.readouterr().out
    assert "  ~ system  8 -> 9 bytes (+1), 1 line" in out
    assert "+Be brief. (no line end)" in out
    write("b.json", json.dumps(REQUEST, indent=2))
    assert main(["diff", "--split=messages", *names]) == 0


@pytest.mark.parametrize("command", ["fingerprint", "diff"])
def test_two_standard_inputs_are_refused(capsys, command) -> None:
    """Standard input can be read once: a second ``-`` is wrong usage."""
    assert "standard input" in refusal([command, "-", "-"], capsys)


def test_closed_standard_input_is_refused(capsys, monkeypatch) -> None:
    """Where there is no standard input, that is said."""
    monkeypatch.setattr(sys, "stdin", None)
    assert "closed" in refusal(["fingerprint", "-"], capsys)


@pytest.mark.parametrize("command", [["fingerprint"], ["diff", "a.md"]])
@pytest.mark.parametrize("name", [".", "missing.md", "a.md/b", "nul\0.md"])
def test_unreadable_files_are_refused(write, capsys, command, name) -> None:
    """A folder, a missing file and a name that can't be one are a line with that name, and exit status 2."""
    write("a.md", BEFORE)
    shown = name.replace("\0", "\\x00")
    assert refusal([*command, name], capsys).startswith(f"ctxfp: {shown}: can't be read (")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# text", "no JSON: Expecting value"),
        (b"", "no JSON: Expecting value"),
        (b'{"a": "\xff"}', "not UTF-8 (byte 7)"),
        (b"[" * 200_000, "JSON nested too deep"),
        (b'{"messages": [NaN]}', "no JSON: NaN is no JSON number"),
        (b'{"model": 1e999, "messages": []}', "Out of range"),
        (b'{"model": ' + b"9" * 5_000 + b', "messages": []}', "Exceeds the limit"),
        (b'{"messages": ' + b"[" * 500 + b"]" * 500 + b"}", "nested more than 128 levels"),
        (b"[1, 2]", "neither a chat request, nor"),
        (b'"text"', "neither a chat request, nor"),
        (b'{"A": 1}', "must map names to texts"),
    ],
)
def test_what_is_no_request_is_refused(write, capsys, data, reason) -> None:
    """With ``--split=messages`` whatever is no request is a line that names the file."""
    message = refusal(["fingerprint", "--split=messages", write("a.json", data)], capsys)
    assert message.startswith("ctxfp: a.json: ")
    assert reason in message


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layers": []}, "'layers' in a fingerprint must be an object"),
        ({"order": ["A", "A"]}, "order must name each of the layers once"),
        ({"total_bytes": -1}, "'total_bytes' in a fingerprint must be a whole number"),
        ({"order": None}, "'order' in a fingerprint must be a list of texts"),
    ],
)
def test_a_broken_fingerprint_is_refused(write, capsys, change, reason) -> None:
    """A fingerprint with a fault is not taken for a text."""
    data = {**fingerprint_context("## A\n").to_dict(), **change}
    message = refusal(["diff", write("a.json", json.dumps(data)), write("b.md", "")], capsys)
    assert message.startswith("ctxfp: a.json: ")
    assert reason in message


def test_several_fingerprints_are_no_side_of_a_diff(write, capsys) -> None:
    """The list that ``fingerprint --json`` prints for several files is refused, not taken for a text."""
    data = fingerprint_context(BEFORE).to_dict()
    name = write("all.json", json.dumps([{"file": "a", **data}, {"file": "b", **data}]))
    assert "holds the fingerprints of 2 files" in refusal(["diff", name, write("a.md", BEFORE)], capsys)


@pytest.mark.parametrize(
    "options", [["--split=tags", "--level=1"], ["--split=messages", "--fences=split"]], ids=str
)
@pytest.mark.parametrize("command", ["fingerprint", "diff"])
def test_options_without_use_are_refused(capsys, command, options) -> None:
    """Options of headings beside another split would do nothing, so they are wrong usage."""
    assert "is about headings" in refusal([command, *options, "a.md", "b.md"], capsys)


@pytest.mark.parametrize("options", [["--level=0"], ["--level=x"], ["--split=words"], ["--fences=no"]])
def test_wrong_words_are_usage_errors(capsys, options) -> None:
    """A level or word that isn't one ends with the usage and exit status 2."""
    with pytest.raises(SystemExit) as stop:
        main(["fingerprint", "a.md", *options])
    assert stop.value.code == 2
    assert "usage: ctxfp fingerprint" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["fingerprint", "diff"])
def test_help_has_an_example(capsys, command) -> None:
    """The help shows the command as one types it, and says what a file is taken for."""
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"\n  ctxfp {command} " in out
    assert "A file is text, whatever its suffix" in out


def test_nothing_of_a_file_steers_the_terminal(tmp_path, ctxfp) -> None:
    """Names and texts are escaped: no control sequence of a file or of ours is printed."""
    (tmp_path / "a.md").write_text(f"## A{ESCAPE}\nx{ESCAPE}\n## \u202eB\n")
    (tmp_path / f"b{ESCAPE}.md").write_text("## C\ny\r\x07\n")
    for done in (
        ctxfp("fingerprint", "a.md", f"b{ESCAPE}.md"),
        ctxfp("diff", "a.md", f"b{ESCAPE}.md"),
        ctxfp("diff", "a.md", f"missing{ESCAPE}\n.md"),
    ):
        assert not {"\x1b", "\r", "\x07", "\u202e"} & set(done.stdout + done.stderr)
        assert "\\x1b[31m" in done.stdout + done.stderr


def test_terminals_of_any_encoding_will_do(tmp_path, ctxfp) -> None:
    """What the terminal's encoding can't show is escaped, on stdout and on stderr."""
    (tmp_path / "a.md").write_text("## Größe\n≤ 3\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("## Größe\n≤ 4\n", encoding="utf-8")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    assert "Gr\\xf6\\xdfe" in ctxfp("fingerprint", "a.md", env=ascii_only).stdout
    done = ctxfp("diff", "a.md", "b.md", env=ascii_only)
    assert (done.returncode, done.stderr) == (1, "")
    assert "-\\u2264 3" in done.stdout
    assert ctxfp("fingerprint", "größe.md", env=ascii_only).stderr.startswith("ctxfp: gr\\xf6\\xdfe.md: ")
    assert "Größe" in ctxfp("fingerprint", "a.md").stdout


@pytest.mark.parametrize(
    ("command", "code"),
    [(["fingerprint", "a.md"], 0), (["diff", "a.md", "b.md"], 1)],
    ids=["fingerprint", "diff"],
)
def test_a_reader_that_stops_is_no_error(tmp_path, command, code) -> None:
    """``| head -1`` ends the command without a word, and the answer stays what it is."""
    (tmp_path / "a.md").write_text("".join(f"## Layer {number}\nx\n" for number in range(20_000)))
    (tmp_path / "b.md").write_text("".join(f"## Layer {number}\ny\n" for number in range(20_000)))
    program = "import sys; from pytest_ctxfp._cli import main; sys.exit(main())"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *command],
            cwd=tmp_path,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")
