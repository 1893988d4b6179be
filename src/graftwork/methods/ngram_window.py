"""N-gram window: answers with the words beside the longest n-gram that the passage shares with the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Logits, LooksUp, Setting, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.targets.best_spans import longest_of, sure_of, without_passages
from graftwork.targets.ngrams import AnswerWindow, answer_in, best_window


@dataclass
class Windower(LooksUp):
    """A fitted method that predicts the same window around the n-gram that passage and question share."""

    window: AnswerWindow
    longest: int  # words of an answer, at most
    facts: Mapping[str, Any]

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return logits (W, 2) that give the window's words with certainty."""
        spans = [answer_in(example.inputs["question"], example.inputs["words"], self.window) for example in examples]
        return sure_of(spans, [len(example.inputs["words"]) for example in examples], self.longest)

    def delta(self) -> dict[str, Tensor]:
        """Return the stored window."""
        return {"window": self.window.stored}


@methods.register("ngram_window")
@dataclass(frozen=True)
class NgramWindow(Baseline):
    """An n-gram window whose side and number of words are those that score best on the training questions."""

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task asks questions about passages."""
        return without_passages(task)

    def fit(self, bench: Workbench) -> Windower:
        """Try every window and keep the best on the training questions."""
        window, scores = best_window(bench.train.examples)
        facts = {"window": window.place, "words": window.words, "train_f1_by_window": scores}
        return Windower(window, longest_of(bench.setting), facts)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Windower:
        """Rebuild the method from its stored window."""
        return Windower(AnswerWindow.of(delta["window"]), longest_of(setting), facts)
