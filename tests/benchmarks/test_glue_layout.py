"""The benchmark of GLUE: rows of a collection in the layout that `graft benchmark glue` reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from graftwork.registry import suites

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "glue" / "run.py"
ROWS = {
    "CoLA": 'text\tlabel\nHe went.\tacceptable\nWent he "to.\tunacceptable\n',
    "MRPC": "text_a\ttext_b\tlabel\na b\ta c\tparaphrase\nd\te\tnot_paraphrase\n",
    "STS-B": "text_a\ttext_b\tlabel\na b\ta c\t3.2\nd\te\t0.0\n",
    "WNLI": "text_a\ttext_b\tlabel\na b\ta c\t1\nd\te\t0\n",
}


@pytest.fixture(scope="module")
def driver(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("glue/run")


@pytest.mark.parametrize("name", ROWS)
def test_the_suite_reads_what_is_laid_out(driver: ModuleType, name: str, tmp_path: Path) -> None:
    for split in ("train", "dev"):
        path = tmp_path / "data" / driver.TASKS[name][0] / f"{split}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ROWS[name], encoding="utf-8")
    driver.lay_out(tmp_path / "data", tmp_path / "glue", name)
    task = next(task for task in suites.get("glue").tasks(tmp_path / "glue") if task.name == name)
    header, *lines = (line.split("\t") for line in ROWS[name].splitlines())
    wanted = [[driver.LABELS.get(cell, cell) for cell in line] for line in lines]
    read = [[row[column] for column in header] for row in task.train.read() if row is not None]
    assert read == wanted
