"""Folders of flowers: by lists where there are some, else a split is drawn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from graftwork.benchmark.official import write_task
from graftwork.benchmark.run_suite import benchmark
from graftwork.benchmark.suite_table import remarks
from graftwork.errors import DataError, StorageError
from graftwork.registry import suites

COLOURS = {"daisy": (240, 240, 240), "roses": (200, 20, 40)}


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    folder = tmp_path / "flower_photos"
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for i in range(20):
            Image.new("RGB", (8, 8), tuple(max(0, part - i) for part in colour)).save(folder / name / f"{i}.png")
    return folder


def through(folder: Path, out: Path) -> dict[str, Any]:
    done = benchmark("flowers", folder, methods=["colour_histogram"], seeds=1, out=out / "o", runs=out / "r", jobs=1)
    return dict(done.content)


def test_without_lists_a_split_is_drawn(flowers: Path, tmp_path: Path) -> None:
    content = through(flowers, tmp_path)
    assert content["tasks"]["flowers"]["rows"] == {"train": 28, "validation": 4, "test": 8}
    best = next(row for row in content["rows"] if row["method"] == "colour_histogram")
    assert best["scores"]["flowers accuracy"]["mean"] == 1
    told = " ".join(remarks(content))
    assert "drawn by a hash of their content, is the test split" in told
    assert "To hand in" not in told and "hidden" not in told and "server" not in told
    assert "a tenth of train drawn by a hash of its content" in told


@pytest.mark.parametrize("suffix", [".txt", ".tsv"])
def test_lists_are_the_split(flowers: Path, suffix: str) -> None:
    sign = "\t" if suffix == ".tsv" else " "
    header = "file\tlabel\n" if suffix == ".tsv" else ""
    for name, numbers in (("train_list", range(3)), ("val_list", range(3, 5))):
        lines = [f"{label}/{i}.png{sign}{label}\n" for label in COLOURS for i in numbers]
        (flowers / f"{name}{suffix}").write_text(header + "".join(lines))
    task = suites.get("flowers").tasks(flowers)[0]
    held_out = task.tests["flowers"]
    assert held_out is not None
    rows = [row for row in held_out.read() if row]
    assert [row["label"] for row in rows] == ["daisy", "daisy", "roses", "roses"]
    assert all(Path(row["image"]).is_file() for row in rows)
    assert len(list(task.train.read())) == 6


def test_of_two_held_out_lists_one_is_validation(flowers: Path, tmp_path: Path) -> None:
    for name, numbers in (("train_list", range(8)), ("val_list", range(8, 12)), ("test_list", range(12, 15))):
        lines = [f"{label}/{i}.png {label}\n" for label in COLOURS for i in numbers]
        (flowers / f"{name}.txt").write_text("".join(lines))
    content = through(flowers, tmp_path)
    assert content["tasks"]["flowers"]["rows"] == {"train": 16, "validation": 8, "test": 6}
    told = " ".join(remarks(content))
    assert "images of test_list.txt are scored on, choices were made on those of val_list.txt" in told
    assert "tenth of train" not in told


def test_the_same_images_are_drawn_in_another_folder(flowers: Path, tmp_path: Path) -> None:
    there = shutil.copytree(flowers, tmp_path / "elsewhere" / "photos")
    drawn = []
    for folder, out in ((flowers, tmp_path / "a"), (there, tmp_path / "b")):
        write_task(suites.get("flowers").tasks(folder)[0], out, 12)
        rows = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
        drawn.append([str(Path(row["image"]).relative_to(folder)) for row in rows])
    assert drawn[0] == drawn[1] and len(drawn[0]) == 12


def test_what_is_no_list_or_no_folder(flowers: Path, tmp_path: Path) -> None:
    (flowers / "train_list.txt").write_text("daisy/1.png daisy\ndaisy/2.png\n")
    (flowers / "val_list.txt").write_text("daisy/3.png daisy\n")
    with pytest.raises(DataError, match="not a path and a label") as caught:
        list(suites.get("flowers").tasks(flowers)[0].train.read())
    assert caught.value.where.endswith("train_list.txt:2")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="no daisy"):
        benchmark("flowers", tmp_path / "empty")


def test_a_path_may_hold_spaces(flowers: Path) -> None:
    (flowers / "daisy" / "1.png").rename(flowers / "daisy" / "1 of 2.png")
    (flowers / "train_list.txt").write_text("daisy/1 of 2.png daisy\n")
    (flowers / "val_list.txt").write_text("daisy/3.png daisy\n")
    [row] = suites.get("flowers").tasks(flowers)[0].train.read()
    assert row == {"image": str((flowers / "daisy" / "1 of 2.png").resolve()), "label": "daisy"}
