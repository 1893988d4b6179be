"""`graft predict` end to end: texts, pairs, files in and out, probabilities, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graftwork
from graftwork.module.input_formats import TEXT
from graftwork.pretrained.transformer import TransformerBackbone

Graft = Callable[..., Any]
Boards = Callable[[str], Any]


@pytest.fixture
def module(boards: Boards) -> Path:
    """A linear probe over three classes."""
    return Path(boards("classification").run_of("linear_probe")) / "module"


def test_a_text_gets_its_label_and_the_runners_up(graft: Graft, boards: Boards) -> None:
    run = boards("classification").run_of("tfidf_svm")
    done = graft("predict", run, "refund the invoice please", "my parcel")
    assert done.code == 0
    first, second = done.out.splitlines()
    assert first.startswith("billing   (billing 0.")
    assert second.startswith("delivery   (delivery 0.")
    assert first.count(",") == 2


def test_json_has_every_probability(graft: Graft, module: Path) -> None:
    done = graft("predict", module, "refund the invoice", "--json")
    answer = json.loads(done.out)
    assert answer.keys() == {"text", "label", "probabilities"}
    assert answer["probabilities"].keys() == {"delivery", "billing", "technical"}
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert answer["label"] == max(answer["probabilities"], key=answer["probabilities"].get)


def test_texts_may_come_from_standard_input(graft: Graft, module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["refund the invoice", "where is my parcel"]
    named = graft("predict", module, *texts)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(texts).encode())))
    assert graft("predict", module, "-").out == named.out != ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    empty = graft("predict", module, "-")
    assert empty.code == 2 and "standard input is empty" in empty.err


def test_answers_do_not_depend_on_what_is_asked_beside_them(graft: Graft, module: Path) -> None:
    together = [
        json.loads(line) for line in graft("predict", module, "the app", "a parcel " * 9, "--json").out.splitlines()
    ]
    alone = json.loads(graft("predict", module, "the app", "--json").out)
    assert together[0]["label"] == alone["label"]
    assert together[0]["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-4)


def test_a_text_is_made_an_example_once_and_tokenised_once(
    graft: Graft, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()

    def counted(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def call(self: Any, *given: Any) -> Any:
            asked = given[-1] if name == "example" else " ".join(map(str, given))
            counts[name] += "the red parcel" in asked
            return real(self, *given)

        monkeypatch.setattr(owner, name, call)

    counted(type(TEXT), "example")
    counted(TransformerBackbone, "encode")
    assert graft("predict", module, "the red parcel").code == 0
    assert counts == {"example": 1, "encode": 1}


def test_a_pair_is_two_texts(graft: Graft, boards: Boards) -> None:
    run = boards("pair").run_of("linear_probe")
    answers = graft("predict", run, "call me", "write me", "at two", "at two", "--json").out.splitlines()
    assert [json.loads(line)["text_b"] for line in answers] == ["write me", "at two"]
    odd = graft("predict", run, "one", "two", "three")
    assert odd.code == 2
    assert "the texts do not form pairs" in odd.err
    assert "3 texts" in odd.err


def test_a_number_is_in_the_units_of_the_file(graft: Graft, boards: Boards) -> None:
    done = graft("predict", boards("regression").run_of("linear_probe"), "very very good", "--json")
    value = json.loads(done.out)["value"]
    assert -2 < value < 7
    plain = graft("predict", boards("regression").run_of("linear_probe"), "very very good")
    assert plain.out == f"{value:.4f}\n"


def test_several_labels_are_a_list(graft: Graft, boards: Boards) -> None:
    done = graft("predict", boards("multilabel").run_of("linear_probe"), "it is late and lost", "--json")
    answer = json.loads(done.out)
    assert answer["label"] == [label for label, chance in answer["probabilities"].items() if chance > 0.5]
    assert answer["probabilities"].keys() == {"late", "lost"}


@pytest.mark.parametrize("shape", ["csv", "tsv", "jsonl"])
def test_a_file_is_answered_row_by_row(graft: Graft, module: Path, written: Callable[..., Path], shape: str) -> None:
    texts = ["the app, again", 'she said "no"', "two\nlines", "a\rreturn", "tab\there", "NA"]
    source = written("in.csv", ("id", "text"), [(i, text) for i, text in enumerate(texts)])
    done = graft("predict", module, "--file", source, "--out", f"out.{shape}")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"6 answers in out.{shape}\n"
    with Path(f"out.{shape}").open(encoding="utf-8", newline="") as stream:
        if shape == "jsonl":
            answers = [json.loads(line) for line in stream]
            chances = [answer["probabilities"] for answer in answers]
        else:
            quoting = csv.QUOTE_NONE if shape == "tsv" else csv.QUOTE_MINIMAL
            answers = list(csv.DictReader(stream, delimiter="\t" if shape == "tsv" else ",", quoting=quoting))
            chances = [{key[2:-1]: float(value) for key, value in row.items() if key[0] == "p"} for row in answers]
    read = [" ".join(text.split()) if shape == "tsv" else text for text in texts]
    assert [answer["text"] for answer in answers] == read
    asked = [json.loads(line) for line in graft("predict", module, *texts, "--json").out.splitlines()]
    assert [answer["label"] for answer in answers] == [answer["label"] for answer in asked]
    assert chances[0] == pytest.approx(asked[0]["probabilities"], abs=1e-6)


def test_answers_can_be_read_back_as_data(graft: Graft, module: Path, written: Callable[..., Path]) -> None:
    source = written("in.csv", ("text",), [("two\nlines, one comma",), ("the app",)])
    assert graft("predict", module, "--file", source, "--out", "first.csv").code == 0
    assert graft("predict", module, "--file", "first.csv", "--out", "second.csv").code == 0
    assert Path("second.csv").read_bytes() == Path("first.csv").read_bytes()


def test_without_out_answers_go_to_the_terminal_a_json_object_per_line(
    graft: Graft, module: Path, written: Callable[..., Path]
) -> None:
    done = graft("predict", module, "--file", written("in.csv", ("sentence",), [("the app",), ("my parcel",)]))
    assert done.code == 0
    assert [json.loads(line)["text"] for line in done.out.splitlines()] == ["the app", "my parcel"]
    assert done.err == "2 answers\n"


def test_a_text_that_is_cut_is_counted(graft: Graft, module: Path, written: Callable[..., Path]) -> None:
    assert "truncated" not in graft("predict", module, "the app").err
    done = graft("predict", module, "the app " * 50_000)
    assert done.code == 0
    assert "1 input truncated to the backbone's 64 tokens" in done.err
    source = written("in.csv", ("text",), [("the app " * 100,), ("the app",), ("parcel " * 100,)])
    assert "2 inputs truncated" in graft("predict", module, "--file", source, "--out", "o.csv").err


@pytest.mark.parametrize(
    ("content", "where", "words"),
    [
        ("text,id\nfine,1\n ,2\n", ":3", "the text is empty"),
        ("txt,id\nfine,1\n", ":1", "did you mean --text txt?"),
        ("text,id\nfine\n", ":2", "too few fields"),
        ("", "", "the file is empty"),
        ("text\n", "", "no rows"),
    ],
)
def test_a_bad_file_is_refused_before_the_first_answer(
    graft: Graft, module: Path, content: str, where: str, words: str
) -> None:
    Path("in.csv").write_text(content, encoding="utf-8")
    Path("out.csv").write_text("from yesterday", encoding="utf-8")
    for out in ([], ["--out", "out.csv"]):
        done = graft("predict", module, "--file", "in.csv", *out)
        assert (done.code, done.out) == (2, "")
        assert f"graft: in.csv{where}: " in done.err
        assert words in done.err
    assert Path("out.csv").read_text(encoding="utf-8") == "from yesterday"
    assert sorted(path.name for path in Path().iterdir()) == ["in.csv", "out.csv"]


def test_a_pair_module_names_both_columns(graft: Graft, boards: Boards, written: Callable[..., Path]) -> None:
    source = written("in.csv", ("text_a", "text"), [("a", "b")])
    done = graft("predict", boards("pair").run_of("linear_probe"), "--file", source)
    assert done.code == 2
    assert "no column 'text_b'" in done.err
    assert "columns called text_a and text_b" in done.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "give either texts or --file"),
        (["a text", "--file", "in.csv"], "give either texts or --file"),
        (["a text", "--out", "o.csv"], "--out needs --file"),
        (["a text", "--keep", "id"], "--keep needs --file"),
        (["--file", "in.csv", "--out", "o.txt"], "unknown suffix '.txt'"),
        (["--file", "in.csv", "--out", "o.csv", "--json"], "--json cannot be used with --out"),
        (["--file", "in.csv", "--out", "o"], "the file's name has no suffix"),
        (["--file", "in.csv", "--out", "in.csv"], "--file and --out are the same file"),
        (["--file", "in.csv", "--out", "nowhere/o.csv"], "no such file or folder"),
        (["--file", "in.csv", "--out", "in.csv/o.csv"], "a file is in the place of a folder"),
        (["--file", "inn.csv"], "did you mean 'in.csv'?"),
        ([" "], "text 1 is empty"),
        (["a", "--threads", "0"], "--threads must be at least 1"),
        (["a", "--device", "cuda"], "there is no CUDA device"),
    ],
)
def test_what_makes_no_sense_is_refused(graft: Graft, module: Path, flags: list[str], words: str) -> None:
    Path("in.csv").write_text("text\nthe app\n", encoding="utf-8")
    done = graft("predict", module, *flags)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert [path.name for path in Path().iterdir()] == ["in.csv"]


def test_what_is_no_module_is_refused(graft: Graft, module: Path) -> None:
    said = graft("predict", "nowhere", "a text").err
    assert "not a task module" in said and "the module of a run is RUNS/ID/module" in said
    Path("half").mkdir()
    assert graft("predict", "half", "a text").code == 2


def test_a_changed_module_is_refused(graft: Graft, module: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(module, copy)
    weights = bytearray((copy / "delta.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "delta.safetensors").write_bytes(weights)
    done = graft("predict", copy, "a text")
    assert done.code == 2
    assert "delta.safetensors has changed since this module was saved" in done.err


def test_labels_from_data_do_not_steer_the_terminal(graft: Graft, written: Callable[..., Path]) -> None:
    rows = [(f"row {i}", ("\x1b[2Jred", "line\u2028separator")[i % 2]) for i in range(40)]
    data = written("odd.csv", ("text", "label"), rows)
    done = graft("train", data, "--method", "majority", "--json")
    assert done.code == 0
    run = json.loads(done.out)["module"]
    for shown in (graft("predict", run, "row"), graft("show", run), graft("compare", data, "--methods", "majority")):
        assert shown.code == 0
        assert "\x1b" not in shown.out
    assert json.loads(graft("predict", run, "row", "--json").out)["label"] in {label for _, label in rows}


def test_columns_of_other_names_are_named_by_flags(graft: Graft, module: Path, boards: Boards) -> None:
    Path("mine.csv").write_text("body,id\nrefund the invoice,7\n", encoding="utf-8")
    done = graft("predict", module, "--file", "mine.csv", "--text", "body")
    assert done.code == 0
    assert json.loads(done.out)["text"] == "refund the invoice"
    Path("pairs.csv").write_text("one,two\nfine,good\n", encoding="utf-8")
    pair = boards("pair").run_of("majority")
    done = graft("predict", pair, "--file", "pairs.csv", "--text-a", "one", "--text-b", "two")
    assert (done.code, json.loads(done.out)["text_b"]) == (0, "good")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--file", "mine.csv", "--text", "bdoy"), "did you mean --text body?"),
        (("--file", "mine.csv", "--text-a", "body"), "this module has no text_a"),
        (("fine", "--text", "body"), "--text needs --file"),
    ],
)
def test_columns_that_do_not_fit_are_refused(graft: Graft, module: Path, words: tuple[str, ...], message: str) -> None:
    Path("mine.csv").write_text("body,id\nrefund the invoice,7\n", encoding="utf-8")
    done = graft("predict", module, *words)
    assert done.code == 2
    assert message in done.err


def test_another_module_answers_beside_the_first(graft: Graft, module: Path, boards: Boards) -> None:
    number = boards("regression").run_of("linear_probe")
    plain = graft("predict", module, "the app", "a parcel", "--also", number)
    assert plain.code == 0
    lines = plain.out.splitlines()
    assert len(lines) == 4 and lines[1].startswith("  data: ") and lines[3].startswith("  data: ")
    answer = json.loads(graft("predict", module, "the app", "--also", number, "--json").out)
    assert answer.keys() == {"text", "label", "probabilities", "data.value"}
    assert answer["data.value"] == json.loads(graft("predict", number, "the app", "--json").out)["value"]


def test_a_file_is_answered_by_several_modules(
    graft: Graft, module: Path, boards: Boards, written: Callable[..., Path]
) -> None:
    source = written("in.csv", ("text",), [("the app",), ("my parcel",)])
    other = boards("classification").run_of("top_layers:k=1")
    assert graft("predict", module, "--also", other, "--file", source, "--out", "out.csv").code == 0
    with Path("out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    asked = [json.loads(line) for line in graft("predict", other, "the app", "my parcel", "--json").out.splitlines()]
    assert [row["data.label"] for row in rows] == [answer["label"] for answer in asked]
    assert float(rows[0]["data.p(billing)"]) == pytest.approx(asked[0]["probabilities"]["billing"], abs=1e-6)


def test_modules_that_do_not_go_together_are_refused(graft: Graft, module: Path, boards: Boards) -> None:
    number, pair = boards("regression").run_of("majority"), boards("pair").run_of("majority")
    twice = graft("predict", module, "the app", "--also", number, "--also", number)
    assert (twice.code, twice.out) == (2, "") and "two modules have the task 'data'" in twice.err
    odd = graft("predict", module, "the app", "--also", pair)
    assert (odd.code, odd.out) == (2, "") and "these modules have different inputs" in odd.err


@pytest.mark.slow
def test_ctrl_c_leaves_no_answers(module: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\n" + "the app has crashed again\n" * 300_000, encoding="utf-8")
    command = [sys.executable, "-m", "graftwork", "predict", str(module), "--file", "in.csv", "--out", "out.csv"]
    surroundings = {**os.environ, "PYTHONPATH": str(Path(graftwork.__file__).parents[1])}
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=surroundings,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background inherits "ignored"
    )
    try:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob(".out.csv.*")):
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
    finally:
        running.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_unsure_answers_are_withheld_and_the_coverage_is_told(graft: Graft, boards: Boards, tmp_path: Path) -> None:
    run = boards("classification").run_of("tfidf_svm")
    texts = ["refund the invoice please", "hm"]
    sure = [json.loads(line) for line in graft("predict", run, *texts, "--json").out.splitlines()]
    chances = [max(answer["probabilities"].values()) for answer in sure]
    assert chances[1] < chances[0]
    done = graft("predict", run, *texts, "--abstain-below", str(chances[0]))
    first, second = done.out.splitlines()
    assert done.code == 0 and first.startswith("billing") and second.startswith("unsure (0.")
    assert "1 of 2 inputs answered (50.0 %)" in done.err
    (tmp_path / "texts.csv").write_text("text\n" + "\n".join(texts) + "\n", encoding="utf-8")
    out = tmp_path / "out.csv"
    graft("predict", run, "--file", tmp_path / "texts.csv", "--out", out, "--abstain-below", str(chances[0]))
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert [row["label"] for row in rows] == ["billing", ""] and rows[1]["best_guess"] == sure[1]["label"]
    scored = graft("score", run, out, "--label", "best_guess", "--abstain-below", str(chances[0]))
    assert "1 of 2 rows answered (50.0 %), 100.0 % of them right (1)" in scored.out


def test_a_threshold_that_cannot_be_is_refused_and_nothing_is_written(
    graft: Graft, boards: Boards, tmp_path: Path
) -> None:
    run, out = boards("classification").run_of("tfidf_svm"), tmp_path / "out.csv"
    (tmp_path / "texts.csv").write_text("text\nhm\n", encoding="utf-8")
    for given, says in (
        (("--abstain-below", "95"), "write 0.95 for 95 %"),
        (("--abstain-below", "0.5", "--target-precision", "0.9"), "two ways"),
        (("--target-precision", "0.9999"), "no threshold reaches this precision"),
    ):
        done = graft("predict", run, "--file", tmp_path / "texts.csv", "--out", out, *given)
        assert done.code == 2 and says in done.err and not out.exists()
