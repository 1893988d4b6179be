"""How fast this machine multiplies matrices and writes files, measured for a moment."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

PIECE = 1 << 20  # bytes of a write
MOST_BYTES = 256 << 20  # that a measurement leaves on its way, and removes


@torch.no_grad()
def flop_rate(shape: tuple[int, int, int], dtype: torch.dtype, seconds: float, device: str = "cpu") -> float:
    """FLOP per second of the fastest of many products (m, k) x (k, n), 2 per multiply-add."""
    m, k, n = shape
    left = torch.randn(m, k, device=device).to(dtype)
    right = torch.randn(n, k, device=device).to(dtype).t()
    out = torch.empty(m, n, dtype=dtype, device=device)

    def product() -> None:
        torch.mm(left, right, out=out)
        if device != "cpu":
            torch.cuda.synchronize()

    product()  # the first one chooses the routine
    return 2.0 * m * k * n / fastest(product, seconds)


def fastest(work: Callable[[], None], seconds: float) -> float:
    """Seconds of the quickest of as many calls as fit, one at least: what disturbs a call only slows it down."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best


def write_rate(folder: Path, seconds: float) -> float:
    """Bytes per second of a file written and then synced to disk, which nobody else sees. Raises `OSError`."""
    piece, written = os.urandom(PIECE), 0
    with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
        begun = time.perf_counter()
        while written == 0 or (time.perf_counter() - begun < seconds and written < MOST_BYTES):
            written += stream.write(piece)
        os.fsync(stream.fileno())
        return written / (time.perf_counter() - begun)


def sync_seconds(folder: Path, seconds: float) -> float:
    """Median seconds until a file of one byte is safe on disk. Raises `OSError`."""
    taken: list[float] = []
    while not taken or sum(taken) < seconds:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
            begun = time.perf_counter()
            stream.write(b"0")
            os.fsync(stream.fileno())
            taken.append(time.perf_counter() - begun)
    return sorted(taken)[len(taken) // 2]
