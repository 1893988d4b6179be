"""The folders that commands write to, found without making one."""

from __future__ import annotations

import tempfile
from pathlib import Path

from graftwork.doctor.check import Asked
from graftwork.train.cache_folder import cache_folder

MOUNTS = Path("/proc/self/mounts")


def places(asked: Asked) -> dict[str, Path]:
    """What is kept where: runs, the cache, and what is there for a moment only."""
    return {"runs": asked.runs, "cache": cache_folder(asked.cache).parent, "tmp": Path(tempfile.gettempdir())}


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there: it would be made in that one."""
    folder = folder.absolute()
    return next((path for path in (folder, *folder.parents) if path.exists()), folder)


def file_system(folder: Path) -> str | None:
    """Its type, as the system calls it: `ext4`, `nfs4`; None where the system does not tell."""
    try:
        lines = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return None
    real = folder.resolve()
    holding = [(len(point), kind) for _, point, kind, *_ in lines if real.is_relative_to(point)]
    return max(holding)[1] if holding else None
