"""Assembles what the model sees: layers under markdown headings, the steady ones first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp import load_facts, render_wakeup

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
IDENTITY = (
    "You are the data analyst of Banksia Supply, a shop for camping gear.\n"
    "You read the database and never write to it. Answer with one fenced JSON table.\n"
    "Where the rules don't define what is asked for, say so."
)


def assemble(question: str, inputs: Mapping[str, object]) -> str:
    """Return the context for a question.

    Args:
        question: the user's message.
        inputs: ``now`` (shop time, ``YYYY-MM-DD HH:MM``) and ``history`` (earlier questions), both optional.
    """
    layers = {
        "Identity": IDENTITY,
        "Schema": read_text("schema.sql"),
        "Business Rules": read_text("rules.md"),
        "Project Facts": list_facts(),
        "Recent Context": list_recent(inputs),
        "Question": question,
    }
    return "\n".join(f"## {name}\n{body}\n" for name, body in layers.items())


def read_text(name: str) -> str:
    """Return a file of this folder, without the line end at its end."""
    return (HERE / name).read_text(encoding="utf-8").rstrip("\n")


def list_facts() -> str:
    """Return the shop's facts, those of one topic under one header."""
    return render_wakeup(load_facts(HERE / "facts.jsonl"))


def list_recent(inputs: Mapping[str, object]) -> str:
    """Return the present time and earlier questions, where the case has them."""
    now, history = inputs.get("now"), inputs.get("history")
    lines = [f"- now: {now}"] if now else []
    if isinstance(history, list):
        lines += [f"- asked before: {question}" for question in history]
    return "\n".join(lines) or "(nothing)"
