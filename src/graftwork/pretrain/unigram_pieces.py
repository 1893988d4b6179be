"""The pieces of a unigram language model of words, by expectation and maximisation (Kudo 2018, arXiv:1804.10959).

The trainer of the `tokenizers` library adds in the order of a hash table that is drawn anew at every run, so that its
scores, and now and then its pieces, differ. This one does the same in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graftwork.train.seeds import derive

LONGEST_WORD = 32  # characters; longer words teach nothing, and their probability could be too small for a float
LONGEST_PIECE = 16  # characters
MOST_WORDS = 200_000  # the most frequent ones
SEEDS = 100_000  # substrings to begin with, or eight for every piece wanted
KEPT = 0.75  # share of the pieces that a round of pruning keeps
MARGIN = 1.1  # the last round keeps so many times the pieces wanted
FACTOR = np.uint64(derive(0, "unigram") | 1)  # of the rolling hash

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def learn_pieces(words: Mapping[str, int], letters: Sequence[str], size: int) -> list[tuple[str, float]]:
    """Up to `size` pieces with the natural logarithm of their probability, the most probable first.

    `words` are counted; every one of `letters` is a piece, whatever its probability.
    """
    known = set(letters)
    listed = [word for word in words if len(word) <= LONGEST_WORD and known.issuperset(word)]
    listed = sorted(listed, key=lambda word: (-words[word], word))[:MOST_WORDS]
    corpus = _Corpus.of(listed, [words[word] for word in listed])
    pieces, counts = [*letters], np.ones(len(letters))
    if listed:
        found, often = _seeds(corpus, max(SEEDS, 8 * size))
        pieces, counts = [*letters, *found], np.concatenate([counts, often])
    chances = counts / counts.sum()
    while True:
        lattice = _Lattice.of(corpus, pieces)
        for _ in range(2):
            counts = lattice.expected(chances)
            chances = _chances(counts, len(letters))
        if len(pieces) <= max(MARGIN * size, len(letters)):
            break
        most = max(int(KEPT * len(pieces)), int(MARGIN * size))
        kept = _worth_most(pieces, counts, chances, len(letters), most)
        pieces, chances = [pieces[number] for number in kept], chances[kept]
    kept = np.concatenate([np.arange(len(letters)), len(letters) + np.argsort(-chances[len(letters) :], kind="stable")])
    scores = [(pieces[number], round(float(np.log(chances[number])), 6)) for number in kept if chances[number] > 0]
    return sorted(scores[:size], key=lambda scored: (-scored[1], scored[0]))


def _chances(counts: Floats, letters: int) -> Floats:
    """Probabilities from expected counts, by a prior that favours few pieces over many; letters are never lost."""
    from scipy.special import digamma

    counts = np.where(np.arange(len(counts)) < letters, np.maximum(counts, 0.5), counts)
    used = counts >= 0.5
    return np.where(used, np.exp(digamma(np.where(used, counts, 1.0)) - digamma(counts[used].sum())), 0.0)


def _worth_most(pieces: Sequence[str], counts: Floats, chances: Floats, letters: int, most: int) -> Ints:
    """The letters and, of the other pieces, those whose loss would cost the corpus the most likelihood; in order."""
    longer = _Corpus.of(pieces[letters:], [1] * (len(pieces) - letters))
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    instead = _Lattice.of(longer, pieces, whole=False).best(logs)
    used = np.flatnonzero(chances[letters:])
    worth = counts[letters:][used] * (logs[letters:][used] - instead[used])
    kept = used[np.argsort(-worth, kind="stable")[: max(0, most - letters)]]
    return np.concatenate([np.arange(letters), letters + np.sort(kept)])


@dataclass(frozen=True)
class _Corpus:
    """Words end to end, a node before every character and one after the last."""

    text: str  # of all words, a NUL after each: as many characters as nodes
    hashes: NDArray[np.uint64]  # (nodes,) of the word up to there
    places: Ints  # (nodes,) characters before the node in its word
    left: Ints  # (nodes,) characters after it
    weights: Floats  # (nodes,) how often the word occurs

    @classmethod
    def of(cls, words: Sequence[str], counts: Sequence[int]) -> _Corpus:
        """The nodes of these words."""
        text = "".join(f"{word}\0" for word in words)
        lengths = np.array([len(word) for word in words], np.int64)
        nodes = lengths + 1
        firsts = np.cumsum(nodes) - nodes
        places = np.arange(len(text)) - np.repeat(firsts, nodes)
        codes = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint64)
        codes = (codes + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        codes ^= codes >> np.uint64(29)
        hashes = np.zeros(len(text), np.uint64)
        for place in range(int(lengths.max(initial=0))):
            here = firsts[lengths > place] + place
            hashes[here + 1] = hashes[here] * FACTOR + codes[here]
        weights = np.repeat(np.array(counts, np.float64), nodes)
        return cls(text, hashes, places, np.repeat(lengths, nodes) - places, weights)

    def windows(self, length: int) -> tuple[Ints, NDArray[np.uint64]]:
        """Every place where `length` characters of a word begin, and their hash."""
        begins = np.flatnonzero(self.left >= length)
        power = np.uint64(pow(int(FACTOR), length, 1 << 64))
        return begins, self.hashes[begins + length] - self.hashes[begins] * power


def _seeds(corpus: _Corpus, most: int) -> tuple[list[str], Floats]:
    """The substrings of two characters and more that occur twice and cover the most text, and how often they occur."""
    begins, lengths, counts = [], [], []
    for length in range(2, LONGEST_PIECE + 1):
        places, hashes = corpus.windows(length)
        _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
        often = np.bincount(number, weights=corpus.weights[places], minlength=len(first))
        kept = often >= 2
        begins.append(places[first[kept]])
        lengths.append(np.full(int(kept.sum()), length))
        counts.append(often[kept])
    frequency: Floats = np.concatenate(counts)
    order = np.argsort(-frequency * np.concatenate(lengths), kind="stable")[:most]
    spans = zip(np.concatenate(begins)[order].tolist(), np.concatenate(lengths)[order].tolist(), strict=True)
    return [corpus.text[begin : begin + length] for begin, length in spans], frequency[order]


@dataclass(frozen=True)
class _Lattice:
    """Every way to cut every word into pieces: an edge per piece and place where it stands."""

    corpus: _Corpus
    sources: Ints  # (edges,) nodes
    targets: Ints
    pieces: Ints  # (edges,) numbers of pieces
    count: int  # of pieces

    @classmethod
    def of(cls, corpus: _Corpus, pieces: Sequence[str], whole: bool = True) -> _Lattice:
        """Without `whole`, no edge is a whole word."""
        own = _Corpus.of(pieces, [1] * len(pieces))
        ends = np.flatnonzero(own.left == 0)
        found = []
        for length in range(1, LONGEST_PIECE + 1):
            numbers = np.flatnonzero(own.places[ends] == length)
            numbers = numbers[np.argsort(own.hashes[ends[numbers]], kind="stable")]
            begins, hashes = corpus.windows(length)
            if len(numbers) and len(begins):
                known = own.hashes[ends[numbers]]
                where = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
                hit = known[where] == hashes
                if not whole:
                    hit &= (corpus.places[begins] > 0) | (corpus.left[begins] > length)
                begins, where = begins[hit], where[hit]
                found.append(np.stack([begins, begins + length, numbers[where]]))
        sources, targets, numbers = np.concatenate(found, axis=1) if found else np.zeros((3, 0), np.int64)
        return cls(corpus, sources, targets, numbers, len(pieces))

    def expected(self, chances: Floats) -> Floats:
        """(pieces,) how often each is used, over all cuts of all words by their probability."""
        weights = chances[self.pieces]
        forward, backward = np.zeros(len(self.corpus.places)), np.zeros(len(self.corpus.places))
        forward[self.corpus.places == 0] = 1
        backward[self.corpus.left == 0] = 1
        for edges, starts, nodes in self._by_target:
            forward[nodes] = np.add.reduceat(forward[self.sources[edges]] * weights[edges], starts)
        for edges, starts, nodes in self._by_source:
            backward[nodes] = np.add.reduceat(backward[self.targets[edges]] * weights[edges], starts)
        of_word = backward[self.sources - self.corpus.places[self.sources]]
        passed = forward[self.sources] * weights * backward[self.targets] * self.corpus.weights[self.sources]
        passed = np.divide(passed, of_word, out=np.zeros_like(passed), where=of_word > 0)
        counts: Floats = np.bincount(self.pieces, weights=passed, minlength=self.count).astype(np.float64)
        return counts

    def best(self, logs: Floats) -> Floats:
        """(words,) the logarithm of the probability of the best cut of each; -inf where there is none."""
        best = np.full(len(self.corpus.places), -np.inf)
        best[self.corpus.places == 0] = 0
        for edges, starts, nodes in self._by_target:
            best[nodes] = np.maximum.reduceat(best[self.sources[edges]] + logs[self.pieces[edges]], starts)
        ends: Floats = best[self.corpus.left == 0]
        return ends

    @cached_property
    def _by_target(self) -> list[_Level]:
        return list(_levels(self.targets, self.corpus.places[self.targets]))

    @cached_property
    def _by_source(self) -> list[_Level]:
        return list(_levels(self.sources, self.corpus.left[self.sources]))


_Level = tuple[Ints, Ints, Ints]  # edges, where those of each node begin among them, and the nodes


def _levels(nodes: Ints, distances: Ints) -> Iterator[_Level]:
    """The edges of the nodes at every distance from 1 on."""
    order = np.lexsort((nodes, distances))
    borders = np.searchsorted(distances[order], np.arange(1, int(distances.max(initial=0)) + 2))
    for start, stop in pairwise(borders.tolist()):
        edges = order[start:stop]
        if len(edges):
            own, starts = np.unique(nodes[edges], return_index=True)
            yield edges, starts, own
