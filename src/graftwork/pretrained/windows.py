"""Tokenisation of texts that are given as words; long texts are cut into overlapping windows.

A text longer than the backbone's maximum becomes several sequences, each behind the question, if there is one (Devlin
et al. 2019, arXiv:1810.04805, section 4.2). The state of a word is that of its first token, in the window where the
shorter of its two contexts is longest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from graftwork.core.backbone import WordPlaces
from graftwork.core.example import Example, answers_of

OVERLAP = 4  # windows overlap by 1 / OVERLAP of the maximum length
QUESTION = 2  # a question takes at most 1 / QUESTION of the maximum length


@dataclass(frozen=True)
class Windows:
    """Tokenised examples with words."""

    encodings: list[Encoding]  # sequence by sequence
    owned: NDArray[np.int64]  # (B,) sequences of each example
    words: WordPlaces
    cut: int  # questions that were cut


@dataclass(frozen=True)
class Windowing:
    """A tokenizer that cuts long texts, alone or after a question, into windows."""

    tokenizer: Tokenizer
    max_length: int
    question: bool

    @classmethod
    def of(cls, tokenizer: Tokenizer, max_length: int, question: bool) -> Windowing:
        """Build from a copy of `tokenizer`, so that the original is never changed."""
        own = Tokenizer.from_str(tokenizer.to_str())
        shared = max(0, min(max_length // OVERLAP, max_length // QUESTION - 8))
        own.enable_truncation(max_length, stride=shared, strategy="only_second" if question else "only_first")
        return cls(own, max_length, question)

    def read(self, examples: Sequence[Example]) -> Windows:
        """Tokenise word by word, each preceded by a space: byte-level tokenizers need it, others ignore it."""
        listed = [[f" {word}" for word in example.inputs["words"]] for example in examples]
        cut = 0
        if self.question:
            asked = [self._shortened(example.inputs["question"]) for example in examples]
            cut = sum(
                len(text) < len(example.inputs["question"]) for text, example in zip(asked, examples, strict=True)
            )
            given = [([text], words) for text, words in zip(asked, listed, strict=True)]
            encodings = self.tokenizer.encode_batch(given, is_pretokenized=True)
        else:
            encodings = self.tokenizer.encode_batch(listed, is_pretokenized=True)
        windows = [[encoding, *encoding.overflowing] for encoding in encodings]
        read = list(itertools.chain.from_iterable(map(self._read_words, windows)))
        counts = np.array([answers_of(example) for example in examples], dtype=np.int64)
        return Windows(
            list(itertools.chain.from_iterable(windows)),
            np.array([len(own) for own in windows], dtype=np.int64),
            WordPlaces([list(rows) for rows in read], [list(rows.values()) for rows in read], counts),
            cut,
        )

    def _shortened(self, question: str) -> str:
        """Cut the question so that it leaves room for the text."""
        limit = self.max_length // QUESTION
        if len(question.encode()) <= limit:
            return question
        tokens = self.tokenizer.encode("", question, add_special_tokens=False)  # the second of a pair may be too long
        return question if len(tokens.ids) <= limit else question[: tokens.offsets[limit - 1][1]]

    def _read_words(self, windows: Sequence[Encoding]) -> list[dict[int, int]]:
        """Return, per window of one example, token position -> row, for the rows whose state is taken there.

        Without a question row i is word i. With one it is word i - 1, and row 0 is "no answer", whose state is that of
        the first token of the first window.
        """
        starts = [self._words_of(window) for window in windows]
        kept: list[dict[int, int]] = [{} for _ in windows]
        if self.question:
            kept[0][0] = 0
        if len(windows) == 1:
            kept[0] |= {position: word + self.question for word, (position, _) in starts[0].items()}
            return kept
        best: dict[int, tuple[int, int]] = {}  # word -> (tokens on its shorter side, minus the window)
        for number, words in enumerate(starts):
            for word, (_, room) in words.items():
                best[word] = max(best.get(word, (-1, 0)), (room, -number))
        for word, (_, window) in best.items():
            kept[-window][starts[-window][word][0]] = word + self.question
        return [dict(sorted(rows.items())) for rows in kept]

    def _words_of(self, window: Encoding) -> dict[int, tuple[int, int]]:
        """Map each word to its first token's position in the window and the number of tokens on its shorter side."""
        part = int(self.question)
        own = [place for place, sequence in enumerate(window.sequence_ids) if sequence == part]
        found: dict[int, tuple[int, int]] = {}
        ids = window.word_ids
        for place in own:
            word = ids[place]
            if word is not None and word not in found:
                found[word] = (place, min(place - own[0], own[-1] - place))
        return found
