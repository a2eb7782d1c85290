"""Leaving secrets out of what is written or shown. Hashes are of the unchanged texts."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._texts import map_texts, unique_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ctxfp._model import JSONValue

REDACTED = "[redacted]"

_START = "(?<![A-Za-z0-9_-])"
_PEM_LABEL = "(?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?"
_PEM_KEY_AHEAD = "(?=(?:[^-]|-(?!----)){0,400}?[A-Za-z0-9+/=]{24})"
_PEM_BODY = r"[A-Za-z0-9+/=\s\\:,.()]*(?:-(?!----)[A-Za-z0-9+/=\s\\:,.()]*){0,100}"
_FINGERPRINT = ("layers", "order", "full_hash", "total_bytes", "sha256", "lines_sha")
# What a text must hold to be worth a search -> the shape. Searching for a fixed text is far quicker, and
# each shape is linear: it begins only where the characters it is made of begin, so no run is read twice.
_KEY_SHAPES = (
    # OpenAI, Anthropic, OpenRouter
    (
        "sk-",
        _START + r"sk-(?:(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
    ),
    # GitHub: docs.github.com, "GitHub's token formats"
    *((f"gh{kind}_", f"{_START}gh{kind}_[A-Za-z0-9]{{30,}}") for kind in "pousr"),
    ("github_pat_", _START + r"github_pat_[A-Za-z0-9_]{22,}"),
    # AWS access key ids, lasting and temporary
    *((prefix, f"{_START}{prefix}[A-Z0-9]{{16}}(?![A-Za-z0-9])") for prefix in ("AKIA", "ASIA")),
    # Slack
    ("xox", _START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    # Google
    ("AIza", _START + r"AIza[A-Za-z0-9_-]{35}"),
    # RFC 6750: a token has a digit, the words after "bearer" in a sentence have none
    *(
        (word, rf"\b{word}[ \t]{{1,4}}(?=[A-Za-z._~+/-]*[0-9])[A-Za-z0-9._~+/-]{{20,}}=*")
        for word in ("Bearer", "bearer", "BEARER")
    ),
    # RFC 7519: two objects in base64url, and a signature
    ("eyJ", _START + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    # RFC 7468, also with escaped line ends and where the text was cut off within the key
    (
        "PRIVATE KEY",
        f"-----BEGIN {_PEM_LABEL}-----{_PEM_KEY_AHEAD}{_PEM_BODY}(?:-----END {_PEM_LABEL}-----)?",
    ),
)
_ANY_MARKER = re.compile("|".join(re.escape(marker) for marker, _ in _KEY_SHAPES))
_SHORTEST = 15  # characters of the shortest key that has one of the shapes


@dataclass(frozen=True, slots=True)
class Redactor:
    """Puts ``[redacted]`` in the place of secrets.

    Line feeds within a secret stay behind it, so that all other lines keep their numbers.

    Args:
        patterns: what is a secret in this suite.
        has_key_shapes: whether what looks like a well-known kind of API key is one too.
        further: what else is done to each text, last.
    """

    patterns: tuple[re.Pattern[str], ...] = ()
    has_key_shapes: bool = True
    further: Callable[[str], str] | None = None

    def __call__(self, text: str) -> str:
        """Return a text without secrets, the same object where it has none."""
        if self.has_key_shapes:
            text = _redact_key_shapes(text)
        for pattern in self.patterns:
            text = pattern.sub(_replace, text)
        return text if self.further is None else self.further(text)

    def redact_json(self, value: JSONValue) -> JSONValue:
        """Return a JSON value without secrets in its texts and keys; keys that become equal are numbered.

        Raises:
            ValueError: a value nested too deep.
        """
        return map_texts(value, self)

    def redact_bytes(self, data: bytes) -> bytes:
        """Return UTF-8 without secrets; bytes that are no UTF-8 stay."""
        text = data.decode("utf-8", "surrogateescape")
        redacted = self(text)
        return data if redacted == text else redacted.encode("utf-8", "surrogateescape")


def compile_patterns(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Return the regular expressions of a suite's secrets.

    Raises:
        ValueError: one of them is none, which is named.
    """
    return tuple(map(_compile, patterns))


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set": what it means today is what is meant
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        message = f"{pattern!r} is no regular expression ({error})"
        raise ValueError(message) from None


def _redact_key_shapes(text: str) -> str:
    if len(text) < _SHORTEST or _ANY_MARKER.search(text) is None:
        return text
    for marker, shape in _KEY_SHAPES:
        if marker in text:
            text = re.sub(shape, _replace, text)
    return text


def _replace(match: re.Match[str]) -> str:
    secret = match.group()
    return REDACTED + "\n" * secret.count("\n") if secret else ""


def redact_fingerprint(
    fingerprint: Mapping[str, JSONValue], redact: Callable[[str], str]
) -> dict[str, JSONValue]:
    """Return a fingerprint, as a mapping, without secrets in the names and headers of its layers.

    Layers whose names become equal are numbered, in the same way wherever they are named. Hashes stay.

    Raises:
        ValueError: a value nested too deep.
    """
    order = fingerprint.get("order")
    names = [name for name in order if isinstance(name, str)] if isinstance(order, list) else []
    keys = dict(zip(names, unique_names(map(redact, names)), strict=True))
    redacted = map_texts(
        {name: value for name, value in fingerprint.items() if name not in _FINGERPRINT}, redact
    )
    assert isinstance(redacted, dict)
    for name in _FINGERPRINT:
        if name in fingerprint:
            redacted[name] = fingerprint[name]
    if "layers" in fingerprint:
        redacted["layers"] = _redact_layers(fingerprint["layers"], keys, redact)
    if "order" in fingerprint:
        redacted["order"] = map_texts(order, lambda text: keys.get(text) or redact(text))
    return redacted


def _redact_layers(layers: JSONValue, keys: Mapping[str, str], redact: Callable[[str], str]) -> JSONValue:
    if not isinstance(layers, dict):
        return map_texts(layers, redact)
    return {keys.get(key) or redact(key): _redact_layer(layer, redact) for key, layer in layers.items()}


def _redact_layer(layer: JSONValue, redact: Callable[[str], str]) -> JSONValue:
    redacted = map_texts(layer, redact)
    if isinstance(redacted, dict) and isinstance(layer, dict) and "hash" in layer:
        redacted["hash"] = layer["hash"]
    return redacted
