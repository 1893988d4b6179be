"""Makes `boards.py` and `toys.py` beside it importable whatever the import mode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from graftwork.run.session import Session


@pytest.fixture
def toy_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Where methods answer as well as they are told to: see `toys.py`."""
    from toys import open_session

    return open_session(tmp_path, monkeypatch)
