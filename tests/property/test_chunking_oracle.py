"""The clusters of the index are those of the rule, told a second time without one."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ctxfp import KnowledgeFact, _clusters, cluster_facts

WORDS = ["a", "b", "c", "d", "e", "f", "the", "A", "é", "x/y", "x.rs", "(x/y)", "X/Y", "q.py,", "/", "z.TS"]
SPACES = [" ", "\u00a0", "\n", "  ", "\u2003"]


@st.composite
def fact_lists(draw):
    """Lists of facts with ties, shared words and paths, full clusters and equal facts."""
    words = st.sampled_from(WORDS[: draw(st.integers(1, len(WORDS)))])
    unique = draw(st.booleans())
    categories = st.sampled_from("pqrstuvw"[: draw(st.integers(1, 8))])
    value = st.lists(words, max_size=draw(st.sampled_from([2, 5, 12])))
    parts = draw(st.lists(st.tuples(categories, words, value, st.sampled_from(SPACES)), max_size=40))
    facts = [
        KnowledgeFact(category, key, space.join([*value, f"u{i} v{i}"] if unique else value))
        for i, (category, key, value, space) in enumerate(parts)
    ]
    return [fact for fact in facts for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]


SIZES = st.sampled_from([6, 6, 1, 2, 3, 5, 12, 100])
THRESHOLDS = st.one_of(
    st.sampled_from([0.3, 0.3, 0.3, 0, -1, 1e-12, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.6, 0.8, 1, 1.1]),
    st.floats(0, 1),
)


def similarity_oracle(a, b):
    """Return the similarity of two facts, told by category, words and paths, as the rule says it."""
    (category_a, words_a, paths_a), (category_b, words_b, paths_b) = a, b
    category = 1.0 if category_a == category_b else 0.0
    return 0.5 * jaccard_oracle(words_a, words_b) + 0.3 * category + 0.2 * jaccard_oracle(paths_a, paths_b)


def jaccard_oracle(a, b):
    """Return the share of what is in both; nothing shares nothing."""
    return len(a & b) / len(a | b) if a and b else 0.0


def pieces_of(fact):
    """Return key and value, cut at the spaces that the lists hold."""
    return [piece for piece in re.split("[ \u00a0\n\u2003]", f"{fact.key} {fact.value}") if piece]


def words_of(fact):
    """Return the words, lower-cased."""
    return [piece.lower() for piece in pieces_of(fact)]


def paths_of(fact):
    """Return the paths; the lists hold no others than these."""
    return [
        re.sub(r"^[(,)]+|[(,)]+$", "", piece).lower()
        for piece in pieces_of(fact)
        if re.search(r"/|\.rs|\.ts|\.py", piece)
    ]


def cluster_oracle(facts, max_size, threshold):
    """Compare each fact with all members of all clusters that have room."""
    terms = {id(fact): (fact.category, set(words_of(fact)), set(paths_of(fact))) for fact in facts}
    clusters = []
    for fact in facts:
        best, affinity = None, -1.0
        for members in clusters:
            if len(members) < max_size:
                total = 0.0
                for member in members:
                    total += similarity_oracle(terms[id(fact)], terms[id(member)])
                if total / len(members) >= affinity:
                    best, affinity = members, total / len(members)
        if best is not None and affinity >= threshold:
            best.append(fact)
        else:
            clusters.append([fact])
    return [(topic_oracle(members), members) for members in clusters]


def topic_oracle(members):
    """Return the topic by sorting what is counted."""
    categories = [fact.category for fact in members]
    category = min(set(categories), key=lambda name: (-categories.count(name), name))
    if categories.count(category) > len(members) / 2:
        return category
    paths = [path for fact in members for path in paths_of(fact)]
    path = min(set(paths), key=lambda name: (-paths.count(name), name), default="")
    return path if paths.count(path) >= 2 else category


# The oracle is quadratic: how long it takes on a busy machine says nothing.


def clusters_of(facts, max_size, threshold):
    """Return topics and facts, these by identity: equal facts are told apart."""
    found = cluster_facts(facts, max_size=max_size, threshold=threshold)
    return [(cluster.topic, list(map(id, cluster.facts))) for cluster in found]


def distinct(facts):
    """Return copies, no two of which are one object."""
    return [KnowledgeFact(fact.category, fact.key, fact.value) for fact in facts]


def stuck_pairs(n):
    """Return pairs that leave many clusters open which all hold one category."""
    return [
        KnowledgeFact("notes" if i % 2 else f"c{i}", "the", f"v{i // 2} w{i // 2} x{i // 2}")
        for i in range(2 * n)
    ]


def frequent_paths(n):
    """Return facts that share one path, and now and then most words too."""
    return [KnowledgeFact(f"c{i}", f"k{i % 9}", f"x/y v{i % 9} w{i % 5} u{i % 7} the") for i in range(n)]


def small_vocabulary(n):
    """Return facts of categories of their own with words that stand in many facts."""
    return [
        KnowledgeFact(f"c{i}", f"w{i * 7 % 11}", f"w{i * i % 11} w{i % 11} w{i * 3 % 10} the")
        for i in range(n)
    ]


def mixed(seed):
    """Return facts of a few to many words that take up words and paths of earlier ones."""
    chance = Random(seed)
    n_categories, n_words = chance.choice([1, 3, 60]), chance.choice([1, 3, 10])
    facts = []
    for i in range(70):
        words = [f"w{i}-{j}" for j in range(chance.randint(1, n_words))]
        for earlier in chance.sample(facts, min(len(facts), chance.choice([0, 1, 1, 2]))):
            words += [word for word in words_of(earlier) if chance.random() < chance.choice([0.5, 0.9])]
        words += ["the"] * chance.randint(0, 1) + chance.choice([[], ["x/y"], ["(x/y)"]])
        chance.shuffle(words)
        facts.append(KnowledgeFact(f"c{chance.randrange(n_categories)}", words[0], " ".join(words[1:])))
    return facts


def check_against_oracle(facts, max_size, threshold):
    """Assert that the index gives what the plain rule gives, facts told apart by identity."""
    facts = distinct(facts)
    expected = [
        (topic, list(map(id, members))) for topic, members in cluster_oracle(facts, max_size, threshold)
    ]
    assert clusters_of(facts, max_size, threshold) == expected


WAYS = pytest.mark.parametrize(
    "few", [pytest.param(_clusters._FEW, id="as it is"), pytest.param(0, id="nothing scored for being few")]
)


@WAYS
@given(facts=fact_lists(), max_size=SIZES, threshold=THRESHOLDS)
@example(facts=stuck_pairs(40), max_size=6, threshold=0.3)
@example(facts=stuck_pairs(40), max_size=6, threshold=0.15)
@example(facts=stuck_pairs(40), max_size=6, threshold=0.1)
@example(facts=frequent_paths(120), max_size=6, threshold=0.3)
@example(facts=frequent_paths(120), max_size=3, threshold=0.25)
@example(facts=small_vocabulary(150), max_size=6, threshold=0.3)
@example(facts=small_vocabulary(150), max_size=4, threshold=0.45)
def test_clusters_are_those_of_the_plain_rule(few, facts, max_size, threshold):
    """Topics, members and order are the same, whatever is shared, for every size and threshold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_clusters, "_FEW", few)
        check_against_oracle(facts, max_size, threshold)


@WAYS
@given(seed=st.integers(0, 2**32), max_size=SIZES, threshold=THRESHOLDS)
def test_clusters_of_many_similar_facts_are_those_of_the_plain_rule(few, seed, max_size, threshold):
    """The same holds for facts of many sizes that are partly alike, with many open clusters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_clusters, "_FEW", few)
        check_against_oracle(mixed(seed), max_size, threshold)


@given(facts=fact_lists(), max_size=SIZES, threshold=THRESHOLDS)
def test_each_fact_is_in_one_cluster(facts, max_size, threshold):
    """Clusters partition the facts, keep their order, and none is too large."""
    facts = distinct(facts)
    place = {id(fact): i for i, fact in enumerate(facts)}
    clusters = cluster_facts(facts, max_size=max_size, threshold=threshold)
    places = [[place[id(fact)] for fact in cluster.facts] for cluster in clusters]
    assert sorted(i for members in places for i in members) == list(range(len(facts)))
    assert all(members == sorted(members) and len(members) <= max_size for members in places)
    assert [members[0] for members in places] == sorted(members[0] for members in places)
