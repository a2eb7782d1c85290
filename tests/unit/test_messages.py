"""Chat requests as layers, in the forms of several providers."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp import (
    ContextFingerprint,
    diff_fingerprints,
    fingerprint_context,
    markdown_layers,
    message_layers,
    tag_layers,
)
from pytest_ctxfp._fingerprint import context_bytes
from pytest_ctxfp._hashing import canonical_json

SYSTEM = "You answer for the shop.\n## Identity\nPolite.\n## Business Rules\n- no refunds for tents\n"
DOCUMENTS = "## Document\nShoes.\n## Document\nTents.\n## Document\nBoats.\n## Question\nWhich float?\n"
REQUEST: dict[str, Any] = {
    "model": "large-1",
    "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello, how can I help?"},
        {"role": "user", "content": DOCUMENTS},
    ],
    "tools": [
        {"type": "function", "function": {"name": "search_orders", "parameters": {"properties": {"id": {}}}}},
        {"type": "function", "function": {"name": "refund", "parameters": {}}},
    ],
    "temperature": 0,
}


def edited(change: Any) -> dict[str, Any]:
    """Return the request after a change."""
    request = copy.deepcopy(REQUEST)
    change(request)
    return request


def changed_layers(change: Any) -> list[str]:
    """Return the summary's marks of what differs after a change of the request."""
    diff = diff_fingerprints(fingerprint_context(REQUEST), fingerprint_context(edited(change)))
    changed = [f"~ {delta.layer}" for delta in diff.changed]
    return [*changed, *(f"+ {key}" for key in diff.added), *(f"- {key}" for key in diff.removed)]


def test_layers_of_a_request() -> None:
    """One layer a message, a section, a tool, and one for the parameters."""
    assert fingerprint_context(REQUEST).order == (
        "system",
        "system/Identity",
        "system/Business Rules",
        "user",
        "assistant",
        "user#2",
        "user#2/Document",
        "user#2/Document#2",
        "user#2/Document#3",
        "user#2/Question",
        "tool:search_orders",
        "tool:refund",
        "parameters",
    )


@pytest.mark.parametrize(
    ("change", "layers"),
    [
        (
            lambda request: request["tools"][0]["function"]["parameters"]["properties"].update(since={}),
            ["~ tool:search_orders"],
        ),
        (
            lambda request: request["messages"][0].update(content=SYSTEM.replace("tents", "boats")),
            ["~ system/Business Rules"],
        ),
        (
            lambda request: request["messages"][3].update(content=DOCUMENTS.replace("Boats", "Canoes")),
            ["~ user#2/Document#3"],
        ),
        (lambda request: request.update(temperature=0.5), ["~ parameters"]),
        (lambda request: request["tools"].pop(), ["- tool:refund"]),
        (
            lambda request: request["messages"][3].update(
                content=DOCUMENTS.replace("## Document\nShoes.\n", "")
            ),
            ["- user#2/Document"],
        ),
    ],
)
def test_changes_are_named(change: Any, layers: list[str]) -> None:
    """A change is said of the layer it is in, and of no other."""
    assert changed_layers(change) == layers


def test_whole_is_the_canonical_json() -> None:
    """The bytes that stand for a request are its canonical JSON; the order of its keys means nothing."""
    assert context_bytes(REQUEST) == canonical_json(REQUEST).encode()
    assert context_bytes(dict(reversed(REQUEST.items()))) == context_bytes(REQUEST)


def test_fingerprints_survive_json() -> None:
    """A fingerprint of a request is read back as it was written."""
    fingerprint = fingerprint_context(REQUEST)
    again = ContextFingerprint.from_dict(json.loads(json.dumps(fingerprint.to_dict())))
    assert diff_fingerprints(fingerprint, again).identical
    assert again.layers == fingerprint.layers


class Dumped:
    """What the clients' message objects are to us: something with ``model_dump``."""

    def __init__(self, **data: Any) -> None:
        self.data = data

    def model_dump(self) -> dict[str, Any]:
        """Return the object as plain data."""
        return self.data


@dataclass
class Part:
    """A part as pydantic-ai holds it: a dataclass."""

    content: str
    timestamp: datetime
    part_kind: str = "user-prompt"


TOOL_CALLS = [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
OPENAI = [
    Dumped(role="system", content="Be kind."),
    Dumped(role="assistant", content=None, tool_calls=TOOL_CALLS, refusal=None),
    Dumped(role="tool", tool_call_id="c1", content="2 found"),
]
RESPONSES = {
    "instructions": "Be kind.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "name": "f"},
    ],
}
ANTHROPIC = {
    "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"data": "aGk="}},
                {"type": "text", "text": "What is this?\n## Hint\nRound.\n"},
                {"type": "text", "text": "Please."},
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "name": "look", "input": {}}]},
    ],
    "tools": [{"name": "look", "input_schema": {}}],
    "max_tokens": 9,
}
GOOGLE = {
    "system_instruction": {"parts": [{"text": "Be kind."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Hi"}, {"inline_data": {"data": b"\xff"}}]},
        {"role": "model", "parts": [{"text": "Hello"}]},
    ],
    "tools": [{"function_declarations": [{"name": "look"}, {"name": "find"}]}],
}
NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)
PYDANTIC_AI = [
    {
        "kind": "request",
        "instructions": "Be brief.",
        "parts": [{"content": "Be kind.", "part_kind": "system-prompt"}, Part("Hi", NOW)],
    },
    {
        "kind": "response",
        "parts": [{"content": "Hello", "part_kind": "text"}, {"tool_name": "f", "part_kind": "tool-call"}],
        "model_name": "m",
    },
]


@pytest.mark.parametrize(
    ("context", "keys"),
    [
        (OPENAI, "system assistant assistant/(fields) tool tool/(fields)"),
        (RESPONSES, "system user function_call function_call/(fields)"),
        (
            ANTHROPIC,
            (
                "system system/(fields) user user/image user/(text) user/Hint user/(text)#2"
                " assistant assistant/tool_use tool:look parameters"
            ),
        ),
        (GOOGLE, "system user user/inline_data model tool:look tool:find"),
        (
            PYDANTIC_AI,
            (
                "system system#2 user user/(fields)"
                " assistant assistant/tool-call assistant/tool-call/(fields) assistant/(fields)"
            ),
        ),
        ([{"role": "user", "content": "Hi"}], "user"),
        (({"role": "user", "content": None},), "user"),
        ([{"role": 7, "content": "x"}], "message message/(fields)"),
        ({"model": "m", "input": "Hi"}, "user parameters"),
        (Dumped(messages=[{"role": "user", "content": "Hi"}]), "user"),
    ],
)
def test_forms_of_providers(context: Any, keys: str) -> None:
    """The messages that users of several clients hold are split alike, by type."""
    assert list(fingerprint_context(context).order) == keys.split(" ")


def test_mapping_of_texts_stays_one() -> None:
    """Names to texts are entries, even where a name is that of a request's field."""
    assert fingerprint_context({"system": "## A\n", "facts": "b"}).order == ("system", "facts")
    assert [layer.key for layer in message_layers({"system": "## A\n", "facts": "b"})] == [
        "system",
        "system/A",
        "parameters",
    ]


def loop() -> list[Any]:
    """Return a list of messages that holds itself."""
    messages: list[Any] = [{"role": "user"}]
    messages[0]["content"] = messages
    return messages


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        ([], "a context is text, bytes, a chat request"),
        (["Hi"], "a context is text, bytes, a chat request"),
        ({"messages": [{"role": "user", "content": object()}]}, "holds a 'object'"),
        ({"messages": [{1: "x"}]}, "a key of type 'int'"),
        ({"messages": [], "temperature": float("nan")}, "NaN|not JSON compliant|JSON"),
        (loop(), "holds itself"),
        (Dumped(facts="b"), "message_layers takes a list of messages"),
    ],
)
def test_what_is_no_request(context: Any, reason: str) -> None:
    """What is no request, or can't be written as JSON, is a ValueError that says so."""
    with pytest.raises(ValueError, match=reason):
        fingerprint_context(context)


CONTENT = st.none() | st.text(alphabet="# a\n\ud800", max_size=12)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "(preamble)", ""]), "content": CONTENT}
    ),
    min_size=1,
    max_size=4,
)


@given(MESSAGES, MESSAGES)
def test_every_difference_is_attributed(before: Any, after: Any) -> None:
    """Requests that differ have a layer that differs, and keys are unique."""
    one, two = fingerprint_context(before), fingerprint_context(after)
    diff = diff_fingerprints(one, two)
    assert diff.identical == (canonical_json(before) == canonical_json(after))
    assert diff.identical or diff.changed or diff.added or diff.removed or diff.reordered


TEXT = (
    "Hi\n<rules kind='all'>\n- a\n<rules>\ninner\n</rules>\n</rules>\nbetween\n"
    "<facts>\n- b\n</facts>\n<open>\nBye"
)


def test_tags() -> None:
    """Sections end where their tag is closed, the same name nested counts, and an unclosed tag is text."""
    layers = tag_layers(TEXT)
    assert [(layer.key, layer.header) for layer in layers] == [
        ("(preamble)", ""),
        ("rules", "<rules kind='all'>\n"),
        ("(text)#2", ""),
        ("facts", "<facts>\n"),
        ("(text)#3", ""),
    ]
    assert layers[1].body == "- a\n<rules>\ninner\n</rules>\n</rules>\n"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", []),
        ("no tag", ["(preamble)"]),
        ("<a>\n</a>\n<a>\n</a>\nx", ["a", "a#2", "(text)"]),
        ("<a>\n</a>\nx\n<b>\n</b>\ny", ["a", "(text)", "b", "(text)#2"]),
        (" <a>\n</a>\n", ["(preamble)"]),
        ("<a/>\n</a>\n", ["(preamble)"]),
        ("<a>x</a>\n", ["(preamble)"]),
        ("</a>\n<a>\n</a>", ["(preamble)", "a"]),
        ("<a>\n<b>\n</a>\n</b>\n", ["a", "(text)"]),
        ("<a>\r\nx\r\n</a>\r\n", ["a"]),
        ("<(preamble)>\n</(preamble)>\n", ["(preamble)#2"]),
        ("<caf\u00e9>\n</caf\u00e9>\n", ["caf\u00e9"]),
    ],
)
def test_tags_by_example(text: str, keys: list[str]) -> None:
    """Tags count on lines of their own at column 0, in texts and in bytes alike."""
    assert [layer.key for layer in tag_layers(text)] == keys
    assert [layer.key for layer in tag_layers(text.encode())] == keys


@given(st.text(alphabet="<>/ab\n ", max_size=60))
def test_tags_partition_the_text(text: str) -> None:
    """Header and body of all layers are the text, and a fingerprint takes the splitter."""
    assert "".join(f"{layer.header}{layer.body}" for layer in tag_layers(text)) == text
    assert fingerprint_context(text, split=tag_layers).sha256 == fingerprint_context(text).sha256


def test_many_open_tags_take_little_time() -> None:
    """Openings without an end are looked at once."""
    assert len(tag_layers("<a>\n" * 200_000)) == 1
    with pytest.raises(ValueError, match="splits text or bytes"):
        tag_layers(1)  # type: ignore[type-var]


def test_splitter_may_leave_a_context_to_its_type() -> None:
    """A splitter that returns None lets the type decide."""
    assert fingerprint_context("## A\n", split=lambda _: None).order == ("A",)
    assert fingerprint_context("## A\n", split=markdown_layers).order == ("A",)
