"""The calls that tests make themselves: answered from the store, or made and stored."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING

from pytest_ctxfp._chain import INNER, KNOWS_TEST, CallChain
from pytest_ctxfp._errors import CacheMiss, CtxfpError, first_line
from pytest_ctxfp._key import CaseKey
from pytest_ctxfp._limits import LimitReached, settling
from pytest_ctxfp._misses import EARLIER_CALL, Difference, explain_call, refuse_miss
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._recording import record_call
from pytest_ctxfp._records import add_known, add_notes, add_why, call_record
from pytest_ctxfp._store import Lookup
from pytest_ctxfp._suite import NO_IDENTITY, checked_parts, merged_params

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from pytest_ctxfp._chain import Call, Link
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._records import CaseRecord
    from pytest_ctxfp._runner import Runner
    from pytest_ctxfp._trace import Trace

    Settle = Callable[[object], Awaitable[object]]


class CallResolver:
    """Answers the calls of one attempt of a test.

    Args:
        runner: the process's store, identity and limits.
        add_record: takes in the facts of a call, which may change until the test has ended.
    """

    def __init__(self, runner: Runner, add_record: Callable[[CaseRecord], None]) -> None:
        self._runner = runner
        self._add_record = add_record
        self._chain = CallChain()

    async def resolve(self, call: Call, settle: Settle) -> JSONValue:
        """Return the answer to a call, after its JSON round trip.

        A miss makes the earlier calls of the test again that were hits, in order, so that a conversation is
        never continued from an empty one.

        Args:
            call: what is asked.
            settle: awaits what the call returned, where it is awaitable.

        Raises:
            CacheMiss: no answer is stored, and none may be asked for.
            LimitReached: the run may make no further call.
            CtxfpError: an answer, or a part of the key, that JSON can't hold.
        """
        link = self._place(call)
        found = self._find(link)
        if found.problem is not None:
            add_known(link.record, corrupt=found.problem)
        if found.trace is not None:
            self._note_hit(link, found.trace, found.notes)
            return found.trace.result
        if self._runner.store.mode is CacheMode.REPLAY:
            raise self._refuse(link, found)
        async with self._runner.flights.hold(link.key.hash()) as flight:
            trace = self._find(link).trace if flight.is_sole else None
            if trace is not None:
                self._note_hit(link, trace)
                return trace.result
            add_notes(link.record, filter(None, [flight.note]))
            self._claim(link)
            why = () if found.problem else self._explain(link)
            await self._ask_earlier(link, settle)
            return await self._ask(link, settle, why=why)

    def _place(self, call: Call) -> Link:
        surroundings = self._runner.identity.to_params()

        def make_key(after: tuple[str, ...]) -> CaseKey:
            return self._key(call, {**surroundings, **call.params}, after)

        inner = INNER.get()
        chain = inner if inner is not None and KNOWS_TEST.get() else self._chain
        return chain.place(call, make_key, call_record(call.id))

    def _key(self, call: Call, params: dict[str, JSONValue], after: tuple[str, ...]) -> CaseKey:
        identity = self._runner.identity
        if after:
            params = {**params, "after": list(after)}
        parts = checked_parts(call.key_parts)
        try:
            return CaseKey(
                case_id=call.id,
                question=call.question,
                agent_sha=identity.agent_sha if call.of_agent else NO_IDENTITY,
                model=call.model,
                context_sha=identity.context_sha,
                params=merged_params(parts.pop("params", None), params) or None,
                **parts,  # type: ignore[arg-type] # CaseKey checks their types itself
            )
        except ValueError as error:
            message = f"call {call.id!r}: {error}"
            raise CtxfpError(message) from None

    def _find(self, link: Link) -> Lookup:
        if link.chain is not None and not link.chain.may_hit(link):
            return Lookup()
        return self._runner.store.lookup(link.key)

    def _note_hit(self, link: Link, trace: Trace, notes: tuple[str, ...] = ()) -> None:
        if link.chain is not None:
            link.chain.add_hit(link)
        link.record["state"] = "hit"
        self._describe(link, trace)
        add_notes(link.record, notes)
        self._add_record(link.record)

    def _describe(self, link: Link, trace: Trace) -> None:
        link.record.pop("recorded_at", None)
        link.record.pop("cost", None)
        add_known(
            link.record,
            model=trace.model,
            served_model=trace.served_model,
            cost=trace.cost,
            turns=trace.turns,
            latency_ms=trace.latency_ms,
            recorded_at=trace.recorded_at if link.record["state"] == "hit" else None,
            key=link.key.hash() if self._runner.store.mode is not CacheMode.OFF else None,
        )

    def _refuse(self, link: Link, found: Lookup) -> CacheMiss:
        why = () if found.problem else self._explain(link)
        miss = refuse_miss(link.key, self._runner.store, why=why, corrupt=found.problem)
        add_why(link.record, why)
        add_known(link.record, estimated_cost=miss.estimated_cost)
        self._add_unanswered(link, "refused", miss)
        return miss

    def _claim(self, link: Link) -> None:
        n_earlier = 0 if link.chain is None else link.chain.n_hits_before(link)
        try:
            self._runner.claim(1 + n_earlier)
        except LimitReached as limit:
            link.record["limit"] = first_line(limit)
            self._add_unanswered(link, "skipped", limit)
            raise

    def _add_unanswered(self, link: Link, state: str, error: CtxfpError) -> None:
        link.record["state"] = state
        link.record["reason"] = first_line(error)
        self._add_record(link.record)

    async def _ask_earlier(self, link: Link, settle: Settle) -> None:
        chain = link.chain
        if chain is None:
            return
        earlier = chain.take_hits_before(link)
        if not earlier:
            chain.wait_for_hits(link)
            return
        try:
            for hit in earlier:
                hit.record["state"] = "rerun"
                await self._make(hit, settle)
        finally:
            chain.hits_are_made()

    async def _ask(self, link: Link, settle: Settle, *, why: tuple[Difference, ...]) -> JSONValue:
        link.record["state"] = _STATES.get(self._runner.store.mode, "miss")
        add_why(link.record, why)
        self._add_record(link.record)
        return (await self._make(link, settle)).result

    async def _make(self, link: Link, settle: Settle) -> Trace:
        """Make a call and store its answer; what it raises is the test's own affair, and never stored."""
        runner = self._runner
        add_known(link.record, served_then=runner.served_before(link.key))
        link.record["calls"] = 1
        runner.n_calls += 1
        started = perf_counter_ns()
        with settling(runner.ledger) as bill, _marked_running(link), _failing(link.record):
            returned = await settle(link.call.run())
            elapsed_ms = (perf_counter_ns() - started) // 1_000_000
            recording = record_call(
                returned,
                elapsed_ms,
                key=link.key,
                recorded_by=runner.recorded_by,
                prepare=runner.store.prepare,
            )
            bill.cost = recording.trace.cost
        self._describe(link, recording.trace)
        add_notes(link.record, recording.notes)
        add_known(link.record, unstored=runner.keep(link.key, recording.trace))
        return recording.trace

    def _explain(self, link: Link) -> tuple[Difference, ...]:
        if not self._runner.store.mode.reads:
            return ()
        if link.chain is not None and not link.chain.may_hit(link):
            return (Difference(EARLIER_CALL, EARLIER_CALL),)
        return explain_call(link.key, self._runner.store, identity=self._runner.identity)


_STATES = {CacheMode.REFRESH: "refreshed", CacheMode.OFF: "uncached"}


@contextmanager
def _marked_running(link: Link) -> Iterator[None]:
    """Let calls that are made inside know that they are."""
    chain = link.chain or CallChain(link.after)
    yield from chain.running(link)


@contextmanager
def _failing(record: CaseRecord) -> Iterator[None]:
    """Note that a call has failed; what it raised goes on as it is, a test may expect it."""
    try:
        yield
    except BaseException as error:
        record["state"] = "error"
        record["reason"] = first_line(error)
        raise
