"""Malformed files: each ends in exactly its rows, or in a message with place, what, got or expected, and do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"
sys.path.insert(0, str(FOLDER))
try:
    import malformed
finally:
    sys.path.remove(str(FOLDER))


def test_there_are_enough_of_every_reader() -> None:
    names = [f"{case.reader} {case.what}" for case in malformed.CASES]
    assert len(set(names)) == len(names) >= 40
    assert {case.reader for case in malformed.CASES} == malformed.READERS.keys()


@pytest.mark.parametrize("case", malformed.CASES, ids=[case.what for case in malformed.CASES])
def test_a_file_is_read_exactly_or_told(case: Any, tmp_path: Path) -> None:
    if "Parquet" in case.what:
        pytest.importorskip("pyarrow")
    ended = malformed.tried(case, tmp_path)
    assert ended.end in malformed.GOOD_ENDS, f"{ended.end}: {ended.told}"


@pytest.mark.parametrize("what", ["a short row", "a column twice", "SQuAD: no answers", "task file: no data"])
def test_the_command_says_the_same(what: str, tmp_path: Path) -> None:
    case = next(case for case in malformed.CASES if case.what == what)
    ended = malformed.commanded(case, tmp_path)
    assert ended.end == malformed.MESSAGE, ended.told


def test_ends_are_told_apart(tmp_path: Path) -> None:
    by_name = {case.what: case for case in malformed.CASES}
    short, mark = by_name["a short row"], by_name["a byte-order mark"]

    def raising(error: Exception) -> Any:
        def read(path: Path, **flags: Any) -> Any:
            raise error

        return read

    from graftwork.errors import DataError

    where = f"{tmp_path}/t.csv:3"
    whole = {"where": where, "got": "a", "do": "mend it"}
    ends = {
        malformed.SILENT: (short, lambda path: []),
        malformed.TRACEBACK: (short, raising(KeyError("x"))),
        malformed.LACKING: (short, raising(DataError("the row has too few fields", where=where))),
        malformed.MISSED: (short, raising(DataError("something else", **whole))),
        malformed.MESSAGE: (short, raising(DataError("the row has too few fields", **whole))),
        malformed.DATA: (mark, lambda path: [["fine", "a"]]),
    }
    for end, (case, read) in ends.items():
        assert malformed.tried(case, tmp_path, read).end == end
    assert malformed.tried(mark, tmp_path, lambda path: [["\ufefffine", "a"]]).end == malformed.SILENT
    assert malformed.tried(mark, tmp_path, raising(DataError("no", **whole))).end == malformed.MISSED


def test_the_bar() -> None:
    good = {"files": 40, "silent": 0, "tracebacks": 0, "lacking": 0}
    assert malformed.is_met(good)
    assert not any(malformed.is_met({**good, name: value}) for name, value in
                   (("files", 39), ("silent", 1), ("tracebacks", 1), ("lacking", 1)))  # fmt: skip
    one = {"reader": "table", "case": "x", "wrong": True, "end": malformed.MESSAGE, "told": "a | b", "seconds": 0.1}
    counts = malformed.summed([{**one, "command": malformed.TRACEBACK}, {**one, "end": malformed.SILENT}])
    assert (counts["files"], counts["silent"], counts["tracebacks"]) == (2, 1, 1)
    assert "| x | message | a \\| b |" in malformed.table({"measured": counts, "cases": [one]})
