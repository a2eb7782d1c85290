"""What a suite says about the thing under test, and the key made of it: closed over all an agent can read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ctxfp._environment import hash_variables
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._hashing import canonical_json, git_text_sha
from pytest_ctxfp._key import CaseKey
from pytest_ctxfp._model import Table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pytest_ctxfp._hashing import Manifest
    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._split import Splitter

AGENT_ARGUMENTS = ("question", "context", "inputs", "case", "model", "sample", "variant")
ASSEMBLER_ARGUMENTS = ("question", "inputs", "case", "model", "sample", "variant")
NO_IDENTITY = "-"
"""Stands for the agent's or the context's SHA where there is none."""

NOT_IN_EVERY_KEY = frozenset({"inputs", "case", "variant"})
"""What an agent may name that is in a key only then."""

OWN_PARAMS = frozenset(
    {
        *("inputs", "case", "variant", "parameters", "env", "packages", "data"),
        *("after", "arguments", "helper", "key"),
    }
)
"""What the plugin itself puts into a key's params."""

_KEY_PARTS = ("backend", "max_turns", "tier_binding", "params")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What the fixtures of a test say about the thing under test.

    Attributes:
        build_agent: gives the agent; called only when an answer must be paid for.
        assembler: gives the context, or None where the suite has none.
        model: label of the model.
        sample: 0-based number of the repetition; each is asked for itself.
        variant: label of the assembler's variant, or None.
        is_model_given: the command line names the model, so the agent has to be told of it.
        knows_model: whether the agent's fixtures, once built, asked which model it is.
        key_parts: the dict of the fixture ``ctx_agent_key``.
        reads_case: the agent's own fixtures read the case, so the case is in the key.
        parameters: the test's own parameters that the agent's fixtures read, by name.
        scope: tells suites apart whose agents may name other arguments: the file of the test.
        settle: awaits what an agent or assembler returned, where it is awaitable; the number is a
            limit in seconds.
        ask_again: gives the command that asks the agent anew, for failure texts.
        load_scorers: gives the fixture ``ctx_scorers``; asked only where a case names a scorer.
        load_execute: gives the fixture ``ctx_execute``; asked only where a case has ``expected_sql``.
        split: returns the layers of a context; None picks by type.
        show_path: a golden file's path as a user would type it.
        let_through: what an agent or assembler may raise without having failed: our own errors, and a
            wish to end the run.
    """

    build_agent: Callable[[], Callable[..., object]]
    assembler: Callable[..., object] | None
    model: str
    key_parts: Mapping[str, object]
    reads_case: bool
    parameters: Mapping[str, JSONValue]
    scope: str
    settle: Callable[[object, float | None], Awaitable[object]]
    sample: int = 0
    variant: str | None = None
    is_model_given: bool = False
    knows_model: Callable[[], bool] = bool
    ask_again: Callable[[], str] = str
    load_scorers: Callable[[], object] = dict
    load_execute: Callable[[], object] = lambda: None
    split: Splitter | None = None
    show_path: Callable[[str], str] = str
    let_through: tuple[type[Exception], ...] = (CtxfpError,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a run's answers depend on besides the question.

    Attributes:
        agent: the agent's files.
        context: the files that stand for a context.
        rootdir: what the names of files are relative to.
        env: names of environment variables.
        packages: versions of installed packages, by name.
        data: the files that the agent reads.
    """

    agent: Manifest | None = None
    context: Manifest | None = None
    rootdir: Path | None = None
    env: tuple[str, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    data: Manifest | None = None

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The lists of files that are kept, so that a later miss can name the file that changed."""
        return tuple(filter(None, (self.agent, self.context, self.data)))

    def to_params(self) -> dict[str, JSONValue]:
        """Return what joins a key's params: environment variables are read anew, tests may set them."""
        params: dict[str, JSONValue] = {}
        if self.env:
            params["env"] = dict(hash_variables(self.env))
        if self.packages:
            params["packages"] = dict(self.packages)
        if self.data is not None:
            params["data"] = self.data.sha
        return params

    @property
    def agent_sha(self) -> str:
        """Tree SHA of the agent's files, or ``-``."""
        return self.agent.sha if self.agent else NO_IDENTITY

    @property
    def context_sha(self) -> str:
        """Tree SHA of the files that stand for the context, or ``-``."""
        return self.context.sha if self.context else NO_IDENTITY

    def name_of(self, file: Path | None) -> str | None:
        """Return a file's name relative to the rootdir, or None where it lies outside."""
        if file is None or self.rootdir is None or not file.is_relative_to(self.rootdir):
            return None
        return file.relative_to(self.rootdir).as_posix()

    def is_of_agent(self, name: str) -> bool:
        """Whether a file, named relative to the rootdir, is one of the agent's."""
        return self.agent is not None and any(entry == name for entry, _ in self.agent.entries)


def possible_names(suite: Suite) -> tuple[frozenset[str], ...]:
    """Return the sets of what an agent may name that is not in every key, the most telling set first.

    The case is in all of them where the agent's own fixtures read it.
    """
    variants: tuple[tuple[str, ...], ...] = ((),) if suite.variant is None else (("variant",), ())
    cases: tuple[tuple[str, ...], ...] = (("case",),) if suite.reads_case else (("case",), ())
    return tuple(
        frozenset((*inputs, *case, *variant))
        for case in cases
        for inputs in (("inputs",), ())
        for variant in variants
    )


def make_key(
    case: GoldenCase,
    *,
    suite: Suite,
    named: frozenset[str],
    agent_sha: str,
    context_sha: str,
    surroundings: Mapping[str, JSONValue] | None = None,
) -> CaseKey:
    """Return the key of a case's answer.

    Args:
        case: the golden case; nothing of its expectation enters the key.
        suite: gives the model and the parts of ``ctx_agent_key``.
        named: those of ``inputs``, ``case`` and ``variant`` that the agent can read.
        agent_sha: tree SHA of the agent's files.
        context_sha: git blob SHA of the assembled context, or the tree SHA that stands for it.
        surroundings: what ``Identity.to_params`` gave.

    Raises:
        CtxfpError: ``ctx_agent_key`` gives a part that no key has, or one of a wrong form.
    """
    parts = checked_parts(suite.key_parts)
    named_params: dict[str, JSONValue] = dict(surroundings or {})
    if "inputs" in named:
        named_params["inputs"] = dict(case.inputs)
    if "case" in named:
        named_params["case"] = case.view.to_dict()
    if "variant" in named and suite.variant is not None:
        named_params["variant"] = suite.variant
    if suite.parameters:
        named_params["parameters"] = dict(suite.parameters)
    params = merged_params(parts.pop("params", None), named_params)
    try:
        return CaseKey(
            case_id=case.id,
            question=case.question,
            agent_sha=agent_sha,
            model=suite.model,
            context_sha=context_sha,
            sample=suite.sample,
            params=params or None,
            **parts,  # type: ignore[arg-type] # CaseKey checks their types itself
        )
    except ValueError as error:
        message = f"fixture ctx_agent_key or ctx_model gives a part that no key can have: {error}"
        raise CtxfpError(message) from None


def checked_parts(parts: Mapping[str, object]) -> dict[str, object]:
    """Return the parts that ``ctx_agent_key`` gives.

    Raises:
        CtxfpError: a part that no key has.
    """
    unknown = sorted(set(parts).difference(_KEY_PARTS))
    if unknown:
        message = (
            f"fixture ctx_agent_key gives {unknown[0]!r}; it may give {', '.join(_KEY_PARTS)}:"
            " put anything else under 'params'"
        )
        raise CtxfpError(message)
    return dict(parts)


def merged_params(given: object, named: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """Return the user's own params and the plugin's together.

    Raises:
        CtxfpError: the user's are no dict, or use a name of the plugin's.
    """
    if given is None:
        return named
    if not isinstance(given, dict):
        message = f"fixture ctx_agent_key gives params of type {type(given).__name__}: make it a dict"
        raise CtxfpError(message)
    taken = sorted(OWN_PARAMS.intersection(given))
    if taken:
        message = f"fixture ctx_agent_key gives params[{taken[0]!r}], a name of the plugin's own: rename it"
        raise CtxfpError(message)
    return {**given, **named}


def expectation_dict(case: GoldenCase) -> dict[str, JSONValue]:
    """Return all that decides the verdict on an answer, as JSON; none of it is in the key."""
    return {
        "result_kind": case.result_kind.value,
        "match": case.match,
        "expected": case.expected.to_dict() if isinstance(case.expected, Table) else case.expected,
        "expected_sql": case.expected_sql,
        "tolerance": dict(case.tolerance),
        "extra_columns": case.extra_columns,
        "verdict_field": case.verdict_field,
        "ignore_case": case.ignore_case,
        "min_score": case.min_score,
    }


def expectation_sha(case: GoldenCase) -> str:
    """Return the hash of all that decides the verdict on an answer."""
    return git_text_sha(canonical_json(expectation_dict(case)))
