"""Span: answers as rows, the threshold, and what is decoded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.core.metric import score
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError
from graftwork.kinds.span import Span
from graftwork.registry import metrics
from graftwork.targets.passages import Gold, Golds, Passage, question_of
from graftwork.testing.passage_contract import sample_questions

KIND = Span()
BLANK = Task("t", Path(), kind="span")
PASSAGE = Passage.of("The Romans founded Zürich.")  # the romans founded zürich .


def golds(*texts: str, passage: Passage = PASSAGE) -> Golds:
    return Golds([Gold(text, passage.text.index(text)) for text in texts], passage)


def logits(*rows: tuple[float, float]) -> Ragged:
    return Ragged(np.array(rows, dtype=np.float64), np.array([len(rows)]))


def test_rows_are_no_answer_and_words() -> None:
    encoded = KIND.encode([golds("Romans founded", "Zürich"), golds(), golds("Roman")], BLANK)
    assert encoded.counts.tolist() == [6, 6, 6]
    assert np.flatnonzero(encoded.flat[:, 0]).tolist() == [2, 6, 14], "the first of several right answers"
    assert np.flatnonzero(encoded.flat[:, 1]).tolist() == [3, 6, 14], "no answer is the first row; words go whole"
    assert encoded.flat[:, 2].tolist() == [0] * 6 + [1] * 6 + [2] * 6
    some = encoded[np.array([2, 0])]
    assert some.about is not None and some.about[0].texts == ["Roman"] and some.counts.tolist() == [6, 6]


def test_loss_is_over_the_rows_of_each_example() -> None:
    targets = torch.from_numpy(KIND.encode([golds("The"), golds("Zürich", passage=Passage.of("Zürich"))], BLANK).flat)
    rows = torch.zeros(len(targets), 2, dtype=torch.float64)
    assert float(KIND.loss(rows, targets)) == pytest.approx((np.log(6) + np.log(2)) / 2)
    rows[1] = np.log(5)  # as likely as the five others together
    assert float(KIND.loss(rows, targets)) == pytest.approx((np.log(2) + np.log(2)) / 2)
    rows[0, 1] = 50.0
    assert float(KIND.loss(rows, targets)) == pytest.approx((2 * np.log(2) + np.log(2) + 50 - np.log(5)) / 4, rel=1e-3)


def test_no_answer_is_given_only_where_questions_may_have_none() -> None:
    rows = logits((5, 5), (0, 0), (3, 0), (0, 4), (0, 0), (0, 0))
    asked, may = [question_of("x", "who?", PASSAGE)], BLANK.resolved(unanswerable=True)
    (answer,) = KIND.decode(rows, BLANK, asked)
    assert (answer["answer"], answer["start"], answer["end"]) == ("Romans founded", 4, 18)
    exp = np.exp([0, 3, 0, 0, 0]), np.exp([0, 0, 4, 0, 0])
    assert answer["probability"] == pytest.approx(exp[0][1] / exp[0].sum() * exp[1][2] / exp[1].sum())
    assert len(answer["n_best"]) == 5 and "" not in [one["answer"] for one in answer["n_best"]]
    (none,) = KIND.decode(rows, may, asked)
    assert (none["answer"], none["start"], none["end"]) == ("", None, None)
    assert [one["answer"] for one in none["n_best"]][:2] == ["", "Romans founded"]
    assert np.flatnonzero(KIND.predictions(rows, may).flat[:, 0]).tolist() == [0]
    assert np.flatnonzero(KIND.predictions(rows, BLANK).flat[:, 0]).tolist() == [2]
    rows.flat[0] = 3.4
    assert KIND.decode(rows, may, asked)[0]["answer"] == "Romans founded"


def test_answers_of_words_that_were_given_as_a_list() -> None:
    asked = replace(question_of("x", "who?", PASSAGE), source=None)
    (answer,) = KIND.decode(logits((0, 0), (0, 0), (0, 0), (0, 0), (9, 0), (0, 9)), BLANK, [asked])
    assert (answer["answer"], answer["start"], answer["end"]) == ("Zürich .", 19, 27)


def test_the_threshold_is_the_best_on_what_it_is_chosen_on() -> None:
    random = np.random.default_rng(0)
    targets = sample_questions() * 20
    task = KIND.resolve(BLANK, targets)
    encoded = KIND.encode(targets, task)
    noisy = Ragged(encoded.flat[:, :2] * 4.0 + random.normal(size=(len(encoded.flat), 2)), encoded.counts)
    noisy.flat[noisy.starts] += 3.0

    def reached(threshold: float) -> float:
        moved = Ragged(noisy.flat.copy(), noisy.counts)
        moved.flat[moved.starts] += threshold / 2
        return score(metrics.get("span_f1"), encoded, KIND.predictions(moved, task), task)

    chosen = KIND.shift(noisy, encoded, task)
    assert chosen is not None and chosen[0] == chosen[1]
    assert reached(2 * chosen[0]) == pytest.approx(max(reached(step) for step in np.linspace(-20, 20, 401)))
    assert reached(2 * chosen[0]) > reached(0.0)
    answered = [golds for golds in targets if golds]
    plain = KIND.resolve(BLANK, answered)
    assert KIND.shift(noisy, KIND.encode(targets, task), plain) is None


def test_scores_are_of_texts() -> None:
    task = BLANK.resolved(unanswerable=True)
    targets = KIND.encode([golds("Romans founded", "founded Zürich"), golds("Roman"), golds(), golds("The")], task)
    said = [golds("Zürich"), golds("Roman"), golds(), golds()]
    found = KIND.encode(said, task)
    exact, f1 = (
        metrics.get(name).statistics(targets, found, task)[:, 0].tolist() for name in ("exact_match", "span_f1")
    )
    assert exact == [0, 0, 1, 1], "Romans is not Roman; the article alone is no answer"
    assert f1 == pytest.approx([2 / 3, 0, 1, 1])
    plain = metrics.get("span_f1").statistics(targets, found, BLANK)[:, 0].tolist()
    assert plain[2:] == [1, 0], "where all questions are said to have an answer"


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to learn"):
        KIND.resolve(BLANK, [golds(), golds()])
    with pytest.raises(ConfigError, match="'span_f1' scores texts and stretches of a text"):
        metrics.get("span_f1").statistics(np.array([1]), np.array([1]), BLANK)


def test_a_long_answer_is_cut_to_the_longest() -> None:
    words = Passage.of(" ".join(f"w{i}" for i in range(60)))
    rows = np.zeros((61, 2))
    rows[3, 0] = rows[50, 1] = 9.0
    (answer,) = KIND.decode(Ragged(rows, np.array([61])), BLANK, [question_of("x", "?", words)])
    assert len(answer["answer"].split()) <= KIND.longest
