"""Near rows: every planted one is found, none is invented, in time that grows with the rows."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from graftwork.data.checks.near_duplicates import (
    AT_LEAST,
    clusters,
    partners_across,
    shingles_of,
    sketch_texts,
    words_of,
)

WORDS = [f"word{i}" for i in range(2000)]


def texts(rows: int, length: int = 20, seed: int = 0) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [[WORDS[i] for i in random.integers(0, len(WORDS), length)] for _ in range(rows)]


def joined(rows: list[list[str]]) -> list[str]:
    return [" ".join(words) for words in rows]


def jaccard(a: str, b: str) -> float:
    """By sets of the shingles themselves."""
    sets = []
    for words in map(words_of, (a, b)):
        sets.append({(word,) for word in words} | set(itertools.pairwise(words)))
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_words_are_in_one_case_and_without_signs() -> None:
    assert words_of("Café, “déjà-vu”!") == ["café", "déjà", "vu"]
    assert words_of("ﬁne Ａ") == ["fine", "a"]  # one spelling of what looks the same
    assert words_of("猫が好き") == ["猫", "が", "好", "き"]
    assert words_of("ฉันชอบ हिन्दी") == ["ฉั", "น", "ช", "อ", "บ", "हिन्दी"]
    assert words_of(" :-) ") == [":-)"]


def test_resemblance_is_the_jaccard_index() -> None:
    rows = ["a b c d e", "a b c d f", "e d c b a", "A, b: c d e!", "x", ""]
    pairs = np.array(list(itertools.combinations(range(len(rows)), 2)))
    found = sketch_texts([rows]).resemblance(pairs[:, 0], pairs[:, 1])
    assert found.tolist() == pytest.approx([jaccard(rows[a], rows[b]) for a, b in pairs])


def test_shingles_do_not_depend_on_the_rows_beside_them() -> None:
    alone, among = shingles_of(["one two three"]), shingles_of(["two", "one two three", "three"])
    assert among.flat[among.starts[1] : among.starts[2]].tolist() == alone.flat.tolist()


def test_every_planted_repeat_is_found_and_none_invented() -> None:
    rows = texts(1500)
    random = np.random.default_rng(1)
    copies = [list(row) for row in rows[:500]]
    for copy in copies:  # one word of twenty: the Jaccard index is about 0.86
        copy[random.integers(1, 19)] = "another"
    told = joined(rows) + [text.upper() + "!" for text in joined(copies)]
    assert min(jaccard(told[i], told[1500 + i]) for i in range(500)) > AT_LEAST
    labels = clusters(sketch_texts([told]), np.arange(2000))
    assert np.array_equal(labels[:500], labels[1500:])
    assert len(set(labels.tolist())) == 1500


def test_what_is_less_alike_is_not_near() -> None:
    rows = joined(texts(300, length=10))
    told = rows + [row.replace(row.split()[5], "another") for row in rows]  # 16 of 22 shingles
    assert max(jaccard(told[i], told[300 + i]) for i in range(300)) < AT_LEAST
    assert len(set(clusters(sketch_texts([told]), np.arange(600)).tolist())) == 600


def test_of_a_pair_both_texts_must_be_near() -> None:
    long, short = joined(texts(40, 60)), joined(texts(40, 8, seed=1))
    other = joined(texts(40, 8, seed=2))
    same_long = sketch_texts([long + long, short + other])  # one passage, another question
    assert len(set(clusters(same_long, np.arange(80)).tolist())) == 80
    both = sketch_texts([long + [text.title() for text in long], short + [f"{text}." for text in short]])
    assert len(set(clusters(both, np.arange(80)).tolist())) == 40


def test_every_row_with_a_partner_across_is_found_in_a_crowd() -> None:
    """Hundreds of messages from one template lie in the same buckets."""
    start = " ".join(WORDS[:20])
    rows = [f"{start} {number}" for number in range(400)]
    sketch = sketch_texts([rows])
    left, right = np.arange(300), np.arange(300, 400)
    found = partners_across(sketch, left, right)
    assert set(found.pairs[:, 0].tolist()) == set(left.tolist())
    assert set(found.pairs[:, 1].tolist()) == set(right.tolist())
    assert found.resemblance.min() >= AT_LEAST
    assert len(set(clusters(sketch, np.arange(400)).tolist())) == 1


def test_a_row_is_not_its_own_partner() -> None:
    sketch = sketch_texts([["one two three four", "five six seven eight"]])
    assert len(partners_across(sketch, np.arange(2), np.arange(2)).pairs) == 0


def test_nothing_and_one_row() -> None:
    for rows in ([], ["a single text"]):
        sketch = sketch_texts([rows])
        assert len(clusters(sketch, np.arange(len(rows)))) == len(rows)
        assert len(partners_across(sketch, np.arange(len(rows)), np.arange(0)).pairs) == 0


@pytest.mark.slow
def test_a_hundred_thousand_rows() -> None:
    """Seconds of one core, rows that repeat a template among them."""
    random = np.random.default_rng(0)
    rows = joined(texts(60_000, 12))
    rows += [
        f"dear customer your parcel {number} has left our house and will be with you soon" for number in range(20_000)
    ]
    rows += [rows[i] + " indeed" for i in random.integers(0, 60_000, 20_000)]
    start = time.process_time()
    labels = clusters(sketch_texts([rows]), np.arange(len(rows)))
    assert time.process_time() - start < 20
    assert len(np.unique(labels[60_000:80_000])) == 1
    assert len(np.unique(labels)) == 60_001
