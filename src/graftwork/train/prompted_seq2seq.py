"""A prompted encoder-decoder: its encoder takes the prompt, its decoder scores or writes the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.core.language_model import ReadPrompts, ReadThenWrite, TokenTree
from graftwork.core.writing import TextSearch, WrittenTokens
from graftwork.targets.written_texts import Text, written_by_rank
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE, in_batches
from graftwork.train.batches import by_length
from graftwork.train.continuations import chances_among
from graftwork.train.greedy_writing import margins_of
from graftwork.train.prompt_tokens import PromptTokens, begins_another, refuse_no_token, require_numbers

R = TypeVar("R")


class PromptedSeq2Seq:
    """Implements `PromptedModel`. Nothing is cached: the encoder's states of a shot depend on the text after it."""

    beginning: list[int]

    def __init__(self, reader: ReadThenWrite):
        self.reader = reader
        self.beginning = []

    def begin(self, shared: str, prompt: str) -> None:
        """Do nothing: every prompt is encoded whole."""

    def read_beginning(self) -> None:
        """Do nothing: there is no cache."""

    def tokenise(self, prompts: Sequence[str], answers: Sequence[Sequence[str]], end: str) -> list[PromptTokens]:
        """Tokenise prompts and their answers. If one is a prefix of another, each gets the end token."""
        different = list(dict.fromkeys(chain.from_iterable(answers)))
        told = dict(zip(different, self.reader.answers(different), strict=True)) if different else {}
        found = []
        for context, ways in zip(self.reader.tokens(prompts), answers, strict=True):
            tokens = [told[way] for way in ways]
            if not context or not all(tokens):
                refuse_no_token("" if not context else ways[tokens.index([])], prompt=not context)
            ended = [[*way, self.reader.ends[0]] for way in tokens] if begins_another(tokens) else tokens
            found.append(PromptTokens(context, ended, apart=True))
        return found

    def likelihoods(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Return the log-likelihood of every answer to each prompt, which is encoded once."""
        found = self._batched(asked, lambda part, read: self._scored(read, [one.continuations for one in part]), True)
        require_numbers(found, self.reader.name)
        return found

    def _scored(self, read: ReadPrompts, answers: Sequence[Sequence[list[int]]]) -> list[list[float]]:
        """Return the log-likelihood of every answer to each encoded prompt. First tokens need no further pass."""
        trees = [TokenTree.of(ways) for ways in answers]
        firsts = chances_among(read.first.log_softmax(dim=1), [tree.wanted[0] for tree in trees])
        found = [{0: first} for first in firsts]
        paths = [(row, path) for row, tree in enumerate(trees) for path in tree.paths]
        sizes = np.array([len(path) for _, path in paths], dtype=np.int64)
        for batch in by_length(sizes + read.mask.shape[1], TOKENS_AT_ONCE, EXAMPLES_AT_ONCE):
            some = [paths[place] for place in batch]
            tokens = [[trees[row].tokens[node - 1] for node in path] for row, path in some]
            chances = self.reader.follow(read, [row for row, _ in some], tokens).log_softmax(dim=2)  # (n, U, V)
            for of_path, (row, path) in zip(chances, some, strict=True):
                wanted = [trees[row].wanted[node] for node in path]
                found[row] |= zip(path, chances_among(of_path[: len(path)], wanted), strict=True)
        return [tree.sums([of[node] for node in range(len(of))]) for tree, of in zip(trees, found, strict=True)]

    def margins(self, asked: Sequence[PromptTokens]) -> list[list[float]]:
        """Write one of the answers to each prompt."""

        def answer(part: Sequence[PromptTokens], read: ReadPrompts) -> list[list[float]]:
            return margins_of(partial(self.reader.next_logits, read), [one.continuations for one in part])

        found = self._batched(asked, answer)
        require_numbers(found, self.reader.name)
        return found

    def write(
        self, prompts: Sequence[list[int]], search: TextSearch, end: str, tell: Callable[[str], None] | None = None
    ) -> NDArray[Any]:
        """Write a text for each prompt, up to the end token."""
        reader = self.reader
        aloud = None if tell is None else lambda _, tokens: tell(reader.text_of(tokens).strip())

        def read_back(found: Sequence[WrittenTokens], read: ReadPrompts) -> list[Text]:
            told = zip(found, self._scored(read, [[one.tokens] for one in found]), strict=True)
            return [(reader.text_of(one.tokens).strip(), chance, not one.ended) for one, (chance,) in told]

        def answer(_: Sequence[PromptTokens], read: ReadPrompts) -> list[tuple[Text, ...]]:
            ranks = zip(*((one, *one.others) for one in reader.write(read, search, aloud)), strict=True)
            return list(zip(*(read_back(rank, read) for rank in ranks), strict=True))

        found = self._batched([PromptTokens(prompt, [], apart=True) for prompt in prompts], answer)
        require_numbers([[chance for _, chance, _ in texts] for texts in found], reader.name)
        return written_by_rank(list(zip(*found, strict=True)))

    def read_back(self, prompts: Sequence[list[int]], texts: Sequence[str], end: str, longest: int) -> list[float]:
        """Return the log-likelihood of a text for each prompt, with the end token, tokenised anew."""
        told = zip(prompts, self.reader.answers(texts), strict=True)
        asked = [
            PromptTokens(prompt, [[*tokens, self.reader.ends[0]][:longest]], apart=True) for prompt, tokens in told
        ]
        return [score for (score,) in self.likelihoods(asked)]

    def begins(self, asked: PromptTokens) -> bool:
        """Return False: no part of a prompt is cached."""
        return False

    def reserve(self, search: TextSearch) -> int:
        """Return 0: the written text takes no room in the prompt."""
        return 0

    @torch.inference_mode()
    def _batched(
        self,
        asked: Sequence[PromptTokens],
        work: Callable[[Sequence[PromptTokens], ReadPrompts], list[R]],
        buckets: bool = False,
    ) -> list[R]:
        """Run `work` on batches of prompts of near-equal lengths, each encoded once."""

        def answer(rows: Sequence[int]) -> list[R]:
            part = [asked[row] for row in rows]
            return work(part, self.reader.read([one.context for one in part]))

        return in_batches(np.array([len(one.context) for one in asked], dtype=np.int64), answer, buckets)
