"""``ctxfp schema``."""

from __future__ import annotations

import errno
import io
import json
import os
import sys

import jsonschema
import pytest

from pytest_ctxfp import golden_schema
from pytest_ctxfp._cli import main
from pytest_ctxfp._report_json import report_schema


@pytest.mark.parametrize(
    ("args", "schema"),
    [([], golden_schema()), (["golden"], golden_schema()), (["report"], report_schema())],
    ids=["default", "golden", "report"],
)
def test_it_prints_the_schema(ctxfp, args, schema) -> None:
    """The schema of golden files is printed, or that of reports, in ASCII and ready to be saved."""
    done = ctxfp("schema", *args)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert json.loads(done.stdout) == schema
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))


def test_closed_standard_output_is_refused(capsys, monkeypatch) -> None:
    """Where there is no standard output, that is said on standard error."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["schema"]) == 2
    assert capsys.readouterr().err.startswith("ctxfp: standard output is closed")


def test_full_standard_output_is_refused(capsys, monkeypatch) -> None:
    """Where what is printed has no room, that is a line and exit status 2, not half an answer."""

    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["schema"]) == 2
    assert "(standard output): can't be written: No space left" in capsys.readouterr().err


def test_another_kind_is_wrong_usage(capsys) -> None:
    """A schema that there isn't ends with the usage, which names those that there are."""
    with pytest.raises(SystemExit) as stop:
        main(["schema", "trace"])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert "golden" in err
    assert "report" in err


def test_help_has_an_example(capsys) -> None:
    """The help shows how an editor gets to know the schema."""
    with pytest.raises(SystemExit):
        main(["schema", "--help"])
    assert "ctxfp schema > golden.schema.json" in capsys.readouterr().out


def test_commands_are_listed(capsys) -> None:
    """The help of the command names its commands, and without one it is wrong usage."""
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"\n    {name}" in out for name in ("fingerprint", "diff", "gate", "report", "schema"))
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
