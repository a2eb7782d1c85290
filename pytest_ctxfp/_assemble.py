"""Building a case's context, and proving that the same case gives the same bytes again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._calling import call_named, named_arguments
from pytest_ctxfp._chain import separate_calls
from pytest_ctxfp._errors import AgentError, describe_error, first_line
from pytest_ctxfp._fingerprint import context_bytes, diff_fingerprints, fingerprint_context
from pytest_ctxfp._suite import ASSEMBLER_ARGUMENTS

if TYPE_CHECKING:
    from pytest_ctxfp._model import GoldenCase
    from pytest_ctxfp._split import Splitter
    from pytest_ctxfp._suite import Suite


async def assemble(case: GoldenCase, suite: Suite) -> object:
    """Return the context that the suite's assembler builds for a case, or None without an assembler.

    Raises:
        AgentError: the assembler raised, timed out or returned nothing.
    """
    if suite.assembler is None:
        return None
    names = named_arguments(suite.assembler, ASSEMBLER_ARGUMENTS, role="ctx_assembler")
    values = {
        "question": case.question,
        "inputs": case.inputs,
        "case": case.view,
        "model": suite.model,
        "sample": suite.sample,
        "variant": suite.variant,
    }
    try:
        with separate_calls():
            context = await suite.settle(call_named(suite.assembler, values, names), case.timeout)
    except suite.let_through:
        raise
    except (Exception, SystemExit) as error:  # sys.exit() in there must not look like pytest's own
        message = f"the assembler raised {describe_error(error)}"
        raise AgentError(message) from error
    if context is None:
        message = "the assembler returned None: return the context that the agent is given"
        raise AgentError(message)
    return context


def read_context(context: object, *, split: Splitter | None = None) -> bytes:
    """Return the bytes of what an assembler built; ``split`` gives layers of what has no type of ours.

    Raises:
        AgentError: it is no context, or can't be read.
    """
    try:
        return context_bytes(context, split=split)
    except Exception as error:  # a mapping's own methods raise what they like
        reason = first_line(error) if isinstance(error, ValueError) else describe_error(error)
        message = f"what the assembler returned can't be used: {reason}"
        raise AgentError(message) from error


class AssemblerProof:
    """Sees to it that no second call is paid for while a clock or a random id is in the context.

    Such a context would make every run miss. The assembler runs once more before the first call of a
    process, and again after it: a clock of whole seconds only shows by then.
    """

    def __init__(self) -> None:
        self._proven = False
        self._refuted: str | None = None

    async def before_call(self, case: GoldenCase, suite: Suite, context: object) -> None:
        """Raise AgentError if the context differs from a second assembly, or did so for an earlier case."""
        if not self._proven:
            await self._assemble_again(case, suite, context)

    async def after_call(self, case: GoldenCase, suite: Suite, context: object) -> None:
        """Raise AgentError if the context differs from an assembly after the first answer."""
        if not self._proven:
            await self._assemble_again(case, suite, context)
            self._proven = True

    async def _assemble_again(self, case: GoldenCase, suite: Suite, context: object) -> None:
        if context is not None and self._refuted is None:
            again = await assemble(case, suite)
            if read_context(again, split=suite.split) != read_context(context, split=suite.split):
                self._refuted = _describe_difference(context, again, suite.split)
        if self._refuted is not None:
            raise AgentError(self._refuted)


def _describe_difference(context: object, again: object, split: Splitter | None) -> str:
    before, after = (fingerprint_context(one, split=split) for one in (context, again))
    diff = diff_fingerprints(before, after)
    names = sorted({delta.layer for delta in diff.changed} | {*diff.added} | {*diff.removed})
    where = f"layer {', '.join(map(repr, names))}" if names else "the order of the layers"
    return (
        f"the assembler gives another context for the same case each time, in {where}:"
        " a clock, a random id or an unsorted set would make every run pay for every answer."
        " Take it from the case's inputs, fix it in the tests, or keep it out of the context"
    )
