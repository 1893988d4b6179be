"""Access to torch without importing it: the import takes longer than many baselines, which do not need torch."""

from __future__ import annotations

import sys
from types import ModuleType


def torch_in_use() -> ModuleType | None:
    """Return torch if this process has imported it, else None."""
    return sys.modules.get("torch")


def cuda_in_use() -> ModuleType | None:
    """Return `torch.cuda` if this process has initialised it; else None, as a query would initialise it."""
    torch = torch_in_use()
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
