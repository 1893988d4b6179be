"""Training of a unigram language model's pieces by expectation-maximisation (Kudo 2018, arXiv:1804.10959).

The trainer of the `tokenizers` library sums in the order of a randomly seeded hash table, so that its scores, and
sometimes its pieces, differ between runs. This one does the same in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graftwork.train.seeds import derive

LONGEST_WORD = 32  # characters; longer words are skipped: their probability could underflow a float
LONGEST_PIECE = 16  # characters
MOST_WORDS = 200_000  # the most frequent words are used
SEEDS = 100_000  # initial substrings, or eight per requested piece if that is more
KEPT = 0.75  # share of the pieces that a round of pruning keeps
MARGIN = 1.1  # pruning stops at this multiple of the requested pieces
FACTOR = np.uint64(derive(0, "unigram") | 1)  # multiplier of the rolling hash

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def learn_pieces(words: Mapping[str, int], letters: Sequence[str], size: int) -> list[tuple[str, float]]:
    """Return up to `size` pieces with the natural logarithms of their probabilities, the most probable first.

    `words` maps words to counts; each of `letters` is a piece, whatever its probability.
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
    """Return probabilities from expected counts, with a sparse prior on pieces; letters are always kept."""
    from scipy.special import digamma

    counts = np.where(np.arange(len(counts)) < letters, np.maximum(counts, 0.5), counts)
    used = counts >= 0.5
    return np.where(used, np.exp(digamma(np.where(used, counts, 1.0)) - digamma(counts[used].sum())), 0.0)


def _worth_most(pieces: Sequence[str], counts: Floats, chances: Floats, letters: int, most: int) -> Ints:
    """Return, in order, the indices of the letters and of the other pieces whose removal would cost most likelihood."""
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
    """Concatenated words as nodes: one before every character of a word and one after its last."""

    text: str  # all words, each followed by NUL: as many characters as nodes
    hashes: NDArray[np.uint64]  # (nodes,) hash of the word up to the node
    places: Ints  # (nodes,) characters of the word before the node
    left: Ints  # (nodes,) characters of the word after the node
    weights: Floats  # (nodes,) count of the word

    @classmethod
    def of(cls, words: Sequence[str], counts: Sequence[int]) -> _Corpus:
        """Build the nodes of these words."""
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
        """Return the start node and the hash of every substring of `length` characters within a word."""
        begins = np.flatnonzero(self.left >= length)
        power = np.uint64(pow(int(FACTOR), length, 1 << 64))
        return begins, self.hashes[begins + length] - self.hashes[begins] * power


def _seeds(corpus: _Corpus, most: int) -> tuple[list[str], Floats]:
    """Return the substrings of two or more characters that occur twice and cover the most text, and their counts."""
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
    """The segmentations of all words into pieces: an edge per occurrence of a piece."""

    corpus: _Corpus
    sources: Ints  # (edges,) nodes
    targets: Ints
    pieces: Ints  # (edges,) piece indices
    count: int  # number of pieces

    @classmethod
    def of(cls, corpus: _Corpus, pieces: Sequence[str], whole: bool = True) -> _Lattice:
        """Build the lattice; without `whole`, no edge spans a whole word."""
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
        """Return the expected count of each piece (pieces,), over all segmentations of all words."""
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
        """Return the log probability of each word's best segmentation (words,); -inf if it has none."""
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


_Level = tuple[Ints, Ints, Ints]  # edges sorted by node, the start of each node's edges among them, and the nodes


def _levels(nodes: Ints, distances: Ints) -> Iterator[_Level]:
    """Yield the edges of the nodes at each distance, from 1 on."""
    order = np.lexsort((nodes, distances))
    borders = np.searchsorted(distances[order], np.arange(1, int(distances.max(initial=0)) + 2))
    for start, stop in pairwise(borders.tolist()):
        edges = order[start:stop]
        if len(edges):
            own, starts = np.unique(nodes[edges], return_index=True)
            yield edges, starts, own
