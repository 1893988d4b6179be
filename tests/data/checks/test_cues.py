"""Cues: words that give a class away are found on the side where they stand, and luck is not taken for one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom

from graftwork.core.example import Example
from graftwork.data.checks.cues import CHANCE, cue_warnings, cues


def listed(inputs: Sequence[dict[str, Any]], targets: Sequence[Any]) -> list[Example]:
    return [Example(f"train/{i}", one, target) for i, (one, target) in enumerate(zip(inputs, targets, strict=True), 1)]


def random_texts(rows: int, seed: int, words: int = 10) -> list[str]:
    drawn = np.random.default_rng(seed).zipf(1.3, (rows, words)) % 5000
    return [" ".join(f"w{i}" for i in row) for row in drawn]


def test_a_word_of_one_side_is_found_there() -> None:
    texts_a, texts_b = random_texts(600, 0), random_texts(600, 1)
    labels = ["yes", "no", "maybe"] * 200
    told = [text + (" nobody" if label == "no" and i % 5 == 0 else "") for i, (text, label) in
            enumerate(zip(texts_b, labels, strict=True))]  # fmt: skip
    pairs = [{"text_a": a, "text_b": b} for a, b in zip(texts_a, told, strict=True)]
    found = cues(listed(pairs, labels), ("maybe", "no", "yes"))
    assert found["words"] == 1
    (cue,) = found["strongest"]
    assert (cue["side"], cue["word"], cue["label"]) == ("text_b", "nobody", "no")
    assert cue["rows"] == cue["with_label"] == 40 and cue["of_the_label"] == 0.2
    assert cue["share_of_all_rows"] == pytest.approx(1 / 3)
    # the share from which on so many hits have the chance that was left for one test
    assert binom.sf(39, 40, cue["share_at_least"]) == pytest.approx(CHANCE / found["tests"])
    (warning,) = cue_warnings(found)
    assert "Words of text_b alone" in warning and "'nobody' (40 of 40 rows are no" in warning


def test_luck_is_not_reported() -> None:
    """A word in a hundred thousand would seem a cue of labels that were drawn by lot, were each tested alone."""
    for seed in range(5):
        texts = random_texts(1500, seed)
        labels = np.random.default_rng(100 + seed).choice(["a", "b", "c"], 1500).tolist()
        assert cues(listed([{"text": text} for text in texts], labels), ("a", "b", "c"))["words"] == 0


def test_counts_are_those_of_the_plain_definition() -> None:
    """Of several labels a row, with a label that no row has, and words that some labels never meet."""
    random = np.random.default_rng(0)
    labels = tuple(f"l{i:02}" for i in range(30))
    targets = [tuple(random.choice(labels[1:], random.integers(0, 3), replace=False).tolist()) for _ in range(600)]
    texts = [
        " ".join([text, *(f"of{label}" for label in target if random.random() < 0.8)])
        for text, target in zip(random_texts(600, 0), targets, strict=True)
    ]
    cues_of = cues(listed([{"text": text} for text in texts], targets), labels)
    words = [set(text.split()) for text in texts]
    rows = {word: [i for i, has in enumerate(words) if word in has] for word in set().union(*words)}
    known = {word: having for word, having in rows.items() if len(having) >= 5}
    assert cues_of["tests"] == len(known) * len(labels)
    wanted = set()
    for word, having in known.items():
        for label in labels:
            hits, share = sum(label in targets[i] for i in having), sum(label in target for target in targets) / 600
            low = beta.ppf(CHANCE / cues_of["tests"], hits, len(having) - hits + 1) if hits else 0.0
            if low > 2 * share / (1 + share):
                wanted.add((word, label, len(having), hits))
    assert cues_of["words"] == len(wanted) >= 25
    assert {(cue["word"], cue["label"], cue["rows"], cue["with_label"]) for cue in cues_of["strongest"]} <= wanted


def test_many_words_and_labels_take_little_memory() -> None:
    rows = [{"text": f"w{i % 3000} v{i // 5}"} for i in range(15_000)]
    labels = tuple(f"l{i}" for i in range(3000))
    examples = listed(rows, [labels[i % 3000] for i in range(15_000)])
    tracemalloc.start()
    found = cues(examples, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["tests"] == 6000 * 3000 and found["words"] == 3000
    assert peak < 40 << 20, "6,000 words and 3,000 labels are 18 million counts"


def test_repeated_rows_are_no_evidence() -> None:
    texts = random_texts(300, 0) + ["win a prize"] * 50
    labels = ["a", "b"] * 150 + ["a"] * 50
    assert cues(listed([{"text": text} for text in texts], labels), ("a", "b"))["words"] == 0


def test_one_text_is_warned_of_only_where_a_word_stands_for_its_class() -> None:
    texts, labels = random_texts(400, 0), ["a", "b"] * 200
    leak = [f"{text} [{label}]" for text, label in zip(texts, labels, strict=True)]
    found = cues(listed([{"text": text} for text in leak], labels), ("a", "b"))
    assert {cue["word"] for cue in found["strongest"]} == {"a", "b"}
    assert "One word gives a class away: 'a' (200 of 200 rows are a; of all rows 50%)" in next(cue_warnings(found))
    topic = [f"{text} goal" if label == "a" and i % 8 == 0 else text for i, (text, label) in
             enumerate(zip(texts, labels, strict=True))]  # fmt: skip
    found = cues(listed([{"text": text} for text in topic], labels), ("a", "b"))
    assert found["words"] == 1 and list(cue_warnings(found)) == []


def test_labels_of_several_and_choices() -> None:
    texts = [f"{text} late" if i % 4 == 1 else text for i, text in enumerate(random_texts(400, 0))]
    targets = [(("x", "late") if i % 4 == 1 else ("x",) if i % 2 else ()) for i in range(400)]
    found = cues(listed([{"text": text} for text in texts], targets), ("late", "x"))
    assert ("late", "late", 100) in {(cue["word"], cue["label"], cue["with_label"]) for cue in found["strongest"]}
    drawn = random_texts(400, 1)
    choices = [
        {"text": "why", "choices": (drawn[2 * i] + " not", drawn[2 * i + 1])[:: 1 if i % 2 else -1]} for i in range(200)
    ]
    marks = [(0, 1) if i % 2 else (1, 0) for i in range(200)]
    found = cues(listed(choices, marks), ())
    assert [(cue["word"], cue["label"]) for cue in found["strongest"]] == [("not", "wrong")]
    assert "Words of the choices alone" in next(cue_warnings(found))


def test_words_and_numbers_have_none() -> None:
    assert cues(listed([{"words": ("a", "b")}] * 20, [("O", "O")] * 20), ("O",)) == {}
    assert cues(listed([{"text": "a"}] * 20, [1.0] * 20), ()) == {}


def test_a_word_of_an_unspaced_script_is_a_cue() -> None:
    rows = [{"text_a": f"甲{i}", "text_b": f"{'没' if i % 2 else '都'}有人{i}知道"} for i in range(80)]
    found = cues(listed(rows, ["no" if i % 2 else "yes" for i in range(80)]), ("no", "yes"))
    assert {(cue["side"], cue["word"], cue["label"]) for cue in found["strongest"]} == {
        ("text_b", "没", "no"),
        ("text_b", "都", "yes"),
    }


def test_a_word_that_gives_a_class_away_is_warned_of_behind_ten_stronger_ones() -> None:
    labels = ["a"] * 1000 + ["b"] * 1000 + ["c"] * 350
    topic = " ".join(f"topic{i}" for i in range(12))  # in most rows of a, and in a few of b
    texts = [
        f"{text} {topic}" if i < 900 or 1000 <= i < 1100 else f"{text} given" if i >= 2000 else text
        for i, text in enumerate(random_texts(2350, 0))
    ]
    found = cues(listed([{"text": text} for text in texts], labels), ("a", "b", "c"))
    assert all(cue["word"].startswith("topic") for cue in found["strongest"][:10])
    assert [cue["word"] for cue in found["strongest"][10:]] == ["given"]
    assert "'given' (350 of 350 rows are c" in next(cue_warnings(found))
