"""Each how-to is carried out as it stands, with small files under the names that it uses, in few epochs and steps."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

import graftwork as gw
from docs.blocks import CHECKOUT
from docs.reader import Reader
from graftwork.testing.tiny_writers import write_seq2seq, write_translator

pytestmark = pytest.mark.slow
HOW_TO = CHECKOUT / "docs" / "how-to"
TICKETS = Path(gw.__file__).parent / "data" / "builtin" / "tickets.csv"
WORDS = "king queen man woman play game film work the of and a to in is was for my card parcel".split()  # noqa: SIM905


def write_rows(path: str, rows: list[list[str]], names: str = "text,label", separator: str = ",") -> None:
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, delimiter=separator).writerows([names.split(","), *rows])


def write_tables(rows: list[list[str]]) -> None:
    """Labelled files: of tickets, of two classes one of which is rare, and of rows that came later."""
    for name in ("tickets.csv", "reviews.csv", "mails.csv"):
        write_rows(name, rows[:200])
    write_rows("train.tsv", rows[:200], separator="\t")
    write_rows("train.csv", rows[:200])
    write_rows("test.tsv", rows[200:260], separator="\t")
    short = [" ".join(text.split()[:3]) for text, _ in rows[:200]]  # a network that learnt little writes to the end
    write_rows("pairs.tsv", [[text, text.lower()] for text in short], "source,target", separator="\t")
    Path("train.en").write_text("\n".join(short), encoding="utf-8")
    Path("train.de").write_text("\n".join(short).lower(), encoding="utf-8")
    write_rows("new.csv", [[*row, row[1]] for row in rows[260:300]], "text,label,topic")
    write_rows("in.csv", rows[300:310])
    Path("costs.csv").write_text("true,ham,spam\nham,0,10\nspam,1,0\n", encoding="utf-8")
    write_rows("sms.csv", [[text, "spam" if label == "sales" else "ham"] for text, label in rows[:200]])


def write_texts(texts: list[str]) -> None:
    """Corpora without labels, in every form that a page names."""
    Path("books").mkdir()
    for folder in ("corpus", "wikipedia", "abstracts", "news"):
        Path(folder).mkdir()
        Path(folder, "a.txt").write_text("\n".join(texts), encoding="utf-8")
    for number in range(200):
        text = "\n".join(["Café", *texts[number : number + 20]])
        Path("books", f"{number}.txt").write_text(text, encoding="cp1252", errors="ignore")
    Path("reviews.txt").write_text("\n".join(texts[:200]), encoding="utf-8")
    with gzip.open("reviews.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("They acted in a new play . The actors rehearsed a new play .\n" + "\n".join(texts[:50]))
    for name, key in (("notes.jsonl.gz", "text"), ("more.jsonl.gz", "body")):
        with gzip.open(name, "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps({key: text}) + "\n" for text in texts)


def write_vectors() -> None:
    """Word vectors and what they are rated by."""
    draw = random.Random(0)
    for name in ("glove.6B.100d.txt.gz", "glove.6B.300d.txt.gz"):
        with gzip.open(name, "wt", encoding="utf-8") as stream:
            stream.writelines(f"{word} {' '.join(f'{draw.gauss(0, 1):.4f}' for _ in range(8))}\n" for word in WORDS)
    pairs = "".join(f"{one}\t{other}\t{number}\n" for number, (one, other) in enumerate(pairwise(WORDS)))
    for name in ("wordsim353.tsv", "simlex999.txt"):
        Path(name).write_text(pairs)
    Path("questions-words.txt").write_text(": family\nman woman king queen\n")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file that a how-to names."""
    monkeypatch.chdir(tmp_path)
    with TICKETS.open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    random.Random(0).shuffle(rows)
    write_tables(rows)
    write_texts([text for text, _ in rows])
    write_vectors()
    shutil.copytree(CHECKOUT / "tasks", "tasks")
    few = Path("tasks", "tickets.toml").read_text(encoding="utf-8").replace("builtin:tickets", "../tickets.csv")
    Path("tasks", "tickets.toml").write_text(few, encoding="utf-8")
    return tmp_path


NEEDS_MORE = {  # page -> commands whose files are published elsewhere, or that other tests run
    "bank": "bank import",
    "check-the-machine": "hf:",
    "choose-a-backbone": "hf:",
    "elmo-and-ulmfit": "elmo:|glove",
}
RUNS = {  # page -> the runs that it names, in the order of the commands that make them
    "elmo-and-ulmfit": ("3f0a91c2d7e4", "5c1e07aa91d3", "9b20cd4411f8"),
    "pretrain": ("MASKED", "CAUSAL", "3f0a91c2d7e4"),
    "word-vectors": ("3f0a91c2d7e4",),
}
ALONE = (
    "check-data", "check-the-machine", "choose-a-backbone", "elmo-and-ulmfit", "few-labels", "imbalanced-classes",
    "mistakes", "pretrain", "python", "scikit-learn", "several-tasks", "word-vectors",
)  # fmt: skip


@pytest.mark.parametrize("page", ALONE)
def test_a_page_is_carried_out(page: str, desk: Path) -> None:
    if page == "python":
        pytest.importorskip("pandas")
    reader = Reader(*RUNS.get(page, ()), without=NEEDS_MORE.get(page, ""))
    reader.carry_out(HOW_TO / f"{page}.md")
    assert not reader.waiting


def test_translators_are_told_their_languages(desk: Path) -> None:
    write_translator(Path("facebook", "nllb-200-distilled-600M"))
    write_seq2seq(Path("google-t5", "t5-small"))
    Path("captions").mkdir()
    for name in ("train.en", "train.de"):
        shutil.copy(name, "captions")
    reader = Reader("ID", told_by="train")
    reader.carry_out(HOW_TO / "translate.md")
    assert not reader.waiting and reader.names["run"]
    asked = gw.TaskModule.load(Path("runs", reader.known["ID"], "module")).task.settings
    assert (asked.source_language, asked.target_language) == ("eng_Latn", "deu_Latn")


@pytest.fixture
def runs_there(desk: Path) -> Reader:
    """A reader who has trained ID, ID2 and ID3, has a board of urgency and a bank of tickets."""
    reader = Reader("ID", "ID2", "ID3", told_by="train")
    for method in ("prototype", "linear_probe", "tfidf_svm"):
        reader.graft(["train", "train.csv", "--method", method])
    reader.graft(["compare", "mails.csv", "--methods", "majority,tfidf_svm", "--seeds", "1", "--out", "boards/urgency"])
    return reader


def test_a_bank_is_kept(runs_there: Reader) -> None:
    runs_there.without = re.compile(NEEDS_MORE["bank"])
    runs_there.carry_out(HOW_TO / "bank.md")


@pytest.mark.parametrize("page", ["new-data", "cite", "price-at-scale", "export", "unsure-answers"])
def test_a_run_is_used(page: str, runs_there: Reader) -> None:
    runs_there.graft(["train", "tickets.csv", "--method", "prototype", "--bank", "shop.bank"])
    try:
        runs_there.carry_out(HOW_TO / f"{page}.md")
    finally:
        code = runs_there.end()
    assert code == (0 if page == "export" else -1)  # the page that serves
