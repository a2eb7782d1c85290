"""What no list of facts can do to the text that it is rendered to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp import (
    KnowledgeFact,
    cluster_facts,
    count_tokens,
    markdown_layers,
    render_chunked,
    render_flat,
    render_wakeup,
)

BREAKS = ["\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"]
FORGERIES = ["## ", "\n## System\n", "\n- ", "[x] ", "FACTS:", "```", *"[]|=<>`/…"]
INVISIBLE = ["\u202e", "\u2066", "\U000e0001", "\U000e0041", "\0", "\u200b", "\u200d", "\ufeff", "\ud800"]
LONG = ["x" * 10_000, "\n" * 10_000, "|" * 10_000]
HOSTILE = st.sampled_from([*BREAKS, *FORGERIES, *INVISIBLE, *LONG, " ", "\u3000", "a/b.py"])
ANYTHING = st.characters(codec=None, exclude_categories=())
TEXTS = st.lists(st.one_of(HOSTILE, ANYTHING), max_size=6).map("".join)
FACTS = st.lists(
    st.builds(
        KnowledgeFact,
        st.one_of(st.sampled_from(["a", "b"]), TEXTS),
        TEXTS,
        TEXTS,
        st.one_of(st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    ),
    max_size=12,
)
# Ten texts of 10 kB each are what this is about, not how long a busy machine takes for them.


def every_line(text):
    """Return the lines as Python's widest notion of a line break cuts them."""
    return text.splitlines()


@given(facts=FACTS)
def test_chunks_cannot_be_forged(facts):
    """Lines are the clusters and the title, none is a heading, and each has as many items as facts."""
    clusters = cluster_facts(facts)
    title, *lines = every_line(render_chunked(clusters))
    assert title == "FACTS:"
    assert len(lines) == len(clusters)
    assert all(line.startswith("[") and line.count("] ") >= 1 for line in lines)
    assert [line.count("|") + 1 for line in lines] == [len(cluster.facts) for cluster in clusters]


@given(facts=FACTS)
def test_a_list_cannot_be_forged(facts):
    """Lines are the facts and the title, and none is a heading."""
    title, *lines = every_line(render_flat(facts))
    assert title == "FACTS:"
    assert len(lines) == len(facts)
    assert all(line.startswith("- ") and "|" not in line for line in lines)


@given(facts=FACTS)
def test_facts_stay_in_their_layer(facts):
    """A context that holds the facts has the same layers as one that holds none."""
    for text in (render_chunked(cluster_facts(facts)), render_flat(facts)):
        layers = markdown_layers(f"## Facts\n{text}\n## Question\n?\n")
        assert [layer.key for layer in layers] == ["Facts", "Question"]


@given(facts=FACTS)
def test_a_topic_ends_where_its_bracket_does(facts):
    """A topic holds no bracket, so what follows the first one is the items."""
    clusters = cluster_facts(facts)
    for cluster, line in zip(clusters, every_line(render_chunked(clusters))[1:], strict=True):
        topic, _, items = line[1:].partition("] ")
        assert "[" not in topic
        assert "]" not in topic
        keys = [item.split("=", 1) for item in items.split("|")]
        assert all(len(pair) == 2 for pair in keys)
        assert len(keys) == len(cluster.facts)


@given(facts=FACTS)
def test_every_part_is_short(facts):
    """No fact takes more than three cut texts and what separates them."""
    lines = every_line(render_flat(facts))[1:]
    assert all(len(line) <= len("- /=") + 3 * 201 for line in lines)


@given(facts=FACTS, max_facts=st.integers(0, 12), n=st.integers(1, 7))
def test_a_wake_up_layer_never_costs_more_than_the_list(facts, max_facts, n):
    """Whatever counts the tokens, the layer has at most as many as the flat rendering of its facts."""
    chosen = sorted(facts, key=lambda fact: (fact.salience is None, -(fact.salience or 0)))[:max_facts]

    def count(text):
        return len(text.split()) * n + len(text) // n

    for counter in (None, count):
        layer = render_wakeup(facts, max_facts, counter=counter)
        assert count_tokens(layer, counter) <= count_tokens(render_flat(chosen), counter)
        assert layer in {render_flat(chosen), render_chunked(cluster_facts(chosen))}
