"""Command-line and ini options, and the frozen settings made of them once per process."""

from __future__ import annotations

import argparse
import os
import re
from fnmatch import fnmatch
from itertools import product
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction
    from pathlib import Path


GOLDEN_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
DEFAULT_GOLDEN_FILES = [
    f"{stem}{suffix}" for stem in ("golden", "golden_*", "golden-*", "*.golden") for suffix in GOLDEN_SUFFIXES
]
DEFAULT_CACHE_DIR = ".ctxfp/traces"
DEFAULT_MODEL = "frontmatter"
ON_MISS = ("call", "fail", "skip")
INI_CHOICES = {
    "ctx_snapshot_text": ("commit", "local", "none"),
    "ctx_tokens": ("estimate", "tiktoken", "off"),
}
_AMOUNT = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_MAX_DIGITS = 18
_MAX_REPEAT = 1_000
_LABELS = ("ctx_models", "ctx_variants")
REPORT_SUFFIXES = (".json", ".md", ".html")


COLLECTED = pytest.StashKey["list[pytest.CollectReport]"]()
"""The reports of what was collected, which the evidence for unused snapshots is drawn from."""


def add_options(parser: pytest.Parser) -> None:
    """Register every flag and ini option."""
    group = parser.getgroup("ctxfp", "golden cases, trace cache and context snapshots")
    _add_cache_options(group)
    _add_limit_options(group)
    _add_run_options(group)
    _add_report_options(group)
    _add_snapshot_options(group)
    _add_ini_options(parser)


def _add_cache_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--ctx-cache",
        action="store_true",
        help="replay stored answers of golden cases; ask the agent only where none is stored",
    )
    group.addoption(
        "--ctx-cache-dir",
        metavar="DIR|URL",
        help="folder of stored answers, or a URL such as s3://bucket/traces"
        f" (default: {DEFAULT_CACHE_DIR}, or the environment's CTXFP_CACHE_DIR)",
    )
    group.addoption(
        "--ctx-refresh",
        action="store_true",
        help="ask the agent for every case and store the answers, whatever is stored",
    )
    group.addoption(
        "--no-ctx-cache",
        action="store_true",
        dest="ctx_no_cache",
        help="don't read stored answers; new ones are stored if a cache is configured"
        " (also --no-cache, where no other plugin or conftest defines it)",
    )
    group.addoption(
        "--ctx-on-miss",
        choices=ON_MISS,
        default="call",
        help="where no answer is stored: call the agent (default), fail or skip the case without a call",
    )


def _add_limit_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--ctx-max-calls",
        metavar="N",
        type=_read_number,
        help="make at most N calls in this run, on all workers together; what is beyond is skipped",
    )
    group.addoption(
        "--ctx-max-cost",
        metavar="USD",
        type=_read_max_cost,
        help="make no further call once calls have cost this much, or one has cost an unknown amount",
    )


def _add_run_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--ctx-repeat",
        metavar="N",
        type=_read_count,
        default=1,
        help="ask for N answers to each case; each is stored for itself (default: 1)",
    )
    group.addoption(
        "--ctx-models",
        metavar="A,B",
        type=_read_names,
        default=(),
        help="run each case once for each of these models, which the agent is told as 'model'",
    )
    group.addoption(
        "--ctx-variants",
        metavar="A,B",
        type=_read_names,
        default=(),
        help="run each case once for each of these variants, which the assembler is told as 'variant'",
    )
    group.addoption(
        "--ctx-tags",
        metavar="A,B",
        type=_read_tags,
        help="run only the cases that have one of these tags",
    )
    group.addoption(
        "--ctx-subset",
        metavar="SUBSET",
        type=_read_subset,
        help="run only some of the cases, the same ones every time: a count (20), a share (0.2 or 20%%),"
        " per-tag or per-tag:K",
    )


def _add_report_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--ctx-report",
        metavar="PATH",
        action="append",
        type=_read_report_path,
        default=[],
        help="write what the run came to (repeatable): PATH.json for programs and as a baseline, PATH.md for"
        " a pull request, PATH.html to look at: one file that sorts, searches and shows each case (needs"
        " pytest-ctxfp[html])",
    )
    group.addoption(
        "--ctx-baseline",
        metavar="PATH",
        help="compare with the run whose JSON report this is: only what got worse fails the run",
    )
    group.addoption(
        "--ctx-allow-incomplete",
        action="store_true",
        help="take a baseline whose run was interrupted",
    )
    group.addoption(
        "--ctx-confirm",
        metavar="N",
        type=_read_number,
        default=4,
        help="ask N times more where a case passed in the baseline, its key changed and it fails"
        " (default: 4)",
    )
    group.addoption(
        "--ctx-min-accuracy",
        metavar="[TAG=]SHARE",
        action="append",
        type=_read_min_accuracy,
        default=[],
        help="fail the run below this accuracy (0.8 or 80%%), instead of for each case that fails;"
        " with a tag, for the cases that have it",
    )
    group.addoption(
        "--ctx-audit",
        metavar="N",
        type=_read_number,
        default=0,
        help="ask N cases that are answered from the cache again, and say how many verdicts agree",
    )


def _add_snapshot_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--ctx-snapshot-create",
        action="store_true",
        help="write the context snapshots that don't exist yet",
    )
    group.addoption(
        "--ctx-snapshot-update",
        action="store_true",
        help="write the context snapshots that don't exist yet or that changed, of the tests that run",
    )
    group.addoption(
        "--ctx-snapshot-update-layer",
        action="append",
        default=[],
        metavar="NAME",
        help="accept changes in the layers of this name (or glob; repeatable); any other change still fails",
    )
    group.addoption(
        "--ctx-snapshot-prune",
        action="store_true",
        help="delete the context snapshots that this run proves to be unused",
    )


def _add_ini_options(parser: pytest.Parser) -> None:
    parser.addini("ctx_cache", "use the trace cache, as --ctx-cache does", type="bool", default=False)
    parser.addini("ctx_cache_dir", "folder of stored answers, relative to the rootdir, or a URL")
    parser.addini(
        "ctx_agent_paths",
        "files, folders and globs (relative to the rootdir; !pattern excludes) that make up the agent",
        type="args",
        default=[],
    )
    parser.addini(
        "ctx_context_paths",
        "files that stand for the context in the key of a suite without a ctx_assembler",
        type="args",
        default=[],
    )
    parser.addini(
        "ctx_agent_env",
        "names of environment variables that the agent reads; a hash of each value is in the key",
        type="args",
        default=[],
    )
    parser.addini(
        "ctx_agent_packages",
        "installed packages whose versions make the agent what it is",
        type="args",
        default=[],
    )
    parser.addini(
        "ctx_data_paths",
        "files, folders and globs (!pattern excludes) that the agent reads, a database for instance",
        type="args",
        default=[],
    )
    parser.addini("ctx_model", f"label of the model in keys and reports (default: {DEFAULT_MODEL})")
    parser.addini(
        "ctx_golden_files",
        "globs of golden files: of names, or with a slash of paths from the rootdir"
        " (default: golden.* golden_*.* golden-*.* *.golden.*)",
        type="args",
        default=DEFAULT_GOLDEN_FILES,
    )
    parser.addini(
        "ctx_snapshot_text",
        "where the texts of context snapshots are kept: commit (beside the snapshot file), local or none",
        default="commit",
    )
    parser.addini(
        "ctx_tokens",
        "how tokens are counted: estimate (default; only shown), tiktoken (exact; loads a vocabulary) or off",
        default="estimate",
    )
    parser.addini(
        "ctx_redact",
        "regular expressions, one a line: what they match is left out of files and failures, not of hashes",
        type="linelist",
        default=[],
    )
    parser.addini(
        "ctx_redact_defaults",
        "leave out what looks like an API key, a token or a private key (default: true)",
        type="bool",
        default=True,
    )
    parser.addini(
        "ctx_report_texts",
        "keep the texts of the contexts' layers in reports, to show what changed (default: true)",
        type="bool",
        default=True,
    )
    parser.addini(
        "ctx_step_summary",
        "append the run's Markdown report to the file that GITHUB_STEP_SUMMARY names",
        type="bool",
        default=False,
    )


def add_no_cache_option(parser: pytest.Parser, args: list[str]) -> None:
    """Register ``--no-cache`` where it is asked for and nobody else has defined it.

    The name is a common one: a conftest that defines it for itself keeps its meaning.
    """
    if "--no-cache" not in args:
        return
    _, unknown = parser.parse_known_and_unknown_args(["--no-cache"])
    if "--no-cache" in unknown:
        parser.getgroup("ctxfp").addoption(
            "--no-cache", action="store_true", dest="ctx_no_cache", help="the same as --no-ctx-cache"
        )


def check_options(config: pytest.Config) -> None:
    """Refuse options that contradict each other and ini values that are none of those allowed.

    Raises:
        pytest.UsageError: with what to drop or to write.
    """
    on_miss = config.getoption("ctx_on_miss")
    if on_miss != "call" and (config.getoption("ctx_refresh") or config.getoption("ctx_no_cache")):
        asked = "--ctx-refresh" if config.getoption("ctx_refresh") else "--no-cache"
        message = f"{asked} asks the agent for every case and --ctx-on-miss={on_miss} for none: drop one"
        raise pytest.UsageError(message)
    layers = config.getoption("ctx_snapshot_update_layer")
    if layers and config.getoption("ctx_snapshot_update"):
        message = "--ctx-snapshot-update accepts every layer and --ctx-snapshot-update-layer some: drop one"
        raise pytest.UsageError(message)
    if "" in layers:
        message = "--ctx-snapshot-update-layer takes the name of a layer, or a glob such as 'Document*'"
        raise pytest.UsageError(message)
    if config.getoption("ctx_audit") and on_miss != "call":
        message = f"--ctx-audit asks again and --ctx-on-miss={on_miss} asks nobody: drop one"
        raise pytest.UsageError(message)
    labels = [name for option in _LABELS for name in config.getoption(option)]
    if not all(label.isprintable() for label in labels):
        message = f"--ctx-models and --ctx-variants take names that can be shown, not {labels!r}"
        raise pytest.UsageError(message)
    both = [f"{model}-{variant}" for model, variant in product(*map(config.getoption, _LABELS))]
    if len(set(both)) < len(both):
        message = (
            f"--ctx-models and --ctx-variants together name two tests alike: {sorted(both)!r}; rename one"
        )
        raise pytest.UsageError(message)
    for name, choices in INI_CHOICES.items():
        value = config.getini(name)
        if value not in choices:
            message = f"ini option {name} = {value!r}: write one of {', '.join(choices)}"
            raise pytest.UsageError(message)
    _check_redactions(config.getini("ctx_redact"))
    if any(path.lower().endswith(".html") for path in config.getoption("ctx_report")):
        _check_html()


def _check_html() -> None:
    """Refuse before anything is paid for what could not be written in the end."""
    from pytest_ctxfp._errors import CtxfpError
    from pytest_ctxfp._html import check_renderer

    try:
        check_renderer()
    except CtxfpError as error:
        message = f"--ctx-report: {error}"
        raise pytest.UsageError(message) from None


def _check_redactions(patterns: list[str]) -> None:
    if not patterns:
        return
    from pytest_ctxfp._redaction import compile_patterns

    try:
        compile_patterns(patterns)
    except ValueError as error:
        message = f"ini option ctx_redact: {error}: mend it, or write re.escape() of a plain text"
        raise pytest.UsageError(message) from None


def may_be_golden(path: Path, session: pytest.Session, *, is_taken: bool) -> bool:
    """Whether a file is to be looked at: by its name, or because the user named it.

    Args:
        path: any file.
        session: knows what the user named.
        is_taken: another plugin collected it; then only its name makes it ours.
    """
    if path.suffix not in GOLDEN_SUFFIXES:
        return False
    if any(_is_matched(path, pattern, session) for pattern in session.config.getini("ctx_golden_files")):
        return True
    return not is_taken and session.isinitpath(path)


def has_case_loaders(path: Path, session: pytest.Session) -> bool:
    """Whether a plugin or a conftest above a file may read its cases by ``pytest_ctxfp_load_cases``."""
    return path.suffix != ".py" and bool(session.gethookproxy(path).pytest_ctxfp_load_cases.get_hookimpls())


def _is_matched(path: Path, pattern: str, session: pytest.Session) -> bool:
    """Match a pattern with the file's name or, if it has a slash, with its path from the rootdir."""
    if "/" not in pattern:
        return fnmatch(path.name, pattern)
    rootdir = session.config.rootpath
    return path.is_relative_to(rootdir) and fnmatch(path.relative_to(rootdir).as_posix(), pattern)


def _read_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        message = f"{text!r}: write a whole number, such as 20"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _read_count(text: str) -> int:
    number = _read_number(text)
    if not 1 <= number <= _MAX_REPEAT:
        message = f"{text!r}: write a number from 1 to {_MAX_REPEAT}"
        raise argparse.ArgumentTypeError(message)
    return number


def _read_names(text: str) -> tuple[str, ...]:
    names = tuple(name for piece in text.split(",") if (name := piece.strip()))
    if not names or len(set(names)) < len(names):
        message = f"{text!r}: write different names, separated by commas, such as small,large"
        raise argparse.ArgumentTypeError(message)
    return names


def _read_tags(text: str) -> str:
    if not text:  # select_cases takes it for "no filter", but here a variable was not set
        message = "'' names no tag: write them separated by commas, or leave the flag out"
        raise argparse.ArgumentTypeError(message)
    return _checked_selection(text, tags=text)


def _read_subset(text: str) -> str:
    return _checked_selection(text, subset=text)


def _checked_selection(text: str, *, tags: str = "", subset: str | None = None) -> str:
    from pytest_ctxfp._select import check_selection

    try:
        check_selection(tags, subset)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _read_report_path(text: str) -> str:
    if not text.lower().endswith(REPORT_SUFFIXES):
        *others, last = REPORT_SUFFIXES
        message = f"{text!r}: write a path that ends in {', '.join(others)} or {last}"
        raise argparse.ArgumentTypeError(message)
    return text


def _read_min_accuracy(text: str) -> tuple[str | None, Fraction]:
    from fractions import Fraction

    tag, _, share = text.rpartition("=")
    percent = share.endswith("%")
    number = share.removesuffix("%")
    value = Fraction(number) / (100 if percent else 1) if _AMOUNT.fullmatch(number) else Fraction(-1)
    if not 0 <= value <= 1 or len(number) > _MAX_DIGITS:
        message = f"{text!r}: write a share from 0 to 1, such as 0.8 or 80%, for a tag as tag=0.8"
        raise argparse.ArgumentTypeError(message)
    return (tag or None, value)


def _read_max_cost(text: str) -> Decimal:
    from decimal import Decimal

    if not _AMOUNT.fullmatch(text) or len(text) > _MAX_DIGITS:
        message = f"{text!r} is no amount in USD: write a number of at least 0, such as 2.50"
        raise argparse.ArgumentTypeError(message)
    return Decimal(text)


def is_cache_asked_for(config: pytest.Config) -> bool:
    """Say whether a flag or the ini file wants answers to be read or stored."""
    return (
        is_cache_flag_given(config)
        or config.getini("ctx_cache")
        or (config.getoption("ctx_no_cache") and configured_cache_dir(config) is not None)
    )


def is_cache_flag_given(config: pytest.Config) -> bool:
    """Say whether a flag, here or in addopts, wants answers to be read or stored."""
    flags = config.getoption("ctx_cache"), config.getoption("ctx_refresh")
    return any(flags) or config.getoption("ctx_on_miss") != "call"


def configured_cache_dir(config: pytest.Config) -> str | None:
    """Return the place of the traces where one is named; the flag's is relative to where pytest started."""
    from pytest_ctxfp._backend import is_url

    flag = config.getoption("ctx_cache_dir")
    return (
        (flag and (flag if is_url(flag) else os.path.join(config.invocation_params.dir, flag)))
        or os.environ.get("CTXFP_CACHE_DIR")
        or config.getini("ctx_cache_dir")
        or None
    )


def are_calls_limited(config: pytest.Config) -> bool:
    """Say whether a flag limits what the run may spend."""
    return config.getoption("ctx_max_calls") is not None or config.getoption("ctx_max_cost") is not None


def are_cases_judged_together(config: pytest.Config) -> bool:
    """Say whether a flag selects cases, or wants a report of them or a verdict on all of them."""
    names = ("ctx_tags", "ctx_subset", "ctx_report", "ctx_baseline", "ctx_min_accuracy")
    return any(config.getoption(name) for name in names)


def are_snapshots_asked_for(config: pytest.Config) -> bool:
    """Say whether a flag wants snapshots to be written or deleted."""
    return bool(
        config.getoption("ctx_snapshot_create")
        or config.getoption("ctx_snapshot_update")
        or config.getoption("ctx_snapshot_update_layer")
        or config.getoption("ctx_snapshot_prune")
    )
