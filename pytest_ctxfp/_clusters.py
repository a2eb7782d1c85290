"""The open clusters of a run of `cluster_facts`, and which of them a fact may join at all.

What a fact joins is decided by the rule, which scores a fact against a cluster. This index only leaves out
clusters that can't win, so that few have to be scored. With ``j`` and ``p`` for the similarities of words
and paths, a fact's affinity to a cluster of ``n`` members, ``k`` of its category, is

    0.3 * k / n  +  the mean over the members of (0.5 * j + 0.2 * p)

- Clusters that share no word and no path with the fact differ in ``k`` and ``n`` only, so of those with the
  same two numbers the latest founded wins.
- Any other cluster has a member with ``0.5 * j + 0.2 * p >= threshold - 0.3 * k / n``. Such a member has many
  of the fact's words, or a path and some of its words; so it has one of the fact's rarest words, since it
  can't lack more words than it may. (The prefix filter of set similarity joins: Chaudhuri, Ganti and Kaushik,
  "A primitive operator for similarity joins in data cleaning", ICDE 2006.)
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, inf
from typing import TYPE_CHECKING

from pytest_ctxfp._layers import WHITE_SPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._facts import KnowledgeFact

CATEGORY_WEIGHT = 0.3
WORD_WEIGHT = 0.5
PATH_WEIGHT = 0.2

_FEW = 4  # clusters: to score so many costs less than to find out which of them to leave out
_DEARER = 16  # how many times longer it takes to score a cluster than to look at it once more in the index
_SLACK = 1e-9  # what rounding may add to an affinity, and more
_PATH_MARKS = ("/", ".rs", ".ts", ".py")
_find_pieces = re.compile(f"[^{WHITE_SPACE}]+").findall


@dataclass(frozen=True, slots=True, eq=False)
class FactTokens:
    """A fact with what it is compared by; ``all_paths`` has each occurrence of a path."""

    fact: KnowledgeFact
    category: str
    words: frozenset[str]
    paths: frozenset[str]
    all_paths: tuple[str, ...]


def tokenize_fact(fact: KnowledgeFact) -> FactTokens:
    """Split key and value at White_Space into words, and find the paths among them."""
    pieces = _find_pieces(f"{fact.key} {fact.value}")
    paths = tuple(_trim_path(piece).lower() for piece in pieces if any(mark in piece for mark in _PATH_MARKS))
    words = frozenset([piece.lower() for piece in pieces])
    return FactTokens(fact, fact.category, words, frozenset(paths), paths)


def _trim_path(piece: str) -> str:
    start, end = 0, len(piece)
    while not _is_of_path(piece[start]):
        start += 1
    while not _is_of_path(piece[end - 1]):
        end -= 1
    return piece[start:end]


def _is_of_path(char: str) -> bool:
    return char.isalnum() or char in "/."


def _round_down(n: int) -> int:
    """Return a number with all but its first three bits zero, so that there are few sizes to look through."""
    n_zeros = max(n.bit_length() - 3, 0)
    return n >> n_zeros << n_zeros


class _Bucket:
    """Clusters that hold as many members, as many of them of one category."""

    __slots__ = ("_latest_first", "ids")

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self._latest_first: list[int] = []

    def add(self, cluster: int) -> None:
        self.ids.add(cluster)
        heappush(self._latest_first, -cluster)

    def latest(self) -> int:
        while -self._latest_first[0] not in self.ids:
            heappop(self._latest_first)
        return -self._latest_first[0]


class OpenClusters:
    """Clusters that have room, by number in the order of their founding.

    Args:
        max_size: facts that a cluster may hold; one that is full is forgotten here.
        threshold: the least affinity that lets a fact join a cluster.
    """

    def __init__(self, *, max_size: int, threshold: float) -> None:
        self.members: dict[int, list[FactTokens]] = {}
        self._max_size = max_size
        self._threshold = threshold
        self._categories: dict[int, Counter[str]] = {}
        # category -> (members of it, all members) -> clusters
        self._by_category: dict[str, dict[tuple[int, int], _Bucket]] = {}
        # about how many words a member has -> word -> clusters
        self._by_word: dict[int, dict[str, set[int]]] = {}
        self._by_path: dict[str, set[int]] = {}

    def put(self, tokens: FactTokens, cluster: int) -> None:
        """Add a fact to an open cluster, or found the cluster with it."""
        members = self.members.setdefault(cluster, [])
        categories = self._categories.setdefault(cluster, Counter())
        self._leave_buckets(cluster)
        members.append(tokens)
        categories[tokens.category] += 1
        if len(members) < self._max_size:
            self._enter_buckets(cluster)
            self._add_tokens(tokens, cluster)
        else:
            for member in members[:-1]:
                self._drop_tokens(member, cluster)
            del self.members[cluster], self._categories[cluster]

    def candidates(self, tokens: FactTokens) -> set[int]:
        """Return open clusters, among them the one that the fact joins, if it joins any."""
        if self._threshold <= 0:
            return set(self.members)  # a single one: each fact joins one while there is one
        found = set()
        least = self._threshold
        for (n_same, n_members), bucket in self._by_category.get(tokens.category, {}).items():
            if len(bucket.ids) <= _FEW:
                found |= bucket.ids
                continue
            by_category = CATEGORY_WEIGHT * n_same / n_members
            least = min(least, self._threshold - by_category)
            if by_category >= self._threshold - _SLACK:
                found.add(bucket.latest())
        return (
            found | self._find_by_words(tokens, least - _SLACK) | self._find_by_paths(tokens, least - _SLACK)
        )

    def _leave_buckets(self, cluster: int) -> None:
        n_members = len(self.members[cluster])
        for category, n_same in self._categories[cluster].items():
            buckets = self._by_category[category]
            bucket = buckets[n_same, n_members]
            bucket.ids.discard(cluster)
            if not bucket.ids:
                del buckets[n_same, n_members]

    def _enter_buckets(self, cluster: int) -> None:
        n_members = len(self.members[cluster])
        for category, n_same in self._categories[cluster].items():
            buckets = self._by_category.setdefault(category, {})
            buckets.setdefault((n_same, n_members), _Bucket()).add(cluster)

    def _add_tokens(self, tokens: FactTokens, cluster: int) -> None:
        by_word = self._by_word.setdefault(_round_down(len(tokens.words)), {})
        for index, keys in ((by_word, tokens.words), (self._by_path, tokens.paths)):
            for key in keys:
                index.setdefault(key, set()).add(cluster)

    def _drop_tokens(self, tokens: FactTokens, cluster: int) -> None:
        by_word = self._by_word[_round_down(len(tokens.words))]
        for index, keys in ((by_word, tokens.words), (self._by_path, tokens.paths)):
            for key in keys:
                clusters = index.get(key, set())  # another member may have had the key too
                clusters.discard(cluster)
                if not clusters:
                    index.pop(key, None)

    def _find_by_words(self, tokens: FactTokens, least: float) -> set[int]:
        """Find clusters with a member whose words alone give a similarity."""
        return set().union(*(search.run() for search in self._searches(tokens.words, least / WORD_WEIGHT)))

    def _find_by_paths(self, tokens: FactTokens, least: float) -> set[int]:
        """Find clusters with a member that shares a path and has a similarity, by paths or by words."""
        by_path = [clusters for path in tokens.paths if (clusters := self._by_path.get(path))]
        n_by_path = sum(map(len, by_path))
        if n_by_path > _FEW and least > PATH_WEIGHT:
            searches = list(self._searches(tokens.words, (least - PATH_WEIGHT) / WORD_WEIGHT))
            if sum(search.n_found() for search in searches) < n_by_path:
                return set().union(*(search.run() for search in searches))
        return set().union(*by_path)

    def _searches(self, words: frozenset[str], jaccard: float) -> Iterator[_Search]:
        """Yield how to find sets of words of a similarity, for each of the sizes that they may have."""
        jaccard = max(jaccard, 0.0)
        smallest = ceil(jaccard * len(words))
        largest = len(words) / jaccard if jaccard else inf
        for size, by_word in self._by_word.items():
            if size > largest or size < _round_down(smallest):
                continue
            n_words = len(words) + max(size, smallest)
            n_shared = max(1, ceil(jaccard / (1 + jaccard) * n_words))
            postings = [clusters for word in words if (clusters := by_word.get(word))]
            if len(postings) >= n_shared:
                yield _Search(sorted(postings, key=len), n_shared)


@dataclass(frozen=True, slots=True)
class _Search:
    """Clusters that have a word, the rarest word first, and how many of these words one must have."""

    postings: list[set[int]]
    n_shared: int

    def n_found(self) -> int:
        """How many clusters have one of the rarest words, of which each must have one."""
        return sum(map(len, self._rarest()))

    def run(self) -> set[int]:
        """Return the clusters that have so many of the words, and some that have fewer."""
        n_found = self.n_found()
        following = self.postings[len(self._rarest()) :]
        if not following or n_found <= _FEW or len(following[0]) > _DEARER * n_found:
            return set().union(*self._rarest())
        # With one word more to look at, each must have two.
        once: set[int] = set()
        twice: set[int] = set()
        for clusters in self._rarest():
            twice |= once & clusters
            once |= clusters
        return twice | (once & following[0])

    def _rarest(self) -> list[set[int]]:
        return self.postings[: len(self.postings) - self.n_shared + 1]
