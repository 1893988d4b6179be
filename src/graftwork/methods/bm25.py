"""BM25: scores candidates by the words that they share with the text, weighted by rarity; nothing is trained
(Robertson & Zaragoza 2009, doi:10.1561/1500000019)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.kind import OfChoices
from graftwork.core.method import Baseline, Logits, Setting, Workbench
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.registry import kinds, methods
from graftwork.targets.words import UNSPACED_APART, WORD

_WORD, _PLAIN = re.compile(WORD), re.compile(r"\w+")  # _PLAIN: for modules whose facts lack UNSPACED_APART
FLOPS_PER_MATCH = 8.0  # FLOPs of the term that a shared word adds to a candidate's score


@dataclass
class Lexical:
    """A BM25 scorer: the logit is the sum over the text's words of
    idf x tf (k1 + 1) / (tf + k1 (1 - b + b length / mean))."""

    frequencies: Tensor  # (V,) int64: training candidates that contain each word
    facts: Mapping[str, Any]  # vocabulary, candidates, mean_length, k1, b, unspaced_apart
    trained_parameters: int = 0

    def __post_init__(self) -> None:
        count = self.facts["candidates"]
        rarity: NDArray[np.float64] = np.log1p(
            (count - self.frequencies.numpy() + 0.5) / (self.frequencies.numpy() + 0.5)
        )
        self._idf = dict(zip(self.facts["vocabulary"], rarity.tolist(), strict=True))
        self._words = _WORD if self.facts.get(UNSPACED_APART) else _PLAIN
        self._unknown = float(np.log1p((count + 0.5) / 0.5))

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the scores (W, 1), one per candidate."""
        scores = [
            [
                (self._score(self._cut(example.inputs["text"]), self._cut(choice)),)
                for choice in example.inputs["choices"]
            ]
            for example in examples
        ]
        return Ragged.of(scores, np.float64)

    def _cut(self, text: str) -> list[str]:
        return words_of(text, self._words)

    def _score(self, text: Sequence[str], candidate: Sequence[str]) -> float:
        counts, k1, b = Counter(candidate), float(self.facts["k1"]), self.facts["b"]
        damping: float = k1 * (1 - b + b * len(candidate) / self.facts["mean_length"])
        score: float = sum(
            self._idf.get(word, self._unknown) * counts[word] * (k1 + 1) / (counts[word] + damping)
            for word in text
            if word in counts
        )
        return score

    def delta(self) -> dict[str, Tensor]:
        """Return the document frequencies; the words are in the facts."""
        return {"frequencies": self.frequencies}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count `FLOPS_PER_MATCH` per word that a text shares with a candidate."""
        matches = 0
        for example in examples:
            text = self._cut(example.inputs["text"])
            for choice in example.inputs["choices"]:
                there = set(self._cut(choice))
                matches += sum(word in there for word in text)
        return FLOPS_PER_MATCH * matches, "model"


def words_of(text: str, word: re.Pattern[str] = _WORD) -> list[str]:
    """Return the words of letters and digits of a text, in lower case."""
    return word.findall(text.lower())


@methods.register("bm25")
@dataclass(frozen=True)
class Bm25(Baseline):
    """BM25, fitted by counting the words of train's candidates; it uses no labels."""

    k1: float = 1.2  # saturation of repeated words: smaller saturates sooner
    b: float = 0.75  # strength of the length normalisation, 0 … 1

    CUTS_WORDS: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task's examples have candidates."""
        if self.k1 < 0 or not 0 <= self.b <= 1:
            return f"k1 must be 0 or more and b from 0 to 1, not {self.k1:g} and {self.b:g}"
        return "" if isinstance(kinds.get(task.kind), OfChoices) else "it scores candidates, and this task has none"

    def fit(self, bench: Workbench) -> Lexical:
        """Count in how many candidates each word occurs."""
        candidates = [words_of(choice) for example in bench.train.examples for choice in example.inputs["choices"]]
        counts = Counter(word for words in candidates for word in set(words))
        vocabulary = sorted(counts)
        frequencies = torch.tensor([counts[word] for word in vocabulary], dtype=torch.int64)
        mean = max(1.0, sum(map(len, candidates)) / len(candidates))
        facts = {
            "k1": self.k1,
            "b": self.b,
            "candidates": len(candidates),
            "mean_length": mean,
            "words": len(vocabulary),
            UNSPACED_APART: True,
        }
        return Lexical(frequencies, facts | {"vocabulary": vocabulary})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Lexical:
        """Rebuild the scorer from its stored counts."""
        return Lexical(delta["frequencies"], facts)
