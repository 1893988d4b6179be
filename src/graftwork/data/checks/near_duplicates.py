"""Near-duplicate rows, found in time that grows with the number of rows and not of pairs.

The resemblance of two texts is the Jaccard index of their shingles (Broder 1997, doi:10.1109/SEQUEN.1997.666900), here
their words and word bigrams. Min-hashes in bands select the candidate pairs (Leskovec, Rajaraman & Ullman, *Mining of
Massive Datasets*, chapter 3), whose resemblance is computed, not estimated.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from graftwork.core.gathered import gathered
from graftwork.data.distinct import distinct
from graftwork.targets.words import WORD

AT_LEAST = 0.8  # least resemblance of near duplicates; in a pair, of each text with its counterpart
BANDS, HASHES = 16, 4  # at resemblance 0.8 one pair in 4,600 shares no band, at 0.9 one in 26 million
NEIGHBOURS = 8  # texts of one bucket that each text is compared with: a crowded bucket is sampled
SHINGLES_AT_ONCE = 1_000_000  # bounds the memory used besides the hashes
BITS = 30  # bits of a shingle's hash

_WORD = re.compile(WORD)
_MIX = np.uint64(0x9E3779B97F4A7C15)

Rows = NDArray[np.int64]
Pairs = NDArray[np.int64]  # (P, 2) row numbers


@dataclass(frozen=True)
class Sketch:
    """The bucket keys of N rows and a function for the resemblance of pairs of them."""

    keys: NDArray[np.uint64]  # (N, bands): rows with equal keys in a column share a bucket
    resemblance: Callable[[Rows, Rows], NDArray[np.float64]]  # pairwise, of (P,) and (P,) rows
    at_least: float  # resemblance from which two rows are near duplicates
    neighbours: int = NEIGHBOURS  # rows of one bucket that each row is compared with


@dataclass(frozen=True)
class Shingles:
    """The shingles of N texts, concatenated; each text's are sorted and distinct."""

    flat: NDArray[np.int32]  # hashes
    starts: Rows  # (N + 1,)

    @property
    def sizes(self) -> Rows:
        """(N,) number of shingles of each text, at least one."""
        return np.diff(self.starts)


def words_of(text: str) -> list[str]:
    """Return the case-folded words of a text, without punctuation; the whole stripped text where it has none."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return _WORD.findall(plain.casefold()) or [text.strip()]


def shingles_of(texts: Sequence[str]) -> Shingles:
    """Return the shingles of every text."""
    parts, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for listed in gathered(map(words_of, texts), lambda words: 2 * len(words), SHINGLES_AT_ONCE):
        flat, sizes = _hashed(listed)
        parts.append(flat)
        counts.append(sizes)
    return Shingles(np.concatenate(parts), np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64))


def _hashed(listed: Sequence[Sequence[str]]) -> tuple[NDArray[np.int32], Rows]:
    """Return the shingles of these texts, concatenated, and their number per text; a function of the words alone."""
    every = list(itertools.chain.from_iterable(listed))
    hashes = {word: _hash(word) for word in dict.fromkeys(every)}
    single = np.fromiter(map(hashes.__getitem__, every), dtype=np.uint64, count=len(every))
    owners = np.repeat(np.arange(len(listed)), [len(words) for words in listed])
    beside = owners[1:] == owners[:-1]
    double = (single[:-1] * _MIX + single[1:])[beside]
    double = (double ^ (double >> np.uint64(29))) * _MIX
    values = np.concatenate([single, double]) >> np.uint64(64 - BITS)
    places = np.concatenate([owners, owners[1:][beside]]).astype(np.uint64)
    codes = distinct(places << np.uint64(32) | values)
    flat = (codes & np.uint64(0xFFFFFFFF)).astype(np.int32)
    return flat, np.bincount((codes >> np.uint64(32)).astype(np.int64), minlength=len(listed)).astype(np.int64)


def _hash(word: str) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def sketch_texts(roles: Sequence[Sequence[str]]) -> Sketch:
    """Sketch N rows of R texts each, given as R x (N,) texts; rows are near if each text is near its counterpart."""
    shingled = [shingles_of(texts) for texts in roles]
    matrices = [
        sparse.csr_array(
            (np.ones(len(one.flat), dtype=np.int8), one.flat, one.starts), shape=(len(one.sizes), 1 << BITS)
        )
        for one in shingled
    ]
    sizes = [one.sizes for one in shingled]
    weights = np.sum(sizes, axis=0)

    def resemblance(left: Rows, right: Rows) -> NDArray[np.float64]:
        found = np.ones(len(left))
        for part in _shares(weights[left] + weights[right]):
            for matrix, size in zip(matrices, sizes, strict=True):
                both = np.diff(matrix[left[part]].multiply(matrix[right[part]]).tocsr().indptr)
                either = size[left[part]] + size[right[part]] - both
                found[part] = np.minimum(found[part], both / either)
        return found

    return Sketch(_band_keys(shingled), resemblance, AT_LEAST)


def _shares(weights: Rows) -> Iterator[slice]:
    """Yield slices of (P,) weights; each adds up to about `SHINGLES_AT_ONCE`."""
    ends = np.flatnonzero(np.diff(np.cumsum(weights) // SHINGLES_AT_ONCE)) + 1
    edges = [0, *ends.tolist(), len(weights)]
    yield from (slice(start, end) for start, end in itertools.pairwise(edges) if end > start)


def _band_keys(shingled: Sequence[Shingles]) -> NDArray[np.uint64]:
    """Return (N, BANDS) keys: each band's min-hashes, mixed; the texts of a row share the hashes of a band."""
    rows = len(shingled[0].sizes)
    keys = np.zeros((rows, BANDS), dtype=np.uint64)
    random = np.random.Generator(np.random.Philox(key=np.array([1, 0], dtype=np.uint64)))
    for one in shingled:
        shape = (BANDS, max(1, HASHES // len(shingled)))
        factors = random.integers(0, 1 << 63, shape, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        shifts = random.integers(0, 1 << 63, shape, dtype=np.uint64)
        for part in _shares(one.sizes):
            inside = slice(one.starts[part.start], one.starts[part.stop])
            values = one.flat[inside].astype(np.uint64)
            starts = one.starts[part] - one.starts[part.start]
            for band in range(BANDS):
                for factor, shift in zip(factors[band], shifts[band], strict=True):
                    least = np.minimum.reduceat(values * factor + shift, starts)
                    mixed = (keys[part, band] ^ least) * _MIX
                    keys[part, band] = mixed ^ (mixed >> np.uint64(31))
    return keys


def clusters(sketch: Sketch, rows: Rows) -> Rows:
    """Return (len(rows),) cluster numbers: the connected components of near pairs among these rows."""
    labels = np.arange(len(rows))
    for band in range(sketch.keys.shape[1]):
        found = _neighbours(sketch.keys[rows, band], sketch.neighbours)
        found = _distinct(found[labels[found[:, 0]] != labels[found[:, 1]]])
        near = found[sketch.resemblance(rows[found[:, 0]], rows[found[:, 1]]) >= sketch.at_least]
        if len(near):
            size = len(rows)
            edges = sparse.coo_array(
                (np.ones(len(near), np.int8), (labels[near[:, 0]], labels[near[:, 1]])), (size, size)
            )
            labels = connected_components(edges, directed=False)[1][labels]
    return np.asarray(labels, dtype=np.int64)


@dataclass(frozen=True)
class Partners:
    """Pairs of near rows; every row with a partner occurs in at least one of them."""

    pairs: Pairs
    resemblance: NDArray[np.float64]  # (P,)


def partners(sketch: Sketch, rows: Rows, wanted: Callable[[Pairs], NDArray[np.bool_]]) -> Partners:
    """Return near pairs among `rows` for which `wanted` is True, the earlier row first.

    A crowded bucket is sampled in another random order for every band: in file order, which may be sorted by
    target, rows would be compared with rows of their own target only.
    """
    random = np.random.Generator(np.random.Philox(key=np.array([2, 0], dtype=np.uint64)))

    def candidates(band: int) -> Pairs:
        mixed = random.permutation(rows)
        return np.sort(mixed[_neighbours(sketch.keys[mixed, band], sketch.neighbours)], axis=1)

    return _partners(sketch, candidates, wanted)


def partners_across(sketch: Sketch, left: Rows, right: Rows) -> Partners:
    """Return near pairs of a row of `left` and another row of `right`."""

    def candidates(band: int) -> Pairs:
        return _between(sketch.keys[:, band], left, right, sketch.neighbours)

    return _partners(sketch, candidates, lambda found: found[:, 0] >= 0)


def _partners(
    sketch: Sketch, candidates: Callable[[int], Pairs], wanted: Callable[[Pairs], NDArray[np.bool_]]
) -> Partners:
    served = np.zeros(len(sketch.keys), dtype=bool)  # rows that have a partner
    pairs, values = [np.zeros((0, 2), np.int64)], [np.zeros(0)]
    for band in range(sketch.keys.shape[1]):
        found = candidates(band)
        found = _distinct(found[~(served[found[:, 0]] & served[found[:, 1]])])
        found = found[wanted(found)]
        resemblance = sketch.resemblance(found[:, 0], found[:, 1])
        near = resemblance >= sketch.at_least
        pairs.append(found[near])
        values.append(resemblance[near])
        served[found[near].ravel()] = True
    return Partners(np.concatenate(pairs), np.concatenate(values))


def _neighbours(keys: NDArray[np.uint64], most: int) -> Pairs:
    """Return pairs of positions with equal keys: each with the next `most` of its bucket, the earlier one first."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    found = [np.zeros((0, 2), np.int64)]
    for step in range(1, most + 1):
        first = np.flatnonzero(ordered[step:] == ordered[:-step])
        if not len(first):
            break
        found.append(np.stack([order[first], order[first + step]], axis=1))
    return np.concatenate(found)


def _between(keys: NDArray[np.uint64], left: Rows, right: Rows, most: int) -> Pairs:
    """Return pairs of rows of `left` and `right` with equal keys, no row with itself: up to `most` partners each."""
    there = _partnered(keys, left, right, most)
    back = _partnered(keys, right, left, most)[:, ::-1]
    found = np.concatenate([there, back])
    return np.asarray(found[found[:, 0] != found[:, 1]])


def _partnered(keys: NDArray[np.uint64], asking: Rows, asked: Rows, most: int) -> Pairs:
    asked = asked[np.argsort(keys[asked], kind="stable")]
    ordered = keys[asked]
    first = np.searchsorted(ordered, keys[asking], "left")
    many = np.searchsorted(ordered, keys[asking], "right") - first
    found = [np.zeros((0, 2), np.int64)]
    for step in range(min(most, int(many.max(initial=0)))):
        there = np.flatnonzero(many > step)
        chosen = first[there] + (there + step) % many[there]  # each row samples another part of a crowded bucket
        found.append(np.stack([asking[there], asked[chosen]], axis=1))
    return np.concatenate(found)


def _distinct(pairs: Pairs) -> Pairs:
    """Return each pair once, sorted."""
    codes = distinct(pairs[:, 0] << 32 | pairs[:, 1])
    return np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1)
