"""A reader of texts: tokenises singles, pairs and words in windows, and pads batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from graftwork.core.backbone import Encoded, Inputs, towers_of
from graftwork.core.example import Example, texts_apart
from graftwork.pretrained.windows import Windowing

if TYPE_CHECKING:
    from torch import Tensor

TEXTS_AT_ONCE = 4096  # per tokenizer call: an encoding takes ten times the memory of its tokens


@dataclass
class TextReader:
    """A `Reader` of texts. The tokenizer must truncate at `max_length` and not pad."""

    tokenizer: Tokenizer
    pad_id: int
    max_length: int  # T at most, special tokens included
    towers: int = 1  # sequences that a pair becomes
    token_types: bool = False  # True if the network takes `token_type_ids`
    before: str = ""  # prefix of the first text of every example without words

    def __deepcopy__(self, memo: dict[int, Any]) -> TextReader:
        """Return itself: it has no state to train."""
        return self

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise. A pair is `towers` sequences, a single text one; each of `choices` forms a pair with the text.

        An example with words becomes as many windows as its text needs.
        """
        if examples and "words" in examples[0].inputs:
            return self._encode_words(examples)
        towers = towers_of(self.towers, examples[0]) if examples else 1
        read = [_texts(example, towers, self.before) for example in examples]
        texts = list(chain.from_iterable(read))
        owned = np.array([len(own) for own in read], dtype=np.int64)
        ids, types, too_long, unknown, known = [], [], [], 0, 0
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            for encoding in self.tokenizer.encode_batch_fast(texts[start : start + TEXTS_AT_ONCE]):
                ids.append(encoding.ids or [self.pad_id])
                types.append(encoding.type_ids or [0])
                too_long.append(bool(encoding.overflowing))
                unknown += encoding.ids.count(self._unknown)
                known += len(encoding.ids) - self._specials
        return Encoded(
            ids=ids,
            types=types,
            towers=towers,
            cut=int(np.logical_or.reduceat(too_long, np.cumsum(owned) - owned).sum()) if examples else 0,
            owned=owned if examples and "choices" in examples[0].inputs else None,
            unknown=unknown,
            unknown_share=min(1.0, unknown / max(1, known)),
        )

    def _encode_words(self, examples: Sequence[Example]) -> Encoded:
        """Encode examples with words, one sequence per window."""
        found = (self._questions if "question" in examples[0].inputs else self._texts).read(examples)
        unknown = sum(encoding.ids.count(self._unknown) for encoding in found.encodings)
        known = sum(len(encoding.ids) - self._specials for encoding in found.encodings)
        return Encoded(
            ids=[encoding.ids or [self.pad_id] for encoding in found.encodings],
            types=[encoding.type_ids or [0] for encoding in found.encodings],
            towers=1,
            cut=found.cut,
            words=found.words,
            owned=found.owned if int(found.owned.max()) > 1 else None,
            unknown=unknown,
            unknown_share=min(1.0, unknown / max(1, known)),
        )

    @cached_property
    def _unknown(self) -> int:
        """The id of the token for text that the tokenizer has no other for; -1 if it has no such token."""
        named = getattr(self.tokenizer.model, "unk_token", None)
        found = [self.tokenizer.token_to_id(token) for token in (named, "<unk>", "[UNK]") if token]
        return next((number for number in found if number is not None), -1)

    @cached_property
    def _specials(self) -> int:
        """The number of special tokens around a text."""
        return self.tokenizer.num_special_tokens_to_add(False)

    @cached_property
    def _texts(self) -> Windowing:
        return Windowing.of(self.tokenizer, self.max_length, question=False)

    @cached_property
    def _questions(self) -> Windowing:
        return Windowing.of(self.tokenizer, self.max_length, question=True)

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Return a batch as tensors (S, T), padded on the right, so that positions do not depend on the batch."""
        import torch

        return {name: torch.from_numpy(rows) for name, rows in self.arrays(encoded, sequences).items()}

    def arrays(self, encoded: Encoded, sequences: Sequence[int]) -> dict[str, NDArray[Any]]:
        """As `collate`, in arrays (S, T), without torch."""
        real = real_tokens(encoded, sequences)
        inputs = {"input_ids": padded_rows([encoded.ids[i] for i in sequences], real, self.pad_id)}
        if self.token_types:
            inputs["token_type_ids"] = padded_rows([encoded.types[i] for i in sequences], real, 0)
        return inputs | masks_of(encoded, sequences, real)


def real_tokens(encoded: Encoded, sequences: Sequence[int]) -> NDArray[np.bool_]:
    """Return (S, T), True at a token, False at padding on the right."""
    lengths = np.array([len(encoded.ids[i]) for i in sequences])
    real: NDArray[np.bool_] = np.arange(int(lengths.max())) < lengths[:, None]
    return real


def marks(encoded: Encoded, sequences: Sequence[int], real: NDArray[np.bool_]) -> Inputs:
    """As `masks_of`, in tensors."""
    import torch

    return {name: torch.from_numpy(rows) for name, rows in masks_of(encoded, sequences, real).items()}


def masks_of(encoded: Encoded, sequences: Sequence[int], real: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Return `attention_mask` (S, T) and, for examples with words, `words` (S, T), True at first tokens."""
    inputs: dict[str, NDArray[Any]] = {"attention_mask": real.astype(np.int64)}
    if encoded.words is not None:
        begins = np.zeros(real.shape, dtype=bool)
        for row, sequence in enumerate(sequences):
            begins[row, encoded.words.first[sequence]] = True
        inputs["words"] = begins
    return inputs


def padded(rows: Sequence[list[int]], real: NDArray[np.bool_], filler: int) -> Tensor:
    """As `padded_rows`, in a tensor."""
    import torch

    return torch.from_numpy(padded_rows(rows, real, filler))


def padded_rows(rows: Sequence[list[int]], real: NDArray[np.bool_], filler: int) -> NDArray[np.int64]:
    """Return (S, T) int64 with `rows` placed where `real` (S, T) is True, `filler` elsewhere."""
    batch = np.full(real.shape, filler, dtype=np.int64)
    batch[real] = np.fromiter(chain.from_iterable(rows), np.int64, int(real.sum()))
    return batch


def _texts(example: Example, towers: int, before: str) -> list[str | tuple[str, str]]:
    """Return the tokenizer inputs of an example, sequence by sequence."""
    first, *others = texts_apart(example)
    texts = [before + first, *others]
    if towers > 1 or len(texts) == 1:
        return list(texts)
    return list(zip(texts[::2], texts[1::2], strict=True))
