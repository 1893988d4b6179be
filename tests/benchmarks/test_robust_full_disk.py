"""Full disks: that every write is seen and made to fail, and that what is torn, changed or left is found."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from graftwork.io.files import write_json, writing

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"


@pytest.fixture(scope="module")
def disks(imported: Callable[[str], ModuleType]) -> Iterator[ModuleType]:
    module = imported("robust/full_disk")
    sys.addaudithook(module.DISK.hear)  # for good: it hears nothing while it has no root
    yield module
    module.DISK.root = ""


def test_every_write_is_seen_and_one_of_them_fails(disks: ModuleType, tmp_path: Path) -> None:
    disk = disks.DISK
    disk.root, disk.fails, disk.sites = f"{tmp_path}/", -1, []
    write_json(tmp_path / "deep" / "a.json", {})
    (tmp_path / "deep" / "a.json").read_bytes()
    os.open(tmp_path / "deep", os.O_RDONLY)
    assert disk.sites == ["mkdir deep", "open deep/.a.json.xxxx.part", "rename deep/a.json"]
    for fails in range(1, 3):
        disk.fails, disk.sites = fails, []
        with pytest.raises(Exception, match="the disk is full"):
            write_json(tmp_path / "deep" / "b.json", {})
    disk.root = ""
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["a.json"]


def test_names_without_luck(disks: ModuleType) -> None:
    assert disks.named(f"cache/.{'a' * 64}-1.safetensors.x_y01234.part") == "cache/.HASH-1.safetensors.xxxx.part"
    assert disks.named("runs/.0123456789ab.abcd_012/log.jsonl") == "runs/.ID.xxxx/log.jsonl"
    assert disks.named("runs/0123456789ab") == "runs/ID"


SAID = "graft: board: the disk is full\n  do:       free some space"
WARNED = "graft: nothing can be kept in the cache x: No space left on device; frozen states stay in memory\n"


@pytest.mark.parametrize(
    ("code", "said", "fine"),
    [
        (2, SAID, True),
        (2, WARNED + SAID, True),
        (2, WARNED + WARNED + SAID, False),
        (2, f"{SAID}\n{SAID}", False),
        (2, "graft: no such file or folder", False),
        (1, SAID, False),
        (0, "", True),
        (0, WARNED, True),
        (0, SAID, False),
        (2, f"Traceback\n{SAID}", False),
    ],
)
def test_what_is_clear(disks: ModuleType, tmp_path: Path, code: int, said: str, fine: bool) -> None:
    found = disks.judged(tmp_path, {}, code, said, "site")
    assert bool(found.pop("unclear")) is not fine and not any(found.values())


def test_what_is_torn_changed_or_left_over(disks: ModuleType, tmp_path: Path) -> None:
    write_json(tmp_path / "board" / "leaderboard.json", {})
    write_json(tmp_path / "own.bank" / "bank.json", {})
    (tmp_path / "answers.csv").write_text("old\n")
    before = disks.state(tmp_path)
    assert not any(disks.judged(tmp_path, before, 2, SAID, "site").values())
    write_json(tmp_path / "board" / "leaderboard.json", {"new": 1})
    assert not any(disks.judged(tmp_path, before, 2, SAID, "site").values())
    (tmp_path / "board" / "leaderboard.json").write_text('{"new')
    write_json(tmp_path / "own.bank" / "bank.json", {"new": 1})
    (tmp_path / "answers.csv").unlink()
    (tmp_path / "runs/.0123456789ab.abcd_012").mkdir(parents=True)
    (tmp_path / "runs/.0123456789ab.checkpoint").mkdir()
    write_json(tmp_path / "runs/half/result.json", {})
    found = disks.judged(tmp_path, before, 2, SAID, "site")
    assert found == {
        "torn": ["site: board/leaderboard.json"],
        "changed": ["site: half", "site: answers.csv", "site: own.bank/bank.json"],
        "left_over": ["site: runs/.0123456789ab.abcd_012"],
        "unclear": [],
        "not_gone_on": [],
    }


@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.safetensors", "x.html", "x.csv"])
def test_whatever_is_cut_is_torn(disks: ModuleType, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"a": "<html>", 1.0')
    assert not disks.whole(tmp_path / name)


def test_every_line_is_looked_at(disks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{}\n{"a": 1}\n')
    assert disks.whole(tmp_path / "x.jsonl")
    (tmp_path / "x.jsonl").write_text('{}\n{"a": \n')
    assert not disks.whole(tmp_path / "x.jsonl")


def test_a_command_that_fails_at_every_write(disks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "scene").mkdir()
    found, sites = disks.every_site(disks.Case("create", disks.CREATE), tmp_path / "scene", tmp_path / "tried")
    assert found.tried == len(sites) > 5 and not any(found.wrong.values())
    assert "rename own.bank" in sites


def test_a_writer_that_is_not_atomic_is_found(
    disks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(folder: Path, words: object) -> tuple[int, str]:
        try:
            (folder / "report.html").write_text("half")
            with writing(folder / "done.json") as stream:
                stream.write(b"{}")
        except Exception:
            return 2, SAID
        return 0, ""

    (tmp_path / "scene").mkdir()
    (tmp_path / "scene/report.html").write_text("whole</html>")
    monkeypatch.setattr(disks, "run", careless)
    found, _ = disks.every_site(disks.Case("careless", ()), tmp_path / "scene", tmp_path / "tried")
    assert "open .done.json.xxxx.part: report.html" in found.wrong["torn"]
