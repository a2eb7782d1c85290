"""The plugin on every Python and pytest that it promises to work on, and with and without each extra.

``nox --list`` names the sessions; ``nox -s 'tests(3.10-pytest-8.0)' -- tests/integration -x`` runs one.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False

LOWEST = ("3.10", "8.0")
HIGHEST = ("3.13", "9")
LEGS = (LOWEST, ("3.10", "8.4"), ("3.11", "8.4"), ("3.12", "9"), HIGHEST)
COMPANIONS = (
    "inline-snapshot",
    "pytest-cov",
    "pytest-randomly",
    "pytest-repeat",
    "pytest-timeout",
    "syrupy",
)
SMOKE = tuple(
    f"tests/integration/test_{name}.py" for name in ("golden_items", "python_tests", "option_ctx_cache")
)
EXTRAS = ("", "html", "http", "locks", "remote", "tokens", "xdist")


@nox.session
@nox.parametrize(("python", "pytest"), LEGS, ids=[f"{python}-pytest-{pytest}" for python, pytest in LEGS])
def tests(session: nox.Session, pytest: str) -> None:
    """Run the tests against the built wheel, under one Python and one pytest."""
    session.install(".[dev]", f"pytest~={pytest}.0")
    session.run("pytest", *(session.posargs or ["-n2"]))


@nox.session
@nox.parametrize(("python", "pytest"), LEGS, ids=[f"{python}-pytest-{pytest}" for python, pytest in LEGS])
def smoke(session: nox.Session, pytest: str) -> None:
    """Run the tests whose outcome hangs on Python's or pytest's version, against the built wheel."""
    session.install(".[test]", f"pytest~={pytest}.0")
    session.run("pytest", *(session.posargs or SMOKE), "-q")


@nox.session
@nox.parametrize("extra", EXTRAS, ids=[extra or "bare" for extra in EXTRAS])
def extras(session: nox.Session, extra: str) -> None:
    """Run the example suite twice with one extra, or none: from an empty cache, and from a full one."""
    session.install(f".[{extra}]" if extra else ".")
    folder = session.create_tmp()
    cache = f"--ctx-cache-dir={folder}/traces"
    session.run("pytest", "example_suite", "--ctx-cache", cache)
    session.run("pytest", "example_suite", "--ctx-on-miss=fail", cache)


@nox.session
def browser(session: nox.Session) -> None:
    """Open the page of a report in a headless Chromium, which must be installed with its chromedriver."""
    session.install(".[test,html]", "selenium>=4.20")
    # Only for the copy of axe-core in it; what it drives itself isn't needed.
    session.install("--no-deps", "axe-playwright-python>=0.1.8")
    session.run("pytest", *(session.posargs or ["tests/browser", "-rP"]))


@nox.session
def companions(session: nox.Session) -> None:
    """Run small projects beside other plugins, which the tests' own environment must not have."""
    session.install(".[test]", *COMPANIONS)
    session.run("pytest", *(session.posargs or ["tests/companions", "-p", "no:randomly", "-n2"]))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a broken link or name, or a page that nothing leads to, ends it."""
    session.install(".[docs]")
    session.run("mkdocs", "build", "--strict", *session.posargs)
