"""Verdicts of cached scorers: looked up in the trace store, or paid for and kept there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from time import perf_counter_ns
from typing import TYPE_CHECKING

from pytest_ctxfp._calling import source_file
from pytest_ctxfp._errors import CacheMiss, CtxfpError
from pytest_ctxfp._hashing import canonical_json, git_text_sha
from pytest_ctxfp._key import CaseKey
from pytest_ctxfp._limits import settling
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._recording import read_figures
from pytest_ctxfp._scorers import call_judge, judge_names, opinion_from_dict
from pytest_ctxfp._single_flight import SingleFlight
from pytest_ctxfp._store import JUDGE_SHA
from pytest_ctxfp._suite import expectation_sha
from pytest_ctxfp._trace import Trace

if TYPE_CHECKING:
    from pytest_ctxfp._limits import CallLedger
    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._scorers import CachedScorer, Opinion
    from pytest_ctxfp._store import TraceStore
    from pytest_ctxfp._suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a cached scorer said.

    Attributes:
        opinion: the verdict or score.
        hit: it was stored; no call was made.
        cost: USD of the call, when it was made; None where unknown.
        unstored: why it could not be stored, if it could not.
        notes: which of its figures could not be recorded.
    """

    opinion: Opinion
    hit: bool
    cost: float | None
    unstored: str | None = None
    notes: tuple[str, ...] = ()


class Judges:
    """Asks cached scorers, for the length of a process.

    Args:
        store: where answers are, and verdicts too.
        recorded_by: written into new traces.
        ledger: counts calls where the run is limited.
        flights: lets one process ask for a verdict at a time.

    Attributes:
        n_calls: how often a judge was called, whatever came of it.
    """

    def __init__(
        self,
        store: TraceStore,
        *,
        recorded_by: str,
        ledger: CallLedger | None = None,
        flights: SingleFlight | None = None,
    ) -> None:
        self._store = store
        self._flights = flights or SingleFlight(store)
        self._recorded_by = recorded_by
        self._ledger = ledger
        self._known: dict[tuple[str, str, str], object] = {}
        self.n_calls = 0

    async def judge(
        self, judge: CachedScorer, case: GoldenCase, answer: JSONValue, *, suite: Suite, sample: int
    ) -> Judgement:
        """Find or pay for a judge's verdict on an answer.

        Raises:
            CacheMiss: none is stored and the store's mode allows no call.
            LimitReached: the run may make no further call.
            ScorerError: the judge raised, or returned no verdict.
            CtxfpError: two judges can't be told apart.
        """
        self._refuse_twin(judge, case.match)
        key = judge_key(judge, case, answer, sample=sample)
        stored = self._find(key)
        if stored is not None:
            return stored
        if self._store.mode is CacheMode.REPLAY:
            outage = f": {self._store.outage}" if self._store.outage else ""
            message = f"the answer is stored, but no verdict of the scorer {case.match!r} on it{outage}"
            raise CacheMiss(key, message)
        async with self._flights.hold(key.hash(), case.timeout) as flight:
            stored = self._find(key) if flight.is_sole else None
            return stored or await self._ask(judge, case, answer, suite=suite, key=key)

    def _find(self, key: CaseKey) -> Judgement | None:
        trace = self._store.load(key)
        opinion = None if trace is None else opinion_from_dict(trace.result)
        if trace is None or opinion is None:
            return None
        return Judgement(opinion=opinion, hit=True, cost=trace.cost)

    def _refuse_twin(self, judge: CachedScorer, name: str) -> None:
        """Refuse another function of the same name, version and model: it would get the first's verdicts."""
        place = (source_file(judge.function), getattr(judge.function, "__qualname__", ""))
        if self._known.setdefault((name, judge.version, judge.model), place) != place:
            message = (
                f"two cached scorers are named {name!r}, with the version {judge.version!r} and the model"
                f" {judge.model!r}: they would share verdicts; give one another name or version"
            )
            raise CtxfpError(message)

    async def _ask(
        self, judge: CachedScorer, case: GoldenCase, answer: JSONValue, *, suite: Suite, key: CaseKey
    ) -> Judgement:
        if self._ledger is not None:
            self._ledger.claim()
        self.n_calls += 1
        started = perf_counter_ns()
        with settling(self._ledger) as bill:
            opinion, result = await call_judge(judge, case, answer, suite=suite)
            elapsed_ms = (perf_counter_ns() - started) // 1_000_000
            figures, notes = read_figures(result)
            bill.cost = figures.get("cost")
        trace = Trace(
            case_id=key.case_id,
            agent_sha=key.agent_sha,
            model=key.model,
            context_sha=key.context_sha,
            question=key.question,
            result=opinion.to_dict(),
            latency_ms=elapsed_ms,
            recorded_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            recorded_by=self._recorded_by,
        )
        trace = self._store.prepare(key, replace(trace, **figures))
        scored = opinion_from_dict(trace.result)
        assert scored is not None, "an opinion survives its own JSON"
        unstored = None
        try:
            self._store.store(key, trace)
        except OSError as error:
            unstored = self._store.describe_failure(error)
        return Judgement(opinion=scored, hit=False, cost=trace.cost, unstored=unstored, notes=notes)


def judge_key(judge: CachedScorer, case: GoldenCase, answer: JSONValue, *, sample: int) -> CaseKey:
    """Return the key of a judge's verdict on an answer: nothing of the agent or its context is in it."""
    params: dict[str, JSONValue] = {
        "version": judge.version,
        "answer_sha": git_text_sha(canonical_json(answer)),
        # min_score is applied to the stored score, so an edit of it costs nothing.
        "expectation_sha": expectation_sha(replace(case, min_score=None)),
    }
    if "case" in judge_names(judge, case.match):
        params["case"] = case.view.to_dict()
    return CaseKey(
        case_id=f"scorer {case.match}",
        question=case.question,
        agent_sha=JUDGE_SHA,
        model=judge.model,
        context_sha="-",
        sample=sample,
        params=params,
    )
