"""Scorers of a suite's own: called with what they name, their answers read as verdicts.

A cached scorer (a judge that costs money) gets verdicts of its own in the trace store. Their key holds the
scorer's name, version and model, the question, the answer, the expectation and the sample: neither the agent
nor the context, and not ``min_score``, which is applied to the stored score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ctxfp._calling import call_named, named_arguments
from pytest_ctxfp._chain import separate_calls
from pytest_ctxfp._errors import AgentError, CtxfpError, ScorerError, describe_error
from pytest_ctxfp._model import AgentResult, Comparison
from pytest_ctxfp._values import to_json_value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._suite import Suite
    from pytest_ctxfp._trace import Trace

SCORER_ARGUMENTS = ("case", "answer", "expected", "context", "trace")
JUDGE_ARGUMENTS = ("case", "question", "answer", "expected")


class CachedScorer:
    """A scorer whose verdicts are stored; made by `cached_scorer`, called as the function it wraps."""

    def __init__(self, function: Callable[..., object], *, version: str, model: str) -> None:
        self.function = function
        self.version = version
        self.model = model
        self.__doc__ = function.__doc__

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the judge itself, past every cache."""
        return self.function(*args, **kwargs)


def cached_scorer(*, version: str, model: str = "-") -> Callable[[Callable[..., object]], CachedScorer]:
    """Declare a scorer that is paid for: its verdicts are stored beside the answers, and asked for once.

    The function may name ``question``, ``answer``, ``expected`` and ``case`` (its id, inputs, metadata and
    expectation; no tags and no ``min_score``): all of them are in the key of the stored verdict. What else it
    depends on, its prompt for instance, is what ``version`` stands for: write another one when it changes. It
    returns what any scorer returns, or an `AgentResult` around that, with its ``cost`` in USD.

    Args:
        version: what the verdicts depend on besides.
        model: the model that judges.

    Example::

        @cached_scorer(version="2", model="judge-large")
        def helpful(question, answer, expected):
            reply = ask_judge(PROMPT, question, answer, expected)
            return AgentResult(reply.score, cost=reply.cost)
    """
    for name, value in (("version", version), ("model", model)):
        if not isinstance(value, str) or not value:
            message = f"cached_scorer takes {name} as a text of at least one character, got {value!r}"
            raise TypeError(message)

    def decorate(function: Callable[..., object]) -> CachedScorer:
        return CachedScorer(function, version=version, model=model)

    return decorate


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a scorer said, before the case's ``min_score`` is applied.

    ``passed`` is None where only a score was given; ``score`` is 0..1 or None.
    """

    passed: bool | None
    score: float | None
    reason: str

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the opinion as the result of a trace."""
        return {"passed": self.passed, "score": self.score, "reason": self.reason}


def opinion_from_dict(data: JSONValue) -> Opinion | None:
    """Read what `Opinion.to_dict` gave, or None where a stored trace holds something else."""
    if not isinstance(data, dict):
        return None
    passed, score, reason = data.get("passed"), data.get("score"), data.get("reason")
    if not (passed is None or isinstance(passed, bool)) or not isinstance(reason, str):
        return None
    if score is not None and not _is_score(score):
        return None
    if passed is None and score is None:
        return None
    return Opinion(passed=passed, score=_as_float(score), reason=reason)


def read_opinion(name: str, returned: object) -> Opinion:
    """Read what a scorer returned: a bool, a score from 0 to 1, or a `Comparison`.

    Raises:
        ScorerError: something else.
    """
    if isinstance(returned, Comparison):
        return _read_comparison(name, returned)
    try:
        value = None if returned is None else to_json_value(returned)  # numpy's bools and numbers too
    except AgentError:
        value = None
    if isinstance(value, bool):
        return Opinion(passed=value, score=None, reason="")
    if _is_score(value):
        return Opinion(passed=None, score=_as_float(value), reason="")
    shown = repr(value) if isinstance(value, (int, float)) else type_name(returned)
    message = f"scorer {name!r} returned {shown}: return a bool, a score from 0 to 1, or a Comparison"
    raise ScorerError(message)


def _read_comparison(name: str, comparison: Comparison) -> Opinion:
    score = comparison.score
    if not isinstance(comparison.passed, bool) or not isinstance(comparison.reason, str):
        message = f"scorer {name!r} returned a Comparison whose passed is no bool or whose reason is no text"
        raise ScorerError(message)
    if score is not None and not _is_score(score):
        message = f"scorer {name!r} returned a Comparison with the score {score!r}: write 0 to 1, or None"
        raise ScorerError(message)
    return Opinion(passed=comparison.passed, score=_as_float(score), reason=comparison.reason)


def judge_opinion(case: GoldenCase, opinion: Opinion) -> Comparison:
    """Return the verdict: what the scorer said, and its score against the case's ``min_score``.

    A bare score must reach ``min_score``, by default 1. A scorer's own verdict stands; where the case has a
    ``min_score`` and the scorer gave a score, that must be reached too.
    """
    wanted = case.min_score
    if wanted is None and opinion.passed is None:
        wanted = 1.0
    enough = wanted is None or opinion.score is None or opinion.score >= wanted
    passed = opinion.passed is not False and enough
    words = [f"scorer {case.match}: {'passed' if passed else 'failed'}"]
    if opinion.score is not None:
        words.append(f"score {opinion.score:.4g}" + ("" if wanted is None else f" of at least {wanted:.4g}"))
    said = f": {opinion.reason}" if opinion.reason else ""
    return Comparison(passed, ", ".join(words) + said, opinion.score)


def _is_score(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _as_float(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


async def call_scorer(
    scorer: Callable[..., object],
    case: GoldenCase,
    answer: JSONValue,
    *,
    suite: Suite,
    context: object,
    trace: Trace,
) -> Opinion:
    """Call a scorer with what it names.

    Raises:
        ScorerError: it raised, or returned no verdict.
        CtxfpError: it names an argument that scorers don't get.
    """
    role = f"scorer {case.match!r} of ctx_scorers"
    names = named_arguments(scorer, SCORER_ARGUMENTS, role=role)
    values = {
        "case": case,
        "answer": answer,
        "expected": case.expected,
        "context": context,
        "trace": trace,
    }
    returned = await _settle(case, suite, lambda: call_named(scorer, values, names))
    return read_opinion(case.match, returned)


def judge_case(case: GoldenCase) -> GoldenCase:
    """Return a case as a judge may see it: without what is not in the key of the judge's verdicts."""
    return replace(
        case,
        tags=(),
        min_pass_rate=None,
        min_score=None,
        skip=None,
        xfail=None,
        marks=(),
        timeout=None,
        line=0,
        path="",
    )


def judge_names(judge: CachedScorer, name: str) -> frozenset[str]:
    """Return what a judge names.

    Raises:
        CtxfpError: it names something that is not in the key of its verdicts, such as the context.
    """
    role = f"cached scorer {name!r} of ctx_scorers"
    return named_arguments(judge.function, JUDGE_ARGUMENTS, role=role)


async def call_judge(
    judge: CachedScorer, case: GoldenCase, answer: JSONValue, *, suite: Suite
) -> tuple[Opinion, AgentResult]:
    """Call a judge; return what it said, and its figures.

    Raises:
        ScorerError: it raised, or returned no verdict.
        CtxfpError: it names an argument that judges don't get.
    """
    names = judge_names(judge, case.match)
    values = {
        "case": judge_case(case),
        "question": case.question,
        "answer": answer,
        "expected": case.expected,
    }
    returned = await _settle(case, suite, lambda: call_named(judge.function, values, names))
    result = returned if isinstance(returned, AgentResult) else AgentResult(returned)
    return read_opinion(case.match, result.value), result


async def _settle(case: GoldenCase, suite: Suite, call: Callable[[], object]) -> object:
    try:
        with separate_calls():
            return await suite.settle(call(), case.timeout)
    except suite.let_through:
        raise
    except (Exception, SystemExit) as error:  # sys.exit() in there must not look like pytest's own
        message = f"scorer {case.match!r} raised {describe_error(error)}"
        raise ScorerError(message) from error


def find_scorer(case: GoldenCase, scorers: object, *, modes: tuple[str, ...]) -> Callable[..., object]:
    """Return the entry of ``ctx_scorers`` that a case's ``match`` names.

    Raises:
        CtxfpError: there is none, or the fixture gave something else than a dict of callables.
    """
    if not isinstance(scorers, Mapping):
        message = f"fixture ctx_scorers gave {type_name(scorers)}: return a dict of names and functions"
        raise CtxfpError(message)
    clashing = [name for name in modes if name in scorers]
    if clashing:
        message = f"fixture ctx_scorers names a scorer {clashing[0]!r}, which is a match mode: rename it"
        raise CtxfpError(message)
    if case.match not in scorers:
        known = ", ".join(sorted(map(str, scorers))) or "none"
        message = (
            f"case {case.id!r}: match {case.match!r} is neither a mode of {case.result_kind.value} answers"
            f" ({', '.join(modes)}) nor a scorer of the fixture ctx_scorers ({known})"
        )
        raise CtxfpError(message)
    scorer: Callable[..., object] = scorers[case.match]
    if isinstance(scorer, CachedScorer):
        judge_names(scorer, case.match)
    else:
        named_arguments(scorer, SCORER_ARGUMENTS, role=f"scorer {case.match!r} of ctx_scorers")
    return scorer
