"""torch as far as this process has it: importing it takes longer than many a baseline, and they do without."""

from __future__ import annotations

import sys
from types import ModuleType


def torch_in_use() -> ModuleType | None:
    """torch, where something has imported it; None where nothing of this process can have been computed by it."""
    return sys.modules.get("torch")
