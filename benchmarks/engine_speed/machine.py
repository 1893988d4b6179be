"""The machine as a contender: how fast it multiplies bf16 matrices when nothing else is to be done."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from protocol import Answer, Gate, Trained, Watch

from graftwork.doctor.rates import flop_rate

SHAPES = (  # (m, k, n): square ones, and the tall ones of a batch of tokens against a layer's weights
    (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (1024, 384, 1536), (1024, 1536, 384),
    (4096, 1024, 1024),
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """An epoch is `seconds` of products of every shape; the rate is the best of them. Implements `Contender`."""

    seconds: float = 0.5

    def about(self) -> Answer:
        """The shapes that are tried."""
        return {"shapes": [list(shape) for shape in SHAPES], "seconds_per_shape": self.seconds}

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """The same work before every gate: seed and data mean nothing here."""
        watch = Watch()
        last: Answer = {}
        for _ in range(epochs):
            gate(watch.lap() | last)
            watch.go()
            rates = {"x".join(map(str, shape)): flop_rate(shape, torch.bfloat16, self.seconds) for shape in SHAPES}
            last = {"flops_per_second": max(rates.values()), "rates": rates}
        return Trained(watch.lap() | last, dict)
