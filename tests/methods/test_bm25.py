"""BM25 equals its formula, counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.ragged import flat
from graftwork.methods.bm25 import Bm25
from graftwork.registry import methods
from graftwork.testing import tiny_bench, tiny_dataset

TRAIN = [("a", "b b c"), ("c", "d")]


def fitted(**settings: float):  # type: ignore[no-untyped-def]
    data = tiny_dataset("choice", rows=4)
    bench = tiny_bench(data, None)
    examples = tuple(Example(f"train/{i}", {"text": "q", "choices": listed}) for i, listed in enumerate(TRAIN))
    bench.train = type(bench.train)("train", examples, bench.train.targets[:2])
    return Bm25(**settings).fit(bench)


def test_scores_are_those_of_the_formula() -> None:
    """Four candidates of 6 words; b stands in one of them, c in two."""
    found = fitted(k1=1.5, b=0.6)
    (score,), (none,), (unknown,) = found.logits(
        [Example("x", {"text": "b C z b", "choices": ("B c b b", "", "z")})]
    ).flat
    idf = {word: math.log(1 + (4 - df + 0.5) / (df + 0.5)) for word, df in {"b": 1, "c": 2, "z": 0}.items()}

    def part(word: str, count: int, length: int) -> float:
        return idf[word] * count * 2.5 / (count + 1.5 * (1 - 0.6 + 0.6 * length / 1.5))

    assert score == pytest.approx(2 * part("b", 3, 4) + part("c", 1, 4))
    assert none == 0 and unknown == pytest.approx(part("z", 1, 1))


def test_no_label_is_looked_at() -> None:
    data = tiny_dataset("ranking")
    bench = tiny_bench(data, None)
    made = methods.get("bm25")()
    before = flat(made.fit(bench).logits(data.test.examples))
    bench.train = type(bench.train)("train", data.train.examples, data.train.targets[::-1])
    assert np.array_equal(flat(made.fit(bench).logits(data.test.examples)), before)
    assert made.fit(bench).trained_parameters == 0
    assert made.fit(bench).flops(data.test.examples)[0] > 0


@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_other_kinds_have_no_candidates(kind: str) -> None:
    assert "none" in methods.get("bm25")().unfit(tiny_dataset(kind).task, None)


@pytest.mark.parametrize("settings", [{"k1": -1.0}, {"b": 7.0}, {"b": -0.1}], ids=str)
def test_what_the_formula_can_not_take(settings: dict[str, float]) -> None:
    assert "k1 must be 0 or more and b from 0 to 1" in methods.get("bm25")(**settings).unfit(
        tiny_dataset("choice").task, None
    )
