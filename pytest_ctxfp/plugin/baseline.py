"""The baseline of a run: what each case is weighed against while the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._gate import judge_case
from pytest_ctxfp._gate_model import Verdict
from pytest_ctxfp._report import RunReport
from pytest_ctxfp._report_json import report_from_json
from pytest_ctxfp._report_redaction import redact_run
from pytest_ctxfp.plugin.items import shown_path
from pytest_ctxfp.plugin.redacting import get_redactor
from pytest_ctxfp.plugin.reports import expect_failure
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ctxfp._gate_model import GateCase
    from pytest_ctxfp._report import CaseReport
    from pytest_ctxfp._suite import Identity

BASELINE = pytest.StashKey["RunReport | None"]()

_NOT_NEWS = (Verdict.NOISE, Verdict.KNOWN_FAILING)
"""What a case that fails may be without the run failing."""


def get_baseline(config: pytest.Config) -> RunReport | None:
    """Return the report that ``--ctx-baseline`` names, without secrets, or None without one.

    Read once per process. One from before today's patterns would else show secrets, and differ by them alone.

    Raises:
        CtxfpError: it can't be read, or is of an interrupted run.
    """
    if BASELINE not in config.stash:
        config.stash[BASELINE] = _read_baseline(config)
    return config.stash[BASELINE]


def check_baseline(config: pytest.Config) -> None:
    """Refuse a baseline that can't be compared with, before anything is collected or paid for.

    Raises:
        pytest.UsageError: with what is wrong with it, and how to record another.
    """
    try:
        get_baseline(config)
    except CtxfpError as error:
        raise pytest.UsageError(str(error)) from None


def _read_baseline(config: pytest.Config) -> RunReport | None:
    settings = get_settings(config)
    path = settings.baseline
    if path is None:
        return None
    shown = shown_path(path, config)
    try:
        report = report_from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"--ctx-baseline={shown}: {error.strerror or error}: record one with --ctx-report={shown}"
        raise CtxfpError(message) from None
    except (CtxfpError, ValueError) as error:  # no UTF-8, a name that no file can have
        message = f"--ctx-baseline={shown}: {error}"
        raise CtxfpError(message) from None
    if not (report.complete or settings.allow_incomplete):
        message = (
            f"--ctx-baseline={shown} is of an interrupted run: record it again, or take it as it is with"
            " --ctx-allow-incomplete"
        )
        raise CtxfpError(message)
    return redact_run(report, get_redactor(config))


def weigh_case(case: CaseReport, baseline: RunReport, identity: Identity) -> GateCase:
    """Hold a case that has just been scored against the baseline."""
    return judge_case(case, baseline, RunReport(cases=(), manifests=manifests_of(identity)))


def manifests_of(identity: Identity) -> Mapping[str, Mapping[str, str]]:
    """Return the files behind each SHA of a key, by name."""
    return {manifest.sha: dict(manifest.entries) for manifest in identity.manifests}


def is_to_be_confirmed(found: GateCase) -> bool:
    """Whether a case passed in the baseline and fails now, under a key that changed."""
    return found.verdict in (Verdict.REGRESSION, Verdict.NOISE) and not found.same_key


def excuse_failure(item: pytest.Item, found: GateCase) -> None:
    """Let a failure that is no news not fail the run: it is expected from here on."""
    if found.verdict in _NOT_NEWS:
        expect_failure(item, _describe_excuse(found))


def _describe_excuse(found: GateCase) -> str:
    if found.verdict is Verdict.KNOWN_FAILING:
        return "KNOWN FAILING in the baseline"
    if found.same_key:
        return "NOISE: it passed in the baseline, under the same key"
    return f"NOISE: {found.n_failed} of {found.n_weighed} samples failed, it passed in the baseline"
