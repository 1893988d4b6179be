"""What a control group allows, of both versions, as the kernel writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.machine import cgroup

Groups = Callable[[str, dict[str, str]], None]


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Groups:
    """`groups("0::/a/b", {"a/memory.max": "max"})`: the kernel's files."""

    def put(own: str, files: dict[str, str]) -> None:
        (tmp_path / "own").write_text(own + "\n")
        for name, text in files.items():
            path = tmp_path / "mount" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        monkeypatch.setattr(cgroup, "OWN", tmp_path / "own")
        monkeypatch.setattr(cgroup, "MOUNT", tmp_path / "mount")

    return put


def test_without_limits_there_is_none(groups: Groups) -> None:
    groups("0::/a", {"a/cpu.max": "max 100000", "a/memory.max": "max"})
    assert (cgroup.core_quota(), cgroup.memory_limit(), cgroup.memory_used()) == (None, None, None)


def test_the_second_version_takes_the_least_of_all_groups_above(groups: Groups) -> None:
    files = {"a/b/cpu.max": "400000 100000", "a/cpu.max": "150000 100000"}
    files |= {"a/b/memory.max": "max", "a/memory.max": "2000000000", "a/memory.current": "7000"}
    groups("0::/a/b", files)
    assert cgroup.core_quota() == 1.5
    assert cgroup.memory_limit() == 2_000_000_000 and cgroup.memory_used() == 7000


def test_the_first_version_has_a_folder_for_each_controller(groups: Groups) -> None:
    files = {"cpu/x/cpu.cfs_quota_us": "50000", "cpu/x/cpu.cfs_period_us": "100000", "cpu/cpu.cfs_quota_us": "-1"}
    files |= {"memory/x/memory.limit_in_bytes": "1000000", "memory/x/memory.usage_in_bytes": "10"}
    files |= {"memory/memory.limit_in_bytes": "9223372036854771712", "cpu/cpu.cfs_period_us": "100000"}
    groups("3:memory:/x\n2:cpu:/x\n1:pids:/x\n0::/", files)
    assert cgroup.core_quota() == 0.5
    assert cgroup.memory_limit() == 1_000_000 and cgroup.memory_used() == 10


def test_inside_a_container_the_group_may_be_the_mount_itself(groups: Groups) -> None:
    groups("0::/docker/4f2a", {"memory.max": "3000", "memory.current": "5", "cpu.max": "200000 100000"})
    assert (cgroup.core_quota(), cgroup.memory_limit(), cgroup.memory_used()) == (2.0, 3000, 5)


def test_a_system_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "OWN", tmp_path / "none")
    assert (cgroup.core_quota(), cgroup.memory_limit(), cgroup.memory_used()) == (None, None, None)
