"""One layer of a bidirectional language model: two LSTMs with projection that never see each other's states (Sak et al.
2014, arXiv:1402.1128)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class LSTMShape:
    """Sizes of the two directions of a layer."""

    projected: int  # P, what a direction takes and gives
    cells: int  # C
    cell_clip: float  # largest size of a cell's content; 0: any
    projection_clip: float  # largest size of what is projected; 0: any


@dataclass(frozen=True)
class LstmState:
    """What a layer's directions remember, forward first."""

    hidden: Tensor  # (2, S, P)
    cell: Tensor  # (2, S, C) fp32


@dataclass(frozen=True)
class Places:
    """Where the real positions of a batch are: padding is behind them."""

    mask: Tensor  # (S, T) bool, True at a real token
    backward: Tensor  # (S, T): the position that a direction from the end reads at each step; its own inverse

    @classmethod
    def of(cls, mask: Tensor) -> Places:
        """From the mask (S, T)."""
        at = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
        return cls(mask, torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - at, at))

    def both(self, sequence: Tensor) -> Tensor:
        """(S, T, 2P) -> (2, S, T, P): the halves as the two directions read them, the second from each row's end."""
        forward, backward = sequence.chunk(2, dim=-1)
        return torch.stack([forward, self._turned(backward)])

    def joined(self, read: Tensor) -> Tensor:
        """The inverse: (2, S, T, P) -> (S, T, 2P)."""
        return torch.cat([read[0], self._turned(read[1])], dim=-1)

    def _turned(self, half: Tensor) -> Tensor:
        return half.gather(1, self.backward[:, :, None].expand_as(half))


class BiLSTM(nn.Module):
    """(S, T, 2P) -> (S, T, 2P): the left half is read from left to right, the right half from right to left.

    Gates are in torch's order: input, forget, candidate, output. With `skip` what enters is added to what leaves.
    """

    def __init__(self, shape: LSTMShape, skip: bool):
        super().__init__()
        self.shape, self.skip = shape, skip
        cells, projected = shape.cells, shape.projected
        self.input = nn.Parameter(torch.empty(2, 4 * cells, projected))
        self.recurrent = nn.Parameter(torch.empty(2, 4 * cells, projected))
        self.bias = nn.Parameter(torch.zeros(2, 4 * cells))
        self.projection = nn.Parameter(torch.empty(2, projected, cells))
        for weight in (self.input, self.recurrent, self.projection):
            nn.init.uniform_(weight, -(weight.shape[-1] ** -0.5), weight.shape[-1] ** -0.5)
        nn.init.constant_(self.bias[:, cells : 2 * cells], 1.0)  # to remember, until it has learned to forget

    def forward(self, sequence: Tensor, places: Places) -> Tensor:
        """From the zero state; (S, T, 2P) -> (S, T, 2P)."""
        return self._scan(sequence, places, self.zero(sequence), None)[0]

    def resume(self, sequence: Tensor, places: Places, state: LstmState) -> tuple[Tensor, LstmState]:
        """From `state`: what leaves (S, T, 2P), and the state of each row after its last real position."""
        return self._scan(sequence, places, state, places.mask.t()[:, None, :, None])

    def zero(self, sequence: Tensor) -> LstmState:
        """The state of directions that have read nothing of `sequence` (S, T, 2P)."""
        rows = sequence.shape[0]
        return LstmState(
            sequence.new_zeros(2, rows, self.shape.projected),
            sequence.new_zeros(2, rows, self.shape.cells, dtype=torch.float32),
        )

    def _scan(
        self, sequence: Tensor, places: Places, state: LstmState, real: Tensor | None
    ) -> tuple[Tensor, LstmState]:
        """Step by step; where `real` (T, 1, S, 1) is False the state stays as it is."""
        recurrent, projection = self.recurrent.transpose(1, 2), self.projection.transpose(1, 2)
        read = []
        for step, gates in enumerate(self._gates(places.both(sequence)).unbind(2)):
            after = self._step(torch.baddbmm(gates, state.hidden, recurrent), state.cell, projection)
            read.append(after.hidden)
            state = after if real is None else _chosen(real[step], after, state)
        left = places.joined(torch.stack(read, dim=2))
        return left + sequence if self.skip else left, state

    def _gates(self, read: Tensor) -> Tensor:
        """What the inputs alone say: (2, S, T, P) -> (2, S, T, 4C)."""
        flat = torch.baddbmm(self.bias[:, None], read.flatten(1, 2), self.input.transpose(1, 2))
        return flat.view(*read.shape[:3], -1)

    def _step(self, gates: Tensor, cell: Tensor, projection: Tensor) -> LstmState:
        """(2, S, 4C), (2, S, C), (2, C, P) -> the next state; cells are kept in fp32 whatever the weights are in."""
        taken, kept, candidate, shown = gates.float().chunk(4, dim=-1)
        cell = kept.sigmoid() * cell + taken.sigmoid() * candidate.tanh()
        if self.shape.cell_clip:
            cell = cell.clamp(-self.shape.cell_clip, self.shape.cell_clip)
        hidden = torch.bmm((shown.sigmoid() * cell.tanh()).to(projection.dtype), projection)
        if self.shape.projection_clip:
            hidden = hidden.clamp(-self.shape.projection_clip, self.shape.projection_clip)
        return LstmState(hidden, cell)


def _chosen(real: Tensor, after: LstmState, before: LstmState) -> LstmState:
    return LstmState(torch.where(real, after.hidden, before.hidden), torch.where(real, after.cell, before.cell))
