"""A backbone: a pretrained network plus the one right way to feed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.media import Media
from graftwork.core.ragged import Numbers, Ragged, places

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Inputs = dict[str, "Tensor"]  # each (S, T): what a network's forward takes, and "words": True where a word begins
ROLES = (
    "attention.query", "attention.key", "attention.value", "attention.qkv", "attention.output", "mlp.up", "mlp.down",
    "norm", "embedding", "block",
)  # fmt: skip
POOLINGS = {  # how a sequence is read -> how many states are joined for it
    "mean": 1,  # over the real positions
    "mean of words": 1,  # over those between the first and the last
    "first": 1,
    "last": 1,
    "first two": 1,  # the mean of both
    "concat": 3,  # [last; maximum; mean] of Howard & Ruder 2018, arXiv:1801.06146
}
WORDS_KEPT = 20_000  # of a split, about: those whose features are kept for convex fits


@dataclass(frozen=True)
class BackboneCard:
    """What is known of a backbone without running it."""

    id: str  # as the user names it: "minilm", "hf:/models/bert", "random:minilm"
    revision: str  # sha256 over weights, configuration and tokenizer: the backbone's part of a run's identity
    family: str  # "bert", "gpt2", …
    modality: str  # "text", "image" or "sound": what it reads
    width: int  # D
    blocks: int  # L
    parameters: int
    pooling: str  # one of POOLINGS: how the network was trained to be read
    max_length: int  # T at most, special tokens included
    towers: int  # sequences that a pair of texts becomes: 1 = joint encoding, 2 = each text by itself
    shared_blocks: bool  # every block has the same weights (ALBERT): they can't be frozen apart
    shapes: tuple[tuple[int, int], ...] = ()  # (T, D) at every depth, where they change; T 0: as many as are read
    rate: int = 0  # samples a second, where it reads sounds
    lacks: tuple[str, ...] = ()  # roles that it has no site for, where that is known
    biased: bool = True  # whether some of its linear maps or norms have a bias

    @property
    def widths(self) -> tuple[int, ...]:
        """(L + 1,) D at every depth."""
        return tuple(width for _, width in self.shapes) or (self.width,) * (self.blocks + 1)

    def read_widths(self, words: bool) -> tuple[int, ...]:
        """(L + 1,) R at every depth: how many numbers are read of a sequence, or of each of its words."""
        joined = 1 if words else POOLINGS[self.pooling]
        return tuple(joined * width for width in self.widths)


@dataclass(frozen=True)
class WordPlaces:
    """Where the words of tokenised examples are: each is read at its first token, in one of the example's sequences.

    A word that the tokenizer drops has no token: it is not seen. Of a question about words the first row is no word: it
    is read at the first token of all.
    """

    first: list[list[int]]  # per sequence, the position of each seen word's first token, in order
    seen: list[list[int]]  # the same lengths: which of the example's rows that is
    counts: NDArray[np.int64]  # (B,) rows of each example, seen or not

    @property
    def unseen(self) -> int:
        """How many words have no token."""
        return int(self.counts.sum()) - sum(map(len, self.seen))


@dataclass(frozen=True)
class Encoded:
    """Tokenised examples. Each owns `towers` sequences, or as many as `owned` says: windows of a long text, or choices.

    A network is read once per sequence or, where there are `words`, once per word that is seen. What is read becomes
    features, `towers` of them joined, and what the head makes of them logits; `answered` says which targets they
    answer: one of each example, or of each of its words or choices.
    """

    ids: list[list[int]]  # per sequence, special tokens included
    types: list[list[int]]  # token types (segments), same lengths
    towers: int
    cut: int  # examples that were longer than the backbone takes
    words: WordPlaces | None = None
    owned: NDArray[np.int64] | None = None  # (B,) sequences of each example, a multiple of `towers`
    media: tuple[Media, ...] | None = None  # of images and sounds one per sequence, whose ids then only say its length
    unknown: int = 0  # words that a vocabulary of whole words lacks

    def __len__(self) -> int:
        """B, the number of examples."""
        return len(self.ids) // self.towers if self.owned is None else len(self.owned)

    @cached_property
    def sequences_of(self) -> NDArray[np.int64]:
        """(B,) how many sequences each example owns."""
        return np.full(len(self), self.towers, dtype=np.int64) if self.owned is None else self.owned

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(B,) the first sequence of each example."""
        return np.cumsum(self.sequences_of) - self.sequences_of

    @cached_property
    def answers(self) -> NDArray[np.int64] | None:
        """(B,) how many rows of targets each example has: its words or choices; None where each has one answer."""
        if self.words is not None:
            return self.words.counts
        return None if self.owned is None else self.owned // self.towers

    def sequences(self, examples: Sequence[int] | NDArray[np.int64]) -> list[int]:
        """The sequences of these examples, in order."""
        chosen = np.asarray(examples, dtype=np.int64)
        listed: list[int] = places(self.starts[chosen], self.sequences_of[chosen]).tolist()
        return listed

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(B,) tokens of each example's longest sequence: what batches are bucketed by."""
        per_sequence = np.array([len(ids) for ids in self.ids], dtype=np.int64)
        longest: NDArray[np.int64] = np.maximum.reduceat(per_sequence, self.starts) if len(self) else per_sequence
        return longest

    def some(self, examples: Sequence[int]) -> Encoded:
        """These examples alone, in this order."""
        sequences, words = self.sequences(examples), self.words
        return Encoded(
            ids=[self.ids[i] for i in sequences],
            types=[self.types[i] for i in sequences],
            towers=self.towers,
            cut=0,
            words=words
            and WordPlaces(
                [words.first[i] for i in sequences], [words.seen[i] for i in sequences], words.counts[examples]
            ),
            owned=None if self.owned is None else self.owned[examples],
            media=self.media and tuple(self.media[i] for i in sequences),
        )

    @property
    def read(self) -> NDArray[np.int64]:
        """(S,) how often each sequence is read."""
        if self.words is None:
            return np.ones(len(self.ids), dtype=np.int64)
        return np.array([len(first) for first in self.words.first], dtype=np.int64)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """(S,) the first sequence of the same tokens, itself or an earlier one; itself of words, images and sounds."""
        if self.words is not None or self.media is not None:
            return np.arange(len(self.ids))
        known: dict[tuple[Sequence[int], ...], int] = {}
        told = zip(map(tuple, self.ids), map(tuple, self.types), strict=True)
        return np.array([known.setdefault(tokens, number) for number, tokens in enumerate(told)], dtype=np.int64)

    @property
    def sampled(self) -> NDArray[np.int64]:
        """The examples whose features are kept: all, or of many words every second, third, … example."""
        step = 1 if self.words is None else max(1, -(-int(self.words.counts.sum()) // WORDS_KEPT))
        return np.arange(0, len(self), step, dtype=np.int64)

    @property
    def kept(self) -> int:
        """How many features are kept of every block: one per sequence, or per seen word of the `sampled` examples."""
        return int(self.read[self.sequences(self.sampled)].sum())

    @property
    def rows_kept(self) -> NDArray[np.int64]:
        """How many joined features are kept of each of the `sampled` examples."""
        of_examples: NDArray[np.int64] = np.add.reduceat(self.read, self.starts)[self.sampled] // self.towers
        return of_examples

    def answered(self, examples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which rows of the split's targets, end to end, the logits of a batch of these examples answer, in order."""
        if self.answers is None:
            return examples
        starts = np.cumsum(self.answers) - self.answers
        if self.words is None:
            return places(starts[examples], self.answers[examples])
        owners = np.repeat(examples, self.sequences_of[examples])
        seen = [np.array(self.words.seen[i], dtype=np.int64) for i in self.sequences(examples)]
        return np.concatenate([starts[i] + words for i, words in zip(owners, seen, strict=True)])

    def whole(self, logits: NDArray[np.float64], examples: NDArray[np.int64], blind: Any = None) -> Numbers:
        """The logits of all examples in their order, from those of these examples in theirs.

        What they leave out (words that are not seen) is answered by `blind` (C,), which never looks at the input.
        """
        if self.answers is None:
            return logits[np.argsort(examples, kind="stable")]
        flat = np.zeros((int(self.answers.sum()), logits.shape[1]))
        if self.words is not None and blind is not None:
            flat[:] = np.asarray(blind, dtype=np.float64)
        flat[self.answered(examples)] = logits
        return Ragged(flat, self.answers)


@dataclass(slots=True)
class Features:
    """What every backbone offers to every head."""

    sequence: Tensor  # (S, T, D); empty where the texts of pairs went through in more than one bucket
    mask: Tensor  # (S, T) bool, True at a real token
    pooled: Tensor  # what is read: (S, R) from a backbone, (B, P) once towers are joined; (W, D) of words


class Backbone(Protocol):
    """Frozen unless a method takes its own copy.

    Roles for `sites`: attention.query, attention.key, attention.value, attention.qkv (fused), attention.output,
    mlp.up, mlp.down, norm, embedding, block. Methods speak roles, backbones know names. A network that norms the sum
    behind a part may name these norms too: attention.norm, mlp.norm.
    """

    card: BackboneCard
    module: nn.Module

    @property
    def rows_apart(self) -> bool:
        """Whether every site takes the sequences of a batch first and each by itself: (S, …) or (S x n, …)."""

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise, cutting at `card.max_length`. Of examples with `words` nothing is cut: they are read in windows."""

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Pad these sequences to one length, on the device of the weights: each (S, T)."""

    def states(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """L + 1 tensors (S, T, D): [k] enters block k; [L] is the network's output, final norm included."""

    def features(self, inputs: Inputs, start: int = 0, entering: Tensor | None = None) -> Features:
        """Run blocks `start … L - 1` on `entering` (S, T, D), the `states` at depth `start`, and pool.

        With `start` 0 the embeddings are computed too; with `start` L nothing but pooling is left to do.
        """

    def pool(self, sequence: Tensor, mask: Tensor, words: Tensor | None = None) -> Tensor:
        """(S, T, D), (S, T) -> (S, R), the way the network was trained to be read; with `words` (S, T) -> (W, D)."""

    def sites(self, role: str) -> dict[str, nn.Module]:
        """Qualified name -> submodule, in network order; empty when the network has none of that role."""

    def copy(self) -> Backbone:
        """A private copy whose weights may be trained."""

    def twin(self) -> Backbone:
        """The same weights under modules of its own: what is hooked onto these reaches no other user of the weights."""


@runtime_checkable
class PlacesParts(Protocol):
    """A backbone that says at which depth its parts outside the blocks work, where they are registered elsewhere."""

    @property
    def learns_like(self) -> Mapping[str, str]:
        """Path of such a part -> that of a part at its depth, at whose learning rate it learns. Empty where none is."""


def learns_like(backbone: Backbone) -> Mapping[str, str]:
    """What it says of its parts outside the blocks, if it does."""
    return backbone.learns_like if isinstance(backbone, PlacesParts) else {}


@runtime_checkable
class StopsEarly(Protocol):
    """A backbone that need not run the blocks above those whose states are wanted."""

    def states_up_to(self, inputs: Inputs, depth: int) -> tuple[Tensor, ...]:
        """The first `depth + 1` of `states`, 0 <= depth <= L."""


@runtime_checkable
class Augments(Protocol):
    """A backbone that can show an example otherwise every epoch."""

    @property
    def augmentation(self) -> str:
        """What it does, in words; empty where it does nothing."""

    def augmented(self, encoded: Encoded, sequences: Sequence[int], seed: int, epoch: int) -> Inputs:
        """As `collate`; what is shown of an example is a pure function of (seed, epoch, its number)."""


def towers_of(towers: int, example: Example) -> int:
    """Sequences that are joined to one reading of such examples: those of a pair of texts `towers`, else 1."""
    return towers if "text_a" in example.inputs or "choices" in example.inputs else 1


def lacking(card: BackboneCard | None, roles: Sequence[str]) -> str:
    """Why a method that hangs on all of `roles` can't be used, or an empty string."""
    missing = [role for role in roles if card is not None and role in card.lacks]
    return f"the blocks of {card.id} have no {', '.join(missing)} to adapt" if card is not None and missing else ""


def real_positions(mask: Tensor, state: Tensor) -> Tensor:
    """(S, T) mask of the inputs -> (S, T') of `state` (S, T', D).

    A network whose blocks change the number of positions takes no padding, so all of them are real.
    """
    return mask if mask.shape[1] == state.shape[1] else mask.new_ones(state.shape[:2])


def device_of(network: nn.Module) -> torch.device:
    """Where a network computes: on the device of its weights, which are all on one."""
    return next(network.parameters()).device


class BackboneFamily(Protocol):
    """What `backbones/NAME.py` registers: opens backbones of one family."""

    model_types: tuple[str, ...]  # values of "model_type" in a transformers config.json that it takes

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> Backbone:
        """Load `source` (a folder or hub name; "" where the family has one network only).

        With `random_seed` the same architecture with fresh weights. Raises `ConfigError` or `StorageError`.
        """
