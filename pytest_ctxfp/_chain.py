"""The calls of one test in the order they were made: each is keyed on what came before it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._records import CaseRecord

INNER: ContextVar[CallChain | None] = ContextVar("ctxfp_inner_chain", default=None)
"""The chain of the calls that a running call makes itself."""

KNOWS_TEST: ContextVar[bool] = ContextVar("ctxfp_knows_test", default=False)
"""True in what the test itself runs, ``asyncio.to_thread`` included; a thread of a pool starts blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that a test makes.

    Attributes:
        id: names the call in keys and summaries.
        run: makes it.
        question: what is asked, as text.
        params: whatever else decides the answer.
        of_agent: keyed on the agent's files.
        chained: keyed on the calls before it.
        model: label of the model.
        key_parts: the dict of the fixture ``ctx_agent_key``.
    """

    id: str
    run: Callable[[], object]
    question: str
    params: Mapping[str, JSONValue]
    of_agent: bool
    chained: bool
    model: str
    key_parts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link:
    """A call in its place.

    Attributes:
        call: what is called.
        key: what its answer is stored under.
        after: hashes of the keys of the calls before it.
        chain: where its place is, or None for a call that stands alone.
        in_order: it was made by the test itself, and not in a pool whose threads have no order.
        record: its facts, which change when it is asked again.
    """

    call: Call
    key: CaseKey
    after: tuple[str, ...]
    chain: CallChain | None
    in_order: bool
    record: CaseRecord


@contextmanager
def separate_calls() -> Iterator[None]:
    """Keep calls made inside of an agent, assembler, scorer or ctx_execute out of the test's conversation.

    On a hit an agent or cached scorer makes none, and the others may run any number of times.
    """
    token = INNER.set(CallChain())
    try:
        yield
    finally:
        INNER.reset(token)


class CallChain:
    """The calls of one attempt of a test, or those that one call makes inside.

    Calls that the test makes itself follow each other. Those of a pool's threads have no order: each follows
    what the test had called before the pool, and what the test calls next follows all of them.

    Args:
        after: hashes of the keys of the calls before the first one.
    """

    def __init__(self, after: tuple[str, ...] = ()) -> None:
        self.is_live = False
        self._lock = threading.Lock()
        self._last = after
        self._unordered: set[str] = set()
        self._hits: list[Link] = []
        self._running: list[Link] = []
        self._are_hits_made: threading.Event | None = None

    def place(self, call: Call, make_key: Callable[[tuple[str, ...]], CaseKey], record: CaseRecord) -> Link:
        """Give a call its place and its key."""
        if not call.chained:
            key = make_key(())
            return Link(call=call, key=key, after=(), chain=None, in_order=False, record=record)
        in_order = KNOWS_TEST.get()
        with self._lock:
            if not in_order and self._running:
                # Made inside of a running call: on a hit of that one it won't be made at all.
                after = self._running[-1].after
                return Link(
                    call=call, key=make_key(after), after=after, chain=None, in_order=False, record=record
                )
            after = tuple(sorted({*self._last, *self._unordered})) if in_order else self._last
            key = make_key(after)
            if in_order:
                self._last = (key.hash(),)
                self._unordered.clear()
            else:
                self._unordered.add(key.hash())
        return Link(call=call, key=key, after=after, chain=self, in_order=in_order, record=record)

    def may_hit(self, link: Link) -> bool:
        """Whether a stored answer will do: not once the conversation is held anew."""
        return not (link.in_order and self.is_live)

    def add_hit(self, link: Link) -> None:
        """Note a call that was answered from the store."""
        with self._lock:
            self._hits.append(link)

    def n_hits_before(self, link: Link) -> int:
        """Return how many earlier calls have to be made before this one."""
        return len(self._hits_before(link))

    def take_hits_before(self, link: Link) -> list[Link]:
        """Return the earlier calls that have to be made before this one; each is returned once."""
        with self._lock:
            taken = self._hits_before(link)
            self._hits = [hit for hit in self._hits if hit not in taken]
            if taken:
                self._are_hits_made = self._are_hits_made or threading.Event()
                self._are_hits_made.clear()
            self.is_live = self.is_live or link.in_order
        return taken

    def _hits_before(self, link: Link) -> list[Link]:
        return [hit for hit in self._hits if link.in_order or hit.in_order]

    def hits_are_made(self) -> None:
        """Let the threads go on that wait for earlier calls."""
        if self._are_hits_made is not None:
            self._are_hits_made.set()

    def wait_for_hits(self, link: Link) -> None:
        """Wait, in a pool's thread, until another one has made the earlier calls."""
        if not link.in_order and self._are_hits_made is not None:
            self._are_hits_made.wait()

    def running(self, link: Link) -> Iterator[None]:
        """Note, for the time of a ``with`` block, that a call is being made."""
        with self._lock:
            if link.in_order:
                self._running.append(link)
        token = INNER.set(CallChain(link.after))
        try:
            yield
        finally:
            INNER.reset(token)
            with self._lock:
                if link.in_order:
                    self._running.remove(link)
