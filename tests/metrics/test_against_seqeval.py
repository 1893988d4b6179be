"""The metrics of spans: cases counted by hand, the rules of the CoNLL script written out, and seqeval."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from seqeval.metrics import f1_score
from seqeval.scheme import IOB2

from graftwork.core.metric import score
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import kinds, metrics

TAGS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
KIND = kinds.get("tagging")
TASK = Task("t", Path(), kind="tagging", labels=TAGS)

Sentences = list[list[str]]


def reached(metric: str, true: Sentences, predicted: Sentences) -> float:
    return score(metrics.get(metric), KIND.encode(true, TASK), KIND.encode(predicted, TASK), TASK)


def draw(seed: int, *, sound: bool) -> tuple[Sentences, Sentences]:
    """Sentences, and predictions that change a third of the tags."""
    random = np.random.default_rng(seed)
    true = [random.choice(TAGS, size).tolist() for size in random.integers(1, 12, 30)]
    if sound:
        true = [list(KIND.settle(tuple(tags), {"words": tags}, TASK, "")[0]) for tags in true]
    changed = [[str(random.choice(TAGS)) if random.random() < 0.3 else tag for tag in tags] for tags in true]
    return true, changed


@pytest.mark.parametrize(
    ("true", "predicted", "strict", "script"),
    [
        ("B-PER I-PER O B-LOC", "B-PER I-PER O B-LOC", 1, 1),
        ("B-PER I-PER O B-LOC", "B-PER O O B-LOC", 1 / 2, 1 / 2),  # a border is wrong: 1 of 2 and 1 of 2
        ("B-PER I-PER O B-LOC", "B-PER I-PER O B-PER", 1 / 2, 1 / 2),  # a type is wrong
        ("B-PER I-PER O B-LOC", "I-PER I-PER O B-LOC", 2 / 3, 1),  # strictly 1 of 1 found, 1 of 2 there
        ("O O O O", "O B-PER O O", 0, 0),
        ("O O O O", "O O O O", 0, 0),  # undefined, counted as 0
        ("B-PER B-PER O O", "B-PER I-PER O O", 0, 0),
        ("B-PER B-PER O O", "B-PER O B-LOC B-LOC", 2 / 5, 2 / 5),
    ],
)
def test_by_hand(true: str, predicted: str, strict: float, script: float) -> None:
    sentences = [true.split()], [predicted.split()]
    assert reached("entity_f1", *sentences) == pytest.approx(strict)
    assert reached("conll_f1", *sentences) == pytest.approx(script)


def begins(before: str, tag: str) -> bool:
    """`startOfChunk` of conlleval for B, I and O."""
    return tag != "O" and (tag[0] == "B" or before == "O" or before[2:] != tag[2:])


def ends(before: str, tag: str) -> bool:
    """`endOfChunk` of conlleval for B, I and O."""
    return before != "O" and (tag in ("O",) or tag[0] == "B" or before[2:] != tag[2:])


def by_the_script(true: Sentences, predicted: Sentences) -> float:
    """FB1 as conlleval counts it, word by word, with a word outside after every sentence."""
    there = found = right = 0
    in_right = False
    last, last_guess = "O", "O"
    for tags, guesses in zip(true, predicted, strict=True):
        for tag, guess in zip([*tags, "O"], [*guesses, "O"], strict=True):
            if in_right:
                if ends(last, tag) and ends(last_guess, guess) and last[2:] == last_guess[2:]:
                    in_right, right = False, right + 1
                elif ends(last, tag) != ends(last_guess, guess) or tag[2:] != guess[2:]:
                    in_right = False
            if begins(last, tag) and begins(last_guess, guess) and tag[2:] == guess[2:]:
                in_right = True
            there, found = there + begins(last, tag), found + begins(last_guess, guess)
            last, last_guess = tag, guess
    return 2 * right / (there + found)


@pytest.mark.parametrize("sound", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_script(seed: int, sound: bool) -> None:
    true, predicted = draw(seed, sound=sound)
    expected = by_the_script(true, predicted)
    assert 0.1 < expected < 0.9
    assert reached("conll_f1", true, predicted) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("sound", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_seqeval(seed: int, sound: bool) -> None:
    true, predicted = draw(seed, sound=sound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strict = f1_score(true, predicted, mode="strict", scheme=IOB2)
        lenient = f1_score(true, predicted)
    assert reached("entity_f1", true, predicted) == pytest.approx(strict, abs=1e-12)
    assert reached("conll_f1", true, predicted) == pytest.approx(lenient, abs=1e-12)


def test_accuracy_is_over_all_words() -> None:
    true, predicted = [["O", "O", "O"], ["B-PER"]], [["O", "O", "B-PER"], ["O"]]
    assert reached("accuracy", true, predicted) == pytest.approx(2 / 4)
    encoded = KIND.encode(true, TASK), KIND.encode(predicted, TASK)
    assert metrics.get("accuracy").statistics(*encoded, TASK).tolist() == [[2, 3], [0, 1]]


@pytest.mark.parametrize("metric", ["macro_f1", "f1", "matthews", "pearson", "spearman"])
def test_metrics_of_whole_examples_refuse_words(metric: str) -> None:
    with pytest.raises(ConfigError, match=f"{metric}.*'tagging'"):
        reached(metric, [["O"]], [["O"]])


@pytest.mark.parametrize("metric", ["entity_f1", "conll_f1"])
def test_metrics_of_spans_refuse_what_marks_none(metric: str) -> None:
    plain = KIND.resolve(Task("t", Path(), kind="tagging"), [("NOUN", "VERB")])
    encoded = KIND.encode([("NOUN", "VERB")], plain)
    with pytest.raises(ConfigError, match="scores spans"):
        score(metrics.get(metric), encoded, encoded, plain)
    with pytest.raises(ConfigError, match="'classification'"):
        score(metrics.get(metric), np.array([0]), np.array([0]), Task("t", Path(), labels=("a", "b")))
