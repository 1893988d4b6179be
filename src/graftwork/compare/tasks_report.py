"""The page of a board over several tasks: one self-contained HTML file in the style of the report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from graftwork.compare.leaderboard_report import css, pages
from graftwork.compare.tasks_table import (
    enough_lines,
    headings,
    price,
    score,
    spent_line,
    summary_cells,
    verdicts,
)
from graftwork.io.files import write_text


def write_tasks_report(content: Mapping[str, Any], path: Path) -> None:
    """Write the page to `path` atomically. Raises `StorageError` if it can't be written."""
    write_text(path, render_tasks(content, path.parent))


def render_tasks(content: Mapping[str, Any], folder: Path) -> str:
    """Return the page's HTML, with links from `folder` to the boards. All text from data is escaped."""
    counted = content["counted"]
    return (
        pages()
        .get_template("tasks.html.j2")
        .render(
            content=content,
            title=content["name"],
            headings=headings(content),
            summary=[{"cells": summary_cells(row), "whole": row["mean"] is not None} for row in content["rows"]],
            scores=[
                {
                    "method": row["method"],
                    "cells": [{"text": score(row, task), "best": task in row["best_on"]} for task in counted],
                }
                for row in content["rows"]
            ],
            stored=[
                {"method": row["method"], "cells": [price(row, "stored_bytes", task) for task in counted]}
                for row in content["rows"]
            ],
            tasks=[task | {"page": _page(task, folder)} for task in content["tasks"]],
            verdicts=verdicts(content),
            enough=enough_lines(content),
            spent=spent_line(content),
            css=css(),
        )
    )


def _page(task: Mapping[str, Any], folder: Path) -> str:
    """Return the path of a task's page relative to `folder`; empty if it has none."""
    board = task.get("board")
    return "" if not board else quote(os.path.relpath(Path(board) / "report.html", folder))
