"""Files that are whole or not there: what a writer leaves that was killed goes with the next one, and no other does."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.errors import StorageError
from graftwork.io import files, locks
from graftwork.io.files import read_json, safe_load, write_json, write_tensors, write_text, writing

KILLED = """
import os, signal, sys
from pathlib import Path
from graftwork.io.files import writing
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
    (left,) = hidden(tmp_path)
    os.utime(tmp_path / left, (time.time() - files.SILENT_SECONDS - 1,) * 2)
    write_text(path, "new")
    assert hidden(tmp_path) == [] and path.read_text() == "new"


@pytest.mark.parametrize("granted", [False, True], ids=["locks", "locks granted to everybody"])
def test_two_that_write_one_file_leave_each_other_alone(
    granted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "leaderboard.json"
    if granted:
        monkeypatch.setattr(locks, "try_lock", lambda handle: True)
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


@pytest.mark.usefixtures("no_locks")
def test_without_locks_only_old_ones_are_nobodys(tmp_path: Path) -> None:
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


posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names, devices and the umask are POSIX's")


@posix
def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    path, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_text(path, "text")
    reader.join(10)
    assert read == [b"text"] and stat.S_ISFIFO(path.stat().st_mode)


@posix
def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.devnull)
    write_text(tmp_path / "link", "text")
    assert os.readlink(tmp_path / "link") == os.devnull and stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@posix
def test_what_is_printed_to_goes_on_behind_what_was_written(tmp_path: Path) -> None:
    printed, link = tmp_path / "printed", tmp_path / "link"
    link.symlink_to("/dev/stdout")  # never by its own name: who is root and gets this wrong takes it from the machine
    code = (
        "import sys; from pathlib import Path; from graftwork.io.files import write_text; "
        "print('one'); write_text(Path(sys.argv[1]), 'two\\n'); print('three')"
    )
    with printed.open("wb") as stream:
        subprocess.run([sys.executable, "-c", code, str(link)], stdout=stream, check=True)
    assert link.is_symlink() and printed.read_text().split() == ["one", "two", "three"]
    assert subprocess.check_output([sys.executable, "-c", code, str(link)]).split() == [b"one", b"two", b"three"]


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    for text in ("new", "newer"):
        write_text(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "file").read_text() == text
    assert hidden(tmp_path) == hidden(tmp_path / "folder") == []


@posix
def test_who_may_read_it_is_as_before_or_as_the_umask_says(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "text")
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
        for mode in (0o600, 0o666):
            (tmp_path / "new").chmod(mode)
            write_text(tmp_path / "new", "other")
            assert (tmp_path / "new").stat().st_mode & 0o777 == mode
    finally:
        os.umask(old)


def test_a_folder_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="this is a folder"), writing(tmp_path):
        pytest.fail("the block was begun")


def test_a_byte_of_a_path_that_is_no_utf_8_comes_back(tmp_path: Path) -> None:
    value = {"path": os.fsdecode(b"caf\xe9/\xc3\xa9.csv")}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    assert "caf\\udce9/é.csv" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_arrays_are_written_as_tensors_are(tmp_path: Path) -> None:
    arrays = {
        "weight": np.arange(6.0).reshape(2, 3),
        "shares": np.float32([0.5]),
        "turned": np.arange(6.0).reshape(2, 3).T,
        "one": np.array(2.0),
    }
    write_tensors(tmp_path / "arrays.safetensors", arrays)
    write_tensors(tmp_path / "tensors.safetensors", {name: torch.as_tensor(array) for name, array in arrays.items()})
    assert (tmp_path / "arrays.safetensors").read_bytes() == (tmp_path / "tensors.safetensors").read_bytes()
    assert safe_load(tmp_path / "arrays.safetensors")["turned"].tolist() == arrays["turned"].tolist()
