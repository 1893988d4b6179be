"""Short measurements of the disk's write speed."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

PIECE = 1 << 20  # bytes of a write
MOST_BYTES = 256 << 20  # maximum temporary size of a measurement


def write_rate(folder: Path, seconds: float) -> float:
    """Measure bytes per second of writing an unnamed temporary file and syncing it to disk. Raises `OSError`."""
    piece, written = os.urandom(PIECE), 0
    with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
        begun = time.perf_counter()
        while written == 0 or (time.perf_counter() - begun < seconds and written < MOST_BYTES):
            written += stream.write(piece)
        os.fsync(stream.fileno())
        return written / (time.perf_counter() - begun)


def sync_seconds(folder: Path, seconds: float) -> float:
    """Measure the median seconds to write and sync a file of one byte. Raises `OSError`."""
    taken: list[float] = []
    while not taken or sum(taken) < seconds:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
            begun = time.perf_counter()
            stream.write(b"0")
            os.fsync(stream.fileno())
            taken.append(time.perf_counter() - begun)
    return sorted(taken)[len(taken) // 2]
