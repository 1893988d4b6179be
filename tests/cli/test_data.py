"""`graft data`: what stands in the data, as lines, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graftwork as gw
from graftwork.core.in_memory import in_python
from graftwork.core.task import Task
from graftwork.run.data_report import data_report
from graftwork.run.data_report_lines import report_lines
from graftwork.testing.tiny_media import write_folder

Graft = Callable[..., Any]


@pytest.fixture
def leaky(tmp_path: Path) -> list[str]:
    """A training file and a test file that share a text, nearly share one, and have a word that stands for a class."""
    random = np.random.default_rng(0)
    rows = [" ".join(f"w{i}" for i in random.integers(0, 400, 15)) for _ in range(200)]
    told = [f"{text} cheap" if i % 2 else text for i, text in enumerate(rows)]
    test = [rows[0], f"{rows[2]} now", "a text of its own <b>here</b>", "another text altogether"]
    held = [f"something else {i}" for i in range(4)]
    for name, texts in (("train.tsv", told), ("test.tsv", test), ("validation.tsv", held)):
        lines = [f"{text}\t{('ham', 'spam')[i % 2]}" for i, text in enumerate(texts)]
        (tmp_path / name).write_text("text\tlabel\n" + "\n".join(lines) + "\n", encoding="utf-8")
    files = [f"--{split}={tmp_path / split}.tsv" for split in ("validation", "test")]
    return [str(tmp_path / "train.tsv"), *files]


def test_lines(graft: Graft, leaky: list[str]) -> None:
    done = graft("data", *leaky)
    assert done.code == 0, done.err
    lines = {" ".join(line.split()) for line in done.out.splitlines()}
    assert "same as a row of train 0 1" in lines
    assert "nearly a row of train 0 1" in lines
    assert "classes: 2, rows of each" in lines and "'ham' 100 2 2" in lines
    assert "'cheap': 100 of 100 rows are spam, at least 89%; of all rows 50%" in lines
    assert any(line.startswith("1 row of test (25.0%) has the same text as a row of train") for line in lines)
    assert any("--drop-leaks" in line for line in lines)


def test_json_is_what_python_gives_and_what_compare_reports(graft: Graft, leaky: list[str]) -> None:
    found = json.loads(graft("data", *leaky, "--json").out)
    files = {split: Path(leaky[0]).with_name(f"{split}.tsv") for split in ("validation", "test")}
    assert found == json.loads(json.dumps(gw.data_report(Task.from_file(leaky[0], **files))))
    assert found["near_duplicates"]["across"]["rows"] == {"validation": 0, "test": 1}
    done = graft("compare", *leaky, "--methods", "majority", "--seeds", "1", "--json")
    assert json.loads(done.out)["data_report"] == {name: found[name] for name in found if name != "task"}


def test_a_backbone_counts_tokens(graft: Graft, leaky: list[str]) -> None:
    found = json.loads(graft("data", *leaky, "--backbone", "tiny_text", "--json").out)
    assert found["lengths"]["unit"] == "tokens of tiny_text"
    assert sum(found["lengths"]["train"].values()) == found["rows"]["train"]
    assert set(found["cut"]) == {"train", "validation", "test"}
    assert "windows" not in found


@pytest.mark.parametrize(
    ("script", "share"), [("ሰላም ለዓለም", 1.0), ("it is ok", 0.0), ("it is so ok to me now ሰላም", 1 / 8)]
)
def test_texts_that_the_backbone_can_t_read(
    graft: Graft, written: Callable[..., Path], script: str, share: float
) -> None:
    path = written("t.csv", ("text", "label"), [(" ".join([script] * (i + 1)), "ab"[i % 2]) for i in range(40)])
    found = json.loads(graft("data", path, "--backbone", "tiny_text", "--json").out)
    assert found.get("unknown_token_shares", {}).get("train", 0.0) == pytest.approx(share, abs=0.1)
    assert any("tiny_text can't read 100% of these texts" in line for line in found["warnings"]) == (share == 1.0)
    assert any("Tokens that stand for text" in line for line in found["warnings"]) == (share > 0)


def test_what_is_read_in_windows_is_said(graft: Graft, tmp_path: Path) -> None:
    sentences = ["\n".join(f"word{i}{at}\t{'OP'[at == 1]}" for at in range(3 if i else 2000)) for i in range(20)]
    (tmp_path / "long.conll").write_text("\n\n".join(sentences), encoding="utf-8")
    asked = ("data", tmp_path / "long.conll", "--kind", "tagging", "--backbone", "tiny_text")
    found = json.loads(graft(*asked, "--json").out)
    assert sum(found["windows"].values()) == 1 and not any(found["cut"].values())
    assert found["lengths"]["unit"] == "tokens of tiny_text, of the longest sequence of each row"
    assert any("read in overlapping windows: 1 of" in warning for warning in found["warnings"])
    lines = [" ".join(line.split()) for line in graft(*asked).out.splitlines()]
    assert "lengths in tokens of tiny_text, of the longest sequence of each row" in lines
    assert any(line.startswith("read in several windows ") for line in lines)


def test_a_page(graft: Graft, leaky: list[str], tmp_path: Path) -> None:
    done = graft("data", *leaky, "--html", tmp_path / "data.html")
    assert done.code == 0 and str(tmp_path / "data.html") in done.out
    page = (tmp_path / "data.html").read_text(encoding="utf-8")
    assert "near duplicates" in page and "same text as a row of train" in page


def test_dropped_leaks_stand_in_the_receipt_and_make_another_run(graft: Graft, leaky: list[str]) -> None:
    flags = ("--method", "majority", "--json")
    kept, dropped = (json.loads(graft("train", *leaky, *more, *flags).out) for more in ((), ("--drop-leaks",)))
    assert dropped["facts"]["dropped_from_train"] == {"exact": 1, "near": 1}
    assert "dropped_from_train" not in kept["facts"] and kept["id"] != dropped["id"]
    report = json.loads(graft("data", *leaky, "--drop-leaks", "--json").out)
    assert report["dropped"] == {"exact": 1, "near": 1}
    assert report["rows"]["train"] == json.loads(graft("data", *leaky, "--json").out)["rows"]["train"] - 2


def test_a_mistake_is_one_message(graft: Graft, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    done = graft("data", tmp_path / "empty.csv")
    assert done.code == 2 and "the file is empty" in done.err
    assert graft("data", "builtin:tickets", "--backbone", "tiny_txt").code == 2


def test_many_and_long_classes_stay_in_their_column(graft: Graft, tmp_path: Path) -> None:
    lines = [f"text {i} here,{'long' * 20}{i % 30}" for i in range(300)]
    (tmp_path / "many.csv").write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    shown = graft("data", tmp_path / "many.csv").out.partition("classes: 30, rows of each\n")[2].split("\n\n")[0]
    assert shown.splitlines()[-1] == "  and 10 with fewer"
    assert {len(line) for line in shown.splitlines()[:-1]} == {2 + 28 + 3 * 12}


def test_images_have_no_lengths_in_words(graft: Graft, tmp_path: Path) -> None:
    done = graft("data", write_folder(tmp_path / "things", "image", 10))
    assert done.code == 0, done.err
    assert "words" not in done.out and "letters" not in done.out
    assert "'blue'" in done.out


def test_python_shows_the_report_as_the_command_does() -> None:
    report = data_report("builtin:tickets")
    lines = repr(report).splitlines()
    assert lines[0].startswith("tickets · classification") and len(lines) < 50
    assert lines == [in_python(line) for line in report_lines(report)]
    assert report["rows"]["train"] > 0 and "lengths in words" in report._repr_html_()
