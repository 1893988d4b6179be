"""Data in memory give the examples that the same cells in a CSV give, and messages with the row."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.task import Task
from graftwork.data.load import load

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
