"""The execution of a grid's runs: sequentially in this process, or concurrently in several worker processes.

A small batch uses several cores poorly: two threads of one run do about 1.5 times the work of one thread, two runs of
one thread each do twice (docs/log.md). Concurrent runs divide the threads and share nothing else, so each is bit for
bit equal to a single run with that many threads, and has its own price.
"""

from __future__ import annotations

import json
import logging
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Dataset
from graftwork.errors import ConfigError, GraftworkError
from graftwork.machine.environment import usable_memory_bytes
from graftwork.registry import registries
from graftwork.run.execute import SECONDS_BETWEEN_LOOKS, execute_if_free
from graftwork.run.price_tag import with_prices
from graftwork.run.session import Session
from graftwork.run.sessions import Sessions
from graftwork.run.store import read_result
from graftwork.run.worker import Opening

BYTES_PER_RUN = 4 << 30  # memory required for every concurrent run
MOST_AT_ONCE = 8
SECONDS_TO_END = 60  # time for a worker to finish its current step and its checkpoint
Report = Callable[[int, float, str], None]  # index of the order, finished fraction, activity
log = logging.getLogger("graftwork")

Finished = tuple[int, RunResult, bool]  # index of the order, its result, True if it was already stored


@dataclass(frozen=True)
class RunOrder:
    """A run to execute."""

    label: str  # label of the method on the board
    item: ConfiguredMethod
    recipe: Recipe
    seed: int
    stage: str  # for messages: "seed 0"
    session: int = 0  # index of the session
    drawn: Dataset | None = None  # a draw of the rows; None: all rows
    refused: tuple[()] | tuple[int | None] = ()  # (stamp,) of `RunStore.refused`, if another process executes the run

    @property
    def like(self) -> tuple[str, int]:
        """The key of runs that take about as long: the method and the number of rows."""
        return self.label, len(self.drawn.train.examples) if self.drawn else 0

    def line(self) -> dict[str, Any]:
        """Return the order as JSON, for a worker."""
        asked = {
            "method": dict(self.item.config),
            "given": sorted(self.item.given),
            "recipe": asdict(self.recipe),
            "seed": self.seed,
            "session": self.session,
            "draw": self.drawn.report["draw"] if self.drawn else None,
        }
        return asked | ({"refused": self.refused[0]} if self.refused else {})


# Executes the orders in any sequence. The consumer of a result may append further orders, which are also executed.
Crew = Callable[[Sequence[RunOrder], Report], Iterator[Finished]]


def one_by_one(sessions: Sessions, orders: Sequence[RunOrder], report: Report) -> Iterator[Finished]:
    """Execute the orders in this process; a run that another process executes is retried later."""
    taken, held = 0, list[int]()
    while taken < len(orders) or held:
        if taken < len(orders):
            place, taken = taken, taken + 1
        else:
            place = held.pop(0)
            time.sleep(SECONDS_BETWEEN_LOOKS)
        order = orders[place]
        report(place, 0.0, "starting")
        session = sessions.of(order.session, order.drawn)
        done = execute_if_free(session, order.item, order.recipe, order.seed, partial(report, place))
        if done is None:
            held.append(place)
        else:
            yield place, *done


def at_once(jobs: int | None, threads: int, device: str) -> int:
    """Return the number of concurrent runs: `jobs`, or as many as threads and memory allow; one on an accelerator.

    Raises `ConfigError` for fewer than one, or more than there are threads.
    """
    if jobs is None:
        carried = (usable_memory_bytes() or 0) // BYTES_PER_RUN
        return max(1, min(threads, carried, MOST_AT_ONCE)) if device == "cpu" else 1
    if not 1 <= jobs <= threads:
        raise ConfigError("jobs must be between 1 and the number of threads", got=str(jobs), expected=f"1 … {threads}")
    return jobs


def with_threads(session: Session, jobs: int | None) -> Session:
    """Return the session with the number of threads of each concurrent run.

    If this process, such as a notebook, has registered parts that other processes don't know, runs are sequential in
    it; raises `ConfigError` if more jobs are requested then.
    """
    count = runs_at_once(jobs, session.numerics)
    return replace(
        session, numerics={**session.numerics, "threads": session.numerics["threads"] // count}, runs_at_once=count
    )


def runs_at_once(jobs: int | None, numerics: Mapping[str, Any]) -> int:
    """Return the number of concurrent runs. Raises `ConfigError` if `jobs` is more than possible."""
    here_only = sorted(name for registry in registries for name in registry.here_only())
    if here_only and (jobs or 1) > 1:
        raise ConfigError(
            "runs side by side are processes, and these do not know the parts that this one has registered",
            got=f"jobs {jobs}; {', '.join(here_only)}",
            do="leave jobs out, or install the parts as a package with entry points",
        )
    return at_once(1 if here_only else jobs, numerics["threads"], numerics["device"])


@contextmanager
def crew_of(sessions: Sessions, expected: int = 0) -> Iterator[Crew]:
    """Yield the crew: workers for concurrent runs, which end with this context, or else this process.

    Workers for the `expected` runs start at once, so that they import their libraries while this process prepares.
    """
    if sessions.whole[0].runs_at_once == 1:
        yield partial(one_by_one, sessions)
        return
    crew = Workers(sessions)
    try:
        crew.start(expected)
        yield crew
    except BaseException:
        crew.end(interrupt=True)
        raise
    crew.end()


class Workers:
    """A `Crew` of worker processes, started when there is work for them."""

    def __init__(self, sessions: Sessions):
        self.sessions, self.opening = sessions, Opening.of(sessions)
        self.store, self.prices = sessions.whole[0].store, sessions.whole[0].prices
        self._heard: queue.SimpleQueue[tuple[_Worker, str | None]] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._seconds: dict[tuple[str, int], float] = {}  # `RunOrder.like` -> seconds of the last such run
        self._held: list[tuple[int, RunOrder]] = []  # orders that other processes execute
        self._again = math.inf  # time to retry the held orders, on the monotonic clock
        self._warned: set[str] = set()

    def start(self, runs: int) -> None:
        """Start the processes that are missing for so many runs; at most as many as there are concurrent runs."""
        while len(self._workers) < min(runs, self.opening.runs_at_once):
            self._workers.append(_Worker(self.opening, self._heard))

    def end(self, interrupt: bool = False) -> None:
        """End the processes; with `interrupt`, stop their runs, which keep their checkpoints.

        A further interrupt during the wait kills them at once.
        """
        for worker in self._workers if interrupt else ():
            worker.process.terminate()
        try:
            for worker in self._workers:
                worker.end()
        except BaseException:
            for worker in self._workers:
                worker.process.kill()
            raise

    def __call__(self, orders: Sequence[RunOrder], report: Report) -> Iterator[Finished]:
        """Yield stored runs first, the others as they end. Raises `GraftworkError` if a worker could not continue."""
        waiting: list[tuple[int, RunOrder]] = []
        taken = 0
        while True:
            while taken < len(orders):
                place, order, taken = taken, orders[taken], taken + 1
                session = self.sessions.of(order.session, order.drawn)
                known = self.store.find(session.spec(order.item, order.recipe, order.seed).id)
                if known is not None:
                    yield place, with_prices(known, self.prices), True
                else:
                    waiting.append((place, order))
            if not (waiting or self._held or any(worker.order is not None for worker in self._workers)):
                return
            self._hand_out(waiting)
            finished = self._hear(report)
            if finished is not None:
                yield finished
            if time.monotonic() >= self._again:
                waiting[:0], self._held = self._held, []

    def _hand_out(self, waiting: list[tuple[int, RunOrder]]) -> None:
        """Replace dead idle workers (an order for one would end the comparison), then give orders to idle workers."""
        for worker in [one for one in self._workers if one.order is None and one.process.poll() is not None]:
            self._dismiss(worker)
        self.start(sum(worker.order is not None for worker in self._workers) + len(waiting))
        for worker in self._workers:
            if waiting and worker.order is None:
                worker.take(*self._next(waiting))

    def _dismiss(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.end()

    def _next(self, waiting: list[tuple[int, RunOrder]]) -> tuple[int, RunOrder]:
        """Remove and return the next seed's order that takes longest or is unknown: as the last, it would run alone."""
        seed = waiting[0][1].seed
        of_seed = [item for item in waiting if item[1].seed == seed]
        longest = max(of_seed, key=lambda item: self._seconds.get(item[1].like, math.inf))
        waiting.remove(longest)
        return longest

    def _hear(self, report: Report) -> Finished | None:
        """Process the next message of a worker; return its result, or None for any other message."""
        try:
            worker, line = self._heard.get(timeout=SECONDS_BETWEEN_LOOKS if self._held else None)
        except queue.Empty:
            return None
        if worker.order is None:
            if line is None and worker in self._workers:  # killed while idle: another one will be started
                self._dismiss(worker)
            return None
        if line is None:
            raise worker.lost()
        said = json.loads(line)
        if "error" in said:
            raise GraftworkError(**said["error"])
        if "progress" in said:
            report(worker.place, said["progress"], said["text"])
            return None
        if "warning" in said:
            self._warn(said["warning"])
            return None
        order, worker.order = worker.order, None
        if "held" in said:
            self._held.append((worker.place, replace(order, refused=(said["held"],))))
            self._again = time.monotonic() + SECONDS_BETWEEN_LOOKS
            return None
        result = read_result(self.store.root / said["done"] / "result.json")
        if result.status == "ok":  # a failed run may have stopped early
            self._seconds[order.like] = result.spent.wall_seconds
        return worker.place, with_prices(result, self.prices), said["known"]

    def _warn(self, message: str) -> None:
        """Log a warning once, even if several workers send it."""
        if message not in self._warned:
            log.warning(message)
        self._warned.add(message)


@dataclass
class _Worker:
    """A worker process, the thread that reads its output, and its current order."""

    opening: Opening
    heard: queue.SimpleQueue[tuple[_Worker, str | None]]
    order: RunOrder | None = None
    place: int = 0
    process: subprocess.Popen[str] = field(init=False)
    listener: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        """Start the process, with its libraries limited to its share of the threads."""
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        surroundings = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": str(self.opening.threads)}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "graftwork.run.worker"],  # -P: do not import from the working folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | surroundings,
        )
        self._tell(self.opening.line())
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def take(self, place: int, order: RunOrder) -> None:
        """Send an order to the worker."""
        self.place, self.order = place, order
        self._tell(order.line())

    def lost(self) -> GraftworkError:
        """Return the error of a worker that ended during a run."""
        assert self.order is not None
        code = self.process.wait()
        killed = "; the system kills what takes more memory than there is" if code == -9 else ""
        return GraftworkError(
            f"the process that ran {self.order.label}, {self.order.stage}, ended with code {code}{killed}",
            do="start again: finished runs are kept; with --jobs 1 one run at a time has the whole memory",
        )

    def end(self) -> None:
        """End the process by closing its input; kill it after `SECONDS_TO_END`."""
        assert self.process.stdin is not None
        with suppress(OSError):  # the process has already ended
            self.process.stdin.close()
        try:
            self.process.wait(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.listener.join()

    def _tell(self, line: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # the process has ended, which the listener reports
            self.process.stdin.write(f"{json.dumps(line)}\n")
            self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.heard.put((self, line))
        self.heard.put((self, None))
