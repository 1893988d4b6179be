"""Perceptron tagger: an averaged perceptron over words, affixes, shapes, neighbours and the tags before (Collins 2002,
doi:10.3115/1118693.1118694). What a tagger was before pretrained networks, in seconds and without a backbone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.checkpoint import Checkpoint
from graftwork.core.example import Example
from graftwork.core.kind import tags_words
from graftwork.core.method import AS_IT_COMES, Entries, Logits, Setting, Workbench
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.registry import kinds, methods
from graftwork.train.seeds import derive

AFFIX = 4  # letters at most of the beginnings and ends that are features
SEEN = 2  # times in train that a feature must occur


def shape(word: str) -> str:
    """`McDonald's-97` is `AaAa'a-0`: letters, capitals and digits, each run once."""
    signs = ("A" if char.isupper() else "a" if char.isalpha() else "0" if char.isdigit() else char for char in word)
    return "".join(sign for sign, _ in groupby(signs))


def features(words: Sequence[str]) -> Iterator[list[str]]:
    """The features of every word that do not depend on tags, each with the name of its sort before it."""
    low = ["", "", *(word.lower() for word in words), "", ""]
    forms = ["", *map(shape, words), ""]
    for place, word in enumerate(words):
        two, one, own, next_one, next_two = low[place : place + 5]
        found = [
            "bias",
            f"w={word}",
            f"l={own}",
            f"s={forms[place + 1]}",
            f"s-={forms[place]}",
            f"s+={forms[place + 2]}",
        ]
        found += [f"-1={one}", f"-2={two}", f"+1={next_one}", f"+2={next_two}"]
        found += [f"-1,0={one} {own}", f"0,+1={own} {next_one}", f"-1e={one[-3:]}", f"+1e={next_one[-3:]}"]
        sizes = range(1, min(AFFIX, len(own)) + 1)
        yield found + [f"b={own[:size]}" for size in sizes] + [f"e={own[-size:]}" for size in sizes]


@dataclass
class Tagger:
    """Tags from left to right, each the best one given those before it."""

    weights: NDArray[np.float32]  # (F, C) of features
    after: NDArray[np.float32]  # (C + 1, C) by the tag before, C for none
    after_two: NDArray[np.float32]  # (C + 1, C + 1, C) by the two tags before
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.facts["vocabulary"])}

    @property
    def trained_parameters(self) -> int:
        """Weights that are not 0."""
        return sum(int(np.count_nonzero(part)) for part in (self.weights, self.after, self.after_two))

    def numbers(self, examples: Sequence[Example]) -> list[list[NDArray[np.int64]]]:
        """Of every word of every example the features that are known."""
        known = self._numbers
        return [
            [
                np.array([known[name] for name in names if name in known], dtype=np.int64)
                for names in features(example.inputs["words"])
            ]
            for example in examples
        ]

    def logits(self, examples: Sequence[Example]) -> Logits:
        """(W, C) scores; they order the tags and are no calibrated probabilities."""
        return self.tagged(self.numbers(examples))

    def tagged(self, numbers: Sequence[Sequence[NDArray[np.int64]]]) -> Ragged:
        """(W, C) scores of words given by their features."""
        none = self.weights.shape[1]
        rows = []
        for words in numbers:
            two = one = none
            for word in words:
                scores = self.weights[word].sum(axis=0) + self.after[one] + self.after_two[two, one]
                two, one = one, int(scores.argmax())
                rows.append(scores)
        return Ragged(np.stack(rows).astype(np.float64), np.array([len(words) for words in numbers], dtype=np.int64))

    def delta(self) -> dict[str, Tensor]:
        """The weights; the names of the features are in the facts."""
        parts = {"weights": self.weights, "after": self.after, "after_two": self.after_two}
        return {name: torch.from_numpy(part) for name, part in parts.items()}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """One addition per feature and tag."""
        known = sum(len(word) + 2 for words in self.numbers(examples) for word in words)
        return float(known * self.weights.shape[1]), "model"


class _Averaged:
    """Weights on their way: their present value, and what their average over all words so far takes off it."""

    def __init__(self, tagger: Tagger):
        self.now = tagger
        parts = (tagger.weights, tagger.after, tagger.after_two)
        self.late = tuple(np.zeros(part.shape, dtype=np.float64) for part in parts)  # updates by when they came
        self.seen = 1

    def learn(self, words: Sequence[NDArray[np.int64]], tags: Sequence[int]) -> int:
        """Tag one example and correct every mistake; how many there were."""
        now, wrong = self.now, 0
        two = one = now.weights.shape[1]
        for word, tag in zip(words, tags, strict=True):
            scores = now.weights[word].sum(axis=0) + now.after[one] + now.after_two[two, one]
            guess = int(scores.argmax())
            if guess != tag:
                wrong += 1
                for answer, step in ((tag, 1.0), (guess, -1.0)):
                    for part, late, where in zip(
                        (now.weights, now.after, now.after_two), self.late, (word, one, (two, one)), strict=True
                    ):
                        place = (*where, answer) if isinstance(where, tuple) else (where, answer)
                        part[place] += step
                        late[place] += step * self.seen
            self.seen += 1
            two, one = one, guess
        return wrong

    def checkpoint(self, best: Tagger, random: np.random.Generator, scores: list[float]) -> Checkpoint:
        """After a pass: the weights, those of the best pass, and what the next one draws from."""
        tensors = {f"now.{name}": tensor for name, tensor in self.now.delta().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in best.delta().items()}
        tensors |= {f"late.{number}": torch.from_numpy(part) for number, part in enumerate(self.late)}
        return Checkpoint({"seen": self.seen, "scores": scores, "random": random.bit_generator.state}, tensors)

    def restore(self, found: Checkpoint, random: np.random.Generator, scores: list[float]) -> Tagger:
        """Go on from `found`; the tagger of the best pass."""
        kept = {name: tensor.numpy().copy() for name, tensor in found.tensors.items()}
        now, best = (
            Tagger(kept[f"{which}.weights"], kept[f"{which}.after"], kept[f"{which}.after_two"], self.now.facts)
            for which in ("now", "best")
        )
        self.now, self.late = now, tuple(kept[f"late.{number}"] for number in range(len(self.late)))
        self.seen = found.numbers["seen"]
        scores += found.numbers["scores"]
        random.bit_generator.state = found.numbers["random"]
        return best

    def average(self) -> Tagger:
        """The mean of the weights over all words so far."""
        now = self.now
        parts = zip((now.weights, now.after, now.after_two), self.late, strict=True)
        weights, after, after_two = ((part - late / self.seen).astype(np.float32) for part, late in parts)
        return Tagger(weights, after, after_two, now.facts)


@methods.register("perceptron_tagger")
@dataclass(frozen=True)
class PerceptronTagger:
    """Passes over train until validation no longer rises, at most `epochs`."""

    epochs: int = 10  # passes over train, at most

    VERSION: ClassVar[int] = 2
    uses_backbone: ClassVar[bool] = False
    LADDER: ClassVar[Entries] = AS_IT_COMES
    CURVE: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Fits tasks about words."""
        if not tags_words(kinds.get(task.kind)):
            return "it tags words, and this task has no tags"
        return "" if self.epochs > 0 else f"epochs must be above 0, not {self.epochs}"

    def fit(self, bench: Workbench) -> Tagger:
        """Correct its own mistakes, in an order that the seed draws; the best pass on validation is kept."""
        outputs = bench.setting.kind.outputs(bench.setting.task)
        averaged = _Averaged(_blank(bench.train.examples, outputs))
        train, checked = (averaged.now.numbers(split.examples) for split in (bench.train, bench.validation))
        tags = [rows.tolist() for rows in bench.train.targets]
        random = np.random.default_rng(derive(bench.seed_of("order"), "order"))
        scores: list[float] = []
        best = averaged.now
        found = bench.keeper.found()
        if found is not None:
            best = averaged.restore(found, random, scores)
        with bench.keeper.steps() as keep:
            while len(scores) < self.epochs and _still_rises(scores):
                wrong = sum(averaged.learn(train[row], tags[row]) for row in random.permutation(len(train)).tolist())
                tagger, epoch = averaged.average(), len(scores) + 1
                scores.append(bench.score(tagger.tagged(checked)))
                bench.log({"epoch": epoch, "validation": scores[-1], "mistakes": wrong})
                bench.progress(epoch / self.epochs, f"pass {epoch}/{self.epochs}")
                best = tagger if scores[-1] >= max(scores) else best
                keep(partial(averaged.checkpoint, best, random, scores))
        work = sum(len(word) + 2 for words in train for word in words) * outputs
        bench.tally.add_model(float(len(scores) * work))
        return _pruned(best, {"passes": len(scores), "validation_by_pass": scores})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Tagger:
        """From its weights and the names of its features."""
        return Tagger(delta["weights"].numpy(), delta["after"].numpy(), delta["after_two"].numpy(), facts)


def _still_rises(scores: Sequence[float]) -> bool:
    """Whether fewer than two passes in a row have ended below the best, which the last of equals is."""
    return max(scores, default=0.0) in scores[-2:] or not scores


def _blank(examples: Sequence[Example], outputs: int) -> Tagger:
    """Weights of 0 for every feature that train has twice or more."""
    counts = Counter(name for example in examples for names in features(example.inputs["words"]) for name in names)
    vocabulary = sorted(name for name, count in counts.items() if count >= SEEN)
    return Tagger(
        weights=np.zeros((len(vocabulary), outputs), dtype=np.float32),
        after=np.zeros((outputs + 1, outputs), dtype=np.float32),
        after_two=np.zeros((outputs + 1, outputs + 1, outputs), dtype=np.float32),
        facts={"vocabulary": vocabulary},
    )


def _pruned(tagger: Tagger, facts: Mapping[str, Any]) -> Tagger:
    """Without the features that weigh nothing: the same answers."""
    weighs = np.flatnonzero(np.abs(tagger.weights).sum(axis=1))
    vocabulary = [tagger.facts["vocabulary"][feature] for feature in weighs.tolist()]
    found = {"vocabulary": vocabulary, "features": len(vocabulary)} | dict(facts)
    return Tagger(tagger.weights[weighs], tagger.after, tagger.after_two, found)
