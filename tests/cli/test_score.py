"""`graft score`: a module or a task of a bank on another labelled file, lines and JSON, and files that are wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Graft = Callable[..., Any]


@pytest.fixture
def modules(two_modules: tuple[Path, dict[str, str]], graft: Graft, tmp_path: Path) -> dict[str, str]:
    """Method -> its module, the second in b.bank too."""
    shutil.copytree(two_modules[0], tmp_path, dirs_exist_ok=True)
    return two_modules[1]


@pytest.fixture
def new(written: Callable[..., Path]) -> Path:
    """Sixty tickets that nobody has seen, with a byte order mark."""
    texts = ("where is my parcel", "refund the invoice", "the app has crashed")
    rows = [(f"{texts[i % 3]} number {i}", ("delivery", "billing", "technical")[i % 3]) for i in range(40, 100)]
    path = written("new.csv", ("text", "label"), rows)
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    return path


def test_it_is_told_beside_the_floor_and_its_own_test(graft: Graft, modules: dict[str, str], new: Path) -> None:
    done = graft("score", modules["linear_probe"], new, "--also", modules["majority"])
    assert done.code == 0, done.err
    found = json.loads(graft("score", modules["linear_probe"], new, "--also", modules["majority"], "--json").out)
    accuracy = found["scores"]["accuracy"]
    shown = f"{100 * accuracy['score']:.1f}"
    shown += f" [{100 * accuracy['low']:.1f}, {100 * accuracy['high']:.1f}]" if accuracy["low"] is not None else ""
    line = next(line for line in done.out.splitlines() if line.startswith("  accuracy"))
    assert shown in line and " 33.3 " in line and line.endswith(f"{100 * found['own_test']['accuracy']:.1f}")
    lost = f"-{100 * (accuracy['score'] - found['majority']['accuracy']):.1f}"
    assert f"majority is worse than linear_probe by accuracy: {lost} [" in done.out
    assert "no row of the file is among its training or validation rows" in done.out
    assert "60 rows of new.csv" in done.out


def test_a_task_of_a_bank_is_the_module(graft: Graft, modules: dict[str, str], new: Path, tmp_path: Path) -> None:
    told, in_bank = (
        json.loads(graft("score", *which, new, "--json").out)
        for which in ((Path(modules["linear_probe"]).parent,), (tmp_path / "b.bank", "tickets"))
    )
    assert told["scores"] == in_bank["scores"] and told["seen"] == in_bank["seen"]
    assert "graft score BANK TASK FILE" in graft("score", tmp_path / "b.bank", new).err


def test_rows_of_its_own_training_are_told(graft: Graft, modules: dict[str, str], tickets: Path) -> None:
    rows = json.loads((Path(modules["majority"]) / "module.json").read_text())["data"]["rows"]
    out = graft("score", modules["majority"], tickets).out
    assert f"majority: rows of the file in its training data: {rows['train']} exactly" in out
    assert "Scores on these rows say nothing about new rows." in out


def test_columns_and_rejects(graft: Graft, modules: dict[str, str], written: Callable[..., Path]) -> None:
    rows = [("my parcel", "delivery"), ("", "billing"), ("it crashed", "technical")]
    file = written("odd.csv", ("body", "gold"), rows)
    done = graft("score", modules["majority"], file, "--text", "body", "--label", "gold", "--rejects", "bad.jsonl")
    assert done.code == 0, done.err
    assert "2 rows of odd.csv" in done.out and "fewer than 20 intervals are rough" in done.out
    assert "1 row can't be read: bad.jsonl" in done.err
    assert json.loads(Path("bad.jsonl").read_text(encoding="utf-8"))["line"] == 3


def test_bad_files_are_one_message(graft: Graft, modules: dict[str, str], written: Callable[..., Path]) -> None:
    files = {
        "a.csv": (("text", "lable"), [("my parcel", "delivery")], "did you mean --label lable?"),
        "b.csv": (("text", "label"), [("my parcel", "delivery"), ("x", "lost")], "b.csv:3: labels that the module"),
        "c.csv": (("text", "label"), [("my parcel", "delivery"), ("x", "")], "c.csv:3: the label is empty"),
    }
    for name, (header, rows, words) in files.items():
        done = graft("score", modules["majority"], written(name, header, rows))
        assert (done.code, done.out) == (2, "") and words in done.err
    Path("empty.csv").touch()
    assert "empty.csv: the file is empty" in graft("score", modules["majority"], "empty.csv").err
    assert "no such file" in graft("score", modules["majority"], "none.csv").err


def test_no_other_kind_is_advised(graft: Graft, modules: dict[str, str], new: Path) -> None:
    """There is none to choose: it is the module's."""
    Path("words.jsonl").write_text('{"tokens": ["a", "b"], "tags": ["X", "Y"]}\n', encoding="utf-8")
    for flags in ((new, "--realign"), ("words.jsonl",)):
        done = graft("score", modules["majority"], *flags)
        assert done.code == 2 and "--kind" not in done.err
        assert "the module answers tasks of kind classification" in done.err
