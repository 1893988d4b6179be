"""Images and sounds through the commands: compared, predicted from files, folders and lists, and refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from graftwork.testing.tiny_media import write_folder

Graft = Callable[..., Any]
BASELINE = {"image": "colour_histogram", "sound": "log_mel"}


@pytest.fixture(params=["image", "sound"])
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def module(graft: Graft, tmp_path: Path, role: str) -> Path:
    """The baseline of a folder `things`, in the folder of this test."""
    write_folder(tmp_path / "things", role, 10)
    done = graft("train", "things", "--method", BASELINE[role], "--json")
    assert done.code == 0, done.err
    return Path(json.loads(done.out)["module"])


def test_a_comparison_runs_what_fits(graft: Graft, tmp_path: Path, role: str) -> None:
    write_folder(tmp_path / "things", role, 10)
    names = ["majority", BASELINE[role]]
    done = graft("compare", "things", "--methods", ",".join(names), "--seeds", "2", "--json")
    assert done.code == 0, done.err
    board = json.loads(done.out)
    assert {row["method"] for row in board["rows"]} == set(names)
    assert graft("compare", "things", "--methods", "tfidf_svm").err.count(f"this task reads {role}s") == 1


def test_a_class_of_silence_is_learnt_and_told(graft: Graft, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "words", "sound", 10)
    for number in range(10):
        (folder / "low" / f"{number}.wav").unlink()
        soundfile.write(folder / "low" / f"{number}.wav", np.zeros(1000 + number), 8000)
    done = graft("data", "words")
    assert done.code == 0, done.err
    assert "7 rows of train (50.0%) are digital silence" in done.out
    done = graft("train", "words", "--method", "log_mel", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["scores"]["accuracy"] == 1.0
    module = json.loads(done.out)["module"]
    assert graft("predict", module, folder / "low" / "0.wav").out.startswith("low ")
    for number in range(10):
        soundfile.write(folder / "high" / f"{number}.wav", np.zeros(2000 + number), 8000)
    done = graft("data", "words")
    assert done.code == 2 and "all recordings are silent" in done.err


def test_a_format_that_is_not_read_names_the_command_that_converts(graft: Graft, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "words", "sound", 10)
    (folder / "low" / "a b.m4a").write_bytes(b"\0\0\0\x18ftypM4A ")
    done = graft("data", "words")
    assert done.code == 2 and "ffmpeg -i 'words/low/a b.m4a' 'words/low/a b.flac'" in done.err


def test_a_task_file_names_the_column(graft: Graft, tmp_path: Path, role: str) -> None:
    folder = write_folder(tmp_path / "things", role, 10)
    rows = [f"{path.relative_to(tmp_path)}\t{path.parent.name}" for path in sorted(folder.glob("*/*"))]
    (tmp_path / "list.tsv").write_text("\n".join(["file\tname", *rows]) + "\n")
    (tmp_path / "task.toml").write_text(f'data = "list.tsv"\n{role} = "file"\nlabel = "name"\nmethods = ["majority"]\n')
    done = graft("compare", "task.toml", "--seeds", "1")
    assert done.code == 0, done.err


def test_files_folders_and_lists_are_answered(graft: Graft, tmp_path: Path, module: Path, role: str) -> None:
    folder = tmp_path / "things"
    files = sorted(folder.glob("*/*"))
    one = graft("predict", module, files[0])
    assert one.code == 0, one.err
    assert one.out.startswith(f"{files[0].parent.name}   (")
    whole = graft("predict", module, "things").out.splitlines()
    assert len(whole) == len(files)
    assert all(
        line.startswith(f"things/{path.parent.name}/{path.name}: ") for line, path in zip(whole, files, strict=True)
    )
    assert json.loads(graft("predict", module, files[0], "--json").out)[role] == str(files[0])
    listed = [f"{path.relative_to(tmp_path)}" for path in files]
    (tmp_path / "list.csv").write_text("\n".join(["file", *listed]) + "\n")
    done = graft("predict", module, "--file", "list.csv", f"--{role}", "file", "--out", "answers.csv")
    assert done.code == 0, done.err
    answers = list(csv.DictReader((tmp_path / "answers.csv").read_text().splitlines()))
    assert [row["label"] for row in answers] == [path.parent.name for path in files]
    assert graft("predict", module, "--file", "things", "--out", "folder.jsonl").code == 0
    assert len((tmp_path / "folder.jsonl").read_text().splitlines()) == len(files)


def test_bad_files_are_refused(graft: Graft, tmp_path: Path, module: Path, role: str) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    (tmp_path / "hollow").mkdir()
    for argument in ("bad.jpg", "absent.jpg", "hollow"):
        done = graft("predict", module, argument)
        assert (done.code, "Traceback" in done.err) == (2, False)
        assert argument in done.err
    done = graft("train", "things", "--method", "linear_probe", "--backbone", "tiny_text")
    assert done.code == 2
    assert f"reads texts, and the data are {role}s" in done.err


@pytest.mark.parametrize(
    "command",
    [
        ("compare", ".", "--methods", "majority", "--seeds", "1"),
        ("compare", ".", "other.csv", "--methods", "majority", "--seeds", "1"),
        ("compare", ".", "--methods", "majority", "--seeds", "1", "--runs", "../runs"),
        ("train", ".", "--method", "majority"),
        ("train", ".", "--budget", "1min", "--runs", "../runs"),
        ("curve", ".", "--methods", "majority", "--runs", "../runs"),
        ("train", "..", "--method", "majority"),
        ("train", ".", "--method", "majority", "--runs", "../runs", "--bank", "b.bank"),
        ("train", ".", "--method", "majority", "--runs", "../runs", "--bank", "."),
        ("train", "../../things", "--budget", "1min", "--runs", "../runs", "--bank", "b.bank"),
        ("stream", ".", "other.csv", "--method", "majority", "--runs", "../runs", "--bank", "b.bank"),
        ("stream", ".", "other.csv", "--method", "majority", "--bank", "../b.bank"),
        ("stream", "../../things", "--method", "full-sequential", "--runs", "../runs"),
    ],
)
def test_nothing_is_written_among_class_folders(
    command: tuple[str, ...], graft: Graft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it would be read as classes the next time; of a folder of splits, in each of them."""
    folder = write_folder(tmp_path / "things" / "train", "image", 10)
    (folder / "other.csv").write_text("text,label\n" + "a,x\nb,y\n" * 10)
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    done = graft(*command)
    assert (done.code, sorted(folder.iterdir())) == (2, before)
    assert "runs, boards and banks would lie among the class folders" in done.err
    outside = graft("train", command[1], "--method", "majority", "--runs", ".runs")
    assert outside.code == 0, outside.err


def test_a_module_moves_with_its_self_test(tmp_path: Path, graft: Graft, module: Path, role: str) -> None:
    moved = (tmp_path / module).rename(tmp_path / "moved")
    path = next((tmp_path / "things").glob("*/*"))
    for other in (tmp_path / "things").glob("*/*"):
        if other != path:
            other.unlink()
    assert graft("predict", moved, path).code == 0
    copies = sorted(copy.name for copy in moved.glob("selftest_*"))
    assert len(copies) == 4
    copies_are_small = sum(copy.stat().st_size for copy in moved.glob("selftest_*")) < 30_000
    assert copies_are_small
