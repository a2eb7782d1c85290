"""Facts in clusters and as text: the rule's vectors, its edges, and what can't be forged."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_ctxfp import (
    FactCluster,
    KnowledgeFact,
    cluster_facts,
    count_tokens,
    render_chunked,
    render_flat,
    render_wakeup,
)

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "chunking.jsonl").read_text("utf-8").splitlines()
]

WAKE_UP = [
    KnowledgeFact("deployment", "target", "fly.io, region syd"),
    KnowledgeFact("deployment", "database", "postgres 16 on the same host"),
    KnowledgeFact("preferences", "tests", "pytest, no mocks of the database"),
    KnowledgeFact("deployment", "secrets", "from the vault at start"),
    KnowledgeFact("preferences", "line length", "110"),
    KnowledgeFact("architecture", "queue", "a table, polled every second"),
    KnowledgeFact("deployment", "migrations", "alembic, before the new version starts"),
    KnowledgeFact("preferences", "types", "mypy strict"),
    KnowledgeFact("architecture", "api", "REST under /v2, OpenAPI from code"),
    KnowledgeFact("deployment", "logs", "JSON to stdout"),
    KnowledgeFact("preferences", "commits", "small, say why"),
    KnowledgeFact("architecture", "auth", "sessions, no JWT"),
    KnowledgeFact("deployment", "rollback", "redeploy the last tag"),
    KnowledgeFact("preferences", "docs", "a changelog entry in full sentences"),
    KnowledgeFact("architecture", "cache", "none, the database is fast enough"),
    KnowledgeFact("preferences", "dependencies", "ask before adding one"),
    KnowledgeFact("architecture", "tenants", "a schema each"),
    KnowledgeFact("architecture", "files", "object storage, names are hashes"),
]
"""18 facts in three categories."""


def groups(facts, **options):
    """Return the keys of each cluster's facts."""
    return [[fact.key for fact in cluster.facts] for cluster in cluster_facts(facts, **options)]


def rendered(*facts):
    """Return the lines after the title."""
    title, *lines = render_chunked(cluster_facts([KnowledgeFact(*fact) for fact in facts])).split("\n")
    assert title == "FACTS:"
    return lines


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vectors(vector):
    """Clusters, their order and their text are those of the vectors."""
    facts = [KnowledgeFact(**fact) for fact in vector["input"]["facts"]]
    clusters = cluster_facts(facts)
    index = {id(fact): i for i, fact in enumerate(facts)}
    assert vector["expected"] == {
        "clusters": [
            {"topic": cluster.topic, "indices": [index[id(fact)] for fact in cluster.facts]}
            for cluster in clusters
        ],
        "rendered": render_chunked(clusters),
    }


def test_no_facts_are_a_title():
    """An empty list is rendered as its title, in every form."""
    assert cluster_facts([]) == []
    assert [render_chunked([]), render_flat([]), render_wakeup([])] == ["FACTS:"] * 3


def test_facts_may_come_from_any_iterable():
    """A generator of facts is clustered and rendered as a list is."""
    assert cluster_facts(fact for fact in WAKE_UP) == cluster_facts(WAKE_UP)
    assert render_wakeup(fact for fact in WAKE_UP) == render_wakeup(WAKE_UP)


def test_size_and_threshold_are_options():
    """Clusters are as large as allowed, and joined as easily as asked for."""
    facts = [KnowledgeFact("c", f"k{i}", f"v{i}") for i in range(5)]
    assert groups(facts, max_size=2) == [["k0", "k1"], ["k2", "k3"], ["k4"]]
    assert groups(facts, max_size=1) == [["k0"], ["k1"], ["k2"], ["k3"], ["k4"]]
    assert groups(facts, threshold=0.31) == [["k0"], ["k1"], ["k2"], ["k3"], ["k4"]]
    others = [KnowledgeFact(f"c{i}", f"k{i}", f"v{i}") for i in range(5)]
    assert groups(others, threshold=0, max_size=3) == [["k0", "k1", "k2"], ["k3", "k4"]]
    assert groups([WAKE_UP[0]] * 3, threshold=1.01) == [["target"]] * 3
    assert groups([WAKE_UP[0]] * 3, threshold=0.8) == [["target"] * 3]


def test_a_threshold_is_met_by_floats():
    """Three tenths added up ten times and divided by ten are less than three tenths."""
    facts = [KnowledgeFact("c", f"k{i}", f"v{i}") for i in range(30)]
    sums = [0.0]
    for _ in range(30):
        sums.append(sums[-1] + 0.3)
    n_first = next(n for n in range(1, 31) if sums[n] / n < 0.3)
    assert len(groups(facts, max_size=100)[0]) == n_first


@pytest.mark.parametrize("separator", ["\x1c", "\x1f", "\u200b", "\ufeff"])
def test_only_white_space_separates_words(separator):
    """Characters that Python's split takes for spaces, and others that look like some, are parts of words."""
    facts = [KnowledgeFact("a", "k", f"x{separator}y"), KnowledgeFact("b", "k", "x y")]
    assert groups(facts) == [["k"], ["k"]]


def test_a_topic_is_the_smallest_on_a_tie():
    """Equal counts go to the smallest path, and without a path named twice to the smallest category."""
    same = "one two three four five"
    paths = [KnowledgeFact("b", "k", f"z/z a/a {same}"), KnowledgeFact("a", "k", f"z/z a/a {same}")]
    plain = [KnowledgeFact("b", "k", same), KnowledgeFact("a", "k", same)]
    assert [cluster.topic for cluster in cluster_facts(paths)] == ["a/a"]
    assert [cluster.topic for cluster in cluster_facts(plain)] == ["a"]


def test_a_path_keeps_letters_of_any_script_at_its_ends():
    """What is stripped from a path is neither a letter, nor a digit, a slash or a dot; an underscore is."""
    facts = [KnowledgeFact("a", "k", "_é/ü_ 一"), KnowledgeFact("b", "k", "«é/ü» 一")]
    assert cluster_facts(facts)[0].topic == "é/ü"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_size": 0}, "max_size must be a whole number of at least 1, got 0"),
        ({"max_size": 2.0}, "max_size must be a whole number"),
        ({"max_size": True}, "max_size must be a whole number"),
        ({"threshold": float("nan")}, "threshold must be a number, got nan"),
        ({"threshold": "0.3"}, "threshold must be a number, got '0.3'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    """A size below 1 and a threshold that is no number are errors that say what is wanted."""
    with pytest.raises(ValueError, match=message):
        cluster_facts([], **options)


def test_other_things_than_facts_are_refused():
    """A mapping is no fact, in all functions that take facts, and a cluster holds one at least."""
    for function in (cluster_facts, render_flat, render_wakeup):
        with pytest.raises(ValueError, match="facts must be of type KnowledgeFact, got 'dict'"):
            function([{"category": "c", "key": "k", "value": "v"}])
    with pytest.raises(ValueError, match="at least one fact"):
        FactCluster("topic", ())


def test_an_item_names_its_category_where_it_is_not_the_topic():
    """Facts of the topic's category are short, others have their own before the key."""
    assert rendered(("a", "k", "x y z"), ("a", "k2", "x y z"), ("b", "k", "x y z")) == [
        "[a] k=x y z|k2=x y z|b/k=x y z"
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\t\r\n\v\f\x85\u2028\u2029b", "a b"),
        ("a\n \nb", "a   b"),
        ("\n## System\n", "## System"),
        ("x\u202ey\u2066\u200b\ufeff\U000e0041z", "xyz"),
        ("\U0001f468\u200d\U0001f469 \u0645\u200c\u0645", "\U0001f468\u200d\U0001f469 \u0645\u200c\u0645"),
        ("a\0\n\0\nb", "a  b"),
        ("\x1f x \xa0", "x"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200 + "…"),
        ("<" * 10_000, "‹" * 200 + "…"),
        ("\ud800", "\ud800"),
    ],
    ids=range(11),
)
def test_values_are_neutralised_in_order(value, text):
    """Runs of breaks collapse, then controls go, then look-alikes come, then ends are stripped and cut."""
    assert rendered(("c", "k", value)) == [f"[c] k={text}"]


def test_keys_categories_and_topics_lose_what_would_end_them():
    """No equals sign in a key or category, no bracket in a topic."""
    same = "one two three four five six"
    assert rendered(("[a=b]", "k=[1]", f"{same}"), ("c=d", "j", same), ("[a=b]", "i", same)) == [
        f"[(a=b)] k:[1]={same}|c:d/j={same}|i={same}"
    ]


def test_a_flat_line_cannot_be_a_heading():
    """Flat facts begin with a dash, whatever their category is."""
    facts = [KnowledgeFact("## System", "k", "v\n## Identity\nx|y")]
    assert render_flat(facts) == "FACTS:\n- ## System/k=v ## Identity x¦y"


def test_a_wake_up_layer_saves_a_tenth():
    """Eighteen facts in three categories cost at least 10 % fewer tokens in clusters than as a list."""
    flat, layer = render_flat(WAKE_UP), render_wakeup(WAKE_UP)
    assert layer == render_chunked(cluster_facts(WAKE_UP))
    assert layer.count("\n") == 3
    assert count_tokens(layer) <= 0.9 * count_tokens(flat)


def test_a_wake_up_layer_takes_the_most_salient_facts():
    """Salience sorts, the greatest first; equal ones stay in order, and facts without one come last."""
    salience = {"a": None, "b": 0.5, "c": 2, "d": None, "e": 0.5, "f": -1}
    facts = [KnowledgeFact("c", key, "v", value) for key, value in salience.items()]
    assert render_wakeup(facts, 5) == "FACTS:\n[c] c=v|b=v|e=v|f=v|a=v"
    assert render_wakeup(facts, max_facts=0) == "FACTS:"
    assert render_wakeup([KnowledgeFact("c", f"k{i}", "v") for i in range(30)]).count("=") == 20


@pytest.mark.parametrize("max_facts", [-1, 1.5, None])
def test_a_number_of_facts_is_not_negative(max_facts):
    """Another number of facts is an error."""
    with pytest.raises(ValueError, match="max_facts must be a whole number of at least 0"):
        render_wakeup([], max_facts)


def test_a_tie_goes_to_the_clusters_and_fewer_tokens_win():
    """The counter decides, and where it can't the clusters are taken."""
    facts = WAKE_UP[:2]
    assert render_wakeup(facts, counter=lambda _: 7) == render_chunked(cluster_facts(facts))
    assert render_wakeup(facts, counter=lambda text: text.count("[")) == render_flat(facts)


@pytest.mark.parametrize(
    "make",
    [
        lambda i: KnowledgeFact(f"c{i}", f"k{i}", f"v{i} w{i}"),
        lambda i: KnowledgeFact(f"c{i}", f"k{i}", f"the v{i} w{i}"),
        lambda i: KnowledgeFact("notes" if i % 2 else f"c{i}", "the", f"v{i // 2} w{i // 2}"),
        lambda i: KnowledgeFact(f"c{i}", f"k{i}", f"src/app.py v{i} w{i}"),
        lambda i: KnowledgeFact(f"c{i % 7}", f"k{i}", f"v{i} w{i}"),
        lambda i: KnowledgeFact(f"c{i}", "k", "the same words"),
    ],
    ids=["all different", "a stop word", "pairs", "a path", "7 categories", "equal"],
)
def test_many_facts_are_clustered_soon(make):
    """Five thousand facts, for which comparing all with all takes a minute, take a moment."""
    facts = [make(i) for i in range(5_000)]
    start = time.perf_counter()
    clusters = cluster_facts(facts)
    assert time.perf_counter() - start < 3
    assert sum(len(cluster.facts) for cluster in clusters) == 5_000


@pytest.mark.parametrize(
    "value",
    [
        "!" * 300_000 + "/",
        "/" + "!" * 300_000 + "/",
        "a" * 1_000_000,
        " ".join(map(str, range(20_000))),
        "/" * 300_000,
    ],
    ids=range(5),
)
def test_a_huge_fact_is_clustered_soon(value):
    """Long words, long paths and many words take linear time."""
    start = time.perf_counter()
    facts = [KnowledgeFact(f"c{i}", "k", value) for i in range(7)]
    assert [len(cluster.facts) for cluster in cluster_facts(facts)] == [6, 1]
    render_wakeup(facts)
    assert time.perf_counter() - start < 10


def test_facts_import_neither_pytest_nor_yaml():
    """Clustering and rendering load neither pytest nor what reads files nobody asked for."""
    code = (
        "import sys, pytest_ctxfp as p\n"
        "p.render_wakeup([p.KnowledgeFact('c', 'k', 'v')])\n"
        "assert not {'pytest', 'yaml', 'difflib', 'tiktoken'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
