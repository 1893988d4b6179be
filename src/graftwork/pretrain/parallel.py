"""Data-parallel processes: each runs its parts of a batch, gradients are summed, and all take the same step."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from graftwork.core.meter import Phase, Stopwatch


@dataclass(frozen=True)
class Peers:
    """The group of processes of one pre-training and this process's rank. Nothing is exchanged in a group of one."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """True if this process writes the files and reports to the user."""
        return self.rank == 0

    def owns(self, part: int) -> bool:
        """Return whether this process runs that part of a batch."""
        return part % self.size == self.rank

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, with one all-reduce per dtype."""
        if self.size == 1 or not tensors:
            return
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            alike = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = torch.cat([tensor.flatten() for tensor in alike])
            dist.all_reduce(flat)
            totals = torch.split(flat, [tensor.numel() for tensor in alike])
            for tensor, total in zip(alike, totals, strict=True):
                tensor.copy_(total.view_as(tensor))

    def broadcast(self, number: float) -> float:
        """Broadcast the leading process's number to all processes."""
        if self.size == 1:
            return number
        word = torch.tensor(number, dtype=torch.float64)
        dist.broadcast(word, 0)
        return float(word)

    def wait(self) -> None:
        """Wait until all processes have called this (a barrier)."""
        if self.size > 1:
            dist.barrier()


ALONE = Peers()


class JointWatch:
    """A stopwatch that adds the CPU seconds of the other processes, as of the last exchange (`meet`)."""

    def __init__(self) -> None:
        self._own, self._others = Stopwatch(), 0.0

    def read(self) -> Phase:
        """Return the phase since the start, with the CPU seconds of all processes."""
        return self._own.read() + Phase(cpu_seconds=self._others)

    def meet(self, peers: Peers, tensors: Sequence[Tensor] = ()) -> None:
        """Exchange CPU seconds; all processes call it together. `tensors` are summed in the same exchange."""
        own = self._own.read().cpu_seconds
        total = torch.tensor([own], dtype=torch.float64)
        peers.add_up([*tensors, total])
        self._others = float(total) - own


@contextmanager
def peers() -> Iterator[Peers]:
    """Join the processes that torchrun started (its variables RANK and WORLD_SIZE), else yield this process alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ALONE
        return
    dist.init_process_group("gloo")
    try:
        yield Peers(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()


def this_leads() -> bool:
    """Return whether this process reports to the user; can be called before the group is initialised."""
    return int(os.environ.get("RANK", "0")) == 0
