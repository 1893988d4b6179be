"""Sounds that are written down: found by their columns, trained, compared, opened again, asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.errors import DataError
from graftwork.testing.tiny_media import write_sound
from graftwork.testing.tiny_writers import write_whisper

soundfile = pytest.importorskip("soundfile")
SAID = {"low": "a bad film", "high": "so good"}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A folder of three splits of sounds with what they say; the last of test is silent, and longer than is heard."""
    number = 0
    for split, count in (("train", 8), ("validation", 4), ("test", 4)):
        lines = ["sound\ttarget"]
        for _ in range(count):
            number += 1
            label = ("low", "high")[number % 2]
            path = write_sound(tmp_path / "rows" / "sounds" / f"{number}.wav", label, number)
            lines.append(f"{path.relative_to(tmp_path / 'rows')}\t{SAID[label]}")
        (tmp_path / "rows" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    soundfile.write(path, np.zeros(20_000), 16_000)
    return tmp_path / "rows"


@pytest.mark.slow
def test_a_board_of_sounds(rows: Path, tmp_path: Path) -> None:
    backbone = f"hf:{write_whisper(tmp_path / 'whisper')}"
    task = Task.from_file(rows, kind="generation", longest=4)
    board = gw.compare(
        task, methods=["majority", "zero_shot", "top_layers"], seeds=1, backbone=backbone, epochs=1,
        precision="fp32", runs=str(tmp_path / "runs"), cache=str(tmp_path / "cache"), out=tmp_path / "out", jobs=1,
    )  # fmt: skip
    found = {row["method"]: row for row in board.rows}
    assert [found[name]["status"] for name in ("majority", "zero_shot", "top_layers")] == ["ok"] * 3
    assert board.content["headline_metric"] == "word_accuracy" and "character_accuracy" in found["majority"]["scores"]
    assert found["majority"]["scores"]["word_accuracy"]["mean"] == pytest.approx(0.0, abs=0.7)
    assert found["top_layers"]["costs"]["trained_parameters"]["value"] > 0
    assert found["zero_shot"]["costs"]["trained_parameters"]["value"] == 0
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if '"zero_shot"' in (path / "spec.json").read_text()]
    module = gw.TaskModule.load(folder / "module")
    (answer,) = module.predict([str(rows / "sounds" / "1.wav")])
    assert isinstance(answer["text"], str) and answer["log_probability"] < 0


def test_error_rates_name_their_metrics(rows: Path) -> None:
    task = Task.from_file(rows, kind="generation", metrics="wer,cer")
    data = load(task)
    assert data.task.metrics == ("word_accuracy", "character_accuracy")
    assert data.task.sound == "sound" and data.task.label == "target"


def test_an_empty_transcript_is_an_error_with_its_line(rows: Path) -> None:
    path = rows / "train.tsv"
    path.write_text(path.read_text().replace("\ta bad film", "\t ", 1))
    with pytest.raises(DataError, match="the target is empty") as raised:
        load(Task.from_file(rows, kind="generation"))
    assert "train.tsv:" in str(raised.value)
