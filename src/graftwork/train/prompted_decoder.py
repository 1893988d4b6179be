"""A prompted left-to-right language model: the answers continue the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.core.language_model import Earlier, NextTokenModel
from graftwork.core.writing import TextSearch
from graftwork.targets.written_texts import Text, written_by_rank
from graftwork.train.answer_order import in_batches
from graftwork.train.answer_tokens import prompt_tokens_of
from graftwork.train.continuations import DecoderCursor, log_likelihoods, read_before
from graftwork.train.greedy_writing import margins_of, written_by
from graftwork.train.prompt_tokens import PromptTokens, require_numbers

R = TypeVar("R")


class PromptedDecoder:
    """Implements `PromptedModel`. The keys and values of what all prompts begin with are computed once."""

    def __init__(self, reader: NextTokenModel):
        self.reader = reader
        self.beginning: list[int] = []
        self._kept: Earlier | None = None

    def begin(self, shared: str, prompt: str) -> None:
        """Find the tokens that all prompts begin with: if a text follows, the last tokens of `shared` may differ."""
        alone, followed = self.reader.tokens([shared, prompt])
        same = [one == other for one, other in zip(alone, followed, strict=False)]
        self.beginning, self._kept = alone[: [*same, False].index(False)], None

    def read_beginning(self) -> None:
        """Encode the tokens that all prompts begin with, if that has not been done."""
        if self._kept is None and self.beginning:
            self._kept = read_before(self.reader, self.beginning)

    def tokenise(self, prompts: Sequence[str], answers: Sequence[Sequence[str]], end: str) -> list[PromptTokens]:
        """Tokenise prompts with their answers."""
        return prompt_tokens_of(self.reader, prompts, answers, end)

    def likelihoods(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Return the log-likelihood of every answer to each prompt."""
        return self._parted(asked, lambda part, before: log_likelihoods(self.reader, part, before))

    def margins(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Write one of the answers to each prompt."""
        found = self._parted(asked, lambda part, before: self._batched(part, before, self._margins))
        require_numbers(found, self.reader.name)
        return found

    def write(
        self, prompts: Sequence[list[int]], search: TextSearch, end: str, tell: Callable[[str], None] | None = None
    ) -> NDArray[Any]:
        """Write a text after each prompt, greedily, up to the text `end` or the model's own end."""
        reader = self.reader

        def over(tokens: Sequence[int]) -> bool:
            text = reader.text_of(tokens) if end or tell is not None else ""
            if tell is not None:
                tell((text.partition(end)[0] if end else text).strip())
            return bool(end) and end in text

        def answer(part: Sequence[PromptTokens], before: Earlier | None) -> list[Text]:
            cursor = DecoderCursor(reader, [one.context for one in part], before)
            found = written_by(cursor, len(part), search.longest, reader.ends, over)
            texts = [reader.text_of([token for token in tokens if token not in reader.ends]) for tokens, _, _ in found]
            cuts = [text.partition(end)[0] if end else text for text in texts]
            return [(text.strip(), chance, cut) for text, (_, chance, cut) in zip(cuts, found, strict=True)]

        asked = [PromptTokens(prompt, []) for prompt in prompts]
        texts = self._parted(asked, lambda part, before: self._batched(part, before, answer))
        require_numbers([[chance] for _, chance, _ in texts], reader.name)
        return written_by_rank([texts])

    def read_back(self, prompts: Sequence[list[int]], texts: Sequence[str], end: str, longest: int) -> list[float]:
        """Return the log-likelihood of a text after each prompt, with its end, tokenised anew without the prompt.

        A text tokenised anew may have more than `longest` tokens, for which the context has no room: it is cut.
        """
        reader, front = self.reader, len(self.reader.tokens([""])[0])
        told = reader.tokens([f" {text}{end}" if text else end for text in texts])
        last = [] if end else list(reader.ends[:1])
        found = ([*tokens[front:], *last][:longest] for tokens in told)
        asked = [PromptTokens(prompt, [tokens]) for prompt, tokens in zip(prompts, found, strict=True)]
        return [score for (score,) in self.likelihoods(asked)]

    def reserve(self, search: TextSearch) -> int:
        """Return the maximum length of a text, which follows the prompt."""
        return search.longest

    def _margins(self, part: Sequence[PromptTokens], before: Earlier | None) -> list[list[float]]:
        cursor = DecoderCursor(self.reader, [one.context for one in part], before)
        return margins_of(cursor, [one.continuations for one in part])

    def _parted(
        self, asked: Sequence[PromptTokens], work: Callable[[list[PromptTokens], Earlier | None], list[R]]
    ) -> list[R]:
        """Run `work` on prompts with the cached beginning after it, and on others (cut, tokenised otherwise) whole."""
        self.read_beginning()
        found: dict[int, R] = {}
        shared = len(self.beginning)
        begun = [bool(shared) and self.begins(one) for one in asked]
        for kept in (True, False):
            rows = [row for row, same in enumerate(begun) if same == kept]
            part = [asked[row].behind(shared if kept else 0) for row in rows]
            found |= dict(zip(rows, work(part, self._kept if kept else None), strict=True)) if rows else {}
        return [found[row] for row in range(len(asked))]

    def begins(self, asked: PromptTokens) -> bool:
        """Return whether a prompt begins with the cached tokens."""
        shared = len(self.beginning)
        return len(asked.context) > shared and asked.context[:shared] == self.beginning

    @torch.inference_mode()
    def _batched(
        self,
        asked: Sequence[PromptTokens],
        before: Earlier | None,
        work: Callable[[list[PromptTokens], Earlier | None], list[R]],
    ) -> list[R]:
        sizes = np.array([len(one.context) for one in asked], dtype=np.int64)
        return in_batches(sizes, lambda rows: work([asked[row] for row in rows], before))
