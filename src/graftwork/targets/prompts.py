"""Prompts: an instruction, shots, and the question about an example; and the draw of examples for shots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.task import Split, Task
from graftwork.targets.prompt_templates import Template


@dataclass(frozen=True)
class Prompts:
    """A template with the words of its labels, and shots: how every example is asked."""

    template: Template
    words: tuple[str, ...]  # per class; none for choices
    shots: tuple[str, ...] = ()

    @property
    def of_choices(self) -> bool:
        """True if every example has answers of its own."""
        return not self.words

    @property
    def before(self) -> str:
        """What stands in front of every question: the instruction and the shots."""
        opening = self.template.opening(self.words)
        return self.template.separator.join(part for part in (opening, *self.shots) if part)

    def context(self, inputs: Mapping[str, Any]) -> str:
        """Return all that is read before the answer to an example with these inputs."""
        question = self.template.question(inputs, self.words)
        return self.template.separator.join(part for part in (self.before, question) if part)

    def answers(self, example: Example) -> list[str]:
        """Return what may follow: an answer for each class, or for each choice."""
        return [self.template.answered(word) for word in example.inputs.get("choices", self.words)]

    def shot(self, example: Example, task: Task) -> str:
        """Return an example of train with its right answer."""
        choices, target = example.inputs.get("choices"), example.target
        word = self.words[task.labels.index(target)] if choices is None else choices[target.index(1)]
        return self.template.question(example.inputs, self.words) + self.template.answered(word)

    def without_content(self, roles: Sequence[str], texts: Sequence[str]) -> list[Example]:
        """Return examples whose texts are all the same one of `texts`."""
        return [Example(f"without content/{text}", dict.fromkeys(roles, text)) for text in texts]


def drawn_shots(train: Split, task: Task, number: int, random: np.random.Generator) -> list[Example]:
    """Draw examples of train for shots, balanced over the classes, in random order; fewer if there are fewer."""
    order = random.permutation(len(train.examples)).tolist()
    if task.kind == "choice":
        return [train.examples[row] for row in order[:number]]
    by_class: dict[str, list[Example]] = {label: [] for label in random.permutation(task.labels).tolist()}
    for row in order:
        by_class[train.examples[row].target].append(train.examples[row])
    turns = [example for example in chain.from_iterable(zip_longest(*by_class.values())) if example is not None]
    chosen = turns[:number]
    return [chosen[place] for place in random.permutation(len(chosen)).tolist()]
