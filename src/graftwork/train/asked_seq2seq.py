"""An encoder-decoder that is asked: it reads the prompt with its encoder, and has the answers in its decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.language_model import ReadPrompts, ReadThenWrite
from graftwork.core.writing import TextSearch, WrittenTokens
from graftwork.targets.written_texts import Text, written_by_rank
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE, in_batches
from graftwork.train.asked import Asked, begins_another, require_numbers, without_tokens
from graftwork.train.batches import by_length
from graftwork.train.greedy_writing import margins_of

R = TypeVar("R")


class SeqCursor:
    """A `Cursor` behind prompts that an encoder has read. An answer is short: its decoder reads all of it anew."""

    def __init__(self, reader: ReadThenWrite, read: ReadPrompts):
        self.reader, self.read = reader, read

    def logits(self, rows: Sequence[int], written: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, V) fp32: the logits of the token behind all that each of these rows has written."""
        return self.reader.next_logits(self.read, rows, written)


class AskedSeq2Seq:
    """An `AskedModel`. Nothing is read beforehand: what the encoder makes of a shot depends on what follows it."""

    beginning: list[int]

    def __init__(self, reader: ReadThenWrite):
        self.reader = reader
        self.beginning = []

    def begin(self, shared: str, prompt: str) -> None:
        """Note nothing: it reads every prompt whole."""

    def read_beginning(self) -> None:
        """Read nothing."""

    def asked(self, prompts: Sequence[str], answers: Sequence[Sequence[str]], end: str) -> list[Asked]:
        """Tokenise prompts and their answers. Where one begins another, the token that ends texts follows each."""
        told = {text: tokens for ways in answers for text, tokens in zip(ways, self.reader.answers(ways), strict=True)}
        found = []
        for context, ways in zip(self.reader.tokens(prompts), answers, strict=True):
            tokens = [told[way] for way in ways]
            if not context or not all(tokens):
                without_tokens("" if not context else ways[tokens.index([])], prompt=not context)
            ended = [[*way, self.reader.ends[0]] for way in tokens] if begins_another(tokens) else tokens
            found.append(Asked(context, ended, apart=True))
        return found

    def likelihoods(self, asked: Sequence[Asked]) -> list[list[float]]:
        """Return log p of every answer to each prompt, which is read once."""

        def answer(part: Sequence[Asked], read: ReadPrompts) -> list[list[float]]:
            pairs = [(row, way) for row, one in enumerate(part) for way in range(len(one.continuations))]
            found = [[0.0] * len(one.continuations) for one in part]
            sizes = np.array([len(part[row].continuations[way]) for row, way in pairs], dtype=np.int64)
            for batch in by_length(sizes + read.mask.shape[1], TOKENS_AT_ONCE, EXAMPLES_AT_ONCE):
                some = [pairs[place] for place in batch]
                told = self.reader.chances(
                    read, [row for row, _ in some], [part[row].continuations[way] for row, way in some]
                )
                for (row, way), chance in zip(some, told, strict=True):
                    found[row][way] = chance
            return found

        found = self._batched(asked, answer)
        require_numbers(found, self.reader.name)
        return found

    def margins(self, asked: Sequence[Asked]) -> list[list[float]]:
        """Write one of the answers to each prompt."""

        def answer(part: Sequence[Asked], read: ReadPrompts) -> list[list[float]]:
            return margins_of(SeqCursor(self.reader, read), [one.continuations for one in part])

        found = self._batched(asked, answer)
        require_numbers(found, self.reader.name)
        return found

    def write(
        self, prompts: Sequence[list[int]], search: TextSearch, end: str, tell: Callable[[str], None] | None = None
    ) -> NDArray[Any]:
        """Write a text to each prompt, up to the token that ends texts."""
        reader = self.reader
        aloud = None if tell is None else lambda _, tokens: tell(reader.text_of(tokens).strip())

        def read_back(found: Sequence[WrittenTokens], read: ReadPrompts) -> list[Text]:
            chances = reader.chances(read, range(len(found)), [one.tokens for one in found])
            told = zip(found, chances, strict=True)
            return [(reader.text_of(one.tokens).strip(), chance, not one.ended) for one, chance in told]

        def answer(_: Sequence[Asked], read: ReadPrompts) -> list[tuple[Text, ...]]:
            ranks = zip(*((one, *one.others) for one in reader.write(read, search, aloud)), strict=True)
            return list(zip(*(read_back(rank, read) for rank in ranks), strict=True))

        found = self._batched([Asked(prompt, [], apart=True) for prompt in prompts], answer)
        require_numbers([[chance for _, chance, _ in texts] for texts in found], reader.name)
        return written_by_rank(list(zip(*found, strict=True)))

    def read_back(self, prompts: Sequence[list[int]], texts: Sequence[str], end: str, longest: int) -> list[float]:
        """Return log p of a text to each prompt, with the token that ends texts, tokenised anew."""
        told = zip(prompts, self.reader.answers(texts), strict=True)
        asked = [Asked(prompt, [[*tokens, self.reader.ends[0]][:longest]], apart=True) for prompt, tokens in told]
        return [score for (score,) in self.likelihoods(asked)]

    def begins(self, asked: Asked) -> bool:
        """Return False: no part of a prompt was read before."""
        return False

    def reserve(self, search: TextSearch) -> int:
        """Return 0: what is written stands apart from the prompt."""
        return 0

    @torch.inference_mode()
    def _batched(self, asked: Sequence[Asked], work: Callable[[Sequence[Asked], ReadPrompts], list[R]]) -> list[R]:
        """Work on batches of prompts of near-equal lengths, each read once by the encoder."""

        def answer(rows: Sequence[int]) -> list[R]:
            part = [asked[row] for row in rows]
            return work(part, self.reader.read([one.context for one in part]))

        return in_batches(np.array([len(one.context) for one in asked], dtype=np.int64), answer)
