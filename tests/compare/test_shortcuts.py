"""Whether one text of a pair is enough: said where it is shown, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from boards import RowRuns, board, partly, row

from graftwork.compare.shortcuts import shortcuts

NAME = "partial_input:side=second:by=tfidf_svm"


def partial(share: float, seeds: int = 5) -> RowRuns:
    return replace(row(NAME, share, 1, seeds), config={"name": "partial_input", "side": "second", "by": "tfidf_svm"})


ALONE = "X sees the second text of each pair alone and is"
LEAK = f"The data has a shortcut: {ALONE}"


def told(share: float, svm: float, full: float, seeds: int = 5) -> list[str]:
    rows = [row("majority", 0.5, 0.1, seeds), row("tfidf_svm", svm, 1, seeds), row("full", full, 9, seeds)]
    return shortcuts(board([*rows, partial(share, seeds)]))


@pytest.mark.parametrize(
    ("scores", "start"),
    [
        ((0.9, 0.7, 0.9), f"{LEAK} within the noise of full"),
        ((0.95, 0.7, 0.75), f"{LEAK} better than full"),
        ((0.7, 0.7, 0.95), f"{LEAK} within the noise of tf"),
        ((0.7, 0.85, 0.95), f"{ALONE} better than majority by 2"),
    ],
)  # fmt: skip
def test_what_a_partial_input_says(scores: tuple[float, float, float], start: str) -> None:
    (line,) = told(*scores)
    assert line.replace(NAME, "X").startswith(start)


def test_a_best_that_wavers_does_not_make_a_shortcut() -> None:
    floor, steady, wavering = row("majority", 0.5, 0.1), row("linear_probe", 0.85, 2), partly("full", 0.99, 9, 0)
    (line,) = shortcuts(board([floor, wavering, partial(0.75)]))
    assert line.startswith("The data has a shortcut")
    made = board([floor, steady, wavering, partial(0.75)])
    assert made["rows"][0]["method"] == "full"
    (line,) = shortcuts(made)
    assert line.replace(NAME, "X").startswith(f"{ALONE} better than majority")


def test_nothing_is_said_where_nothing_is_learnt_or_shown() -> None:
    assert told(0.5, 0.5, 0.5) == [], "no method beats the majority: there is no shortcut to take"
    assert told(0.9, 0.7, 0.9, seeds=2) == [], "two runs show nothing"
    assert shortcuts(board([partial(0.9), row("full", 0.9, 9)])) == [], "nothing to read it against"
    assert shortcuts(board([row("majority", 0.5, 1), row("full", 0.9, 9)])) == []
