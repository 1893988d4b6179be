"""A backbone from a network unrolled into a chain of block functions, run from any block on: images, sounds, texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from graftwork.core.backbone import BackboneCard, Encoded, Features, Inputs, device_of, real_positions
from graftwork.core.example import Example
from graftwork.nn.pooling import pool_states
from graftwork.pretrained.layout import sites_of

Step = Callable[[Tensor, Any], Tensor]  # (state (S, T, D) entering a block, shared side input) -> (S, T', D')


@dataclass(frozen=True)
class Chain:
    """A network's functions in order. T and D may change from block to block."""

    embed: Callable[[Inputs], Tensor]  # computes the input of block 0
    blocks: Mapping[str, Step]  # path of the block's module -> its function
    finish: Callable[[Tensor], Tensor]  # applied after the last block
    beside: Callable[[Inputs], Any] = lambda inputs: None  # side input of every block, such as the mask
    learns_like: Mapping[str, str] = field(default_factory=dict)  # as `PlacesParts.learns_like`


@dataclass(frozen=True)
class Architecture:
    """One row of a family's table."""

    unroll: Callable[[Any], Chain]  # a network without a head -> its chain
    embedding: str  # path of the module that computes the input of block 0
    roles: Mapping[str, str]  # role -> path inside a block, for roles that are linear layers
    pooling: str  # as `BackboneCard.pooling`
    splits_rows: bool = False  # blocks run sequences of different lengths separately


class Reader(Protocol):
    """A converter of examples to network inputs."""

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise, or decode the files. Raises `DataError` for a file that can't be decoded."""

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Return inputs on the CPU, floating-point ones in fp32, and `attention_mask` (S, T)."""


@runtime_checkable
class AugmentingReader(Reader, Protocol):
    """A reader that can augment an example anew every epoch."""

    augmentation: str  # description of the augmentation

    def augmented(self, encoded: Encoded, sequences: Sequence[int], seed: int, epoch: int) -> Inputs:
        """Like `collate`, augmented: a pure function of (seed, epoch, sequence number)."""


@dataclass
class ChainedBackbone:
    """Implements `Backbone`, `StopsEarly`, `Augments` and `PlacesParts`."""

    card: BackboneCard
    module: nn.Module  # a network without a head
    reader: Reader
    architecture: Architecture

    @property
    def rows_apart(self) -> bool:
        """False if blocks split rows by length; else the first dimension of every site is that of the sequences."""
        return not self.architecture.splits_rows

    @property
    def chain(self) -> Chain:
        """The chain of the current modules; a copy has its own."""
        return self.architecture.unroll(self.module)

    @property
    def learns_like(self) -> Mapping[str, str]:
        """Path of a part registered outside its block -> path of the part whose learning rate it shares."""
        return self.chain.learns_like

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise these examples, or decode their files."""
        return self.reader.encode(examples)

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Collate a batch on the device and in the precision of the weights."""
        return self._placed(self.reader.collate(encoded, sequences))

    @property
    def augmentation(self) -> str:
        """A description of the reader's augmentation; empty if there is none."""
        return self.reader.augmentation if isinstance(self.reader, AugmentingReader) else ""

    def augmented(self, encoded: Encoded, sequences: Sequence[int], seed: int, epoch: int) -> Inputs:
        """Collate a batch augmented for this epoch."""
        assert isinstance(self.reader, AugmentingReader), "nothing to augment"
        return self._placed(self.reader.augmented(encoded, sequences, seed, epoch))

    def _placed(self, inputs: Inputs) -> Inputs:
        device, dtype = device_of(self.module), next(self.module.parameters()).dtype
        return {
            name: tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype)
            for name, tensor in inputs.items()
        }

    def states(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Return L + 1 tensors (S, T, D): [k] enters block k; [L] is the network's output."""
        return self.states_up_to(inputs, self.card.blocks)

    def states_up_to(self, inputs: Inputs, depth: int) -> tuple[Tensor, ...]:
        """Return the first `depth + 1` of `states`; blocks from `depth` on are not run."""
        chain = self.chain
        beside, states = chain.beside(inputs), [chain.embed(inputs)]
        for step in list(chain.blocks.values())[:depth]:
            states.append(step(states[-1], beside))
        if depth == self.card.blocks:
            states[-1] = chain.finish(states[-1])
        return tuple(states)

    def features(self, inputs: Inputs, start: int = 0, entering: Tensor | None = None) -> Features:
        """Run blocks `start … L - 1` on `entering` (S, T, D) and pool. `start` 0 computes the embeddings too."""
        assert 0 <= start <= self.card.blocks, f"no block {start}"
        assert start == 0 or entering is not None, "states are needed to start above the first block"
        chain = self.chain
        state = chain.embed(inputs) if start == 0 or entering is None else entering
        if start < self.card.blocks:
            beside = chain.beside(inputs)
            for step in list(chain.blocks.values())[start:]:
                state = step(state, beside)
            state = chain.finish(state)
        mask = real_positions(inputs["attention_mask"].bool(), state)
        return Features(state, mask, self.pool(state, mask, inputs.get("words")))

    def pool(self, sequence: Tensor, mask: Tensor, words: Tensor | None = None) -> Tensor:
        """Pool (S, T, D), mask (S, T), to (S, R) in fp32 by the card's pooling; with `words` to (W, D)."""
        return pool_states(sequence, real_positions(mask, sequence), self.architecture.pooling, words)

    def sites(self, role: str) -> dict[str, nn.Module]:
        """Map qualified names to submodules of this role, in network order."""
        known = self.architecture
        return sites_of(self.module, role, known.embedding, self.chain.blocks, known.roles)

    def copy(self) -> ChainedBackbone:
        """Return a backbone with its own weights; the stateless reader is shared."""
        return ChainedBackbone(self.card, copy.deepcopy(self.module), self.reader, self.architecture)

    def twin(self) -> ChainedBackbone:
        """Return new modules that share the weights: hooks on them do not affect other users of the weights."""
        shared = {id(tensor): tensor for tensor in (*self.module.parameters(), *self.module.buffers())}
        return ChainedBackbone(self.card, copy.deepcopy(self.module, shared), self.reader, self.architecture)


def alone(layer: nn.Module) -> Step:
    """Wrap a layer that needs only the state as a step."""

    def step(state: Tensor, beside: Any) -> Tensor:
        after: Tensor = layer(state)
        return after

    return step


def as_sequence(maps: Tensor) -> Tensor:
    """Flatten maps: (S, D, H, W) -> (S, T = H x W, D)."""
    return maps.flatten(2).transpose(1, 2)


def as_maps(sequence: Tensor) -> Tensor:
    """Unflatten a sequence: (S, T, D) -> (S, D, H, W), H = W = √T, as images are square here."""
    side = round(sequence.shape[1] ** 0.5)
    return sequence.transpose(1, 2).view(*sequence.shape[::2], side, side)


@torch.no_grad()
def shapes_of(chain: Chain, inputs: Inputs) -> tuple[tuple[int, int], ...]:
    """Return (T, D) of the states at every depth, found by running one example."""
    beside, state = chain.beside(inputs), chain.embed(inputs)
    shapes = [(state.shape[1], state.shape[2])]
    for step in chain.blocks.values():
        state = step(state, beside)
        shapes.append((state.shape[1], state.shape[2]))
    state = chain.finish(state)
    return (*shapes[:-1], (state.shape[1], state.shape[2]))
