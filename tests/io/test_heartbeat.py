"""Heartbeats: made, touched, removed; read by the clock of the file system."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from graftwork.io import heartbeat
from graftwork.io.heartbeat import SILENT_SECONDS, beating, host, is_alive


def test_it_names_its_process_while_the_block_lasts(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    with beating(path):
        assert json.loads(path.read_text()) == {"host": host(), "pid": os.getpid()}
        beat = path.stat().st_mtime
        assert is_alive(path, beat) and is_alive(path, beat + SILENT_SECONDS)
        assert not is_alive(path, beat + SILENT_SECONDS + 1)
    assert not path.exists()


def test_a_folder_that_goes_ends_the_beats_without_a_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.001)
    with beating(tmp_path / "heartbeat"):
        (tmp_path / "heartbeat").unlink()
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_one_counts_by_its_own_time(tmp_path: Path) -> None:
    made = tmp_path.stat().st_mtime
    assert is_alive(tmp_path / "heartbeat", made) and not is_alive(tmp_path / "heartbeat", made + SILENT_SECONDS + 1)
    with pytest.raises(FileNotFoundError):
        is_alive(tmp_path / "gone" / "heartbeat", made)
