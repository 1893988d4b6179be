"""Locks: one holder at a time, and a name that a former holder takes away is never held twice."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from graftwork.io import locks
from graftwork.io.locks import hold_lock, holding, try_lock


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path) as first, holding(path) as second:
        assert (first, second) == (True, False) and path.exists()
    assert not path.exists()
    with holding(path) as again:
        assert again


def test_a_name_that_was_taken_away_between_opening_and_locking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is nobody's any more: two would hold one name."""
    path, real, seen = tmp_path / "lock", locks.try_lock, []

    def late(handle: int) -> bool | None:
        seen.append(handle)
        if len(seen) < 3:
            path.unlink()
            if len(seen) == 2:
                path.touch()  # by the next holder
        return real(handle)

    monkeypatch.setattr(locks, "try_lock", late)
    with holding(path) as ours:
        assert ours and len(seen) == 3
        with path.open("rb") as stream:
            assert real(stream.fileno()) is False


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(handle: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", unknown)
    with (tmp_path / "lock").open("wb") as stream:
        assert try_lock(stream.fileno()) is None
    with holding(tmp_path / "lock") as ours, holding(tmp_path / "lock") as too:
        assert ours is None and too is None
    with hold_lock(tmp_path / "stays") as can_lock, hold_lock(tmp_path / "stays"):
        assert not can_lock
    assert (tmp_path / "stays").exists()


def test_another_error_is_no_lack_of_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(handle: int, how: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("fcntl.flock", broken)
    with pytest.raises(OSError, match="Input/output error"), holding(tmp_path / "lock"):
        pass
