"""Neighbours in context: the word occurrences in a text whose contextual vectors are nearest to that of a given word in
its sentence (Peters et al. 2018, arXiv:1802.05365, table 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain

import torch
from torch import Tensor
from torch.nn.functional import normalize

from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.core.gathered import gathered
from graftwork.errors import ConfigError
from graftwork.targets.words import cut_words
from graftwork.train.answer import states_up_to

SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
WORDS_AT_ONCE = 2048  # per forward pass, about
WORDS_SORTED = 32 * WORDS_AT_ONCE  # sentences of about as many words are sorted by length, so that few are padded
LONGEST = 100  # words of a sentence; longer ones are mostly lists and tables, and are left out

Sentence = tuple[str, ...]


@dataclass(frozen=True)
class Occurrence:
    """A word in its sentence."""

    cosine: float  # between its vector and the query's
    sentence: Sentence
    place: int  # index of the word in the sentence, from 0

    @property
    def word(self) -> str:
        """The word itself."""
        return self.sentence[self.place]

    @property
    def marked(self) -> str:
        """The sentence with the word in brackets."""
        words = [f"[{word}]" if place == self.place else word for place, word in enumerate(self.sentence)]
        return " ".join(words)


def sentences_of(texts: Iterable[str]) -> Iterator[Sentence]:
    """Yield the distinct sentences of these texts as tuples of words; those longer than `LONGEST` are left out."""
    seen = set()
    for text in texts:
        for words in map(cut_words, SENTENCE_ENDS.split(text)):
            if 0 < len(words) <= LONGEST and words not in seen:
                seen.add(words)
                yield words


def nearest_in_context(
    backbone: Backbone,
    word: str,
    sentence: str,
    sentences: Iterable[Sentence],
    *,
    count: int = 10,
    depth: int | None = None,
    same_word: bool = False,
) -> list[Occurrence]:
    """Return the `count` words of `sentences` nearest to `word` by cosine after `depth` blocks (default: all).

    With `same_word`, only occurrences of `word` itself are compared, ignoring case. Raises `ConfigError` if `word` is
    not in `sentence`, and for a depth that the backbone does not have.
    """
    own, depth = cut_words(sentence), backbone.card.blocks if depth is None else depth
    if not 0 <= depth <= backbone.card.blocks:
        raise ConfigError("no such depth", got=str(depth), expected=f"0 to {backbone.card.blocks}")
    if word.lower() not in map(str.lower, own):
        raise ConfigError(f"the word {word!r} is not in the sentence", got=" ".join(own), do="write it as it is there")
    place = [other.lower() for other in own].index(word.lower())
    asked = _vectors(backbone, [own], depth)[place]  # (D,)
    wanted = (one for one in sentences if one != own and (not same_word or _places(one, word)))
    found = chain.from_iterable(
        _compared(backbone, batch, depth, asked, word if same_word else None) for batch in _batches(wanted)
    )
    return nlargest(count, found, key=lambda one: one.cosine)


def _compared(
    backbone: Backbone, batch: Sequence[Sentence], depth: int, asked: Tensor, word: str | None
) -> Iterator[Occurrence]:
    """Yield every word of a batch, or every occurrence of `word`, with its cosine."""
    cosines = (_vectors(backbone, batch, depth) @ asked).tolist()
    start = 0
    for sentence in batch:
        for place in range(len(sentence)) if word is None else _places(sentence, word):
            yield Occurrence(cosines[start + place], sentence, place)
        start += len(sentence)


def _places(sentence: Sentence, word: str) -> list[int]:
    return [place for place, other in enumerate(sentence) if other.lower() == word.lower()]


@torch.inference_mode()
def _vectors(backbone: Backbone, batch: Sequence[Sentence], depth: int) -> Tensor:
    """Return (W, D) unit vectors of all words of these sentences, in order; zero for words the backbone leaves out."""
    encoded = backbone.encode([Example(f"sentence/{row}", {"words": words}) for row, words in enumerate(batch)])
    assert encoded.words is not None
    sequences = range(len(encoded.ids))
    inputs = backbone.collate(encoded, sequences)
    state = states_up_to(backbone, inputs, depth)[depth]
    read = backbone.pool(state, inputs["attention_mask"].bool(), inputs["words"]).float().cpu()  # (words read, D)
    starts = [0, *torch.tensor([len(words) for words in batch]).cumsum(0).tolist()]
    owners = [row for row, owned in enumerate(encoded.sequences_of.tolist()) for _ in range(owned)]
    rows = [starts[owner] + word for owner, seen in zip(owners, encoded.words.seen, strict=True) for word in seen]
    vectors = read.new_zeros(starts[-1], read.shape[1])
    vectors[rows] = normalize(read, dim=1)
    return vectors


def _batches(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Group sentences of near lengths into batches of about `WORDS_AT_ONCE` words."""
    for read in gathered(sentences, len, WORDS_SORTED):
        yield from gathered(sorted(read, key=len), len, WORDS_AT_ONCE)
