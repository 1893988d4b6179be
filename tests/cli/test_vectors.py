"""`graft nearest` and `graft vectors`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graftwork.cli.main import main
from graftwork.data.readers.word_vector_files import read_word_vectors, write_word_vectors
from graftwork.data.readers.word_vector_folder import read_folder, write_folder
from graftwork.testing.tiny_networks import tiny_word_vectors

VECTORS = tiny_word_vectors()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_word_vectors(tmp_path / "tiny.txt.gz", VECTORS)
    return tmp_path / "tiny.txt.gz"


def test_neighbours_by_any_name_of_the_table(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder(table.parent / "run" / "backbone", VECTORS)
    expected = [f"{cosine:.4f}  {word}" for word, cosine in VECTORS.neighbours(["good"], count=3)]
    for name in (table, f"word_vectors:{table}", table.parent / "run", f"hf:{table.parent / 'run' / 'backbone'}"):
        assert main(["nearest", str(name), "good", "--count", "3"]) == 0
        assert capsys.readouterr().out.splitlines() == expected


def test_an_analogy_as_json(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", str(table), "good", "sad", "--minus", "bad", "--count", "1", "--json"]) == 0
    ((word, cosine),) = VECTORS.neighbours(["good", "sad"], ["bad"], 1)
    assert json.loads(capsys.readouterr().out) == [{"word": word, "cosine": pytest.approx(cosine)}]


def test_mistakes_are_told(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", str(table), "goood"]) == 2
    assert "did you mean 'good'?" in capsys.readouterr().err
    assert main(["nearest", str(table), "good", "--count", "0"]) == 2
    assert main(["nearest", str(table.parent / "gone.txt"), "good"]) == 2
    assert "no such file" in capsys.readouterr().err
    (table.parent / "config.json").write_text('{"model_type": "bert"}')
    assert main(["nearest", f"hf:{table.parent}", "good"]) == 2
    assert "the folder holds no word vectors" in capsys.readouterr().err


def test_vectors_are_judged(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratings = table.parent / "ratings.tsv"
    ratings.write_text("".join(f"good\t{word}\t{place}\n" for place, word in enumerate(VECTORS.words)) + "x\ty\t1\n")
    analogies = table.parent / "analogies.txt"
    analogies.write_text(": opposites\ngood bad warm cold\nhigh low up down\n")
    asked = ["--evaluate", str(ratings), "--evaluate", str(analogies)]
    assert main(["vectors", str(table), *asked]) == 0
    out = capsys.readouterr().out
    assert "16 words, 8 numbers each" in out and "16 of 17 known" in out and "1 of 2 known" in out
    assert main(["vectors", str(table), *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [score["name"] for score in found["scores"]] == ["ratings.tsv", "opposites", "analogies.txt"]
    assert main(["vectors", str(table), "--evaluate", str(table.parent / "gone")]) == 2


@pytest.mark.parametrize("name", ["out.bin", "out.vec.gz", "folder"])
def test_vectors_are_written_in_another_format(name: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vectors", str(table), "--to", str(table.parent / name)]) == 0
    read = read_folder(table.parent / name) if name == "folder" else read_word_vectors(table.parent / name)
    assert read.digest == VECTORS.digest


def test_lines_that_were_left_out_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "v.txt").write_text("a 1 2\na 3 4\nb 1 1\n")
    assert main(["vectors", str(tmp_path / "v.txt")]) == 0
    assert "1 lines were left out" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["nearest", "minilm", "word"], ["vectors", "minilm"]], ids=str)
def test_another_backbone_is_no_table(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    told = capsys.readouterr().err
    assert "this backbone is not a table of word vectors" in told and "a folder" in told
