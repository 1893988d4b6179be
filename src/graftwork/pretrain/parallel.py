"""Several processes on one batch: each passes its parts, the gradients are summed, and all take the same step."""

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
    """The processes of one pre-training, and which of them this is. Alone, nothing is exchanged."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this one writes the files and tells the user."""
        return self.rank == 0

    def owns(self, part: int) -> bool:
        """Whether this one passes the part of that number."""
        return part % self.size == self.rank

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Each becomes the sum over all processes, in one exchange per type of number."""
        if self.size == 1 or not tensors:
            return
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            alike = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = torch.cat([tensor.flatten() for tensor in alike])
            dist.all_reduce(flat)
            totals = torch.split(flat, [tensor.numel() for tensor in alike])
            for tensor, total in zip(alike, totals, strict=True):
                tensor.copy_(total.view_as(tensor))

    def told(self, number: float) -> float:
        """What the leading process says, for all."""
        if self.size == 1:
            return number
        word = torch.tensor(number, dtype=torch.float64)
        dist.broadcast(word, 0)
        return float(word)

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            dist.barrier()


ALONE = Peers()


class JointWatch:
    """A stopwatch that has the processor seconds of all processes, of the others as they were when last they met."""

    def __init__(self) -> None:
        self._own, self._others = Stopwatch(), 0.0

    def read(self) -> Phase:
        """Seconds since the start."""
        return self._own.read() + Phase(cpu_seconds=self._others)

    def meet(self, peers: Peers, tensors: Sequence[Tensor] = ()) -> None:
        """Hear of the others; every process does at the same time. `tensors` are added up on the same way."""
        own = self._own.read().cpu_seconds
        total = torch.tensor([own], dtype=torch.float64)
        peers.add_up([*tensors, total])
        self._others = float(total) - own


@contextmanager
def peers() -> Iterator[Peers]:
    """Those that torchrun started this process among (its variables RANK and WORLD_SIZE); else it is alone."""
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
    """Whether this process is the one that tells the user, known before any other is heard of."""
    return int(os.environ.get("RANK", "0")) == 0
