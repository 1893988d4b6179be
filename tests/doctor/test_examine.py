"""All checks together: each is told, one that breaks stops no other, and nothing is left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.doctor import examine
from graftwork.doctor.check import GROUPS, Check, Finding, IntendedUse
from graftwork.errors import StorageError
from graftwork.registry import checks

CHECKOUT = Path(__file__).resolve().parents[2]


def test_every_check_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    told = gw.doctor(backbone="tiny_text", runs=tmp_path / "runs", cache=tmp_path / "cache", seconds=0)
    assert sorted(told["checks"]) == checks.names() and len(checks.names()) >= 16
    groups = [one["group"] for one in told["checks"].values()]
    assert groups == sorted(groups, key=GROUPS.index)
    for name, one in told["checks"].items():
        for finding in one["findings"]:
            assert finding["level"] in ("ok", "note", "slow", "fails") and finding["says"], name
            assert finding["level"] == "ok" or (finding["why"] or finding["do"]), name
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert list(tmp_path.iterdir()) == []


def test_what_is_well_is_said_to_be(tmp_path: Path) -> None:
    told = gw.doctor(backbone="tiny_text", runs=tmp_path, cache=tmp_path, seconds=0)
    assert told["well"], examine.advice(told["checks"], "fails")


def test_a_missing_backbone_is_not_well(tmp_path: Path) -> None:
    told = gw.doctor(backbone="hf:nowhere/at/all", runs=tmp_path, cache=tmp_path, seconds=0)
    assert not told["well"]
    [one] = examine.advice(told["checks"], "fails")
    assert one["checks"] == ["backbone"] and "no such folder" in one["says"]


def test_a_check_that_breaks_is_told_and_stops_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def torn(asked: IntendedUse) -> Iterator[Finding]:
        yield Finding("half")
        raise ImportError("libtorch.so: cannot open shared object file")

    monkeypatch.setitem(checks._parts, "cores", Check("machine", torn))
    monkeypatch.setitem(checks._parts, "load", Check("machine", torn))
    told = gw.doctor(backbone="tiny_text", runs=tmp_path, cache=tmp_path, seconds=0)
    [one] = examine.advice(told["checks"], "fails")
    assert one["checks"] == ["cores", "load"] and "libtorch.so" in one["says"]
    assert told["checks"]["memory"]["findings"]


def test_an_error_of_ours_is_told_by_its_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(asked: IntendedUse) -> Iterator[Finding]:
        raise StorageError("permission denied", where="/there", expected="a folder", do="ask for it")

    monkeypatch.setitem(checks._parts, "cache", Check("folders", refuse))
    told = gw.doctor(backbone="tiny_text", runs=tmp_path, cache=tmp_path, seconds=0)
    [one] = examine.advice(told["checks"], "fails")
    assert (one["says"], one["why"], one["do"]) == ("/there: permission denied", "expected a folder", "ask for it")
    assert not any("\n" in finding["says"] for check in told["checks"].values() for finding in check["findings"])


def test_the_page_lists_every_check() -> None:
    page = (CHECKOUT / "docs" / "how-to" / "check-the-machine.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert sorted(rows) == checks.names()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_is_not_well(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o500)
    told: dict[str, Any] = gw.doctor(backbone="tiny_text", runs=closed / "runs", cache=tmp_path, seconds=0)
    assert not told["well"]
