"""What fits into the context of a language model: how many shots, and how much of a long text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graftwork.core.example import Example
from graftwork.core.language_model import NextTokenModel
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.targets.prompts import Prompts
from graftwork.train.continuations import Asked, asked_of


def with_fitting_shots(
    model: NextTokenModel, prompts: Prompts, drawn: Sequence[Example], task: Task, examples: Sequence[Example]
) -> tuple[Prompts, list[Example]]:
    """Return the prompts with those of the drawn shots that fit beside the longest of `examples`, and which these are.

    An example counts as half the context at most: longer texts are cut. A shot that does not fit is left out, and the
    next ones are tried.
    """
    contexts = [prompts.context(example.inputs) for example in examples]
    asked = asked_of(model, contexts, [prompts.answers(example) for example in examples])
    longest = max((one.most for one in asked), default=0)
    opening = len(model.tokens([prompts.before])[0])
    room = model.context - min(longest, opening + model.context // 2)
    chosen: list[Example] = []
    for example in drawn:
        tried = _shown(prompts, [*chosen, example], task)
        if len(model.tokens([tried.before + prompts.template.separator])[0]) - opening <= room:
            chosen.append(example)
    return _shown(prompts, chosen, task), chosen


def _shown(prompts: Prompts, shots: Sequence[Example], task: Task) -> Prompts:
    return replace(prompts, shots=tuple(prompts.shot(example, task) for example in shots))


def cut_to_fit(
    model: NextTokenModel, prompts: Prompts, inputs: Mapping[str, Any], answers: Sequence[str], asked: Asked
) -> Asked:
    """Cut the longest text of an example at its end until the prompt fits. Raises `ConfigError` where none does."""
    inputs = {role: given for role, given in inputs.items() if isinstance(given, str)}
    while asked.most > model.context:
        longest = max(inputs, key=lambda role: len(inputs[role]))
        spans = model.spans(inputs[longest])
        kept = spans[: max(0, len(spans) - (asked.most - model.context))]
        if not inputs[longest]:
            raise ConfigError(
                "the prompt leaves no room for a text",
                got=f"{asked.most:,} tokens without it",
                expected=f"at most {model.context:,}, the context of the language model",
                do="choose fewer shots, a shorter template, or shorter choices",
            )
        inputs[longest] = inputs[longest][: kept[-1][1]] if kept else ""
        (asked,) = asked_of(model, [prompts.context(inputs)], [answers])
    return asked
