"""Where the cache is, and that only files of its own are ever touched."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from graftwork.io.cache_folder import CacheEntry, CacheFolder, EntryBeingWritten, cache_folder, touch
from graftwork.io.locks import try_lock

NAME = f"{'0' * 63}%d-pooled.safetensors"
PLACE = Path(NAME % 9)  # of the entry that room is made for


def entry(root: Path, number: int, size: int, age: float) -> Path:
    path = root / (NAME % number)
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_the_folder_is_named_by_the_user_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFTWORK_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_folder("/given") == Path("/given/prefix")
    assert cache_folder() == Path("/own/prefix")
    monkeypatch.delenv("GRAFTWORK_CACHE")
    assert cache_folder() == Path("/shared/graftwork/prefix")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "graftwork" / "prefix"


def test_room_is_made_by_the_least_recently_used(tmp_path: Path) -> None:
    old, older, new = (entry(tmp_path, number, 100, age) for number, age in ((1, 20), (2, 30), (3, 10)))
    folder = CacheFolder(tmp_path, 320)
    with folder.room_for(20, PLACE) as free:
        assert free and older.exists()
    with folder.room_for(100, PLACE) as free:
        assert free and not older.exists() and old.exists()
    touch(old)
    with folder.room_for(150, PLACE) as free:
        assert free and old.exists() and not new.exists()
    with folder.room_for(321, PLACE) as free:
        assert not free and old.exists()


def test_what_another_process_is_writing_counts_and_stays(tmp_path: Path) -> None:
    part = tmp_path / f".{NAME % 1}.abc.part"
    kept = entry(tmp_path, 2, 100, 10)
    with part.open("wb") as stream:
        stream.write(bytes(200))
        stream.flush()
        assert try_lock(stream.fileno())
        with CacheFolder(tmp_path, 320).room_for(100, PLACE) as free:
            assert free and not kept.exists()
        with CacheFolder(tmp_path, 320).room_for(130, PLACE) as free:
            assert not free and part.exists()
        other = entry(tmp_path, 3, 50, 10)
        with CacheFolder(tmp_path, 320).room_for(130, PLACE) as free:
            assert not free and other.exists()  # nothing is thrown away for what has no room beside the part
        other.unlink()
        with pytest.raises(EntryBeingWritten), CacheFolder(tmp_path, 320).room_for(1, tmp_path / (NAME % 1)):
            pass
    with CacheFolder(tmp_path, 320).room_for(130, tmp_path / (NAME % 1)) as free:  # it was killed
        assert free and not part.exists()


@pytest.mark.usefixtures("no_locks")
def test_where_nothing_can_be_locked_a_part_goes_with_age(tmp_path: Path) -> None:
    old, new = tmp_path / f".{NAME % 1}.abc.part", tmp_path / f".{NAME % 2}.abc.part"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 4000, time.time() - 4000))
    with CacheFolder(tmp_path).room_for(1, PLACE):
        assert not old.exists() and new.exists()
    with CacheFolder(tmp_path).room_for(1, tmp_path / (NAME % 2)) as free:  # nobody knows whether its writer lives
        assert free


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    for name in ("model.safetensors", "notes.txt", "x-pooled.safetensors"):
        (tmp_path / name).write_bytes(b"mine")
    entry(tmp_path, 1, 10, 10)
    folder = CacheFolder(tmp_path, 10)
    assert [one.bytes for one in folder.clear()] == [10]
    assert sorted(os.listdir(tmp_path)) == [".lock", "model.safetensors", "notes.txt", "x-pooled.safetensors"]


def test_no_folder_is_an_empty_cache(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path / "none")
    assert folder.entries() == [] and folder.clear() == [] and not folder.root.exists()
    assert CacheEntry(tmp_path / "gone", 0, 0.0).about() == {}
