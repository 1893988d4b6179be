"""Language models as scorers and writers of continuations, with a cache of the tokens that they have read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from graftwork.core.writing import TellTokens, TextSearch, WrittenTokens


@dataclass(frozen=True)
class KeptKeys:
    """The attention keys and values of one stretch of tokens in every block. With S = 1 all sequences share them."""

    keys: tuple[Tensor, ...]  # per block (S, H, T, d)
    values: tuple[Tensor, ...]
    real: Tensor  # (S, T) bool, False at padding


@dataclass(frozen=True)
class Earlier:
    """The tokens read so far: a key-value cache in pieces, never changed, so that many texts can continue from it."""

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


@dataclass(frozen=True)
class TokenTree:
    """The answers that are scored after one prompt, as a prefix tree of N token nodes: a shared prefix is read once.

    Nodes are numbered from 1, parents first; 0 is the prompt. The last token of an answer is predicted but not read, so
    it is no node.
    """

    tokens: tuple[int, ...]  # (N,)
    parents: tuple[int, ...]  # (N,) the parent of each node
    answers: tuple[tuple[tuple[int, int], ...], ...]  # per answer (parent node, token) of its tokens

    @classmethod
    def of(cls, answers: Sequence[Sequence[int]]) -> TokenTree:
        """Build the tree from the tokens of the answers, none of which is empty."""
        numbers: dict[tuple[int, int], int] = {}  # node in front, token -> node
        steps = []
        for answer in answers:
            node, own = 0, []
            for token in answer[:-1]:
                own.append((node, token))
                node = numbers.setdefault((node, token), len(numbers) + 1)
            steps.append((*own, (node, answer[-1])))
        return cls(tuple(token for _, token in numbers), tuple(parent for parent, _ in numbers), tuple(steps))

    @cached_property
    def wanted(self) -> tuple[tuple[int, ...], ...]:
        """For each of the nodes 0 … N, the distinct tokens whose probabilities are needed after it."""
        found: list[dict[int, None]] = [{} for _ in range(len(self.tokens) + 1)]
        for answer in self.answers:
            for node, token in answer:
                found[node][token] = None
        return tuple(map(tuple, found))

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """(N, N): True where the second node is the first one or its ancestor, as in an attention mask."""
        found = np.eye(len(self.tokens), dtype=bool)
        for row, parent in enumerate(self.parents):
            if parent:
                found[row] |= found[parent - 1]
        return found

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The paths of nodes to the leaves; none is a prefix of another."""
        ends = sorted(set(range(len(self.tokens))) - {parent - 1 for parent in self.parents})
        return tuple(tuple((np.flatnonzero(self.seen[row]) + 1).tolist()) for row in ends)

    def sums(self, chances: Sequence[Sequence[float]]) -> list[float]:
        """Return the log-probability of each answer, given those of its tokens: `chances` is laid out as `wanted`."""
        found = [dict(zip(tokens, told, strict=True)) for tokens, told in zip(self.wanted, chances, strict=True)]
        return [sum(found[node][token] for node, token in answer) for answer in self.answers]


class PromptReader(Protocol):
    """A language model as a reader of prompts: its tokenizer and its maximum length."""

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
        """Return the character offsets (start, end) of each token of a text; (0, 0) for special tokens."""

    def text_of(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""


class NextTokenModel(PromptReader, Protocol):
    """A left-to-right network with its head over the vocabulary of V tokens.

    Its tokenizer adds no token after a prompt, so that the text can continue.
    """

    @property
    def is_local(self) -> bool:
        """True if the last tokens of a text with spaces between words depend on the text near its end only."""

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Pad on the right, on the device of the weights: tokens (S, T) int64, and (S, T) bool, True where real."""

    def read(self, ids: Tensor, real: Tensor, after: Earlier | None = None) -> tuple[Tensor, Earlier]:
        """Read tokens (S, T) with padding on the right, after the cached ones in `after`.

        Return the network's output (S, T, D) and the extended cache. Padding does not change the output at real tokens.
        """

    def read_trees(self, trees: Sequence[TokenTree], after: Earlier) -> Tensor:
        """Read a tree after each of the S cached sequences in `after`; no tree is empty.

        Return the network's output (n, D) at the nodes of all trees, in order, as if every path were read by itself.
        """

    def logits(self, states: Tensor) -> Tensor:
        """Map outputs (N, D) to the logits of the next token, (N, V) fp32."""


@dataclass(frozen=True)
class ReadPrompts:
    """An encoder-decoder's hidden states of B prompts, computed once for all answers to them."""

    states: Tensor  # (B, T, D)
    mask: Tensor  # (B, T)
    first: Tensor  # (B, V) fp32: the logits of an answer's first token
    begun: tuple[tuple[Tensor, Tensor], ...]  # per decoder block, keys and values of the start token (B, H, 1, d)
    crossing: tuple[tuple[Tensor, Tensor], ...]  # per decoder block, cross-attention keys and values (B, H, T, d)


class ReadThenWrite(PromptReader, Protocol):
    """An encoder-decoder over a vocabulary of V tokens: it reads a prompt, then scores or writes an answer."""

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of target texts, with the tokens that begin a text and without the end token."""

    def read(self, rows: Sequence[Sequence[int]]) -> ReadPrompts:
        """Encode B prompts, and run the decoder on its start token."""

    def follow(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, U, V) fp32: the logits after each token of `rows`, as answers to the prompts numbered `owners`."""

    def next_logits(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, V) fp32: the logits of the token after `rows`, the tokens of an answer so far, maybe none."""

    def write(self, read: ReadPrompts, search: TextSearch, tell: TellTokens | None = None) -> list[WrittenTokens]:
        """Generate a text for each prompt; `tell` as in `TextWriter.write`."""
