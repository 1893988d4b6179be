"""The fuzzing of readers: its targets on their seeds, and what counts as a finding. atheris itself is not needed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graftwork.errors import DataError

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"


@pytest.fixture(scope="module")
def fuzz(imported: Callable[[str], ModuleType]) -> ModuleType:
    imported("robust/malformed_cases")  # whose files are the seeds
    return imported("robust/fuzz")


def raising(error: BaseException) -> Callable[[bytes, Path], Any]:
    def read(content: bytes, folder: Path) -> None:
        raise error

    return read


def test_every_module_that_inputs_are_led_by_is_there(fuzz: ModuleType) -> None:
    assert [part for part in fuzz.LOOKED_AT if importlib.util.find_spec(f"graftwork.{part}") is None] == []


@pytest.mark.parametrize("name", [
    "csv", "csv_gz", "tsv", "jsonl", "multilabel", "choices", "ranking", "conll", "conllu", "doccano", "label_studio",
    "label_studio_choices", "brat", "squad", "squad_lines", "glue", "superglue", "squad_suite", "word_vectors",
    "corpus", "task_file", "json", "safetensors", "archive",
])  # fmt: skip
def test_seeds_are_read_or_refused(fuzz: ModuleType, name: str, tmp_path: Path) -> None:
    target, tried = fuzz.TARGETS[name], fuzz.Tried()
    seeds = [*target.seeds(), *fuzz.WHOLE.get(name, ()), b"", b"\0", b"\xff" * 40]
    for content in seeds:
        fuzz.execute(target.read, content, tmp_path, tried)
    assert tried.runs == len(seeds) and not tried.findings
    assert 0 < tried.refused < tried.runs, "seeds of both sorts"


def test_files_that_made_a_reader_fail_once(fuzz: ModuleType, tmp_path: Path) -> None:
    tried = fuzz.Tried()
    for name, content in (
        ("csv", b'\r\n",bel\na",ch\r'),  # hung where a file with quotes ends in CR
        ("csv", b'text,label\n"x",a\r'),
    ):
        fuzz.execute(fuzz.TARGETS[name].read, content, tmp_path, tried)
    assert not tried.findings


def test_what_counts_as_a_finding(fuzz: ModuleType, tmp_path: Path) -> None:
    tried = fuzz.Tried()
    fuzz.execute(raising(DataError("a bad row")), b"x", tmp_path, tried)
    assert (tried.runs, tried.refused, tried.findings) == (1, 1, {})
    fuzz.execute(raising(KeyError("x")), b"first", tmp_path, tried)
    fuzz.execute(raising(KeyError("x")), b"second", tmp_path, tried)
    ((where, found),) = tried.findings.items()
    assert where.startswith("KeyError at") and found == {"times": 2, "input": "first"}

    def endless(content: bytes, folder: Path) -> None:
        while True:
            pass

    fuzz.execute(endless, b"x", tmp_path, tried, most_seconds=0.05)
    assert any(where.startswith("Hang at") for where in tried.findings)


def test_rows_that_are_set_aside_and_not_refused_are_a_finding(
    fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graftwork.data.readers.rejects import Rejects

    monkeypatch.setattr(Rejects, "refuse", lambda self, bad: self.found.append(bad) if self.aside else None)
    tried = fuzz.Tried()
    fuzz.execute(fuzz.TARGETS["csv"].read, b"text,label\nx,a\nalone\n", tmp_path, tried)
    assert any("do not agree" in where for where in tried.findings)


def test_the_bar_and_the_table(fuzz: ModuleType) -> None:
    good = {name: {"executions": 300_000, "findings": {}} for name in fuzz.TARGETS}
    assert fuzz.is_met(good)
    assert not fuzz.is_met({**good, "csv": {"executions": 299_999, "findings": {}}})
    assert not fuzz.is_met({**good, "csv": {"executions": 300_000, "findings": {"KeyError | x": {}}}})
    assert not fuzz.is_met({name: one for name, one in good.items() if name != "csv"})
    told = fuzz.table({"targets": {"csv": {"executions": 5, "findings": {"KeyError | x": {}}}}})
    assert "| csv | 5 | 0 |  | 0 ms | KeyError \\| x |" in told
