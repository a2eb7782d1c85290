"""An agent that is a program: asked by its arguments and standard input, it answers on standard output."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_ctxfp._display import escape_lines
from pytest_ctxfp._errors import AgentError
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp.agents._checks import check_seconds
from pytest_ctxfp.agents._envelope import read_output
from pytest_ctxfp.agents._streams import Streams, Watch

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Sequence

    from pytest_ctxfp._model import AgentResult, JSONValue

_PLACEHOLDER = re.compile(r"\{(question|context)\}")
_ALWAYS_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
    *("SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "COMSPEC", "TEMP", "TMP"),
)
_MAX_SHOWN = 2_000
_SHORTEST_SECRET = 6

T = TypeVar("T")


class CommandAgent:
    """Asks a program: ``CommandAgent(["claude", "-p", "{question}", "--output-format", "json"])``.

    ``{question}`` and ``{context}`` in an argument stand for the two texts; where no argument has
    ``{context}``, the context goes to standard input. There is no shell, and other braces are left alone.
    What is printed is the answer, or Claude Code's JSON envelope around it, which also says what it cost.

    Args:
        command: the program and its arguments.
        timeout: seconds that a call may take; then the program is killed, and all that it started.
        cwd: folder that the program runs in; None for pytest's own. It is not in the key.
        env: names of environment variables that the program gets, besides PATH, HOME, the language, and the
            places of temporary files. Names are in the key, values are not: ``ctx_agent_env`` puts them
            there.

    Raises:
        TypeError: ``command`` or ``env`` is one text, or holds something else than texts.
        ValueError: an empty command, a variable with its value, or a timeout that is not above 0.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        timeout: float = 600.0,
        cwd: str | os.PathLike[str] | None = None,
        env: Sequence[str] = (),
    ) -> None:
        check_seconds("timeout", timeout)
        self._command = tuple(os.fspath(part) for part in _checked_list("command", command))
        self._timeout = timeout
        self._cwd = None if cwd is None else Path(cwd)
        self._env = tuple(_checked_list("env", env))
        _check_texts("command", self._command)
        _check_texts("env", self._env)
        if not self._command:
            message = "an empty command: name a program"
            raise ValueError(message)
        wrong = [name for name in self._env if not name or "=" in name]
        if wrong:
            message = f"env has {wrong[0]!r:.80}: write names of variables, without values"
            raise ValueError(message)
        self._takes_input = not any("{context}" in argument for argument in self._command)

    def __repr__(self) -> str:
        """Return the program without its arguments, which may hold secrets."""
        return f"{type(self).__name__}([{self._command[0]!r}, ...])"

    def key_parts(self) -> dict[str, object]:
        """Return what ``ctx_agent_key`` is to return: the command as written, and the variables' names."""
        params: dict[str, JSONValue] = {"command": [*self._command]}
        if self._env:
            params["command_env"] = [*sorted(set(self._env))]
        return {"params": params}

    def __call__(self, question: str, context: object) -> AgentResult:
        """Run the program and return its answer.

        Raises:
            AgentError: it can't be started, takes too long, ends with another status than 0, prints nothing
                or too much, or says that it failed.
        """
        arguments, given = self._fill_in(question, context)
        with closing(Streams(given)) as streams:
            try:
                return self._read(self._run(arguments, streams), streams)
            except TimeoutError:
                raise self._too_slow(streams) from None

    def _run(self, arguments: list[str], streams: Streams) -> int:
        watch = Watch(self._command[0], streams, seconds=self._timeout)
        with self._start(arguments, streams) as process:
            try:
                while (status := _wait(process, watch.next_wait())) is None:
                    pass
            except BaseException:
                _kill_group(process)
                raise
        watch.check_output()
        return status

    def _start(self, arguments: list[str], streams: Streams) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - the suite's own command, without a shell
                arguments,
                stdin=streams.given,
                stdout=streams.out,
                stderr=streams.err,
                cwd=self._cwd,
                env=self._environment(),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise self._not_started(error) from None

    def _fill_in(self, question: str, context: object) -> tuple[list[str], bytes]:
        if context is None and not any("{question}" in argument for argument in self._command):
            message = "the command gets neither question nor context: write {question} in an argument"
            raise AgentError(message)
        texts = {"question": question, "context": _as_text(context)}
        arguments = [_PLACEHOLDER.sub(lambda found: texts[found[1]], argument) for argument in self._command]
        if not self._takes_input:
            return arguments, b""
        return arguments, context if isinstance(context, bytes) else texts["context"].encode(
            "utf-8", "surrogatepass"
        )

    def _environment(self) -> dict[str, str]:
        names = dict.fromkeys((*_ALWAYS_PASSED, *self._env))
        return {name: os.environ[name] for name in names if name in os.environ}

    def _read(self, status: int, streams: Streams) -> AgentResult:
        if status != 0:
            how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
            message = f"{self._command[0]!r} {how}: {self._said(streams) or '(it printed nothing)'}"
            raise AgentError(message)
        try:
            return read_output(streams.read_out().decode("utf-8"))
        except UnicodeDecodeError as error:
            problem = f"it printed bytes that are no UTF-8, at byte {error.start}"
        except ValueError as error:
            problem = self._shown(str(error))[:_MAX_SHOWN]
        message = f"{self._command[0]!r} gave no answer: {problem}"
        raise AgentError(message)

    def _said(self, streams: Streams) -> str:
        return self._shown(streams.read_tail().decode("utf-8", "replace"))[-_MAX_SHOWN:]

    def _shown(self, text: str) -> str:
        """Hide the values of the variables that were allowed: programs print them when they fail."""
        values = {name: os.environ.get(name, "") for name in self._env}
        for name in sorted(values, key=lambda name: -len(values[name])):
            if len(values[name]) >= _SHORTEST_SECRET:
                text = text.replace(values[name], f"[{name}]")
        return escape_lines(text)

    def _too_slow(self, streams: Streams) -> AgentError:
        said = self._said(streams)
        return AgentError(
            f"{self._command[0]!r} took longer than its timeout of {self._timeout:g} s and was killed: give"
            f" the agent a longer timeout{f'; it said: {said}' if said else ''}"
        )

    def _not_started(self, error: OSError | ValueError) -> AgentError:
        program = self._command[0]
        if self._cwd is not None and not self._cwd.is_dir():
            return AgentError(f"{program!r} can't be run in {str(self._cwd)!r}: make this folder")
        if isinstance(error, FileNotFoundError):
            return AgentError(f"{program!r} is not found: install it, or put its name or its PATH right")
        if getattr(error, "errno", None) == errno.E2BIG:
            return AgentError(
                f"{program!r} can't take arguments of this length: leave {{context}} out of them, and the"
                " context goes to its standard input"
            )
        return AgentError(f"{program!r} can't be run: {error}")


class AsyncCommandAgent(CommandAgent):
    """`CommandAgent` for event loops: calls may overlap; one that is cancelled kills its program."""

    async def __call__(self, question: str, context: object) -> AgentResult:  # type: ignore[override]
        """Run the program and return its answer; raises as `CommandAgent` does."""
        arguments, given = self._fill_in(question, context)
        with closing(Streams(given)) as streams:
            try:
                return self._read(await self._run_in_loop(arguments, streams), streams)
            except TimeoutError:
                raise self._too_slow(streams) from None

    async def _run_in_loop(self, arguments: list[str], streams: Streams) -> int:
        import asyncio

        watch = Watch(self._command[0], streams, seconds=self._timeout)
        process = await self._start_in_loop(arguments, streams)
        ended = asyncio.ensure_future(process.wait())
        try:
            while not ended.done():
                await asyncio.wait({ended}, timeout=watch.next_wait())
        except BaseException:
            _kill_group(process)
            await ended
            raise
        watch.check_output()
        return ended.result()

    async def _start_in_loop(self, arguments: list[str], streams: Streams) -> asyncio.subprocess.Process:
        import asyncio

        try:
            return await asyncio.create_subprocess_exec(
                *arguments,
                stdin=streams.given,
                stdout=streams.out,
                stderr=streams.err,
                cwd=self._cwd,
                env=self._environment(),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise self._not_started(error) from None


def _checked_list(name: str, given: Iterable[T]) -> Iterable[T]:
    """Refuse what is a sequence of letters or bytes and was meant as one item."""
    if isinstance(given, (str, bytes)):
        message = f"{name} is one text, {given!r:.80}: write a list of texts"
        raise TypeError(message)
    return given


def _check_texts(name: str, given: tuple[object, ...]) -> None:
    wrong = [part for part in given if not isinstance(part, str)]
    if wrong:
        message = f"{name} has {wrong[0]!r:.80}: write texts"
        raise TypeError(message)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit status, or None where the program still runs after so many seconds."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _as_text(context: object) -> str:
    if context is None:
        return ""
    if isinstance(context, str):
        return context
    if isinstance(context, bytes):
        return context.decode("utf-8", "surrogateescape")
    try:
        return canonical_json(context)
    except ValueError as error:
        message = f"a context that is no text goes to a command as JSON, and this one can't: {error}"
        raise AgentError(message) from None


def _kill_group(process: subprocess.Popen[bytes] | asyncio.subprocess.Process) -> None:
    """Kill a program that was not yet waited for, and what it has started."""
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
