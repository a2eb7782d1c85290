"""Ready agents: a command, and an endpoint that speaks OpenAI's chat completions.

An agent is inert when it is built: nothing is opened, looked up or read from the environment. What its
answers hang on is in ``key_parts()``, which a suite returns from its fixture ``ctx_agent_key``.
"""

from __future__ import annotations

from pytest_ctxfp.agents._chat import AsyncChatAgent, ChatAgent
from pytest_ctxfp.agents._command import AsyncCommandAgent, CommandAgent

__all__ = ["AsyncChatAgent", "AsyncCommandAgent", "ChatAgent", "CommandAgent"]
