"""A backbone: a pretrained network plus the input encoding that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.media import Media
from graftwork.core.ragged import Numbers, Ragged, places

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from graftwork.core.language_model import NextTokenModel

Inputs = dict[str, "Tensor"]  # each (S, T): the network's arguments, and "words": True at the first token of a word
ROLES = (
    "attention.query", "attention.key", "attention.value", "attention.qkv", "attention.output", "mlp.up", "mlp.down",
    "attention", "norm", "embedding", "block",
)  # fmt: skip
POOLINGS = {  # pooling of a sequence -> number of states concatenated
    "mean": 1,  # over the real positions
    "mean of words": 1,  # over the positions between the first and the last
    "first": 1,
    "last": 1,
    "first two": 1,  # the mean of both
    "concat": 3,  # [last; maximum; mean] of Howard & Ruder 2018, arXiv:1801.06146
}
WORDS_KEPT = 20_000  # approximate number of words per split whose features are kept for convex fits


@dataclass(frozen=True)
class BackboneCard:
    """Properties of a backbone that are known without running it."""

    id: str  # as the user names it: "minilm", "hf:/models/bert", "random:minilm"
    revision: str  # sha256 over weights, configuration and tokeniser: the backbone's part of a run's identity
    family: str  # "bert", "gpt2", …
    modality: str  # type of input: "text", "image" or "sound"
    width: int  # D
    blocks: int  # L
    parameters: int
    pooling: str  # one of POOLINGS: the pooling that the network was trained with
    max_length: int  # maximum T, special tokens included
    towers: int  # sequences per pair of texts: 1 = joint encoding, 2 = each text separately
    shared_blocks: bool  # every block has the same weights (ALBERT), so blocks can't be frozen individually
    shapes: tuple[tuple[int, int], ...] = ()  # (T, D) at every depth, if they vary; T 0: the length of the input
    rate: int = 0  # samples per second, if it reads sounds
    lacks: tuple[str, ...] = ()  # roles without a site, as far as known
    biased: bool = True  # True if any of its linear layers or norms has a bias
    continues: bool = False  # True if it is a left-to-right language model with its head: `ContinuesTexts`
    writes: bool = False  # True if it writes texts: `core.writing.TextWriter`

    @property
    def widths(self) -> tuple[int, ...]:
        """(L + 1,) D at every depth."""
        return tuple(width for _, width in self.shapes) or (self.width,) * (self.blocks + 1)

    def read_widths(self, words: bool) -> tuple[int, ...]:
        """Return (L + 1,): R, the width of the features pooled per sequence, or per word, at every depth."""
        joined = 1 if words else POOLINGS[self.pooling]
        return tuple(joined * width for width in self.widths)


@dataclass(frozen=True)
class WordPlaces:
    """Positions of the words of tokenised examples: a word's features are those of its first token, in one sequence.

    A word that the tokeniser drops has no token and is unseen. In a question about a passage the first row is not a
    word but "no answer", whose features are those of the first token of a sequence.
    """

    first: list[list[int]]  # per sequence, the position of each seen word's first token, in order
    seen: list[list[int]]  # same lengths: the row of each of these words in its example
    counts: NDArray[np.int64]  # (B,) rows per example, seen or unseen

    @property
    def unseen(self) -> int:
        """The number of words without a token."""
        return int(self.counts.sum()) - sum(map(len, self.seen))


@dataclass(frozen=True)
class Encoded:
    """Tokenised examples. Each has `towers` sequences, or the number in `owned`: windows of a long text, or choices.

    The network's states are pooled once per sequence or, if there are `words`, once per seen word. Every `towers`
    pooled vectors are joined to one vector, for which the head computes a row of logits; `answered` maps these rows to
    the rows of targets: one per example, or one per word or choice.
    """

    ids: list[list[int]]  # per sequence, special tokens included
    types: list[list[int]]  # token types (segments), same lengths as `ids`
    towers: int
    cut: int  # number of truncated examples
    words: WordPlaces | None = None
    owned: NDArray[np.int64] | None = None  # (B,) sequences per example, a multiple of `towers`
    media: tuple[Media, ...] | None = None  # images or sounds, one per sequence; `ids` then only gives its length
    unknown: int = 0  # words without a vector, for a vocabulary of whole words; else tokens that stand for unknown text
    unknown_share: float = 0.0  # share of such tokens among all but the special ones, 0 … 1

    def __len__(self) -> int:
        """Return B, the number of examples."""
        return len(self.ids) // self.towers if self.owned is None else len(self.owned)

    @cached_property
    def sequences_of(self) -> NDArray[np.int64]:
        """(B,) number of sequences per example."""
        return np.full(len(self), self.towers, dtype=np.int64) if self.owned is None else self.owned

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(B,) index of the first sequence of each example."""
        return np.cumsum(self.sequences_of) - self.sequences_of

    @cached_property
    def answers(self) -> NDArray[np.int64] | None:
        """(B,) rows of targets per example: its words or choices; None if every example has one target."""
        if self.words is not None:
            return self.words.counts
        return None if self.owned is None else self.owned // self.towers

    def sequences(self, examples: Sequence[int] | NDArray[np.int64]) -> list[int]:
        """Indices of the sequences of these examples, in order."""
        chosen = np.asarray(examples, dtype=np.int64)
        listed: list[int] = places(self.starts[chosen], self.sequences_of[chosen]).tolist()
        return listed

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(B,) tokens of each example's longest sequence, by which batches are bucketed."""
        per_sequence = np.array([len(ids) for ids in self.ids], dtype=np.int64)
        longest: NDArray[np.int64] = np.maximum.reduceat(per_sequence, self.starts) if len(self) else per_sequence
        return longest

    def some(self, examples: Sequence[int]) -> Encoded:
        """Select these examples, in this order."""
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
        """(S,) number of pooled vectors per sequence."""
        if self.words is None:
            return np.ones(len(self.ids), dtype=np.int64)
        return np.array([len(first) for first in self.words.first], dtype=np.int64)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """(S,) index of the first sequence with the same tokens; its own index if there are words, images or sounds."""
        if self.words is not None or self.media is not None:
            return np.arange(len(self.ids))
        known: dict[tuple[Sequence[int], ...], int] = {}
        told = zip(map(tuple, self.ids), map(tuple, self.types), strict=True)
        return np.array([known.setdefault(tokens, number) for number, tokens in enumerate(told)], dtype=np.int64)

    @property
    def sampled(self) -> NDArray[np.int64]:
        """Indices of the examples whose features are kept: all, or with many words every second, third, … example."""
        step = 1 if self.words is None else max(1, -(-int(self.words.counts.sum()) // WORDS_KEPT))
        return np.arange(0, len(self), step, dtype=np.int64)

    @property
    def kept(self) -> int:
        """Number of features kept per block: one per sequence, or per seen word, of the `sampled` examples."""
        return int(self.read[self.sequences(self.sampled)].sum())

    @property
    def rows_kept(self) -> NDArray[np.int64]:
        """Number of joined features kept for each of the `sampled` examples."""
        of_examples: NDArray[np.int64] = np.add.reduceat(self.read, self.starts)[self.sampled] // self.towers
        return of_examples

    def answered(self, examples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return indices into the split's concatenated target rows: those of the rows of logits of these examples."""
        if self.answers is None:
            return examples
        starts = np.cumsum(self.answers) - self.answers
        if self.words is None:
            return places(starts[examples], self.answers[examples])
        owners = np.repeat(examples, self.sequences_of[examples])
        seen = [np.array(self.words.seen[i], dtype=np.int64) for i in self.sequences(examples)]
        return np.concatenate([starts[i] + words for i, words in zip(owners, seen, strict=True)])

    def whole(self, logits: NDArray[np.float64], examples: NDArray[np.int64], blind: Any = None) -> Numbers:
        """Return the logits of all examples in their own order, given those of `examples` in that order.

        Rows without logits (unseen words) get `blind` (C,), the logits that do not depend on the input.
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
    """The output of a backbone that a head takes."""

    sequence: Tensor  # (S, T, D); empty if the batch was computed in more than one length bucket
    mask: Tensor  # (S, T) bool, True at a real token
    pooled: Tensor  # (S, R) from a backbone, (B, P) once towers are joined; (W, D) for words


class Backbone(Protocol):
    """A pretrained network, frozen unless a method trains its own copy.

    Roles for `sites`: attention.query, attention.key, attention.value, attention.qkv (fused), attention.output,
    mlp.up, mlp.down, norm, embedding, block, and attention: the modules that call `nn.short_attention.attend`, whose
    keys and values can be replaced. Methods use roles; the backbone maps them to module names. A post-norm
    network may name the norms after its residual sums too: attention.norm, mlp.norm.
    """

    card: BackboneCard
    module: nn.Module

    @property
    def rows_apart(self) -> bool:
        """True if every site has the sequences as first dimension, each independent: (S, …) or (S x n, …)."""

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise, truncating at `card.max_length`. Examples with `words` are split into windows instead."""

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Pad these sequences to one length, on the device of the weights: tensors of (S, T)."""

    def states(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Return L + 1 tensors (S, T, D): [k] enters block k; [L] is the network's output, final norm included."""

    def features(self, inputs: Inputs, start: int = 0, entering: Tensor | None = None) -> Features:
        """Run blocks `start … L - 1` on `entering` (S, T, D), the `states` at depth `start`, and pool.

        With `start` 0 the embeddings are computed too; with `start` L only the pooling.
        """

    def pool(self, sequence: Tensor, mask: Tensor, words: Tensor | None = None) -> Tensor:
        """Pool (S, T, D) with mask (S, T) to (S, R) as the card's `pooling` says; with `words` (S, T) to (W, D)."""

    def sites(self, role: str) -> dict[str, nn.Module]:
        """Return qualified name -> submodule, in network order; empty if the network has no site of that role."""

    def copy(self) -> Backbone:
        """Return a private copy whose weights may be trained."""

    def twin(self) -> Backbone:
        """Return new modules that share the weights: hooks on them do not affect other users of the weights."""


@runtime_checkable
class PlacesParts(Protocol):
    """A backbone with parts outside its blocks whose depth does not follow from the order of its modules.

    An example is the table of relative positions in T5. Layer-wise learning rates need the depth of every part.
    """

    @property
    def learns_like(self) -> Mapping[str, str]:
        """Path of such a part -> path of the part whose learning rate it shares. Empty if there is none."""


def learns_like(backbone: Backbone) -> Mapping[str, str]:
    """Return the `learns_like` of a backbone that implements `PlacesParts`, else an empty mapping."""
    return backbone.learns_like if isinstance(backbone, PlacesParts) else {}


@runtime_checkable
class OwnRates(Protocol):
    """A backbone on which the default learning rate of some methods does not suit."""

    @property
    def default_rates(self) -> Mapping[str, float]:
        """Name of such a method -> its default learning rate on this backbone. Empty if there is none."""


def default_rates(backbone: Backbone) -> Mapping[str, float]:
    """Return the `default_rates` of a backbone that implements `OwnRates`, else an empty mapping."""
    return backbone.default_rates if isinstance(backbone, OwnRates) else {}


@runtime_checkable
class StopsEarly(Protocol):
    """A backbone that can stop at the highest block whose states are needed."""

    def states_up_to(self, inputs: Inputs, depth: int) -> tuple[Tensor, ...]:
        """Return the first `depth + 1` of `states`, 0 <= depth <= L."""


@runtime_checkable
class ContinuesTexts(Protocol):
    """A backbone that is a left-to-right language model if `card.continues`, and can then score and write texts."""

    def language_model(self) -> NextTokenModel:
        """Load the language-model head and return the network with it. Only if `card.continues`."""


@runtime_checkable
class Augments(Protocol):
    """A backbone that can augment an example differently in every epoch."""

    @property
    def augmentation(self) -> str:
        """A description of the augmentation; empty if there is none."""

    def augmented(self, encoded: Encoded, sequences: Sequence[int], seed: int, epoch: int) -> Inputs:
        """As `collate`, augmented; the augmentation is a pure function of (seed, epoch, number of the example)."""


def towers_of(towers: int, example: Example) -> int:
    """Return how many sequences are joined to one feature vector: `towers` for pairs and choices, else 1."""
    return towers if "text_a" in example.inputs or "choices" in example.inputs else 1


def lacking(card: BackboneCard | None, roles: Sequence[str]) -> str:
    """Return the reason that a method that needs all of `roles` can't be used, or an empty string."""
    missing = [role for role in roles if card is not None and role in card.lacks]
    return f"the blocks of {card.id} have no {', '.join(missing)} to adapt" if card is not None and missing else ""


def real_positions(mask: Tensor, state: Tensor) -> Tensor:
    """Convert the mask (S, T) of the inputs to the mask (S, T') of `state` (S, T', D).

    A network whose blocks change the number of positions takes no padding, so all positions are real.
    """
    return mask if mask.shape[1] == state.shape[1] else mask.new_ones(state.shape[:2])


def device_of(network: nn.Module) -> torch.device:
    """Return the device of a network's weights, which are all on one device."""
    return next(network.parameters()).device


@runtime_checkable
class WritingFamily(Protocol):
    """A family of backbones that write texts, opened only for tasks whose targets are texts."""

    writes: Literal[True]


class BackboneFamily(Protocol):
    """Opens backbones of one family; registered by `backbones/NAME.py`."""

    model_types: tuple[str, ...]  # supported values of "model_type" in a transformers config.json

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> Backbone:
        """Load `source` (a folder or hub name; "" if the family has one network only).

        With `random_seed`, initialise the same architecture randomly. Raises `ConfigError` or `StorageError`.
        """
