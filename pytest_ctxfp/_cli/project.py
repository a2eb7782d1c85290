"""The project that a command runs in: pytest's rootdir, and what its ini file says, read without pytest."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._backend import is_url, local_folder
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ctxfp._redaction import Redactor

DEFAULT_CACHE_DIR = ".ctxfp/traces"
GOLDEN_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
DEFAULT_GOLDEN_FILES = tuple(
    f"{stem}{suffix}" for stem in ("golden", "golden_*", "golden-*", "*.golden") for suffix in GOLDEN_SUFFIXES
)
# What pytest doesn't look into (its norecursedirs), besides what is never hashed.
_UNVISITED = frozenset({"_darcs", "build", "CVS", "dist"})

IniValues = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder that pytest would take as its rootdir.

    Attributes:
        rootdir: what the paths in the ini file are relative to.
        ini_path: the file that configures pytest, or None without one.
        values: its options as they stand there: texts, or lists of texts.
    """

    rootdir: Path
    ini_path: Path | None = None
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Return a text option, or None where it is absent or empty.

        Raises:
            CtxfpError: it is no text.
        """
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self._refuse(name, value, "a text")
        return value or None

    def words(self, name: str) -> tuple[str, ...]:
        """Return an option of several words, which an ini file splits as a shell does.

        Raises:
            CtxfpError: neither a text nor a list of texts, or an unclosed quote.
        """
        value = self.values.get(name) or ""
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return tuple(value)
        if not isinstance(value, str):
            raise self._refuse(name, value, "a list of texts")
        import shlex

        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            message = f"{self.ini_path}: {name}: {error}: close it"
            raise CtxfpError(message) from None

    def redactor(self) -> Redactor:
        """Return what leaves secrets out of what a run writes, by the ini file alone: hooks need pytest.

        Raises:
            CtxfpError: a pattern that is no regular expression.
        """
        from pytest_ctxfp._redaction import Redactor, compile_patterns

        try:
            patterns = compile_patterns(self._lines("ctx_redact"))
        except ValueError as error:
            message = f"{self.ini_path}: ctx_redact: {error}: mend it"
            raise CtxfpError(message) from None
        switch = str(self.values.get("ctx_redact_defaults", True)).lower()
        return Redactor(patterns, has_key_shapes=switch not in ("0", "false", "no", "off"))

    def _lines(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name) or ""
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            return tuple(value)
        if not isinstance(value, str):
            raise self._refuse(name, value, "a list of texts")
        return tuple(line for line in map(str.strip, value.split("\n")) if line)

    def _refuse(self, name: str, value: object, wanted: str) -> CtxfpError:
        return CtxfpError(f"{self.ini_path}: {name} = {value!r}: write {wanted}")

    def cache_dir(self, given: str | None = None) -> Path | str:
        """Return the folder of stored answers: as given, of the environment, of the ini file or the default.

        Args:
            given: what ``--dir`` says, relative to the current folder.

        Returns:
            an absolute path, or a URL that names no folder of this machine.
        """
        place = given or os.environ.get("CTXFP_CACHE_DIR") or self.text("ctx_cache_dir") or DEFAULT_CACHE_DIR
        if is_url(place):
            return local_folder(place) or place
        return Path(os.path.abspath(place)) if given else self.rootdir / place

    def name_of(self, path: str | os.PathLike[str]) -> str:
        """Return a file's name as reports give it: with ``/``, and relative to the rootdir if it is below."""
        absolute = Path(os.path.abspath(path))
        inside = absolute.is_relative_to(self.rootdir)
        return absolute.relative_to(self.rootdir).as_posix() if inside else absolute.as_posix()

    def golden_candidates(self) -> Iterator[Path]:
        """Yield the files below the rootdir that are named as golden files are, in no particular order.

        Raises:
            CtxfpError: a folder that can't be read.
        """
        from fnmatch import fnmatch

        from pytest_ctxfp._paths import walk_files

        patterns = self.words("ctx_golden_files") or DEFAULT_GOLDEN_FILES

        def take(parts: tuple[str, ...]) -> bool:
            name = parts[-1]
            return name.endswith(GOLDEN_SUFFIXES) and any(
                fnmatch("/".join(parts) if "/" in pattern else name, pattern) for pattern in patterns
            )

        def enter(parts: tuple[str, ...]) -> bool:
            return not parts[-1].startswith(".") and parts[-1] not in _UNVISITED

        for _, path in walk_files(str(self.rootdir), take=take, enter=enter):
            yield Path(path)


def find_project(start: str | os.PathLike[str] = ".") -> Project:
    """Return the project that a folder lies in, found as pytest finds its rootdir.

    That is the nearest folder with a file that configures pytest; else the nearest with a
    ``pyproject.toml``, else the nearest with a ``setup.py``, else the folder itself.

    Source: pytest's reference, "Initialization: determining rootdir and configfile".

    Raises:
        CtxfpError: a file that should configure pytest and can't be read.
    """
    folder = Path(os.path.abspath(start))
    folders = (folder, *folder.parents)
    for base in folders:
        for name, read in _READERS.items():
            path = base / name
            if path.is_file() and (values := _read(path, read)) is not None:
                return Project(rootdir=base, ini_path=path, values=values)
    for name in ("pyproject.toml", "setup.py"):
        for base in folders:
            if (base / name).is_file():
                return Project(rootdir=base)
    return Project(rootdir=folder)


def _read(path: Path, read: Callable[[str], IniValues | None]) -> IniValues | None:
    try:
        return read(path.read_text(encoding="utf-8"))
    except ValueError as error:  # not UTF-8, or none of its format
        message = f"{path}: can't be read: {' '.join(str(error).split())}: correct it, pytest refuses it too"
        raise CtxfpError(message) from None


def _read_ini(text: str, section: str) -> IniValues | None:
    import configparser

    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # the documented way to keep the case
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return dict(parser.items(section)) if parser.has_section(section) else None


def _read_pytest_ini(text: str) -> IniValues:
    return _read_ini(text, "pytest") or {}


def _read_tox_ini(text: str) -> IniValues | None:
    return _read_ini(text, "pytest")


def _read_setup_cfg(text: str) -> IniValues | None:
    return _read_ini(text, "tool:pytest")


def _read_pyproject(text: str) -> IniValues | None:
    pytest_table = _table(_table(_load_toml(text), "tool"), "pytest")
    native = {name: value for name, value in pytest_table.items() if name != "ini_options"}
    if native:
        return native
    return _table(pytest_table, "ini_options") if "ini_options" in pytest_table else None


def _read_pytest_toml(text: str) -> IniValues:
    return _table(_load_toml(text), "pytest")


def _load_toml(text: str) -> IniValues:
    from importlib import import_module

    # Before Python 3.11 there is no tomllib, and pytest itself depends on tomli.
    data: IniValues = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    return data


def _table(data: Mapping[str, object], name: str) -> IniValues:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


_READERS: dict[str, Callable[[str], IniValues | None]] = {
    "pytest.toml": _read_pytest_toml,
    ".pytest.toml": _read_pytest_toml,
    "pytest.ini": _read_pytest_ini,
    ".pytest.ini": _read_pytest_ini,
    "pyproject.toml": _read_pyproject,
    "tox.ini": _read_tox_ini,
    "setup.cfg": _read_setup_cfg,
}
