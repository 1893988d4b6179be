"""Plain files: nothing is waited for, nothing outside of a folder is reached, and what a file is is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graftwork.errors import StorageError
from graftwork.io import plain_files
from graftwork.io.files import file_digest, read_json, safe_load
from graftwork.io.plain_files import foreign, inside, open_plain, read_plain, require_plain_folder

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names and devices are POSIX's")


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert read_plain(tmp_path / "a", 7) == b"content"
    with open_plain(tmp_path / "a") as stream:
        assert stream.read(3) == b"con"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    with pytest.raises(StorageError, match=r"too large[\s\S]*got: +7 bytes[\s\S]*at most 6 bytes"):
        read_plain(tmp_path / "a", 6)
    (tmp_path / "b").touch()
    os.truncate(tmp_path / "b", 1 << 40)
    with pytest.raises(StorageError, match="too large"):
        read_plain(tmp_path / "b", 1 << 20)


@posix
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("a.json", "a.safetensors"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(StorageError, match=r"a\.json: a pipe where a plain file"):
        read_json(tmp_path / "a.json")
    with pytest.raises(StorageError, match="a pipe"):
        safe_load(tmp_path / "a.safetensors")
    with pytest.raises(StorageError, match="a pipe"):
        file_digest(tmp_path / "a.safetensors")


@posix
def test_a_device_is_not_read() -> None:
    with pytest.raises(StorageError, match="a device"):
        read_json(Path("/dev/zero"))


def test_a_folder_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="a folder, where a file is needed"):
        read_json(tmp_path)


def test_what_is_inside_is_found(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a").touch()
    assert inside(tmp_path, "one/a") == tmp_path / "one" / "a"
    with pytest.raises(FileNotFoundError):
        inside(tmp_path, "one/b")


@pytest.mark.parametrize(
    "name", ["../a", "one/../../a", "/etc/passwd", "C:\\a", "..\\a", "\\\\host\\a", "a\0b", ["a"], "one\\..\\..\\a"]
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError, match="points outside its folder"):
        inside(tmp_path, name)


def test_links_are_refused_wherever_they_lead(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "a").touch()
    (folder / "link").symlink_to("one/a")
    (folder / "two").symlink_to("one")
    for name in ("link", "two/a"):
        with pytest.raises(StorageError, match="a symbolic link where a plain file"):
            inside(folder, name)
    with pytest.raises(StorageError, match="a symbolic link"):
        require_plain_folder(folder)
    (tmp_path / "entry").symlink_to(folder)
    assert inside(tmp_path / "entry", "one/a").is_file()  # how one comes to the folder is its owner's affair


def test_a_folder_of_plain_files_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a").touch()
    os.link(tmp_path / "one" / "a", tmp_path / "b")  # a hard link is a file
    require_plain_folder(tmp_path)
    monkeypatch.setattr(plain_files, "MOST_FILES", 2)
    with pytest.raises(StorageError, match="too many files"):
        require_plain_folder(tmp_path)


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"PK\x03\x04rest", "a zip archive"),
        (b"7z\xbc\xaf\x27\x1crest", "a 7z archive"),
        (b"\x80\x04rest", "a pickle"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"version https://git-lfs.github.com/spec/v1", "a pointer of git-lfs, whose file was not fetched"),
        (b"{}", None),
        (b"", None),
    ],
)
def test_what_a_file_is_is_told_by_its_beginning(start: bytes, what: str | None) -> None:
    assert foreign(start) == what
