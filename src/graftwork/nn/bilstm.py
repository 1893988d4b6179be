"""One layer of a bidirectional language model: two LSTMs with projection that never see each other's states (Sak et al.
2014, arXiv:1402.1128)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class LSTMShape:
    """The sizes of the two directions of a layer."""

    projected: int  # P, input and output size of a direction
    cells: int  # C
    cell_clip: float  # largest absolute cell value; 0: no limit
    projection_clip: float  # largest absolute projected value; 0: no limit


@dataclass(frozen=True)
class LstmState:
    """The recurrent state of a layer's two directions, forward first."""

    hidden: Tensor  # (2, S, P)
    cell: Tensor  # (2, S, C) fp32


@dataclass(frozen=True)
class Places:
    """The real positions of a batch, padded on the right."""

    mask: Tensor  # (S, T) bool, True at a real token
    backward: Tensor  # (S, T): the position that the backward direction reads at each step; its own inverse

    @classmethod
    def of(cls, mask: Tensor) -> Places:
        """Compute the positions from the mask (S, T)."""
        at = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
        return cls(mask, torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - at, at))

    def both(self, sequence: Tensor) -> Tensor:
        """Split (S, T, 2P) into (2, S, T, P) in each direction's reading order, the second from a row's end."""
        forward, backward = sequence.chunk(2, dim=-1)
        return torch.stack([forward, self._turned(backward)])

    def joined(self, read: Tensor) -> Tensor:
        """Invert `both`: (2, S, T, P) -> (S, T, 2P)."""
        return torch.cat([read[0], self._turned(read[1])], dim=-1)

    def _turned(self, half: Tensor) -> Tensor:
        return half.gather(1, self.backward[:, :, None].expand_as(half))


class BiLSTM(nn.Module):
    """A layer (S, T, 2P) -> (S, T, 2P): the left half is read left to right, the right half from right to left.

    Gates are in torch's order: input, forget, candidate, output. With `skip` the input is added to the output.
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
        nn.init.constant_(self.bias[:, cells : 2 * cells], 1.0)  # forget gates start mostly open

    def forward(self, sequence: Tensor, places: Places) -> Tensor:
        """Run from the zero state; (S, T, 2P) -> (S, T, 2P)."""
        return self._scan(sequence, places, self.zero(sequence), None)[0]

    def resume(self, sequence: Tensor, places: Places, state: LstmState) -> tuple[Tensor, LstmState]:
        """Run from `state`; return the outputs (S, T, 2P) and each row's state after its last real position."""
        return self._scan(sequence, places, state, places.mask.t()[:, None, :, None])

    def zero(self, sequence: Tensor) -> LstmState:
        """Return the zero state for `sequence` (S, T, 2P)."""
        rows = sequence.shape[0]
        return LstmState(
            sequence.new_zeros(2, rows, self.shape.projected),
            sequence.new_zeros(2, rows, self.shape.cells, dtype=torch.float32),
        )

    def _scan(
        self, sequence: Tensor, places: Places, state: LstmState, real: Tensor | None
    ) -> tuple[Tensor, LstmState]:
        """Run step by step; where `real` (T, 1, S, 1) is False the state is unchanged."""
        recurrent, projection = self.recurrent.transpose(1, 2), self.projection.transpose(1, 2)
        read = []
        for step, gates in enumerate(self._gates(places.both(sequence)).unbind(2)):
            after = self._step(torch.baddbmm(gates, state.hidden, recurrent), state.cell, projection)
            read.append(after.hidden)
            state = after if real is None else _chosen(real[step], after, state)
        left = places.joined(torch.stack(read, dim=2))
        return left + sequence if self.skip else left, state

    def _gates(self, read: Tensor) -> Tensor:
        """Compute the input part of the gates: (2, S, T, P) -> (2, S, T, 4C)."""
        flat = torch.baddbmm(self.bias[:, None], read.flatten(1, 2), self.input.transpose(1, 2))
        return flat.view(*read.shape[:3], -1)

    def _step(self, gates: Tensor, cell: Tensor, projection: Tensor) -> LstmState:
        """Compute the next state from (2, S, 4C), (2, S, C), (2, C, P); cells are kept in fp32 for any weights."""
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
