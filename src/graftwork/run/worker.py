"""A worker process that executes runs one by one: `python -m graftwork.run.worker`, JSON lines in and out.

The first input line is an `Opening`, every further one requests a run. The output for a run is progress and warnings,
then `done` with the run's id, whose receipt is in the store; or, if another process executes the run, `held` with the
time stamp of its stored result, which a later request for the run passes back as `refused`. An error outside a run ends
the process.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graftwork.core.configured_methods import ConfiguredMethod, configured_from
from graftwork.core.progress import Progress
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.errors import DataError, GraftworkError
from graftwork.io.files import storage_error
from graftwork.run.session import Session, open_session, with_backbone
from graftwork.run.sessions import Sessions
from graftwork.run.settings import OpenedBy, RunSettings

SECONDS_BETWEEN_SIGNS = 0.2
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Opening:
    """The arguments that open a worker's session, and its share of the machine. Pure data."""

    session: OpenedBy
    data: str  # Dataset.digest: the files must not have changed since the parent process read them
    threads: int
    runs_at_once: int
    others: tuple[OpenedBy, ...] = ()  # over the same data, opened when a run first needs one

    @classmethod
    def of(cls, sessions: Sessions) -> Opening:
        """Build the opening of the same sessions in another process."""
        first, opened_by = sessions.whole[0], [session.opened_by for session in sessions.whole]
        by, *others = [one for one in opened_by if one is not None]
        assert len(others) == len(sessions.whole) - 1
        return cls(by, first.dataset.digest, first.numerics["threads"], first.runs_at_once, tuple(others))

    def line(self) -> Line:
        """Return as JSON."""
        line = asdict(self)
        for session in (line["session"], *line["others"]):
            task = session["task"] | session["task"].pop("settings")
            session["task"] = {name: str(item) if isinstance(item, Path) else item for name, item in task.items()}
        return line

    @classmethod
    def read(cls, line: Line) -> Opening:
        """Read from JSON."""
        return cls(**{**line, "session": _opened_by(line["session"]), "others": tuple(map(_opened_by, line["others"]))})

    def session_of(self, order: Line, sessions: Sessions) -> Session:
        """Return the session that an order requests, opening it if necessary."""
        which = order.get("session", 0)
        while len(sessions.whole) <= which:
            sessions.whole.append(with_backbone(sessions.whole[0], self.others[len(sessions.whole) - 1]))
        return sessions.of(which, sessions.drawn(order.get("draw")))


def _opened_by(line: Line) -> OpenedBy:
    return OpenedBy(Task.from_json(line["task"]), tuple(line["methods"]), RunSettings(**line["setup"]))


def work(lines: Iterator[str], say: Callable[[Line], None]) -> None:
    """Execute the runs that `lines` request. Raises `GraftworkError` for errors other than a failed run."""
    import torch

    from graftwork.run.execute import execute_if_free

    opening = Opening.read(json.loads(next(lines)))
    torch.set_num_threads(opening.threads)
    by = opening.session
    session = open_session(by.task, [configured_from(config) for config in by.methods], by.setup, checked=False)
    if session.dataset.digest != opening.data:
        raise DataError(
            "the data changed while it was being compared", where=str(by.task.data), do="run the same command again"
        )
    sessions = Sessions(replace(session, runs_at_once=opening.runs_at_once))
    for line in lines:
        order = json.loads(line)
        session = opening.session_of(order, sessions)
        item, recipe, seed = ordered(order), Recipe(**order["recipe"]), order["seed"]
        run = session.spec(item, recipe, seed).id
        if "refused" in order:
            session.store.refuse(run, order["refused"])
        done = execute_if_free(session, item, recipe, seed, _signs(say))
        say({"held": session.store.refused(run)} if done is None else {"done": done[0].id, "known": done[1]})


def ordered(order: Line) -> ConfiguredMethod:
    """Return the method of an order."""
    return replace(configured_from(order["method"]), given=frozenset(order.get("given", ())))


def _signs(say: Callable[[Line], None]) -> Progress:
    """Return a progress callback that emits at most one line per `SECONDS_BETWEEN_SIGNS`."""
    last = 0.0

    def progress(done: float, text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_SIGNS:
            last = now
            say({"progress": done, "text": text})

    return progress


class _Telling(logging.Handler):
    """A logging handler that passes warnings to the parent process, which shows each once for all workers."""

    def __init__(self, say: Callable[[Line], None]):
        super().__init__(logging.WARNING)
        self.say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Emit one line."""
        self.say({"warning": record.getMessage()})


def main() -> int:
    """Process standard input until it ends; libraries' output to standard output is redirected to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # both end a run without leaving partial files

    def say(line: Line) -> None:
        try:
            answers.write(f"{json.dumps(line)}\n")
            answers.flush()
        except BrokenPipeError:  # the parent is gone: not a failure of the run, which can resume later
            signal.raise_signal(signal.SIGTERM)

    log = logging.getLogger("graftwork")
    log.addHandler(_Telling(say))
    log.propagate = False
    try:
        work(iter(sys.stdin), say)
    except (GraftworkError, OSError) as raised:
        error = storage_error(raised, str(raised.filename or "")) if isinstance(raised, OSError) else raised
        parts = {name: getattr(error, name) for name in ("what", "where", "got", "expected", "do")}
        say({"error": parts})
        return 2
    except KeyboardInterrupt:
        os._exit(130)  # partial files are removed; a regular shutdown of the libraries would take another second
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # everything is on disk; a regular shutdown of the libraries would take seconds, and is waited for
