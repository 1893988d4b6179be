"""Run several `graft compare` on one folder of runs while their processes are killed at random:
`python benchmarks/robust/crowd.py`.

The comparisons ask the same question, two of them run by run and two with their own workers. Every kill is a SIGKILL
of a random one of all these processes; a command that ends by it is repeated. When all are done their boards are
compared with an undisturbed one, and the recorded ends of runs are counted. `--kills 2` tries it.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from result_file import result_of

import graftwork
from graftwork.io.files import file_digest, read_json, write_json
from graftwork.testing import tiny_dataset

HERE = Path(__file__).parent
QUESTION = (
    "Four comparisons on one folder of runs, any of whose processes is killed at any time and started again: is a "
    "finished run ever lost, or executed twice, and is every board the one that nobody disturbs?"
)
BAR = {"kills_at_least": 30, "lost": 0, "repeated": 0, "boards_different": 0, "runs_different": 0, "left_over": 0}
CROWD = (("1", "1"), ("1", "1"), ("2", "2"), ("2", "2"))  # threads and jobs: every run has one thread
METHODS = "majority,tfidf_svm,linear_probe,top_layers:k=1,lora,bitfit,adapter,full"
ROWS, SEEDS, EPOCHS = 240, 3, 8
PAUSE_SECONDS = (0.5, 8.0)  # from one kill to the next
LOOK_SECONDS, TOO_LONG = 0.05, 1800.0
SAME = ("spec.json", "predictions.jsonl", "module/delta.safetensors")  # files of a run that must be byte-identical
KEPT = ("task", "headline_metric", "differences", "majority", "race", "rows", "statistics", "notes")  # of a board
PRICES = ("costs", "cost", "search_costs")


@dataclass
class Crowd:
    """The comparisons of one round, in their own folders."""

    folder: Path
    command: Sequence[str]  # `graft compare` without threads, jobs and the board's folder
    chance: random.Random
    killed: set[int] = field(default_factory=set)
    seen: dict[str, str] = field(default_factory=dict)  # finished run -> sha256 of its result.json when first seen
    restarts: int = 0
    complaints: list[str] = field(default_factory=list)  # exits that no kill explains

    def run(self, kills: int) -> None:
        """Run until every comparison has finished, with at most `kills` kills."""
        going = {number: self.start(number) for number in range(len(CROWD))}
        due, begun = time.monotonic() + self.pause(), time.monotonic()
        while going:
            time.sleep(LOOK_SECONDS)
            assert time.monotonic() - begun < TOO_LONG, "the comparisons do not come to an end"
            self.look()
            for number, process in list(going.items()):
                code = process.poll()
                if code == 0:
                    del going[number]
                elif code is not None:
                    self.explain(number, process, code)
                    going[number] = self.start(number)
            if going and len(self.killed) < kills and time.monotonic() >= due:
                self.kill(list(going.values()))
                due = time.monotonic() + self.pause()

    def start(self, number: int) -> subprocess.Popen[bytes]:
        """Start one comparison."""
        threads, jobs = CROWD[number]
        words = (*self.command, "--threads", threads, "--jobs", jobs, "--out", f"board{number}")
        self.restarts += 1
        with (self.folder / f"{number}.log").open("wb") as log:
            return subprocess.Popen(words, cwd=self.folder, env=surroundings(self.folder), stdout=log, stderr=log)

    def pause(self) -> float:
        """Return the seconds until the next kill."""
        return self.chance.uniform(*PAUSE_SECONDS)

    def kill(self, going: Sequence[subprocess.Popen[bytes]]) -> None:
        """Kill a random one of the comparisons and their workers."""
        pids = [pid for process in going for pid in (process.pid, *children(process.pid))]
        victim = self.chance.choice(pids)
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.killed.add(victim)

    def explain(self, number: int, process: subprocess.Popen[bytes], code: int) -> None:
        """Record an exit that is neither by a kill nor reported in one message because a worker was killed."""
        said = (self.folder / f"{number}.log").read_text(encoding="utf-8", errors="replace")
        told = code == 2 and "ended with code -9" in said and "Traceback" not in said
        if process.pid not in self.killed and not told:
            self.complaints.append(f"exit code {code}: {said[-500:]}")

    def look(self) -> None:
        """Record the hash of every newly finished run."""
        for path in (self.folder / "runs").glob("[!.]*/result.json"):
            if path.parent.name not in self.seen:
                self.seen[path.parent.name] = file_digest(path)

    def lost(self) -> list[str]:
        """Return the finished runs that are missing or changed."""
        places = {run: self.folder / "runs" / run / "result.json" for run in self.seen}
        return sorted(run for run, path in places.items() if not path.is_file() or file_digest(path) != self.seen[run])


def surroundings(folder: Path) -> dict[str, str]:
    """Return the environment of a process that records the ends of its runs."""
    site = folder / "site"
    if not site.is_dir():
        site.mkdir(parents=True)
        shutil.copyfile(HERE / "witness.py", site / "sitecustomize.py")
    package = Path(graftwork.__file__).parents[1]
    paths = [str(site), str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "CROWD_LOG": str(folder / "ends.log")}


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def repeated(lines: Iterable[str], killed: set[int]) -> list[str]:
    """Return the runs that were executed to their end more than once.

    A run whose process was killed before its rename does not count: it was never finished.
    """
    listed = [line.split() for line in lines]
    last = {pid: place for place, (_, _, pid, _) in enumerate(listed)}
    ends: Counter[str] = Counter()
    for place, (what, run, pid, _) in enumerate(listed):
        ends[run] += what == "ended" and not (int(pid) in killed and last[pid] == place)
    return sorted(run for run, count in ends.items() if count > 1)


def projection(board: Mapping[str, Any]) -> Any:
    """Return the part of a leaderboard that does not depend on time."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key not in PRICES}
        return [without(item) for item in value] if isinstance(value, list) else value

    return without({key: board[key] for key in KEPT})


def different_runs(one: Path, other: Path) -> list[str]:
    """Return the runs that differ in any byte between two folders of runs, or are in only one of them."""
    names = {path.parent.name for root in (one, other) for path in root.glob("[!.]*/result.json")}
    files = ((name, one / name / part, other / name / part) for name in names for part in SAME)
    found = set()
    for name, here, there in files:
        if here.is_file() != there.is_file() or (here.is_file() and here.read_bytes() != there.read_bytes()):
            found.add(name)
    return sorted(found)


def left_over(folder: Path) -> list[str]:
    """Return the hidden files in the runs or the cache that should have been removed."""
    hidden = [*(folder / "runs").glob(".*"), *(folder / "cache").rglob(".*")]
    return sorted(str(path.relative_to(folder)) for path in hidden if path.name != ".lock")


def write_data(path: Path, rows: int) -> None:
    """Write texts of two classes."""
    data = tiny_dataset(rows=rows)
    examples = [example for split in data.splits.values() for example in split.examples]
    lines = [(f"{example.inputs['text']} {number}", example.target) for number, example in enumerate(examples)]
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("text", "label"), *lines])


def measured(work: Path, kills: int, methods: str, seed: int, extent: tuple[int, int, int]) -> dict[str, Any]:
    """Run rounds until there were `kills` kills; `extent` is rows, seeds and epochs."""
    rows, seeds, epochs = extent
    work.mkdir(parents=True, exist_ok=True)
    write_data(work / "data.csv", rows)
    asked = ("--methods", methods, "--seeds", str(seeds), "--epochs", str(epochs), "--precision", "fp32")
    command = (sys.executable, "-m", "graftwork", "compare", str(work / "data.csv"), "--backbone", "tiny_text", *asked)
    command = (*command, "--runs", "runs", "--cache", "cache")
    chance = random.Random(seed)
    alone = Crowd(work / "alone", command, chance)
    alone.folder.mkdir()
    begun = time.monotonic()
    process = alone.start(0)
    assert process.wait() == 0, (alone.folder / "0.log").read_text()
    seconds = time.monotonic() - begun
    expected = projection(read_json(alone.folder / "board0" / "leaderboard.json"))
    found: dict[str, Any] = {"kills": 0, "rounds": 0, "restarts": 0, "runs": 0, "alone_seconds": seconds}
    lists: dict[str, list[str]] = {name: [] for name in ("lost", "repeated", "runs_different", "left_over", "errors")}
    different = 0
    while found["kills"] < kills:
        crowd = Crowd(work / f"round{found['rounds']}", command, chance)
        crowd.folder.mkdir()
        crowd.run(kills - found["kills"])
        ends = (crowd.folder / "ends.log").read_text().splitlines()
        lists["lost"] += crowd.lost()
        lists["repeated"] += repeated(ends, crowd.killed)
        lists["runs_different"] += different_runs(alone.folder / "runs", crowd.folder / "runs")
        lists["left_over"] += left_over(crowd.folder)
        lists["errors"] += crowd.complaints
        boards = [read_json(crowd.folder / f"board{number}" / "leaderboard.json") for number in range(len(CROWD))]
        different += sum(projection(board) != expected for board in boards)
        found["kills"] += len(crowd.killed)
        found["rounds"] += 1
        found["restarts"] += crowd.restarts - len(CROWD)
        found["runs"] += len(crowd.seen)
    counts = {name: len(listed) for name, listed in lists.items()}
    return found | counts | {"boards_different": different, "told": lists}


def result(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of results/crowd.json."""
    held = found["kills"] >= BAR["kills_at_least"] and found["errors"] == 0
    held = held and all(found[name] == 0 for name in BAR if name != "kills_at_least")
    return result_of(QUESTION, BAR, found, "ok" if held else "failed")


def main() -> int:
    """Measure and write; return 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, help="a folder that is not there yet.  [default: one that goes again]")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--kills", type=int, default=BAR["kills_at_least"])
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seed", type=int, default=0, help="of the kills")
    given = parser.parse_args()
    extent = (given.rows, given.seeds, given.epochs)
    with tempfile.TemporaryDirectory(prefix="graftwork-crowd-") as scratch:
        work = (given.work or Path(scratch, "work")).absolute()
        told = result(measured(work, given.kills, given.methods, given.seed, extent))
    write_json(given.out / "crowd.json", told)
    print({name: value for name, value in told["measured"].items() if name != "told"}, told["status"])
    return int(told["status"] != "ok")


if __name__ == "__main__":
    sys.exit(main())
