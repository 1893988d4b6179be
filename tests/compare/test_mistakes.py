"""What goes wrong on a board: counts that agree with the answers, suspects that were flipped, and no texts unasked."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.compare import mistakes_page
from graftwork.compare.mistakes_page import embedded, mistakes_section, write_beside
from graftwork.core.metric import wilson
from graftwork.run.store import read_predictions

EVIL = "</script><script>alert(1)</script><!--"
TICKETS = Path(gw.__file__).parent / "data" / "builtin" / "tickets.csv"


def texts(count: int) -> list[list[str]]:
    """Rows of two classes that a linear model tells apart; every tenth of one class reads like the other."""
    rows = []
    for number in range(count):
        bill = number % 2 == 0
        words = "invoice charge refund money" if bill != (number % 20 == 10) else "crash error screen login"
        rows.append([f"{words} number {number}", "bill" if bill else "bug"])
    return rows


def data_of(report: Path) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="mistakes-data">(.*?)</script>', report.read_text())
    made: dict[str, Any] = json.loads(found)
    return made


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> gw.Leaderboard:
    """A board of a majority class and a linear model, whose test split has an evil text and one of train."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, rows in (("train", texts(120)), ("validation", texts(60)), ("test", texts(60))):
        if name == "test":
            rows = [[f"{text} again {at}", label] for at, (text, label) in enumerate(rows)]
            rows[1][0] = f"crash error {EVIL}"
            rows[3][0] = "crash error screen login number 3"
            rows[5] = ["crash error screen login once more", "bill"]  # a wrong label
        with (folder / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([["text", "label"], *rows])
    task = gw.Task.from_file(folder / "train.csv", validation=folder / "validation.csv", test=folder / "test.csv")
    return gw.compare(
        task, methods="majority,tfidf_svm", seeds=1, exhaustive=True, out=folder / "board", runs=folder / "runs"
    )


def folder_of(board: gw.Leaderboard) -> Path:
    assert board.folder is not None
    return board.folder


def run_of(board: gw.Leaderboard) -> str:
    return str(next(row for row in board.rows if row["method"] == "tfidf_svm")["runs"][0])


def test_the_page_agrees_with_the_predictions(board: gw.Leaderboard) -> None:
    found = data_of(folder_of(board) / "report.html")
    assert found["methods"] == ["tfidf_svm", "majority"]  # the chosen one first
    (row,) = [row for row in board.rows if row["method"] == "tfidf_svm"]
    lines = [
        line for line in read_predictions(folder_of(board).parent / "runs" / row["runs"][0]) if line["split"] == "test"
    ]
    told = [(one["id"], one["target"], one["answers"][0][0], one["answers"][0][2]) for one in found["rows"]]
    assert told == [
        (line["id"], line["target"], line["prediction"], line["target"] == line["prediction"]) for line in lines
    ]
    pairs = [tuple(found["confusions"][at]) for one in found["rows"] for at in one["confusions"]]
    assert pairs == [(line["target"], line["prediction"]) for line in lines]
    assert 0 < sum(not right for *_, right in told) < 20
    assert row["scores"]["accuracy"]["mean"] == pytest.approx(sum(right for *_, right in told) / 60)


def test_a_wrong_label_is_suspected_and_a_repeated_text_is_marked(board: gw.Leaderboard) -> None:
    rows = {row["id"]: row for row in data_of(folder_of(board) / "report.html")["rows"]}
    assert rows["test/6"]["suspect"]["likely"] == "bug"
    assert rows["test/4"]["like"] == "train/4"
    assert "suspect" not in rows["test/1"]


def test_words_that_decided_a_wrong_answer(board: gw.Leaderboard) -> None:
    rows = data_of(folder_of(board) / "report.html")["rows"]
    assert {row["id"] for row in rows if "words" in row} == {row["id"] for row in rows if not row["answers"][0][2]}
    (row,) = [row for row in rows if row["id"] == "test/6"]
    told = dict(row["words"]["text"])
    assert list(told) == row["inputs"][0][1].split()
    assert told["crash"] > 1 > abs(told["once"])  # no training text has it
    module = gw.TaskModule.load(folder_of(board).parent / "runs" / run_of(board) / "module")
    whole, without = (
        answer["probabilities"]["bug"]
        for answer in module.predict([row["inputs"][0][1], row["inputs"][0][1].replace("crash ", "")])
    )
    assert told["crash"] == pytest.approx(100 * (whole - without), abs=0.06)


def test_texts_are_escaped(board: gw.Leaderboard) -> None:
    page = (folder_of(board) / "report.html").read_text()
    assert EVIL not in page and "<script>alert" not in page
    assert any(EVIL in row["inputs"][0][1] for row in data_of(folder_of(board) / "report.html")["rows"])


def test_without_examples_the_page_has_counts_alone(board: gw.Leaderboard) -> None:
    folder = folder_of(board).parent
    task = gw.Task.from_file(folder / "train.csv", validation=folder / "validation.csv", test=folder / "test.csv")
    given: dict[str, Any] = {"seeds": 1, "exhaustive": True, "out": folder / "private", "runs": folder / "runs"}
    again = gw.compare(task, methods="majority,tfidf_svm", examples=False, **given)
    page = (folder / "private" / "report.html").read_text()
    assert again.executed == 0
    assert "What goes wrong" in page and "Every class" in page
    assert "mistakes-data" not in page and "once more" not in page and "#confusion" not in page


def test_the_board_file_holds_no_texts(board: gw.Leaderboard) -> None:
    assert "once more" not in (folder_of(board) / "leaderboard.json").read_text()


def test_wilson() -> None:
    low, high = wilson(0.8, 10)
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert wilson(0.0, 5)[0] == 0 and wilson(1.0, 5)[1] == pytest.approx(1)


def many(count: int) -> dict[str, Any]:
    """Content of a large board: every seventh row is wrong."""
    rows = [
        {"id": f"test/{at}", "inputs": [["text", f"text {at}"]], "target": "a",
         "answers": [["b" if at % 7 == 0 else "a", 0.5 + at % 50 / 100, at % 7 != 0]], "confusions": [at % 7 == 0]}
        for at in range(count)
    ]  # fmt: skip
    rows[13] |= {"suspect": {"rank": 1, "likely": "b", "confidence": 0.1}}
    pairs = [{"true": "a", "found": name, "right": name == "a", "count": 1} for name in "ab"]
    return {
        "examples": rows, "methods": ["m"], "confusions": pairs, "suspects": 1, "reliability": [], "chosen": "m",
    }  # fmt: skip


def test_a_large_board_embeds_what_matters_and_leaves_all_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = many(700)
    assert len(embedded(content["examples"])) == 700
    assert write_beside(content, tmp_path) is None
    monkeypatch.setattr(mistakes_page, "MOST_ROWS", 120)
    kept = embedded(content["examples"])
    assert len(kept) == 120 and content["examples"][13] in kept
    assert sum(not row["answers"][0][2] for row in kept) == 100  # all that are wrong
    name = write_beside(content, tmp_path)
    assert name == "examples.parquet"
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / name)
    assert table.num_rows == 700 and table.column_names[:4] == ["id", "text", "target", "m"]
    section = mistakes_section(content, name)
    assert section is not None and section["shown"] == 120
    monkeypatch.setattr(mistakes_page, "MOST_BYTES", 3_000)
    assert 5 < len(embedded(content["examples"])) < 30


@pytest.mark.slow
@pytest.mark.browser
def test_numbers_that_are_furthest_off_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Any
) -> None:
    """In what the page holds, and in its order."""
    rows = [[f"{'no ' * (at % 7)}more of text {at}", str(at % 7 + 3 * (at % 20 == 4))] for at in range(120)]
    with (tmp_path / "all.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["text", "score"], *rows])
    task = gw.Task.from_file(tmp_path / "all.csv", label="score", kind="regression")
    board = gw.compare(task, methods="tfidf_svm", seeds=1, out=tmp_path / "board", runs=tmp_path / "runs")
    page = folder_of(board) / "report.html"
    data = data_of(page)["rows"]
    off = {row["id"]: row.get("off", 0.0) for row in data if not row["answers"][0][2]}
    assert len(set(off.values())) > 1 and min(off.values()) > 0.5
    tab = browser.new_page()
    found = [text.split(" ")[0] for text in Reader(tab, page.as_uri()).open().ids()][: len(off)]
    tab.close()
    assert found == sorted(off, key=lambda name: -off[name])[: len(found)]
    monkeypatch.setattr(mistakes_page, "MOST_ROWS", 1)
    assert [row["id"] for row in embedded(data)] == [max(off, key=lambda name: off[name])]


def test_without_pyarrow_it_is_json_lines_and_an_older_file_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    monkeypatch.setattr(mistakes_page, "MOST_ROWS", 10)
    write_beside(many(20), tmp_path)
    monkeypatch.setattr(mistakes_page.importlib.util, "find_spec", lambda name: None)
    assert write_beside(many(20), tmp_path) == "examples.jsonl.gz"
    assert [path.name for path in tmp_path.iterdir()] == ["examples.jsonl.gz"]
    lines = gzip.decompress((tmp_path / "examples.jsonl.gz").read_bytes()).decode().splitlines()
    assert json.loads(lines[13])["suspected label"] == "b"
    assert write_beside(None, tmp_path) is None and not list(tmp_path.iterdir())


@dataclass
class Reader:
    """A tab on the report; it fails on any error, and on any request but that of the page itself."""

    tab: Any
    page: str
    wrong: list[str] = field(default_factory=list)

    def open(self, fragment: str = "") -> Reader:
        self.tab.goto("about:blank")  # else only the fragment changes
        self.tab.goto(self.page + fragment)
        return self

    def ids(self) -> list[str]:
        return [str(one) for one in self.tab.locator("#mistakes-list h4 a").all_inner_texts()]

    def choose(self, **controls: str) -> Reader:
        for name, value in controls.items():
            self.tab.select_option(f"[name={name}]", value)
        return self

    def fragment(self) -> str:
        return str(self.tab.evaluate("location.hash"))


@pytest.fixture
def reader(browser: Any, board: gw.Leaderboard) -> Iterator[Reader]:
    tab = browser.new_page()
    made = Reader(tab, (folder_of(board) / "report.html").as_uri())
    tab.on("pageerror", lambda error: made.wrong.append(str(error)))
    tab.on("console", lambda said: made.wrong.append(said.text))
    tab.on("request", lambda asked: made.page in asked.url or made.wrong.append(asked.url))
    yield made.open()
    assert made.wrong == []
    tab.close()


def ids_where(board: gw.Leaderboard, wanted: Callable[[dict[str, Any]], bool]) -> list[str]:
    return [row["id"] for row in data_of(folder_of(board) / "report.html")["rows"] if wanted(row)]


@pytest.mark.slow
@pytest.mark.browser
def test_filters(reader: Reader, board: gw.Leaderboard) -> None:
    assert len(reader.ids()) == 10 and reader.tab.inner_text("#mistakes-count") == "60 of 60 examples"
    assert reader.choose(wrong="tfidf_svm").ids() == ids_where(board, lambda row: not row["answers"][0][2])
    both = ids_where(board, lambda row: not row["answers"][0][2] and row["answers"][1][2])
    assert both and reader.choose(right="majority").ids() == both
    assert reader.fragment() == "#wrong=tfidf_svm&right=majority"
    assert reader.open().choose(only="like").ids() == ["test/4"]
    assert "test/6" in reader.choose(only="suspect").ids()
    of_class = ids_where(board, lambda row: row["target"] == "bug" and not row["answers"][0][2])
    assert reader.open().choose(wrong="tfidf_svm", **{"class": "bug"}).ids() == of_class
    reader.open().tab.fill("[name=find]", "ONCE more")
    assert reader.ids() == ["test/6"]


@pytest.mark.slow
@pytest.mark.browser
def test_order(reader: Reader) -> None:
    for sort, sign in (("unsure", 1), ("sure", -1)):
        reader.open().choose(sort=sort)
        shares = reader.tab.locator("#mistakes-list article tr:first-child td.n").all_inner_texts()
        values = [sign * float(share.removesuffix(" %")) for share in shares]
        assert len(values) == 10 and values == sorted(values)


@pytest.mark.slow
@pytest.mark.browser
def test_a_link_brings_the_state_back(reader: Reader, board: gw.Leaderboard) -> None:
    reader.open("#example=test%2F17")
    assert reader.ids() == ["test/17"]
    reader.tab.click("#mistakes-one")
    assert len(reader.ids()) == 10
    reader.open("#wrong=tfidf_svm&right=majority&sort=unsure")
    assert reader.tab.input_value("[name=wrong]") == "tfidf_svm" and reader.tab.input_value("[name=sort]") == "unsure"
    wanted = ids_where(board, lambda row: not row["answers"][0][2] and row["answers"][1][2])
    assert sorted(reader.ids()) == sorted(wanted)
    reader.open("#example=nowhere&wrong=%3Cb%3E")
    assert reader.ids() == []


@pytest.mark.slow
@pytest.mark.browser
def test_a_cell_leads_to_its_examples_by_keyboard(reader: Reader) -> None:
    cell = reader.tab.locator("td.cell.miss a").first
    count = int(cell.inner_text())
    cell.focus()
    reader.tab.keyboard.press("Enter")
    assert len(reader.ids()) == count and reader.fragment().startswith("#confusion=")
    assert "→" in reader.tab.inner_text("#mistakes-one")


@pytest.mark.slow
@pytest.mark.browser
def test_more_are_shown_and_the_focus_follows(reader: Reader) -> None:
    reader.tab.click("#mistakes-more")
    assert len(reader.ids()) == 20
    assert reader.tab.evaluate("document.activeElement.textContent") == reader.ids()[10]


@pytest.mark.slow
@pytest.mark.browser
def test_what_is_shown_is_saved(reader: Reader) -> None:
    reader.choose(only="suspect")
    with reader.tab.expect_download() as saved:
        reader.tab.click("#mistakes-save")
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text(encoding="utf-8"), newline="")))
    assert [row["id"] for row in rows] == reader.ids()
    (row,) = [row for row in rows if row["id"] == "test/6"]
    assert (row["text"], row["target"], row["suspected label"]) == ("crash error screen login once more", "bill", "bug")
    assert row["tfidf_svm"] == "bug" and row["tfidf_svm right"] == "0" and 0 < float(row["tfidf_svm probability"]) <= 1


@pytest.mark.slow
@pytest.mark.browser
def test_an_evil_text_is_a_text(reader: Reader) -> None:
    reader.open("#example=test%2F2")
    assert EVIL in reader.tab.inner_text("#mistakes-list")
