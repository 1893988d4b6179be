"""The rows of a cost calculation, each with its price tag: methods of a board (a comparison), a module, or a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftwork.core.configured_methods import configured_from
from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import read_json
from graftwork.module.exported_folder import is_exported, read_export
from graftwork.module.module_files import read_description
from graftwork.module.module_place import has_module, module_folder
from graftwork.ship.compressed_costs import with_search_cost

BOARD, RESULT = "leaderboard.json", "result.json"
ROUNDING = 1e-9  # tolerance when a score is compared with that of the majority class


@dataclass(frozen=True)
class PricedRow:
    """A method or module to be priced, with the price tag (the costs) of one run."""

    name: str
    costs: Mapping[str, Mapping[str, Any]]  # cost -> value, unit, grade
    task: str = ""  # its name
    metric: str = ""
    score: float | None = None  # a fraction, on test
    above_floor: bool = True  # scores above the majority class, as far as a board tells
    runs: int = 1  # runs of it on the board, failed ones too: all are charged as its training
    method: Mapping[str, Any] = field(default_factory=dict)  # its name and hyper-parameters

    @property
    def pretrained(self) -> bool:
        """Return whether it uses a pretrained network, and so bears a share of the cost of pre-training."""
        made = configured_from(self.method).method
        return made.uses_backbone and not getattr(made, "FRESH_WEIGHTS", False)


@dataclass(frozen=True)
class PricedSource:
    """The content of one folder: its rows, those that could not be priced and why, and the search behind them."""

    rows: tuple[PricedRow, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # name, reason
    search_seconds: float | None = None  # wall time of the whole comparison; None: unknown, or no board
    chosen: str = ""  # method that the board says to use


def priced_source(folder: Path) -> PricedSource:
    """Read a board, a run or a task module.

    Raises `StorageError` if the folder is none of these, `ConfigError` if nothing in it has a price tag.
    """
    try:
        found = _read(folder)
    except (KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            "its files are damaged",
            where=str(folder),
            got=f"{type(error).__name__}: {error}",
            do="restore it from a copy, or make it again",
        ) from error
    if not found.rows:
        told = "; ".join(f"{name}: {reason}" for name, reason in found.left_out)
        raise ConfigError(
            "no price tag",
            where=str(folder),
            got=told,
            expected="the times of training and of predictions",
            do="train it with graft train or graft compare, which measure them",
        )
    return found


def _read(folder: Path) -> PricedSource:
    if (folder / BOARD).is_file():
        return _of_board(read_json(folder / BOARD))
    if not ((folder / RESULT).is_file() or (folder / "module.json").is_file() or is_exported(folder)):
        raise StorageError(
            "nothing that has a price",
            where=str(folder),
            expected=f"a folder with {BOARD}, {RESULT} or module.json",
            do="name a board, a run or a task module",
        )
    return _of_one(folder)


def _of_board(board: Mapping[str, Any]) -> PricedSource:
    metric = board["headline_metric"]
    floor = _floor(board, metric) + ROUNDING
    rows, left_out = [], []
    shipped = board.get("shipped") or {"rows": (), "chosen": None}
    for row in [*board["rows"], *_compressed(board["rows"], shipped["rows"])]:
        reason = "no run of it finished" if row["status"] != "ok" else _lacking(row["costs"])
        if reason:
            left_out.append((row["method"], reason))
            continue
        score = row["scores"].get(metric)
        rows.append(
            PricedRow(
                row["method"],
                row["costs"],
                board["task"]["name"],
                metric,
                None if score is None else score["mean"],
                above_floor=score is None or score["mean"] > floor,
                runs=row["n_seeds"] + row["n_failed"],
                method=row["config"],
            )
        )
    spent = board.get("search_costs", {}).get("wall_seconds", {}).get("value")
    chosen = shipped["chosen"] or (board.get("decision") or {}).get("chosen") or ""
    return PricedSource(tuple(rows), tuple(left_out), spent, str(chosen))


def _compressed(methods: Sequence[Mapping[str, Any]], shipped: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of compressed modules, charged for all runs of their methods.

    A row's costs are multiplied by its runs, so the seconds of the one compression are divided by them.
    """
    made = {row["method"]: row["n_seeds"] + row["n_failed"] for row in methods}
    for row in shipped:
        runs = made[row["of"]]
        costs = with_search_cost(row["costs"], row["seconds"] / runs - row["seconds"])
        yield {**row, "costs": costs, "n_failed": runs - row["n_seeds"]}


def _floor(board: Mapping[str, Any], metric: str) -> float:
    """Return the score of the majority class, which older boards have only in the row of that method."""
    rows = [row["scores"][metric]["mean"] for row in board["rows"] if row["method"] == "majority" and row["scores"]]
    known = [*rows, board.get("majority")]
    return float(next((score for score in known if score is not None), -math.inf))


def _of_one(folder: Path) -> PricedSource:
    """Return the row of a module, or of a run, whose module describes it."""
    is_run = (folder / RESULT).is_file()
    module: Mapping[str, Any] = {}
    if not is_run or has_module(folder):
        module = read_export(folder) if is_exported(folder) else read_description(module_folder(folder))
    result = read_json(folder / RESULT) if is_run else module
    method = (read_json(folder / "spec.json") if is_run else module)["method"]
    costs, scores, name = result.get("costs", {}), result["scores"], method["name"]
    if "compression" in result:
        made = result["compression"]
        name, method = " > ".join((made["of"]["method"]["name"], *made["kept"])), made["of"]["method"]
    elif "export" in module:
        name += f" > {module['export']['to']}" + " int8" * (module["precision"] == "int8")
    metric, score = next(iter(scores.items()), ("", None))
    if reason := _lacking(costs):
        return PricedSource((), ((name, reason),))
    return PricedSource((PricedRow(name, costs, module.get("task", {}).get("name", ""), metric, score, method=method),))


def _lacking(costs: Mapping[str, Any]) -> str:
    """Return what of a price tag is missing for a price at scale, or an empty string."""
    needed = {"total_seconds": "the time of training", "predict_per_second": "the speed of predictions"}
    missing = [name for cost, name in needed.items() if costs.get(cost, {}).get("value") is None]
    return f"{' and '.join(missing)} was not measured" if missing else ""
