"""Prompts with their possible answers, as tokens, and the interface of a language model that is prompted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from graftwork.core.language_model import PromptReader
from graftwork.core.writing import TextSearch
from graftwork.errors import ConfigError, IncompatibleModule, clip


@dataclass(frozen=True)
class PromptTokens:
    """A prompt and its answers, as tokens; none is empty, and no answer is a prefix of another."""

    context: list[int]
    continuations: list[list[int]]
    apart: bool = False  # True: answers are in a decoder of their own, and take no room after the prompt

    @property
    def most(self) -> int:
        """The context length needed: the prompt and, unless `apart`, the longest answer without its last token."""
        return len(self.context) + (0 if self.apart else max(map(len, self.continuations)) - 1)

    def behind(self, shared: int) -> PromptTokens:
        """Return it without the first `shared` tokens of the context, which are cached."""
        return PromptTokens(self.context[shared:], self.continuations)


class PromptedModel(Protocol):
    """A language model, with a cache of the tokens that all prompts begin with."""

    @property
    def reader(self) -> PromptReader:
        """The language model."""

    @property
    def beginning(self) -> list[int]:
        """The tokens that all prompts begin with and that are encoded once; none if nothing can be cached."""

    def begin(self, shared: str, prompt: str) -> None:
        """Set the text `shared` that all prompts, such as `prompt`, begin with; nothing is encoded yet."""

    def read_beginning(self) -> None:
        """Encode the tokens that all prompts begin with, if that has not been done."""

    def tokenise(self, prompts: Sequence[str], answers: Sequence[Sequence[str]], end: str) -> list[PromptTokens]:
        """Tokenise prompts with their answers. If one is a prefix of another, all answers to that prompt get an end.

        The end is the text `end`, or the token with which the network ends texts. Raises `ConfigError` for an answer or
        a prompt without a token, and if an end is needed and there is none.
        """

    def likelihoods(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Return the log-likelihood of every answer to each prompt. Raises `IncompatibleModule` for NaN or infinity."""

    def margins(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Write one of the answers to each prompt, each time with the likeliest token that continues an answer.

        Returns a margin per answer: 0 for the written one; for another one the log-probability of its first differing
        token less that of the token written instead, so at most 0. Raises `IncompatibleModule` if one is not finite.
        """

    def write(
        self, prompts: Sequence[list[int]], search: TextSearch, end: str, tell: Callable[[str], None] | None = None
    ) -> NDArray[Any]:
        """Write a text after each prompt, up to the text `end` or the model's own end; return (N,) of dtype `WRITTEN`.

        With a single prompt, `tell` is called with the text so far at every token.
        """

    def read_back(self, prompts: Sequence[list[int]], texts: Sequence[str], end: str, longest: int) -> list[float]:
        """Return the log-likelihood of a text with its end after each prompt, tokenised anew and cut at `longest`."""

    def begins(self, asked: PromptTokens) -> bool:
        """Return whether a prompt begins with the cached tokens."""

    def reserve(self, search: TextSearch) -> int:
        """Return how many tokens of the context are kept for the text that is written."""


def begins_another(answers: Sequence[list[int]]) -> bool:
    """Return whether the tokens of an answer are a proper prefix of another answer's."""
    return any(len(one) < len(next_one) and next_one[: len(one)] == one for one, next_one in pairwise(sorted(answers)))


def refuse_no_token(text: str, prompt: bool = False) -> NoReturn:
    """Raise `ConfigError` for an answer, or a prompt, that has no token."""
    what = "a prompt has no token" if prompt else "an answer adds no token to its prompt"
    raise ConfigError(what, got=clip(text), expected="a word or more")


def require_numbers(found: Sequence[Sequence[float]], name: str) -> None:
    """Raise `IncompatibleModule` unless all of these are finite."""
    if not np.isfinite(list(chain.from_iterable(found))).all():
        raise IncompatibleModule(
            "the language model's probabilities are no numbers",
            where=name,
            do="open it with --precision fp32; if that does not help, its weights are damaged",
        )


def require_apart(asked: PromptTokens, words: Sequence[str], name: str) -> None:
    """Raise `ConfigError` if the answers with two of these words have the same tokens."""
    for word, tokens in zip(words, asked.continuations, strict=True):
        like = words[asked.continuations.index(tokens)]
        if like != word:
            raise ConfigError(
                "two answers are the same tokens to the language model, which could not tell them apart",
                where=name,
                got=f"{clip(like)} and {clip(word)}",
                do="write a template of your own with other words for them",
            )
