"""The text-to-text form of tasks: inputs written as named fields, and targets as texts (T5, Raffel et al. 2020,
arXiv:1910.10683, section 2.4 and appendix D)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.ragged import Ragged, flat
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import kinds
from graftwork.targets.passages import read_by

NO_PREFIX = "none"
FIELDS: Mapping[str, str] = {  # role -> name
    "text": "sentence",
    "text_a": "sentence1",
    "text_b": "sentence2",
    "question": "question",
}
NO_ANSWER = "unanswerable"  # written if a question has no answer, as T5 does for SQuAD 2.0
NUMBERS = 26  # values of a regression without a given step: on 0 to 5 they are 0.2 apart, as in T5's STS-B
NUMBERS_AT_MOST = 200  # each is read by the decoder for every example


@dataclass(frozen=True)
class VerbalAnswers:
    """The possible answers of a task as texts: one per class, or per number of a regression; empty for choices."""

    texts: tuple[str, ...]
    numbers: tuple[float, ...] = ()  # what the texts of a regression say, in the scale of its encoded targets

    def of(self, examples: Sequence[Example]) -> list[str]:
        """Return the candidate texts for these examples; for choices, those of the example with the most."""
        most = max((len(example.inputs.get("choices", ())) for example in examples), default=0)
        return [choice_text(place) for place in range(most)] or list(self.texts)

    def right(self, target: int | float | NDArray[np.float32]) -> str:
        """Return the text of an encoded target: a class, a number, or the marks of choices."""
        if isinstance(target, np.ndarray) and target.ndim:
            return choice_text(int(target.reshape(-1).argmax()))
        if self.numbers:
            return self.texts[int(np.abs(np.asarray(self.numbers) - float(target)).argmin())]
        return self.texts[int(target)]

    def logits(self, chances: NDArray[np.float64], examples: Sequence[Example]) -> NDArray[np.float64] | Ragged:
        """Convert log-likelihoods (N, A) of the texts to logits (N, C), (N, 1) of a regression, (W, 1) of choices.

        A regression predicts the mean of all numbers, weighted by the probabilities of their texts.
        """
        if any("choices" in example.inputs for example in examples):
            counts = [len(example.inputs["choices"]) for example in examples]
            return Ragged.of([row[:count, None] for row, count in zip(chances, counts, strict=True)], np.float64)
        if not self.numbers:
            return chances
        shares = np.exp(chances - chances.max(axis=1, keepdims=True))
        means: NDArray[np.float64] = (shares / shares.sum(axis=1, keepdims=True)) @ np.asarray(self.numbers)
        return means[:, None]


def choice_text(place: int) -> str:
    """Return what a choice is called: `choice1` is the first."""
    return f"choice{place + 1}"


def source_of(example: Example, prefix: str) -> Example:
    """Return an example of one text: the prefix and the choices if any, then the texts, each after its field.

    A passage that is asked about comes last, after `context`.
    """
    given = example.inputs
    choices = [f"{choice_text(place)}: {choice}" for place, choice in enumerate(given.get("choices", ()))]
    texts = [f"{name}: {given[role]}" for role, name in FIELDS.items() if role in given]
    texts += [f"context: {read_by(example)}"] if "words" in given else []
    return Example(example.id, {"text": " ".join([*([] if prefix == NO_PREFIX else [prefix]), *choices, *texts])})


def verbal_answers(task: Task, targets: Sequence[float], step: float) -> VerbalAnswers:
    """Return the answers of a task; of a regression, the multiples of `step` that span its training `targets`.

    A label is written with blanks for `_`, unless that makes two alike. For a `step` of 0 it is the least of 1, 2 or 5
    times a power of ten that gives about `NUMBERS` numbers. Raises `ConfigError` for a step that gives one number,
    or too many.
    """
    if task.kind == "choice":
        return VerbalAnswers(())
    if task.kind != "regression":
        words = tuple(label.replace("_", " ") for label in task.labels)
        return VerbalAnswers(words if len(set(words)) == len(words) else task.labels)
    step = step or even_step(max(targets) - min(targets))
    first, last = round(min(targets) / step), round(max(targets) / step)
    if not 1 <= last - first < NUMBERS_AT_MOST:
        raise ConfigError(
            "the step does not suit the numbers of the training data",
            where=str(task.data),
            got=f"{step:g}, which makes {last - first + 1:,} of {min(targets):g} to {max(targets):g}",
            expected=f"a step that makes 2 to {NUMBERS_AT_MOST} numbers",
            do="choose another step, or leave it out",
        )
    decimals = next(places for places in range(16) if math.isclose(round(step, places), step, rel_tol=1e-9))
    texts = tuple(f"{round(place * step, decimals) + 0.0:.{decimals}f}" for place in range(first, last + 1))
    numbers = flat(kinds.get(task.kind).encode([float(text) for text in texts], task))
    return VerbalAnswers(texts, tuple(numbers.tolist()))


def even_step(span: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that divides a span into fewer than `NUMBERS` parts."""
    power = math.floor(math.log10(span / (NUMBERS - 1)))
    steps = (float(f"{digit}e{power}") for digit in (1, 2, 5, 10))
    return next(step for step in steps if step * (NUMBERS - 1) >= span * (1 - 1e-9))
