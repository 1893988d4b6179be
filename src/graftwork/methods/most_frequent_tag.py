"""Most frequent tag: every word gets the tag that it had most often in train, regardless of context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.kind import tags_words
from graftwork.core.method import Baseline, Logits, LooksUp, Setting, Workbench
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.registry import kinds, methods

PRIOR = 0.1  # pseudo-count added to each word, distributed as the tags of all words


@dataclass
class WordTags(LooksUp):
    """Logits from tag counts: of the word as written, else of its lower-case form, else of all words together."""

    counts: Tensor  # (V + 1, C) int64: occurrences of each word with each tag; the last row is the sum over words
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._rows = {word: row for row, word in enumerate(self.facts["vocabulary"])}
        counts = self.counts.numpy().astype(np.float64)
        shares = (counts + PRIOR * counts[-1] / counts[-1].sum()) / (counts.sum(axis=1, keepdims=True) + PRIOR)
        self._logits = np.log(np.maximum(shares, 1e-9))

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the logarithms (W, C) of the tags' shares."""
        unknown = len(self._rows)
        rows = [
            [self._rows.get(word, self._rows.get(word.lower(), unknown)) for word in example.inputs["words"]]
            for example in examples
        ]
        found = Ragged.of(rows, np.int64)
        return Ragged(self._logits[found.flat], found.counts)

    def delta(self) -> dict[str, Tensor]:
        """Return the counts; the words are in the facts."""
        return {"counts": self.counts}


@methods.register("most_frequent_tag")
@dataclass(frozen=True)
class MostFrequentTag(Baseline):
    """The most frequent tag per word; an unknown word gets the most frequent tag overall."""

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task tags words."""
        return "" if tags_words(kinds.get(task.kind)) else "it tags words, and this task has no tags"

    def fit(self, bench: Workbench) -> WordTags:
        """Count the tags of each training word."""
        targets = bench.train.targets
        assert isinstance(targets, Ragged)
        words = [word for example in bench.train.examples for word in example.inputs["words"]]
        vocabulary = sorted(set(words))
        rows = {word: row for row, word in enumerate(vocabulary)}
        counts = np.zeros((len(vocabulary) + 1, bench.setting.kind.outputs(bench.setting.task)), dtype=np.int64)
        for (word, tag), count in Counter(zip(words, targets.flat.tolist(), strict=True)).items():
            counts[rows[word], tag] = count
        counts[-1] = counts[:-1].sum(axis=0)
        return WordTags(torch.from_numpy(counts), {"vocabulary": vocabulary, "words": len(vocabulary)})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> WordTags:
        """Rebuild the method from its stored counts."""
        return WordTags(delta["counts"], facts)
