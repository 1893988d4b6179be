"""Draws: nested, paired, by content alone, and never more than there is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from graftwork.core.task import Dataset, Split
from graftwork.data.load import digest
from graftwork.data.splits.draws import Size, draw, parse_sizes, plan_draws
from graftwork.errors import ConfigError, DataError
from graftwork.testing import tiny_dataset

DATA = tiny_dataset(rows=60)  # 30 rows of each of two classes; 30 of validation and of test


def sizes(words: str, data: Dataset = DATA) -> list[Size]:
    return parse_sizes(words, data.task)


def rows(data: Dataset, word: str, number: int, seed: int = 0, split: str = "train") -> set[str]:
    drawn = draw(data, sizes(word, data)[0], number, seed).dataset
    return {example.id for example in drawn.splits[split].examples}


def classes(split: Split) -> Counter[object]:
    return Counter(example.target for example in split.examples)


def test_sizes_as_they_are_written() -> None:
    assert sizes("8/class, 12.50%,100%") == [Size("8/class", 8), Size("12.5%", None, 0.125), Size("100%", None, 1.0)]
    assert [size.word for size in parse_sizes(None, DATA.task)][:2] == ["8/class", "16/class"]
    (third,) = sizes("33.3333333%")
    assert sizes(third.word) == [third], "by its word a draw is drawn again"
    assert {size.per_class for size in parse_sizes(None, tiny_dataset("regression").task)} == {None}


@pytest.mark.parametrize(
    "word", ["0/class", "101%", "0%", "8", "8 / class", "-3%", "nan%", "8/classes", "1e3/class", "0.00001%"]
)
def test_other_words_are_no_sizes(word: str) -> None:
    with pytest.raises(ConfigError, match="not a size"):
        sizes(word)


def test_a_size_twice_or_none() -> None:
    with pytest.raises(ConfigError, match="named twice"):
        sizes("8/class,08/class")
    with pytest.raises(ConfigError, match="no size"):
        sizes(" , ")


@pytest.mark.parametrize("kind", ["regression", "multilabel", "tagging"])
def test_rows_per_class_need_classes(kind: str) -> None:
    with pytest.raises(ConfigError, match="has no classes"):
        sizes("10%,8/class", tiny_dataset(kind))


def test_so_many_of_each_class_and_as_many_to_choose_on() -> None:
    drawn = draw(DATA, sizes("4/class")[0], 0).dataset
    assert classes(drawn.train) == classes(drawn.validation) == {"good": 4, "bad": 4}
    assert drawn.test is DATA.test
    assert drawn.digest == digest(drawn.splits) != DATA.digest
    encoded = [DATA.task.labels.index(example.target) for example in drawn.train.examples]
    assert drawn.train.targets.tolist() == encoded
    assert drawn.report["draw"] == {"size": "4/class", "number": 0, "seed": 0, "of": DATA.digest}


def test_the_sizes_of_a_draw_are_nested_and_draws_differ() -> None:
    for number in range(3):
        steps = [rows(DATA, word, number) for word in ("2/class", "4/class", "40%", "77%", "100%")]
        assert all(smaller < larger for smaller, larger in pairwise(steps))
    assert steps[-1] == {example.id for example in DATA.train.examples}
    assert len({frozenset(rows(DATA, "4/class", number)) for number in range(5)}) == 5
    assert rows(DATA, "4/class", 0) == rows(DATA, "4/class", 0) != rows(DATA, "4/class", 0, seed=1)


def test_a_share_of_a_rare_class_may_be_fewer_than_so_many_of_each() -> None:
    common, rare = (
        [one for one in DATA.train.examples if one.target == target][:count]
        for target, count in (("good", 30), ("bad", 10))
    )
    some = Split("train", (*common, *rare), DATA.train.targets[:40])
    plans = plan_draws(replace(DATA, splits={**DATA.splits, "train": some}), listed := sizes("8/class,50%,100%"), 4)
    eight, half, everything = (plans[size] for size in listed)
    assert not eight.is_within(half)  # 8 of the rare class and 5
    assert eight.is_within(everything) and half.is_within(everything) and half.is_within(half)


def test_the_order_of_the_file_does_not_matter() -> None:
    turned = Split("train", DATA.train.examples[::-1], DATA.train.targets[::-1])
    other = replace(DATA, splits={**DATA.splits, "train": turned})
    assert rows(other, "4/class", 2) == rows(DATA, "4/class", 2)
    assert rows(other, "25%", 2) == rows(DATA, "25%", 2)


def test_a_share_is_right_on_average_and_leaves_no_class_out() -> None:
    few = [rows(DATA, "1%", number) for number in range(5)]
    assert all(len(taken) == 2 for taken in few)  # 0.3 rows of each class would be none
    counts = [len(rows(DATA, "15%", number)) for number in range(60)]
    assert set(counts) == {8, 9, 10} and abs(np.mean(counts) - 9) < 0.3


def test_a_class_that_is_too_small_gives_all_it_has() -> None:
    drawn = draw(DATA, sizes("40/class")[0], 0)
    assert len(drawn.dataset.train.examples) == 60 and drawn.short == 2
    assert draw(DATA, sizes("30/class")[0], 0).short == 0
    assert drawn.dataset.digest == draw(DATA, sizes("100%")[0], 0).dataset.digest


def test_choices_are_made_on_at_most_as_many_rows_as_are_trained_on() -> None:
    data = tiny_dataset("regression", rows=200)
    data = replace(data, splits={**data.splits, "validation": replace(data.train, name="validation")})
    drawn = [draw(data, sizes("33%", data)[0], number).dataset for number in range(30)]
    assert all(len(one.validation.examples) <= len(one.train.examples) for one in drawn)
    assert all(len(one.validation.examples) >= len(one.train.examples) - 8 for one in drawn)


@pytest.mark.parametrize("kind", ["regression", "multilabel", "tagging", "span", "choice"])
def test_shares_of_other_kinds(kind: str) -> None:
    data = tiny_dataset(kind, rows=40)
    drawn = draw(data, sizes("50%", data)[0], 1).dataset
    assert 16 <= len(drawn.train.examples) <= 24
    assert 1 <= len(drawn.validation.examples) <= 20
    assert len(drawn.train.targets) == len(drawn.train.examples)


def test_a_scale_is_that_of_the_drawn_numbers() -> None:
    data = tiny_dataset("regression", rows=40)
    drawn = draw(data, sizes("30%", data)[0], 0).dataset
    numbers = [example.target for example in drawn.train.examples]
    assert drawn.task.settings.scale == (np.mean(numbers), np.std(numbers)) != data.task.settings.scale
    assert np.allclose(drawn.train.targets.mean(), 0, atol=1e-6)
    back = drawn.test.targets * drawn.task.settings.scale[1] + drawn.task.settings.scale[0]
    np.testing.assert_allclose(back, [example.target for example in data.test.examples], atol=1e-5)


def test_a_draw_whose_numbers_are_all_equal_is_named() -> None:
    data = tiny_dataset("regression", rows=40)
    (first, *examples) = data.train.examples
    alike = (first, *(replace(example, target=1.0) for example in examples))
    data = replace(data, splits={**data.splits, "train": replace(data.train, examples=alike)})
    numbers = [
        number for number in range(9) if first.id not in rows(tiny_dataset("regression", rows=40), "50%", number)
    ]
    with pytest.raises(DataError, match=rf"draw {numbers[0]} at 50%\)[\s\S]*larger --sizes"):
        draw(data, sizes("50%", data)[0], numbers[0])
