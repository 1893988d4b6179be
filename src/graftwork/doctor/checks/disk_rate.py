"""Write speed of the disk that holds the runs, and the time to sync a small file."""

from __future__ import annotations

from collections.abc import Iterator

from graftwork.budget.forecast import FILES
from graftwork.doctor.check import Check, Finding, Intended
from graftwork.doctor.disk_speed import sync_seconds, write_rate
from graftwork.doctor.places import existing
from graftwork.registry import checks
from graftwork.units import duration, show

SLOW_BYTES_PER_SECOND = 20e6  # a cache entry of a million tokens of minilm, 0.8 GB, then takes 40 s
SLOW_SYNC_SECONDS = 0.1  # a run writes about FILES files, each synced before the next


def look(asked: Intended) -> Iterator[Finding]:
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
        why = "what is kept of frozen passes takes longer to write than to compute"
        yield Finding(f"the disk takes {show(rate, 'bytes')}/s", "slow", why, "--runs and --cache on a faster disk")
    if sync > SLOW_SYNC_SECONDS:
        why = f"a run makes {FILES} files safe, one after another, and a checkpoint is one more"
        yield Finding(f"a small file takes {duration(sync)} to be safe", "slow", why, "--runs on a faster disk")


checks.register("disk_rate")(Check("speed", look))
