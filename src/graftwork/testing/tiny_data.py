"""Toy data sets that can be learnt, and a workbench over them, made in milliseconds without files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.example import Example
from graftwork.core.kind import AsksPassages, Kind
from graftwork.core.method import Scorer, Setting, Workbench
from graftwork.core.run import Recipe
from graftwork.core.task import SPLITS, Dataset, Split, Task
from graftwork.core.writing import reading_part
from graftwork.data.load import digest
from graftwork.data.splits.batch_order import bucket
from graftwork.errors import DataError
from graftwork.registry import kinds
from graftwork.targets.passages import Gold, Golds, Passage, question_of
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.recipe import resolve
from graftwork.train.seeds import derive

GOOD, BAD, FILLER = ("good", "fine", "warm"), ("bad", "sad", "cold"), ("the", "a", "was", "film", "so", "it")
Sample = Sequence[str | tuple[str, ...]]  # targets as written in a file
SAMPLES: tuple[Sample, ...] = (
    ["red", "blue|red", "", "green"],
    ["red", "blue", "green", "red"],
    ["-1.5", "0.25", "3", "0.25"],
    [("B-red", "I-red", "O"), ("O", "B-blue", "I-blue"), ("O", "O", "O"), ("B-blue", "B-red", "I-red")],
    [("1", "0", "0"), ("0", "0", "1"), ("0", "1", "0"), ("0", "0", "1")],
    [("A cat sat on the mat.", "The cat was on a mat."), "The dog ran away.", "No, it is not here."],
)


def tiny_dataset(kind: str = "classification", *, pair: bool = False, rows: int = 20) -> Dataset:
    """Return a toy task that can be learnt, for a kind of this package; validation and test have `rows` / 2 rows each.

    Texts contain good and bad words. The targets are, for classification, which of them occur (for pairs: whether both
    texts agree); multilabel, all that occur; regression, half of the number of good minus bad words; tagging, spans of
    adjacent good or bad words; generation, a sentence for each class; span, the good or the bad word, as the question
    asks; choice and ranking, the choices with good words.
    """
    part, random = kinds.get(kind), np.random.default_rng(0)
    task = (
        Task("tiny", Path(), kind=kind, text_a="text_a", text_b="text_b") if pair else Task("tiny", Path(), kind=kind)
    )
    examples = {}
    for name in SPLITS:
        places = [f"{name}/{i + 1}" for i in range(rows if name == "train" else rows // 2)]
        if isinstance(part, AsksPassages):
            examples[name] = tuple(_tiny_question(place, i, random) for i, place in enumerate(places))
            continue
        read = [(place, *_tiny_row(kind, pair, i, random)) for i, place in enumerate(places)]
        examples[name] = tuple(
            Example(place, inputs, part.settle(part.parse(text, task, place), inputs, task, place)[0])
            for place, inputs, text in read
        )
    return dataset_of(task, examples)


def dataset_of(task: Task, examples: Mapping[str, tuple[Example, ...]]) -> Dataset:
    """Return the data set of these examples (split -> examples); its task is resolved from the training targets."""
    kind = kinds.get(task.kind)
    task = kind.resolve(task, [example.target for example in examples["train"]])
    splits = {
        name: Split(name, listed, kind.encode([example.target for example in listed], task))
        for name, listed in examples.items()
    }
    return Dataset(task, splits, digest(splits))


def _tiny_row(kind: str, pair: bool, number: int, random: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Return the inputs of a row, and its target as written in a file."""

    def saying(good: int, bad: int) -> str:
        sizes = ((GOOD, good), (BAD, bad), (FILLER, 2 + number % 5))
        words = [word for listed, size in sizes for word in random.choice(listed, size).tolist()]
        return " ".join(random.permutation(words).tolist())

    once, twice = number % 2, number // 2 % 2
    if kind == "tagging":
        words = tuple(saying(1 + once, 1 + twice).split())
        tags = ["I-good" if word in GOOD else "I-bad" if word in BAD else "O" for word in words]
        return {"words": words}, tuple(tags)
    if kind in ("choice", "ranking"):
        count = 2 + number % 3
        right = {twice * number % count} | ({0} if kind == "ranking" and count > 2 and number % 4 == 3 else set())
        told = [saying(2, 0) if i in right else saying(0, 2) for i in range(count)]
        marks = tuple("1" if i in right else "0" for i in range(count))
        return {"text": saying(2, 0), "choices": tuple(told)}, marks
    good, bad, target = {
        "classification": (2 * once, 2 - 2 * once, "good" if once else "bad"),
        "multilabel": (2 * once, 2 * twice, "|".join(["good"] * once + ["bad"] * twice)),
        "generation": (2 * once, 2 - 2 * once, f"so it was a {'good' if once else 'bad'} film"),
        "regression": (number % 4, number // 4 % 3, str((number % 4 - number // 4 % 3) / 2)),
    }[kind]
    if not pair:
        return {"text": saying(good, bad)}, target
    if kind == "classification":
        target = "same" if once == twice else "different"
    return {"text_a": saying(good, bad), "text_b": saying(2 * twice, 2 - 2 * twice)}, target


def _tiny_question(place: str, number: int, random: np.random.Generator) -> Example:
    """Return a question for the good or the bad word of a text; every fourth question has no answer."""
    wanted, other = (GOOD, BAD) if number % 2 else (BAD, GOOD)
    said = random.choice(wanted) if number % 4 < 3 else random.choice(FILLER)
    words = random.permutation([said, random.choice(other), *random.choice(FILLER, 3 + number % 4)]).tolist()
    passage = Passage.of(" ".join(words) + ".")
    golds = [Gold(str(said), passage.starts[words.index(said)])] if number % 4 < 3 else []
    return question_of(place, f"which one is {wanted[0]}?", passage, Golds(golds, passage))


def tiny_bench(dataset: Dataset, backbone: Backbone | None, *, epochs: int = 2, seed: int = 0) -> Workbench:
    """Return the workbench that a run passes to `Method.fit`, with its own store of frozen passes."""
    kind = kinds.get(dataset.task.kind)
    setting = Setting(dataset.task, kind, backbone)
    recipe = resolve(Recipe(epochs=epochs, batch_size=8), len(dataset.train.examples), kind.outputs(dataset.task))
    return Workbench(
        setting=setting,
        train=dataset.train,
        validation=dataset.validation,
        seed=seed,
        recipe=recipe,
        order=lambda lengths, epoch: bucket(lengths, recipe["batch_size"], derive(seed, "order"), epoch),
        passes=FrozenStore().of(reading_part(backbone), dataset.digest) if backbone else None,
        score=Scorer(dataset.task.metrics[0], setting, dataset.validation),
    )


def sample_targets(kind: Kind, texts: Sample, task: Task) -> list[Any]:
    """Return `texts` parsed, or the first of `SAMPLES` that the kind can parse."""
    for sample in [texts] if texts else SAMPLES:
        with suppress(DataError):
            return [kind.parse(text, task, "sample.csv:2") for text in sample]
    raise AssertionError("the kind parses none of the samples: give `texts`")


@torch.no_grad()
def pooled(backbone: Backbone, inputs: Inputs) -> Tensor:
    """Return the (B, D) pooled features of a full forward pass."""
    return backbone.features(inputs).pooled
