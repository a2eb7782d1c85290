"""What is left out of texts, what stays, and what numbers lines and names."""

from __future__ import annotations

import pytest

from pytest_ctxfp._redaction import Redactor, compile_patterns, redact_fingerprint
from pytest_ctxfp._texts import unique_names

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + "MIIEow" * 10
    + "\n"
    + "aB+/" * 12
    + "==\n"
)
SECRETS = [
    "sk-" + "aB3" * 16,
    "sk-ant-api03-" + "aB3_-" * 18,
    "sk-proj-" + "aB3_-" * 18,
    "ghp_" + "aB3" * 12,
    "ghs_" + "aB3" * 12,
    "github_pat_" + "aB3_" * 20,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "xoxb-1234567890-abcdef",
    "xoxp-1234567890-abcdef",
    "AIza" + "aB3_-" * 7,
    "Bearer " + "aB3.~+/" * 4 + "==",
    "bearer " + "abcdefghij1234567890",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    PEM + "-----END RSA PRIVATE KEY-----",
    PEM.replace("\n", "\\n") + "-----END RSA PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + "lQOYBF" * 10 + "\n-----END PGP PRIVATE KEY BLOCK-----",
]
HARMLESS = [
    "3f9c1a2b4d5e6f70812345678901234567890abc",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "select sk_id, task-id from risk-assessment where disk-usage > 10",
    "task-3f9c1a2b4d5e6f7081234567",
    "a sk-learn pipeline, the sk-short one",
    "Bearer of good news, and bearer documentation-and-authentication",
    "the Bearer scheme of RFC 6750 section 2.1",
    "AKIA is a prefix, AKIAIOSFODNN7EXAMPLEandmore is no key id",
    "ghp_ is how tokens begin, ghp_short",
    "-----BEGIN PUBLIC KEY-----\n" + "MIIBIj" * 10 + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + "MIIBIj" * 10 + "\n-----END CERTIFICATE-----",
    "a PEM file begins with -----BEGIN PRIVATE KEY----- and ends likewise.",
    'eyJ is base64 for {" and eyJhbGciOiJIUzI1NiJ9 alone is no token',
    "550e8400-e29b-41d4-a716-446655440000",
    "xoxo-hugs, xoxb-short",
    "[redacted]",
]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:24])
@pytest.mark.parametrize("around", ["{}", "key={}", 'x "{}" y', "({})", "a\n{}\nb", "Authorization: {};"])
def test_well_known_shapes_are_left_out(secret: str, around: str) -> None:
    """A key of a well-known shape is replaced wherever it stands, and nothing else is."""
    expected = around.format("[redacted]" + "\n" * secret.count("\n"))
    assert Redactor()(around.format(secret)).replace("\n", "") == expected.replace("\n", "")
    assert Redactor()(around.format(secret)).count("\n") == around.format(secret).count("\n")


def test_a_private_key_that_was_cut_off_is_left_out() -> None:
    """A key without an end is replaced up to what no key holds; words that follow go with it."""
    assert Redactor()(f'x "{PEM}" y').replace("\n", "") == 'x "[redacted]" y'
    assert "MIIEow" not in Redactor()(PEM[:150])


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text[:24])
def test_ordinary_text_stays_the_same_object(text: str) -> None:
    """Hashes, SQL, ids, sentences and public keys are not touched."""
    assert Redactor()(text) is text


def test_patterns_come_before_what_is_further() -> None:
    """Patterns are applied in order, then the further function; an empty match replaces nothing."""
    redactor = Redactor(compile_patterns(["b+", "x*"]), further=str.upper)
    assert redactor("abbc") == "A[REDACTED]C"
    assert Redactor(compile_patterns(["(?s)a.*c"]))("1 a\nb\nc 2") == "1 [redacted]\n\n 2"


def test_json_and_bytes() -> None:
    """Texts and keys of JSON are replaced, equal keys are numbered, bytes that are no UTF-8 stay."""
    redactor = Redactor(compile_patterns(["k[0-9]"]))
    value = {"k1": ["k2", 3, None, True], "k2": {"k3": 1.5}, "[redacted]#2": "x"}
    assert redactor.redact_json(value) == {
        "[redacted]": ["[redacted]", 3, None, True],
        "[redacted]#3": {"[redacted]": 1.5},
        "[redacted]#2": "x",
    }
    assert redactor.redact_bytes(b"\xff k1 \xed\xa0\x80") == b"\xff [redacted] \xed\xa0\x80"


def test_names_of_layers_are_numbered_alike() -> None:
    """In a fingerprint a layer has one name in the order and in the layers; its hashes stay."""
    redact = Redactor(compile_patterns(["[0-9a-f]{4}"]))
    layer = {"hash": "x", "bytes": 1, "lines": 1}
    data = {"layers": {"a 1111": layer, "a 2222": layer}, "order": ["a 2222", "a 1111"], "total_bytes": 2}
    assert redact_fingerprint(data, redact) == {
        "layers": {"a [redacted]#2": layer, "a [redacted]": layer},
        "order": ["a [redacted]", "a [redacted]#2"],
        "total_bytes": 2,
    }


def test_unique_names() -> None:
    """Repeated names get the first number that is free."""
    assert unique_names(["a", "b"]) == ["a", "b"]
    assert unique_names(["a", "a", "a#2", "a"]) == ["a", "a#3", "a#2", "a#4"]


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<n>a)(?P<n>b)", "a{99999999999999999999}"])
def test_a_bad_pattern_is_named(pattern: str) -> None:
    """What is no regular expression is a ValueError that names it."""
    with pytest.raises(ValueError, match="is no regular expression") as caught:
        compile_patterns(["fine", pattern])
    assert repr(pattern) in str(caught.value)
