"""Perceptron tagger: its features, that it uses what stands around a word, and that its average is one."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.ragged import flat
from graftwork.core.task import SPLITS, Dataset, Split, Task
from graftwork.methods.most_frequent_tag import MostFrequentTag
from graftwork.methods.perceptron_tagger import (
    PerceptronTagger,
    _AveragedWeights,
    _blank,
    _still_rises,
    features,
    shape,
)
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
    averaged = _AveragedWeights(_blank(data.train.examples, len(data.task.labels)))
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
    scores = tagger.facts["validation_by_pass"]
    assert bench.score(tagger.logits(data.validation.examples)) == max(scores)
    assert (
        scores[tagger.facts["best_epoch"] - 1] == max(scores)
        and max(scores) not in scores[tagger.facts["best_epoch"] :]
    )


def test_it_is_for_words() -> None:
    assert "words" in PerceptronTagger().unfit(tiny_dataset().task, None)
    assert "epochs must be above 0" in PerceptronTagger(epochs=0).unfit(tiny_dataset("tagging").task, None)


def many_tags(tags: int, rows: int = 40, length: int = 12) -> Dataset:
    """Words that say little, tags that follow the two before, now and then."""
    draw = np.random.default_rng(0)
    listed = []
    for _ in range(rows):
        told = draw.integers(0, tags, length)
        told[2:] = np.where(draw.random(length - 2) < 0.6, (told[:-2] + told[1:-1]) % tags, told[2:])
        listed.append([(f"w{tag % 7 + draw.integers(0, 2)}", f"T{tag:04d}") for tag in told.tolist()])
    return data_of(listed)


class Dense:
    """The same perceptron with a row for all pairs of tags there can be, and its average."""

    def __init__(self, features: int, tags: int):
        shapes = ((features, tags), (tags + 1, tags), (tags + 1, tags + 1, tags))
        self.now = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        self.late = [np.zeros(shape) for shape in shapes]
        self.seen, self.none = 1, tags

    def scores(self, parts: Sequence[NDArray[np.float32]], word: NDArray[np.int64], two: int, one: int) -> NDArray:
        found: NDArray[np.float32] = parts[0][word].sum(axis=0) + parts[1][one] + parts[2][two, one]
        return found

    def learn(self, words: Sequence[NDArray[np.int64]], tags: Sequence[int]) -> None:
        two = one = self.none
        for word, tag in zip(words, tags, strict=True):
            guess = int(self.scores(self.now, word, two, one).argmax())
            if guess != tag:
                for answer, step in ((tag, 1.0), (guess, -1.0)):
                    for part, late, place in zip(
                        self.now, self.late, ((word, answer), (one, answer), (two, one, answer)), strict=True
                    ):
                        part[place] += step
                        late[place] += step * self.seen
            self.seen += 1
            two, one = one, guess

    def average(self) -> list[NDArray[np.float32]]:
        return [(part - late / self.seen).astype(np.float32) for part, late in zip(self.now, self.late, strict=True)]

    def tagged(self, numbers: Sequence[Sequence[NDArray[np.int64]]]) -> NDArray[np.float64]:
        parts, rows = self.average(), []
        for words in numbers:
            two = one = self.none
            for word in words:
                rows.append(self.scores(parts, word, two, one))
                two, one = one, int(rows[-1].argmax())
        return np.stack(rows).astype(np.float64)


@pytest.mark.parametrize("data", [tiny_dataset("tagging", rows=40), many_tags(23)], ids=["tiny", "many"])
def test_pairs_that_occur_answer_as_all_pairs_did(data: Dataset) -> None:
    """Bit for bit, after every pass; and a module that holds all pairs is read."""
    outputs = len(data.task.labels)
    averaged = _AveragedWeights(_blank(data.train.examples, outputs))
    numbers = averaged.now.numbers(data.train.examples)
    dense = Dense(len(averaged.now.weights), outputs)
    for _ in range(3):
        for words, tags in zip(numbers, data.train.targets, strict=True):
            averaged.learn(words, tags.tolist())
            dense.learn(words, tags.tolist())
        assert np.array_equal(flat(averaged.average().tagged(numbers)), dense.tagged(numbers))
    tagger, (weights, after, after_two) = averaged.average(), dense.average()
    assert 0 < len(tagger.after_two) < (outputs + 1) ** 2
    assert tagger.trained_parameters == sum(map(np.count_nonzero, (weights, after, after_two)))
    stored = {"weights": weights, "after": after, "after_two": after_two}
    delta = {name: torch.from_numpy(part) for name, part in stored.items()}
    before = PerceptronTagger().restore(Setting(data.task, KIND, None), delta, tagger.facts)
    assert np.array_equal(flat(before.logits(data.test.examples)), flat(tagger.logits(data.test.examples)))
    assert before.trained_parameters == tagger.trained_parameters


def test_memory_does_not_grow_with_the_cube_of_the_tags() -> None:
    data = many_tags(600)
    bench = tiny_bench(data, None)
    tracemalloc.start()
    tagger = PerceptronTagger(epochs=2).fit(bench)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    tags = len(data.task.labels)
    assert tags > 300 and most < 4 * tags**3 / 2, "one dense table is twice that, and there were four"
    assert sum(part.numel() for part in tagger.delta().values()) < tags**3 / 20
