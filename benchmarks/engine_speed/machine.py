"""The machine as a contender: its bf16 matrix multiplication rate without other work."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from protocol import Answer, Gate, Trained, Watch

SHAPES = (  # (m, k, n): square products, and products of a batch of tokens with a layer's weights
    (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (1024, 384, 1536), (1024, 1536, 384),
    (4096, 1024, 1024),
)  # fmt: skip


def flop_rate(shape: tuple[int, int, int], seconds: float) -> float:
    """Return the FLOP per second of the fastest of many bf16 products (m, k) x (k, n), 2 per multiply-add."""
    m, k, n = shape
    left, right = torch.randn(m, k).bfloat16(), torch.randn(n, k).bfloat16().t()
    out = torch.empty(m, n, dtype=torch.bfloat16)
    torch.mm(left, right, out=out)  # the first call selects the kernel
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        begun = time.perf_counter()
        torch.mm(left, right, out=out)
        best = min(best, time.perf_counter() - begun)
    return 2.0 * m * k * n / best


@dataclass(frozen=True)
class Machine:
    """An epoch is `seconds` of products of every shape; the rate is the best of them. Implements `Contender`."""

    seconds: float = 0.5

    def about(self) -> Answer:
        """Return the shapes."""
        return {"shapes": [list(shape) for shape in SHAPES], "seconds_per_shape": self.seconds}

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """Do the same work before every gate, regardless of seed and data."""
        watch = Watch()
        last: Answer = {}
        for _ in range(epochs):
            gate(watch.lap() | last)
            watch.go()
            rates = {"x".join(map(str, shape)): flop_rate(shape, self.seconds) for shape in SHAPES}
            last = {"flops_per_second": max(rates.values()), "rates": rates}
        return Trained(watch.lap() | last, dict)
