"""Units of work: each is computed once and its result kept in a file; several processes share the remaining ones.

A failed unit keeps its error and the others continue; the next command tries it again.
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

TOLD_SECONDS, ASKED_SECONDS = 20.0, 5.0  # between two progress lines, between two checks of other processes
Result = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """A piece of work with a unique name."""

    name: str
    work: Callable[[], Result]  # JSON
    needs: tuple[str, ...] = ()  # units whose results it reads
    awaits: tuple[str, ...] = ()  # units that must have ended, successfully or not
    again: bool = False  # recomputed by every command, because it summarises the other units


@dataclass
class Bench:
    """The folder of results, and the units that this process has tried."""

    folder: Path
    tried: set[str] = field(default_factory=set)

    def result(self, name: str) -> Result:
        """Return the result of a finished unit."""
        content = read_json(self.folder / "units" / f"{name}.json")
        assert content["status"] == "ok", f"{name} failed"
        return dict(content["result"])

    def record(self, name: str) -> Result | None:
        """Return the record of a unit; None if there is none."""
        path = self.folder / "units" / f"{name}.json"
        return dict(read_json(path)) if path.is_file() else None

    def done(self, name: str) -> bool:
        """Return whether its result is there."""
        found = self.record(name)
        return found is not None and found["status"] == "ok"

    def ended(self, name: str) -> bool:
        """Return whether a unit is done, or failed in this process."""
        return self.done(name) or name in self.tried

    def run_all(self, units: Sequence[Unit], after_each: Callable[[], None]) -> None:
        """Run every unit that is not done, in order as far as their needs allow."""
        (self.folder / "units").mkdir(parents=True, exist_ok=True)
        left = [unit for unit in units if unit.again or not self.done(unit.name)]
        while left:
            waiting = [unit for unit in left if not self._attempt(unit, after_each)]
            if len(waiting) == len(left):
                time.sleep(ASKED_SECONDS)  # another process computes what they need
            left = waiting

    def _attempt(self, unit: Unit, after_each: Callable[[], None]) -> bool:
        """Run a unit if possible; return whether it needs no further attempt."""
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
    """Return the units whose names match (`board.masked.*`), and those they need."""
    wanted = {unit.name for unit in units if fnmatch(unit.name, pattern)}
    for unit in reversed(units):  # needed units come before those that need them
        wanted |= set(unit.needs) if unit.name in wanted else set()
    found = [unit for unit in units if unit.name in wanted]
    return [replace(unit, awaits=tuple(name for name in unit.awaits if name in wanted)) for unit in found]


class Teller:
    """A progress listener; it prints seconds per step if the text counts steps."""

    def __init__(self, name: str):
        self.name, self.told = name, time.monotonic()
        self.first: tuple[int, float, float] | None = None  # a step, its wall time and its CPU time

    def __call__(self, done: float, text: str) -> None:
        """Print at most one line every `TOLD_SECONDS`."""
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
    """Return the number in "step 1,234 of …"."""
    words = text.split()
    return int(words[1].replace(",", "")) if len(words) > 2 and words[0] == "step" and words[2] == "of" else None


def failure(error: str) -> Result:
    """Return the record of a failed unit."""
    return {"status": "failed", "error": error[:500]}


def private(text: str) -> str:
    """Return the text with paths shortened to their last part."""
    return re.sub(r"/(?:[^\s/'\"]+/)+", "…/", text)


def cpu() -> float:
    """Return the CPU seconds of this process and its finished children."""
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system


def clock() -> str:
    """Return the time of day."""
    return time.strftime("%H:%M:%S")
