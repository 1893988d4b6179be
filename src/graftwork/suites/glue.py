"""GLUE, nine tasks of single texts or pairs (Wang et al. 2019, arXiv:1804.07461), from its download script's folder.

Its TSV files are never quoted: a lone quotation mark is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from graftwork.core.suite import OfficialTask, Row, Source, Suite
from graftwork.data.readers.lines import read_lines, without_eol
from graftwork.errors import DataError, clip
from graftwork.registry import suites
from graftwork.units import several

TITLE = "GLUE (Wang et al. 2019)"
PAIR = {"text_a": "sentence1", "text_b": "sentence2"}
QUESTIONS = {"text_a": "question1", "text_b": "question2"}
STRINGS = {"text_a": "#1 String", "text_b": "#2 String"}
LEAST, MOST = 0.0, 5.0  # range of STS-B similarities


def tasks(folder: Path) -> list[OfficialTask]:
    """Return all nine tasks."""
    return [
        _cola(folder / "CoLA"),
        _task(folder, "SST-2", {"text": "sentence"}),
        _mrpc(folder / "MRPC"),
        _task(folder, "STS-B", PAIR, "score", kind="regression", metrics=("pearson", "spearman")),
        _task(folder, "QQP", QUESTIONS, "is_duplicate", "id", metrics=("f1", "accuracy"), positive="1", torn=True),
        _mnli(folder),
        _task(folder, "QNLI", {"text_a": "question", "text_b": "sentence"}),
        _task(folder, "RTE", PAIR),
        _task(folder, "WNLI", PAIR),
    ]


def hand_in(name: str, answered: Iterable[tuple[Row, Any]]) -> Iterator[str]:
    """Yield the lines of a submission file: index and prediction. Similarities of STS-B are clipped to 0 … 5."""
    yield "index\tprediction"
    for row, answer in answered:
        shown = f"{min(MOST, max(LEAST, answer)):.3f}" if isinstance(answer, float) else answer
        yield f"{row['index']}\t{shown}"


def _task(
    folder: Path,
    name: str,
    inputs: Mapping[str, str],
    label: str = "label",
    index: str = "index",
    *,
    kind: str = "classification",
    metrics: Sequence[str] = ("accuracy",),
    positive: str | None = None,
    torn: bool = False,
) -> OfficialTask:
    """Return a task with the files `NAME/train.tsv`, `dev.tsv` and `test.tsv`, each with a header."""
    columns, hidden = {**inputs, "label": label}, {**inputs, "index": index}
    train, dev = (_source(folder / name / f"{split}.tsv", columns, torn) for split in ("train", "dev"))
    test = _source(folder / name / "test.tsv", hidden, torn)
    return OfficialTask(name, kind, tuple(metrics), train, {name: dev}, {f"{name}.tsv": test}, positive)


def _cola(folder: Path) -> OfficialTask:
    """Return CoLA. Its labelled files lack a header (source, label, the author's mark, sentence); test.tsv has one."""
    columns = {"text": "sentence", "label": "label"}
    header = ("source", "label", "mark", "sentence")
    train, dev = (_source(folder / f"{split}.tsv", columns, header=header) for split in ("train", "dev"))
    test = _source(folder / "test.tsv", {"text": "sentence", "index": "index"})
    return OfficialTask("CoLA", "classification", ("matthews",), train, {"CoLA": dev}, {"CoLA.tsv": test}, "1")


def _mnli(folder: Path) -> OfficialTask:
    """Return MNLI: two dev and two test files (matched genres, as in train, and mismatched), and the diagnostic AX."""
    files, labelled, plain = folder / "MNLI", PAIR | {"label": "gold_label"}, PAIR | {"index": "index"}
    dev = {
        f"MNLI-{short}": _source(files / f"dev_{name}.tsv", labelled)
        for short, name in (("m", "matched"), ("mm", "mismatched"))
    }
    test = {
        f"MNLI-{short}.tsv": _source(files / f"test_{name}.tsv", plain)
        for short, name in (("m", "matched"), ("mm", "mismatched"))
    }
    diagnostic = {"AX.tsv": _source(folder / "diagnostic" / "diagnostic.tsv", plain)}
    train = _source(files / "train.tsv", labelled)
    return OfficialTask("MNLI", "classification", ("accuracy",), train, dev, test | diagnostic)


def _mrpc(folder: Path) -> OfficialTask:
    """Return MRPC: `train.tsv` and `dev.tsv` of the download script, else Microsoft's files, split by `dev_ids.tsv`."""
    columns = STRINGS | {"label": "Quality"}
    if (folder / "train.tsv").is_file() or not (folder / "msr_paraphrase_train.txt").is_file():
        train, dev = (_source(folder / f"{split}.tsv", columns) for split in ("train", "dev"))
        test = _source(folder / "test.tsv", STRINGS | {"index": "index"})
    else:
        whole, ids = folder / "msr_paraphrase_train.txt", folder / "dev_ids.tsv"
        train, dev = Source(whole, partial(_by_ids, whole, ids, False)), Source(ids, partial(_by_ids, whole, ids, True))
        hidden = folder / "msr_paraphrase_test.txt"
        test = Source(hidden, partial(_numbered, hidden))
    metrics = ("f1", "accuracy")
    return OfficialTask("MRPC", "classification", metrics, train, {"MRPC": dev}, {"MRPC.tsv": test}, "1")


def _by_ids(whole: Path, ids: Path, is_dev: bool) -> Iterator[Row]:
    """Yield the rows of `whole` whose pair of ids is in the file `ids`, or if not `is_dev` the other rows."""
    listed = {tuple(line.split()) for _, line in read_lines(ids)}
    for row in columns_of(whole, STRINGS | {"label": "Quality", "a": "#1 ID", "b": "#2 ID"}):
        assert row is not None
        if ((row["a"], row["b"]) in listed) == is_dev:
            yield {role: row[role] for role in ("text_a", "text_b", "label")}


def _numbered(path: Path) -> Iterator[Row]:
    for number, row in enumerate(columns_of(path, STRINGS)):
        assert row is not None
        yield {**row, "index": str(number)}


def _source(path: Path, columns: Mapping[str, str], torn: bool = False, header: Sequence[str] = ()) -> Source:
    return Source(path, partial(columns_of, path, columns, torn, header))


def columns_of(
    path: Path, columns: Mapping[str, str], torn: bool = False, header: Sequence[str] = ()
) -> Iterator[Row | None]:
    """Yield the cells of `columns` (role -> column) of every row. `header` names the columns of a file without one.

    Raises `DataError` with file:line for a row with more or fewer fields than the header. A `torn` file has truncated
    rows in the official distribution: they are yielded as None, or with empty cells if they are rows to predict.
    """
    lines = ((number, without_eol(line).split("\t")) for number, line in read_lines(path))
    names = list(header) or next((fields for _, fields in islice(lines, 1)), [])
    for column in columns.values():
        if column not in names:
            raise DataError(
                f"no column {column!r}",
                where=f"{path}:1",
                got=f"columns: {clip(' | '.join(names), 200)}",
                expected="the official GLUE file",
                do="take it from the download of GLUE as it is",
            )
    places = {role: names.index(column) for role, column in columns.items()}
    for number, fields in lines:
        if len(fields) != len(names) and not (torn and len(fields) < len(names)):
            raise DataError(
                f"the row has too {'many' if len(fields) > len(names) else 'few'} fields",
                where=f"{path}:{number}",
                got=f"{several(len(fields), 'field')}, {clip(' | '.join(fields))}",
                expected=f"{len(names)} fields: {clip(', '.join(names), 200)}",
                do="take the file from the download of GLUE as it is",
            )
        row = {role: fields[place] if place < len(fields) else "" for role, place in places.items()}
        lost = any(not row[role].strip() for role in row)
        yield None if torn and lost and "index" not in row else row


suites.register("glue")(Suite(TITLE, tasks, hand_in=hand_in))
