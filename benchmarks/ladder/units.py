"""Work in units: each is computed once and keeps what came of it in a file; two processes share what is left.

A unit that fails keeps its error and the others go on; it is tried again by the next command.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from graftwork.io.files import finite, read_json, write_json
from graftwork.machine.environment import environment

TOLD_SECONDS, ASKED_SECONDS = 20.0, 5.0  # between two lines of progress, and between two looks at what others do
Result = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """A piece of work with a name of its own."""

    name: str
    work: Callable[[], Result]  # JSON
    needs: tuple[str, ...] = ()  # units whose results it reads
    awaits: tuple[str, ...] = ()  # units that must have ended, well or not
    again: bool = False  # computed by every command, for it sums up what the others left


@dataclass
class Bench:
    """The folder where everything is kept, and what this process has tried."""

    folder: Path
    tried: set[str] = field(default_factory=set)

    def result(self, name: str) -> Result:
        """What a unit that is done came to."""
        content = read_json(self.folder / "units" / f"{name}.json")
        assert content["status"] == "ok", f"{name} failed"
        return dict(content["result"])

    def record(self, name: str) -> Result | None:
        """What is written of a unit; None where nothing is."""
        path = self.folder / "units" / f"{name}.json"
        return dict(read_json(path)) if path.is_file() else None

    def done(self, name: str) -> bool:
        """Whether its result is there."""
        found = self.record(name)
        return found is not None and found["status"] == "ok"

    def ended(self, name: str) -> bool:
        """Done, or tried by this process and failed."""
        return self.done(name) or name in self.tried

    def run_all(self, units: Sequence[Unit], after_each: Callable[[], None]) -> None:
        """Every unit that is not done, in order as far as their needs allow."""
        (self.folder / "units").mkdir(parents=True, exist_ok=True)
        left = [unit for unit in units if unit.again or not self.done(unit.name)]
        while left:
            waiting = [unit for unit in left if not self._attempt(unit, after_each)]
            if len(waiting) == len(left):
                time.sleep(ASKED_SECONDS)  # another process has what they need
            left = waiting

    def _attempt(self, unit: Unit, after_each: Callable[[], None]) -> bool:
        """Whether nothing is left to do about it."""
        if self.done(unit.name) and not unit.again:
            return True
        if not all(self.ended(name) for name in (*unit.needs, *unit.awaits)):
            return False
        with self._alone(unit.name) as alone:
            if not alone:
                return False
            if self.done(unit.name) and not unit.again:
                return True
            missing = [name for name in unit.needs if not self.done(name)]
            if missing:
                print(f"{clock()}  {unit.name}: left out, it needs {', '.join(missing)}", flush=True)
            self.tried.add(unit.name)
            self._keep(unit.name, failure(f"needs {', '.join(missing)}") if missing else self._worked(unit))
        after_each()
        return True

    def _worked(self, unit: Unit) -> Result:
        print(f"{clock()}  {unit.name}: begins", flush=True)
        began, used = time.perf_counter(), cpu()
        try:
            found = {"status": "ok", "result": unit.work()}
        except Exception as error:
            traceback.print_exc()
            found = failure(private(f"{type(error).__name__}: {error}"))
        took = {"seconds": time.perf_counter() - began, "cpu_seconds": cpu() - used}
        print(f"{clock()}  {unit.name}: {found['status']}, {took['seconds']:.1f} s, {took['cpu_seconds']:.1f} s of cpu",
              flush=True)  # fmt: skip
        return found | took | {"environment": environment()}

    def _keep(self, name: str, content: Mapping[str, Any]) -> None:
        write_json(self.folder / "units" / f"{name}.json", finite(dict(content)))

    @contextmanager
    def _alone(self, name: str) -> Iterator[bool]:
        handle = os.open(self.folder / "units" / f".{name}.lock", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(handle)


def chosen(units: Sequence[Unit], pattern: str) -> list[Unit]:
    """Those whose names match (`board.masked.*`), and what these need."""
    wanted = {unit.name for unit in units if fnmatch(unit.name, pattern)}
    for unit in reversed(units):  # what is needed stands before who needs it
        wanted |= set(unit.needs) if unit.name in wanted else set()
    found = [unit for unit in units if unit.name in wanted]
    return [replace(unit, awaits=tuple(name for name in unit.awaits if name in wanted)) for unit in found]


class Teller:
    """Lines of progress, with the seconds of a step where the text counts steps."""

    def __init__(self, name: str):
        self.name, self.told = name, time.monotonic()
        self.first: tuple[int, float, float] | None = None  # a step, and the seconds of wall and cpu there

    def __call__(self, done: float, text: str) -> None:
        """At most one line in a while."""
        now, step = time.monotonic(), step_of(text)
        if step is not None and self.first is None:
            self.first = (step, now, cpu())
        if now - self.told < TOLD_SECONDS:
            return
        self.told, each = now, ""
        if step is not None and self.first is not None and step > self.first[0]:
            steps = step - self.first[0]
            each = f" · {(now - self.first[1]) / steps:.3f} s a step, {(cpu() - self.first[2]) / steps:.3f} s of cpu"
        print(f"{clock()}  {self.name}: {done:6.1%}  {text}{each}", flush=True)


def step_of(text: str) -> int | None:
    """The number in "step 1,234 of …"."""
    words = text.split()
    return int(words[1].replace(",", "")) if len(words) > 2 and words[0] == "step" and words[2] == "of" else None


def failure(error: str) -> Result:
    """What is kept of a unit that did not work."""
    return {"status": "failed", "error": error[:500]}


def private(text: str) -> str:
    """A text in which nothing tells where a folder is."""
    return re.sub(r"/(?:[^\s/'\"]+/)+", "…/", text)


def cpu() -> float:
    """Processor seconds of this process and the children that have ended."""
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system


def clock() -> str:
    """The time of day."""
    return time.strftime("%H:%M:%S")
