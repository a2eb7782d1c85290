"""The page of a run: what its view model says, and that nothing of a case becomes markup."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from pytest_ctxfp import RunReport, fingerprint_context, gate_reports
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._html import report_to_html
from pytest_ctxfp._html.answers import MAX_ROWS, show_both
from pytest_ctxfp._html.diffs import MAX_DIFFS, DiffBook, diff_texts
from pytest_ctxfp._html.page import build_page
from pytest_ctxfp._html.texts import MAX_TEXT, show_cost, show_text
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_json import report_from_json, report_to_json
from pytest_ctxfp._report_texts import MAX_LAYER_BYTES, MAX_TOTAL_BYTES, keep_texts, read_layer_texts

OLD, NEW = "## Rules\n- cents\n- all\n## Facts\n- a\n", "## Rules\n- euros\n- all\n## Extra\n- b\n"
HOSTILE = (
    '"><img src=x onerror=alert(1)></script><script>alert(2)</script><!-- &amp; \x1b[31m\u202e {{ 7*7 }}'
)


def table(*rows: list[object], columns: tuple[str, ...] = ("id", "n")) -> dict[str, object]:
    """Return a table as it stands in a report."""
    return {"columns": list(columns), "rows": list(rows)}


def make_case(name: str = "total", *, context: str | None = None, **changes: object) -> CaseReport:
    """Return a case with one sample; fields of the sample are given as they are."""
    fields = {"state": "passed", "reason": "as expected", "origin": "miss", "key": "a" * 40, "cost": 0.01}
    of_sample = {name for name in SampleReport.__dataclass_fields__ if name in changes}
    sample = SampleReport(**{**fields, **{name: changes.pop(name) for name in of_sample}})
    fingerprint = None if context is None else fingerprint_context(context).to_dict()
    return CaseReport(**{"id": name, "context": fingerprint, "samples": (sample,), **changes})


def make_run(*cases: CaseReport, texts: str = "", **changes: object) -> RunReport:
    """Return a run of these cases, in their order, which keeps the layers of some text."""
    placed = tuple(replace(case, position=index) for index, case in enumerate(cases))
    return RunReport(cases=placed, texts=read_layer_texts(texts, None), **changes)


def make_pair() -> tuple[RunReport, RunReport]:
    """Return two runs of a case whose context changed, and which fails in the second."""
    parts = {"case_id": "total", "question": "q", "agent_sha": "f" * 40, "model": "m"}
    before = make_case(context=OLD, key="a" * 40, key_parts={**parts, "context_sha": "1"})
    after = make_case(
        context=NEW, key="b" * 40, key_parts={**parts, "context_sha": "2"}, state="failed", reason="off"
    )
    return make_run(before, texts=OLD), make_run(after, texts=NEW)


class Tags(HTMLParser):
    """Collects the elements of a page, with their attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, str] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        """Note that an element ends."""
        del tag
        self._open = ""

    def handle_data(self, data: str) -> None:
        """Note what a script or a style holds."""
        if self._open in ("script", "style"):
            self.raw[self._open] = self.raw.get(self._open, "") + data


def hostile_run() -> tuple[RunReport, RunReport]:
    """Return two runs in which every text that anybody gives is hostile."""
    case = make_case(
        HOSTILE,
        file=HOSTILE,
        model=HOSTILE,
        tags=(HOSTILE,),
        question=HOSTILE,
        xfail=HOSTILE,
        scorer=HOSTILE,
        test=HOSTILE,
        expectation={"match": HOSTILE, "expected": table([HOSTILE, 1], columns=(HOSTILE, "b"))},
        answer=table([HOSTILE, 2], columns=(HOSTILE, "b")),
        state="failed",
        reason=HOSTILE,
        why=(HOSTILE,),
        served_model=HOSTILE,
        key_parts={"agent_sha": HOSTILE, "question": HOSTILE},
        context=f"## {HOSTILE}\n- {HOSTILE}\n",
    )
    changed = replace(case, context=fingerprint_context(f"## {HOSTILE}\n- {HOSTILE}!\n").to_dict())
    texts = {"dataset": HOSTILE, "selection": HOSTILE, "mode": HOSTILE, "notes": (HOSTILE,)}
    before = make_run(case, texts=f"## x\n- {HOSTILE}\n", **texts)
    return before, make_run(changed, texts=f"## x\n- {HOSTILE}!\n", **texts)


def pages() -> dict[str, str]:
    """Return pages of all kinds by name."""
    before, after = make_pair()
    old, new = hostile_run()
    return {
        "empty": report_to_html(RunReport(cases=())),
        "plain": report_to_html(after),
        "gate": report_to_html(after, gate_reports(before, after), before),
        "hostile": report_to_html(new, gate_reports(old, new), old),
    }


@pytest.mark.parametrize("name", ["empty", "plain", "gate", "hostile"])
def test_page_is_closed(name: str) -> None:
    """A page loads nothing, has no inline handler, and only the script and style that its policy names."""
    page = pages()[name]
    tags = Tags(page)
    for tag, attributes in tags.elements:
        assert not {"src", "style", "srcset", "action", "formaction"} & attributes.keys(), tag
        assert not [attribute for attribute in attributes if attribute.startswith("on")], tag
        assert (attributes.get("href") or "#").startswith("#"), attributes
        assert tag not in ("img", "iframe", "link", "object", "embed", "base")
    assert [tag for tag, _ in tags.elements].count("script") == 1
    policy = next(a["content"] for _, a in tags.elements if a.get("http-equiv") == "Content-Security-Policy")
    for tag in ("script", "style"):
        digest = b64encode(sha256(tags.raw[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http://" not in page
    assert "https://" not in page


def test_hostile_texts_are_shown_and_nothing_else() -> None:
    """What a case says is text: markup, templates, terminal escapes and bidi controls in it do nothing."""
    page = pages()["hostile"]
    assert "<img" not in page
    assert "<script>alert" not in page
    assert "49" not in re.sub(
        r"sha256-[^']*|[0-9a-f]{16,}", "", page[page.index("</style>") :].split("<script>")[0]
    )
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\\u202e" in page


def test_every_figure_of_the_run_is_on_it() -> None:
    """The head of the page says mode, agent, model, context, cases, hits, costs and accuracy."""
    run = make_run(
        make_case(
            "a",
            context=OLD,
            model="opus",
            origin="hit",
            rescored=True,
            key_parts={"agent_sha": "f" * 40},
            tags=("x",),
        ),
        make_case("b", context=NEW, model="opus", state="failed", cost=None, tags=("x", "y")),
        make_case("c", state="error", origin=None, key=None, model="opus"),
        mode="auto",
        manifests={"f" * 40: {"a.py": "1", "b.md": "2"}},
        recorded_by="pytest-ctxfp 1.0",
    )
    page = build_page(run)
    figures = {figure.label: f"{figure.value}; {figure.note}" for figure in page.figures}
    assert figures["accuracy"] == "50%; 95% interval 9.5% to 90.5%"
    assert figures["cases"] == "3; 1 passed, 1 failed, 1 error, 0 skipped"
    assert figures["stored answers"] == "1 hit; 1 asked, 1 re-scored"
    assert figures["spent"] == "unknown; 1 answer asked for; the cost of 1 is not known"
    assert figures["saved"] == "0.0100 USD; 1 answer replayed"
    facts = dict(page.facts)
    assert facts["mode"].startswith("auto: ")
    assert facts["agent"] == "ffffffffffff (2 files)"
    assert facts["model"] == "opus"
    assert facts["context"].startswith("2 different, ~")
    assert [(row.name, row.n, row.accuracy) for row in page.tags] == [("x", "2", "50%"), ("y", "1", "0%")]
    assert page.headline == "1 of 3 cases passed"


def test_absent_is_said() -> None:
    """Without baseline, tokens, cost or question the page says so, and shows no zero in their place."""
    run = make_run(make_case(cost=None, latency_ms=None, turns=None))
    page = build_page(run)
    (case,) = page.cases
    assert (case.cost, case.latency, case.turns) == ("unknown", "unknown", "unknown")
    assert (case.cost_key, case.tokens_key, case.question, case.context) == ("", "", None, None)
    assert page.gate is None
    assert "No baseline" in report_to_html(run)
    assert dict(page.facts)["mode"].startswith("unknown")


def test_accuracy_is_never_rounded_to_all() -> None:
    """9,996 of 10,000 is not 100%."""
    cases = [make_case(str(n), state="failed" if n < 4 else "passed", tags=("t",)) for n in range(10_000)]
    page = build_page(make_run(*cases))
    assert page.figures[0].value == "99.9%"
    assert page.tags[0].accuracy == "99.9%"


def test_small_costs_are_not_nothing() -> None:
    """What costs less than is shown is not shown as 0."""
    assert [show_cost(cost) for cost in (0.0, 0.00001, 1234.5, None)] == [
        *("0.0000 USD", "<0.0001 USD", "1,234.5000 USD", "unknown")
    ]


def marks(
    expected: object, actual: object, match: str = "set", **more: object
) -> tuple[list[str], list[str]]:
    """Return what is marked on each side, as ``row.column`` of cells and ``row word`` of rows."""
    sample = SampleReport(state="failed", answer=actual)  # type: ignore[arg-type]
    sides = show_both({"match": match, "expected": expected, **more}, sample)  # type: ignore[dict-item]
    return tuple(  # type: ignore[return-value]
        [
            *(f"{row.number} {row.mark}" for row in side.table.rows if row.mark),
            *(
                f"{row.number}.{n}"
                for row in side.table.rows
                for n, cell in enumerate(row.cells, 1)
                if cell.mark
            ),
        ]
        for side in sides
    )


@pytest.mark.parametrize(
    ("expected", "actual", "more", "wanted"),
    [
        (table(["a", 1], ["b", 2]), table(["b", 2], ["a", 3]), {}, (["1.2"], ["2.2"])),
        (table(["a", 1]), table(["b", 1]), {"match": "ordered"}, (["1.1"], ["1.1"])),
        (table(["a", 1]), table(["a", 1], ["z", 9]), {}, ([], ["2 extra"])),
        (table(["a", 1], ["z", 9]), table(["a", 1]), {}, (["2 missing"], [])),
        (table(["a", 1.0]), table(["a", 1.005]), {"tolerance": {"numeric": 0.01}}, ([], [])),
        (table(["a", 1]), table([2, "a"], columns=("n", "id")), {}, (["1.2"], ["1.1"])),
        (table([1], columns=("n",)), table([2], columns=("n",)), {"match": "scalar"}, (["1.1"], ["1.1"])),
        (table(["a", 1]), table(["a", 1, 2], columns=("x", "y", "z")), {}, ([], [])),
        (table(["a", 1]), {"rows": [["a"], ["b", 2]]}, {}, ([], [])),
        (table(["a", "1"]), table(["a", 10**400]), {}, (["1.2"], ["1.2"])),
    ],
    ids=["set", "ordered", "extra", "missing", "tolerance", "named", "scalar", "width", "ragged", "huge"],
)  # fmt: skip
def test_differing_cells_are_marked(
    expected: object, actual: object, more: dict[str, object], wanted: tuple[list[str], list[str]]
) -> None:
    """A cell is marked where the rules that judged find it wrong, in the row that it belongs to."""
    assert marks(expected, actual, **more) == wanted


def test_right_answers_have_no_marks() -> None:
    """Only what is wrong is marked: a scorer may have let a different table pass."""
    sample = SampleReport(state="passed", answer=table(["a", 2]))
    expected, actual = show_both({"match": "mine", "expected": table(["a", 1])}, sample)
    assert not any(cell.mark for side in (expected, actual) for row in side.table.rows for cell in row.cells)


def test_a_wrong_row_is_shown_however_far_down() -> None:
    """Of a long table the rows that differ are shown, and how many rows are not."""
    rows = [[str(n), n] for n in range(500)]
    wrong = [*rows[:400], ["400", -1], *rows[401:]]
    sample = SampleReport(state="failed", answer=table(*wrong))
    _, actual = show_both({"match": "set", "expected": table(*rows)}, sample)
    assert [row.number for row in actual.table.rows if any(cell.mark for cell in row.cells)] == [401]
    assert len(actual.table.rows) == MAX_ROWS
    assert "50 of 500 rows shown" in actual.table.note


def test_long_texts_are_cut_and_say_so() -> None:
    """The note says how much is shown, of how much, and where the rest is."""
    shown = show_text("x" * 200_000)
    assert len(shown.text) == MAX_TEXT
    assert shown.note == "4,000 of 200,000 characters shown; all of them are in the JSON report"
    assert show_text("x" * MAX_TEXT).note == ""


def test_an_answer_that_the_report_cut_tells_its_length() -> None:
    """Of an answer above 64 kB the page says how long it was and which stored answer has all of it."""
    run = report_from_json(report_to_json(make_run(make_case(answer="é" * 100_000))))
    page = report_to_html(run)
    assert "the answer is 200,002 bytes of JSON, of which 4,000 characters are shown" in page
    assert "a" * 40 + ".json" in page


def test_bar_of_the_layers() -> None:
    """The segments fill the bar by tokens, and one layer has one colour in all cases."""
    contexts = ["## A\n" + "x" * 40 + "\n## B\n" + "y" * 119 + "\n", "## B\nx\n## A\ny\n"]
    first, second = build_page(
        make_run(*(make_case(str(n), context=c) for n, c in enumerate(contexts)))
    ).cases
    assert sum(float(part.width) for part in first.context.segments) == pytest.approx(1000, abs=0.2)
    assert [line.tokens for line in first.context.lines] == ["~11", "~30"]
    colours = [{line.name: line.colour for line in case.context.lines} for case in (first, second)]
    assert colours[0] == colours[1]


def test_counted_tokens_are_no_estimate() -> None:
    """Tokens that were counted stand without a tilde."""
    context = fingerprint_context(OLD, counter=len).to_dict()
    case = build_page(make_run(replace(make_case(), context=context))).cases[0]
    assert case.context.tokens == str(len("- cents\n- all\n") + len("- a\n"))


def test_layers_since_the_baseline() -> None:
    """Each layer says what became of it, with a link to its diff; a removed one is listed too."""
    before, after = make_pair()
    page = build_page(after, gate_reports(before, after), before)
    lines = {line.name: line.change for line in page.cases[0].context.lines}
    assert {name: change.what for name, change in lines.items()} == {
        "Rules": "changed, +0 bytes",
        "Extra": "added",
        "Facts": "removed",
    }
    diffs = {diff.number: diff for diff in page.diffs}
    assert {diffs[change.diff].layer for change in lines.values()} == {"Rules", "Extra", "Facts"}
    rules = diffs[lines["Rules"].diff]
    assert [(row.left.changed, row.right.changed) for row in rules.rows if row.kind == "changed"] == [
        ("cents", "euros")
    ]
    assert rules.cases == ((1, "total"),)
    assert page.cases[0].kind == "context"
    assert page.gate is not None
    assert [line.name for line in page.gate.layers] == [*("Extra (added)", "Facts (removed)", "Rules")]


def test_without_texts_a_change_is_named_all_the_same() -> None:
    """Where texts are not kept, the layer says so in place of a link."""
    before, after = (replace(run, texts={}) for run in make_pair())
    page = build_page(after, gate_reports(before, after), before)
    assert page.diffs == ()
    assert page.cases[0].context.lines[0].change.note == "its texts are not kept in both reports"


def test_one_change_of_many_cases_is_one_diff() -> None:
    """Cases that share a change share its diff, which links to them and counts the others."""
    book = DiffBook({"a" * 16: "x"}, {"b" * 16: "y"})
    numbers = {book.find("L", "a" * 16, "b" * 16, case=(n, f"case{n}")) for n in range(30)}
    assert numbers == {1}
    (diff,) = book.all()
    assert (len(diff.cases), diff.n_more_cases) == (20, 10)


def test_diffs_are_limited() -> None:
    """A page has so many diffs at most, and says of the others why they are not there."""
    book = DiffBook({str(n): str(n) for n in range(MAX_DIFFS + 1)}, {"new": "n"})
    found = [book.find("L", str(n), "new", case=(1, "c")) for n in range(MAX_DIFFS + 1)]
    assert found[-1] is None
    assert found[-2] == MAX_DIFFS
    assert "300 diffs" in book.why_not("0", "new")


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ("a\n" * 30_000, "a\n" * 20_000 + "b\n" * 10_000, "rows shown"),
        ("a\r\n", "a\n", "only line ends differ"),
        ("a b\n", "a  b\n", "only white space differs"),
        ("same", "same", "redacted"),
    ],
    ids=["huge", "line ends", "blanks", "same"],
)
def test_diffs_of_odd_texts(before: str, after: str, note: str) -> None:
    """Texts of many equal lines don't take long, and what no eye can see is said."""
    rows, said = diff_texts(before, after)
    assert note in said
    assert len(rows) <= 400


def test_unchanged_lines_far_from_a_change_are_counted() -> None:
    """Between changes only three lines around each are shown."""
    old = [f"line {n}" for n in range(40)]
    new = [*old[:20], "other", *old[21:]]
    rows, _ = diff_texts("\n".join(old), "\n".join(new))
    assert [row.n_hidden for row in rows if row.kind == "gap"] == [17, 16]
    assert len([row for row in rows if row.kind == "same"]) == 6


def test_texts_kept_in_a_report() -> None:
    """A report keeps the layers of its cases' contexts, each once; a layer above 64 kB it leaves out."""
    big = "x" * MAX_LAYER_BYTES
    context = f"## A\na\n## B\n{big}"
    assert sorted(read_layer_texts(context + "y", None).values()) == ["a\n"]
    texts = read_layer_texts(context, None)
    run = keep_texts(make_run(make_case(context=context), make_case("two", context=context)), texts)
    assert sorted(run.texts.values()) == ["a\n", big]
    assert keep_texts(run, {**texts, "other": "not of any case"}).texts == run.texts


def test_texts_beyond_the_limit_are_counted() -> None:
    """A report keeps 4 MB of texts; a note says how many layers have none."""
    bodies = [
        f"{n:05}" + "x" * (MAX_LAYER_BYTES - 6) + "\n" for n in range(MAX_TOTAL_BYTES // MAX_LAYER_BYTES + 3)
    ]
    cases = [make_case(f"{n}", context=f"## A\n{body}") for n, body in enumerate(bodies)]
    texts = {
        digest: text for body in bodies for digest, text in read_layer_texts(f"## A\n{body}", None).items()
    }
    run = keep_texts(make_run(*cases), texts)
    assert len(run.texts) == len(bodies) - 3
    assert run.notes == ("the texts of 3 layers are not in the report: 4 MB are full",)


def test_lone_surrogates_reach_the_page() -> None:
    """Whatever an id holds, the page is UTF-8."""
    report_to_html(make_run(make_case("\ud800", answer="\udfff", context="## \ud800\n"))).encode("utf-8")


def _nest(depth: int) -> list[object]:
    nested: list[object] = []
    for _ in range(depth):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    "odd",
    [10**5_000, 1e308, float("nan"), _nest(900), _nest(100_000), {"rows": [[]]}, {"rows": [[1], [2, 3]]}],
    ids=["long", "large", "nan", "nested", "nested deep", "no cells", "ragged"],
)
def test_odd_values_are_shown_somehow(odd: object) -> None:
    """A report from anywhere may hold anything: the page is written all the same."""
    case = make_case(
        state="failed",
        answer=odd,
        expectation={"expected": odd, "match": "set", "tolerance": odd, "min_score": odd},
        key_parts={"agent_sha": odd, "question": odd},
    )
    table_case = replace(case, expectation={"expected": {"rows": [[odd, 1]]}, "match": odd})
    context = replace(case, context={"layers": {"A": odd}, "order": odd, "full_hash": odd})
    assert "</html>" in report_to_html(make_run(case, table_case, context))


def test_pages_of_one_report_are_the_same() -> None:
    """Nothing of a page hangs on the time or on the order of sets."""
    assert pages() == pages()


def test_without_jinja2_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(CtxfpError, match=re.escape("pip install 'pytest-ctxfp[html]'")):
        report_to_html(RunReport(cases=()))
