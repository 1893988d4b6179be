"""A reader of texts as sequences of spelled words: one position per word, and no unknown words."""

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

# Penn Treebank segmentation ("do n't", "it 's"), as in the training texts of the published networks.
WORD = r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\d+(?:[.,]\d+)*|\w+|[^\w\s]"
START, END = -1, -2  # ids of <S> and </S>, never a word's
BOUNDARIES = {"<S>": START, "</S>": END}
TOWERS = 2  # sequences per pair: the network never encodes two texts as one


def number_of(word: str) -> int:
    """Encode a word as one integer: its bytes after a leading byte 1, which preserves leading zeros.

    Two words have the same number only if no network can distinguish them.
    """
    return int.from_bytes(b"\1" + letters_of(word))


def symbols_of(number: int) -> list[int]:
    """Return the 50 symbols of the word with that number."""
    if number in (START, END):
        return sentence_start_ids() if number == START else sentence_end_ids()
    return spelled_ids(number.to_bytes((number.bit_length() + 7) // 8)[1:])


def symbols_of_words(numbers: Iterable[int]) -> NDArray[np.int64]:
    """Return the symbols (W, 50) of the words with these numbers."""
    return np.array([symbols_of(number) for number in numbers], dtype=np.int64).reshape(-1, WORD_LENGTH)


@dataclass(frozen=True)
class Cutting:
    """The segmentation of a text into words."""

    pieces: PreTokenizer
    normalizer: Normalizer | None = None  # also applied to the words of pre-segmented texts

    @classmethod
    def treebank(cls) -> Cutting:
        """Return the segmentation of the published networks."""
        return cls(Split(Regex(WORD), behavior="removed", invert=True))

    @classmethod
    def of_file(cls, path: Path) -> Cutting:
        """Read the segmentation of a tokenizer.json, ignoring its vocabulary."""
        tokenizer = read_tokenizer(path)
        return cls(tokenizer.pre_tokenizer or WhitespaceSplit(), tokenizer.normalizer)

    def words(self, text: str) -> list[str]:
        """Return the words of a text."""
        return [word for word, _ in self.pieces.pre_tokenize_str(self.plain(text))]

    def plain(self, text: str) -> str:
        """Return the normalised text."""
        return text if self.normalizer is None else str(self.normalizer.normalize_str(text))


@dataclass(frozen=True)
class SpelledReader:
    """A `Reader` of spelled words. An id is `number_of` a word; every sequence begins with <S> and ends with </S>."""

    cutting: Cutting
    max_length: int  # positions, boundaries included

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Encode one position per word; each text of a pair is a sequence. A text that is too long is cut.

        Examples with words are split into windows instead, and only a long question is cut.
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
        """Encode examples with words, one sequence per window; each window begins with the question, if any."""
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
        """Normalise the words, and separate a question's words by spaces."""
        inputs = dict(example.inputs) | {"words": tuple(map(self.cutting.plain, example.inputs["words"]))}
        if "question" in inputs:
            inputs["question"] = " ".join(self.cutting.words(inputs["question"]))
        return replace(example, inputs=inputs)

    def _ids(self, encoding: Encoding, example: Example) -> list[int]:
        """Return the ids of a window's tokens, by their spelling in the example."""
        parts = [[f" {word}" for word in example.inputs["words"]]]  # as in `Windowing`
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
        """A tokenizer without vocabulary, used only for word positions."""
        (start, end), unknown = BOUNDARIES, "<UNK>"
        tokenizer = Tokenizer(WordLevel({start: 0, end: 1, unknown: 2}, unk_token=unknown))
        tokenizer.pre_tokenizer = WhitespaceSplit()
        tokenizer.post_processor = TemplateProcessing(
            single=[start, "$A", end], pair=[start, "$A", end, "$B", end], special_tokens=[(start, 0), (end, 1)]
        )
        return tokenizer

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Return `characters` (S, T, characters), zero at the padding on the right."""
        real = real_tokens(encoded, sequences)
        numbers = list(chain.from_iterable(encoded.ids[i] for i in sequences))
        places = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
        characters = np.zeros((*real.shape, WORD_LENGTH), dtype=np.int64)
        characters[real] = symbols_of_words(places)[[places[number] for number in numbers]]
        return {"characters": torch.from_numpy(characters)} | marks(encoded, sequences, real)
