"""The benchmark of hostile files: its artefacts are what they are called, its judge sees what is wrong, and it runs."""

from __future__ import annotations

import faulthandler
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"
FOUND = {"code": 2, "seconds": 0.1, "cpu_seconds": 0.1, "bytes": 1000, "said": "graft: config.json: 'auto_map' asks"}


@pytest.fixture(scope="module")
def script(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("robust/hostile")


@pytest.fixture(scope="module")
def artefacts(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("robust/artefacts")


def test_there_are_enough_and_each_is_one_of_its_own(script: ModuleType) -> None:
    names = [case.name for case in script.CASES]
    assert len(set(names)) == len(names) >= 40
    assert all(
        case.rule and case.command[0] in ("train", "predict", "bank", "data", "vectors") for case in script.CASES
    )


def test_what_is_wrong_is_seen(script: ModuleType) -> None:
    case = script.Case("x", lambda scene: None, ("predict",), "config.json", "auto_map|evil")
    assert script.wrong(case, FOUND, False) == []
    for changed in (
        {"code": 0}, {"code": 1}, {"code": None}, {"seconds": 1.5}, {"seconds": None}, {"bytes": 300_000_000},
        {"bytes": None}, {"said": "graft: 'auto_map' asks"}, {"said": "graft: config.json: no"},
        {"said": FOUND["said"] + "\nTraceback (most recent call last)"},
    ):  # fmt: skip
        assert len(script.wrong(case, FOUND | changed, False)) == 1, changed
    assert script.wrong(case, FOUND, True) == ["something was run, or written elsewhere"]


def test_one_miss_fails_it(script: ModuleType) -> None:
    fine = {"case": "x", "seconds": 0.1, "cpu_seconds": 0.1, "bytes": 10, "canary": False, "wrong": []}
    benign = {"a module": {"code": 0}}
    assert script.judged([fine], benign)["status"] == "ok"
    assert script.judged([fine, fine | {"wrong": ["exit code 0"]}], benign)["status"] == "failed"
    missed = script.judged([fine], {"a module": {"code": 2}})
    assert missed["status"] == "failed" and missed["failing"] == ["a module"]
    assert missed["bar"].keys() <= missed["measured"].keys()


def test_the_payload_would_make_the_canary(
    artefacts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function, arguments = artefacts.Payload().__reduce__()
    function(*arguments)
    assert (tmp_path / artefacts.CANARY).exists()


@pytest.mark.slow
def test_the_archives_are_what_they_are_called(artefacts: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "bomb").write_bytes(artefacts.zip_bomb())
    with zipfile.ZipFile(tmp_path / "bomb") as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    assert unpacked > 500 * (tmp_path / "bomb").stat().st_size
    (tmp_path / "overlapping").write_bytes(artefacts.overlapping())
    with zipfile.ZipFile(tmp_path / "overlapping") as archive:
        entries = archive.infolist()
        assert len({entry.header_offset for entry in entries}) < len(entries) == 1001


@pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are measured in forked processes")
def test_a_command_is_measured_in_a_child(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def eating(words: Any) -> int:
        held = bytearray(60 << 20)
        os.write(2, f"config.json {len(held) and words}".encode())
        return 2

    def dying(words: Any) -> int:
        faulthandler.disable()  # the child's: a hundred lines on its stack would stand among the dots of the tests
        os.abort()

    monkeypatch.setattr(script, "graft", eating)
    found = script.forked(tmp_path, ("x",))
    assert found["code"] == 2 and "config.json ['x']" in found["said"]
    assert 50 << 20 < found["bytes"] < 200 << 20 and 0 < found["seconds"] < script.HANGING
    monkeypatch.setattr(script, "graft", dying)
    assert script.forked(tmp_path, ("x",))["said"].startswith("died")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are measured in forked processes")
def test_it_runs_small(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["hostile.py", "--out", str(tmp_path), "--only", "auto_map", "--tries", "1"])
    script.main()
    result = script.read_json(tmp_path / "hostile.json")
    assert result["measured"]["artefacts"] == 1 and result["measured"]["canaries"] == 0
    assert result["cases"][0]["code"] == 2 and result["measured"]["benign_that_fail"] == 0
