"""Fitting of prompts into a language model's context: how many shots, and how much of a long text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.targets.prompts import Prompts
from graftwork.train.prompt_tokens import PromptedModel, PromptTokens, refuse_no_token


def with_fitting_shots(
    model: PromptedModel,
    prompts: Prompts,
    drawn: Sequence[tuple[Example, str]],
    examples: Sequence[Example],
    reserve: int,
) -> tuple[Prompts, list[Example]]:
    """Return the prompts with the drawn shots that fit beside the longest of `examples`, and these shots' examples.

    A shot is an example of train with its right answer. `reserve` tokens of the context are kept for the text to write.
    An example counts as at most half of the remaining context, since longer texts are cut. Shots that do not fit are
    skipped.
    """
    reader = model.reader
    context = reader.context - reserve
    longest = max((one.most for one in asked_by(model, prompts, [example.inputs for example in examples])), default=0)
    opening = len(reader.tokens([prompts.before])[0])
    room = context - min(longest, opening + context // 2)
    chosen: list[tuple[Example, str]] = []
    for shot in drawn:
        tried = _shown(prompts, [*chosen, shot])
        if len(reader.tokens([tried.before + prompts.template.separator])[0]) - opening <= room:
            chosen.append(shot)
    return _shown(prompts, chosen), [example for example, _ in chosen]


def _shown(prompts: Prompts, shots: Sequence[tuple[Example, str]]) -> Prompts:
    return replace(prompts, shots=tuple(prompts.shot(example, word) for example, word in shots))


def asked_by(model: PromptedModel, prompts: Prompts, inputs: Sequence[Mapping[str, Any]]) -> list[PromptTokens]:
    """Return the prompts for these inputs as tokens, with the possible answers; none if free text is written."""
    contexts = [prompts.context(given) for given in inputs]
    if not prompts.template.is_free:
        return model.tokenise(contexts, [prompts.answers(given) for given in inputs], prompts.end)
    tokens = model.reader.tokens(contexts)
    if not all(tokens):
        refuse_no_token("", prompt=True)
    return [PromptTokens(one, [], apart=True) for one in tokens]


def require_room(
    model: PromptedModel, prompts: Prompts, asked: PromptTokens, inputs: Mapping[str, Any], reserve: int
) -> PromptTokens:
    """Cut the longest text of an example at its end until its prompt leaves room for `reserve` tokens.

    Raises `ConfigError` where none of it fits.
    """
    limit = model.reader.context - reserve
    inputs = {role: given for role, given in inputs.items() if isinstance(given, str | tuple)}
    texts = [role for role, given in inputs.items() if isinstance(given, str)]
    while asked.most > limit:
        longest = max(texts, key=lambda role: len(inputs[role]))
        spans = model.reader.spans(inputs[longest])
        kept = spans[: max(0, len(spans) - (asked.most - limit))]
        if not inputs[longest]:
            raise ConfigError(
                "the prompt leaves no room for a text",
                got=f"{asked.most:,} tokens without it",
                expected=f"at most {limit:,}: the context of the language model"
                + (f", less {reserve} for the text that it writes" if reserve else ""),
                do="choose fewer shots, a shorter template, or shorter choices",
            )
        inputs[longest] = inputs[longest][: kept[-1][1]] if kept else ""
        (asked,) = asked_by(model, prompts, [inputs])
    return asked
