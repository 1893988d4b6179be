"""The metrics of written texts, against sacrebleu and rouge-score, and by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from numpy.typing import NDArray
from rouge_score.rouge_scorer import RougeScorer

from graftwork.core.metric import score
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.io.extras import MissingExtra
from graftwork.registry import kinds, metrics

KIND = kinds.get("generation")
TASK = Task("t", Path(), kind="generation")
WORDS = ("the", "cat", "sat", "mat", "and", "der", "Hund", "über", "die", "Straße", ",", "schnell", ".", "12", "它")
Drawn = tuple[list[tuple[str, ...]], list[str]]


def drawn(seed: int) -> Drawn:
    """References of texts, up to three of each, and what was written: another text, a reference, a part, or nothing."""
    chance = random.Random(seed)

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))

    rows = [tuple(text() for _ in range(chance.choice((1, 1, 2, 3)))) for _ in range(chance.choice((1, 3, 20)))]
    return rows, [chance.choice((text(), row[0], row[-1][:10], "")) for row in rows]


def encoded(rows: list[tuple[str, ...]], texts: list[str]) -> tuple[Any, Any]:
    return KIND.encode(rows, TASK), KIND.encode([(text,) for text in texts], TASK)


def reached(metric: str, rows: list[tuple[str, ...]], texts: list[str]) -> float:
    return score(metrics.get(metric), *encoded(rows, texts), TASK)


@pytest.mark.parametrize(("metric", "theirs"), [("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF())])
def test_corpus_scores_are_sacrebleus(metric: str, theirs: Any) -> None:
    for seed in range(20):
        rows, texts = drawn(seed)
        by_place = [[row[place] if place < len(row) else None for row in rows] for place in range(max(map(len, rows)))]
        assert reached(metric, rows, texts) == pytest.approx(theirs.corpus_score(texts, by_place).score / 100, abs=1e-9)


@pytest.mark.parametrize(("metric", "name"), [("rouge1", "rouge1"), ("rouge2", "rouge2"), ("rougel", "rougeL")])
def test_rouge_is_that_of_rouge_score(metric: str, name: str) -> None:
    scorer = RougeScorer([name])
    for seed in range(5):
        rows, texts = drawn(seed)
        theirs = [scorer.score_multi(row, text)[name].fmeasure for row, text in zip(rows, texts, strict=True)]
        assert reached(metric, rows, texts) == pytest.approx(np.mean(theirs), abs=1e-9)


def test_a_draw_of_examples_has_the_score_of_these_examples() -> None:
    rows, texts = drawn(6)
    chosen = np.random.default_rng(0).integers(0, len(rows), len(rows))  # as a bootstrap does
    for metric in ("bleu", "chrf"):
        statistics: NDArray[Any] = metrics.get(metric).statistics(*encoded(rows, texts), TASK)
        again = reached(metric, [rows[at] for at in chosen], [texts[at] for at in chosen])
        assert float(metrics.get(metric).value(statistics[chosen].mean(axis=0))) == pytest.approx(again, abs=1e-12)
        assert len(rows) == 20 and 0 < again < 1


def test_answers_are_compared_with_the_nearest_reference() -> None:
    rows, texts = [("The red house.", "A hut"), ("in Rome",)], ["a hut!", "in old Rome"]
    assert reached("exact_match", rows, texts) == 0.5
    assert reached("span_f1", rows, texts) == pytest.approx((1 + 4 / 5) / 2)


def test_rouge_refuses_a_script_that_it_does_not_count() -> None:
    with pytest.raises(ConfigError, match="'rougel' counts words of a-z"):
        reached("rougel", [("它很好。",)], ["它"])
    assert reached("chrf", [("它很好。",)], ["它很好。"]) == 1.0


def test_a_missing_library_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu.metrics", None)
    with pytest.raises(MissingExtra, match=r"graftwork\[generation\]"):
        reached("chrf", [("a",)], ["a"])
