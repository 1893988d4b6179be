"""Files that are whole or not there: what a writer leaves that was killed goes with the next one, and no other does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graftwork import files
from graftwork.errors import StorageError
from graftwork.files import write_text, writing

KILLED = """
import os, signal, sys
from pathlib import Path
from graftwork.files import writing
with writing(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".*"))


def test_what_a_killed_writer_left_goes_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_text(path, "old")
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert len(hidden(tmp_path)) == 1 and path.read_text() == "old"
    write_text(tmp_path / "other.html", "another file's are let be")
    assert len(hidden(tmp_path)) == 1
    write_text(path, "new")
    assert hidden(tmp_path) == [] and path.read_text() == "new"


def test_two_that_write_one_file_leave_each_other_alone(tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.json"
    with writing(path) as first:
        first.write(b"first")
        write_text(path, "second")
        assert len(hidden(tmp_path)) == 1
    assert path.read_text() == "first" and hidden(tmp_path) == []


def test_a_block_that_ends_early_leaves_what_was_there(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")
    with pytest.raises(KeyError), writing(tmp_path / "a") as stream:
        stream.write(b"new")
        raise KeyError
    assert (tmp_path / "a").read_text() == "old" and hidden(tmp_path) == []


def test_one_that_is_swept_before_it_is_locked_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, names = files.try_lock, []

    def late(handle: int) -> bool | None:
        names.extend(hidden(tmp_path))
        if len(names) == 1:
            (tmp_path / names[0]).unlink()
        return real(handle)

    monkeypatch.setattr(files, "try_lock", late)
    write_text(tmp_path / "a", "text")
    assert len(names) == 2 and (tmp_path / "a").read_text() == "text"


def test_without_locks_only_old_ones_are_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "try_lock", lambda handle: None)
    old, young = tmp_path / ".a.old.part", tmp_path / ".a.young.part"
    for path in (old, young):
        path.write_text("half")
    long_ago = time.time() - 2 * files.PART_SECONDS
    os.utime(old, (long_ago, long_ago))
    write_text(tmp_path / "a", "text")
    assert hidden(tmp_path) == [young.name]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file or folder"), writing(tmp_path / "none" / "a"):
        pass
