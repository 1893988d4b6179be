"""In which way an answer is wrong, by every kind that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graftwork.core.example import Example
from graftwork.core.kind import NamesMistakes
from graftwork.core.outcome import MISSED, NOTHING, Outcome
from graftwork.core.task import Task
from graftwork.registry import kinds
from graftwork.targets.passages import Gold, Golds, Passage, question_of


def kind_of(name: str) -> Any:
    kind = kinds.get(name)
    assert isinstance(kind, NamesMistakes)
    return kind


def task_of(kind: str, **settings: Any) -> Task:
    return Task("t", Path("t.csv"), kind=kind).resolved(**settings)


def test_only_a_kind_that_writes_does_not() -> None:
    assert [name for name in kinds.names() if not isinstance(kinds.get(name), NamesMistakes)] == ["generation"]


def test_labels() -> None:
    one, several = kind_of("classification"), kind_of("multilabel")
    task = task_of("multilabel", labels=("a", "b", "c"))
    assert one.outcomes({"label": "a"}, {"label": "b"}, task) == [Outcome("a", "b", False)]
    wanted = several.expected(Example("x", {"text": ""}, ("a", "b")), task)
    assert several.outcomes(wanted, {"label": ["b", "c"]}, task) == [
        Outcome("b", "b", True), Outcome("a", MISSED, False), Outcome(NOTHING, "c", False),
    ]  # fmt: skip
    assert several.outcomes({"label": []}, {"label": []}, task) == []


def test_choices() -> None:
    choice, ranking, task = kind_of("choice"), kind_of("ranking"), task_of("choice")
    asked = Example("x", {"text": "why?", "choices": ("p", "q", "r")}, (0, 1, 0))
    assert choice.outcomes(choice.expected(asked, task), {"choice": "r", "index": 2}, task) == [
        Outcome("choice 2", "choice 3", False)
    ]
    ranked = {"ranking": [{"choice": "pqr"[i], "index": i} for i in (2, 0, 1)]}
    assert [one.found for one in ranking.outcomes(ranking.expected(asked, task), ranked, task)] == ["rank 3"]
    assert ranking.outcomes({"ranking": []}, ranked, task) == []


@pytest.mark.parametrize(
    ("found", "told", "right"),
    [(3.0, "within 1", True), (4.0, "within 1", True), (4.5, "too high by 1 to 2", False),
     (0.9, "too low by more", False), (1.5, "too low by 1 to 2", False)],
)  # fmt: skip
def test_numbers(found: float, told: str, right: bool) -> None:
    kind, task = kind_of("regression"), task_of("regression", scale=(3.0, 2.0))
    (outcome,) = kind.outcomes({"value": 3.0}, {"value": found}, task)
    assert outcome == Outcome("2 to 4", told, right, off=abs(found - 3.0) / 2.0)
    assert {outcome.true, outcome.found} <= {*kind.outcome_names(task)}


def test_numbers_at_the_ends() -> None:
    kind, task = kind_of("regression"), task_of("regression", scale=(3.0, 2.0))
    assert [kind.outcomes({"value": at}, {"value": at}, task)[0].true for at in (-90.0, 90.0)] == ["below 0", "above 6"]


def test_answers_in_a_passage() -> None:
    kind, task = kind_of("span"), task_of("span", unanswerable=True)
    passage = Passage.of("The Romans founded Zürich long ago")
    asked = question_of("x", "who?", passage, Golds([Gold("Romans", 4)], passage))
    silent = question_of("y", "who?", passage, Golds([], passage))

    def told(of: Example, text: str) -> Outcome:
        start = passage.text.index(text) if text else None
        answer = {"answer": text, "start": start, "end": None if start is None else start + len(text)}
        (outcome,) = kind.outcomes(kind.expected(of, task), answer, task)
        return outcome

    assert told(asked, "The Romans").right  # articles don't count, as in the metric
    assert [told(asked, text).found for text in ("Romans founded", "Zürich", "")] == [
        "a part of it, or more", "another place", "no answer",
    ]  # fmt: skip
    assert told(silent, "").right and not told(silent, "Zürich").right
    assert kind.brief(kind.expected(silent, task)) == "no answer"


def test_spans_of_words() -> None:
    kind = kind_of("tagging")
    task = kind.resolve(Task("t", Path("t.conll"), kind="tagging"), [("B-PER", "I-PER", "O", "B-LOC", "I-LOC")])
    example = Example("x", {"words": ("Ann", "Lee", "left", "Rome")}, ("B-PER", "I-PER", "O", "B-LOC"))
    wanted = kind.expected(example, task)
    assert kind.brief(wanted) == "Ann Lee (PER); Rome (LOC)"
    found = {"spans": [{"label": "PER", "start": 0, "end": 3, "text": "Ann"}]}
    assert kind.outcomes(wanted, found, task) == [
        Outcome("PER", "PER", False, "other borders"), Outcome("LOC", MISSED, False),
    ]  # fmt: skip
    plain = kind.resolve(Task("t", Path("t.conll"), kind="tagging"), [("NOUN", "VERB")])
    tags = kind.expected(Example("x", {"words": ("a", "b")}, ("NOUN", "VERB")), plain)
    assert kind.outcomes(tags, {"tags": ["NOUN", "NOUN"]}, plain)[1] == Outcome("VERB", "NOUN", False)
