"""Columns of a file that a module reads: named, those of its training file, or the usual ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.data.readers.rejects import none_bad
from graftwork.errors import ConfigError
from graftwork.module.file_rows import rows_for


def trained(folder: Path, header: str, **flags: str) -> gw.TaskModule:
    """A module of the majority class; its training file has these columns, the last one of labels."""
    *inputs, label = header.split(",")
    lines = [",".join([*(f"{name} {row}" for name in inputs), f"l{row % 2}"]) for row in range(20)]
    (folder / "train.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    task = Task.from_file(folder / "train.csv", label=label, **flags)
    run = gw.train(task, method="majority", runs=str(folder / "runs"))
    return gw.TaskModule.load(run.folder / "module")


def read(module: gw.TaskModule, folder: Path, header: str, **columns: str) -> tuple[object, ...]:
    """The inputs of the one row of a file with these columns, each holding its column's name."""
    (folder / "new.csv").write_text(f"{header}\n{header}x\n", encoding="utf-8")
    (example,) = none_bad(rows_for(module, folder / "new.csv", columns)())
    return tuple(str(value).removesuffix("x") for value in example.inputs.values())


def test_a_module_reads_the_columns_that_it_was_trained_on(tmp_path: Path) -> None:
    module = trained(tmp_path, "body,topic", text="body")
    assert read(module, tmp_path, "id,body") == ("body",)
    assert read(module, tmp_path, "text,body") == ("body",), "rather than the usual name"
    assert read(module, tmp_path, "text,body", text="text") == ("text",), "what is named goes first"
    assert read(module, tmp_path, "id,text") == ("text",)
    with pytest.raises(ConfigError, match="no column 'bdoy'"):
        read(module, tmp_path, "id,body", text="bdoy")


def test_a_pair_needs_both_columns_of_training(tmp_path: Path) -> None:
    module = trained(tmp_path, "question,answer,right", text_a="question", text_b="answer")
    assert read(module, tmp_path, "answer,question") == ("question", "answer")
    assert read(module, tmp_path, "text_b,text_a,question") == ("text_a", "text_b")
