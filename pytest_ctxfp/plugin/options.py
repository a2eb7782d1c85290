"""Command-line and ini options, and the frozen settings made of them once per process."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

    from pytest_ctxfp._limits import Limits
    from pytest_ctxfp._store import CacheMode

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options, the ini file and the environment say together.

    Attributes:
        rootdir: pytest's rootdir; relative paths of the ini file start here.
        mode: how the trace cache is used.
        cache_dir: folder of the traces.
        on_miss: ``call`` the agent, ``fail`` or ``skip`` where no answer is stored.
        agent_paths: patterns of the files that make the agent what it is.
        context_paths: patterns of the files that stand for the context where there is no assembler.
        agent_env: names of environment variables that the agent reads.
        agent_packages: names of installed packages that make the agent what it is.
        data_paths: patterns of the files that the agent reads.
        limits: what the run may spend, or None where it is not limited.
        model: label of the model, unless the fixture ``ctx_model`` gives one.
        snapshot_create: write snapshots that are missing.
        snapshot_update: write snapshots that are missing or changed.
        snapshot_update_layers: names and globs of layers in which a change is accepted.
        snapshot_prune: delete snapshots that this run has proven to be unused.
        snapshot_text: where the texts of snapshots are kept: ``commit``, ``local`` or ``none``.
        tokens: how tokens are counted: ``estimate``, ``tiktoken`` or ``off``.
        redact: regular expressions of what is left out of files and failures.
        redact_defaults: whether what looks like an API key is left out too.
    """

    rootdir: Path
    mode: CacheMode
    cache_dir: Path
    on_miss: str
    agent_paths: tuple[str, ...]
    context_paths: tuple[str, ...]
    agent_env: tuple[str, ...]
    agent_packages: tuple[str, ...]
    data_paths: tuple[str, ...]
    limits: Limits | None
    model: str
    snapshot_create: bool
    snapshot_update: bool
    snapshot_update_layers: tuple[str, ...]
    snapshot_prune: bool
    snapshot_text: str
    tokens: str
    redact: tuple[str, ...]
    redact_defaults: bool


SETTINGS = pytest.StashKey[Settings]()
COLLECTED = pytest.StashKey["list[pytest.CollectReport]"]()
"""The reports of what was collected, which the evidence for unused snapshots is drawn from."""


def add_options(parser: pytest.Parser) -> None:
    """Register every flag and ini option."""
    group = parser.getgroup("ctxfp", "golden cases, trace cache and context snapshots")
    _add_cache_options(group)
    _add_limit_options(group)
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
        metavar="DIR",
        help=f"folder of stored answers (default: {DEFAULT_CACHE_DIR}, or the environment's CTXFP_CACHE_DIR)",
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
        type=_read_max_calls,
        help="make at most N calls in this run, on all workers together; what is beyond is skipped",
    )
    group.addoption(
        "--ctx-max-cost",
        metavar="USD",
        type=_read_max_cost,
        help="make no further call once calls have cost this much, or one has cost an unknown amount",
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
    parser.addini("ctx_cache_dir", "folder of stored answers, relative to the rootdir")
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
    for name, choices in INI_CHOICES.items():
        value = config.getini(name)
        if value not in choices:
            message = f"ini option {name} = {value!r}: write one of {', '.join(choices)}"
            raise pytest.UsageError(message)
    _check_redactions(config.getini("ctx_redact"))


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


def get_settings(config: pytest.Config) -> Settings:
    """Return the settings of this process, parsed when they are first asked for."""
    if SETTINGS not in config.stash:
        config.stash[SETTINGS] = _parse_settings(config)
    return config.stash[SETTINGS]


def _parse_settings(config: pytest.Config) -> Settings:
    return Settings(
        rootdir=config.rootpath,
        mode=_cache_mode(config),
        cache_dir=config.rootpath / (_configured_cache_dir(config) or DEFAULT_CACHE_DIR),
        on_miss=config.getoption("ctx_on_miss"),
        agent_paths=tuple(config.getini("ctx_agent_paths")),
        context_paths=tuple(config.getini("ctx_context_paths")),
        agent_env=tuple(config.getini("ctx_agent_env")),
        agent_packages=tuple(config.getini("ctx_agent_packages")),
        data_paths=tuple(config.getini("ctx_data_paths")),
        limits=_parse_limits(config),
        model=config.getini("ctx_model") or DEFAULT_MODEL,
        snapshot_create=config.getoption("ctx_snapshot_create") or config.getoption("ctx_snapshot_update"),
        snapshot_update=config.getoption("ctx_snapshot_update"),
        snapshot_update_layers=tuple(config.getoption("ctx_snapshot_update_layer")),
        snapshot_prune=config.getoption("ctx_snapshot_prune"),
        snapshot_text=config.getini("ctx_snapshot_text"),
        tokens=config.getini("ctx_tokens"),
        redact=tuple(config.getini("ctx_redact")),
        redact_defaults=config.getini("ctx_redact_defaults"),
    )


def _parse_limits(config: pytest.Config) -> Limits | None:
    max_calls, max_cost = config.getoption("ctx_max_calls"), config.getoption("ctx_max_cost")
    if max_calls is None and max_cost is None:
        return None
    from pytest_ctxfp._limits import Limits

    return Limits(max_calls=max_calls, max_cost=max_cost)


def _read_max_calls(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        message = f"{text!r} is no number of calls: write a whole number, such as 20"
        raise argparse.ArgumentTypeError(message)
    return int(text)


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
        or (config.getoption("ctx_no_cache") and _configured_cache_dir(config) is not None)
    )


def is_cache_flag_given(config: pytest.Config) -> bool:
    """Say whether a flag, here or in addopts, wants answers to be read or stored."""
    flags = config.getoption("ctx_cache"), config.getoption("ctx_refresh")
    return any(flags) or config.getoption("ctx_on_miss") != "call"


def _cache_mode(config: pytest.Config) -> CacheMode:
    """Settle the one mode from the flags, the ini file and the environment."""
    from pytest_ctxfp._store import CacheMode

    if not is_cache_asked_for(config):
        return CacheMode.OFF
    if config.getoption("ctx_no_cache") or config.getoption("ctx_refresh"):
        return CacheMode.REFRESH
    return CacheMode.AUTO if config.getoption("ctx_on_miss") == "call" else CacheMode.REPLAY


def _configured_cache_dir(config: pytest.Config) -> str | None:
    flag = config.getoption("ctx_cache_dir")
    return (
        (flag and os.path.join(config.invocation_params.dir, flag))
        or os.environ.get("CTXFP_CACHE_DIR")
        or config.getini("ctx_cache_dir")
        or None
    )


def are_snapshots_asked_for(config: pytest.Config) -> bool:
    """Say whether a flag wants snapshots to be written or deleted."""
    return bool(
        config.getoption("ctx_snapshot_create")
        or config.getoption("ctx_snapshot_update")
        or config.getoption("ctx_snapshot_update_layer")
        or config.getoption("ctx_snapshot_prune")
    )
