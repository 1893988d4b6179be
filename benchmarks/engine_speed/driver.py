"""Run contenders in turn, one at a time with all threads, and summarise their answers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parent / "worker.py"
REST_SECONDS = 0.3  # between two contenders, so that threads of the last one stop spinning
PATIENCE_SECONDS = 10  # to wait for a worker to exit by itself
TAIL_LINES = 3  # lines kept of a failed worker's standard error
FOLDERS = r"(?:/[\w.+-]+)+/"  # in paths, removed from results for privacy

Answer = dict[str, Any]


class WorkerFailed(Exception):
    """A worker exited before it answered; the message is the end of its output."""


@dataclass(frozen=True)
class Entrant:
    """A contender for the driver: a name, and the arguments of `worker.make`."""

    name: str
    kind: str  # "ours" | "peer" | "machine" | "board"
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Heat:
    """Contenders that are measured together: for every seed a start, epochs and a score, in turn."""

    label: str
    entrants: Sequence[Entrant]
    seeds: int = 1
    epochs: int | None = 3  # None: as many as our recipe sets for this data
    ratios: Sequence[tuple[str, str]] = ()  # (ours, peer), for the ratio of the peer's time to ours


class Worker:
    """A contender's process; the caller must close it."""

    def __init__(self, entrant: Entrant, script: Path = WORKER) -> None:
        self.name = entrant.name
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - until `close`
        self._place = tempfile.TemporaryDirectory(prefix="engine_speed_")  # for its files
        described = json.dumps({"kind": entrant.kind, "settings": dict(entrant.settings)})
        self._process = subprocess.Popen(
            [sys.executable, str(script), described],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=os.environ | {"TMPDIR": self._place.name},
        )

    def answer(self) -> Answer:
        """Return the next answer line. Raises `WorkerFailed` if there is none."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            written = [text for text in self._errors.read().splitlines() if text.strip()]
            said = re.sub(FOLDERS, "", " | ".join(written[-TAIL_LINES:]))
            raise WorkerFailed(said or f"ended with {self._process.returncode}")
        answered: Answer = json.loads(line)
        return answered

    def ask(self, command: Mapping[str, Any]) -> Answer:
        """Send a command and return its answer. Raises `WorkerFailed`."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `answer` reports why it exited
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        """End the process and delete its files."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
        self._place.cleanup()


def run(heat: Heat, script: Path = WORKER, say: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Run `heat`; return every answer and the summary. A failed contender is dropped, and its error kept."""
    workers: dict[str, Worker] = {}
    errors: dict[str, str] = {}
    about: dict[str, Answer] = {}
    raw: list[Answer] = []
    try:
        for entrant in heat.entrants:  # loading is sequential too
            workers[entrant.name] = Worker(entrant, script)
            try:
                about[entrant.name] = workers[entrant.name].answer()
            except WorkerFailed as error:
                errors[entrant.name] = str(error)
            say(f"{heat.label}: {entrant.name}: {errors.get(entrant.name, 'loaded')}")
        for turn, command in enumerate(_plan(heat, heat.epochs or _own_epochs(about))):
            names = [entrant.name for entrant in heat.entrants if entrant.name not in errors]
            for name in names if turn % 2 == 0 else reversed(names):
                time.sleep(REST_SECONDS)
                try:
                    raw.append({"contender": name, "turn": turn, **command} | workers[name].ask(command))
                except WorkerFailed as error:
                    errors[name] = str(error)
                say(f"{heat.label}: {name}: {_brief(raw, errors, name)}")
    finally:
        for worker in workers.values():
            worker.close()
    return {"label": heat.label, "status": "partial" if errors else "ok"} | {
        "contenders": {
            entrant.name: {"kind": entrant.kind, "settings": public(entrant.settings), "about": about.get(entrant.name)}
            | summary([answer for answer in raw if answer["contender"] == entrant.name])
            | ({"error": errors[entrant.name]} if entrant.name in errors else {})
            for entrant in heat.entrants
        },
        "ratios": [ratio(raw, ours, peer) for ours, peer in heat.ratios if not errors.keys() & {ours, peer}],
        "raw": raw,
    }


def _own_epochs(about: Mapping[str, Answer]) -> int:
    """Return the epochs of the contenders that have a recipe; it is the same for all methods."""
    return max((answer["own_epochs"] for answer in about.values() if "own_epochs" in answer), default=1)


def _plan(heat: Heat, epochs: int) -> list[Answer]:
    plan: list[Answer] = []
    for seed in range(heat.seeds):
        plan.append({"do": "start", "seed": seed, "epochs": epochs})
        plan += [{"do": "epoch", "epoch": epoch, "seed": seed} for epoch in range(1, epochs + 1)]
        plan.append({"do": "score", "seed": seed})
    return plan


def _brief(raw: Sequence[Answer], errors: Mapping[str, str], name: str) -> str:
    if name in errors:
        return f"failed: {errors[name]}"
    last = raw[-1]
    if last["do"] == "score":
        return f"test {last['test']:.4f}" if "test" in last else "scored"
    return f"{last['do']} {last['seconds']:.2f} s"


def public(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without the path of the data."""
    return {key: value for key, value in settings.items() if key != "data"}


def summary(raw: Sequence[Answer]) -> dict[str, Any]:
    """Summarise one contender: seconds to start, per epoch and per fit (start and all epochs), rates and scores."""
    epochs = [answer for answer in raw if answer["do"] == "epoch"]
    starts = [answer for answer in raw if answer["do"] == "start"]
    fits = fit_seconds(raw)
    result: dict[str, Any] = {}
    for key, values in (
        ("start_seconds", [answer["seconds"] for answer in starts]),
        ("epoch_seconds", [answer["seconds"] for answer in epochs]),
        ("epoch_cpu_seconds", [answer["cpu_seconds"] for answer in epochs]),
        ("fit_seconds", list(fits.values())),
        ("tokens_per_second", [a["tokens"] / a["seconds"] for a in epochs if a.get("tokens") and a["seconds"]]),
        ("flops_per_second", [a["flops_per_second"] for a in epochs if "flops_per_second" in a]),
        ("validation", [answer["validation"] for answer in raw if "validation" in answer]),
        ("test", [answer["test"] for answer in raw if "test" in answer]),
    ):
        if values:
            result[key] = spread(values)
    if fits:
        result["all_fits_seconds"] = sum(fits.values())
    if raw:
        result["peak_bytes"] = max(answer.get("peak_bytes", 0) for answer in raw)
    return result


def fit_seconds(raw: Sequence[Answer]) -> dict[int, float]:
    """Return the seconds of start and all epochs, by seed."""
    fits: dict[int, float] = {}
    for answer in raw:
        if answer["do"] in ("start", "epoch"):
            fits[answer["seed"]] = fits.get(answer["seed"], 0.0) + answer["seconds"]
    return fits


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, mean, minimum, maximum and count."""
    return {
        "median": statistics.median(values),
        "mean": statistics.fmean(values),
        "min": min(values),
        "max": max(values),
        "n": len(values),
    }


def ratio(raw: Sequence[Answer], ours: str, peer: str) -> dict[str, Any]:
    """Return the ratio of the peer's time to ours: per epoch, over pairs of the same turn, and in all.

    An answer with a `share` is for that share of an epoch, and is scaled; starts are not scaled, so then there is no
    "in all".
    """
    ours_raw, peer_raw = ([answer for answer in raw if answer["contender"] == name] for name in (ours, peer))
    mine, theirs = (
        {answer["turn"]: answer["seconds"] / answer.get("share", 1.0) for answer in part if answer["do"] == "epoch"}
        for part in (ours_raw, peer_raw)
    )
    fits = [sum(fit_seconds(part).values()) for part in (ours_raw, peer_raw)]
    whole = all("share" not in answer for answer in (*ours_raw, *peer_raw))
    return {
        "ours": ours,
        "peer": peer,
        "epoch": spread([theirs[turn] / mine[turn] for turn in mine.keys() & theirs.keys()]),
        "all_fits": fits[1] / fits[0] if whole else None,
    }
