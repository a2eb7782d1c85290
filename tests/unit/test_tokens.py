"""Counting tokens and keeping budgets."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import pytest
import tiktoken

from pytest_ctxfp import BudgetExceeded, check_budget, count_tokens, markdown_layers
from pytest_ctxfp._tokens import (
    ESTIMATE,
    TokenCounter,
    encoding_counter,
    estimate_tokens,
    load_tiktoken,
    resolve_counter,
)

CONTEXT = "Hi\n## Facts\n- abcdefgh\n## Question\nwhy\n"


@pytest.fixture
def encoding():
    """A small vocabulary: all bytes, and a few words."""
    ranks = {bytes([i]): i for i in range(256)}
    for word in (b"th", b"the", b" the", b" f", b" fa", b" fac", b" fact"):
        ranks[word] = len(ranks)
    return tiktoken.Encoding(
        "small",
        pat_str=r" ?\p{L}+|\s+(?!\S)|\s+|[^\s\p{L}]+",
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": len(ranks)},
    )


@pytest.fixture
def fresh_load():
    """Forget what was loaded before the test and in it."""
    load_tiktoken.cache_clear()
    yield
    load_tiktoken.cache_clear()


@pytest.mark.parametrize(
    ("text", "n_tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("日本", 2), ("\ud800", 1), (b"\xff" * 5, 4)],
)
def test_the_estimate_is_a_token_for_four_bytes(text, n_tokens):
    """Bytes of UTF-8 count, rounded up; lone surrogates and bytes that are no UTF-8 too."""
    assert count_tokens(text) == n_tokens
    assert count_tokens(text, "estimate") == n_tokens


def test_the_estimate_needs_only_a_size():
    """The estimate of a size is that of any ASCII text of this size."""
    assert [estimate_tokens(n) for n in range(10)] == [count_tokens("x" * n) for n in range(10)]


def test_an_encoding_counts_exactly(encoding):
    """Words of the vocabulary are one token each, other texts one a byte."""
    counter = encoding_counter(encoding)
    assert count_tokens("the the fact", counter) == 3
    assert count_tokens("日", counter) == 3
    assert (counter.name, counter.is_estimate, counter.show(3)) == ("small", False, "3")


def test_special_tokens_are_ordinary_text(encoding):
    """Text that looks like a special token is counted as it stands and never refused."""
    assert count_tokens("<|endoftext|>", encoding_counter(encoding)) == len("<|endoftext|>")


@pytest.mark.parametrize(
    "text", [" " * 1_000_000, "\t \n" * 300_000, "\ud800" * 100, (" " * 9999 + "x") * 99]
)
def test_odd_texts_are_counted(encoding, text):
    """Long runs of blanks, which the tokeniser can't take whole, and lone surrogates are counted."""
    assert count_tokens(text, encoding_counter(encoding)) >= len(text)


def test_a_function_counts():
    """Any function from text to int is a counter, and bytes come to it as text."""
    assert count_tokens("a b c", lambda text: len(text.split())) == 3
    assert count_tokens(b"a \xff", len) == 3
    assert resolve_counter(len) == TokenCounter(name="len", count=len)


@pytest.mark.parametrize("result", [-1, 1.5, "3", None, True])
def test_a_count_that_is_none_is_refused(result):
    """A counter that returns no whole number of at least 0 is an error that names it."""
    with pytest.raises(ValueError, match=r"the counter 'mine' must return a whole number"):
        count_tokens("x", TokenCounter(name="mine", count=lambda _: result))


@pytest.mark.parametrize("counter", ["gpt", "", 7])
def test_other_counters_are_refused(counter):
    """A word that names no counter is an error that names those there are."""
    with pytest.raises(ValueError, match="a counter is 'estimate', 'tiktoken' or a function"):
        count_tokens("x", counter)


@pytest.mark.parametrize("text", [None, 5, ["x"]])
def test_other_texts_are_refused(text):
    """Only text and bytes have tokens."""
    with pytest.raises(ValueError, match="count_tokens counts text or bytes, got"):
        count_tokens(text)


@pytest.mark.usefixtures("fresh_load")
def test_tiktoken_counts_when_asked_for(monkeypatch, encoding):
    """The word tiktoken loads its vocabulary, once."""
    asked = []
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: asked.append(name) or encoding)
    assert count_tokens("the fact", "tiktoken") == 2
    assert count_tokens("the", "tiktoken") == 1
    assert asked == ["o200k_base"]


@pytest.mark.usefixtures("fresh_load")
def test_without_its_vocabulary_there_is_one_warning_and_the_estimate(monkeypatch):
    """A download that fails is tried and told of once; counts are then estimates, shown as such."""
    asked = []

    def fail(name):
        asked.append(name)
        raise OSError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [count_tokens("x" * 9, "tiktoken") for _ in range(3)] == [3, 3, 3]
    (warning,) = caught
    assert str(warning.message) == (
        "tokens are estimated, as tiktoken has no vocabulary 'o200k_base' (OSError): "
        "run once with network, or set TIKTOKEN_CACHE_DIR to a folder that holds it"
    )
    assert asked == ["o200k_base"]
    assert resolve_counter("tiktoken").show(3) == "~3"


@pytest.mark.usefixtures("fresh_load")
def test_without_tiktoken_the_warning_says_how_to_get_it(monkeypatch):
    """Where the extra is not installed, the remedy is the command that installs it."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.warns(UserWarning, match=r"pip install 'pytest-ctxfp\[tokens\]'"):
        assert resolve_counter("tiktoken") is ESTIMATE


def test_estimates_load_no_tokeniser():
    """Counting and budgets by the estimate import neither tiktoken nor what could reach a network."""
    code = (
        "import sys, pytest_ctxfp as p\n"
        "p.count_tokens('x'); p.check_budget('## A\\nx', {'A': 1})\n"
        "assert not {'tiktoken', 'requests', 'socket', 'pytest'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_budget_that_is_kept_is_silent():
    """Layers at their limits pass, and so does the whole."""
    check_budget(CONTEXT, {"Facts": 3, "(preamble)": 1, "*": 10})
    check_budget(CONTEXT, {})


def test_a_budget_that_is_exceeded_says_by_how_much():
    """Layer, count, limit and what to cut are named, of all that is over, with ~ for an estimate."""
    with pytest.raises(BudgetExceeded) as caught:
        check_budget(CONTEXT, {"Facts": 1, "Question": 1, "*": 4})
    assert str(caught.value) == (
        "layer 'Facts' has ~3 tokens, its budget is 1: cut ~2\n"
        "the context has ~10 tokens, its budget is 4: cut ~6"
    )
    assert isinstance(caught.value, AssertionError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_budget_counts_with_the_counter():
    """An exact counter's numbers stand without ~, and the whole is counted as one text."""
    texts = []
    with pytest.raises(BudgetExceeded, match=r"^the context has 39 tokens, its budget is 38: cut 1$"):
        check_budget(CONTEXT, {"*": 38}, counter=lambda text: texts.append(text) or len(text))
    assert texts[-1] == CONTEXT


@pytest.mark.parametrize("context", [CONTEXT.encode(), bytearray(CONTEXT.encode())])
def test_bytes_have_the_budget_of_their_text(context):
    """Text and its bytes have the same counts."""
    check_budget(context, {"Facts": 11, "*": 39}, counter=len)
    with pytest.raises(BudgetExceeded):
        check_budget(context, {"*": 38}, counter=len)


def test_a_mapping_has_the_tokens_of_its_texts():
    """The whole of a mapping is its texts together, and a layer named * is not asked for."""
    check_budget({"a": "xx", "b": "yyy", "*": "zzzz"}, {"a": 2, "*": 9}, counter=len)
    with pytest.raises(BudgetExceeded, match="the context has 9 tokens"):
        check_budget({"a": "xx", "b": "yyy", "*": "zzzz"}, {"*": 8}, counter=len)


def test_a_budget_may_be_of_other_layers():
    """The layers are those of the given splitter."""
    with pytest.raises(BudgetExceeded, match="layer 'A' has 2 tokens"):
        check_budget("# A\nx\n", {"A": 1}, counter=len, split=lambda text: markdown_layers(text, 1))


@pytest.mark.parametrize("limit", [-1, 1.5, "9", None, True])
def test_a_limit_that_is_none_is_refused(limit):
    """A limit is a whole number of at least 0."""
    with pytest.raises(ValueError, match=r"the budget of 'Facts' must be a whole number of at least 0, got"):
        check_budget(CONTEXT, {"Facts": limit})


def test_a_budget_for_a_layer_that_is_not_there_is_refused():
    """A misspelled layer would never be over its budget, so it is an error that lists the layers."""
    message = r"the context has no layer 'Fact', .*; its layers: '\(preamble\)', 'Facts', 'Question'$"
    with pytest.raises(ValueError, match=message):
        check_budget(CONTEXT, {"Fact": 5})
    with pytest.raises(ValueError, match="its layers: none"):
        check_budget("", {"Fact": 5})


def test_a_layer_name_cannot_break_the_message():
    """Names are escaped and cut."""
    with pytest.raises(BudgetExceeded) as caught:
        check_budget(f"## a\u202e{'x' * 500}\nyyyyyyyy\n", {f"a\u202e{'x' * 500}": 0})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200
