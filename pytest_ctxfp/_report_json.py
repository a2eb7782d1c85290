"""A run's report as JSON, and back."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._report import CaseReport, RunReport, SampleReport, Usage, fit_answer
from pytest_ctxfp._report_fields import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ctxfp._model import JSONValue

FORMAT = "ctxfp-report"
VERSION = 1

_SURROGATE = re.compile("[\ud800-\udfff]")
_SAMPLE_PLAIN = (
    *("sample", "state", "reason", "origin", "rescored", "score", "key", "cost", "latency_ms", "turns"),
    *("scorer_cost", "recorded_at", "served_model", "estimated_cost"),
)
_RUN_PLAIN = (
    *("complete", "recorded_at", "recorded_by", "dataset", "context_version", "mode"),
    *("selected_cases", "total_cases", "selection"),
)
_CASE_PLAIN = (
    *("file", "position", "model", "variant", "test", "question"),
    *("min_pass_rate", "xfail", "expectation_sha", "scorer"),
)


def report_to_json(report: RunReport) -> str:
    r"""Return the text of a report file, fit for UTF-8: lone surrogates are escaped; ends in a line feed."""
    text = json.dumps(report.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"


def report_from_json(text: str) -> RunReport:
    """Read the text of a report file.

    Raises:
        CtxfpError: no JSON, or as ``RunReport.from_dict``.
    """
    try:
        data = json.loads(text, parse_float=_read_float, parse_constant=_read_float)
    except (ValueError, RecursionError) as error:
        message = f"the report is no JSON ({error}): write it again with --ctx-report=run.json"
        raise CtxfpError(message) from None
    return _read_report(data)


def _read_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        message = f"{text[:40]} is no finite number"
        raise ValueError(message)
    return value


def report_schema() -> dict[str, JSONValue]:
    """Return the JSON schema (draft 2020-12) of report files."""
    schema: dict[str, JSONValue] = json.loads(_schema_text())
    return schema


@lru_cache(maxsize=1)
def _schema_text() -> str:
    from importlib.resources import files

    return files("pytest_ctxfp").joinpath("report.schema.json").read_text(encoding="utf-8")


def report_to_dict(report: RunReport) -> dict[str, JSONValue]:
    """Return a report as JSON; figures stand beside what they are computed from."""
    configs: list[JSONValue] = [
        {"model": model, "variant": variant, **totals.to_dict()}
        for (model, variant), totals in report.configs.items()
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(report, name) for name in _RUN_PLAIN},
        "covered": None if report.covered is None else list(report.covered),
        "notes": list(report.notes),
        "model": ", ".join(dict.fromkeys(model for model, _ in report.configs)),
        **report.totals.to_dict(),
        "spent": report.spent.to_dict(),
        "replayed": report.replayed.to_dict(),
        "configs": configs,
        "manifests": {sha: dict(files) for sha, files in sorted(report.manifests.items())},
        "cases": [case_to_dict(case) for case in report.cases],
        "texts": dict(sorted(report.texts.items())),
    }


def case_to_dict(case: CaseReport) -> dict[str, JSONValue]:
    """Return one case as it stands in a report."""
    asked = [sample for sample in case.all_samples if sample.was_asked]
    stored = [sample for sample in case.all_samples if sample.hit]
    return {
        **case.fold.to_dict(),
        "tags": list(case.tags),
        **{name: getattr(case, name) for name in _CASE_PLAIN},
        "expectation": _copied(case.expectation),
        "context": _copied(case.context),
        "metadata": dict(case.metadata),
        "cache_hits": len(stored),
        "cache_misses": len(asked),
        "spent": Usage.of(asked).to_dict(),
        "replayed": Usage.of(stored).to_dict(),
        "samples_detail": _samples_to_list(case.samples),
        "confirming": _samples_to_list(case.confirming),
    }


def _samples_to_list(samples: Iterable[SampleReport]) -> list[JSONValue]:
    return [_sample_to_dict(sample) for sample in samples]


def _sample_to_dict(sample: SampleReport) -> dict[str, JSONValue]:
    answer, n_bytes = (sample.answer, sample.answer_bytes) if sample.answer_cut else fit_answer(sample.answer)
    return {
        **{name: getattr(sample, name) for name in _SAMPLE_PLAIN},
        "pass": sample.state == "passed",
        "why": list(sample.why),
        "key_parts": _copied(sample.key_parts),
        "answer": answer,
        "answer_cut": sample.answer_cut or n_bytes is not None,
        "answer_bytes": n_bytes,
    }


def _copied(mapping: Mapping[str, JSONValue] | None) -> JSONValue:
    return None if mapping is None else dict(mapping)


def report_from_dict(data: object) -> RunReport:
    """Read a report back; fields that this version doesn't know are left out.

    Raises:
        CtxfpError: no report, one of another version, a field of a wrong type or a value that is no JSON.
    """
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the report holds what JSON can't ({error}): give what RunReport.to_dict() returned"
        raise CtxfpError(message) from None
    return _read_report(data)


def _read_report(data: object) -> RunReport:
    reader = Reader.of(data, "the report")
    if reader.text("format", "") != FORMAT:
        message = f"this is no report: its format is {reader.value('format')!r}, not {FORMAT!r}"
        raise CtxfpError(message)
    version = reader.value("version")
    if version != VERSION or isinstance(version, bool):
        message = (
            f"the report is of version {version!r}, this program reads version {VERSION}:"
            " write it again with the version installed here"
        )
        raise CtxfpError(message)
    return RunReport(
        cases=tuple(_read_case(entry) for entry in reader.entries("cases")),
        complete=reader.flag("complete", default=False),
        selected_cases=reader.count("selected_cases"),
        total_cases=reader.count("total_cases"),
        selection=reader.text("selection", ""),
        dataset=reader.optional_text("dataset"),
        context_version=reader.optional_text("context_version"),
        recorded_at=reader.optional_text("recorded_at"),
        recorded_by=reader.optional_text("recorded_by"),
        manifests={sha: entry.all_texts() for sha, entry in reader.mappings("manifests").items()},
        covered=None if reader.value("covered") is None else reader.texts("covered"),
        mode=reader.optional_text("mode"),
        texts=reader.text_mapping("texts"),
        notes=reader.texts("notes"),
    )


def case_from_dict(data: object) -> CaseReport:
    """Read one case back.

    Raises:
        CtxfpError: a field of a wrong type.
    """
    return _read_case(Reader.of(data, "the case"))


def _read_case(reader: Reader) -> CaseReport:
    samples = tuple(_read_sample(entry) for entry in reader.entries("samples_detail"))
    if not samples:
        message = f"{reader.place}.samples_detail is empty: a case has at least one sample"
        raise CtxfpError(message)
    return CaseReport(
        id=reader.text("id"),
        file=reader.text("file", ""),
        position=reader.count("position", 0),
        model=reader.text("model", ""),
        variant=reader.optional_text("variant"),
        test=reader.optional_text("test"),
        question=reader.optional_text("question"),
        tags=reader.texts("tags"),
        min_pass_rate=reader.optional_share("min_pass_rate"),
        xfail=reader.optional_text("xfail"),
        expectation_sha=reader.optional_text("expectation_sha"),
        expectation=reader.optional_mapping("expectation"),
        scorer=reader.optional_text("scorer"),
        context=reader.optional_mapping("context"),
        metadata=reader.optional_mapping("metadata") or {},
        samples=samples,
        confirming=tuple(_read_sample(entry) for entry in reader.entries("confirming")),
    )


def _read_sample(reader: Reader) -> SampleReport:
    return SampleReport(
        state=reader.choice("state", ("passed", "failed", "error", "skipped")),
        reason=reader.text("reason", ""),
        sample=reader.count("sample", 0),
        origin=reader.optional_choice("origin", ("hit", "miss", "refreshed", "uncached")),
        rescored=reader.flag("rescored", default=False),
        score=reader.optional_share("score"),
        key=reader.optional_text("key"),
        key_parts=reader.optional_mapping("key_parts"),
        answer=reader.value("answer"),
        answer_cut=reader.flag("answer_cut", default=False),
        answer_bytes=reader.optional_count("answer_bytes"),
        cost=reader.optional_number("cost"),
        latency_ms=reader.optional_count("latency_ms"),
        turns=reader.optional_count("turns"),
        scorer_cost=reader.optional_number("scorer_cost"),
        recorded_at=reader.optional_text("recorded_at"),
        served_model=reader.optional_text("served_model"),
        why=reader.texts("why"),
        estimated_cost=reader.optional_number("estimated_cost"),
    )
