"""From files to a data set: columns found, targets parsed, splits drawn, and every bad input refused with its place."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.kind_settings import kind_settings, settings_of
from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError, GraftworkError, UnknownName
from graftwork.registry import kinds

ROWS = [(f"text number {i}", "abc"[i % 3]) for i in range(60)]


def table(folder: Path, rows: list[tuple[str, ...]], name: str = "t.tsv", header: str = "text\tlabel") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def refusal(error: type[GraftworkError], path: Path, **flags: Any) -> GraftworkError:
    with pytest.raises(error) as caught:
        load(Task.from_file(path, **flags))
    return caught.value


def ids(data: Dataset, name: str) -> list[str]:
    return [example.id for example in data.splits[name].examples]


def test_a_task_is_called_by_what_tells_it_from_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So the boards of two files called train stand in two folders."""
    named = {"a/tickets.csv.gz": "tickets", "mrpc/train.tsv": "mrpc", "rte/Training.jsonl": "rte", "a/dev.tsv": "dev"}
    assert {path: Task.from_file(path).name for path in named} == named
    named = {"rows.2024.csv": "rows.2024", "mrpc.train.tsv.gz": "mrpc", "hub:glue:cola": "hub-glue-cola"}
    named |= {"hub:of/rows-v1.5": "rows-v1.5", ".train.csv": ".train", "ROWS.TSV.GZ": "ROWS"}
    assert {path: Task.from_file(path).name for path in named} == named
    (tmp_path / "wnli").mkdir()
    (tmp_path / "v1.2").mkdir()
    assert Task.from_file(tmp_path / "v1.2").name == "v1.2"
    monkeypatch.chdir(tmp_path / "wnli")
    assert Task.from_file("train.tsv").name == "wnli"
    assert Task.from_file("train.tsv", name="mine").name == "mine"


def test_a_task_may_name_its_files_in_words(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    named = Task("rows", str(path), test="builtin:tickets")  # type: ignore[arg-type]
    assert (named.data, named.test) == (path, Task.find("builtin:tickets"))
    assert load(Task("rows", str(path))).digest == load(Task.from_file(path)).digest  # type: ignore[arg-type]


GIVEN: dict[str, Any] = {  # settings that only some kinds have a use for
    "labels": ("a", "b"), "positive": "a", "thresholds": "half", "stray_tags": "refuse", "realign": True,
    "choices": ("one", "two"), "count_from": "1", "beams": 4, "length_penalty": 2.0, "no_repeat": 3, "longest": 9,
    "source_language": "en_XX", "target_language": "de_DE", "source_prefix": "so: ", "class_weights": "balanced",
    "costs": {"a": {"a": 0.0, "b": 1.0}, "b": {"a": 1.0, "b": 0.0}},
}  # fmt: skip


def used_by(kind: str) -> set[str]:
    return {*settings_of(kind), *(["labels"] if kinds.get(kind).has_labels else [])}


def test_every_setting_of_few_kinds_is_given_here() -> None:
    assert {"labels", *kind_settings()} == GIVEN.keys()


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(kind, setting) for kind in kinds.names() for setting in GIVEN if setting not in used_by(kind)],
)
def test_a_setting_of_other_kinds_is_refused(kind: str, setting: str, tmp_path: Path) -> None:
    found = refusal(ConfigError, table(tmp_path, ROWS), kind=kind, **{setting: GIVEN[setting]})
    assert f"a task of kind {kind} has no use for {setting}" in str(found) and "leave it out" in str(found)


def test_one_file_is_split_70_10_20(tmp_path: Path) -> None:
    data = load(Task.from_file(table(tmp_path, ROWS)))
    assert {name: len(split.examples) for name, split in data.splits.items()} == {
        "train": 42,
        "validation": 6,
        "test": 12,
    }
    assert data.task.labels == ("a", "b", "c")
    assert data.task.metrics == ("accuracy", "macro_f1")
    assert (data.task.text, data.task.label) == ("text", "label")
    rows = [int(item.split("/")[1]) for name in data.splits for item in ids(data, name)]
    assert sorted(rows) == list(range(1, 61))
    for name, split in data.splits.items():
        for example, target in zip(split.examples, split.targets, strict=True):
            row = int(example.id.removeprefix(f"{name}/"))
            assert (example.inputs["text"], example.target) == ROWS[row - 1]
            assert data.task.labels[target] == example.target
    assert "validation 6 rows and test 12 rows drawn from t.tsv" in data.report["splits"]


def test_a_split_seed_draws_other_rows_of_the_same_shares(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    first, zero, one, two = (load(Task.from_file(path, split_seed=seed)) for seed in (None, 0, 1, 2))
    assert first.digest == zero.digest
    assert len({data.digest for data in (first, one, two)}) == 3
    assert [len(one.splits[name].examples) for name in ("train", "validation", "test")] == [42, 6, 12]
    assert sum(example.id in ids(first, "test") for example in one.test.examples) < 12
    assert [data.report["split_seed"] for data in (first, one)] == [0, 1]
    assert "by a hash of the text and the split seed 1, the same share" in one.report["splits"]
    assert "seed" not in first.report["splits"]


def test_a_split_seed_that_draws_nothing_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    assert "must be 0 or more" in str(refusal(ConfigError, path, split_seed=-1))
    given = {"test": table(tmp_path, ROWS[:6], "test.tsv"), "validation": table(tmp_path, ROWS[6:12], "dev.tsv")}
    assert "no split is drawn" in str(refusal(ConfigError, path, split_seed=1, **given))
    assert "split_seed" not in load(Task.from_file(path, **given)).report


def test_given_files_are_kept_and_missing_ones_drawn(tmp_path: Path) -> None:
    train = table(tmp_path, ROWS)
    test = table(tmp_path, [("never seen", "a"), ("text number 1", "b")], "test.tsv")
    validation = table(tmp_path, [("new", "c")], "dev.tsv")
    both = load(Task.from_file(train, test=test, validation=validation))
    assert (len(both.train.examples), ids(both, "validation"), ids(both, "test")) == (
        60,
        ["validation/1"],
        ["test/1", "test/2"],
    )
    only_test = load(Task.from_file(train, test=test))
    assert (len(only_test.train.examples), len(only_test.validation.examples)) == (54, 6)
    only_validation = load(Task.from_file(train, validation=validation))
    assert (len(only_validation.train.examples), len(only_validation.test.examples)) == (48, 12)
    assert both.report["duplicates_across"]["rows"] == {"validation": 0, "test": 1}


def test_a_class_of_one_row_stays_in_train_when_a_test_file_is_given(tmp_path: Path) -> None:
    train, test = table(tmp_path, [*ROWS, ("only one", "z")]), table(tmp_path, ROWS[:5], "test.tsv")
    data = load(Task.from_file(train, test=test))
    assert "train/61" in ids(data, "train")


def test_texts_are_passed_on_unchanged(tmp_path: Path) -> None:
    data = load(Task.from_file(table(tmp_path, [*ROWS, ("  two  spaces ", "a")])))
    everything = [example.inputs["text"] for split in data.splits.values() for example in split.examples]
    assert "  two  spaces " in everything


def test_what_separates_the_columns_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text;label\n" + "".join(f"a, {i};{i % 2},5\n" for i in range(20)))
    data = load(Task.from_file(path, kind="regression"))
    assert {example.target for example in data.train.examples} == {0.5, 1.5}
    assert "t.csv are separated by semicolons. Decimal commas of the targets are" in data.report["splits"]
    classes = load(Task.from_file(path))
    assert classes.task.labels == ("0,5", "1,5") and "Decimal" not in classes.report["splits"]
    path.write_text("text,label\n" + "".join(f"a {i},{i % 2}\n" for i in range(20)))
    assert "separated" not in load(Task.from_file(path)).report["splits"]
    path.write_text("msg;more,label\n" + "".join(f"a {i},{i % 2}\n" for i in range(20)))
    with pytest.raises(DataError, match="no column 'text'") as caught:
        load(Task.from_file(path))
    assert "write the line sep=; above the header" in caught.value.do
    path = tmp_path / "t.tsv"
    path.write_text("text\tlabel\n" + "".join(f'"a ""{i}"""\t{i % 2}\n' for i in range(20)))
    assert "rename it to .csv" in load(Task.from_file(path)).report["splits"]
    path.rename(path.with_suffix(".csv"))
    assert load(Task.from_file(path.with_suffix(".csv"))).train.examples[0].inputs["text"].startswith('a "')


def test_digest_follows_content(tmp_path: Path) -> None:
    first = load(Task.from_file(table(tmp_path, ROWS))).digest
    assert load(Task.from_file(table(tmp_path, ROWS, "same.tsv"))).digest == first
    assert load(Task.from_file(table(tmp_path, [*ROWS[:-1], ("text number 59", "a")], "label.tsv"))).digest != first
    assert load(Task.from_file(table(tmp_path, [*ROWS[:-1], ("text number 59!", "c")], "text.tsv"))).digest != first
    assert len(first) == 64


def test_pairs_and_sentence_are_found_by_name(tmp_path: Path) -> None:
    rows = [(f"one {i}", f"two {i}", "ab"[i % 2]) for i in range(20)]
    pair = load(Task.from_file(table(tmp_path, rows, "pair.tsv", "text_a\ttext_b\tlabel")))
    assert dict(pair.train.examples[0].inputs).keys() == {"text_a", "text_b"}
    named = load(Task.from_file(table(tmp_path, rows, "named.tsv", "q\tr\ts"), text_a="r", text_b="q", label="s"))
    example = named.train.examples[0]
    assert example.inputs["text_a"].startswith("two")
    sentence = load(Task.from_file(table(tmp_path, ROWS, "s.tsv", "sentence\tlabel")))
    assert sentence.task.text == "sentence"


def test_regression_and_multilabel(tmp_path: Path) -> None:
    numbers = table(tmp_path, [(f"t {i}", f"{i / 10}") for i in range(100)], "n.tsv")
    data = load(Task.from_file(numbers, kind="regression"))
    assert data.task.metrics == ("pearson", "spearman")
    assert data.train.targets.dtype == np.float32
    assert abs(data.train.targets.mean()) < 1e-6
    several = table(tmp_path, [(f"t {i}", ("", "a", "a|b", "b")[i % 4]) for i in range(100)], "m.tsv")
    data = load(Task.from_file(several, kind="multilabel"))
    assert data.train.targets.shape == (len(data.train.examples), 2)
    assert data.task.labels == ("a", "b")


def test_train_keeps_a_row_of_every_label_of_a_drawn_split(tmp_path: Path) -> None:
    for seed in range(13):
        dice = random.Random(seed)
        more = [[name for name, chance in (("F", 0.13), ("G", 0.12)) if dice.random() < chance] for _ in range(36)]
        rows = [(f"text {seed} {i} {dice.random()}", "|".join([*names, f"R{i // 3}"])) for i, names in enumerate(more)]
        counts = Counter(name for names in more for name in names)
        if 1 in counts.values():
            continue  # such a class is refused
        data = load(Task.from_file(table(tmp_path, rows), kind="multilabel"))
        assert set(data.task.labels) == {f"R{i}" for i in range(12)} | counts.keys()


def bad(folder: Path, *rows: tuple[str, ...]) -> Path:
    return table(folder, [*ROWS, *rows])


@pytest.mark.parametrize(
    ("row", "what", "more"),
    [
        (("  ", "a"), "the text is empty", "text = '  '"),
        (("x", ""), "the label is empty", "fill the label in"),
        (("x", " "), "the label is empty", "' '"),
        (("x", "z"), "the class 'z' has a single row", "give a file with --test"),
    ],
)
def test_bad_rows(tmp_path: Path, row: tuple[str, str], what: str, more: str) -> None:
    path = bad(tmp_path, row)
    error = refusal(DataError, path)
    assert error.where == f"{path}:62"
    assert what in error.what
    assert more in error.message


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS, header="txt\tlabels")
    error = refusal(DataError, path)
    assert error.what == "no column 'text'"
    assert error.where == f"{path}:1"
    assert "columns: txt, labels" in error.message
    assert "did you mean --text txt?" in error.message
    assert "sentence, or text_a and text_b" in error.message
    assert "did you mean --label labels?" in refusal(DataError, path, text="txt").message
    assert "did you mean --text txt?" in refusal(ConfigError, path, text="txd").message


def test_settings_that_contradict(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    assert "both set" in refusal(ConfigError, path, text="text", text_a="text", text_b="label").what
    assert "a pair needs two columns" in refusal(ConfigError, path, text_a="text").what
    assert "text and label are the same column" in refusal(ConfigError, path, label="text").what
    assert "test and train are the same file" in refusal(ConfigError, path, test=path).what.replace(
        "train and test", "test and train"
    )
    many = table(tmp_path, [(*row, row[0]) for row in ROWS], "many.tsv", "text\tlabel\tsentence")
    assert "more than one column" in refusal(DataError, many).what
    assert load(Task.from_file(many, text="sentence", label="label")).task.text == "sentence"


def test_unknown_names_and_unfit_metrics(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    assert "did you mean 'classification'" in refusal(UnknownName, path, kind="clasification").message
    assert "did you mean 'macro_f1'" in refusal(UnknownName, path, metrics=("macrof1",)).message
    assert "'pearson' scores numbers" in refusal(ConfigError, path, metrics=("pearson",)).what
    assert "needs a positive class" in refusal(ConfigError, path, metrics=("f1",)).what
    assert "no label of the data" in refusal(ConfigError, path, positive="q").what


def test_data_that_cannot_be_learnt_or_split(tmp_path: Path) -> None:
    one = table(tmp_path, [(f"t {i}", "a") for i in range(30)], "one.tsv")
    error = refusal(DataError, one)
    assert "all rows have the same label" in error.what
    assert error.where == str(one)
    few = refusal(DataError, table(tmp_path, ROWS[:9], "few.tsv"))
    assert "too few rows" in few.what
    assert "got:      9 rows" in few.message
    same = refusal(DataError, table(tmp_path, [("same", "ab"[i % 2]) for i in range(30)], "same.tsv"))
    assert "no row is left for test" in same.what
    assert "30 rows, 1 different" in same.message


def test_labels_that_train_lacks(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    test = table(tmp_path, [("x", "a"), ("y", "A")], "test.tsv")
    error = refusal(DataError, path, test=test)
    assert error.where == f"{test}:3"
    assert "the label 'A' is in test and not in train" in error.what
    assert "did you mean 'a'?" in error.message
    validation = table(tmp_path, [("x", "d")], "dev.tsv")
    assert "in validation and not in train" in refusal(DataError, path, validation=validation).what


def test_other_files_must_have_the_columns_too(tmp_path: Path) -> None:
    test = table(tmp_path, ROWS, "test.tsv", "text\tlabl")
    error = refusal(DataError, table(tmp_path, ROWS), test=test)
    assert error.where == f"{test}:1"
    assert "no column 'label'" in error.what


def test_listed_labels_are_kept_in_order_and_enforced(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    assert load(Task.from_file(path, labels=("c", "b", "a"))).task.labels == ("c", "b", "a")
    error = refusal(DataError, path, labels=("a", "b"))
    assert error.where == f"{path}:4"
    assert "unknown label 'c'" in error.what
    assert "twice" in refusal(ConfigError, path, labels=("a", "b", "c", "a")).what


SHARED = Path(os.environ.get("GRAFTWORK_SHARED", Path(__file__).parents[3] / "shared"))


@pytest.mark.real
@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="no shared data beside the checkout")
@pytest.mark.parametrize(("name", "kind", "rows"), [("sst5", "classification", 8544), ("stsb", "regression", 5749)])
def test_published_data_sets_load(name: str, kind: str, rows: int) -> None:
    folder = SHARED / "data" / name
    task = Task.from_file(folder / "train.tsv", validation=folder / "dev.tsv", test=folder / "test.tsv", kind=kind)
    assert len(load(task).train.examples) == rows
