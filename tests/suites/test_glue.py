"""GLUE's files as they are: no header, never quoted, columns by name, rows that are cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graftwork.core.suite import OfficialTask
from graftwork.errors import DataError
from graftwork.registry import suites


def task(folder: Path, name: str) -> OfficialTask:
    return next(task for task in suites.get("glue").tasks(folder) if task.name == name)


@pytest.fixture
def put(tmp_path: Path) -> Iterator[object]:
    def write(name: str, *lines: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


def test_nine_tasks_and_which_files_are_missing(tmp_path: Path) -> None:
    tasks = suites.get("glue").tasks(tmp_path)
    assert [task.name for task in tasks] == ["CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI"]
    mnli = next(task for task in tasks if task.name == "MNLI")
    assert [path.name for path in mnli.missing()] == ["train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"]
    assert list(mnli.tests) == ["MNLI-m", "MNLI-mm"]
    assert list(mnli.unlabelled) == ["MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"]


def test_cola_has_no_header_but_in_its_test_file(tmp_path: Path, put) -> None:  # type: ignore[no-untyped-def]
    put("CoLA/train.tsv", 'gj04\t1\t\tHe said "no.', "gj04\t0\t*\tHim said no.")
    put("CoLA/test.tsv", "index\tsentence", "0\tShe left.")
    cola = task(tmp_path, "CoLA")
    assert list(cola.train.read()) == [{"text": 'He said "no.', "label": "1"}, {"text": "Him said no.", "label": "0"}]
    assert list(cola.unlabelled["CoLA.tsv"].read()) == [{"text": "She left.", "index": "0"}]


def test_quotes_are_text_and_columns_are_found_by_name(tmp_path: Path, put) -> None:  # type: ignore[no-untyped-def]
    put("QNLI/train.tsv", "index\tquestion\tsentence\tlabel", '7\tWho?\t"It is\tnot_entailment')
    row = {"text_a": "Who?", "text_b": '"It is', "label": "not_entailment"}
    assert list(task(tmp_path, "QNLI").train.read()) == [row]
    put("RTE/train.tsv", "index\tsentence1\tsentence2\tlabels", "0\ta\tb\tc")
    with pytest.raises(DataError, match=r"train.tsv:1: no column 'label'"):
        list(task(tmp_path, "RTE").train.read())


def test_a_row_of_another_width_is_an_error_with_its_line(tmp_path: Path, put) -> None:  # type: ignore[no-untyped-def]
    put("RTE/train.tsv", "index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", "1\ta\tb")
    with pytest.raises(DataError, match=r"train.tsv:3: the row has too few fields"):
        list(task(tmp_path, "RTE").train.read())


def test_rows_of_qqp_that_are_cut_off_are_broken_and_are_answered_all_the_same(tmp_path: Path, put) -> None:  # type: ignore[no-untyped-def]
    header = "id\tqid1\tqid2\tquestion1\tquestion2"
    put("QQP/train.tsv", f"{header}\tis_duplicate", "0\t1\t2\tWhy?\tHow?\t0", "1\t3\t4\tWhy?", "2\t5\t6\t\tHow?\t1")
    put("QQP/test.tsv", header, "0\tWhy?\tHow?", "1\tWhy?\t")
    qqp = task(tmp_path, "QQP")
    assert list(qqp.train.read()) == [{"text_a": "Why?", "text_b": "How?", "label": "0"}, None, None]
    put("QQP/test.tsv", "id\tquestion1\tquestion2", "0\tWhy?\tHow?", "1\tWhy?")
    answered = list(qqp.unlabelled["QQP.tsv"].read())
    assert answered[1] == {"text_a": "Why?", "text_b": "", "index": "1"}


def test_mrpc_from_the_files_of_microsoft(tmp_path: Path, put) -> None:  # type: ignore[no-untyped-def]
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    put("MRPC/msr_paraphrase_train.txt", header, "1\t10\t11\ta\tb\r", "0\t12\t13\tc\td\r")
    put("MRPC/msr_paraphrase_test.txt", header, "1\t20\t21\te\tf")
    assert [path.name for path in task(tmp_path, "MRPC").missing()] == ["dev_ids.tsv"]
    put("MRPC/dev_ids.tsv", "12\t13")
    mrpc = task(tmp_path, "MRPC")
    assert list(mrpc.train.read()) == [{"text_a": "a", "text_b": "b", "label": "1"}]
    assert list(mrpc.tests["MRPC"].read()) == [{"text_a": "c", "text_b": "d", "label": "0"}]
    assert list(mrpc.unlabelled["MRPC.tsv"].read()) == [{"text_a": "e", "text_b": "f", "index": "0"}]


def test_what_is_handed_in(tmp_path: Path) -> None:
    hand_in = suites.get("glue").hand_in
    assert hand_in is not None
    lines = list(hand_in("STS-B.tsv", [({"index": "0"}, 5.3), ({"index": "1"}, -0.1), ({"index": "2"}, 2.5)]))
    assert lines == ["index\tprediction", "0\t5.000", "1\t0.000", "2\t2.500"]
    assert list(hand_in("RTE.tsv", [({"index": "4"}, "entailment")]))[1] == "4\tentailment"
