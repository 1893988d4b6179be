"""Abbreviation rule: finds the long form of an abbreviation in the passage (Schwartz & Hearst 2003)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Logits, LooksUp, Setting, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.targets.abbreviations import definitions
from graftwork.targets.best_spans import longest_of, sure_of, without_passages
from graftwork.targets.ngrams import AnswerWindow, answer_in, best_window
from graftwork.targets.passages import Passage

_ASKED = re.compile(r"\b(?:does|do|did)\s+(.+?)\s+stands?\s+for\b", re.IGNORECASE | re.DOTALL)
_NOUN = re.compile(
    r"^(?:the\s+)?(?:acronym|abbreviation|initialism|initials|letters|term)?\s*(.+?)"
    r"(?:\s+(?:acronym|abbreviation|initials|letters|term))?$",
    re.IGNORECASE | re.DOTALL,
)
_QUOTES = "\"'\u201c\u201d\u2018\u2019()"


@dataclass
class Rule(LooksUp):
    """A rule that looks up short forms in the definitions of the passage; an n-gram window answers other questions."""

    window: AnswerWindow
    longest: int  # words of an answer, at most
    facts: Mapping[str, Any]

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return logits (W, 2) that give the rule's answer with certainty."""
        spans = [self._answer(example) for example in examples]
        return sure_of(spans, [len(example.inputs["words"]) for example in examples], self.longest)

    def _answer(self, example: Example) -> tuple[int, int]:
        question, words = example.inputs["question"], example.inputs["words"]
        short = asked_for(question)
        text = example.source if example.source is not None else " ".join(words)
        place = stands_for(short, text) if short else None
        return Passage(text, words).words_at(*place) if place else answer_in(question, words, self.window)

    def delta(self) -> dict[str, Tensor]:
        """Return the stored window."""
        return {"window": self.window.stored}


def asked_for(question: str) -> str | None:
    """Return the short form X in "What does (the acronym) X stand for?"; None for a question of another form."""
    found = _ASKED.search(question)
    inner = _NOUN.match(found[1].strip()) if found else None
    return (inner[1].strip(_QUOTES) or None) if inner else None


def stands_for(short: str, text: str) -> tuple[int, int] | None:
    """Return the start and the end (exclusive) of the long form that `text` defines for `short`, in characters.

    An exact match takes precedence over one that differs in case or by a plural s; of several, the first is returned.
    """
    found = definitions(text)
    plain = short.lower()
    alike = [one for one in found if {plain, f"{plain}s"} & {one.short.lower(), f"{one.short.lower()}s"}]
    chosen = next((definition for definition in found if definition.short == short), next(iter(alike), None))
    return (chosen.start, chosen.end) if chosen else None


@methods.register("abbreviation_rule")
@dataclass(frozen=True)
class AbbreviationRule(Baseline):
    """The abbreviation rule; only the window that answers other questions is chosen on training data."""

    VERSION: ClassVar[int] = 2

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task asks questions about passages."""
        return without_passages(task)

    def fit(self, bench: Workbench) -> Rule:
        """Choose the window on the training questions."""
        window, _ = best_window(bench.train.examples)
        asked = sum(asked_for(example.inputs["question"]) is not None for example in bench.train.examples)
        return Rule(window, longest_of(bench.setting), {"window": window.place, "words": window.words, "asked": asked})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Rule:
        """Rebuild the rule from its stored window."""
        return Rule(AnswerWindow.of(delta["window"]), longest_of(setting), facts)
