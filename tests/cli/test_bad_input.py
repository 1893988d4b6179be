"""Bad input through the command line: one clear message, exit code 2, and nothing half-written.

What follows the place in a message: `got`, `expected` and `do`, where there is something to say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Graft = Callable[..., Any]

GOOD = "text,label\n" + "".join(f"text number {i},{'abc'[i % 3]}\n" for i in range(30))
NUMBERS = "text,label\n" + "".join(f"text number {i},{i / 2}\n" for i in range(30))
QUICK = ("--backbone", "tiny_text", "--seeds", "1", "--epochs", "1")


def refusal(graft: Graft, *arguments: object) -> str:
    """The message of a command that must change nothing."""
    before = sorted(str(path) for path in Path().rglob("*"))
    done = graft(*arguments)
    assert done.code == 2, done.err
    assert done.out == ""
    message = str(done.err).removeprefix("reading the data\n")  # what `compare` says at once where no terminal is
    assert message.startswith("graft: ")
    assert "Traceback" not in message
    assert "internal error" not in message
    after = sorted(str(path) for path in Path().rglob("*"))
    assert [path for path in after if path not in before] in ([], ["runs"]), "something was left behind"
    assert sorted(Path().glob("runs/*")) == []
    return message


FILES: dict[str, tuple[str | bytes, tuple[str, ...], list[str]]] = {
    # content of data.csv; flags; what the message must hold
    "empty": ("", (), ["data.csv: the file is empty", "a header and rows"]),
    "header only": ("text,label\n", (), ["data.csv: the file has a header and no rows", "add rows"]),
    "missing label column": (
        GOOD.replace("text,label", "text,lable"),
        (),
        ["data.csv:1: no column 'label'", "columns: text, lable", "did you mean --label lable?"],
    ),
    "missing text column": (
        GOOD.replace("text,label", "txet,label"),
        (),
        ["data.csv:1: no column 'text'", "text, sentence, or text_a and text_b", "--text txet?"],
    ),
    "no column that looks like the text": (
        GOOD.replace("text,label", "message,team"),
        (),
        ["columns: message, team", "do:       name it: --text COLUMN"],
    ),
    "a flag that looks like no column": (GOOD, ("--label", "team"), ["no column 'team'", "name it: --label COLUMN"]),
    "no header": (
        GOOD.removeprefix("text,label\n").replace("text number", "a text of some words, number").replace(", n", " n"),
        (),
        ["data.csv:1: no column 'text'", "put a header above it"],
    ),
    "the columns of a pair": (
        "sentence1,sentence2,label\n" + "".join(f"one {i},two {i},{'ab'[i % 2]}\n" for i in range(30)),
        (),
        ["data.csv:1: no column 'text'", "of a pair --text-a COLUMN --text-b COLUMN"],
    ),
    "amounts without their kind": (NUMBERS, (), ["has a single row", "if the labels are amounts: --kind regression"]),
    "a flag that names no column": (GOOD, ("--label", "lable"), ["no column 'lable'", "did you mean --label label?"]),
    "too few fields": (GOOD + "only one\n", (), ["data.csv:32: the row has too few fields", "1 field, 'only one'"]),
    "too many fields": (
        GOOD + "one, two,a\n",
        (),
        ["data.csv:32: the row has too many fields", "3 fields", "2 fields: text, label", "put quotes round"],
    ),
    "an unclosed quote": (
        GOOD + '"never closed,a\nmore,b\n',
        (),
        ["data.csv:32:1: the quote is never closed", "double a quote"],
    ),
    "a lone quote": (
        GOOD + 'a 5" screen,a\n',
        (),
        ["data.csv:32:4: a quote inside an unquoted field", "name the file .tsv"],
    ),
    "Windows encoding": (
        GOOD.encode() + "café,a\n".encode("latin-1"),
        (),
        ["data.csv:32: the line is not UTF-8 (byte ", "byte 0xe9 in 'café,a'", "iconv -f WINDOWS-1252"],
    ),
    "UTF-16": (GOOD.encode("utf-16"), (), ["data.csv:1: the file is UTF-16, not UTF-8", "iconv -f UTF-16 "]),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), (), ["data.csv:1: the file is UTF-16LE", "iconv -f UTF-16LE "]),
    "a NUL byte": (GOOD.encode() + b"a\0b,a\n", (), ["data.csv:32: the line has a NUL byte (byte ", "export it again"]),
    "an empty text": (GOOD + "  ,a\n", (), ["data.csv:32: the text is empty", "text = '  '"]),
    "an empty label": (GOOD + "x,\n", (), ["data.csv:32: the label is empty", "fill the label in"]),
    "the line is empty": (GOOD + "\nx,a\n", (), ["data.csv:32: the line is empty", "remove the line"]),
    "one class": (
        "text,label\n" + "".join(f"text number {i},a\n" for i in range(30)),
        (),
        ["data.csv: all rows have the same label", "'a' in 21 rows", "two classes or more"],
    ),
    "one text": (
        "text,label\n" + "same,a\nsame,b\n" * 15,
        (),
        ["data.csv: no row is left for ", "30 rows, 1 different"],
    ),
    "a class of one row": (
        GOOD + "x,z\n",
        (),
        ["data.csv:32: the class 'z' has a single row", "two rows or more of every class", "--test"],
    ),
    "too few rows": ("text,label\nx,a\ny,b\n", (), ["data.csv: too few rows", "2 rows", "10 or more", "--test FILE"]),
    "a column twice": (GOOD.replace("text,label", "text,text"), (), ["data.csv:1: two columns are called 'text'"]),
    "another separator": (GOOD.replace(",", ":"), (), ["data.csv:1: no column 'text'", "columns: text:label"]),
    "a target that is no number": (
        NUMBERS + "x,many\n",
        ("--kind", "regression"),
        ["data.csv:32: the target is not a finite number", "'many'", "such as 3, -0.5 or 1e-3"],
    ),
    "a decimal comma": (NUMBERS + 'x,"1,5"\n', ("--kind", "regression"), ["data.csv:32:", "a decimal point"]),
    "a target that is NaN": (NUMBERS + "x,nan\n", ("--kind", "regression"), ["data.csv:32:", "'nan'"]),
    "targets all the same": (
        "text,label\n" + "".join(f"t{i},1.0\n" for i in range(30)),
        ("--kind", "regression"),
        ["data.csv: the targets have no usable spread", "from 1.0 to 1.0"],
    ),
    "text and label the same column": (GOOD, ("--label", "text"), ["text and label are the same column, 'text'"]),
    "one column of a pair": (GOOD, ("--text-a", "text"), ["a pair needs two columns", "--text-b"]),
    "an unknown kind": (GOOD, ("--kind", "clasification"), ["unknown kind 'clasification'", "'classification'?"]),
    "an unknown metric": (GOOD, ("--metrics", "acuracy"), ["unknown metric 'acuracy'", "did you mean 'accuracy'?"]),
    "a metric of another kind": (GOOD, ("--metrics", "pearson"), ["'pearson' scores numbers", "accuracy, macro_f1"]),
    "a positive class that is none": (
        GOOD,
        ("--positive", "d"),
        ["the positive class 'd' is no label", "one of a, b, c"],
    ),
    "test file missing": (GOOD, ("--test", "tset.csv"), ["tset.csv: no such file"]),
    "test and train the same": (GOOD, ("--test", "data.csv"), ["are the same file"]),
}


@pytest.mark.parametrize(("content", "flags", "words"), FILES.values(), ids=FILES.keys())
def test_bad_files_are_refused(graft: Graft, content: str | bytes, flags: tuple[str, ...], words: list[str]) -> None:
    Path("data.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refusal(graft, "compare", "data.csv", *flags, *QUICK)
    for part in words:
        assert part in message


def test_the_byte_of_a_wrong_encoding_is_named(graft: Graft) -> None:
    Path("data.csv").write_bytes(GOOD.encode() + "café,a\n".encode("latin-1"))
    message = refusal(graft, "compare", "data.csv", *QUICK)
    assert f"(byte {len(GOOD) + 3:,} of the file)" in message
    assert Path("data.csv").read_bytes()[len(GOOD) + 3] == 0xE9


def test_a_label_that_only_test_has(graft: Graft) -> None:
    Path("data.csv").write_text(GOOD, encoding="utf-8")
    Path("test.csv").write_text("text,label\nfoo,a\nbar,zebra\n", encoding="utf-8")
    message = refusal(graft, "compare", "data.csv", "--test", "test.csv", *QUICK)
    assert "test.csv:3: the label 'zebra' is in test and not in train" in message
    assert "one of a, b, c" in message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("daat.csv", ["daat.csv: no such file", "did you mean 'data.csv'?"]),
        ("tickets", ["tickets: no such file", "did you mean 'builtin:tickets'?"]),
        ("https://host/data.csv", ["this is an address, not a file", "download it, and name the file"]),
        ("builtin:ticket", ["unknown built-in data set 'ticket'", "did you mean 'tickets'?"]),
        (".", [".: this folder holds neither splits nor class folders", "name the file to read, such as data.csv"]),
        ("data.xlsx", ["unknown suffix '.xlsx'", "save the sheet as CSV (UTF-8)"]),
        ("none.toml", ["none.toml: no such file or folder"]),
    ],
)
def test_data_that_is_none(graft: Graft, name: str, words: list[str]) -> None:
    Path("data.csv").write_text(GOOD, encoding="utf-8")
    Path("data.xlsx").write_bytes(b"PK\x03\x04")
    message = refusal(graft, "compare", name, *QUICK)
    for part in words:
        assert part in message


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--methods", "adaptor"], ["unknown method 'adaptor'", "did you mean 'adapter'?", "tfidf_svm"]),
        (["--methods", "adapter:sise=8"], ["unknown hyper-parameter of adapter 'sise'", "did you mean 'size'?"]),
        (["--methods", "adapter:size=big"], ["adapter: size must be a whole number", "'big'"]),
        (["--methods", "adapter:size"], ["a hyper-parameter needs a value", "size=VALUE"]),
        (["--methods", "adapter:size=0"], ["adapter:size=0", "size must be above 0"]),
        (["--methods", "majority,majority"], ["a method is named twice", "majority"]),
        (["--methods", ","], ["no method is named"]),
        (["--methods", "top_layers:k=9"], ["k must be between 1 and 1 for tiny_text"]),
        (
            ["--backbone", "minillm"],
            ["unknown backbone 'minillm'", "did you mean 'minilm'?", "hf:<folder or hub name>"],
        ),
        (["--backbone", "hf:nowhere/at/all"], ["nowhere/at/all"]),
        (["--backbone", "google/electra-small"], ["unknown backbone", "write hf:google/electra-small"]),
        (["--seed", "3"], ["No such option '--seed'.", "Did you mean", "'--seeds'", "graft compare --help"]),
        (["--method", "full"], ["No such option '--method'", "'--methods'"]),
        (["--seeds", "0"], ["seeds must be at least 1", "0"]),
        (["--seeds", "-2"], ["seeds must be at least 1", "-2"]),
        (["--seeds", "many"], ["--seeds", "'many' is not a valid integer"]),
        (["--epochs", "0"], ["epochs must be above 0", "got:      0"]),
        (["--epochs", "-1"], ["epochs must be above 0", "got:      -1"]),
        (["--batch-size", "0"], ["batch_size must be above 0", "got:      0"]),
        (["--batch-size", "many"], ["--batch-size", "'many' is not a valid integer"]),
        (["--threads", "0"], ["--threads must be at least 1"]),
        (["--precision", "fp16"], ["unknown precision 'fp16'", "auto, fp32, bf16"]),
        (["--device", "gpu"], ["unknown device 'gpu'", "auto, cpu, cuda"]),
        (["--device", "cuda"], ["there is no CUDA device", "got:      device cuda", "expected: auto or cpu", "do: "]),
        (["--prices", "none.toml"], ["none.toml: no such file or folder"]),
        (["--prices", "prices.toml"], ["prices.toml: 'per_hour' without its currency", "add currency, date, source"]),
        (["--out", "data.csv"], ["data.csv: a file is in the place of a folder", "choose another path"]),
        (["--out", "data.csv/board"], ["data.csv/board: a file is in the place of a folder"]),
        (["--runs", "data.csv/runs"], ["data.csv/runs: a file is in the place of a folder"]),
        (["second.csv"], ["second.csv: no such file or folder"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value[0].startswith("-") else None,
)
def test_bad_flags_are_refused_before_the_first_run(graft: Graft, flags: list[str], words: list[str]) -> None:
    """`majority` comes first and needs nothing: a flag that is only wrong for a later method must stop it, too."""
    Path("data.csv").write_text(GOOD, encoding="utf-8")
    Path("prices.toml").write_text("per_hour = 3.0\n", encoding="utf-8")
    message = refusal(graft, "compare", "data.csv", *QUICK, "--methods", "majority,full", *flags)
    for part in words:
        assert part in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("data =", ["task.toml: not a TOML file"]),
        ('kind = "classification"', ["task.toml: the task file names no data", 'data = "train.tsv"']),
        ('data = "data.csv"\nlable = "x"', ["task.toml: unknown setting 'lable'", "did you mean 'label'?"]),
        ('data = "data.csv"\nlabel = 3', ["setting 'label' has the wrong type", "a string"]),
        ('data = "data.csv"\nmetrics = ["macrof1"]', ["unknown metric 'macrof1'", "'macro_f1'?"]),
        ('data = "data.csv"\nseed = 3', ["unknown setting 'seed'", "'seeds'?"]),
        ('data = "data.csv"\nseeds = "3"', ["setting 'seeds' has the wrong type", "a whole number"]),
        ('data = "data.csv"\nmethods = ["ful"]', ["unknown method 'ful'", "'full'?"]),
        ('data = "data.csv"\nmethods = [1]', ["setting 'methods' must hold strings only"]),
        ('data = "none.csv"', ["none.csv: no such file"]),
    ],
)
def test_bad_task_files_are_refused(graft: Graft, content: str, words: list[str]) -> None:
    Path("data.csv").write_text(GOOD, encoding="utf-8")
    Path("task.toml").write_text(content, encoding="utf-8")
    message = refusal(graft, "compare", "task.toml", "--backbone", "tiny_text")
    for part in words:
        assert part in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], ["Missing argument 'DATA...'"]),
        (["verif", "data.csv"], ["No such command 'verif'. Did you mean 'verify'?", "graft --help"]),
        (["train", "data.csv"], ["neither --method nor --budget", "expected: one of them"]),
        (["train", "data.csv", "--method", "ful"], ["unknown method 'ful'", "did you mean 'full'?"]),
        (["train", "data.csv", "--method", "full", "--epochs", "0"], ["epochs must be above 0"]),
        (["train", "data.csv", "--method", "full", "--learning-rate", "nan"], ["learning_rate must be above 0", "nan"]),
        (["train", "data.csv", "--method", "top_layers:k=9"], ["k must be between 1 and 1"]),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) and " " not in value[0] else None,
)
def test_bad_commands_are_refused(graft: Graft, arguments: list[str], words: list[str]) -> None:
    Path("data.csv").write_text(GOOD, encoding="utf-8")
    backbone = ["--backbone", "tiny_text"] if "--method" in arguments else []
    message = refusal(graft, *arguments, *backbone)
    for part in words:
        assert part in message
