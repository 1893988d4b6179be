"""The token: random, or from a file that is one's own; compared whole."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from graftwork.errors import ConfigError, StorageError
from graftwork.serve.auth_token import read_token, shows_token

TOKEN = "0123456789abcdef"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def test_a_token_is_read_without_its_line_end(token_file: Path) -> None:
    assert read_token(token_file) == TOKEN


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o640])
def test_a_group_may_know_it(token_file: Path, mode: int) -> None:
    token_file.chmod(mode)
    assert read_token(token_file) == TOKEN


@pytest.mark.parametrize("mode", [0o440, 0o444, 0o644])
@pytest.mark.parametrize("mounted", ["read-only", "another's"])
def test_files_that_kubernetes_systemd_and_docker_mount(
    tmp_path: Path, mode: int, mounted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "token").write_text(TOKEN)  # no line end, as from --from-literal
    (tmp_path / "..2026" / "token").chmod(mode)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "token").symlink_to("..data/token")
    if mounted == "read-only":
        monkeypatch.setattr(os, "fstatvfs", lambda number: SimpleNamespace(f_flag=os.ST_RDONLY | os.ST_NOSUID))
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    assert read_token(tmp_path / "token") == TOKEN


def test_a_token_from_a_pipe() -> None:
    reading, writing = os.pipe()
    os.write(writing, TOKEN.encode())
    os.close(writing)
    assert read_token(Path(f"/dev/fd/{reading}")) == TOKEN
    os.close(reading)


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o660, 0o620])
def test_a_file_that_others_can_read_is_refused(token_file: Path, mode: int) -> None:
    token_file.chmod(mode)
    with pytest.raises(ConfigError, match=rf"read by others(.|\n)*mode {mode:04o}(.|\n)*chmod 600"):
        read_token(token_file)


@pytest.mark.parametrize("content", ["", "short", "two words of enough", f"{TOKEN}\n{TOKEN}", "é" * 20])
def test_no_proper_token(token_file: Path, content: str) -> None:
    token_file.write_text(content)
    with pytest.raises(ConfigError, match="not contain a valid token"):
        read_token(token_file)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        read_token(tmp_path / "none")


@pytest.mark.parametrize(
    ("header", "password", "shown"),
    [
        (f"Bearer {TOKEN}", False, True),
        (f"bearer  {TOKEN} ", False, True),
        (f"Bearer {TOKEN}x", False, False),
        (f"Bearer {TOKEN[:-1]}", False, False),
        ("Bearer", False, False),
        (TOKEN, False, False),
        ("Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode(), True, True),
        ("Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode(), False, False),
        ("Basic ?", True, False),
        ("Bearer \xff", True, False),
    ],
)
def test_what_shows_a_token(header: str, password: bool, shown: bool) -> None:
    assert shows_token(header.encode("latin-1"), TOKEN, password=password) is shown
    assert shows_token(None, TOKEN, password=password) is False
