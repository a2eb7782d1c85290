"""A process's runner: its store, its limits, and what makes its agent what it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_ctxfp._backend import local_folder
from pytest_ctxfp._copies import REMOTE_COPIES
from pytest_ctxfp._environment import hash_variables, read_versions
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._hashing import hash_paths
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._runner import Runner
from pytest_ctxfp._store import TraceStore
from pytest_ctxfp._suite import Identity
from pytest_ctxfp.plugin.counting import exact_counter
from pytest_ctxfp.plugin.redacting import get_redactor
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._hashing import Manifest
    from pytest_ctxfp._limits import CallLedger
    from pytest_ctxfp.plugin.settings import Settings

T = TypeVar("T")
RUNNER = pytest.StashKey[Runner]()
LEDGER_PATH = pytest.StashKey[Path]()
LEDGER_INPUT = "ctxfp_ledger"


def get_runner(config: pytest.Config) -> Runner:
    """Return the runner of this process, made when the first case is resolved."""
    if RUNNER not in config.stash:
        settings = get_settings(config)
        config.stash[RUNNER] = Runner(
            TraceStore(
                settings.cache_dir,
                settings.mode,
                redact=get_redactor(config),
                copies=settings.rootdir / REMOTE_COPIES,
            ),
            lambda: load_identity(settings),
            recorded_by=program_name(),
            counter=lambda: exact_counter(config),
            ledger=get_ledger(config),
        )
    return config.stash[RUNNER]


def get_ledger(config: pytest.Config) -> CallLedger | None:
    """Return the count of calls that all processes of the run share, or None where nothing is limited."""
    limits = get_settings(config).limits
    if limits is None:
        return None
    from pytest_ctxfp._limits import CallLedger

    return CallLedger(get_ledger_path(config), limits)


def get_ledger_path(config: pytest.Config) -> Path:
    """Return the file of the count: a worker is told by the controller, which removes it in the end."""
    if hasattr(config, "workerinput"):
        return Path(config.workerinput[LEDGER_INPUT])
    if LEDGER_PATH not in config.stash:
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="ctxfp-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        config.stash[LEDGER_PATH] = Path(folder, "calls")
    return config.stash[LEDGER_PATH]


def load_identity(settings: Settings) -> Identity:
    """Read what the ini file says makes the agent: its files, its context's, its data, variables, packages.

    Raises:
        CtxfpError: the cache is on and no agent file is named, or something named isn't there.
    """
    if settings.mode is CacheMode.OFF and not (settings.compares_runs and settings.agent_paths):
        return Identity()
    if not settings.agent_paths:
        message = (
            "the trace cache needs to know which files make the agent what it is, or a changed agent would"
            " get old answers: add a line such as 'ctx_agent_paths = agent/' to the ini file"
        )
        raise CtxfpError(message)
    return Identity(
        agent=_hash_files("ctx_agent_paths", settings.agent_paths, settings.rootdir),
        context=_hash_files("ctx_context_paths", settings.context_paths, settings.rootdir),
        data=_hash_files("ctx_data_paths", settings.data_paths, settings.rootdir),
        rootdir=settings.rootdir,
        env=_checked_option("ctx_agent_env", lambda: tuple(hash_variables(settings.agent_env))),
        packages=_checked_option("ctx_agent_packages", lambda: read_versions(settings.agent_packages)),
    )


def _hash_files(option: str, patterns: tuple[str, ...], rootdir: Path) -> Manifest | None:
    if not patterns:
        return None
    return _checked_option(option, lambda: hash_paths(patterns, rootdir=rootdir))


def _checked_option(option: str, read: Callable[[], T]) -> T:
    """Return what an ini option gives; an error names the option."""
    try:
        return read()
    except CtxfpError as error:
        message = f"ini option {option}: {error}"
        raise CtxfpError(message) from None


def check_usage(config: pytest.Config) -> None:
    """Refuse a run whose cache can't work, before anything is collected or paid for.

    Raises:
        pytest.UsageError: with the ini line or the setting that mends it.
    """
    settings = get_settings(config)
    if settings.mode is CacheMode.OFF:
        return
    folder = local_folder(settings.cache_dir)
    if folder is not None and not _can_be_folder(folder):
        message = f"the trace cache {str(folder)!r} is not a folder: name one with --ctx-cache-dir"
        raise pytest.UsageError(message)
    try:
        get_runner(config).identity  # noqa: B018 - hashed here, used by every key
    except CtxfpError as error:
        raise pytest.UsageError(str(error)) from None


def _can_be_folder(path: Path) -> bool:
    """Whether a path is a folder or could be made one: what exists of it is a folder."""
    try:
        return next(part for part in (path, *path.parents) if part.exists()).is_dir()
    except OSError:  # a name that is too long, a folder that can't be entered
        return False


def known_identity(config: pytest.Config) -> Identity:
    """Return the identity for summary and report; where it can't be computed every case has said why."""
    try:
        return get_runner(config).identity
    except CtxfpError:
        return Identity()


def program_name() -> str:
    """Return what traces and reports say of what made them: ``pytest-ctxfp 1.0``."""
    from pytest_ctxfp import __version__

    return f"pytest-ctxfp {__version__}"
