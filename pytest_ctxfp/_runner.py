"""One case at a time: context -> key -> stored trace, or the agent -> outcome."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter_ns
from typing import TYPE_CHECKING

from pytest_ctxfp._assemble import AssemblerProof, assemble, read_context
from pytest_ctxfp._calling import call_named, named_arguments, source_file
from pytest_ctxfp._chain import separate_calls
from pytest_ctxfp._errors import AgentError, CaseMismatch, CtxfpError, describe_error
from pytest_ctxfp._failure import describe_failure
from pytest_ctxfp._fold import meets_pass_rate
from pytest_ctxfp._hashing import git_blob_sha
from pytest_ctxfp._judging import Judges
from pytest_ctxfp._limits import settling
from pytest_ctxfp._match import scored_value
from pytest_ctxfp._misses import explain_miss, refuse_miss
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._recording import AnswerRecorder
from pytest_ctxfp._scoring import Verdict, is_answer_of_sql, prepare_case, score_trace
from pytest_ctxfp._single_flight import SingleFlight
from pytest_ctxfp._suite import (
    AGENT_ARGUMENTS,
    ASSEMBLER_ARGUMENTS,
    NOT_IN_EVERY_KEY,
    expectation_sha,
    make_key,
    possible_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ctxfp._errors import CacheMiss
    from pytest_ctxfp._judging import Judgement
    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._limits import CallLedger
    from pytest_ctxfp._misses import Difference
    from pytest_ctxfp._model import Comparison, GoldenCase, JSONValue
    from pytest_ctxfp._recording import Recording
    from pytest_ctxfp._store import TraceStore
    from pytest_ctxfp._suite import Identity, Suite
    from pytest_ctxfp._tokens import TokenCounter
    from pytest_ctxfp._trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one case.

    Attributes:
        case: the golden case.
        trace: the answer with all that was recorded of it.
        comparison: the verdict.
        hit: the answer was stored; no call was made.
        refreshed: the agent was asked although an answer might have been stored.
        why: on a miss, what differs from the nearest stored trace of the case.
        corrupt: what was wrong with the stored file under this key, if anything.
        unstored: why the answer could not be stored, if it could not.
        expectation_sha: identity of what is expected now.
        key: what determines the answer.
        is_cached: a cache is in use, so the key's hash is the trace's name in it.
        ask_again: gives the command that asks the agent anew, where the answer is stored.
        notes: what a user should know of the suite or of the agent's figures.
        executed: the table that the stored answer's SQL gives today, where that was scored in its place.
        judgement: what a cached scorer said and whether it was called, where one scores the case.
        served_then: after a call, the model that answered when the case was last recorded, if known.
        scorer: name and version of the suite's own scorer, where one scores the case.
        context: what the assembler built, or None without one.
        further: the outcomes of the case's further samples, where it was asked more than once.
    """

    case: GoldenCase
    trace: Trace
    comparison: Comparison
    hit: bool
    expectation_sha: str
    key: CaseKey
    refreshed: bool = False
    why: tuple[Difference, ...] = ()
    corrupt: str | None = None
    unstored: str | None = None
    is_cached: bool = False
    ask_again: Callable[[], str] = str
    notes: tuple[str, ...] = ()
    executed: JSONValue = None
    judgement: Judgement | None = None
    served_then: str | None = None
    scorer: str | None = None
    context: object = field(default=None, repr=False, compare=False)
    further: tuple[Outcome, ...] = ()

    def check(self) -> None:
        """Raise CaseMismatch, with all a person needs to see why, unless the answer is as expected.

        Where the case was asked more than once, its ``min_pass_rate`` decides; all must pass without one.
        """
        __tracebackhide__ = True
        if not self.passed:
            raise CaseMismatch(describe_failure(self))

    @property
    def samples(self) -> tuple[Outcome, ...]:
        """This outcome and the case's further ones."""
        return (self, *self.further)

    @property
    def passed(self) -> bool:
        """Whether the case as a whole passed."""
        n_passed = sum(sample.comparison.passed for sample in self.samples)
        return meets_pass_rate(n_passed, len(self.samples), self.case.min_pass_rate)

    @property
    def answer(self) -> JSONValue:
        """The value that was scored, after its JSON round trip; the raw text where it held no value."""
        value = scored_value(self.trace, self.case) if self.executed is None else self.executed
        return self.trace.raw if value is None else value

    @property
    def rescored(self) -> bool:
        """The stored answer was recorded under another expectation than today's."""
        return self.hit and self.trace.expectation_sha not in {None, self.expectation_sha}


@dataclass(slots=True)
class _SuiteState:
    """What was learned of a suite in this process: what its agent names, and its assembler's proof."""

    named: frozenset[str] | None = None
    named_by_hits: frozenset[str] | None = None
    proof: AssemblerProof = field(default_factory=AssemblerProof)
    is_assembler_noted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A case with its context: all that its key is made of but for what the agent names."""

    case: GoldenCase
    suite: Suite
    context: object
    context_sha: str
    surroundings: Mapping[str, JSONValue]


class Runner:
    """Resolves cases against one store, for the length of a process.

    Args:
        store: where traces are read and written, as its mode allows.
        load_identity: called once, when the first key is made.
        recorded_by: written into new traces.
        counter: gives what counts the tokens of contexts, where they are to be recorded.
        ledger: counts calls where the run is limited.

    Attributes:
        n_calls: how often an agent was called, whatever came of it.
    """

    def __init__(
        self,
        store: TraceStore,
        load_identity: Callable[[], Identity],
        *,
        recorded_by: str,
        counter: Callable[[], TokenCounter | None] = lambda: None,
        ledger: CallLedger | None = None,
    ) -> None:
        self.store = store
        self._counter = counter
        self.ledger = ledger
        self._load_identity = load_identity
        self._identity: Identity | None = None
        self.recorded_by = recorded_by
        self._states: dict[str, _SuiteState] = {}
        self._manifests_kept = False
        self.flights = SingleFlight(store)
        self.judges = Judges(store, recorded_by=recorded_by, ledger=ledger, flights=self.flights)
        self.n_calls = 0

    @property
    def identity(self) -> Identity:
        """The agent's and the context's files, hashed when first asked for."""
        if self._identity is None:
            self._identity = self._load_identity()
        return self._identity

    async def resolve(self, case: GoldenCase, suite: Suite) -> Outcome:
        """Find or pay for the answer to a case and score it.

        Raises:
            AgentError: the assembler or the agent gave nothing that can be scored.
            CacheMiss: no answer is stored and the store's mode allows no call.
            LimitReached: the run may make no further call.
            CtxfpError: fixtures that don't fit together, a context that isn't reproducible.
        """
        case = await prepare_case(case, suite)
        prepared = await self._prepare(case, suite)
        found, corrupt = await self._find(prepared) if self.store.mode.reads else (None, None)
        if found is not None:
            return found
        if self.store.mode is CacheMode.REPLAY:
            raise self._refuse(prepared, corrupt)
        async with self.flights.hold(self._flight_name(prepared), case.timeout) as flight:
            if flight.is_sole:
                found, corrupt = await self._find(prepared)
            return flight.annotate(found or await self._ask(prepared, corrupt))

    async def _prepare(self, case: GoldenCase, suite: Suite) -> _Prepared:
        context = await assemble(case, suite)
        sha = (
            self.identity.context_sha
            if context is None
            else git_blob_sha(read_context(context, split=suite.split))
        )
        surroundings = self.identity.to_params()
        return _Prepared(case=case, suite=suite, context=context, context_sha=sha, surroundings=surroundings)

    def _flight_name(self, prepared: _Prepared) -> str:
        """Name a case's call by all the agent could name: what it does name each process learns by itself.

        But for the variant: where the agent doesn't name it, variants of equal contexts share an answer.
        """
        return self._key(prepared, NOT_IN_EVERY_KEY - {"variant"}).hash()

    async def _find(self, prepared: _Prepared) -> tuple[Outcome | None, str | None]:
        """Look for a stored answer under each key the case can have; return it, or what was corrupt."""
        corrupt = None
        for named in self._possible_names(prepared.suite):
            key = self._key(prepared, named)
            lookup = self.store.lookup(key)
            corrupt = corrupt or lookup.problem
            if lookup.trace is None:
                continue
            verdict = await self._score(lookup.trace, prepared, is_stored=True)
            if verdict is not None:
                _check_variant(prepared.suite, named)
                self._state(prepared.suite).named_by_hits = named
                outcome = Outcome(
                    case=prepared.case,
                    trace=lookup.trace,
                    comparison=verdict.comparison,
                    executed=verdict.executed,
                    judgement=verdict.judgement,
                    scorer=verdict.scorer,
                    context=prepared.context,
                    hit=True,
                    expectation_sha=expectation_sha(prepared.case),
                    key=key,
                    is_cached=True,
                    ask_again=prepared.suite.ask_again,
                    notes=(
                        *self._note_on_assembler(prepared.suite),
                        *lookup.notes,
                        *_notes_on_judge(verdict),
                    ),
                )
                return outcome, None
        return None, corrupt

    def _possible_names(self, suite: Suite) -> Iterator[frozenset[str]]:
        """Yield what the agent may name; it is not known for sure before the agent is built.

        What was named when the last hit was recorded comes first, then the most telling set: a hit under
        a key that holds more is never less true.
        """
        state = self._state(suite)
        if state.named is not None:
            yield state.named
            return
        possible = possible_names(suite)
        if state.named_by_hits in possible:
            yield state.named_by_hits
        yield from (named for named in possible if named != state.named_by_hits)

    def _state(self, suite: Suite) -> _SuiteState:
        return self._states.setdefault(suite.scope, _SuiteState())

    def _note_on_assembler(self, suite: Suite) -> tuple[str, ...]:
        """Warn, once, of an assembler whose own file is one of the agent's files."""
        state = self._state(suite)
        if suite.assembler is None or state.is_assembler_noted or self.store.mode is CacheMode.OFF:
            return ()
        state.is_assembler_noted = True
        name = self.identity.name_of(source_file(suite.assembler))
        if name is None or not self.identity.is_of_agent(name):
            return ()
        note = (
            f"{name} defines ctx_assembler and is in ctx_agent_paths: refactoring it asks every question"
            " again, though the contexts stay the same; keep the two in files of their own"
        )
        return (note,)

    def _key(self, prepared: _Prepared, named: frozenset[str]) -> CaseKey:
        return make_key(
            prepared.case,
            suite=prepared.suite,
            named=named,
            agent_sha=self.identity.agent_sha,
            context_sha=prepared.context_sha,
            surroundings=prepared.surroundings,
        )

    def _refuse(self, prepared: _Prepared, corrupt: str | None) -> CacheMiss:
        newest = self.store.newest(prepared.case.id)
        recorded = frozenset(newest.params or ()) if newest else frozenset()
        known = self._state(prepared.suite).named
        named = recorded & NOT_IN_EVERY_KEY if known is None else known
        key = self._key(prepared, named | ({"case"} if prepared.suite.reads_case else set()))
        why = () if corrupt else self._explain(prepared, key)
        return refuse_miss(key, self.store, why=why, corrupt=corrupt)

    def _explain(self, prepared: _Prepared, key: CaseKey) -> tuple[Difference, ...]:
        return explain_miss(
            key, self.store, identity=self.identity, context=prepared.context, split=prepared.suite.split
        )

    async def _ask(self, prepared: _Prepared, corrupt: str | None) -> Outcome:
        case, suite, state = prepared.case, prepared.suite, self._state(prepared.suite)
        is_cached = self.store.mode.writes
        if is_cached:
            await state.proof.before_call(case, suite, prepared.context)
        agent, named = self._build(prepared)
        state.named = named & NOT_IN_EVERY_KEY | ({"case"} if suite.reads_case else set())
        key = self._key(prepared, state.named)
        why = self._explain(prepared, key) if self.store.mode is CacheMode.AUTO and not corrupt else ()
        served_then = self.served_before(key)
        recording = await self._call(prepared, agent, named, key)
        trace, unstored = recording.trace, self.keep(key, recording.trace)
        verdict = await self._score(trace, prepared, is_stored=False)
        if verdict is None:
            raise _refuse_shape(case)
        gave_answer = await is_answer_of_sql(trace, case, suite) if is_cached else None
        trace = replace(trace, passed_then=verdict.comparison.passed, sql_gave_answer=gave_answer)
        unstored = unstored or self.keep(key, trace)
        if is_cached:
            await state.proof.after_call(case, suite, prepared.context)
        return Outcome(
            case=case,
            trace=trace,
            comparison=verdict.comparison,
            judgement=verdict.judgement,
            scorer=verdict.scorer,
            context=prepared.context,
            hit=False,
            expectation_sha=expectation_sha(case),
            refreshed=self.store.mode is CacheMode.REFRESH,
            why=why,
            corrupt=corrupt,
            unstored=unstored,
            key=key,
            is_cached=is_cached,
            served_then=served_then,
            notes=(
                *self._note_on_assembler(suite),
                *_note_on_agent(agent, self.identity, is_cached=is_cached),
                *recording.notes,
                *_notes_on_judge(verdict),
            ),
        )

    async def ask_again(self, outcome: Outcome, suite: Suite) -> Outcome:
        """Ask for an answer that is stored, and leave the stored one as it is.

        Raises:
            as ``resolve``.
        """
        prepared = await self._prepare(outcome.case, suite)
        agent, named = self._build(prepared)
        recording = await self._call(prepared, agent, named, outcome.key)
        verdict = await self._score(recording.trace, prepared, is_stored=False)
        if verdict is None:
            raise _refuse_shape(outcome.case)
        return replace(
            outcome, trace=recording.trace, comparison=verdict.comparison, hit=False, refreshed=True
        )

    async def _score(self, trace: Trace, prepared: _Prepared, *, is_stored: bool) -> Verdict | None:
        return await score_trace(
            trace,
            prepared.case,
            suite=prepared.suite,
            context=prepared.context,
            judges=self.judges,
            is_stored=is_stored,
            redact=self.store.redact,
        )

    async def _call(
        self, prepared: _Prepared, agent: Callable[..., object], named: frozenset[str], key: CaseKey
    ) -> Recording:
        """Ask the agent and return its answer as a trace without a verdict."""
        case = prepared.case
        recorder = AnswerRecorder(
            case,
            key,
            context=prepared.context,
            recorded_by=self.recorded_by,
            split=prepared.suite.split,
            counter=self._counter(),
        )
        values = {
            "question": case.question,
            "context": prepared.context,
            "inputs": case.inputs,
            "case": case.view,
            "model": prepared.suite.model,
            "sample": key.sample,
            "variant": prepared.suite.variant,
        }
        self.n_calls += 1
        started = perf_counter_ns()
        with settling(self.ledger) as bill:
            try:
                with separate_calls():
                    returned = await prepared.suite.settle(call_named(agent, values, named), case.timeout)
            except prepared.suite.let_through:
                raise
            except (Exception, SystemExit) as error:  # sys.exit() in there must not look like pytest's own
                message = f"the agent raised {describe_error(error)}"
                raise AgentError(message) from error
            elapsed_ms = (perf_counter_ns() - started) // 1_000_000
            recording = recorder.record(returned, elapsed_ms, prepare=self.store.prepare)
            bill.cost = recording.trace.cost
        return recording

    def _build(self, prepared: _Prepared) -> tuple[Callable[..., object], frozenset[str]]:
        """Claim a call, then build the agent: where no call is left, nothing is built."""
        self.claim()
        try:
            agent = prepared.suite.build_agent()
            named = named_arguments(agent, AGENT_ARGUMENTS, role="ctx_agent")
            self._check_surroundings(prepared)
            _check_model(prepared.suite, named)
            _check_variant(prepared.suite, named)
        except BaseException:
            if self.ledger is not None:
                self.ledger.release()
            raise
        return agent, named

    def _check_surroundings(self, prepared: _Prepared) -> None:
        """Refuse an agent whose fixtures set variables of the key: on a hit they would not be set."""
        before, after = prepared.surroundings.get("env"), self.identity.to_params().get("env")
        if self.store.mode.writes and before != after:
            message = (
                "the fixtures behind ctx_agent change an environment variable that ctx_agent_env names, which"
                " the key can't know of: set it in conftest.py or in an autouse fixture"
            )
            raise CtxfpError(message)

    def claim(self, n_calls: int = 1) -> None:
        """Count calls that are about to be made.

        Raises:
            LimitReached: the run may not make them.
        """
        if self.ledger is not None:
            self.ledger.claim(n_calls)

    def served_before(self, key: CaseKey) -> str | None:
        """Return the model that the provider ran when the case was last recorded under the same label."""
        if not self.store.mode.writes:
            return None
        earlier = self.store.of_case(key.case_id)
        return next((trace.served_model for trace in earlier if trace.model == key.model), None)

    def keep(self, key: CaseKey, trace: Trace) -> str | None:
        """Store a trace where the mode allows it; return why that failed, if it did."""
        if not self.store.mode.writes:
            return None
        try:
            self.store.store(key, trace)
            if not self._manifests_kept:
                for manifest in self.identity.manifests:
                    self.store.write_manifest(manifest)
                self._manifests_kept = True
        except OSError as error:
            return self.store.describe_failure(error)
        return None


def _refuse_shape(case: GoldenCase) -> AgentError:
    return AgentError(f"the agent's answer has not the shape of a {case.result_kind.value}")


def _check_model(suite: Suite, named: frozenset[str]) -> None:
    """Refuse a model that the agent is not told of: its label would be a lie."""
    if suite.is_model_given and "model" not in named and not suite.knows_model():
        message = (
            f"--ctx-models names the model {suite.model!r}, and nothing tells the agent: let the agent have"
            " an argument 'model', or let a fixture behind ctx_agent ask for ctx_model"
        )
        raise CtxfpError(message)


def _check_variant(suite: Suite, named: frozenset[str]) -> None:
    """Refuse a variant that nothing is told of, whether its answer is stored or not."""
    if suite.variant is None or "variant" in named:
        return
    if suite.assembler is None or "variant" not in named_arguments(
        suite.assembler, ASSEMBLER_ARGUMENTS, role="ctx_assembler"
    ):
        message = (
            f"--ctx-variants names the variant {suite.variant!r}, and nothing is told of it: let"
            " ctx_assembler, or the agent, have an argument 'variant'"
        )
        raise CtxfpError(message)


def _note_on_agent(agent: Callable[..., object], identity: Identity, *, is_cached: bool) -> tuple[str, ...]:
    """Warn of an agent whose own file is not one of the agent's files: a change in it would not be seen."""
    name = identity.name_of(source_file(agent))
    if identity.agent is None or name is None or identity.is_of_agent(name):
        return ()
    effect = "would get old answers" if is_cached else "is not in the keys of the report"
    note = (
        f"{name} defines the agent and is not in ctx_agent_paths, so a change in it {effect}:"
        " add it there, or let ctx_agent return a function of a file that is there"
    )
    return (note,)


def _notes_on_judge(verdict: Verdict) -> tuple[str, ...]:
    judgement = verdict.judgement
    if judgement is None:
        return ()
    unstored = (
        (f"a scorer's verdict could not be stored: {judgement.unstored}",) if judgement.unstored else ()
    )
    return (*judgement.notes, *unstored)
