"""An API key, from the environment into one call's header and nowhere else."""

from __future__ import annotations

import os

from pytest_ctxfp._errors import AgentError

_SHORTEST_SECRET = 12


class ApiKey:
    """The key of one call. Its ``repr`` doesn't show it: pytest prints arguments and locals of what raises.

    Args:
        variable: name of the environment variable that holds it; None for an endpoint that needs none.

    Raises:
        AgentError: the variable is not set, or holds what no header can.
    """

    def __init__(self, variable: str | None) -> None:
        self._variable = variable
        self._key = "" if variable is None else os.environ.get(variable, "").strip()
        if variable is not None and not self._key:
            message = (
                f"the environment variable {variable} holds no API key: set it, or build the agent with"
                " api_key_env=None where the endpoint needs none"
            )
            raise AgentError(message)
        if not (self._key.isascii() and (self._key + "x").isprintable()):
            message = (
                f"the environment variable {variable} holds a line break or letters beyond ASCII: set it anew"
            )
            raise AgentError(message)

    def __repr__(self) -> str:
        """Return where the key is from."""
        return f"{type(self).__name__}({self._variable!r})"

    def __reduce__(self) -> tuple[type[ApiKey], tuple[str | None]]:
        """Pickle the name of the variable alone."""
        return ApiKey, (self._variable,)

    def to_headers(self) -> dict[str, str]:
        """Return the header that shows the key to the endpoint."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def hide(self, text: str) -> str:
        """Return what a server told without the key: servers repeat one that they refuse."""
        if not self._key:
            return text
        for spelling in (self._key, self._key.replace("/", r"\/")):
            text = text.replace(spelling, f"[{self._variable}]")
        return text

    def hide_in_answer(self, text: str) -> str:
        """Do what `hide` does, unless the key is a word such as ``ollama``, which answers may hold."""
        return self.hide(text) if len(self._key) >= _SHORTEST_SECRET else text
