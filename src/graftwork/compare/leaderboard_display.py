"""A leaderboard in Python: its rows, its advice as text, the table and the frontier in HTML, and a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftwork.compare.advice import advice, chosen_row, heading
from graftwork.compare.averaged_runs import kept_average
from graftwork.compare.frontier import DEFAULT_COST
from graftwork.compare.leaderboard_report import FOLDER
from graftwork.compare.leaderboard_table import shown_columns
from graftwork.compare.plots import frontier_chart
from graftwork.compare.sentences import points, price_tag, scored
from graftwork.core.in_memory import in_python
from graftwork.errors import StorageError
from graftwork.io.display import card, frame, table
from graftwork.io.files import read_json
from graftwork.module.inputs import asking
from graftwork.module.task_module import TaskModule

WIDTH = 150  # characters of the table in a notebook
UNIT_WORDS: Mapping[str, str] = {  # unit -> its word in names of costs; `scored_columns` appends a missing one
    "s": "seconds", "bytes": "bytes", "FLOP": "flops", "parameters": "parameters", "J": "joules", "g": "grams",
    "per second": "per_second",
}  # fmt: skip
Board = Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class MethodRow:
    """A row of a board. `content` is exactly its entry in `leaderboard.json`."""

    content: Mapping[str, Any]
    metric: str  # the board's headline metric
    runs: Path  # the folder of runs
    average: str | None = None  # the run that averages the weights of the others, if its module is to be used

    @property
    def method(self) -> str:
        """The label of the method."""
        return str(self.content["method"])

    @property
    def score(self) -> float:
        """The mean of the headline metric on test, a fraction."""
        return float(self.content["scores"][self.metric]["mean"])

    @property
    def module_folder(self) -> Path | None:
        """The folder of the task module: of the average, else of the first run that stored one; None if none did."""
        named = [run for run in (self.average, *self.content["runs"]) if run is not None]
        folders = (self.runs / run / "module" for run in named)
        return next((folder for folder in folders if folder.is_dir()), None)

    @property
    def command(self) -> str | None:
        """The command that predicts with this module: `graft predict FOLDER "a text"`; None if there is no module."""
        folder = self.module_folder
        return None if folder is None else asking(read_json(folder / "module.json")["roles"], folder)

    @property
    def module(self) -> TaskModule:
        """The task module in `module_folder`, loaded and self-tested. Raises `StorageError` if there is none."""
        if self.module_folder is None:
            raise StorageError(
                f"no run of {self.method} has left a task module", where=str(self.runs), do="train it again: gw.train"
            )
        return TaskModule.load(self.module_folder)

    def __repr__(self) -> str:
        return f"{self.method}: {self.metric} {points(self.content, self.metric)}, module {self.module_folder}"


@dataclass(frozen=True, repr=False)
class Leaderboard:
    """The result of `compare`. `content` is exactly the content of `leaderboard.json`."""

    content: Mapping[str, Any]
    folder: Path | None  # the folder of `leaderboard.json`
    reused: int  # runs that were already stored
    executed: int
    runs: Path = Path("runs")  # the folder of runs

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """The rows, best first."""
        return list(self.content["rows"])

    @property
    def answer(self) -> str:
        """The advice in sentences: the method to use, what it costs, and what is not settled."""
        return "\n".join(_advice(self.content))

    @property
    def best(self) -> MethodRow | None:
        """The row with the highest mean on test; None if no method finished. Use `chosen`: this one is picked on test,
        so that its score is likely to be too high."""
        metric = self.content["headline_metric"]
        rows = scored(self.content)
        return self._row(max(rows, key=lambda row: float(row["scores"][metric]["mean"]))) if rows else None

    @property
    def chosen(self) -> MethodRow | None:
        """The row of the method that the decision names, chosen on validation; None if it names none."""
        row = chosen_row(self.content)
        return None if row is None else self._row(row)

    def _row(self, row: Mapping[str, Any]) -> MethodRow:
        found = kept_average(self.content)
        average = found["run"] if found and found["of"] == row["method"] else None
        return MethodRow(row, self.content["headline_metric"], self.runs, average)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: a row per method, with rank, status, numbers of runs, every metric's mean, 95 %
        interval and sd (fractions), and every cost, its unit in the name. Raises `MissingExtra` without pandas."""
        rows = self.content["rows"]
        return frame([
            {"method": row["method"], "rank": rank if row["scores"] else None, "status": row["status"],
             "runs": row["n_seeds"], "failed": row["n_failed"]} | scored_columns(row, rows)
            for rank, row in enumerate(rows, start=1)
        ])  # fmt: skip

    def __repr__(self) -> str:
        return _text(self.content, self.folder, self._module())

    def _repr_html_(self) -> str:
        return _html(self.content, self.folder, self._module())

    def _module(self) -> str | None:
        folder = self.chosen.module_folder if self.chosen else None
        return None if folder is None else str(folder)


def _advice(board: Board) -> list[str]:
    """Return the advice, with command-line options written as Python arguments."""
    return [in_python(line) for line in advice(board)]


def _text(board: Board, folder: Path | None, chosen: str | None) -> str:
    """Return the heading, the advice, the scores of the best three methods, and the folder of the board."""
    metric, rows = board["headline_metric"], scored(board)
    best = ", ".join(f"{row['method']} {100 * row['scores'][metric]['mean']:.1f}" for row in rows[:3])
    lines = [heading(board), *(f"  {line}" for line in _advice(board)[:2])]
    lines += [f"  On test: {best}{f'; {len(rows)} methods in all' if len(rows) > 3 else ''}."] if rows else []
    return "\n".join([*lines, *_place(board, folder, chosen)])


def _place(board: Board, folder: Path | None, chosen: str | None) -> list[str]:
    told = [f"board.chosen.module is {chosen}"] if chosen else []
    return [f"  {', '.join([f'In {folder}', 'report.html shows it all', *told])}."] if folder else []


def _html(board: Board, folder: Path | None, chosen: str | None) -> str:
    """Return the advice, the table and the frontier as a card."""
    columns, _ = shown_columns(board, WIDTH)
    rows = [[cells[at] for _, cells in columns] for at in range(1, len(board["rows"]) + 1)]
    left = [at for at, (column, _) in enumerate(columns) if column.left or not at]
    blocks = [table([cells[0] for _, cells in columns], rows, left)]
    if any(DEFAULT_COST in row["costs"] for row in scored(board)):
        blocks.append(f'<div class="chart">{frontier_chart(board, (), DEFAULT_COST)["svg"]}</div>')
    marks = "> use it; * no other method is both better and cheaper to train; ± sd over seeds, [95 % interval]"
    about = " · ".join([marks, *(line.strip() for line in _place(board, folder, chosen))])
    return card(heading(board), _advice(board), *blocks, about=about, style=chart_css())


def chart_css() -> str:
    """Return the rules for charts of the report's style sheet, limited to the inside of a card."""
    rules = (FOLDER / "report.css").read_text(encoding="utf-8")
    return "".join(f".graftwork {line}" for line in rules.splitlines() if line.startswith(".chart"))


def scored_columns(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of one of these rows: each metric's mean, interval and sd, and each cost with its unit."""
    told: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in rows for name in one["scores"]):
        score = row["scores"].get(name, {})
        told |= {f"{name}_{part}": score.get(part) for part in ("mean", "low", "high", "sd")}
    for name in price_tag(rows):
        cost = row["costs"].get(name, {"value": None, "unit": ""})
        word = UNIT_WORDS.get(cost["unit"], cost["unit"])
        told[name if not word or word in name else f"{name}_{word}"] = cost["value"]
    return told
