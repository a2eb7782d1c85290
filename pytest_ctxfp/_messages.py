"""A chat request, or a list of messages -> layers, whichever provider's form it has."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from typing import TYPE_CHECKING

from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._layers import (
    PREAMBLE_KEY,
    Layer,
    LayerKeys,
    encode_text,
    iter_headed_layers,
    join_surrogates,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_SYSTEM_KEYS = ("system", "instructions", "system_instruction", "systemInstruction")
_MESSAGE_KEYS = ("messages", "input", "contents")
_REQUEST_KEYS = frozenset((*_SYSTEM_KEYS, *_MESSAGE_KEYS, "tools"))
_MESSAGE_MARKS = frozenset(("role", "kind", "part_kind", "type", "content", "parts"))
_TEXT_TYPES = frozenset((None, "text", "input_text", "output_text"))
_ROLES_OF_PARTS = {
    "system-prompt": "system",
    "user-prompt": "user",
    "text": "assistant",
    "tool-return": "tool",
    "retry-prompt": "retry",
}
_MAX_LEVELS = 128


def message_layers(request: object) -> list[Layer]:
    """Split a chat request into its messages, their headed sections, its tools and its parameters.

    Layers are keyed ``system``, ``user``, ``user#2``, ``assistant``, ``tool`` (one a message, by role),
    ``system/Business Rules`` (a section of its text), ``user#2/Document#3`` (the third of that name),
    ``user/image_url`` (a part that is no text), ``assistant/(fields)`` (what else a message holds),
    ``tool:search_orders`` and ``parameters``. What is no text is JSON with sorted keys, on several lines.

    Args:
        request: a list of messages, or a mapping with any of ``messages``, ``input``, ``contents``,
            ``system``, ``instructions`` and ``tools``: the request bodies of OpenAI, Anthropic and Google,
            the messages of pydantic-ai. Objects with ``model_dump()`` are taken as their dump, dataclasses
            as their fields.

    Raises:
        ValueError: no such request, or one that holds what JSON can't.

    Examples:
        >>> request = {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0}
        >>> [layer.key for layer in message_layers(request)]
        ['user', 'parameters']
    """
    return list(_layers_of(dump_request(request)))


def is_request(context: object) -> bool:
    """Tell whether a context is a chat request or a list of messages, by its type and its keys.

    A mapping of names to texts is none, though a name be ``system``; with ``model`` among the names it is.
    """
    if isinstance(context, (list, tuple)):
        return bool(context) and all(map(_is_message, context))
    if not isinstance(context, Mapping):
        return _has_dump(context)
    if _REQUEST_KEYS.isdisjoint(context):
        return False
    return "model" in context or not all(isinstance(value, str) for value in context.values())


def _is_message(value: object) -> bool:
    if isinstance(value, Mapping):
        return not _MESSAGE_MARKS.isdisjoint(value)
    return _has_dump(value) or (is_dataclass(value) and any(hasattr(value, mark) for mark in _MESSAGE_MARKS))


def _has_dump(value: object) -> bool:
    return callable(getattr(type(value), "model_dump", None))


def split_request(request: object) -> tuple[bytes, Iterator[Layer]]:
    """Return the canonical JSON of a request, and its layers, cut as they are asked for."""
    dumped = dump_request(request)
    return encode_text(canonical_json(dumped)), _layers_of(dumped)


def dump_request(value: object, *, level: int = 0) -> Json:
    """Return a request as plain data: dumps of models, fields of dataclasses, bytes as base64.

    Raises:
        ValueError: a value that has no such form, or that holds itself.
    """
    if level > _MAX_LEVELS:
        message = f"a chat request is nested more than {_MAX_LEVELS} levels deep, or holds itself"
        raise ValueError(message)
    if value is None or isinstance(value, (bool, int, float)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Enum):
        return dump_request(value.value, level=level + 1)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {_key_of(key): dump_request(inner, level=level + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [dump_request(inner, level=level + 1) for inner in value]
    return dump_request(_open_object(value), level=level + 1)


def _open_object(value: object) -> object:
    if _has_dump(value):
        return value.model_dump()  # type: ignore[attr-defined]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, (date, time)):
        return value.isoformat()
    message = (
        f"a chat request holds a {type(value).__name__!r}: use texts, numbers, lists, mappings, bytes,"
        " dataclasses or objects with model_dump()"
    )
    raise ValueError(message)


def _key_of(key: object) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    message = f"a chat request has a key of type {type(key).__name__!r}: make it a text"
    raise ValueError(message)


def _layers_of(request: Json) -> Iterator[Layer]:
    keys = LayerKeys()
    if isinstance(request, list):
        yield from _of_messages(request, keys)
        return
    if not isinstance(request, dict) or _REQUEST_KEYS.isdisjoint(request):
        message = (
            "message_layers takes a list of messages, or a mapping with messages, input, contents, system,"
            f" instructions or tools, got {type(request).__name__!r}"
        )
        raise ValueError(message)
    rest = dict(request)
    for name in _SYSTEM_KEYS:
        if name in rest:
            yield from _of_message(_as_system(rest.pop(name)), keys)
    for name in _MESSAGE_KEYS:
        if name in rest:
            yield from _of_messages(rest.pop(name), keys)
    for tool in _as_list(rest.pop("tools", [])):
        yield from _of_tool(tool, keys)
    if rest:
        yield _json_layer(keys.claim("parameters"), "parameters", rest)


def _as_system(value: Json) -> dict[str, Json]:
    """Return a system prompt as a message: a text, text parts, or Google's content with parts."""
    if isinstance(value, dict):
        return {**value, "role": "system"}
    return {"role": "system", "content": value}


def _as_list(value: Json) -> list[Json]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _of_messages(messages: Json, keys: LayerKeys) -> Iterator[Layer]:
    for message in _as_list(messages):
        if isinstance(message, dict):
            yield from _of_message(message, keys)
        else:  # a bare text, as OpenAI's `input` and Google's `contents` allow
            yield from _of_message({"role": "user", "content": message}, keys)


def _of_message(message: dict[str, Json], keys: LayerKeys) -> Iterator[Layer]:
    parts = message.get("parts")
    if isinstance(parts, list) and isinstance(message.get("kind"), str):
        yield from _of_typed_parts(message, parts, keys)
        return
    rest = dict(message)
    role = rest.pop("role", None)
    if not isinstance(role, str):
        kind = rest.get("type") or rest.get("part_kind")
        rest = rest if role is None else {**rest, "role": role}
        role = kind if isinstance(kind, str) else "message"
    content = rest.pop("content", None)
    if content is None and "parts" in rest:
        content = rest.pop("parts")
    yield from _Message(role, keys).layers(content, rest)


def _of_typed_parts(message: dict[str, Json], parts: list[Json], keys: LayerKeys) -> Iterator[Layer]:
    """Yield the layers of a message of pydantic-ai, whose parts have roles of their own."""
    rest = {name: value for name, value in message.items() if name not in {"parts", "instructions"}}
    if message.get("instructions"):
        yield from _of_message(_as_system(message["instructions"]), keys)
    role = "assistant" if message["kind"] == "response" else "user"
    for part in parts:
        if not isinstance(part, dict):
            yield from _Message(role, keys).layers(part, {})
            continue
        fields_of_part = dict(part)
        kind = fields_of_part.pop("part_kind", None)
        content = fields_of_part.pop("content", None)
        own = _ROLES_OF_PARTS.get(kind, f"{role}/{kind}") if isinstance(kind, str) else role
        yield from _Message(own, keys).layers(content, fields_of_part)
    if rest != {"kind": message["kind"]}:
        yield _json_layer(keys.claim(f"{role}/(fields)"), f"{role}/(fields)", rest)


class _Message:
    """One message: its own layer first, then its sections, parts and fields under its key."""

    def __init__(self, role: str, keys: LayerKeys) -> None:
        self._role = join_surrogates(role) or "message"
        self._keys = keys
        self._key = keys.claim(self._role)
        self._is_begun = False

    def layers(self, content: Json, rest: dict[str, Json]) -> Iterator[Layer]:
        rest = dict(rest)
        extras: list[Json] = []
        for part in content if isinstance(content, list) else [content]:
            text, extra = _read_part(part)
            if text is not None:
                yield from self._of_text(text)
                if extra:
                    extras.append(extra)
            elif part is not None:
                yield from self._begin("")
                yield self._json(_name_part(part), part)
        yield from self._begin("")
        if extras:
            rest["content"] = extras
        if rest:
            yield self._json("(fields)", rest)

    def _begin(self, text: str) -> Iterator[Layer]:
        if not self._is_begun:
            self._is_begun = True
            yield Layer(key=self._key, name=self._role, header="", body=text)

    def _of_text(self, text: str) -> Iterator[Layer]:
        sections = list(iter_headed_layers(text))
        preamble = ""
        if sections and sections[0].key == PREAMBLE_KEY:
            preamble = str(sections.pop(0).body)
        if self._is_begun and preamble:
            yield self._claimed("(text)", "", preamble)
        yield from self._begin(preamble)
        for section in sections:
            yield self._claimed(section.name or "", str(section.header), str(section.body))

    def _json(self, name: str, value: Json) -> Layer:
        return self._claimed(name, "", _readable_json(value))

    def _claimed(self, name: str, header: str, body: str) -> Layer:
        full_name = f"{self._key}/{join_surrogates(name)}"
        return Layer(key=self._keys.claim(full_name), name=full_name, header=header, body=body)


def _read_part(part: Json) -> tuple[str | None, dict[str, Json]]:
    """Return the text of a part and what it holds besides; None for the text of a part that is none."""
    if isinstance(part, str):
        return part, {}
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        return None, {}
    kind = part.get("type")
    if kind is not None and (not isinstance(kind, str) or kind not in _TEXT_TYPES):
        return None, {}
    return str(part["text"]), {name: value for name, value in part.items() if name not in {"type", "text"}}


def _name_part(part: Json) -> str:
    kind = (part.get("type") or part.get("kind")) if isinstance(part, dict) else None
    if isinstance(kind, str):
        return kind
    return next(iter(part)) if isinstance(part, dict) and len(part) == 1 else "(part)"


def _of_tool(tool: Json, keys: LayerKeys) -> Iterator[Layer]:
    declarations = None
    if isinstance(tool, dict) and len(tool) == 1:  # Google groups the functions
        declarations = tool.get("function_declarations") or tool.get("functionDeclarations")
    for one in declarations if isinstance(declarations, list) else [tool]:
        name = f"tool:{join_surrogates(_name_tool(one))}"
        yield _json_layer(keys.claim(name), name, one)


def _name_tool(tool: Json) -> str:
    if not isinstance(tool, dict):
        return "?"
    function = tool.get("function")
    inner = function.get("name") if isinstance(function, dict) else None
    names = (inner, tool.get("name"), tool.get("type"), *list(tool)[:1])
    return next((name for name in names if isinstance(name, str) and name), "?")


def _json_layer(key: str, name: str, value: Json) -> Layer:
    return Layer(key=key, name=name, header="", body=_readable_json(value))


def _readable_json(value: Json) -> str:
    """Return JSON that a diff names the line of: keys sorted, a value a line."""
    canonical_json(value)  # refuses what JSON can't hold
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2) + "\n"
