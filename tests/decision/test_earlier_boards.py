"""Earlier boards: what is read of one, what is shipped, and what a user keeps."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.decision.earlier_boards import Experience, TaskRecord, keep, own, own_file, record_of, shipped_prior
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.traits import FROZEN, SIMPLE, TUNED, Arm, Traits
from graftwork.errors import DataError

TRAITS = Traits(rows=500, outputs=4, two_texts=False, words=12.0, kind="classification", backbone="minilm")


def board(**changed: Any) -> dict[str, Any]:
    """A board of three methods, whose differences are known to one point and could have shown 2.8."""
    names = ("full", "linear_probe", "tfidf_svm")
    rows = [
        {"method": name, "config": parse_method(name).config, "n_seeds": 3, "scores": {"accuracy": {"mean": mean}}}
        for name, mean in zip(names, (0.9, 0.85, 0.8), strict=True)
    ]
    pairs = [
        {"a": a, "b": b, "low": -0.0196, "high": 0.0196, "smallest_detectable": 0.028016}
        for a, b in (("full", "linear_probe"), ("full", "tfidf_svm"), ("linear_probe", "tfidf_svm"))
    ]
    found = {
        "headline_metric": "accuracy",
        "task": {"data": "0ab6"},
        "rows": rows,
        "differences": pairs,
        "decision": {"traits": asdict(TRAITS)},
    }
    return found | changed


def test_a_board_says_scores_errors_and_traits() -> None:
    record = record_of(board(), "mine")
    assert record.name == "mine" and record.traits == TRAITS and record.data == "0ab6"
    assert {arm.sort for arm in record.scores} == {TUNED, FROZEN, SIMPLE}
    score = record.scores[Arm("full", "full", TUNED)]
    assert (score.mean, score.seeds) == (0.9, 3) and score.error == pytest.approx(0.01 / 2**0.5, rel=1e-3)
    assert TaskRecord.read(json.loads(json.dumps(record.content()))) == record


def test_what_teaches_nothing_is_told() -> None:
    with pytest.raises(DataError, match="too short to learn from"):
        record_of(board(rows=board()["rows"][:2]), "short")
    with pytest.raises(DataError, match="does not say what its task was like"):
        record_of(board(decision={}), "old")
    with pytest.raises(DataError, match="does not say what its task was like"):
        record_of(board(decision=None), "all runs failed")
    assert record_of(board(decision={}), "old", TRAITS).traits == TRAITS


def test_a_user_keeps_own_boards_and_they_count() -> None:
    assert own() == Experience() and not own_file().exists()
    keep([record_of(board(), "mine"), record_of(board(), "other")])
    keep([record_of(board(rows=[*board()["rows"]]), "mine")])
    assert [task.name for task in own().tasks] == ["mine", "other"]
    assert len(Prior.load().experience.tasks) == len(shipped_prior()[1].tasks) + 2
    assert len(Prior.load("0ab6").experience.tasks) == len(shipped_prior()[1].tasks)  # these rows are asked about
    keep((), without=["other"])
    assert [task.name for task in own().tasks] == ["mine"]
    assert not list(own_file().parent.glob("*.part"))


def test_what_is_shipped_names_known_methods() -> None:
    sizes, experience = shipped_prior()
    assert Sizes.read(sizes).tuned > 0
    for task in experience.tasks:
        assert len(task.scores) >= 3
        for arm, score in task.scores.items():
            assert parse_method(arm.label).config["name"] == arm.name and score.error >= 0


def test_a_choice_without_our_tasks(tmp_path: Path) -> None:
    _, experience = shipped_prior()
    name = experience.tasks[0].name
    assert name not in [task.name for task in experience.without([name]).tasks]
