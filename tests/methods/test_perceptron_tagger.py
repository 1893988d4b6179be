"""Perceptron tagger: its features, that it uses what stands around a word, and that its average is one."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.task import SPLITS, Dataset, Split, Task
from graftwork.methods.most_frequent_tag import MostFrequentTag
from graftwork.methods.perceptron_tagger import PerceptronTagger, _Averaged, _blank, _still_rises, features, shape
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset

KIND = kinds.get("tagging")


@pytest.mark.parametrize(
    ("word", "form"), [("McDonald's-97", "AaAa'a-0"), ("USA", "A"), ("1,000", "0,0"), ("", ""), ("été", "a")]
)
def test_shapes(word: str, form: str) -> None:
    assert shape(word) == form


def test_features_of_a_word() -> None:
    first, second = features(["Good", "x"])
    assert {"w=Good", "l=good", "s=Aa", "s-=", "s+=a", "-1=", "+1=x", "+2=", "e=d", "e=good", "b=go"} <= set(first)
    assert {"-1=good", "-1,0=good x", "-1e=ood", "b=x", "e=x"} <= set(second)
    for found in (first, second):
        assert len(set(found)) == len(found), "a feature that stands twice would be corrected once"


def data_of(rows: list[list[tuple[str, str]]]) -> Dataset:
    """The same rows in every split."""
    targets = [tuple(tag for _, tag in row) for row in rows]
    task = KIND.resolve(Task("t", Path(), kind="tagging"), targets)
    splits = {}
    for name in SPLITS:
        examples = [Example(f"{name}/{i}", {"words": tuple(w for w, _ in row)}, t)
                    for i, (row, t) in enumerate(zip(rows, targets, strict=True))]  # fmt: skip
        splits[name] = Split(name, tuple(examples), KIND.encode(targets, task))
    return Dataset(task, splits, "")


@pytest.mark.parametrize(
    "rows",
    [
        [[("I", "PRON"), ("run", "VERB")], [("a", "DET"), ("run", "NOUN")]],  # the word before
        [[(first, tag), *[("x", tag)] * 5] for first, tag in (("s", "A"), ("t", "B"))],  # the tag before
        [[("walking", "VERB"), ("y", "O")], [("walked", "PAST"), ("z", "O")]],
    ],
)
def test_context_is_learnt(rows: list[list[tuple[str, str]]]) -> None:
    data = data_of(rows * 4)
    bench = tiny_bench(data, None)
    tagger = PerceptronTagger().fit(bench)
    assert bench.score(tagger.logits(data.validation.examples)) == 1
    if len({word for row in rows for word, _ in row}) < 4:
        assert bench.score(MostFrequentTag().fit(bench).logits(data.validation.examples)) < 1


def test_the_average_is_over_every_word_seen() -> None:
    data = tiny_dataset("tagging", rows=6)
    averaged = _Averaged(_blank(data.train.examples, len(data.task.labels)))
    words, history = averaged.now.numbers(data.train.examples), []
    real = averaged.now.weights
    for numbers, tags in zip(words, data.train.targets, strict=True):
        for word, tag in zip(numbers, tags.tolist(), strict=True):  # one word at a time: no tag goes before
            history.append(copy.deepcopy(real))
            averaged.learn([word], [tag])
    history.append(real)
    np.testing.assert_allclose(averaged.average().weights, np.mean(history, axis=0), atol=1e-5)
    assert np.abs(real).max() > 0


@pytest.mark.parametrize(
    ("scores", "goes_on"),
    [([], True), ([0.8], True), ([0.9, 0.8], True), ([0.9, 0.8, 0.8], False), ([0.8, 0.9, 0.85, 0.9, 0.85], True),
     ([0.9, 0.85, 0.9, 0.85, 0.85], False)],
)  # fmt: skip
def test_two_passes_in_a_row_below_the_best_end_it(scores: list[float], goes_on: bool) -> None:
    assert _still_rises(scores) == goes_on


def test_features_that_weigh_nothing_are_left_out() -> None:
    data = tiny_dataset("tagging", rows=40)
    bench = tiny_bench(data, None)
    tagger = PerceptronTagger().fit(bench)
    assert 0 < tagger.facts["features"] == len(tagger.facts["vocabulary"]) == len(tagger.weights)
    assert np.all(np.abs(tagger.weights).sum(axis=1) > 0)
    assert tagger.facts["features"] < len(_blank(data.train.examples, 3).facts["vocabulary"])
    assert bench.score(tagger.logits(data.validation.examples)) == max(tagger.facts["validation_by_pass"])


def test_it_is_for_words() -> None:
    assert "words" in PerceptronTagger().unfit(tiny_dataset().task, None)
    assert "epochs must be above 0" in PerceptronTagger(epochs=0).unfit(tiny_dataset("tagging").task, None)
