"""What a run's facts say of its validation score."""

from __future__ import annotations

from typing import Any

import pytest

from graftwork.core.run import RunResult


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({"best_epoch": 2, "epochs": 3}, True),
        ({"best_epoch": 4}, True),  # scalar_mix says no number of epochs
        ({"epochs": 3, "averaged": 2}, True),  # trainings that kept different epochs have none in common
        ({"best_epoch": 2, "epochs": 3, "kept_share": 1.0}, True),
        ({"best_epoch": 2, "epochs": 3, "kept_share": 0.5}, False),  # half-way: measured, hardly flattered
        ({"epochs": 3, "averaged": 2, "kept_share": 0.5}, False),
        ({"best_epoch": 1, "epochs": 1}, False),
        ({"best_epoch": 2, "epochs": 3, "validation_is": "minus the mean loss of a token"}, False),
        ({"block": 3, "strength": 0.1}, False),
        ({}, False),
    ],
)
def test_only_the_best_of_several_epochs_is_flattered(facts: dict[str, Any], kept: bool) -> None:
    assert RunResult("0", 0, "ok", facts=facts).kept_best_epoch == kept
