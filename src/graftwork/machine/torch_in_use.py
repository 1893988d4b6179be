"""Access to torch only if already imported: importing it takes longer than many baselines, which don't need it."""

from __future__ import annotations

import sys
from types import ModuleType


def torch_in_use() -> ModuleType | None:
    """Return torch if this process has imported it; else None: nothing can have been computed by it."""
    return sys.modules.get("torch")


def cuda_in_use() -> ModuleType | None:
    """Return `torch.cuda` if this process has initialised it; else None, as a query would initialise it."""
    torch = torch_in_use()
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
