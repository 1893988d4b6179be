"""The contract of a kind: its settings, targets, predictions, head and losses."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.core.backbone import Features
from graftwork.core.example import Example
from graftwork.core.kind import AsksPassages, Kind, NamesMistakes, OfChoices, OwnOutputs
from graftwork.core.kind_settings import kind_settings, settings_of
from graftwork.core.ragged import Numbers, Ragged, flat, repeated
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.registry import kinds
from graftwork.testing.loss_contract import check_finite_loss, check_parts, check_teaching
from graftwork.testing.passage_contract import check_asking
from graftwork.testing.require import require
from graftwork.testing.tiny_data import Sample, sample_targets

FOREIGN = "violet"  # neither a label of the samples nor a number


def check_kind(name: str, texts: Sample = ()) -> None:
    """Check what every kind must do. `texts` are targets as in a file; default: the first of `SAMPLES` that it parses.

    Raises `AssertionError`.
    """
    kind, blank = kinds.get(name), Task("tiny", Path(), kind=name)
    _check_settings(kind, name)
    if isinstance(kind, AsksPassages):
        check_asking(kind, name)
        return
    targets = sample_targets(kind, texts, blank)
    task = kind.resolve(blank, targets)
    require(bool(task.metrics), "resolve names no metric")
    require(kind.resolve(task, targets) == task, "resolving a resolved task changes it")
    require(len(kind.strata(targets)) == len(targets), "strata is not a key per target")
    encoded = kind.encode(targets, task)
    if isinstance(kind, OwnOutputs):
        _check_own_outputs(kind, encoded, task)
        return
    logits, outputs = certain(encoded, kind.outputs(task)), kind.outputs(task)
    found = kind.predictions(logits, task)
    given, wanted = flat(found), flat(encoded)
    if isinstance(kind, OfChoices):  # `given` are scores, above 0 for the right choices; `wanted` are marks
        given, wanted = given[:, 0] > 0, wanted[:, 0]
    require(bool(np.allclose(given, wanted)), "predictions of certain logits are not targets")
    examples = [Example(f"train/{row}", _inputs(kind, target)) for row, target in enumerate(targets, 1)]
    answers = kind.decode(logits, task, examples)
    require(_is_json(answers), f"decode is not plain JSON: {answers[0]}")
    for answer, target, text, example in zip(answers, targets, encoded, examples, strict=True):
        require(bool(kind.sentence(answer).strip()), f"no sentence tells {answer}")
        require(kind.settle(target, example.inputs, task, "sample.csv:2") == (target, 0), f"{target} is not settled")
        if isinstance(kind, OfChoices):
            _check_choices(answer, target, example.inputs["choices"])
        elif kind.per_word:
            _check_words(answer, target, example.inputs["words"])
        else:
            _check_answer(answer, target, one=np.ndim(text) == 0)
        if isinstance(kind, NamesMistakes):
            _check_outcomes(kind, replace(example, target=target), answer, task)
    _check_foreign(kind, task)
    _check_head(kind, task, outputs)
    _check_loss(kind, task, encoded, outputs, examples)
    check_parts(kind, encoded, outputs)


def _check_outcomes(kind: NamesMistakes, example: Example, answer: Mapping[str, Any], task: Task) -> None:
    """Check that a correct prediction has no wrong outcome and is displayed like the target."""
    expected = kind.expected(example, task)
    outcomes = kind.outcomes(expected, answer, task)
    require(all(outcome.right for outcome in outcomes), f"{answer} is right, and its outcomes are {outcomes}")
    named = {name for outcome in outcomes for name in (outcome.true, outcome.description)}
    require(named <= {*kind.outcome_names(task)}, f"outcome_names lacks some of {named}")
    require(kind.brief(expected) == kind.brief(answer) != "", f"{kind.brief(answer)!r} is not {kind.brief(expected)!r}")
    require(bool(kind.right_means), "right_means is empty")


def _check_settings(kind: Kind, name: str) -> None:
    """Check that the settings can be flags and keys of task files: with descriptions, and without name conflicts."""
    require(is_dataclass(kind.settings), "the settings are no dataclass")
    require(kind.settings() == kind.settings(), "the settings have no defaults")
    for key, setting in settings_of(name).items():
        require(bool(setting.meaning), f"no comment says what the setting {key} means")
        require(key not in {item.name for item in fields(Task)}, f"tasks of every kind have a setting {key}")
        same = kind_settings()[key]
        require((setting.type, setting.choices) == (same.type, same.choices), f"another kind has a setting {key}")


def _check_own_outputs(kind: Kind, encoded: Numbers, task: Task) -> None:
    """Check that a constant output survives a round trip through JSON, and can be decoded and displayed."""
    assert isinstance(kind, OwnOutputs)
    constant = kind.constant(encoded, task)
    again = kind.from_lists(json.loads(json.dumps(constant.tolist(), allow_nan=False)))
    require(kind.difference(again, constant) == 0, f"stored and read, {constant!r} is {again!r}")
    require(len(kind.predictions(again, task)) == 1, "predictions of one output are not one")
    (answer,) = kind.decode(again, task, [Example("train/1", {"text": "a text"})])
    require(_is_json(answer), f"decode is not plain JSON: {answer}")
    require(bool(kind.sentence(answer).strip()), f"no sentence tells {answer}")


def certain(encoded: Numbers, outputs: int) -> Numbers:
    """Map (N,) classes, (N, C) labels or (N,) numbers to logits (N, C) that predict them with certainty.

    Likewise per word or choice.
    """
    if isinstance(encoded, Ragged):
        rows = encoded.flat[:, :1] if encoded.flat.ndim == 2 else encoded.flat  # column 0: the marks of choices
        return Ragged(flat(certain(rows, outputs)), encoded.counts)
    if encoded.ndim == 2:
        return np.asarray(20.0 * (2.0 * encoded - 1.0))
    if np.issubdtype(encoded.dtype, np.integer):
        return np.asarray(20.0 * np.eye(outputs)[encoded])
    return np.asarray(encoded, dtype=np.float64)[:, None]


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False


def _inputs(kind: Kind, target: Any) -> dict[str, Any]:
    """Return inputs for a target: one word per tag, one choice per mark, or any text."""
    if isinstance(kind, OfChoices):
        return {"text": "a text", "choices": tuple("abcdefgh"[: len(target)])}
    return {"words": tuple("abcdefgh"[: len(target)])} if kind.per_word else {"text": "a text"}


def _check_choices(answer: Mapping[str, Any], target: tuple[int, ...], choices: Sequence[str]) -> None:
    """Check the right choice and the probabilities of all choices, or the ranking with the right choices first."""
    listed = answer.get("ranking", [answer])
    places = [item["index"] for item in listed]
    require([item["choice"] for item in listed] == [choices[place] for place in places], f"{answer} names others")
    first = sorted(places[: sum(target)])
    require(first == [place for place, mark in enumerate(target) if mark], f"{answer} decodes {target!r}")
    if "ranking" in answer:
        require(sorted(places) == list(range(len(choices))), f"{answer} is not of {len(choices)} choices")
        scores = [item["score"] for item in listed]
        require(scores == sorted(scores, reverse=True), f"{answer} is not in order")
    else:
        require(math.isclose(sum(answer["probabilities"]), 1, abs_tol=1e-9), f"probabilities do not sum to 1: {answer}")


def _check_words(answer: Mapping[str, Any], target: tuple[str, ...], words: Sequence[str]) -> None:
    """Check the tags, or the spans that they mark; the words here are single letters separated by spaces."""
    if "tags" in answer:
        require(tuple(answer["tags"]) == target, f"{answer} decodes {target!r}")
        require(all(0 <= chance <= 1 for chance in answer["probabilities"]), f"not probabilities: {answer}")
        return
    tags = ["O"] * len(words)
    for span in answer["spans"]:
        covered = range(span["start"] // 2, (span["end"] + 1) // 2)
        require(span["text"] == " ".join(words[place] for place in covered), f"{span} is of another text")
        require(0 <= span["probability"] <= 1, f"not a probability: {span}")
        for place in covered:
            tags[place] = ("B-" if place == covered[0] else "I-") + span["label"]
    require(tuple(tags) == target, f"{answer} decodes {target!r}")


def _check_answer(answer: Mapping[str, Any], target: Any, one: bool) -> None:
    if isinstance(target, float):
        require(math.isclose(answer["value"], target, rel_tol=1e-5, abs_tol=1e-6), f"{answer} decodes {target!r}")
        return
    label = answer["label"]
    require((tuple(sorted(label)) if isinstance(label, list) else label) == target, f"{answer} decodes {target!r}")
    chances = answer["probabilities"].values()
    require(all(0 <= chance <= 1 for chance in chances), f"not probabilities: {answer}")
    require(not one or math.isclose(sum(chances), 1, abs_tol=1e-9), f"probabilities do not sum to 1: {answer}")


def _check_foreign(kind: Kind, task: Task) -> None:
    """Check that a label unknown to the task is refused with a message that names it, and its line in the file."""
    text = (FOREIGN,) if kind.per_word else FOREIGN
    try:
        kind.parse(text, task, "sample.csv:7")
    except DataError as error:
        require(FOREIGN in str(error) and "sample.csv:7" in str(error), f"does not say what or where: {error}")
    else:
        raise AssertionError(f"the kind parses {FOREIGN!r}, which the task does not have")
    if not task.labels:
        return
    foreign = kind.parse(text, replace(task, labels=()), "")
    try:
        kind.encode([foreign], task)
    except DataError as error:
        require(FOREIGN in str(error), f"does not name the label: {error}")
    else:
        raise AssertionError(f"the kind encodes {FOREIGN!r}, which the task does not have")


def _check_head(kind: Kind, task: Task, outputs: int) -> None:
    """Check the shape of a head's output for pooled features (B, P) and token features (B, T, P)."""
    features = Features(torch.randn(3, 5, 8), torch.ones(3, 5, dtype=torch.bool), torch.randn(3, 8))
    shape = tuple(kind.build_head(task, 8)(features).shape)
    require(shape == (3, outputs), f"the head gives {shape}, not {(3, outputs)}")


def _check_loss(kind: Kind, task: Task, encoded: Numbers, outputs: int, examples: Sequence[Example]) -> None:
    """Check the loss: finite on extreme logits, lower when right, and among constant logits least at `constant`."""
    targets, right = torch.from_numpy(flat(encoded)), torch.from_numpy(flat(certain(encoded, outputs))).float()
    check_finite_loss(kind, right, targets)
    check_teaching(kind, right)
    exact = targets.double() if targets.is_floating_point() else targets
    blind = kind.constant(encoded, task)

    def loss_of(answer: NDArray[np.float64]) -> float:
        return float(kind.loss(torch.from_numpy(flat(repeated(answer, examples))), exact))

    for place in np.ndindex(blind.shape):
        for shift in (0.1, -0.1):
            other = blind.copy()
            other[place] += shift
            require(loss_of(blind) <= loss_of(other), "a blind answer has a lower loss than `constant`")
