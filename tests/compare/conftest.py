"""Makes `boards.py` and `toys.py` beside it importable whatever the import mode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from graftwork.run.session import Shop


@pytest.fixture
def toy_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Where methods answer as well as they are told to: see `toys.py`."""
    from toys import open_shop

    return open_shop(tmp_path, monkeypatch)
