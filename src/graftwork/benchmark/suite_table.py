"""The benchmark's table as plain text: at most 100 characters wide, split into blocks if its tasks need more."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from graftwork.compare.plain_table import WIDTH, print_lines, side_by_side, width_of
from graftwork.units import metric_title, percent, several

NAME = 28  # most characters of a row's name
Content = Mapping[str, Any]
Cells = list[str]


def print_benchmark(content: Content, console: Console) -> None:
    """Print the table, then remarks on how to read it."""
    width = width_of(console)
    print_lines([_title(content), "", *table_lines(content, width), "", *_remarks(content, width)], console)


def _title(content: Content) -> str:
    seeds = content["seeds"]
    only = f" · ONLY {content['limit']:,} ROWS OF EACH FILE" if content["limit"] else ""
    return f"{content['title']} · points · backbone {content['backbone']} · seeds {seeds}{only}"


def table_lines(content: Content, width: int = WIDTH) -> list[str]:
    """Return the table as blocks of columns, each with the row names; published scores are below a rule."""
    columns = list(_columns(content))
    blocks = side_by_side(columns, width, left=range(len(columns)), ruled=(1, 1 + len(content["rows"])))
    return [line for block in blocks for line in ("", *block)][1:]


def _columns(content: Content) -> Iterator[Cells]:
    """Yield columns: two heading cells, then a cell per row."""
    rows, published = content["rows"], content["published"]
    names = [row["method"] for row in rows] + [f"{row['name']} ({row['split']})" for row in published]
    yield ["", "", *(name if len(name) <= NAME else f"{name[: NAME - 1]}…" for name in names)]
    for key, heading in (("mean", ("mean", "")), ("geometric_mean", ("geometric", "mean"))):
        yield [*heading, *(_whole(row, key) for row in (*rows, *published))]
    for task, described in content["tasks"].items():
        for column in described["columns"]:
            test, metric = column.rsplit(" ", 1)
            theirs = [f"{row['scores'][column]:.1f}" if column in row["scores"] else "–" for row in published]
            yield [
                test,
                metric_title(metric, described.get("positive")),
                *(_score(row, task, column) for row in rows),
                *theirs,
            ]


def _score(row: Mapping[str, Any], task: str, column: str) -> str:
    if column in row["scores"]:
        return _spread(row["scores"][column]) + "*" * bool(row["n_failed"][task])
    status = str(row["status"].get(task, "–")).replace("_", " ")
    return "–" if status == "ok" else status


def _whole(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return "–"
    return _spread(value) if isinstance(value, Mapping) else percent(value)


def _spread(score: Mapping[str, Any]) -> str:
    return percent(score["mean"]) + (f" ± {percent(score['sd'])}" if score["seeds"] > 1 else "")


def _remarks(content: Content, width: int) -> list[str]:
    """Return the remarks, wrapped."""
    return [line for text in remarks(content) for line in textwrap.wrap(text, width, subsequent_indent="  ")]


def remarks(content: Content) -> Iterator[str]:
    """Yield remarks of a sentence or two: how scores were obtained, what is missing, sources of published scores."""
    hidden = "Scored on the official dev files: the labels of the test files are hidden. " if content["hidden"] else ""
    drawn = any(described["validation"] == "drawn" for described in content["tasks"].values())
    chosen = (
        "Choices were made on a validation split, a tenth of train drawn by a hash of its content. " if drawn else ""
    )
    server = any(row["split"] == "test" for row in content["published"])
    yield (
        f"{hidden}{chosen}± sd over seeds; intervals and prices are in the board of each task."
        + " A row marked (test) was scored by the suite's own server on other rows." * server
    )
    if content["limit"]:
        yield (
            f"At most {content['limit']:,} rows of each labelled file were taken, drawn by a hash of their content: no "
            "score here is one of the benchmark's, and nothing was written to hand in."
        )
    named = ", ".join(content["tasks"])
    missing = "; ".join(f"{name}: {reason}" for name, reason in content["left_out"].items())
    yield (
        f"The means are over {several(len(content['tasks']), 'task')}: {named}."
        + (f" MISSING from them: {missing}." if missing else "")
        + " A task with several scores counts once, by their mean. – where a row lacks one of them."
    )
    yield "Best on validation: " + ", ".join(f"{task} {method}" for task, method in content["chosen"].items()) + "."
    yield from _failures(content)
    yield from _disagreement(content["rows"])
    for task, described in content["tasks"].items():
        if described["broken_rows"]:
            yield f"{task}: {described['broken_rows']:,} rows that the official files themselves cut off are left out."
        if described["note"]:
            yield f"{task}: {described['note']}."
    yield from (f"{row['name']}: {row['source']}." for row in content["published"])
    yield from _handed_in(content["submission"])


def _failures(content: Content) -> Iterator[str]:
    lost = [
        f"{row['method']} on {task} {failed} of {content['seeds']}"
        for row in content["rows"][1:]
        for task, failed in row["n_failed"].items()
        if failed and row["status"][task] == "ok"
    ]
    if lost:
        yield f"* Runs that failed, which count as the majority class: {', '.join(lost)}."


def _disagreement(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    whole = [row for row in rows[1:] if row.get("geometric_mean") is not None]
    if not whole:
        return
    by_mean = max(whole, key=lambda row: row["mean"]["mean"])["method"]
    by_geometric = max(whole, key=lambda row: row["geometric_mean"])["method"]
    if by_mean != by_geometric:
        yield f"The two means disagree: {by_mean} leads by the mean, {by_geometric} by the geometric mean."


def _handed_in(submission: Mapping[str, Any] | None) -> Iterator[str]:
    if submission is None:
        return
    if submission["files"]:
        yield (
            f"To hand in: {', '.join(submission['files'])} in {submission['folder']}, answered by what is best on "
            "validation, first seed."
        )
    if submission["missing"]:
        yield f"Not to hand in, since the file without labels is missing: {', '.join(submission['missing'])}."
