"""A left-to-right language model: how likely each token is to follow, with what was read before kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


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


class NextTokenModel(Protocol):
    """A left-to-right network with its head over the vocabulary of V tokens."""

    @property
    def name(self) -> str:
        """The name of its backbone."""

    @property
    def context(self) -> int:
        """The maximum number of tokens that it reads."""

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, after the special tokens that its tokenizer puts in front; nothing is cut."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return first character and end of each token of a text; of special tokens (0, 0)."""

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Pad on the right, on the device of the weights: tokens (S, T) int64, and (S, T) bool, True where real."""

    def read(self, ids: Tensor, real: Tensor, after: Earlier | None = None) -> tuple[Tensor, Earlier]:
        """Read tokens (S, T) with padding on the right, after what was read before.

        Returns the network's output (S, T, D) and all that has been read. It equals reading the real tokens alone.
        """

    def logits(self, states: Tensor) -> Tensor:
        """Map outputs (N, D) to the logits of the next token, (N, V) fp32."""
