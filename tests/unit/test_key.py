from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import MappingProxyType

import pytest

from pytest_ctxfp._errors import CacheMiss
from pytest_ctxfp._hashing import git_blob_sha
from pytest_ctxfp._key import CaseKey

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "case_key.jsonl").read_text("utf-8").split("\n")
    if line
]


def make_key(**parts) -> CaseKey:
    """Return a key with some parts of one's own."""
    base = {"case_id": "q1", "question": "how many?", "agent_sha": "A", "model": "opus", "context_sha": "C"}
    return CaseKey(**{**base, **parts})


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors(vector):
    """Canonical form and hash are Warble's byte for byte, or the key is refused."""
    if "error" in vector["expected"]:
        with pytest.raises(ValueError, match=r"tier_binding is"):
            CaseKey(**vector["input"])
        return
    key = CaseKey(**vector["input"])
    assert key.canonical() == vector["expected"]["canonical"]
    assert key.hash() == vector["expected"]["sha"]


def test_all_parts():
    """Optional parts follow in their order, each as a text."""
    key = make_key(sample=2, backend="vercel", max_turns=0, tier_binding="a=b", params={"z": 1, "a": [None]})
    assert json.loads(key.canonical())[5:] == ["2", "vercel", "0", "a=b", '{"a":[null],"z":1}']


def test_hash_is_the_blob_sha_of_the_canonical_form():
    """Also where a text holds lone surrogates."""
    key = make_key(question="\udc80 é \ud83d")
    assert key.hash() == git_blob_sha(key.canonical().encode("utf-8", "surrogatepass"))


def test_no_params_are_empty_params():
    """An empty mapping is not in the key."""
    assert make_key(params={}) == make_key()
    assert make_key(params={}).params is None


def test_the_default_backend_is_left_out():
    """``claude-code-cli`` and None are one."""
    assert make_key(backend="claude-code-cli") == make_key()
    assert make_key(backend="claude-code-cli").backend is None


@pytest.mark.parametrize(
    "parts",
    [
        {"case_id": 1},
        {"case_id": None},
        {"question": b"x"},
        {"sample": -1},
        {"sample": True},
        {"sample": "0"},
        {"sample": 0.0},
        {"sample": None},
        {"sample": 10**5000},
        {"sample": -(10**5000)},
        {"max_turns": -1},
        {"max_turns": False},
        {"max_turns": "8"},
        {"max_turns": 8.0},
        {"max_turns": 2**32},
        {"max_turns": 10**5000},
        {"backend": ""},
        {"backend": "Vercel"},
        {"backend": "5"},
        {"backend": "a=b"},
        {"backend": "vercel\n"},
        {"backend": "é"},
        {"backend": 5},
        {"tier_binding": ""},
        {"tier_binding": "strong"},
        {"tier_binding": "5"},
        {"tier_binding": "=x"},
        {"tier_binding": "a="},
        {"tier_binding": "a=b,"},
        {"tier_binding": ",a=b"},
        {"tier_binding": "a=b=c"},
        {"tier_binding": "a=b\n"},
        {"tier_binding": "a=\x85"},
        {"tier_binding": "a b=c"},
        {"tier_binding": "1=c"},
        {"tier_binding": {"a": "b"}},
        {"params": []},
        {"params": "{}"},
        {"params": 0},
        {"params": {1: "a"}},
        {"params": {"a": {2: "a"}}},
        {"params": {"a": float("nan")}},
        {"params": {"a": float("inf")}},
        {"params": {"a": object()}},
        {"params": {"a": 10**5000}},
    ],
    ids=lambda parts: next(f"{name}-{type(value).__name__}" for name, value in parts.items()),
)
def test_refused(parts):
    """A part of another form is a ValueError: forms keep different keys apart."""
    with pytest.raises(ValueError, match=r"."):
        make_key(**parts)


def test_messages_say_what_is_taken():
    """A refusal names the part, the value and the form."""
    with pytest.raises(ValueError, match=r"max_turns is 4294967296: a key takes a whole number from 0 to"):
        make_key(max_turns=2**32)
    with pytest.raises(ValueError, match=r"backend is '': write it as \[a-z\]"):
        make_key(backend="")


def test_long_binding_in_linear_time():
    """A huge text of a nearly right form is refused at once."""
    with pytest.raises(ValueError, match="tier_binding"):
        make_key(tier_binding="a=b," * 200_000)


def test_a_key_keeps_what_was_hashed():
    """Changing the mapping afterwards changes neither the key nor its copy."""
    params = {"inputs": {"a": [1]}}
    key = make_key(params=params)
    before = key.hash()
    params["inputs"]["a"].append(2)
    assert key.params == {"inputs": {"a": [1]}}
    assert key.hash() == before == make_key(params={"inputs": {"a": [1]}}).hash()


def test_frozen():
    """A part can't be replaced in place."""
    with pytest.raises(FrozenInstanceError):
        make_key().sample = 1


def test_any_mapping_is_params():
    """A read-only mapping is as good as a dict."""
    assert make_key(params=MappingProxyType({"a": 1})) == make_key(params={"a": 1})


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda key: pickle.loads(pickle.dumps(key))])
def test_copies(clone):
    """A copy is an equal key, and an error with a key in it pickles."""
    key = make_key(params={"a": 1}, max_turns=3)
    assert clone(key) == key
    assert clone(key).hash() == key.hash()
    assert clone(CacheMiss(key, "why")).key == key


def test_replaced_part():
    """``dataclasses.replace`` makes the key of the changed parts."""
    assert replace(make_key(params={"a": 1}), sample=4) == make_key(params={"a": 1}, sample=4)


def test_keys_as_dict_keys():
    """Equal keys hash alike; params that Python calls equal are told apart."""
    assert len({make_key(params={"a": value}) for value in (1, 1.0, True, 1)}) == 3
    assert make_key() != make_key().canonical()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ()),
        ({"question": "x", "case_id": "y"}, ("case_id", "question")),
        ({"sample": 1, "backend": "x", "max_turns": 1}, ("sample", "backend", "max_turns")),
        ({"agent_sha": "x", "model": "y", "context_sha": "z"}, ("agent_sha", "model", "context_sha")),
        ({"tier_binding": "a=b"}, ("tier_binding",)),
        ({"params": {"inputs": 1, "env": {"B": "2", "A": "1"}}}, ("inputs",)),
        ({"params": {"inputs": True, "env": {"A": "1"}}}, ("env", "inputs")),
        ({"params": None}, ("env", "inputs")),
        ({"params": {"inputs": {}, "env": {"A": "1", "B": "2"}, "model": "m"}}, ("params.model",)),
    ],
)
def test_explain(changes, expected):
    """The parts that differ are named, of params the names inside, both ways."""
    key = make_key(params={"inputs": {}, "env": {"A": "1", "B": "2"}})
    other = replace(key, **changes)
    assert key.explain(other) == other.explain(key) == expected


def test_huge_question():
    """A question of megabytes is a key like another."""
    assert len(make_key(question="x\u2028" * 2_000_000).hash()) == 40
