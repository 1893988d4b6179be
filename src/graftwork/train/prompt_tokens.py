"""A prompt with the answers that may follow it, as tokens, and what a language model can be asked about them."""

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
    """A prompt and its answers, as tokens; none is empty, and none begins another one."""

    context: list[int]
    continuations: list[list[int]]
    apart: bool = False  # True: a decoder writes the answers, and they take no room after the prompt

    @property
    def most(self) -> int:
        """The number of tokens that are read at most, of a decoder's answers apart from it none."""
        return len(self.context) + (0 if self.apart else max(map(len, self.continuations)) - 1)

    def behind(self, shared: int) -> PromptTokens:
        """Leave out the first tokens of the context, which were read before."""
        return PromptTokens(self.context[shared:], self.continuations)


class PromptedModel(Protocol):
    """A language model with what it has read of the prompts beforehand."""

    @property
    def reader(self) -> PromptReader:
        """The model."""

    @property
    def beginning(self) -> list[int]:
        """The tokens that all prompts begin with and that are read once; none where that is not possible."""

    def begin(self, shared: str, prompt: str) -> None:
        """Note that all prompts begin with the text `shared`, as this one does; nothing is read yet."""

    def read_beginning(self) -> None:
        """Read what all prompts begin with, if that has not been done."""

    def tokenise(self, prompts: Sequence[str], answers: Sequence[Sequence[str]], end: str) -> list[PromptTokens]:
        """Tokenise prompts with their answers. Where an answer begins another one, all of its prompt's have an end.

        `end` is the text after an answer; a network with a token for the end of texts takes that. Raises `ConfigError`
        for an answer or a prompt without a token, and where answers need an end and there is none.
        """

    def likelihoods(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Return log p of every answer to each prompt. Raises `IncompatibleModule` for what is no number."""

    def margins(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Write an answer to each prompt, token by token, each time the likeliest that an answer goes on with.

        Returns 0 for the written answer. For another one, log p of the token with which it leaves the written one, less
        that of the token written instead: 0 or less. Raises `IncompatibleModule` for what is no number.
        """

    def write(
        self, prompts: Sequence[list[int]], search: TextSearch, end: str, tell: Callable[[str], None] | None = None
    ) -> NDArray[Any]:
        """Return (N,) of `WRITTEN`: a text after each prompt, up to the text `end` or the model's own end.

        Of a single prompt, `tell` is told the text so far at every token.
        """

    def read_back(self, prompts: Sequence[list[int]], texts: Sequence[str], end: str, longest: int) -> list[float]:
        """Return log p of a text after each prompt, with its end, tokenised anew: of its first `longest` tokens."""

    def begins(self, asked: PromptTokens) -> bool:
        """Return whether a prompt goes on from what is read once."""

    def reserve(self, search: TextSearch) -> int:
        """Return the tokens of the context that are kept for a text that is written."""


def begins_another(answers: Sequence[list[int]]) -> bool:
    """Return whether an answer's tokens are the first ones of another answer."""
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
    """Raise `ConfigError` where the answers with two of these words are the same tokens to the model."""
    for word, tokens in zip(words, asked.continuations, strict=True):
        like = words[asked.continuations.index(tokens)]
        if like != word:
            raise ConfigError(
                "two answers are the same tokens to the language model, which could not tell them apart",
                where=name,
                got=f"{clip(like)} and {clip(word)}",
                do="write a template of your own with other words for them",
            )
