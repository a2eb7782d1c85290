"""The rules about which module may import what, and what a start of pytest may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import pytest_ctxfp

PACKAGE = Path(pytest_ctxfp.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def imported_names(module: str) -> set[str]:
    """Return the top-level and full names that a module imports anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("module", MODULES)
def test_only_the_plugin_imports_pytest_and_only_one_module_yaml(module: str) -> None:
    """Pytest stays at the edge, YAML in one module, and nothing of pytest's private modules is used."""
    tops = {name.partition(".")[0] for name in imported_names(module)}
    assert "_pytest" not in tops
    if not module.startswith("plugin/"):
        assert not tops & {"pytest", "pluggy"}
        assert not any(name.startswith("pytest_ctxfp.plugin") for name in imported_names(module))
    if module != "_yaml.py":
        assert "yaml" not in tops


@pytest.mark.parametrize("module", MODULES)
def test_every_module_can_be_imported_alone(module: str) -> None:
    """No module depends on another one having been imported before."""
    name = "pytest_ctxfp." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    name = name.removesuffix(".__init__")
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True)


def test_start_up_loads_the_options_and_nothing_else(tmp_path: Path) -> None:
    """Where nothing of the plugin is used, only the modules that define its options are loaded."""
    code = (
        "import sys, pytest; pytest.main(['-q', '-p', 'no:cacheprovider']);"
        "print(sorted(name for name in sys.modules if name.startswith('pytest_ctxfp') or name == 'yaml'))"
    )
    (tmp_path / "test_x.py").write_text("def test_x(): pass\n")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = [
        "pytest_ctxfp",
        "pytest_ctxfp.plugin",
        "pytest_ctxfp.plugin.hookspecs",
        "pytest_ctxfp.plugin.options",
    ]
    assert done.stdout.splitlines()[-1] == str(loaded)


def test_public_names_are_all_there() -> None:
    """Every public name is importable, listed and sorted, and importing them needs no pytest."""
    assert list(pytest_ctxfp.__all__) == sorted(pytest_ctxfp.__all__)
    for name in pytest_ctxfp.__all__:
        assert getattr(pytest_ctxfp, name).__name__ == name
    code = (
        "import sys, pytest_ctxfp\n"
        "for name in pytest_ctxfp.__all__: getattr(pytest_ctxfp, name)\n"
        "assert 'pytest' not in sys.modules and '_pytest' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        pytest_ctxfp.nonsense  # noqa: B018 - the access is what is tested


def test_package_is_typed() -> None:
    """The marker that tells type checkers to read the annotations is part of what is installed."""
    spec = find_spec("pytest_ctxfp")
    assert spec is not None
    assert spec.origin is not None
    assert (Path(spec.origin).parent / "py.typed").exists()
