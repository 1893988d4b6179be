"""A left-to-right language model: how likely each token is to follow, with what was read before kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from graftwork.core.writing import TellTokens, TextSearch, WrittenTokens


@dataclass(frozen=True)
class KeptKeys:
    """The keys and values of one stretch of tokens in every block. With S = 1 it is shared by all sequences."""

    keys: tuple[Tensor, ...]  # per block (S, H, T, d)
    values: tuple[Tensor, ...]
    real: Tensor  # (S, T) bool, False at padding


@dataclass(frozen=True)
class Earlier:
    """What has been read before: a key-value cache in pieces, never changed, so that many may go on from it."""

    pieces: tuple[KeptKeys, ...]

    @property
    def positions(self) -> Tensor:
        """(S,) or (1,) int64: the position of the next token."""
        counts = [piece.real.sum(dim=1) for piece in self.pieces]  # each (S,) or (1,)
        return sum(counts[1:], counts[0])

    def some(self, rows: Sequence[int]) -> Earlier:
        """Select these sequences, in this order; a shared piece stays shared."""
        chosen = list(rows)
        return Earlier(
            tuple(
                piece
                if len(piece.real) == 1
                else KeptKeys(
                    tuple(key[chosen] for key in piece.keys),
                    tuple(value[chosen] for value in piece.values),
                    piece.real[chosen],
                )
                for piece in self.pieces
            )
        )


class PromptReader(Protocol):
    """A language model, seen as what reads prompts of some number of tokens."""

    @property
    def name(self) -> str:
        """The name of its backbone."""

    @property
    def context(self) -> int:
        """The maximum number of tokens that it reads."""

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a text, if any."""

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text as a prompt, with the special tokens around it; nothing is cut."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return first character and end of each token of a text; of special tokens (0, 0)."""

    def text_of(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""


class NextTokenModel(PromptReader, Protocol):
    """A left-to-right network with its head over the vocabulary of V tokens.

    Behind a prompt its tokenizer puts nothing: the text goes on.
    """

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Pad on the right, on the device of the weights: tokens (S, T) int64, and (S, T) bool, True where real."""

    def read(self, ids: Tensor, real: Tensor, after: Earlier | None = None) -> tuple[Tensor, Earlier]:
        """Read tokens (S, T) with padding on the right, after what was read before.

        Returns the network's output (S, T, D) and all that has been read. It equals reading the real tokens alone.
        """

    def logits(self, states: Tensor) -> Tensor:
        """Map outputs (N, D) to the logits of the next token, (N, V) fp32."""


@dataclass(frozen=True)
class ReadPrompts:
    """What an encoder-decoder has made of B prompts, once for all answers to them."""

    states: Tensor  # (B, T, D)
    mask: Tensor  # (B, T)
    first: Tensor  # (B, V) fp32: the logits of an answer's first token
    crossing: tuple[tuple[Tensor, Tensor], ...]  # per block of the decoder, keys and values of the states (B, H, T, d)


class ReadThenWrite(PromptReader, Protocol):
    """An encoder-decoder over a vocabulary of V tokens: it reads a prompt, and then goes on in its decoder."""

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts to be written, with what begins a text in front and without the end's."""

    def read(self, rows: Sequence[Sequence[int]]) -> ReadPrompts:
        """Read B prompts with the encoder, and begin the decoder."""

    def chances(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> list[float]:
        """Return log p of answers as tokens, each to the prompt of B that is its owner."""

    def next_logits(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, V) fp32: the logits of the token that follows these tokens, maybe none, of an answer."""

    def write(self, read: ReadPrompts, search: TextSearch, tell: TellTokens | None = None) -> list[WrittenTokens]:
        """Write a text for each prompt."""
