"""How long to train: filled in from rows and classes alone, and nonsense is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from graftwork.core.run import Recipe
from graftwork.errors import ConfigError
from graftwork.io.files import canonical
from graftwork.train.recipe import (
    EPOCHS,
    EPOCHS_AT_MOST,
    FITTED,
    HEAD_OF_MANY,
    KEPT_OF_MANY,
    STEPS_OF_A_PART,
    UNFITTED,
    resolve,
)


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
    assert epochs[0] == EPOCHS_AT_MOST and epochs[-1] == EPOCHS
    by_outputs = [resolve(Recipe(), 10_000, outputs)["epochs"] for outputs in (1, 2, 3, 20, 21, 300)]
    assert by_outputs == [3, 3, 3, 3, 5, 5]
    shares = [resolve(Recipe(), 10_000, outputs)["kept_share"] for outputs in (2, 20, 21)]
    assert shares == [1.0, 1.0, KEPT_OF_MANY]
    assert [resolve(Recipe(), 10_000, outputs)["head_rate"] for outputs in (2, 20, 21)] == [1.0, 1.0, HEAD_OF_MANY]


def test_a_head_that_is_not_fitted_on_learnt_features_trains_like_any_other() -> None:
    """Half of the way back to random numbers is no better place."""
    many = {"rows": 10_000, "outputs": 21}
    for resolved in (resolve(Recipe(), **many, head_start=False), resolve(Recipe(), **many, pretrained=False)):
        assert resolved["kept_share"] == resolved["head_rate"] == 1.0
    assert resolve(Recipe(), **many, head_start=False)["head_start"] == UNFITTED
    assert resolve(Recipe(), **many, pretrained=False)["head_start"] == FITTED


def test_it_is_json_for_the_receipt() -> None:
    assert canonical(resolve(Recipe(), 100, 2))


@pytest.mark.parametrize("field", ["epochs", "batch_size", "learning_rate"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "3"])
def test_nonsense_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        resolve(replace(Recipe(), **{field: value}), 100, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["epochs", "batch_size"])
def test_parts_of_a_row_or_of_a_pass_are_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} must be a whole number"):
        resolve(replace(Recipe(), **{field: 2.5}), 100, 2)  # type: ignore[arg-type]


def test_a_whole_part_changes_nothing() -> None:
    assert resolve(Recipe(part=1.0), 1000, 6) == resolve(Recipe(), 1000, 6)
    assert not {"part", "batches_per_epoch"} & resolve(Recipe(), 1000, 6).keys()


@pytest.mark.parametrize("rows", [5_000, 50_000])
@pytest.mark.parametrize("part", [1 / 8, 1 / 4, 0.5, 0.99])
def test_a_part_is_fewer_steps_of_the_same_recipe(part: float, rows: int) -> None:
    whole, short = resolve(Recipe(), rows, 6), resolve(Recipe(part=part), rows, 6)
    assert short["steps"] == short["epochs"] * short["batches_per_epoch"]
    assert part * whole["steps"] <= short["steps"] < part * whole["steps"] + short["epochs"]
    assert short["batches_per_epoch"] <= whole["steps"] // whole["epochs"]
    changed = {"part", "batches_per_epoch", "steps", "epochs"}
    assert {name: short[name] for name in short.keys() - changed} == {
        name: whole[name] for name in whole.keys() - changed
    }


def test_a_part_has_enough_steps_to_say_something_and_is_the_whole_run_when_that_is_shorter() -> None:
    assert resolve(Recipe(part=0.01), 5_000, 6)["steps"] == STEPS_OF_A_PART
    for rows in range(1, 1200, 37):
        for epochs in (1, 2, 3):
            whole, short = resolve(Recipe(epochs=epochs), rows, 2), resolve(Recipe(epochs=epochs, part=1 / 8), rows, 2)
            assert short == whole or STEPS_OF_A_PART <= short["steps"] < whole["steps"]
    assert resolve(Recipe(epochs=1, part=1 / 8), 600, 2) == resolve(Recipe(epochs=1), 600, 2)  # 19 steps


@pytest.mark.parametrize("part", [0, -0.5, 1.5, math.nan])
def test_a_part_is_a_part(part: float) -> None:
    with pytest.raises(ConfigError, match="part"):
        resolve(Recipe(part=part), 100, 2)
