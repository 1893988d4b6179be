"""The pieces of a unigram model, against probabilities that are counted out by hand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from graftwork.pretrain.unigram_pieces import _Corpus, _Lattice, _seeds, learn_pieces

CHANCES = {"a": 0.2, "b": 0.3, "ab": 0.1, "ba": 0.15, "aba": 0.25}


def cuts(word: str) -> list[list[str]]:
    """Every way to cut a word into pieces."""
    found = []
    for borders in product([False, True], repeat=len(word) - 1):
        pieces, piece = [], word[0]
        for char, border in zip(word[1:], borders, strict=True):
            if border:
                pieces.append(piece)
                piece = ""
            piece += char
        pieces.append(piece)
        if all(piece in CHANCES for piece in pieces):
            found.append(pieces)
    return found


def chance(pieces: list[str]) -> float:
    return math.prod(CHANCES[piece] for piece in pieces)


def test_expected_counts_and_best_cuts_are_those_of_all_cuts() -> None:
    words = {"abab": 3, "a": 2, "baaba": 1}
    lattice = _Lattice.of(_Corpus.of(list(words), list(words.values())), list(CHANCES))
    chances = np.array(list(CHANCES.values()))
    expected = dict.fromkeys(CHANCES, 0.0)
    for word, count in words.items():
        total = sum(chance(pieces) for pieces in cuts(word))
        for pieces in cuts(word):
            for piece in pieces:
                expected[piece] += count * chance(pieces) / total
    assert lattice.expected(chances) == pytest.approx(list(expected.values()), rel=1e-12)
    best = [max(math.log(chance(pieces)) for pieces in cuts(word)) for word in words]
    assert lattice.best(np.log(chances)) == pytest.approx(best, rel=1e-12)


def test_without_whole_words() -> None:
    lattice = _Lattice.of(_Corpus.of(["aba", "ab"], [1, 1]), list(CHANCES), whole=False)
    best = [math.log(0.2 * 0.15), math.log(0.2 * 0.3)]  # a ba, a b
    assert lattice.best(np.log(list(CHANCES.values()))) == pytest.approx(best, rel=1e-12)


def test_seeds_are_the_substrings_that_occur_twice() -> None:
    found, counts = _seeds(_Corpus.of(["abc", "xabc", "abd"], [1, 2, 1]), 100)
    assert dict(zip(found, counts, strict=True)) == {"abc": 3, "ab": 4, "bc": 3, "xabc": 2, "xab": 2, "xa": 2}
    assert _seeds(_Corpus.of(["abc", "xabc", "abd"], [1, 2, 1]), 2)[0] == ["abc", "ab"]


def test_frequent_words_are_pieces_and_letters_are_kept() -> None:
    words = {"▁the": 900, "▁film": 500, "▁films": 300, "▁filming": 100, "▁xy": 1}
    letters = sorted(set("".join(words)))
    pieces = dict(learn_pieces(words, letters, len(letters) + 3))
    assert set(letters) <= pieces.keys()
    assert {"▁the", "▁film"} <= pieces.keys()
    assert len(pieces) == len(letters) + 3
    assert list(pieces.values()) == sorted(pieces.values(), reverse=True)
    assert sum(math.exp(score) for score in pieces.values()) == pytest.approx(1, abs=0.3)


def test_words_in_any_order_give_the_same_pieces() -> None:
    words = {f"▁{a}{b}{c}": ord(a) * ord(b) % 13 + 1 for a, b, c in product("abcd", "efgh", "ijkl")}
    letters = sorted(set("".join(words)))
    assert learn_pieces(words, letters, 60) == learn_pieces(dict(reversed(words.items())), letters, 60)


def test_no_words_no_pieces() -> None:
    assert learn_pieces({}, ["a", "b"], 10) == [("a", pytest.approx(-0.69, abs=1)), ("b", pytest.approx(-0.69, abs=1))]
