"""Print the section *Results* of the README from `results/benchmark.json`: `python table.py`."""

from __future__ import annotations

import json
from pathlib import Path

from graftwork.benchmark.suite_table import remarks, table_lines

PATH = Path(__file__).parent / "results" / "benchmark.json"


def table() -> str:
    """Format the table as `graft benchmark` prints it, with an explanation."""
    if not PATH.is_file():
        return "Not measured yet."
    content = json.loads(PATH.read_text(encoding="utf-8"))
    return "\n".join(["```", *table_lines(content), "```", "", *(f"- {text}" for text in remarks(content))])


if __name__ == "__main__":
    print(table())
