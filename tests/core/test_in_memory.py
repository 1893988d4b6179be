"""Data in memory give the examples that the same cells in a CSV give, and messages with the row."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.in_memory import in_python
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError, GraftworkError

TEXTS = [f"a message about {word} number {row}" for row in range(12) for word in ("money", "parcels")]
LABELS = ["bank", "post"] * 12
ROWS = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def of_csv(columns: dict[str, list[Any]], **flags: Any) -> str:
    with Path("rows.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return load(Task.from_file("rows.csv", **flags)).digest


def frame(library: str, columns: dict[str, Any]) -> Any:
    if library == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    if library == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    if library == "datasets":
        return pytest.importorskip("datasets").Dataset.from_dict(columns)
    return pytest.importorskip("pyarrow").table(columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets", "pyarrow"])
def test_a_frame_gives_the_examples_of_the_csv(library: str) -> None:
    data = frame(library, {"text": TEXTS, "label": LABELS})
    task = Task.from_data(data)
    assert load(task).digest == of_csv({"text": TEXTS, "label": LABELS})
    assert task.data.parent == Path("frames")
    assert Task.from_data(data).data == task.data


@pytest.mark.parametrize(
    "data",
    [
        (TEXTS, LABELS),
        (np.array(TEXTS), np.array(LABELS)),
        (np.array(TEXTS, dtype=object).reshape(-1, 1), tuple(LABELS)),
        ROWS,
        {"text": TEXTS, "label": np.array(LABELS)},
    ],
)
def test_lists_and_arrays_do_too(data: Any) -> None:
    assert load(Task.from_data(data)).digest == of_csv({"text": TEXTS, "label": LABELS})


def test_cells_become_the_texts_of_a_csv() -> None:
    pandas = pytest.importorskip("pandas")
    amounts = [row / 3 for row in range(24)]
    for dtype in ("float64", "float32"):
        data = pandas.DataFrame({"text": TEXTS, "label": np.array(amounts, dtype=dtype)})
        data.to_csv("amounts.csv", index=False)
        told = load(Task.from_file("amounts.csv", kind="regression")).digest
        assert load(Task.from_data(data, kind="regression")).digest == told
    for labels in ([0, 1] * 12, [True, False] * 12, [1.0, 0.0] * 12):
        data = pandas.DataFrame({"text": TEXTS, "label": labels})
        data.to_csv("labels.csv", index=False)
        assert load(Task.from_data(data)).digest == load(Task.from_file("labels.csv")).digest
    data = pandas.DataFrame({"text": TEXTS, "label": pandas.Categorical(LABELS)})
    assert load(Task.from_data(data)).digest == of_csv({"text": TEXTS, "label": LABELS})


def test_an_index_does_not_matter() -> None:
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame({"text": TEXTS, "label": LABELS})
    first = Task.from_data(data).data
    assert Task.from_data(data.set_axis([7] * len(data))).data == first
    assert Task.from_data(data.set_index(["label", "text"], drop=False)).data == first
    more = pandas.concat([data, pandas.DataFrame({"text": ["?"], "label": ["none"]})])
    assert Task.from_data(more[more.label != "none"]).data == first


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_labels_of_words_and_several_labels_are_lists(library: str) -> None:
    words = [text.split() for text in TEXTS]
    tagged = frame(
        library, {"tokens": words, "tags": [["long" if len(w) > 3 else "short" for w in row] for row in words]}
    )
    assert load(Task.from_data(tagged, kind="tagging")).task.labels == ("long", "short")
    several = frame(
        library, {"text": TEXTS, "label": [[label, "any"][: 1 + row % 2] for row, label in enumerate(LABELS)]}
    )
    joined = ["|".join([label, "any"][: 1 + row % 2]) for row, label in enumerate(LABELS)]
    told = of_csv({"text": TEXTS, "label": joined}, kind="multilabel")
    assert load(Task.from_data(several, kind="multilabel")).digest == told


def test_a_tuple_of_two_is_a_pair_and_a_list_is_words() -> None:
    pairs = load(Task.from_data(([(text, "why?") for text in TEXTS], LABELS)))
    assert dict(pairs.train.examples[0].inputs).keys() == {"text_a", "text_b"}
    words = ([tuple(text.split()[-2:]) for text in TEXTS], [["A", "B"]] * 24)
    assert load(Task.from_data(words, kind="tagging")).task.labels == ("A", "B")


def test_class_numbers_of_datasets_become_names() -> None:
    datasets = pytest.importorskip("datasets")
    named = datasets.Dataset.from_dict({"text": TEXTS, "label": LABELS}).class_encode_column("label")
    digest = of_csv({"text": TEXTS, "label": LABELS})
    assert load(Task.from_data(named)).digest == digest
    assert load(Task.from_data(named.select(range(24)))).digest == digest
    halves = datasets.DatasetDict({"train": named.select(range(16)), "test": named.select(range(16, 24))})
    assert len(load(Task.from_data(halves)).test.examples) == 8
    with pytest.raises(ConfigError, match="streams"):
        Task.from_data(named.to_iterable_dataset())


def test_splits_are_those_that_are_given() -> None:
    given = {
        "train": ROWS[:12],
        "dev": (TEXTS[12:18], LABELS[12:18]),
        "test": {"text": TEXTS[18:], "label": LABELS[18:]},
    }
    dataset = load(Task.from_data(given))
    assert [len(dataset.splits[name].examples) for name in ("train", "validation", "test")] == [12, 6, 6]
    named = Task.from_data(ROWS[:12], validation=given["dev"], test=given["test"], name="mails")
    assert load(named).digest == dataset.digest and named.name == "mails"


def test_a_task_and_a_path_are_what_they_are() -> None:
    task = Task.from_data("builtin:tickets", metrics="accuracy")
    assert task == Task.from_file("builtin:tickets", metrics="accuracy")
    assert Task.from_data(task) == task
    assert Task.from_data(task, metrics=["macro_f1"]).metrics == ("macro_f1",)


def test_columns_and_labels_that_are_numbers_are_named_by_them() -> None:
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame(list(zip(TEXTS, [0, 1] * 12, strict=True)))
    task = Task.from_data(data, text=0, label=1, labels=[1, 0], positive=1, metrics="f1")
    assert load(task).task.labels == ("1", "0")


NO_TEXT = [*TEXTS[:3], " ", *TEXTS[4:]]
HALF = ["half \ud800", *TEXTS[1:]]
UNFIT: list[tuple[Any, str, str]] = [
    ((TEXTS, [*LABELS[:5], None, *LABELS[6:]]), "data: row 5: the column 'label' has no value", "1 of 24 in 'label'"),
    ((TEXTS, [float("nan"), *LABELS[1:]]), "data: row 0: the column 'label' has no value", "nan"),
    ((NO_TEXT, LABELS), "data: row 3: the column 'text' has no value", "1 of 24 in 'text'"),
    ({"train": ROWS, "test": [{"text": "a", "label": None}]}, "test: row 0: the column 'label' has no value", "dropna"),
    (([b"a", *TEXTS[1:]], LABELS), "row 0 of the texts: this is no text", "b'a'"),
    ({"text": [b"a", *TEXTS[1:]], "label": LABELS}, "row 0: the column 'text' holds bytes", "decode"),
    ((TEXTS, LABELS[:5]), "texts and labels are not of one length", "24 texts, 5 labels"),
    ({"text": TEXTS, "label": LABELS[:5]}, "text and label are not of one length", "24 text, 5 label"),
    ((TEXTS, np.zeros((24, 3))), "data: labels: this has 3 columns", "(24, 3)"),
    ((np.zeros((24, 3)), LABELS), "data: texts: this has 3 columns", "give the texts themselves"),
    (([[5, 6]] * 24, LABELS), "row 0 of the texts: this is no text", "[5, 6]"),
    ((TEXTS, "bank"), "data: labels: this is not a list", "bank"),
    ((TEXTS, LABELS, LABELS), "a tuple of data holds texts and labels", "3 items"),
    (list(zip(TEXTS, LABELS, strict=True)), "row 0: a list of data holds dictionaries", "zip"),
    ([ROWS[0], {"text": "a"}], "row 1: this row has other keys", "text, label"),
    ([], "there are no rows", "columns: none"),
    ({"text": [], "label": []}, "there are no rows", "text, label"),
    ({"train": ROWS, "tset": ROWS}, "unknown split 'tset'", "did you mean 'test'"),
    ({"test": ROWS}, "the dictionary has no train", "test"),
    ({"dev": ROWS, "val": ROWS, "train": ROWS}, "the dictionary has a split twice", "dev, val, train"),
    (np.array(TEXTS), "this has no named columns", "ndarray of shape (24,)"),
    (None, "this is no data", "(texts, labels)"),
    ((HALF, LABELS), "row 0: half of a character", "UTF-8"),
]


@pytest.mark.parametrize(("data", "what", "told"), UNFIT)
def test_unfit_data_are_told_with_their_place(data: Any, what: str, told: str) -> None:
    with pytest.raises(GraftworkError) as found:
        Task.from_data(data)
    assert what in str(found.value) and told in str(found.value)
    assert found.value.do
    assert not list(Path().glob("frames/*" if not isinstance(data, dict) else "none"))


def test_unfit_frames_are_told_with_their_index() -> None:
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame({"text": TEXTS, "label": LABELS}, index=[f"r{row}" for row in range(24)])
    for missing in (None, float("nan"), pandas.NA, pandas.NaT):
        holed = data.astype(object)
        holed.iloc[5, 1] = missing
        with pytest.raises(DataError, match=r"data: row 5 \(index r5\): the column 'label' has no value"):
            Task.from_data(holed)
    with pytest.raises(DataError, match="two columns are called 'label'"):
        Task.from_data(pandas.concat([data, data.label], axis=1))
    with pytest.raises(ConfigError, match="no named columns"):
        Task.from_data(data.text)
    assert len(Task.from_data(holed, rejects="bad.csv").data.read_text().splitlines()) == 24


def test_unfit_frames_of_polars_and_sparse_features() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ConfigError, match="sparse matrix"):
        Task.from_data((sparse.eye(24).tocsr(), LABELS))
    polars = pytest.importorskip("polars")
    with pytest.raises(ConfigError, match="lazy frame"):
        Task.from_data(polars.DataFrame({"text": TEXTS, "label": LABELS}).lazy())
    with pytest.raises(DataError, match="row 1: the column 'label'"):
        Task.from_data(polars.DataFrame({"text": TEXTS[:3], "label": ["a", None, "b"]}))


def test_no_library_of_tables_is_imported() -> None:
    code = (
        "import sys; from graftwork.core.task import Task; Task.from_data((['a'], ['b']));"
        "assert not {'pandas', 'polars', 'datasets', 'pyarrow', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_task_is_named_by_its_data_unless_it_is_told() -> None:
    task, other = Task.from_data((TEXTS, LABELS)), Task.from_data((TEXTS, LABELS[::-1]))
    assert re.fullmatch("data-[0-9a-f]{6}", task.name) and task.data.stem.startswith(task.name)
    assert Task.from_data((TEXTS, LABELS)).name == task.name != other.name
    assert Task.from_data((TEXTS, LABELS), name="tickets").name == "tickets"
    assert Task.from_data({"train": (TEXTS, LABELS), "test": (TEXTS[:4], LABELS[:4])}).name == task.name


@pytest.mark.parametrize(
    ("columns", "flags", "told"),
    [
        ({"tweet": TEXTS, "label": LABELS}, {}, "data: no column 'text'.*did you mean text=\"tweet\""),
        ({"text": TEXTS, "label": ["one", *LABELS[1:]]}, {}, "data: row 0: the class 'one'.*give a file with test=…"),
        ({"text": TEXTS, "label": ["a"] * 24}, {}, "data: all rows have the same label.*another column with label=…"),
        ({"text": TEXTS, "label": LABELS}, {"text": ["text", "label"]}, "text names one column.*text_a=… and text_b"),
    ],
)
def test_messages_name_the_row_and_what_to_write_in_python(
    columns: dict[str, Any], flags: dict[str, Any], told: str
) -> None:
    with pytest.raises(GraftworkError, match=f"(?s)^{told}") as error:
        load(Task.from_data(columns, **flags))
    assert "--" not in str(error.value) and "jsonl" not in str(error.value)


def test_messages_on_splits_and_on_files() -> None:
    with pytest.raises(DataError, match=r"^test: row 2: "):
        load(Task.from_data({"train": (TEXTS, LABELS), "test": (TEXTS[:4], ["bank", "post", "other", "bank"])}))
    Path("rows.csv").write_text("tweet,label\n" + "".join(f"{text},a\n" for text in TEXTS), encoding="utf-8")
    with pytest.raises(DataError, match=r"(?s)^rows.csv:1: no column 'text'.*--text tweet"):
        load(Task.from_file("rows.csv"))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("--worth 1.8 takes it.", "worth=1.8 takes it."),
        ("--drop-leaks takes such rows out", "drop_leaks=True takes such rows out"),
        ("--count-from 0 or --count-from 1", "count_from=0 or count_from=1"),
        ("set both --text-a and --text-b, or --text for one", "set both text_a=… and text_b=…, or text=… for one"),
        ("as --text en --label de,", 'as text="en" label="de",'),
        ("a dash - and -- two", "a dash - and -- two"),
    ],
)
def test_flags_as_arguments(told: str, expected: str) -> None:
    assert in_python(told) == expected
