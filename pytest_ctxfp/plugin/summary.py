"""The summary of a run as lines of text; nothing here prints."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_ctxfp._backend import mask_url
from pytest_ctxfp._display import escape_line, name_reason, plural, shorten_time
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._stats import format_interval, format_passes, format_percent
from pytest_ctxfp.plugin.case_folds import SummedCase, fold_cases
from pytest_ctxfp.plugin.options import DEFAULT_MODEL
from pytest_ctxfp.plugin.summary_lines import block, capped

if TYPE_CHECKING:
    from pytest_ctxfp._fold import CaseFold
    from pytest_ctxfp._records import CaseRecord
    from pytest_ctxfp._suite import Identity
    from pytest_ctxfp.plugin.facts import RunFacts
    from pytest_ctxfp.plugin.settings import Settings

_SHORT_SHA = 12
_MAX_NAME = 60


def render_summary(
    facts: RunFacts,
    settings: Settings,
    identity: Identity,
    *,
    verbose: bool = False,
    complete: bool = True,
) -> list[str]:
    """Return the lines of the summary.

    Args:
        facts: what the run's reports said.
        settings: what flags and ini options say.
        identity: what makes the agent what it is.
        verbose: say of each case why its answer was missing.
        complete: every test that was to run has run to its end.

    Example::

        cache      auto, .ctxfp/traces
        identity   agent 3f9c1a2b4d5e (4 files), model offline-1, env API_BASE, packages openai 1.2
        cases      25: 24 passed, 1 failed
        answers    23 hit (1 re-scored), 2 miss; oldest hit 2026-11-29 18:22:04 UTC
        missed     1 context: Business Rules
                   1 new case
        re-scored  total_orders: passed -> failed
        cost       spent 0.0200 USD in 2 calls, saved 0.4400 USD
        scorers    spent 0.0010 USD in 1 call, saved 0.0110 USD
        accuracy   96% (24 of 25; 95% interval 80.5% to 99.3%)
          orders   90% (9 of 10; 95% interval 59.6% to 98.2%)
    """
    samples, calls = facts.cases(), facts.helper_calls()
    both = [*samples, *calls]
    cases = fold_cases(facts)
    blocks = [
        ("cache", _describe_cache(settings)),
        ("identity", [_describe_identity(both, identity, settings)]),
        ("selected", _describe_selection(facts)),
        ("incomplete", [] if complete else ["the run was interrupted: what did not run is in no figure"]),
        ("cases", [_count_cases(cases)] if cases else []),
        ("flaky", _list_flaky(cases)),
        ("answers", [_count_answers(samples)] if samples else []),
        ("confirming", _count_confirming(facts.confirming())),
        ("audit", [escape_line(line) for line in describe_audit(facts.audits())]),
        ("variants", [escape_line(s.removeprefix("variants ")) for s in describe_shared_contexts(facts)]),
        ("calls", [f"{len(calls)}: {_count_answers(calls)}"] if calls else []),
        ("missed", [*_count_reasons(both), *(_list_missed(both) if verbose else ())]),
        ("not asked", _list_unasked(both)),
        ("re-scored", _list_rescored(samples)),
        ("served", _list_served(both)),
        ("cost", [_sum_costs(facts.calls(), [*both, *facts.confirming()])]),
        ("scorers", _sum_judge_costs(facts.judged(), samples)),
        ("accuracy", _measure_accuracy(cases) if cases else []),
        ("warning", _list_problems(both)),
    ]
    return [line for label, lines in blocks for line in block(label, lines)]


def _describe_cache(settings: Settings) -> list[str]:
    if settings.mode is CacheMode.OFF:
        return ["off: every answer was asked for and none was stored (--ctx-cache uses the cache)"]
    return [escape_line(f"{settings.mode.value}, {_name_place(settings)}")]


def _name_place(settings: Settings) -> str:
    place = settings.cache_dir
    if isinstance(place, str):
        return mask_url(place)
    return str(place.relative_to(settings.rootdir) if place.is_relative_to(settings.rootdir) else place)


def _describe_identity(cases: list[CaseRecord], identity: Identity, settings: Settings) -> str:
    parts = []
    if identity.agent is not None:
        parts.append(
            f"agent {identity.agent_sha[:_SHORT_SHA]} ({plural(len(identity.agent.entries), 'file')})"
        )
    if identity.context is not None:
        files = plural(len(identity.context.entries), "file")
        parts.append(f"context {identity.context_sha[:_SHORT_SHA]} ({files})")
    models = sorted({record["model"] for record in cases if "model" in record}) or [settings.model]
    unset = " (ini ctx_model names it)" if models == [DEFAULT_MODEL] else ""
    parts.append(f"model {', '.join(models)}{unset}")
    if identity.env:
        parts.append(f"env {', '.join(identity.env)}")
    if identity.packages:
        parts.append("packages " + ", ".join(f"{name} {v}" for name, v in identity.packages.items()))
    if identity.data is not None:
        parts.append(f"data {identity.data.sha[:_SHORT_SHA]} ({plural(len(identity.data.entries), 'file')})")
    served = sorted({record["served_model"] for record in cases if "served_model" in record})
    if served:
        parts.append(f"served by {', '.join(served)}")
    return escape_line(", ".join(parts))


def _describe_selection(facts: RunFacts) -> list[str]:
    """Say how many of the collected cases run: ``12 of 53 cases (tags orders)``."""
    selection = facts.selection
    if selection is None or selection["selected"] == selection["total"]:
        return []
    counts = f"{selection['selected']} of {selection['total']} cases"
    note = selection["note"]
    return [escape_line(note if note.startswith(counts) else f"{counts} {note}".strip())]


def _count_cases(cases: list[SummedCase]) -> str:
    counts = Counter(map(_fate, cases))
    order = ("passed", "failed", "failed as expected", "error", "skipped", "refused")
    parts = [
        plural(counts[fate], fate) if fate == "error" else f"{counts[fate]} {fate}"
        for fate in order
        if counts[fate] or fate in {"passed", "failed"}
    ]
    return f"{len(cases)}: {', '.join(parts)}"


def _fate(case: SummedCase) -> str:
    state = case.fold.state
    if state == "failed" and case.is_xfailed:
        return "failed as expected"
    return "refused" if state == "skipped" and case.is_refused else state


def _list_flaky(cases: list[SummedCase]) -> list[str]:
    """Name the cases whose samples disagree: ``total_orders: 2 of 3 passed``."""
    several = len({case.label for case in cases if case.fold.has_verdict}) > 1
    return capped(
        [
            f"{_shorten(case.fold.id)}{f' [{_shorten(case.label)}]' if several else ''}:"
            f" {case.fold.passes} of {case.fold.samples} passed"
            for case in cases
            if case.fold.flaky
        ]
    )


def _count_confirming(records: list[CaseRecord]) -> list[str]:
    """Say what was asked for only because a case got worse under a changed key."""
    if not records:
        return []
    cases = {(record["id"], record["model"], record.get("variant")) for record in records}
    return [f"{plural(len(records), 'further answer')} to {plural(len(cases), 'case')} that got worse"]


def describe_shared_contexts(facts: RunFacts) -> list[str]:
    """Say of how many cases several variants have the same context, so that what they differ in is noise.

    Example::

        variants a and b have the same context in 2 cases: one answer stands for all
    """
    shared: Counter[tuple[str, str]] = Counter()
    for records in _records_by_key(facts).values():
        labels = sorted({record["variant"] for record in records})
        if len(labels) > 1:
            n_asked = sum(record["state"] != "hit" for record in records)
            meaning = "one answer stands for all" if n_asked < 2 else "what their answers differ in is noise"
            shared[" and ".join(labels), meaning] += 1
    return [
        f"variants {labels} have the same context in {plural(n, 'case')}: {meaning}"
        for (labels, meaning), n in sorted(shared.items())
    ]


def _records_by_key(facts: RunFacts) -> dict[tuple[str, str, str], list[CaseRecord]]:
    """Return the first samples of cases with variants by file, model and key."""
    groups: dict[tuple[str, str, str], list[CaseRecord]] = {}
    for (nodeid, _), records in facts.by_case().items():
        for record in records:
            if "variant" in record and "key" in record and not record["sample"]:
                place = (nodeid.partition("::")[0], record["model"], record["key"])
                groups.setdefault(place, []).append(record)
    return groups


def describe_audit(audits: list[CaseRecord]) -> list[str]:
    """Say how many stored answers got the same verdict when they were asked for again."""
    if not audits:
        return []
    scored = [record for record in audits if "passed" in record]
    n_agreed = sum(record["passed"] == record["passed_then"] for record in scored)
    n_errors = len(audits) - len(scored)
    errors = f", {n_errors} ended with an error" if n_errors else ""
    lines = [
        f"{n_agreed} of {len(scored)} stored answers that were asked again have the same verdict{errors}"
    ]
    for record in scored:
        if record["passed"] != record["passed_then"]:
            then, now = (
                "passed" if passed else "failed" for passed in (record["passed_then"], record["passed"])
            )
            lines.append(f"{record['id']}: stored {then}, asked again {now}")
    return lines


def describe_other_calls(facts: RunFacts) -> list[str]:
    """Say what calls cost that stand in no case of a report, so that its figures are not taken for all.

    Example::

        2 calls stand in no case (failed, repeated, an audit's or a test's own): spent 0.5000 USD
    """
    told = {id(record) for records in facts.by_case().values() for record in records if "passed" in record}
    others = [record for record in facts.calls() if id(record) not in told]
    if not others:
        return []
    n_calls = sum(record["calls"] for record in others)
    stand = "stands" if n_calls == 1 else "stand"
    which = "failed, repeated, an audit's or a test's own"
    return [f"{plural(n_calls, 'call')} {stand} in no case ({which}): spent {_total(others)}"]


def _count_answers(cases: list[CaseRecord]) -> str:
    counts = Counter(record["state"] for record in cases)
    n_rescored = sum(record.get("rescored", False) for record in cases)
    n_corrupt = sum("corrupt" in record for record in cases)
    parts = [f"{counts['hit']} hit" + (f" ({n_rescored} re-scored)" if n_rescored else "")]
    parts.append(f"{counts['miss'] + counts['refused']} miss")
    parts += [f"{counts[state]} {state}" for state in ("refreshed", "uncached") if counts[state]]
    if counts["rerun"]:
        parts.append(f"{counts['rerun']} asked again before a miss")
    if n_corrupt:
        parts.append(f"{n_corrupt} corrupt")
    if counts["error"]:
        parts.append(plural(counts["error"], "error"))
    dates = [
        record["recorded_at"] for record in cases if record["state"] == "hit" and "recorded_at" in record
    ]
    return ", ".join(parts) + (f"; oldest hit {shorten_time(min(dates))}" if dates else "")


def _count_reasons(records: list[CaseRecord]) -> list[str]:
    """Group the misses by why: ``2 context: Current Facts``; and what the refused ones would cost."""
    reasons = Counter("; ".join(record["why"]) for record in records if record.get("why"))
    lines = capped([f"{n} {escape_line(name_reason(reason, n))}" for reason, n in reasons.most_common()])
    refused = [record for record in records if record["state"] == "refused"]
    return [*lines, f"asking would cost {_estimate(refused)}"] if refused else lines


def _estimate(refused: list[CaseRecord]) -> str:
    amount = _total(refused, "estimated_cost")
    return amount if amount.startswith("an ") else f"about {amount}"


def _list_missed(records: list[CaseRecord]) -> list[str]:
    """Say of each case why its answer was missing, with figures."""
    return [
        f"  {_name(record)}: {escape_line('; '.join(record['why_detail']))}"
        for record in records
        if record.get("why_detail")
    ]


def _list_unasked(records: list[CaseRecord]) -> list[str]:
    """Say what a limit kept from being asked: ``2 --ctx-max-calls=1 is reached: orders, customers``."""
    by_limit: dict[str, list[str]] = {}
    for record in records:
        if "limit" in record:
            by_limit.setdefault(record["limit"].removeprefix("not asked: "), []).append(_name(record))
    return [
        f"{len(names)} {escape_line(limit)}: {', '.join(capped(sorted(names)))}"
        for limit, names in by_limit.items()
    ]


def _list_served(records: list[CaseRecord]) -> list[str]:
    """Say where the provider ran another model than when an answer was recorded, under the same label.

    Example::

        2 answers now by stub-b, recorded by stub-a
        5 hits recorded by stub-a, though stub-1 is served by stub-b now
    """
    changed = Counter(
        (record["served_model"], record["served_then"])
        for record in records
        if record["state"] != "hit"
        and record.get("served_model", record.get("served_then")) != record.get("served_then")
        and "served_then" in record
    )
    now: dict[str, set[str]] = {}
    for record in records:
        if record["state"] != "hit" and "served_model" in record:
            now.setdefault(record["model"], set()).add(record["served_model"])
    stale = Counter(
        (record["model"], record["served_model"])
        for record in records
        if record["state"] == "hit" and "served_model" in record
        if record["served_model"] not in now.get(record["model"], {record["served_model"]})
    )
    lines = [f"{plural(n, 'answer')} now by {new}, recorded by {old}" for (new, old), n in changed.items()]
    for (model, old), n in stale.items():
        served = ", ".join(sorted(now[model]))
        lines.append(f"{plural(n, 'hit')} recorded by {old}, though {model} is now served by {served}")
    return capped([escape_line(line) for line in lines])


def _list_rescored(cases: list[CaseRecord]) -> list[str]:
    """List hits whose verdict is another than when the answer was recorded; count those that kept theirs."""
    hits = [record for record in cases if record["state"] == "hit"]
    changed = [record for record in hits if record.get("passed_then") not in {None, record["passed"]}]
    rescored = [record for record in hits if record["rescored"]]
    lines = [
        f"{_name(record)}: {_verdict(record['passed_then'])} -> {_verdict(record['passed'])}"
        for record in changed
    ]
    n_kept = sum(record not in changed for record in rescored)
    return [*capped(lines), *([f"{n_kept} with the verdict they had"] if n_kept else [])]


def _sum_costs(calls: list[CaseRecord], answers: list[CaseRecord]) -> str:
    hits = [record for record in answers if record["state"] == "hit"]
    return f"spent {_total(calls)} in {plural(len(calls), 'call')}, saved {_total(hits)}"


def _sum_judge_costs(judged: list[CaseRecord], cases: list[CaseRecord]) -> list[str]:
    """Return what cached scorers cost; nothing where none was needed."""
    hits = [record for record in cases if record.get("judge_hit")]
    if not judged and not hits:
        return []
    n_calls = plural(sum(record["judge_calls"] for record in judged), "call")
    spent, saved = _total(judged, "judge_cost"), _total(hits, "judge_cost")
    return [f"spent {spent} in {n_calls}, saved {saved}"]


def _total(records: list[CaseRecord], name: str = "cost") -> str:
    costs: list[float] = [record[name] for record in records if name in record]  # type: ignore[literal-required]
    n_unknown = len(records) - len(costs)
    if records and not costs:
        return "an unknown amount"
    unknown = f" and an unknown amount for {n_unknown}" if n_unknown else ""
    return f"{sum(costs):.4f} USD{unknown}"


def _measure_accuracy(cases: list[SummedCase]) -> list[str]:
    scored = [case.fold for case in cases if case.fold.has_verdict]
    if not scored:
        return ["none: no answer was scored"]
    labels: dict[str, list[CaseFold]] = {}
    by_tag: dict[str, list[CaseFold]] = {}
    for case in cases:
        if case.fold.has_verdict:
            labels.setdefault(case.label, []).append(case.fold)
            for tag in case.fold.tags:
                by_tag.setdefault(tag, []).append(case.fold)
    groups = [*(sorted(labels.items()) if len(labels) > 1 else ()), *sorted(by_tag.items())]
    width = max((len(_shorten(name)) for name, _ in groups), default=0)
    rows = [f"  {_shorten(name):<{width}}  {_share(folds)}" for name, folds in groups]
    n_unscored = len(cases) - len(scored)
    unscored = f"; {n_unscored} without a verdict not counted" if n_unscored else ""
    return [_share(scored) + unscored, *capped(rows)]


def _share(folds: list[CaseFold]) -> str:
    """Return the mean pass rate of some cases, what it is made of, and its interval."""
    n = len(folds)
    passes = min(sum(fold.pass_rate for fold in folds), n)
    counted = f"{format_passes(passes)} of {n}"
    return f"{format_percent(passes / n)} ({counted}; 95% interval {format_interval(passes, n)})"


def _list_problems(cases: list[CaseRecord]) -> list[str]:
    corrupt = [
        f"{_name(record)}: corrupt, {escape_line(record['corrupt'])}"
        for record in cases
        if "corrupt" in record
    ]
    unstored = [record for record in cases if "unstored" in record]
    lines = capped(corrupt)
    if unstored:
        reason = escape_line(unstored[0]["unstored"])
        lines.append(f"{plural(len(unstored), 'answer')} could not be stored: {reason}")
    notes = dict.fromkeys(note for record in cases for note in record.get("notes", []))
    return [*lines, *map(escape_line, notes)]


def _name(record: CaseRecord) -> str:
    return _shorten(record["id"])


def _shorten(text: str) -> str:
    return escape_line(text, limit=_MAX_NAME)


def _verdict(passed: bool) -> str:
    return "passed" if passed else "failed"
