"""The guards of `conftest.py` do guard."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import torch


def test_no_network() -> None:
    with socket.socket() as other, pytest.raises(AssertionError, match="no network"):
        other.connect(("192.0.2.1", 9))
    with pytest.raises(AssertionError, match="no network"):
        socket.create_connection(("example.org", 80), timeout=0.1)


def test_this_machine_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.sendall(b"x")


def test_sockets_in_the_file_system_are_open(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(tmp_path / "s"))
        server.listen()
        client.connect(str(tmp_path / "s"))


def test_surroundings(own_home: Path) -> None:
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert torch.get_num_threads() == 1
    assert Path.home() == own_home
    there = [path.relative_to(own_home).parent for path in own_home.rglob("*") if path.is_file()]
    assert there == [Path("cache/precision")], "but for the precision that auto is"
