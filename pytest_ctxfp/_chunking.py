"""Facts -> clusters -> text: facts under shared headers cost fewer tokens than each under its own.

The rule of `cluster_facts` and the form of `render_chunked` are those of car-memgine 0.48, where its code
follows its documentation.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._clusters import (
    CATEGORY_WEIGHT,
    PATH_WEIGHT,
    WORD_WEIGHT,
    FactTokens,
    OpenClusters,
    tokenize_fact,
)
from pytest_ctxfp._facts import KnowledgeFact
from pytest_ctxfp._neutral import neutral_category, neutral_key, neutral_text, neutral_topic
from pytest_ctxfp._tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._tokens import AnyCounter

_TITLE = "FACTS:"


@dataclass(frozen=True, slots=True)
class FactCluster:
    """Facts that are rendered in one line, in the order in which they joined.

    Raises:
        ValueError: no facts.
    """

    topic: str
    facts: tuple[KnowledgeFact, ...]

    def __post_init__(self) -> None:
        if not self.facts:
            message = "a cluster needs at least one fact"
            raise ValueError(message)


def cluster_facts(
    facts: Iterable[KnowledgeFact], max_size: int = 6, threshold: float = 0.3
) -> list[FactCluster]:
    """Put facts together that are about the same; greedy, in the given order, the same every time.

    The similarity of two facts is, in this order in binary floats, 0.5 times the Jaccard similarity of their
    words (key and value, lower-cased), plus 0.3 if the category is the same, plus 0.2 times the Jaccard
    similarity of the paths among the words. A fact joins the cluster with the greatest mean similarity, the
    latest founded on a tie; below the threshold it founds a cluster of its own.

    A cluster's topic is the category of more than half of its facts, else the path that is named most often,
    if at least twice, else the most frequent category; on ties the smallest.

    Args:
        facts: the most important first.
        max_size: how many facts a cluster holds, at least 1.
        threshold: the least similarity, 0..1. Above 1 no fact joins another.

    Returns:
        The clusters in the order of their founding.

    Raises:
        ValueError: something that is no `KnowledgeFact`, or an argument out of range.

    Examples:
        >>> [cluster.topic for cluster in cluster_facts([KnowledgeFact("db", "engine", "SQLite")])]
        ['db']
    """
    _check_limits(max_size, threshold)
    index = OpenClusters(max_size=max_size, threshold=threshold)
    clusters: list[list[FactTokens]] = []
    for fact in _check_facts(facts):
        tokens = tokenize_fact(fact)
        cluster = _choose(tokens, index, threshold)
        if cluster is None:
            cluster = len(clusters)
            clusters.append([])
        clusters[cluster].append(tokens)
        index.put(tokens, cluster)
    return [FactCluster(_topic(members), tuple(member.fact for member in members)) for members in clusters]


def _check_limits(max_size: int, threshold: float) -> None:
    if type(max_size) is not int or max_size < 1:
        message = f"max_size must be a whole number of at least 1, got {max_size!r}"
        raise ValueError(message)
    if type(threshold) not in (int, float) or math.isnan(threshold):
        message = f"threshold must be a number, got {threshold!r}"
        raise ValueError(message)


def _check_facts(facts: Iterable[KnowledgeFact]) -> list[KnowledgeFact]:
    facts = list(facts)
    for fact in facts:
        if not isinstance(fact, KnowledgeFact):
            message = f"facts must be of type KnowledgeFact, got {type(fact).__name__!r} among them"
            raise ValueError(message)
    return facts


def _choose(tokens: FactTokens, index: OpenClusters, threshold: float) -> int | None:
    """Return the cluster to join: the greatest affinity, then the latest founded."""
    scored = ((_affinity(tokens, index.members[cluster]), cluster) for cluster in index.candidates(tokens))
    affinity, cluster = max(scored, default=(-math.inf, -1))
    return cluster if cluster >= 0 and affinity >= threshold else None


def _affinity(tokens: FactTokens, members: list[FactTokens]) -> float:
    total = 0.0
    for member in members:  # not sum(), which rounds otherwise from Python 3.12 on
        total += _similarity(tokens, member)
    return total / len(members)


def _similarity(a: FactTokens, b: FactTokens) -> float:
    similarity = WORD_WEIGHT * _jaccard(a.words, b.words)
    similarity += CATEGORY_WEIGHT * (a.category == b.category)
    return similarity + PATH_WEIGHT * _jaccard(a.paths, b.paths)


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    n_shared = len(a & b)
    return n_shared / (len(a) + len(b) - n_shared) if n_shared else 0.0


def _topic(members: list[FactTokens]) -> str:
    category, n_facts = _most_frequent(Counter(member.category for member in members))
    if 2 * n_facts > len(members):
        return category
    path, n_named = _most_frequent(Counter(path for member in members for path in member.all_paths))
    return path if n_named >= 2 else category


def _most_frequent(counts: Counter[str]) -> tuple[str, int]:
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))


def render_chunked(clusters: Iterable[FactCluster]) -> str:
    """Render a line a cluster, ``[topic] key=value|key=value``; no line feed at the end.

    No text can forge a fact, a cluster or a layer: line breaks become spaces; control and format characters
    go (ZWJ and ZWNJ stay); ``< > ` |`` become ``‹ › ' ¦``, ``=`` in a key or category ``:``, and brackets in
    a topic parentheses; what is longer than 200 characters is cut.

    Example::

        FACTS:
        [terms] gold members=customers.tier = 'gold'|discontinued=products.discontinued_on IS NOT NULL
        [etl/rates.py] pipelines/rate import=runs etl/rates.py|support/on call=owns etl/rates.py
    """
    return "\n".join([_TITLE, *map(_render_cluster, clusters)])


def _render_cluster(cluster: FactCluster) -> str:
    items = (
        _render_item(fact) if fact.category == cluster.topic else _render_full_item(fact)
        for fact in cluster.facts
    )
    return f"[{neutral_topic(cluster.topic)}] {'|'.join(items)}"


def _render_item(fact: KnowledgeFact) -> str:
    return f"{neutral_key(fact.key)}={neutral_text(fact.value)}"


def _render_full_item(fact: KnowledgeFact) -> str:
    return f"{neutral_category(fact.category)}/{_render_item(fact)}"


def render_flat(facts: Iterable[KnowledgeFact]) -> str:
    """Render a line a fact, for comparison; texts are changed as by `render_chunked`.

    Example::

        FACTS:
        - terms/gold members=customers.tier = 'gold'
        - terms/discontinued=products.discontinued_on IS NOT NULL
    """
    return "\n".join([_TITLE, *(f"- {_render_full_item(fact)}" for fact in _check_facts(facts))])


def render_wakeup(
    facts: Iterable[KnowledgeFact], max_facts: int = 20, *, counter: AnyCounter | None = None
) -> str:
    """Render the most important facts in clusters or, where that has fewer tokens, as a list.

    Args:
        facts: sorted by salience, the greatest first, those without one last, else in the given order.
        max_facts: how many of them to render.
        counter: counts the tokens, as in `count_tokens`.

    Raises:
        ValueError: something that is no `KnowledgeFact`, or a negative number of facts.
    """
    if type(max_facts) is not int or max_facts < 0:
        message = f"max_facts must be a whole number of at least 0, got {max_facts!r}"
        raise ValueError(message)
    chosen = sorted(_check_facts(facts), key=_by_salience)[:max_facts]
    flat = render_flat(chosen)
    chunked = render_chunked(cluster_facts(chosen))
    return chunked if count_tokens(chunked, counter) <= count_tokens(flat, counter) else flat


def _by_salience(fact: KnowledgeFact) -> tuple[bool, float]:
    return (fact.salience is None, -(fact.salience or 0))
