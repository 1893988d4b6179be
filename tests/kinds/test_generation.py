"""Generation: references, settings, and outputs that are texts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError
from graftwork.registry import kinds
from graftwork.targets.written_texts import written_array

KIND = kinds.get("generation")
TASK = Task("t", Path(), kind="generation")


@pytest.mark.parametrize(("target", "what"), [(" ", "the target is empty"), ((), "the target"), (("a", ""), "a ref")])
def test_an_empty_target_has_a_place(target: str | tuple[str, ...], what: str) -> None:
    with pytest.raises(DataError, match=rf"^t.tsv:7: {what}"):
        KIND.parse(target, TASK, "t.tsv:7")


def test_references_stay_as_they_stand() -> None:
    assert KIND.parse(" Ja. ", TASK, "") == (" Ja. ",) and KIND.parse(("a", "b"), TASK, "") == ("a", "b")
    encoded = KIND.encode([("a", "b"), ("c", "d")], TASK)
    assert encoded.shape == (2,) and encoded.tolist() == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize("given", [{"beams": 0}, {"longest": True}, {"no_repeat": -1}, {"length_penalty": math.inf}])
def test_settings_are_held_to_sense(given: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        Task("t", Path(), kind="generation", settings=given)


def test_how_it_writes_is_part_of_the_question() -> None:
    asked = Task("t", Path(), kind="generation", settings={"beams": 4}).question()
    assert asked["beams"] == 4 and "longest" not in asked


def test_the_constant_is_the_most_frequent_text() -> None:
    (told,) = KIND.constant(KIND.encode([("a",), ("b", "a"), ("b",), ("a", "c")], TASK), TASK).tolist()
    assert told == ("a", math.log(0.5), False, ())


def test_answers_are_told_in_a_line() -> None:
    outputs = written_array(["Ein\nMann", ""], [math.log(0.5), 0.0], [True, False])
    first, second = KIND.decode(outputs, TASK, ())
    assert first == {"text": "Ein\nMann", "probability": 0.5, "log_probability": math.log(0.5), "cut": True}
    assert KIND.sentence(first) == "Ein Mann   (cut at the longest length)" and KIND.sentence(second) == "(nothing)"
    assert [*KIND.predictions(outputs, TASK)] == [("Ein\nMann",), ("",)]


def test_a_search_by_beams_has_alternatives() -> None:
    outputs = written_array(["a"], [math.log(0.5)], [False], [(("b", math.log(0.25), True),)])
    (answer,) = KIND.decode(outputs, TASK.resolved(beams=2), ())
    assert answer["text"] == "a"
    assert answer["alternatives"] == [
        {"text": "b", "probability": 0.25, "log_probability": math.log(0.25), "cut": True}
    ]
    assert "alternatives" not in KIND.decode(outputs, TASK, ())[0]


def test_another_text_is_infinitely_far() -> None:
    ours = written_array(["a", "b"], [-100.0, -0.5], [False, True])
    assert KIND.difference(ours, ours) == 0.0
    assert KIND.difference(written_array(["a", "b"], [-101.0, -0.5], [False, True]), ours) == pytest.approx(0.01)
    for other in (
        written_array(["a", "c"], [-100.0, -0.5], [False, True]),
        written_array(["a", "b"], [-100.0, -0.5], [False] * 2),
    ):
        assert KIND.difference(other, ours) == math.inf


def test_default_metrics_are_those_that_can_count_the_targets() -> None:
    assert KIND.resolve(TASK, [("It is good.",)]).metrics == ("chrf", "bleu", "rougel", "exact_match")
    assert KIND.resolve(TASK, [("Это хорошо.",)]).metrics == ("chrf", "bleu", "exact_match")
    assert KIND.resolve(TASK, [("这很好。",)]).metrics == ("chrf", "exact_match")
    assert KIND.resolve(Task("t", Path(), kind="generation", metrics=("bleu",)), [("这很好。",)]).metrics == ("bleu",)


def test_a_summary_is_scored_by_what_a_long_copy_does_not_win() -> None:
    """ROUGE-L leads where the middle target has at most half the words of its source, and a script that it counts."""
    source = {"text": "one two three four five six seven eight"}

    def first(target: str, inputs: dict[str, str] = source, rows: int = 3) -> str:
        found = KIND.metrics_for([inputs] * rows, [(target,)] * rows)
        assert sorted(found) == sorted({*found}) and {"chrf", "exact_match"} <= {*found}
        return str(found[0])

    assert first("a short one") == "rougel" and first("one two three four five") == "chrf"
    assert first("кратко") == "chrf" and first("短い") == "chrf"
    assert first("a short one", {"text_a": "one two", "text_b": "three four five six"}) == "rougel"
    assert first("a short one", rows=0) == "chrf", "nothing is known of what is read"
    assert KIND.resolve(TASK, [("a",)]).metrics[0] == "chrf"
    assert KIND.resolve(TASK.resolved(metrics=("bleu",)), [("a",)]).metrics == ("bleu",)
