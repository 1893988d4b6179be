"""Pages that are let go: memory falls, values stay, and nothing that no file backs is touched."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from graftwork.io.files import safe_load
from graftwork.machine import page_release
from graftwork.machine.page_release import let_go

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems count mapped pages otherwise")
NUMBERS = 4 << 20  # 16 MB


def resident_bytes(tensor: Tensor) -> int:
    """Of the maps in which a tensor lies."""
    begin, total, inside = tensor.data_ptr(), 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            low, _, high = first.partition("-")
            inside = int(low, 16) <= begin < int(high, 16)
        elif inside and first == "Rss:":
            total += int(line.split()[1]) * 1024
    return total


def test_what_was_read_of_a_file_is_let_go_and_read_again(tmp_path: Path) -> None:
    save_file({"x": torch.arange(NUMBERS, dtype=torch.float32)}, tmp_path / "x.safetensors")
    found = safe_load(tmp_path / "x.safetensors")["x"]
    whole = float(found.double().sum())
    held = resident_bytes(found)
    let_go([found])
    assert held >= 4 * NUMBERS and resident_bytes(found) < held / 10
    assert float(found.double().sum()) == whole == NUMBERS * (NUMBERS - 1) / 2


def test_what_was_written_to_a_shared_map_is_the_files(tmp_path: Path) -> None:
    path = tmp_path / "map"
    path.write_bytes(bytes(4 * NUMBERS))
    with open(path, "r+b") as stream:
        tensor = torch.frombuffer(mmap.mmap(stream.fileno(), 4 * NUMBERS), dtype=torch.float32)
    rows = tensor.view(4, -1)  # let go one by one: their edges share pages
    rows.copy_(torch.arange(NUMBERS, dtype=torch.float32).view(4, -1))
    held = resident_bytes(tensor)
    let_go(rows)
    assert resident_bytes(tensor) < held / 10
    assert torch.equal(tensor, torch.arange(NUMBERS, dtype=torch.float32))


def test_memory_that_no_file_backs_is_kept() -> None:
    tensor = torch.arange(NUMBERS, dtype=torch.float32)
    let_go([tensor, tensor[1:2]])
    assert torch.equal(tensor, torch.arange(NUMBERS, dtype=torch.float32))


def test_without_a_list_of_maps_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page_release, "MAPS", tmp_path / "none")
    page_release._madvise.cache_clear()
    tensor = torch.ones(NUMBERS)
    let_go([tensor])
    assert page_release._madvise() is None and bool(tensor.all())
    page_release._madvise.cache_clear()
