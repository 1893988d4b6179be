"""Folders of class folders, and lists of files: what is read, and what is refused with its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.media import Media
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError
from graftwork.testing.tiny_media import write_folder, write_image, write_sound


def refusal(path: Path, **flags: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        load(Task.from_file(path, **flags))
    assert caught.value.where and caught.value.do
    return caught.value


def listed(folder: Path, rows: list[str], header: str = "image\tlabel", name: str = "list.tsv") -> Path:
    (folder / name).write_text("\n".join([header, *rows]) + "\n")
    return folder / name


@pytest.mark.parametrize("role", ["image", "sound"])
def test_class_folders_are_labels(tmp_path: Path, role: str) -> None:
    folder = write_folder(tmp_path / "things", role, 10)
    (folder / "SOURCE.md").write_text("what lies beside the class folders is not looked at")
    (folder / ".hidden").mkdir()
    data = load(Task.from_file(folder))
    assert (data.task.name, data.task.reads, data.task.label) == ("things", role, "label")
    examples = [example for split in data.splits.values() for example in split.examples]
    assert len(examples) == 20
    assert all(Path(example.inputs[role].path).parent.name == example.target for example in examples)
    assert not any("sorted" in warning for warning in data.report["warnings"])
    assert f"hash of the {role}" in data.report["splits"]


def test_a_name_need_not_be_utf_8(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "things", "image", 10)
    first = sorted(folder.glob("*/*"))[0]
    first.rename(first.with_name(os.fsdecode(b"\xe9t\xe9.png")))
    assert sum(len(split.examples) for split in load(Task.from_file(folder)).splits.values()) == 20


def test_a_list_is_the_same_data_as_its_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "things", "image", 10)
    rows = [f"{path.relative_to(folder)}\t{path.parent.name}" for path in sorted(folder.glob("*/*"))]
    of_folder = load(Task.from_file(folder))
    assert load(Task.from_file(listed(folder, rows))).digest == of_folder.digest
    renamed = listed(folder, rows, "file\tlabel", "other.tsv")
    assert load(Task.from_file(renamed, image="file")).digest == of_folder.digest


def test_where_files_lie_decides_nothing(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "things", "sound", 8)
    before = load(Task.from_file(folder))
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert load(Task.from_file(tmp_path / "elsewhere")).digest == before.digest
    write_sound(tmp_path / "elsewhere" / "high" / "0.wav", "high", 99)
    assert load(Task.from_file(tmp_path / "elsewhere")).digest != before.digest


def test_duplicates_are_found_by_content(tmp_path: Path) -> None:
    train, test = write_folder(tmp_path / "train", "image", 6), write_folder(tmp_path / "test", "image", 2)
    write_image(tmp_path / "validation" / "red" / "0.png", "red", 77)
    report = load(Task.from_file(train, test=test, validation=tmp_path / "validation")).report
    assert report["duplicates_across"]["rows"] == {"validation": 0, "test": 4}
    assert any("the same image as a row of train" in warning for warning in report["warnings"])
    assert report["media"]["test"] == {"shorter_side": [24, 24.0, 24]}


def test_the_report_tells_lengths_and_rates(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "things", "sound", 6)
    write_sound(folder / "low" / "9.wav", "low", 9, rate=16_000)
    media = load(Task.from_file(folder)).report["media"]
    assert sum(found["rates"].get("16000", 0) for found in media.values()) == 1
    assert media["train"]["seconds"][0] == pytest.approx(0.2, abs=0.01)


def test_bad_lists_are_refused_with_their_line(tmp_path: Path) -> None:
    write_folder(tmp_path, "image", 6)
    rows = [f"red/{number}.png\tred" for number in range(6)]
    missing = refusal(listed(tmp_path, [*rows, "red/99.png\tred"]))
    assert missing.where.endswith("list.tsv:8") and "did you mean" in missing.do
    assert "no image is named" in refusal(listed(tmp_path, ["\tred", *rows])).what
    (tmp_path / "red" / "3.png").write_bytes(b"broken")
    assert refusal(listed(tmp_path, rows)).where == str(tmp_path / "red" / "3.png")


def test_paths_of_windows(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "image", 10)
    slashed = [f"{path.relative_to(folder)}\t{path.parent.name}" for path in sorted(folder.glob("*/*"))]
    rows = [row.replace("/", "\\") for row in slashed]
    whole = load(Task.from_file(listed(folder, slashed)))
    for backslashed in (rows, [f".\\{row}" for row in rows], [*rows[:9], *slashed[9:]]):
        found = load(Task.from_file(listed(folder, backslashed)))
        assert found.digest == whole.digest
        assert "read with slashes" in found.report["splits"] and "slashes" not in whole.report["splits"]
    lines = [f'{{"image": "{row.split(chr(9))[0]}", "label": "{row.split(chr(9))[1]}"}}' for row in rows]
    doubled = [line.replace("\\", "\\\\") for line in lines]
    (folder / "list.jsonl").write_text("\n".join(doubled) + "\n")
    assert load(Task.from_file(folder / "list.jsonl")).digest == whole.digest
    (folder / "list.jsonl").write_text("\n".join(lines) + "\n")
    assert "a backslash twice" in refusal(folder / "list.jsonl").do
    (folder / "list.jsonl").write_text('{"image": "red\\t0.png", "label": "red"}\n')
    assert "in JSON a backslash is written twice" in refusal(folder / "list.jsonl").do
    for before in ("C:\\Users\\ann\\", "/home/ann/", "\\\\host\\share\\"):
        error = refusal(listed(folder, [f"{before}red\\0.png\tred"]))
        assert "did you mean 'red/0.png'?" in error.do and repr(before) in error.do
    assert "did you mean 'red/0.png'?" in refusal(listed(folder, ["red\\0.pgn\tred"])).do
    (folder / "red\\0.png").write_bytes((folder / "red" / "1.png").read_bytes())
    own = load(Task.from_file(listed(folder, rows)))
    assert own.digest != whole.digest, "a file whose name holds a backslash goes before"


def test_bad_folders_are_refused(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    write_image(flat / "0.png", "red", 0)
    assert "neither splits nor class folders" in refusal(flat).what
    (flat / "0.png").unlink()
    listed(flat, ["0.png\tred"])
    assert "list.tsv" in refusal(flat).got
    (tmp_path / "hollow" / "red").mkdir(parents=True)
    assert "empty" in refusal(tmp_path / "hollow").what
    write_folder(tmp_path / "deep" / "first", "image", 2)
    assert "class folder contains a folder" in refusal(tmp_path / "deep").what
    mixed = write_folder(tmp_path / "mixed", "image", 2)
    write_sound(mixed / "red" / "0.wav", "low", 0)
    assert "images and sounds" in refusal(mixed).what
    odd = write_folder(tmp_path / "odd", "image", 2)
    (odd / "red" / "notes.txt").write_text("red")
    assert refusal(odd).where.endswith("notes.txt")


def test_settings_that_contradict_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "image", 6)
    for flags in ({"text": "label", "image": "image"}, {"kind": "tagging", "image": "image"}):
        with pytest.raises(ConfigError):
            load(Task.from_file(folder, **flags))


def test_a_text_column_goes_before_an_image_column(tmp_path: Path) -> None:
    path = listed(tmp_path, [f"words {i}\tnone.png\t{'ab'[i % 2]}" for i in range(30)], "text\timage\tlabel")
    example = load(Task.from_file(path)).train.examples[0]
    assert not any(isinstance(given, Media) for given in example.inputs.values())
