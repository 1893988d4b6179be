"""Compressed modules of a finished board: the price of a prediction by each, and which of them to ship.

The method is already chosen. The module of one of its runs, and those of the next best methods on a frontier, are
compressed by the rungs of `graft compress` that need no training; every kept one is a row of the board.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftwork.compare.averaged_runs import with_average
from graftwork.compare.frontier import frontier, points
from graftwork.compare.leaderboard_data import ROUNDING
from graftwork.compare.listeners import Listener
from graftwork.core.meter import Stopwatch
from graftwork.core.progress import silent
from graftwork.core.task import Dataset
from graftwork.errors import ConfigError, GraftworkError, StorageError
from graftwork.io.files import storage_errors
from graftwork.module.task_module import TaskModule
from graftwork.run.session import Session
from graftwork.ship.compress import describe, ladder, workplace
from graftwork.ship.compressed_costs import compressed_costs
from graftwork.ship.compression import CompressionData
from graftwork.ship.rung_measure import evidence, latency_ratio, rows_needed, stored_with_backbone
from graftwork.ship.rung_search import FASTER, RungSearch, RungTried
from graftwork.ship.unwrapped import unwrapped

RUNGS = ("merge", "int8")  # rungs without training; a smaller vocabulary makes predictions slower, not faster
MOST = 3  # modules that are compressed, at most
FOLDER = "shipped"  # in the board's folder
BY = "predict_per_second"

Board = Mapping[str, Any]
Row = dict[str, Any]


def require_shippable(session: Session, folder: Path) -> None:
    """Raise `ConfigError` on a GPU, and `StorageError` if `folder/shipped` is something other than a task module."""
    if session.numerics["device"] != "cpu":
        raise ConfigError(
            "--ship compresses modules for a processor, and these runs are timed on a GPU",
            got=str(session.numerics["device"]),
            do="compare with --device cpu, or compress the module afterwards: graft compress MODULE DIR",
        )
    target = folder / FOLDER
    if (target.exists() or target.is_symlink()) and not (target / "module.json").is_file():
        raise StorageError(
            "this is where the compressed module goes, and it is something else",
            where=str(target),
            do="move it, or name another folder: --out DIR",
        )


def compressed_modules(board: Board, session: Session, folder: Path, watch: Listener) -> dict[str, Any]:
    """Return the compressed modules of a board as JSON, and write the one to ship to `folder/shipped`.

    It is the fastest compressed module of the chosen method whose loss on validation is shown to be at most the board's
    `worth`. Without one, `chosen` and `module` are None, and an earlier folder is removed. Raises `StorageError`.
    """
    clock, dataset, target = Stopwatch(), session.dataset, folder / FOLDER
    decision = board["decision"] or {"chosen": None, "worth": 0.0}
    found = _ShippedModules(decision["worth"], decision["chosen"])
    with workplace(target) as work:
        for row in _candidates(board):
            if len(found.originals) == MOST:
                break
            watch.goes_on(f"compressing {row['method']}", clock.read().wall_seconds, 0.0)
            found.add(row, board, session, work)
        best = found.best()
        if best is not None:
            original, made = found.modules[best["method"]]
            report = {name: best[name] for name in ("loss", "loss_at_most", "bytes")}
            describe(original, made, dataset, {"kept": best["rungs"], **report}, best["costs"])
        with storage_errors(target):
            if target.exists():
                target.rename(work / "before")
            if best is not None:
                made.folder.rename(target)
    spent, allowed = clock.read(), decision["worth"]
    return {
        "worth": allowed,
        "validation_rows": len(dataset.validation.examples),
        "rows_needed": rows_needed(allowed) if allowed else None,
        "originals": found.originals,
        "rows": found.rows,
        "left_out": found.left_out,
        "frontier_cost": BY,
        "frontier": frontier(points([*board["rows"], *found.rows], board["headline_metric"], BY)),
        "chosen": best["method"] if best else None,
        "module": str(target) if best else None,
        "price": {"wall_seconds": spent.wall_seconds, "cpu_seconds": spent.cpu_seconds},
    }


def _candidates(board: Board) -> list[Mapping[str, Any]]:
    """Return the row of the chosen method, then those on the frontier of training or of predictions, best first."""
    chosen = (board["decision"] or {}).get("chosen")
    ahead = {*board["frontier"], *frontier(points(board["rows"], board["headline_metric"], BY))}
    rows = [row for row in board["rows"] if row["status"] == "ok" and row["method"] in ahead | {chosen}]
    return sorted(rows, key=lambda row: bool(row["method"] != chosen))


class _ShippedModules:
    """The compressed modules found so far."""

    def __init__(self, worth: float, chosen: str | None):
        self.worth, self.chosen = worth, chosen
        self.rows: list[Row] = []
        self.originals: list[Row] = []
        self.left_out: list[tuple[str, str]] = []
        self.modules: dict[
            str, tuple[TaskModule, TaskModule]
        ] = {}  # of the chosen method: label -> original, compressed

    def best(self) -> Row | None:
        """Return the fastest row of the chosen method whose loss is shown to be allowed, or None."""
        able = [row for row in self.rows if row["of"] == self.chosen and row["shown"]]
        return max(able, key=lambda row: float(row["speed_ratio"]), default=None)

    def add(self, row: Mapping[str, Any], board: Board, session: Session, work: Path) -> None:
        """Compress the module of a method's average or of one of its runs, or record why not. Raises `StorageError`."""
        row = with_average(row, board)
        folders = [session.store.root / run / "module" for run in row["runs"]]
        stored = next((folder for folder in folders if folder.is_dir()), None)
        if stored is None:
            self.left_out.append((row["method"], "none of its runs has a task module"))
            return
        try:
            opened = unwrapped(TaskModule.load(stored, device="cpu"))
        except GraftworkError as error:
            self.left_out.append((row["method"], error.what))
            return
        if opened.backbone is None:
            self.left_out.append((row["method"], "it uses no network"))
            return
        rungs = ladder(RUNGS)
        reasons = [compression.unfit(opened) for _, compression in rungs]
        if all(reasons):
            self.left_out.append((row["method"], reasons[0]))
            return
        dataset, place = session.dataset, work / str(len(self.originals))
        with storage_errors(place):
            place.mkdir()
        data = CompressionData(dataset.train, dataset.validation)
        search, clock = RungSearch(opened, data, math.inf, "speed", 0, place), Stopwatch()
        before, kept = (
            evidence(dataset.task, dataset.validation, search.before)[0].score,
            _KeptRungs(row, board, dataset),
        )
        for label, compression in rungs:
            search.climb(label, compression, silent)
            last = search.tried[-1]
            if last.kept:
                kept = kept.climbed(label, compression.EXACT)
                if search.stage.pace.ratio < FASTER:
                    continue  # a row is faster than its method
                made = kept.row(search, last, clock.read().wall_seconds, self.worth)
                self.rows.append(made)
                self.modules[made["method"]] = (opened, search.stage.module)
        if row["method"] != self.chosen:
            self.modules = {label: pair for label, pair in self.modules.items() if pair[0] is not opened}
            shutil.rmtree(place, ignore_errors=True)
        self.originals.append({
            "method": row["method"], "run": opened.description["run"], "validation": before,
            "bytes": search.original_bytes, "tried": [one.as_json() for one in search.tried],
        })  # fmt: skip


@dataclass(frozen=True)
class _KeptRungs:
    """The rungs that a module has climbed."""

    of: Mapping[str, Any]  # the row of its method
    board: Board
    dataset: Dataset
    rungs: tuple[str, ...] = ()
    exact: bool = True  # no rung so far changes an answer

    def climbed(self, rung: str, exact: bool) -> _KeptRungs:
        """Return a copy with one more rung."""
        return _KeptRungs(self.of, self.board, self.dataset, (*self.rungs, rung), self.exact and exact)

    def row(self, search: RungSearch, last: RungTried, seconds: float, worth: float) -> Row:
        """Return the row of the module that the search has reached, of the same form as the rows of methods."""
        assert last.loss is not None and last.stage is not None
        headline, of, made = self.board["headline_metric"], self.of, last.stage.module
        scores = self._scores(made)
        latency = latency_ratio(search.original, made, self.dataset.validation.examples)
        costs = compressed_costs(of["costs"], seconds, stored_with_backbone(made), last.stage.pace.ratio, latency)
        most = 0.0 if self.exact else last.loss.most
        lowest = self.board["majority"]
        return {
            "method": " > ".join((of["method"], *self.rungs)),
            "of": of["method"],
            "rungs": list(self.rungs),
            "config": dict(of["config"]),
            "status": "ok",
            "n_seeds": 1,
            "n_failed": 0,
            "scores": scores,
            "counted": scores[headline]["mean"],
            "costs": costs,
            "below_majority": scores[headline]["mean"] < lowest - ROUNDING,
            "runs": [search.original.description["run"]],
            "validation": last.loss.score,
            "loss": last.loss.mean,
            "loss_at_most": most,
            "exact": self.exact,
            "shown": self.exact or last.loss.within(worth),
            "speed_ratio": last.stage.pace.ratio,
            "latency_ratio": latency,
            "bytes": last.stage.bytes,
            "seconds": seconds,
        }

    def _scores(self, made: TaskModule) -> dict[str, dict[str, float]]:
        """Return metric -> score on test with its 95 % interval over examples."""
        test, found = self.dataset.test, {}
        logits = made.fitted.logits(test.examples)
        for metric in self.dataset.task.metrics:
            one = evidence(self.dataset.task, test, logits, by=metric)[0]
            low, high = one.interval
            found[metric] = {"mean": one.score, "sd": 0.0, "low": low, "high": high}
        return found
