"""The contract of a kind whose examples are questions about passages (`AsksPassages`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graftwork.core.backbone import Features
from graftwork.core.example import Example
from graftwork.core.kind import AsksPassages, ChoosesThresholds, FindsTexts, Kind
from graftwork.core.metric import score
from graftwork.core.ragged import Ragged, add_to_first_rows
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.registry import metrics
from graftwork.targets.passages import Gold, Golds, Passage, question_of
from graftwork.testing.loss_contract import check_finite_loss, check_parts
from graftwork.testing.require import require

TEXT = "Red, green (or blue) it was."
ANSWERS = ("green (or blue", "Red", "", "was", "it was")


def sample_questions() -> list[Golds]:
    """Return the targets of five questions on one text; one of them has no answer."""
    passage = Passage.of(TEXT)
    return [Golds([Gold(text, TEXT.index(text))] if text else [], passage) for text in ANSWERS]


def check_asking(kind: Kind, name: str) -> None:
    """Check what the kind registered as `name`, which is `AsksPassages`, must do. Raises `AssertionError`."""
    assert isinstance(kind, AsksPassages)
    targets, blank = sample_questions(), Task("tiny", Path(), kind=name)
    task = kind.resolve(blank, targets)
    require(
        bool(task.metrics) and task.settings.unanswerable,
        "resolve names no metric, or misses the question without answer",
    )
    require(
        not kind.resolve(blank, targets[:2]).settings.unanswerable, "all have answers, and some are said to have none"
    )
    require(kind.resolve(task, targets) == task, "resolving a resolved task changes it")
    require(len(kind.strata(targets)) == len(targets), "strata is not a key per target")
    encoded = kind.encode(targets, task)
    assert isinstance(encoded, Ragged)
    sure = Ragged(20.0 * (2.0 * encoded.flat[:, :2] - 1), encoded.counts)
    found = kind.predictions(sure, task)
    assert isinstance(found, Ragged)
    require(bool((found.flat == encoded.flat).all()), "predictions of certain logits are not targets")
    examples = [question_of(f"train/{row}", "what?", golds.passage, golds) for row, golds in enumerate(targets, 1)]
    for answer, golds in zip(kind.decode(sure, task, examples), targets, strict=True):
        _check_answer(answer, golds)
    try:
        kind.parse("red", task, "sample.csv:7")
    except DataError as error:
        require("red" in str(error) and "sample.csv:7" in str(error), f"does not say what or where: {error}")
    else:
        raise AssertionError("an answer without its passage is parsed")
    _check_head(kind, task)
    _check_loss(kind, sure, encoded)
    check_parts(kind, encoded, kind.outputs(task))
    _check_shift(kind, sure, encoded, task)
    if isinstance(kind, FindsTexts):
        _check_texts(kind, kind.predictions, encoded, examples, task)


def _check_answer(answer: Mapping[str, Any], golds: Golds) -> None:
    require(json.loads(json.dumps(answer, allow_nan=False)) == answer, f"decode is not plain JSON: {answer}")
    wanted = golds[0].text if golds else ""
    require(next(iter(answer.values())) == answer["answer"] == wanted, f"{answer} decodes {wanted!r}")
    for one in (answer, *answer["n_best"]):
        place = one["start"], one["end"]
        require(one["answer"] == (golds.passage.text[slice(*place)] if one["answer"] else ""), f"{one} is elsewhere")
        require(0 <= one["probability"] <= 1, f"not a probability: {one}")
    listed = [one["answer"] for one in answer["n_best"]]
    require(listed[0] == wanted and listed.count("") == 1, f"the n best are {listed}")


def _check_head(kind: Kind, task: Task) -> None:
    features = Features(torch.randn(3, 5, 8), torch.ones(3, 5, dtype=torch.bool), torch.randn(7, 8))
    shape = tuple(kind.build_head(task, 8)(features).shape)
    require(shape == (7, kind.outputs(task)), f"the head gives {shape} of 7 words")


def _check_loss(kind: Kind, sure: Ragged, encoded: Ragged) -> None:
    """Check the loss: finite on extreme logits, lower when right, and the mean over examples."""
    targets, right = torch.from_numpy(encoded.flat), torch.from_numpy(sure.flat).float()
    check_finite_loss(kind, right, targets)
    random = torch.randn(right.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    owners = torch.from_numpy(encoded.owners)
    alone = [kind.loss(random[owners == number], targets[owners == number]) for number in range(len(encoded))]
    mean = torch.stack(alone).mean()
    require(bool(torch.isclose(kind.loss(random, targets), mean)), "the loss is not the mean over examples")


def _check_shift(kind: Kind, sure: Ragged, encoded: Ragged, task: Task) -> None:
    """Check that the threshold added to the no-answer rows corrects logits biased for or against "no answer"."""
    assert isinstance(kind, ChoosesThresholds), "questions may have no answer, and no threshold is chosen for it"
    for lean in (30.0, -30.0):
        leaning = Ragged(sure.flat.copy(), sure.counts)
        leaning.flat[leaning.starts] += lean
        chosen = kind.shift(leaning, encoded, task)
        assert chosen is not None, "no threshold where questions may have no answer"
        mended = add_to_first_rows(leaning, chosen)
        reached = score(metrics.get(task.metrics[0]), encoded, kind.predictions(mended, task), task)
        require(bool(np.isclose(reached, 1)), f"with its threshold, leaning answers score {reached}")


def _check_texts(
    kind: FindsTexts, predictions: Callable[..., Any], encoded: Ragged, examples: Sequence[Example], task: Task
) -> None:
    """Check that the text of a gold answer is located at its span, and that the likeliest span is predicted."""
    texts = [kind.as_text(example.target) for example in examples]
    spans = [kind.place_of(example.target) for example in examples]
    found_at = kind.found(texts, examples)
    require(found_at == [span and (span, 1.0) for span in spans], f"{texts} are found at {found_at}")
    require(kind.may_be_silent(task), "a question has no answer, and none may")
    silent = [-0.1 if span is None else -9.0 for span in spans]
    logits = kind.likely(spans, [-0.3] * len(spans), silent, examples)
    found = predictions(logits, task)
    require(bool((found.flat == encoded.flat).all()), "what is likely is not predicted")
    require(kind.answered(logits, examples, task) == texts, "other texts are predicted than were likely")
