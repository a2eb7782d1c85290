"""The frozen settings that flags, ini options and the environment make together, parsed once per process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._backend import is_url
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp.plugin.options import (
    DEFAULT_CACHE_DIR,
    DEFAULT_MODEL,
    configured_cache_dir,
    is_cache_asked_for,
)

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

    from pytest_ctxfp._limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options, the ini file and the environment say together.

    Attributes:
        rootdir: pytest's rootdir; relative paths of the ini file start here.
        mode: how the trace cache is used.
        cache_dir: folder of the traces, or a URL.
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
        repeat: answers to each case.
        models: labels of the models that each case is run for; none for the one of ``ctx_model``.
        variants: labels of the assembler's variants; none for an assembler without.
        tags: comma-separated tags of the cases to run; empty for all.
        subset: which of those to run, as ``select_cases`` reads it; None for all.
        reports: files to write the run's report to.
        report_texts: keep the texts of contexts in reports.
        step_summary: file to append the report to, for the page of a CI run.
        baseline: JSON report of the run to compare with.
        allow_incomplete: the baseline may be of an interrupted run.
        confirm: further answers to a case that got worse under a changed key.
        min_accuracy: by tag, or None for all cases, the least accuracy, 0..1, that the run must reach.
        audit: cases answered from the cache that are asked again.
        redact: regular expressions of what is left out of files and failures.
        redact_defaults: whether what looks like an API key is left out too.
    """

    rootdir: Path
    mode: CacheMode
    cache_dir: Path | str
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
    repeat: int
    models: tuple[str, ...]
    variants: tuple[str, ...]
    tags: str
    subset: str | None
    reports: tuple[Path, ...]
    report_texts: bool
    step_summary: Path | None
    baseline: Path | None
    allow_incomplete: bool
    confirm: int
    min_accuracy: tuple[tuple[str | None, Fraction], ...]
    audit: int
    redact: tuple[str, ...]
    redact_defaults: bool

    @property
    def compares_runs(self) -> bool:
        """Whether the run is held against another one, now or later: then keys must tell what made it."""
        return bool(self.reports or self.baseline or self.step_summary)

    @property
    def wants_report(self) -> bool:
        """Whether the run's cases are to be described in full, to be written or judged together."""
        return self.compares_runs or bool(self.min_accuracy)


SETTINGS = pytest.StashKey[Settings]()


def get_settings(config: pytest.Config) -> Settings:
    """Return the settings of this process, parsed when they are first asked for."""
    if SETTINGS not in config.stash:
        config.stash[SETTINGS] = _parse_settings(config)
    return config.stash[SETTINGS]


def _parse_settings(config: pytest.Config) -> Settings:
    started_in = config.invocation_params.dir
    baseline = config.getoption("ctx_baseline")
    return Settings(
        rootdir=config.rootpath,
        mode=_cache_mode(config),
        cache_dir=_parse_cache_dir(config),
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
        repeat=config.getoption("ctx_repeat"),
        models=config.getoption("ctx_models"),
        variants=config.getoption("ctx_variants"),
        tags=config.getoption("ctx_tags") or "",
        subset=config.getoption("ctx_subset"),
        reports=tuple(started_in / path for path in config.getoption("ctx_report")),
        report_texts=config.getini("ctx_report_texts"),
        step_summary=_step_summary(config),
        baseline=None if baseline is None else started_in / baseline,
        allow_incomplete=config.getoption("ctx_allow_incomplete"),
        confirm=config.getoption("ctx_confirm"),
        min_accuracy=tuple(config.getoption("ctx_min_accuracy")),
        audit=config.getoption("ctx_audit"),
        redact=tuple(config.getini("ctx_redact")),
        redact_defaults=config.getini("ctx_redact_defaults"),
    )


def _parse_cache_dir(config: pytest.Config) -> Path | str:
    place = configured_cache_dir(config) or DEFAULT_CACHE_DIR
    return place if is_url(place) else config.rootpath / place


def _step_summary(config: pytest.Config) -> Path | None:
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return config.invocation_params.dir / name if name and config.getini("ctx_step_summary") else None


def _parse_limits(config: pytest.Config) -> Limits | None:
    max_calls, max_cost = config.getoption("ctx_max_calls"), config.getoption("ctx_max_cost")
    if max_calls is None and max_cost is None:
        return None
    from pytest_ctxfp._limits import Limits

    return Limits(max_calls=max_calls, max_cost=max_cost)


def _cache_mode(config: pytest.Config) -> CacheMode:
    """Settle the one mode from the flags, the ini file and the environment."""
    if not is_cache_asked_for(config):
        return CacheMode.OFF
    if config.getoption("ctx_no_cache") or config.getoption("ctx_refresh"):
        return CacheMode.REFRESH
    return CacheMode.AUTO if config.getoption("ctx_on_miss") == "call" else CacheMode.REPLAY
