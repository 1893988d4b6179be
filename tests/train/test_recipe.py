"""How long to train: filled in from rows and classes alone, and nonsense is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from graftwork.core.run import Recipe
from graftwork.errors import ConfigError
from graftwork.files import canonical
from graftwork.train.recipe import EPOCHS, EPOCHS_AT_MOST, resolve


def test_what_is_given_is_kept() -> None:
    resolved = resolve(Recipe(epochs=3, batch_size=8, learning_rate=0.5), rows=20, outputs=2)
    assert (resolved["epochs"], resolved["batch_size"], resolved["learning_rate"]) == (3, 8, 0.5)
    assert resolved["steps"] == 3 * 3  # 20 rows are three batches of eight, the last one smaller


def test_steps_are_whole_batches_of_every_epoch() -> None:
    for rows in (1, 31, 32, 33, 1000):
        resolved = resolve(Recipe(), rows, 2)
        assert resolved["steps"] == resolved["epochs"] * math.ceil(rows / 32)


def test_few_rows_are_seen_more_often_and_many_classes_longer() -> None:
    epochs = [resolve(Recipe(), rows, 2)["epochs"] for rows in (10, 1_000, 5_000, 1_000_000)]
    assert epochs == sorted(epochs, reverse=True)
    assert epochs[0] == EPOCHS_AT_MOST and epochs[-1] == EPOCHS[0][1]
    by_outputs = [resolve(Recipe(), 10_000, outputs)["epochs"] for outputs in (1, 2, 3, 20, 21, 300)]
    assert by_outputs == [3, 3, 5, 5, 10, 10]


def test_it_is_json_for_the_receipt() -> None:
    assert canonical(resolve(Recipe(), 100, 2))


@pytest.mark.parametrize("field", ["epochs", "batch_size", "learning_rate"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_nonsense_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        resolve(replace(Recipe(), **{field: value}), 100, 2)  # type: ignore[arg-type]
