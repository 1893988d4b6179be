"""Write speed of the disk that holds the runs, and the time to sync a small file."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from graftwork.budget.forecaster import FILES
from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.doctor.places import existing
from graftwork.registry import checks
from graftwork.units import duration, show

SLOW_BYTES_PER_SECOND = 20e6  # a cache entry of a million tokens of minilm, 0.8 GB, then takes 40 s
SLOW_SYNC_SECONDS = 0.1  # a run writes about FILES files, each synced before the next
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


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" where writing or syncing files would slow runs down."""
    if asked.seconds <= 0:
        return
    folder = existing(asked.runs)
    try:
        rate, sync = write_rate(folder, asked.seconds), sync_seconds(folder, asked.seconds / 2)
    except OSError as error:
        yield Finding(f"not measured: {error.strerror or error}", "note", "nothing can be written there", "see disk")
        return
    facts = {"bytes_per_second": rate, "sync_seconds": sync}
    yield Finding(f"{show(rate, 'bytes')}/s written and synced, {duration(sync)} for a small file", facts=facts)
    if rate < SLOW_BYTES_PER_SECOND:
        why = "a frozen pass takes longer to write to the cache than to compute"
        yield Finding(f"the disk takes {show(rate, 'bytes')}/s", "slow", why, "--runs and --cache on a faster disk")
    if sync > SLOW_SYNC_SECONDS:
        why = f"a run syncs {FILES} files one after another, and one more for each checkpoint"
        yield Finding(f"a small file takes {duration(sync)} to sync", "slow", why, "--runs on a faster disk")


checks.register("disk_rate")(Check("speed", look))
