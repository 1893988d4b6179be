"""Perceptron tagger: an averaged perceptron over words, affixes, shapes, neighbours and previous tags (Collins 2002,
doi:10.3115/1118693.1118694). A classic tagger without a backbone that trains in seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.checkpoint import Checkpoint
from graftwork.core.example import Example
from graftwork.core.kind import tags_words
from graftwork.core.method import Baseline, Logits, Setting, Workbench
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.registry import kinds, methods
from graftwork.train.seeds import derive

Pair = tuple[int, int]  # the two previous tags, the earlier one first; C for none

AFFIX = 4  # letters of the longest prefix and suffix features
SEEN = 2  # occurrences in train that a feature needs


def shape(word: str) -> str:
    """Return the shape of a word: `McDonald's-97` is `AaAa'a-0`, with repeated signs collapsed."""
    signs = ("A" if char.isupper() else "a" if char.isalpha() else "0" if char.isdigit() else char for char in word)
    return "".join(sign for sign, _ in groupby(signs))


def features(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the features of every word that do not depend on tags, each prefixed with its type."""
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
class TrainedPerceptron:
    """A greedy tagger from left to right: each tag is the best one given the previous tags."""

    weights: NDArray[np.float32]  # (F, C) weights of features
    after: NDArray[np.float32]  # (C + 1, C) weights by the previous tag, C for none
    after_two: dict[Pair, NDArray[np.float32]]  # (C,) by the two previous tags, for pairs that preceded a mistake
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.facts["vocabulary"])}

    @property
    def trained_parameters(self) -> int:
        """The number of non-zero weights."""
        return sum(int(np.count_nonzero(part)) for part in (self.weights, self.after, *self.after_two.values()))

    def scores(self, word: NDArray[np.int64], two: int, one: int) -> NDArray[np.float32]:
        """Return the scores (C,) of a word, given its features and the previous tags `two` and `one`."""
        found: NDArray[np.float32] = self.weights[word].sum(axis=0) + self.after[one]
        pair = self.after_two.get((two, one))
        return found if pair is None else found + pair

    def numbers(self, examples: Sequence[Example]) -> list[list[NDArray[np.int64]]]:
        """Return the indices of the known features of every word of every example."""
        known = self._numbers
        return [
            [
                np.array([known[name] for name in names if name in known], dtype=np.int64)
                for names in features(example.inputs["words"])
            ]
            for example in examples
        ]

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the scores (W, C); they rank the tags but are not calibrated."""
        return self.tagged(self.numbers(examples))

    def tagged(self, numbers: Sequence[Sequence[NDArray[np.int64]]]) -> Ragged:
        """Return the scores (W, C) of words, given their features."""
        none = self.weights.shape[1]
        rows = []
        for words in numbers:
            two = one = none
            for word in words:
                scores = self.scores(word, two, one)
                two, one = one, int(scores.argmax())
                rows.append(scores)
        return Ragged(np.stack(rows).astype(np.float64), np.array([len(words) for words in numbers], dtype=np.int64))

    def delta(self) -> dict[str, Tensor]:
        """Return the weights; the names of the features are in the facts."""
        pairs, rows = _listed(self.after_two, self.weights.shape[1])
        parts = {"weights": self.weights, "after": self.after, "pairs": pairs, "after_two": rows}
        return {name: torch.from_numpy(part) for name, part in parts.items()}

    @classmethod
    def of(cls, delta: Mapping[str, Tensor], facts: Mapping[str, Any]) -> TrainedPerceptron:
        """Rebuild the tagger from `delta`; older deltas hold all possible pairs of tags, (C + 1, C + 1, C)."""
        weights, after, rows = (delta[name].numpy() for name in ("weights", "after", "after_two"))
        pairs = np.argwhere(rows.any(axis=2)) if rows.ndim == 3 else delta["pairs"].numpy()
        listed = rows[tuple(pairs.T)] if rows.ndim == 3 else rows
        return cls(weights, after, _by_pair(pairs, listed), facts)

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count one addition per feature and tag."""
        known = sum(len(word) + 2 for words in self.numbers(examples) for word in words)
        return float(known * self.weights.shape[1]), "model"


class _Late(NamedTuple):
    """For every weight, the sum of its updates, each multiplied by the index of its word."""

    weights: NDArray[np.float64]
    after: NDArray[np.float64]
    after_two: dict[Pair, NDArray[np.float64]]  # the same pairs as in the weights


class _AveragedWeights:
    """The weights in training: their present values, and the sums that turn these into averages over all words."""

    def __init__(self, tagger: TrainedPerceptron):
        self.now = tagger
        self.late = _Late(np.zeros(tagger.weights.shape), np.zeros(tagger.after.shape), {})
        self.seen = 1

    def learn(self, words: Sequence[NDArray[np.int64]], tags: Sequence[int]) -> int:
        """Tag one example and correct every mistake; return the number of mistakes."""
        now, wrong = self.now, 0
        two = one = now.weights.shape[1]
        for word, tag in zip(words, tags, strict=True):
            guess = int(now.scores(word, two, one).argmax())
            if guess != tag:
                wrong += 1
                for answer, step in ((tag, 1.0), (guess, -1.0)):
                    for part, late, where in (
                        (now.weights, self.late.weights, word),
                        (now.after, self.late.after, one),
                        (*self._rows(two, one), ...),
                    ):
                        part[where, answer] += step
                        late[where, answer] += step * self.seen
            self.seen += 1
            two, one = one, guess
        return wrong

    def _rows(self, two: int, one: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the weights (C,) after two tags and their update sums (C,), created at the first mistake."""
        rows, late, pair = self.now.after_two, self.late.after_two, (two, one)
        if pair not in rows:
            outputs = self.now.weights.shape[1]
            rows[pair], late[pair] = np.zeros(outputs, dtype=np.float32), np.zeros(outputs)
        return rows[pair], late[pair]

    def checkpoint(self, best: TrainedPerceptron, random: np.random.Generator, scores: list[float]) -> Checkpoint:
        """Return a checkpoint after a pass: the weights, those of the best pass, and the state of `random`."""
        tensors = {f"now.{name}": tensor for name, tensor in self.now.delta().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in best.delta().items()}
        _, rows = _listed(self.late.after_two, self.now.weights.shape[1])
        late = {"weights": self.late.weights, "after": self.late.after, "after_two": rows}
        tensors |= {f"late.{name}": torch.from_numpy(part) for name, part in late.items()}
        return Checkpoint({"seen": self.seen, "scores": scores, "random": random.bit_generator.state}, tensors)

    def restore(self, found: Checkpoint, random: np.random.Generator, scores: list[float]) -> TrainedPerceptron:
        """Restore the state from `found`; return the tagger of the best pass."""
        parts: dict[str, dict[str, Tensor]] = {}
        for path, tensor in found.tensors.items():
            which, _, name = path.partition(".")
            parts.setdefault(which, {})[name] = tensor.clone()
        self.now, best = (TrainedPerceptron.of(parts[which], self.now.facts) for which in ("now", "best"))
        late = {name: tensor.numpy() for name, tensor in parts["late"].items()}
        rows = _by_pair(parts["now"]["pairs"].numpy(), late["after_two"])
        self.late = _Late(late["weights"], late["after"], rows)
        self.seen = found.numbers["seen"]
        scores += found.numbers["scores"]
        random.bit_generator.state = found.numbers["random"]
        return best

    def average(self) -> TrainedPerceptron:
        """Return the tagger with the mean of the weights over all words so far."""
        now, late = self.now, self.late

        def mean(part: NDArray[np.float32], late: NDArray[np.float64]) -> NDArray[np.float32]:
            return (part - late / self.seen).astype(np.float32)

        after_two = {pair: mean(row, late.after_two[pair]) for pair, row in now.after_two.items()}
        return TrainedPerceptron(mean(now.weights, late.weights), mean(now.after, late.after), after_two, now.facts)


@methods.register("perceptron_tagger")
@dataclass(frozen=True)
class PerceptronTagger(Baseline):
    """An averaged perceptron with early stopping on validation, after at most `epochs` passes over train."""

    epochs: int = 10  # passes over train, at most

    VERSION: ClassVar[int] = 2

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task tags words."""
        if not tags_words(kinds.get(task.kind)):
            return "it tags words, and this task has no tags"
        return "" if self.epochs > 0 else f"epochs must be above 0, not {self.epochs}"

    def fit(self, bench: Workbench) -> TrainedPerceptron:
        """Train by correcting mistakes, in an order drawn from the seed; keep the pass that is best on validation."""
        outputs = bench.setting.kind.outputs(bench.setting.task)
        averaged = _AveragedWeights(_blank(bench.train.examples, outputs))
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
        last = len(scores) - scores[::-1].index(max(scores))
        return _pruned(best, {"passes": len(scores), "best_epoch": last, "validation_by_pass": scores})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> TrainedPerceptron:
        """Rebuild the tagger from its weights and the names of its features."""
        return TrainedPerceptron.of(delta, facts)


def _listed(rows: Mapping[Pair, NDArray[Any]], outputs: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the sorted pairs (P, 2) and their rows (P, C)."""
    pairs = sorted(rows)
    table = np.stack([rows[pair] for pair in pairs]) if pairs else np.zeros((0, outputs), dtype=np.float32)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), table


def _by_pair(pairs: NDArray[np.int64], table: NDArray[Any]) -> dict[Pair, NDArray[Any]]:
    """Rebuild the dictionary that `_listed` split."""
    return {(two, one): row for (two, one), row in zip(pairs.tolist(), table, strict=True)}


def _still_rises(scores: Sequence[float]) -> bool:
    """Return whether one of the last two passes reached the best score, or no pass was made yet."""
    return max(scores, default=0.0) in scores[-2:] or not scores


def _blank(examples: Sequence[Example], outputs: int) -> TrainedPerceptron:
    """Return a tagger with weights of 0 for every feature that occurs at least `SEEN` times in train."""
    counts = Counter(name for example in examples for names in features(example.inputs["words"]) for name in names)
    vocabulary = sorted(name for name, count in counts.items() if count >= SEEN)
    return TrainedPerceptron(
        weights=np.zeros((len(vocabulary), outputs), dtype=np.float32),
        after=np.zeros((outputs + 1, outputs), dtype=np.float32),
        after_two={},
        facts={"vocabulary": vocabulary},
    )


def _pruned(tagger: TrainedPerceptron, facts: Mapping[str, Any]) -> TrainedPerceptron:
    """Remove the features and pairs of tags with zero weights, which does not change the predictions."""
    weighs = np.flatnonzero(np.abs(tagger.weights).sum(axis=1))
    vocabulary = [tagger.facts["vocabulary"][feature] for feature in weighs.tolist()]
    found = {"vocabulary": vocabulary, "features": len(vocabulary)} | dict(facts)
    after_two = {pair: row for pair, row in tagger.after_two.items() if row.any()}
    return TrainedPerceptron(tagger.weights[weighs], tagger.after, after_two, found)
