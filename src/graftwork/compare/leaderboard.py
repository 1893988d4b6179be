"""`compare`: a leaderboard of methods x seeds on one task with baselines, spreads and price tags."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

from graftwork.compare.averaged_runs import average_runs
from graftwork.compare.deciding_words import with_deciding_words
from graftwork.compare.grid import Grid, MethodRuns, Runner, real_cost, run_all
from graftwork.compare.leaderboard_data import HEADLINE_DRAWS, Findings, RowRuns, leaderboard
from graftwork.compare.leaderboard_display import Leaderboard
from graftwork.compare.leaderboard_report import write_report
from graftwork.compare.listeners import Listener
from graftwork.compare.live import watched
from graftwork.compare.majority_floor import MAJORITY, floor_of
from graftwork.compare.mistakes import mistakes_content
from graftwork.compare.run_times import Countdown
from graftwork.compare.search import Search
from graftwork.compare.shipped import compressed_modules, require_shippable
from graftwork.compare.shortcuts import shortcuts
from graftwork.compare.workers import RunOrder, crew_of, with_threads
from graftwork.compare.written_report import written_content
from graftwork.core.configured_methods import ConfiguredMethod, configured, of_a, parse_method
from graftwork.core.in_memory import beside
from graftwork.core.meter import Cost
from graftwork.core.method import unfit
from graftwork.core.metric import signatures
from graftwork.core.part_settings import BY, split_words
from graftwork.core.progress import Progress
from graftwork.core.run import RunResult
from graftwork.core.task import Task
from graftwork.decision.choice import WORTH, parse_worth
from graftwork.decision.decision_json import content_of
from graftwork.decision.traits import TUNED
from graftwork.errors import ConfigError
from graftwork.io.files import finite, require_writable, write_json
from graftwork.machine.environment import environment
from graftwork.registry import metrics
from graftwork.run.session import Session, open_session
from graftwork.run.sessions import Sessions
from graftwork.run.settings import GivenSettings, RunSettings, takes_settings
from graftwork.train.seeds import DRAWN, SOURCES, chosen_sources
from graftwork.train.wrapper_method import drawn_by

SEEDS = 5
FROM_RANDOM = "full"  # method that `no_transfer` runs on random weights if no method is named
EARLY_DRAWS = 1_000  # bootstrap draws of an unfinished board
EARLY_SHARE = 100  # an unfinished board is rewritten after this multiple of the time that writing takes


@takes_settings
def compare(
    task: Any,
    *,
    methods: str | Sequence[str] | None = None,
    seeds: int = SEEDS,
    vary: str | Sequence[str] | None = None,
    worth: float = 100 * WORTH,
    exhaustive: bool = False,
    out: str | Path | None = None,
    jobs: int | None = None,
    no_transfer: bool = False,
    ship: bool = False,
    examples: bool = True,
    progress: Progress | None = None,
    watch: Listener | None = None,
    **given: Unpack[GivenSettings],
) -> Leaderboard:
    """Run methods on a task, choose the one to use, and estimate its expected shortfall to the best.

    `task` is a `Task` or what `Task.from_data` takes, `methods` by default those with `BOARD` entries that fit it.
    Baselines run first; then the run that is worth most, with at most `seeds` per method, until no run is worth its
    time (`compare/search.py`). `exhaustive` runs every method with every seed. The choice is the cheapest method to
    train whose expected shortfall to the best is at most `worth` points of the headline metric. It is made on
    validation, so that its test score has no selection bias.

    A seed determines initialisation, data order and augmentation together, which estimates the spread best (Bouthillier
    et al. 2021, arXiv:2103.03098); for prompts also templates and shots. `vary` names some of "init", "order",
    "augmentation", "templates" and "shots": the others are then drawn as with seed 0, and the spread is of these alone.

    `jobs` runs are concurrent, each with its share of the threads (default: as many as there are threads, 4 GiB of
    memory for each, at most 8; 1 on a GPU); results equal those of single runs with that number of threads.
    `no_transfer` adds, on random weights, each of `methods` that uses a backbone (`full` if none is named).
    `ship` also compresses the chosen module and those on the frontier; the one to ship goes to `out`/shipped.
    With `examples` the page lists test rows with every method's prediction. `out` (default `boards/<task>`) receives
    `leaderboard.json` and `report.html`, first when a trained method has run. `watch` receives the plan and every
    standing; without `watch` and `progress` a notebook or terminal shows them.

    Raises `GraftworkError` for bad data or settings; a method whose runs fail is a row. A task file gives the task.
    """
    if seeds < 1:
        raise ConfigError("seeds must be at least 1", got=str(seeds))
    setup, fraction, chosen = RunSettings.of(given), parse_worth(worth), chosen_methods(methods, no_transfer)
    task = Task.from_data(task, folder=beside(setup.runs))
    drawn = tuple(source for source in DRAWN if any(source in drawn_by(item.method) for item in chosen))
    varied = chosen_sources(vary, drawn)
    folder = Path(out) if out is not None else Path("boards") / task.name
    with watched(progress, watch) as (progress, watch):
        session = open_session(task, chosen, setup, out=folder)
        fitting, left_out = _fitting(chosen, session, asked=methods is not None)
        session = with_threads(session, jobs if jobs is not None else _wanted_at_once(len(fitting) * seeds, session))
        recipe = replace(setup.recipe, varied=None if vary is None else varied)
        specs = [session.spec(item, recipe, 0) for item in fitting]  # raises for an invalid recipe before the first run
        _require_place(session, folder, ship)
        reading = [spec.id for item, spec in zip(fitting, specs, strict=True) if item.method.uses_backbone]
        with crew_of(Sessions(session), expected=sum(session.store.find(run) is None for run in reading)) as crew:
            page = _Page(session, folder, fraction, left_out, varied, (*SOURCES, *drawn), examples)
            grid = _grid(Runner(session, fitting, recipe, crew), seeds, fraction, exhaustive, page, progress, watch)
        content = page.complete(grid, watch) if ship else page.write(grid)
    return Leaderboard(content, folder, grid.reused, len(grid.runs) - grid.reused, Path(setup.runs))


def _require_place(session: Session, folder: Path, ship: bool) -> None:
    """Raise `GraftworkError` if the board, or the module to ship, can't be written to `folder`."""
    require_writable(folder)
    if ship:
        require_shippable(session, folder)


def choose_methods(words: str | Sequence[str] | None) -> list[ConfiguredMethod]:
    """Return the requested methods (one string: separated by commas), or all methods of a board.

    Raises `UnknownName`, or `ConfigError` for one named twice.
    """
    if words is None:
        return of_a("BOARD")
    chosen = [parse_method(word) for word in split_words(words) if word.strip()]
    require_each_once([item.label for item in chosen])
    return chosen


def require_each_once(labels: Sequence[str]) -> None:
    """Raise `ConfigError` for a method that is named twice, or if none is."""
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice or not labels:
        raise ConfigError(
            "a method is named twice" if twice else "no method is named",
            got=", ".join(twice),
            do="name each once: --methods linear_probe,full",
        )


def chosen_methods(words: str | Sequence[str] | None, no_transfer: bool) -> list[ConfiguredMethod]:
    """Return the methods of `choose_methods`, and with `no_transfer` those with a backbone again, on random weights.

    Raises like `choose_methods`, and `ConfigError` if no method uses a backbone.
    """
    chosen = choose_methods(words)
    if not no_transfer:
        return chosen
    below = [FROM_RANDOM] if words is None else [item.label for item in chosen if _starts_from_backbone(item)]
    if not below:
        raise ConfigError(
            "no method here uses a backbone, so none can start from random weights",
            do="name one that does, or leave --no-transfer out",
        )
    known = {item.label for item in chosen}
    added = [configured("no_transfer", {BY: label}) for label in below]
    return [*chosen, *(item for item in added if item.label not in known)]


def _starts_from_backbone(item: ConfiguredMethod) -> bool:
    return item.method.uses_backbone and BY not in item.config


def _fitting(
    chosen: Sequence[ConfiguredMethod], session: Session, asked: bool
) -> tuple[list[ConfiguredMethod], tuple[str, ...]]:
    """Return the methods that fit the task and the backbone, and a note on each that fits the task only.

    Raises `ConfigError` if an `asked` method does not fit.
    """
    task, card = session.dataset.task, session.backbone.card if session.backbone else None
    reasons = {item.label: unfit(item.method, task, card) for item in chosen}
    for label, reason in reasons.items():
        if reason and asked:
            raise ConfigError(f"method {label!r} can't be used here: {reason}", do="leave it out of --methods")
    told = [item.label for item in chosen if reasons[item.label] and not unfit(item.method, task, None)]
    left_out = tuple(f"{label} was left out: {reasons[label]}" for label in told)
    return [item for item in chosen if not reasons[item.label]], left_out


def _wanted_at_once(runs: int, session: Session) -> int | None:
    """Return the number of concurrent runs: 1 for a single run on a CPU, which then has all threads; None: as many as
    the machine allows."""
    return 1 if runs == 1 and session.numerics["device"] == "cpu" else None


def _grid(
    runner: Runner, seeds: int, worth: float, exhaustive: bool, page: _Page, progress: Progress, watch: Listener
) -> Grid:
    """Execute the runs, report progress, and average the runs of the chosen method. The remaining time is estimated
    only when a run ends, because reports during a run count in the run's time."""
    countdown, of = Countdown(runner.session.runs_at_once), {entry.item.label: entry for entry in runner.entries}

    def told(order: RunOrder, done: float, text: str) -> None:
        countdown.hear((order.label, order.seed), done, lambda: search.pace.seconds(of[order.label]))
        gone, left = countdown.read()
        progress(gone / max(1e-9, gone + left), f"{order.label} {order.stage}: {text}")
        watch.goes_on(f"{order.label} {order.stage}", gone, left)

    def ended(entry: MethodRuns) -> None:
        for run in entry.runs:
            countdown.end((entry.item.label, run.seed))
        countdown.plan(search.seconds_left())
        watch.stands(runner.standing, *countdown.read())
        page.write_in_time(runner.grid())

    search = Search(runner, seeds, worth, told, ended)
    outlook = search.outlook()
    countdown.plan(runner.session.runs_at_once * (outlook.most_seconds if exhaustive else outlook.likely_seconds))
    watch.planned(outlook, exhaustive)
    grid = run_all(runner, seeds, told, ended) if exhaustive else search.run()
    if not grid.standing.run_scores:
        return grid

    def averaging(order: RunOrder, done: float, text: str) -> None:
        watch.goes_on(f"{order.label}: {text}", *countdown.read())

    page.averaged = average_runs(runner, grid.standing.choice(worth).chosen, averaging)
    return runner.grid()


class _Page:
    """The files of a board, rewritten while runs finish."""

    def __init__(
        self,
        session: Session,
        folder: Path,
        worth: float,
        notes: tuple[str, ...],
        varied: tuple[str, ...],
        sources: tuple[str, ...],
        examples: bool = True,
    ):
        self.session, self.folder, self.worth, self.notes = session, folder, worth, notes
        self.varied, self.sources, self.examples = varied, sources, examples
        self.mistakes: Mapping[str, Any] | None = None  # `mistakes_content` of the finished board
        self.averaged: Mapping[str, Any] | None = None  # the mean of the chosen method's runs, once they are all there
        self.floor = floor_of(session.dataset)
        self._next = 0.0  # earliest time of the next writing, on the monotonic clock

    def write_in_time(self, grid: Grid) -> None:
        """Write the board if a tuned method has run and enough time has passed since the last writing."""
        began = time.monotonic()
        if began < self._next or not any(entry.arm.sort == TUNED for entry in grid.entries if entry.runs):
            return
        self.write(grid, draws=EARLY_DRAWS)
        self._next = began + EARLY_SHARE * (time.monotonic() - began)

    def write(self, grid: Grid, draws: int = HEADLINE_DRAWS) -> dict[str, Any]:
        """Write `leaderboard.json` and `report.html`; return the content of the former.

        `mistakes_content` is computed only for the finished board, recognised by its full number of draws.
        """
        rows = grid.rows(self.session)
        content = self._content(grid, rows, draws)
        if draws == HEADLINE_DRAWS:
            found = mistakes_content(self.session.dataset, rows, self.session.store.root, content, self.examples)
            self.mistakes = with_deciding_words(found, self.session, content)
        return self._written(content, rows)

    def complete(self, grid: Grid, watch: Listener) -> dict[str, Any]:
        """Write the board, then compress its modules, and write it again with them."""
        content = self.write(grid)
        more = {"shipped": compressed_modules(content, self.session, self.folder, watch)}
        return self._written(content | more, grid.rows(self.session))

    def _written(self, content: Mapping[str, Any], rows: Sequence[RowRuns]) -> dict[str, Any]:
        made: dict[str, Any] = finite(content)
        write_json(self.folder / "leaderboard.json", made)
        chosen = Leaderboard(made, self.folder, 0, 0, self.session.store.root).chosen
        command = chosen.command if chosen and chosen.method != MAJORITY else None
        receipts = [{"method": row.method} | asdict(run) for row in rows for run, _ in row.runs]
        write_report(made, receipts, self.folder / "report.html", self.mistakes, command)
        return made

    def _content(self, grid: Grid, rows: Sequence[RowRuns], draws: int) -> dict[str, Any]:
        session, task = self.session, self.session.dataset.task
        described = {"name": task.name, "data": session.dataset.digest} | task.question()
        described["rows"] = {name: len(split.examples) for name, split in session.dataset.splits.items()}
        decision = content_of(grid.standing, self.worth) | {"left": grid.left} if grid.standing.run_scores else None
        findings = Findings(
            data_report=session.dataset.report,
            search_costs=_search_costs(grid.runs),
            environment=environment()
            | dict(session.numerics)
            | {"runs_at_once": session.runs_at_once}
            | session.prices.as_json(),
            notes=self.notes,
            command=command_line(),
            floor=self.floor,
            varied=self.varied,
            sources=self.sources,
            decision=decision,
        )
        board = leaderboard(
            task=described,
            backbone=asdict(session.backbone.card) if session.backbone else None,
            rows=rows,
            metrics={name: metrics.get(name) for name in task.metrics},
            findings=findings,
            draws=draws,
        )
        texts = written_content(session.dataset, rows, session.store.root, task.metrics[0])
        signed = signatures(task.metrics, session.dataset.test.targets)
        more: dict[str, Any] = {"written": texts} if texts else {}
        more |= {"averaged": self.averaged} if self.averaged else {}
        more |= {"signatures": signed} if signed else {}
        quoted = [f"{name} has the signature {signature}" for name, signature in signed.items()]
        return board | {"notes": [*board["notes"], *shortcuts(board), *quoted]} | more


def command_line() -> str:
    """Return the user's command line, quoted for the shell; empty for calls from Python."""
    program = Path(sys.argv[0])
    ours = program.stem == "graft" or program.parts[-2:] == ("graftwork", "__main__.py")
    return shlex.join(["graft", *sys.argv[1:]]) if ours else ""


def _search_costs(runs: Sequence[RunResult]) -> dict[str, Cost]:
    """Return the real cost of all runs, and their time if each opened the backbone and shared nothing."""
    alone = sum((run.spent + run.shared + run.opening).wall_seconds for run in runs)
    return real_cost(runs) | {"separate_total_seconds": Cost(alone, "s", "meter")}
