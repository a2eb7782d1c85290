"""``ctxfp capture``: an answer that a person has confirmed, as a candidate for a golden file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.cache import add_command, count
from pytest_ctxfp._cli.files import print_lines
from pytest_ctxfp._cli.reports import read_report
from pytest_ctxfp._cli.yaml_text import quote, write_flow, write_text
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._model import ResultKind
from pytest_ctxfp._redaction import REDACTED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._report import CaseReport, SampleReport

_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A case to be.

    Attributes:
        id: the case's id.
        question: its question.
        inputs: its inputs, where the answer hangs on them.
        tags: its tags.
        kind: what the answer is.
        match: how it would be compared.
        verdict_field: the field that a verdict's case reads.
        expected: what the golden file would say.
    """

    id: str
    question: str
    inputs: Mapping[str, JSONValue]
    tags: tuple[str, ...]
    kind: ResultKind
    match: str
    verdict_field: str
    expected: JSONValue


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    parser = add_command(
        subparsers,
        "capture",
        "print the answer of a run as a golden case, for you to check and paste",
        "ctxfp capture run.json total_orders",
    )
    parser.add_argument("report", metavar="REPORT", help="a report of --ctx-report=run.json")
    parser.add_argument("case", metavar="CASE", help="the case's id")
    parser.add_argument(
        "--golden",
        metavar="FILE",
        help="the golden file of the case: gives its question where the report has none, and says which"
        " case is meant where several files have one of that id",
    )
    parser.set_defaults(run=_capture)


def _capture(arguments: argparse.Namespace) -> int:
    report = read_report(arguments.report)
    name = escape_line(arguments.report)
    found = [case for case in report.cases if case.id == arguments.case]
    if not found:
        message = f"{arguments.report}: no case {arguments.case!r}: it has {_name_some(report.cases)}"
        raise CtxfpError(message)
    golden = None if arguments.golden is None else _find_case(arguments.golden, arguments.case)
    found = _choose(found, arguments.golden)
    answer, notes = choose_answer(found)
    candidate = make_candidate(found, golden, answer)
    lines = case_lines(candidate)
    check_candidate(lines, candidate, answer.answer)
    head = [f"# {note}" for note in (f"from {name}: {notes[0]}", *notes[1:])]
    print_lines([*head, "# check it, then paste it below `cases:`; another id if the old case stays", *lines])
    return 0


def _name_some(cases: Sequence[CaseReport]) -> str:
    names = list(dict.fromkeys(repr(case.id) for case in cases))
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "") if names else "none"


def _find_case(path: str, case_id: str) -> GoldenCase:
    from pytest_ctxfp._golden import load_golden

    golden = next((case for case in load_golden(path).cases if case.id == case_id), None)
    if golden is None:
        message = f"{path}: no case {case_id!r}: name the golden file that has it"
        raise CtxfpError(message)
    return golden


def _choose(found: list[CaseReport], golden: str | None) -> list[CaseReport]:
    """Return the reports of one case, under whatever models; not those of two files with one id."""
    if golden is not None:
        from pytest_ctxfp._cli.project import find_project

        name = find_project().name_of(golden)
        found = [case for case in found if case.file == name] or found
    files = sorted({case.file for case in found})
    if len(files) > 1:
        message = f"{len(files)} golden files have a case {found[0].id!r}: add --golden {files[0]}"
        raise CtxfpError(message)
    return found


def choose_answer(cases: Sequence[CaseReport]) -> tuple[SampleReport, list[str]]:
    """Return the sample with the most frequent answer, of several the earliest, and what to know of it.

    Raises:
        CtxfpError: no sample has an answer that can be written down.
    """
    samples = [sample for case in cases for sample in case.all_samples]
    judged = [sample for sample in samples if sample.state in ("passed", "failed")]
    is_json = _kind_of(cases[0]) is ResultKind.JSON
    usable = [sample for sample in judged if not sample.answer_cut and _has_answer(sample, is_json)]
    if not usable:
        raise _no_answer(cases[0].id, samples, judged)
    by_answer: dict[str, list[SampleReport]] = {}
    for sample in usable:
        by_answer.setdefault(_identity(sample), []).append(sample)
    most = max(by_answer.values(), key=len)
    notes = [_describe_choice(most[0], len(most), len(samples))]
    if len(by_answer) > 1:
        others = len(usable) - len(most)
        notes.append(
            f"the most frequent of {len(by_answer)} different answers; {count(others, 'sample')} gave another"
        )
    if len(usable) < len(samples):
        notes.append(f"{count(len(samples) - len(usable), 'sample')} without a usable answer left out")
    return most[0], notes


def _identity(sample: SampleReport) -> str:
    try:
        return canonical_json(sample.answer)
    except ValueError as error:
        message = f"an answer of the report can't be written as YAML: {error}"
        raise CtxfpError(message) from None


def _describe_choice(sample: SampleReport, n: int, n_samples: int) -> str:
    verdict = f"{sample.state}: {sample.reason}" if sample.reason else sample.state
    given = "its answer" if n_samples == 1 else f"the answer of {n} of {n_samples} samples"
    return escape_line(f"{given} ({verdict})", limit=200)


def _has_answer(sample: SampleReport, is_json: bool) -> bool:
    """Whether there is an answer; null is one where the case asks for JSON and took it for right."""
    return sample.answer is not None or (is_json and sample.state == "passed")


def _no_answer(case_id: str, samples: Sequence[SampleReport], judged: Sequence[SampleReport]) -> CtxfpError:
    if any(sample.answer_cut for sample in judged):
        why = "its answer is longer than a report keeps, and was cut: see ctxfp cache show"
    elif judged:
        why = "no answer of the case's kind was found in what the agent returned"
    else:
        reasons = [sample.reason for sample in samples if sample.reason]
        said = f" ({escape_line(reasons[0], limit=_MAX_SHOWN)})" if reasons else ""
        why = f"it has no answer{said}: run it first"
    return CtxfpError(f"case {case_id!r}: {why}")


def _kind_of(case: CaseReport) -> ResultKind:
    kind = (case.expectation or {}).get("result_kind", "table")
    try:
        return ResultKind(str(kind))
    except ValueError:
        message = f"case {case.id!r}: the report gives its result_kind as {kind!r}: write the report again"
        raise CtxfpError(message) from None


def make_candidate(cases: Sequence[CaseReport], golden: GoldenCase | None, sample: SampleReport) -> Candidate:
    """Return the case that expects a sample's answer.

    Raises:
        CtxfpError: nothing gives its question, or the answer says nothing to be expected.
    """
    case, parts = cases[0], sample.key_parts or {}
    question = parts.get("question", golden.question if golden else None)
    if golden and isinstance(question, str) and REDACTED in question:
        question = golden.question
    if not isinstance(question, str):
        message = f"case {case.id!r}: the report has no question (a run without the cache): add --golden FILE"
        raise CtxfpError(message)
    kind = golden.result_kind if golden else _kind_of(case)
    expectation = case.expectation or {}
    verdict_field = golden.verdict_field if golden else str(expectation.get("verdict_field", "fresh"))
    return Candidate(
        id=case.id,
        question=question,
        inputs=golden.inputs if golden else _inputs_of(parts),
        tags=case.tags,
        kind=kind,
        match=_match_for(kind, sample.answer, str(expectation.get("match", ""))),
        verdict_field=verdict_field,
        expected=_expected_of(case.id, kind, sample.answer, verdict_field),
    )


def _inputs_of(parts: Mapping[str, JSONValue]) -> Mapping[str, JSONValue]:
    params = parts.get("params")
    params = params if isinstance(params, dict) else {}
    view = params.get("case")
    inputs = params.get("inputs", view.get("inputs") if isinstance(view, dict) else None)
    return inputs if isinstance(inputs, dict) else {}


def _match_for(kind: ResultKind, answer: JSONValue, match: str) -> str:
    """Return the strictest mode: what a person confirmed is the whole answer."""
    if kind is ResultKind.VERDICT:
        return "scalar"
    if kind is not ResultKind.TABLE:
        return "exact"
    rows = answer.get("rows") if isinstance(answer, dict) else None
    if isinstance(rows, list) and [len(row) if isinstance(row, list) else 0 for row in rows] == [1]:
        return "scalar"
    return match if match in ("set", "ordered") else "set"


def _expected_of(case_id: str, kind: ResultKind, answer: JSONValue, verdict_field: str) -> JSONValue:
    if kind is ResultKind.VERDICT:
        from pytest_ctxfp._extract import read_verdict_field

        try:
            stated = read_verdict_field(answer, verdict_field)
        except ValueError as error:
            message = f"case {case_id!r}: {error}"
            raise CtxfpError(message) from None
        if stated is None:
            message = f"case {case_id!r}: the answer has no {verdict_field}: nothing to expect"
            raise CtxfpError(message)
        return stated
    if kind is ResultKind.TABLE and isinstance(answer, dict):
        return {name: answer[name] for name in ("columns", "rows") if answer.get(name) is not None}
    return answer


def case_lines(candidate: Candidate) -> list[str]:
    """Return the case as it stands below ``cases:``.

    Example::

          - id: total_orders
            question: "How many orders are there?"
            tags: [easy, orders]
            match: scalar
            expected: {columns: [n], rows: [[99]]}

    Raises:
        CtxfpError: a value that no YAML file can hold.
    """
    try:
        return [f"  {'- ' if not number else '  '}{line}" for number, line in enumerate(_fields(candidate))]
    except ValueError as error:
        message = f"case {candidate.id!r}: its answer can't be written as YAML: {error}"
        raise CtxfpError(message) from None


def _fields(candidate: Candidate) -> list[str]:
    lines = [f"id: {write_text(candidate.id)}", f"question: {quote(candidate.question)}"]
    if candidate.inputs:
        lines.append(f"inputs: {write_flow(dict(candidate.inputs))}")
    if candidate.tags:
        lines.append(f"tags: {write_flow(list(candidate.tags))}")
    if candidate.kind is not ResultKind.TABLE:
        lines.append(f"result_kind: {candidate.kind.value}")
    if candidate.kind is ResultKind.VERDICT:
        lines += [f"verdict_field: {candidate.verdict_field}"] if candidate.verdict_field != "fresh" else []
    else:
        lines.append(f"match: {candidate.match}")
    expected = candidate.expected
    lines.append(f"expected: {quote(expected) if isinstance(expected, str) else write_flow(expected)}")
    return lines


def check_candidate(lines: Sequence[str], candidate: Candidate, answer: JSONValue) -> None:
    """Read the case as a run would, and score the answer by it.

    Raises:
        CtxfpError: it can't be read back as what it was meant to be, or the answer doesn't pass it.
    """
    from pytest_ctxfp._case import read_case
    from pytest_ctxfp._match import score_answer
    from pytest_ctxfp._tree import Fault, Mapping, Sequence, TreeError
    from pytest_ctxfp._yaml import parse_yaml

    faults: list[Fault] = []
    case = None
    try:
        parsed = parse_yaml("\n".join(["cases:", *lines, ""]))
        faults += parsed.faults
        root = parsed.roots[0]
        items = root.entries["cases"] if isinstance(root, Mapping) else None
        if isinstance(items, Sequence):
            case = read_case(items.items[0], faults)
    except TreeError as error:
        faults.append(Fault(None, error.reason))
    if case is None or faults:
        message = (
            f"case {candidate.id!r}: no golden file could hold it: {faults[0].reason if faults else '?'}"
        )
        raise CtxfpError(message)
    comparison = score_answer(case, answer)
    if not comparison.passed:
        message = f"case {candidate.id!r}: the answer would not pass its own case: {comparison.reason}"
        raise CtxfpError(message)
    wanted = (candidate.id, candidate.question, candidate.tags, dict(candidate.inputs))
    if (case.id, case.question, case.tags, dict(case.inputs)) != wanted:
        message = (
            f"case {candidate.id!r}: its id, question, tags or inputs would not be read back as they are"
        )
        raise CtxfpError(message)
