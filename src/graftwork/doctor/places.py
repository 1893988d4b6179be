"""The folders that commands write to, found without making one."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from graftwork.doctor.check import Intended
from graftwork.io.cache_folder import cache_folder

MOUNTS = Path("/proc/self/mounts")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # a space is \040


def places(asked: Intended) -> dict[str, Path]:
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
    mounted = [(_ESCAPED.sub(lambda one: chr(int(one[1], 8)), point), kind) for _, point, kind, *_ in lines]
    holding = [(len(point), kind) for point, kind in reversed(mounted) if real.is_relative_to(point)]
    return max(holding, key=lambda one: one[0])[1] if holding else None  # of those on one point the latest
