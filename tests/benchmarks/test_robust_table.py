"""The table of benchmarks/robust: every bar beside what was measured, whatever a part measures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "benchmarks" / "robust"


@pytest.fixture
def script(imported: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    table = imported("robust/table")
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    return table


def write(folder: Path, name: str, **content: object) -> None:
    told = {"format": 1, "question": "Is it whole?", "status": "ok", "commit": {"hash": "0123456789abcdef"}}
    (folder / f"{name}.json").write_text(json.dumps(told | content), encoding="utf-8")


def test_a_result_says_what_the_table_prints(
    script: ModuleType, imported: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    result_file = imported("robust/result_file")
    asked = ("Is it whole?", {"failures": 0}, {"failures": 3}, "failed")
    content, brief = result_file.result_of(*asked), result_file.result_of(*asked, result_file.BRIEF, cases=[1])
    assert "cores" in content["environment"] and brief["environment"].keys() == {*result_file.BRIEF}
    assert brief.keys() == content.keys() | {"cases"} and content["commit"] == content["environment"]["commit"]
    (tmp_path / "hostile.json").write_text(json.dumps(content))
    assert "| failures | 0 | 3 |" in script.table()


def test_nothing_measured_is_nothing_told(script: ModuleType) -> None:
    assert script.table() == ""


def test_every_bar_stands_beside_what_was_measured(script: ModuleType, tmp_path: Path) -> None:
    write(tmp_path, "hostile", status="failed", bar={"failures": 0, "growth_bytes": 50_000_000},
          measured={"failures": 3, "rounds": 17}, environment={"time": "2026-11-22T08:03:05+00:00"})  # fmt: skip
    write(tmp_path, "kills", bar="every run equal", measured={"runs": 200})
    told = script.table()
    assert "| Hostile files | failed |" in told and "| Killed at any point | ok |" in told
    assert "| failures | 0 | 3 |" in told and "| growth bytes | 50,000,000 | – |" in told
    assert "| bar | every run equal | ok |" in told and "Also: rounds 17." in told and "Also: runs 200." in told
    assert "Commit 01234567, 2026-11-22." in told
    assert told.index("Killed at any point") < told.index("Hostile")


def test_what_was_measured_is_found_under_the_words_of_its_bar(script: ModuleType, tmp_path: Path) -> None:
    bar = {"kills_at_least": 30, "kills_with_a_checkpoint_at_least": 60, "different": 0, "overhead_at_most": 0.01}
    measured = {"kills": 31, "with_a_checkpoint": 57, "different": ["a", "b"], "overhead": None}
    write(tmp_path, "kills", bar=bar, measured=measured)
    told = script.table()
    assert "| kills at least | 30 | 31 |" in told and "| kills with a checkpoint at least | 60 | 57 |" in told
    assert "| different | 0 | 2 |" in told and "| overhead at most | 0.01 | – |" in told


def test_parts_have_a_script_a_row_and_a_place_in_the_makefile(script: ModuleType) -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == list(script.PARTS)
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^ROBUST := (.+)$", makefile, flags=re.MULTILINE)[1].split() == list(script.PARTS)  # type: ignore[index]
