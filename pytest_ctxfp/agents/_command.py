"""An agent that is a program: asked by its arguments and standard input, it answers on standard output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import AgentError
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp.agents._envelope import read_output

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from pytest_ctxfp._model import AgentResult, JSONValue

_PLACEHOLDER = re.compile(r"\{(question|context)\}")
_ALWAYS_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
    *("SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "COMSPEC", "TEMP", "TMP"),
)
_MAX_SHOWN = 2_000
_SHORTEST_SECRET = 6


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
        TypeError: ``command`` is one text, or ``env`` is.
        ValueError: an empty command, or a timeout that is not above 0.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout: float = 600.0,
        cwd: str | os.PathLike[str] | None = None,
        env: Sequence[str] = (),
    ) -> None:
        for name, given in (("command", command), ("env", env)):
            if isinstance(given, str):
                message = f"{name} is a text, {given!r:.80}: write a list of texts"
                raise TypeError(message)
        if not command:
            message = "an empty command: name a program"
            raise ValueError(message)
        if not timeout > 0:
            message = f"timeout is {timeout!r}: write seconds above 0"
            raise ValueError(message)
        self._command = tuple(command)
        self._timeout = timeout
        self._cwd = None if cwd is None else Path(cwd)
        self._env = tuple(env)
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
            AgentError: it can't be started, takes too long, ends with another status than 0, or prints
                nothing.
        """
        arguments, given = self._fill_in(question, context)
        try:
            with subprocess.Popen(  # noqa: S603 - the suite's own command, without a shell
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._cwd,
                env=self._environment(),
                start_new_session=True,
            ) as process:
                try:
                    out, err = process.communicate(given, timeout=self._timeout)
                except BaseException as error:
                    _kill_group(process)
                    if isinstance(error, subprocess.TimeoutExpired):
                        raise self._too_slow() from None
                    raise
        except (OSError, ValueError) as error:
            raise self._not_started(error) from None
        return self._read(process.returncode, out, err)

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

    def _read(self, status: int, out: bytes, err: bytes) -> AgentResult:
        if status != 0:
            said = self._without_secrets((err.strip() or out.strip()).decode("utf-8", "replace"))
            how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
            message = f"{self._command[0]!r} {how}: {said[-_MAX_SHOWN:] or '(it printed nothing)'}"
            raise AgentError(message)
        try:
            return read_output(out.decode("utf-8"))
        except UnicodeDecodeError as error:
            message = f"{self._command[0]!r} printed bytes that are no UTF-8, at byte {error.start}"
            raise AgentError(message) from None

    def _without_secrets(self, text: str) -> str:
        """Hide the values of the variables that were allowed: programs print them when they fail."""
        for name in self._env:
            value = os.environ.get(name, "")
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, f"[{name}]")
        return text

    def _too_slow(self) -> AgentError:
        return AgentError(
            f"{self._command[0]!r} took longer than its timeout of {self._timeout:g} s and was killed: give"
            " the agent a longer timeout"
        )

    def _not_started(self, error: OSError | ValueError) -> AgentError:
        program = self._command[0]
        if isinstance(error, FileNotFoundError):
            where = f"its folder {str(self._cwd)!r}, " if self._cwd is not None else ""
            remedy = f"is not found: install it, or put {where}its name or its PATH right"
            return AgentError(f"{program!r} {remedy}")
        if getattr(error, "errno", None) == _ARGUMENTS_TOO_LONG:
            return AgentError(
                f"{program!r} can't take arguments of this length: leave {{context}} out of them, and the"
                " context goes to its standard input"
            )
        return AgentError(f"{program!r} can't be run: {error}")


class AsyncCommandAgent(CommandAgent):
    """`CommandAgent` for event loops: calls may overlap; one that is cancelled kills its program."""

    async def __call__(self, question: str, context: object) -> AgentResult:  # type: ignore[override]
        """Run the program and return its answer; raises as `CommandAgent` does."""
        import asyncio

        arguments, given = self._fill_in(question, context)
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._cwd,
                env=self._environment(),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise self._not_started(error) from None
        out, err = await self._communicate(process, given)
        assert process.returncode is not None
        return self._read(process.returncode, out, err)

    async def _communicate(self, process: asyncio.subprocess.Process, given: bytes) -> tuple[bytes, bytes]:
        import asyncio

        try:
            return await asyncio.wait_for(process.communicate(given), self._timeout)
        except BaseException as error:
            _kill_group(process)
            await process.wait()
            if isinstance(error, asyncio.TimeoutError):
                raise self._too_slow() from None
            raise


_ARGUMENTS_TOO_LONG = 7  # E2BIG


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
