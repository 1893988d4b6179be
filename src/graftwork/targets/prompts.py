"""Prompts: an instruction, shots, and the question about an example; and the draw of examples for shots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.ragged import flat
from graftwork.core.task import Split, Task
from graftwork.registry import kinds
from graftwork.targets.prompt_templates import Template
from graftwork.targets.verbal_answers import NUMBERS, VerbalAnswers, verbal_answers


@dataclass(frozen=True)
class Prompts:
    """A template, the words of its answers, and shots: what turns an example into a prompt."""

    template: Template
    words: tuple[str, ...]  # per class, or per number; none for choices and for free texts
    shots: tuple[str, ...] = ()

    @property
    def end(self) -> str:
        """The text after every answer of a shot."""
        return self.template.tail + self.template.separator

    @property
    def before(self) -> str:
        """The text before every question: the instruction and the shots."""
        opening = self.template.opening(self.words)
        return self.template.separator.join(part for part in (opening, *self.shots) if part)

    def context(self, inputs: Mapping[str, Any]) -> str:
        """Return the whole prompt for an example with these inputs."""
        question = self.template.question(inputs, self.words) + self.template.lead
        return self.template.separator.join(part for part in (self.before, question) if part)

    def answers(self, inputs: Mapping[str, Any]) -> list[str]:
        """Return the candidate answers: one for each class or number, or for each choice."""
        return [self.template.answered(word) for word in inputs.get("choices", self.words)]

    def shot(self, example: Example, word: str) -> str:
        """Return an example of train, written with its right answer."""
        return self.template.question(example.inputs, self.words) + self.template.answered(word)

    def without_content(self, roles: Sequence[str], texts: Sequence[str]) -> list[Example]:
        """Return an example without content for each of `texts`, which stands for all its inputs."""
        return [Example(f"without content/{text}", dict.fromkeys(roles, text)) for text in texts]


def label_words(template: Template, task: Task, targets: Sequence[Any]) -> VerbalAnswers:
    """Return the words of a task's labels, or the numbers of a regression with these training targets.

    Numbers are whole ones if all targets are, else as T5 writes them. Choices and free texts have no words.
    Raises `ConfigError` where a label has no word, or two have the same.
    """
    if task.kind == "regression":
        whole = all(float(target).is_integer() for target in targets) and max(targets) - min(targets) < NUMBERS
        return verbal_answers(task, targets, 1.0 if whole else 0.0)
    return VerbalAnswers(template.words_of(task.labels) if task.labels else ())


def right_word(answers: VerbalAnswers, task: Task, example: Example) -> str:
    """Return the right answer of an example of train: a word, a number, a choice, or the first text."""
    target = example.target
    if "choices" in example.inputs:
        return str(example.inputs["choices"][target.index(1)])
    if answers.numbers:
        return answers.right(flat(kinds.get(task.kind).encode([target], task))[0])
    return answers.texts[task.labels.index(target)] if task.labels else str(target[0])


def drawn_shots(train: Split, task: Task, number: int, random: np.random.Generator) -> list[Example]:
    """Draw examples of train for shots, balanced over the classes if any, in random order; fewer if there are fewer."""
    order = random.permutation(len(train.examples)).tolist()
    if not task.labels:
        return [train.examples[row] for row in order[:number]]
    by_class: dict[str, list[Example]] = {label: [] for label in random.permutation(task.labels).tolist()}
    for row in order:
        by_class[train.examples[row].target].append(train.examples[row])
    turns = [example for example in chain.from_iterable(zip_longest(*by_class.values())) if example is not None]
    chosen = turns[:number]
    return [chosen[place] for place in random.permutation(len(chosen)).tolist()]
