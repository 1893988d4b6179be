"""Texts as sequences of spelled words: each is one position, whatever its letters, and none is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer, Split, WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from graftwork.core.backbone import Encoded, Inputs
from graftwork.core.example import Example, texts_apart
from graftwork.nn.character_ids import WORD_LENGTH, letters_of, sentence_end_ids, sentence_start_ids, spelled_ids
from graftwork.pretrained.tokenising import marks, real_tokens
from graftwork.pretrained.tokenizer_file import read_tokenizer
from graftwork.pretrained.windows import Windowing

# As the Penn Treebank cuts English ("do n't", "it 's"), and as the texts are cut that the published networks have read.
WORD = r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\d+(?:[.,]\d+)*|\w+|[^\w\s]"
START, END = -1, -2  # the numbers of <S> and </S>, which are no word's
BOUNDARIES = {"<S>": START, "</S>": END}
TOWERS = 2  # sequences that a pair becomes: the network never reads two texts as one


def number_of(word: str) -> int:
    """A word as one number: its letters behind a 1, which keeps leading zeros.

    Words that no network can tell apart have one number, and no others do.
    """
    return int.from_bytes(b"\1" + letters_of(word))


def symbols_of(number: int) -> list[int]:
    """The 50 symbols of the word of that number."""
    if number in (START, END):
        return sentence_start_ids() if number == START else sentence_end_ids()
    return spelled_ids(number.to_bytes((number.bit_length() + 7) // 8)[1:])


def spelled(numbers: Iterable[int]) -> NDArray[np.int64]:
    """(W, 50) symbols of the words of these numbers."""
    return np.array([symbols_of(number) for number in numbers], dtype=np.int64).reshape(-1, WORD_LENGTH)


@dataclass(frozen=True)
class Cutting:
    """How a text becomes words."""

    pieces: PreTokenizer
    normalizer: Normalizer | None = None  # applied to words that are given, too

    @classmethod
    def treebank(cls) -> Cutting:
        """That of the published networks."""
        return cls(Split(Regex(WORD), behavior="removed", invert=True))

    @classmethod
    def of_file(cls, path: Path) -> Cutting:
        """That of a tokenizer.json, whatever its vocabulary."""
        tokenizer = read_tokenizer(path)
        return cls(tokenizer.pre_tokenizer or WhitespaceSplit(), tokenizer.normalizer)

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        return [word for word, _ in self.pieces.pre_tokenize_str(self.plain(text))]

    def plain(self, text: str) -> str:
        """Normalised."""
        return text if self.normalizer is None else str(self.normalizer.normalize_str(text))


@dataclass(frozen=True)
class SpelledReader:
    """Implements `Reader`. An id is a word as a number, `number_of`; <S> and </S> stand round every sequence."""

    cutting: Cutting
    max_length: int  # positions, boundaries included

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """A position per word; of a pair each text is a sequence. A text that is too long is cut.

        Of examples with words nothing is cut but a question: they have windows.
        """
        given = examples[0].inputs if examples else {}
        if "words" in given:
            return self._encode_words(examples)
        read = [[self.cutting.words(text) for text in texts_apart(example)] for example in examples]
        most = self.max_length - len(BOUNDARIES)
        ids = [[START, *map(number_of, words[:most]), END] for texts in read for words in texts]
        return Encoded(
            ids=ids,
            types=[[0] * len(own) for own in ids],
            towers=1 if "text" in given and "choices" not in given else TOWERS,
            cut=sum(any(len(words) > most for words in texts) for texts in read),
            owned=np.array([len(texts) for texts in read], dtype=np.int64) if "choices" in given else None,
        )

    def _encode_words(self, examples: Sequence[Example]) -> Encoded:
        """As many sequences each as it has windows; a question stands before its text, in each of them."""
        asked = "question" in examples[0].inputs
        plain = [self._plain(example) for example in examples]
        found = (self._questions if asked else self._texts).read(plain)
        owners = np.repeat(np.arange(len(examples)), found.owned)
        ids = [self._ids(encoding, plain[owner]) for encoding, owner in zip(found.encodings, owners, strict=True)]
        return Encoded(
            ids=ids,
            types=[[0] * len(own) for own in ids],
            towers=1,
            cut=found.cut,
            words=found.words,
            owned=found.owned if int(found.owned.max()) > 1 else None,
        )

    def _plain(self, example: Example) -> Example:
        """Words normalised, and a question with a space between its words."""
        inputs = dict(example.inputs) | {"words": tuple(map(self.cutting.plain, example.inputs["words"]))}
        if "question" in inputs:
            inputs["question"] = " ".join(self.cutting.words(inputs["question"]))
        return replace(example, inputs=inputs)

    def _ids(self, encoding: Encoding, example: Example) -> list[int]:
        """A window's tokens by the letters that they have in the example."""
        parts = [[f" {word}" for word in example.inputs["words"]]]  # as `Windowing` has them
        if "question" in example.inputs:
            parts = [[example.inputs["question"]], *parts]
        places = zip(encoding.tokens, encoding.sequence_ids, encoding.word_ids, encoding.offsets, strict=True)
        return [
            BOUNDARIES[token] if part is None or word is None else number_of(parts[part][word][start:stop])
            for token, part, word, (start, stop) in places
        ]

    @cached_property
    def _texts(self) -> Windowing:
        return Windowing.of(self._word_by_word, self.max_length, question=False)

    @cached_property
    def _questions(self) -> Windowing:
        return Windowing.of(self._word_by_word, self.max_length, question=True)

    @property
    def _word_by_word(self) -> Tokenizer:
        """Knows no word, only where each is."""
        (start, end), unknown = BOUNDARIES, "<UNK>"
        tokenizer = Tokenizer(WordLevel({start: 0, end: 1, unknown: 2}, unk_token=unknown))
        tokenizer.pre_tokenizer = WhitespaceSplit()
        tokenizer.post_processor = TemplateProcessing(
            single=[start, "$A", end], pair=[start, "$A", end, "$B", end], special_tokens=[(start, 0), (end, 1)]
        )
        return tokenizer

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """`characters` (S, T, characters), zero where padding is, behind each sequence."""
        real = real_tokens(encoded, sequences)
        numbers = list(chain.from_iterable(encoded.ids[i] for i in sequences))
        places = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
        characters = np.zeros((*real.shape, WORD_LENGTH), dtype=np.int64)
        characters[real] = spelled(places)[[places[number] for number in numbers]]
        return {"characters": torch.from_numpy(characters)} | marks(encoded, sequences, real)
