from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp._key import CaseKey
from pytest_ctxfp._trace import Trace

# Few distinct characters: two keys should often be nearly equal.
TEXTS = st.text(alphabet='a0"\\,[]{=\n\u2028é\ud83d\ude00\U0001f600', max_size=4)
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9._-]{0,2}", fullmatch=True)
BINDINGS = st.from_regex(r"[A-Za-z_]=[a-z0-9{]{1,2}(,[a-z_]=[a-z0-9]){0,2}", fullmatch=True)
COUNTS = st.integers(0, 12)


def json_values(texts):
    """JSON values whose texts come from a strategy."""
    scalars = (
        st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 1e300]) | texts
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    )


PARTS = st.fixed_dictionaries(
    dict.fromkeys(("case_id", "question", "agent_sha", "model", "context_sha"), TEXTS),
    optional={
        "sample": COUNTS,
        "backend": st.none() | NAMES | st.just("claude-code-cli"),
        "max_turns": st.none() | COUNTS,
        "tier_binding": st.none() | BINDINGS,
        "params": st.none() | st.dictionaries(TEXTS, json_values(TEXTS), max_size=2),
    },
)


def as_compared(key: CaseKey) -> str:
    """Write the parts apart from each other, types and all."""
    return repr([(name, json.dumps(value, sort_keys=True)) for name, value in key.parts().items()])


@given(PARTS, PARTS, st.sets(st.sampled_from(["case_id", "question", "agent_sha", "model", "context_sha"])))
def test_equal_canonical_forms_only_for_equal_keys(left, right, shared):
    """Two keys share a canonical form, and a hash, exactly if all their parts are the same."""
    right = {**right, **{name: left[name] for name in shared}}
    one, two = CaseKey(**left), CaseKey(**right)
    same = as_compared(one) == as_compared(two)
    assert (one.canonical() == two.canonical()) == same
    assert (one.hash() == two.hash()) == same
    assert (one == two) == same
    assert (one.explain(two) == ()) == same


OPTIONAL = st.tuples(
    st.none() | NAMES.filter(lambda name: name != "claude-code-cli"),
    st.none() | COUNTS,
    st.none() | BINDINGS,
    st.none() | st.dictionaries(TEXTS, json_values(TEXTS), min_size=1, max_size=2),
)


@given(OPTIONAL, OPTIONAL)
def test_optional_parts_are_told_apart_by_their_form(left, right):
    """With equal fixed parts, no optional part can pass for another."""
    names = ("backend", "max_turns", "tier_binding", "params")
    one, two = (
        CaseKey("q", "q", "a", "m", "c", **dict(zip(names, parts, strict=True))) for parts in (left, right)
    )
    assert (one.canonical() == two.canonical()) == (as_compared(one) == as_compared(two))


@given(PARTS)
def test_canonical_form_is_json_of_texts(parts):
    """The canonical form is a JSON array of texts that begins with the six fixed parts."""
    key = CaseKey(**parts)
    texts = json.loads(key.canonical())
    fixed = [key.case_id, key.question, key.agent_sha, key.model, key.context_sha, str(key.sample)]
    assert texts[:6] == fixed
    assert all(isinstance(text, str) for text in texts)


def joined(value: str) -> str:
    """Write a high surrogate before a low one as the character that JSON means by them."""
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@given(
    ANY_TEXT, json_values(ANY_TEXT), ANY_TEXT, st.none() | st.floats(0, allow_nan=False, allow_infinity=False)
)
def test_traces_round_trip(question, result, raw, cost):
    """The file is valid UTF-8 without a carriage return, reads back to the same trace and the same text."""
    trace = Trace(
        case_id="q", agent_sha="a", model="m", context_sha="c", question=question, result=result,
        latency_ms=1, raw=raw, cost=cost,
    )  # fmt: skip
    data = trace.to_json().encode("utf-8")
    assert b"\r" not in data
    again = Trace.from_json(data.decode("utf-8"))
    assert again.question == joined(question)
    assert again.raw == joined(raw)
    assert again.cost == cost
    assert json.dumps(again.result) == json.dumps(json.loads(json.dumps(result)))
    assert again.to_json().encode("utf-8") == Trace.from_json(again.to_json()).to_json().encode("utf-8")


@given(PARTS)
def test_a_stored_trace_verifies_against_its_key(parts):
    """A trace made for a key matches it after the round trip, whatever the texts hold."""
    key = CaseKey(**parts)
    trace = Trace(
        case_id=key.case_id, agent_sha=key.agent_sha, model=key.model, context_sha=key.context_sha,
        question=key.question, result=None, latency_ms=0,
    ).for_key(key)  # fmt: skip
    assert Trace.from_json(trace.to_json()).mismatch(key) is None
