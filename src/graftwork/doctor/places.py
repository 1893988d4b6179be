"""The folders that commands write to, determined without creating them."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from graftwork.doctor.check import IntendedUse
from graftwork.io.cache_folder import cache_folder

MOUNTS = Path("/proc/self/mounts")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # a space is \040


def places(asked: IntendedUse) -> dict[str, Path]:
    """Return the folders of runs, the cache and temporary files."""
    return {"runs": asked.runs, "cache": cache_folder(asked.cache).parent, "tmp": Path(tempfile.gettempdir())}


def existing(folder: Path) -> Path:
    """Return the folder or its nearest existing parent, in which it would be created."""
    folder = folder.absolute()
    return next((path for path in (folder, *folder.parents) if path.exists()), folder)


def file_system(folder: Path) -> str | None:
    """Return the type of the folder's file system, such as `ext4` or `nfs4`; None where unknown."""
    try:
        lines = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return None
    real = folder.resolve()
    mounted = [(_ESCAPED.sub(lambda one: chr(int(one[1], 8)), point), kind) for _, point, kind, *_ in lines]
    holding = [(len(point), kind) for point, kind in reversed(mounted) if real.is_relative_to(point)]
    return max(holding, key=lambda one: one[0])[1] if holding else None  # the latest of several on one mount point
