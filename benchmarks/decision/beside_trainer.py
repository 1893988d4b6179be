"""`graft train --budget` against full fine-tuning in the same time: `python beside_trainer.py --data FOLDER`."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer_rows import SETS, Drawn, written
from trainer_table import tables

from graftwork.backbones.minilm import WEIGHTS_SHA256, package_folder
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment, usable_cores
from graftwork.units import read_amount

HERE = Path(__file__).parent.absolute()
BUDGETS = ("2min", "10min")
OURS, AUTOGLUON = "graft", "autogluon"
SYSTEMS = (OURS, "trainer", "trainer_planned", AUTOGLUON)
TRAIN_ROWS, TEST_ROWS = 4000, 2000  # at most
OVER = 1.05  # share of the budget above which it counts as overrun
PATIENCE = (2.0, 60.0)  # a process is killed after so many times the budget plus so many seconds
PARENT_DIED = 1  # PR_SET_PDEATHSIG, Linux's option for a signal when the parent dies

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """The results file: the shared settings of all rows, and the rows."""

    path: Path
    settings: Mapping[str, Any]
    pythons: Mapping[str, str]  # peer -> a Python that has it

    def rows(self) -> list[Row]:
        """Return the rows measured so far."""
        return list(read_json(self.path)["rows"]) if self.path.exists() else []

    def add(self, row: Row) -> None:
        """Write a row at once, so that an interrupted benchmark resumes after it."""
        rows = [*self.rows(), row]
        status = "ok" if all(one["status"] == "ok" for one in rows) else "partial"
        write_json(self.path, {"format": 1, "status": status, "settings": self.settings, "rows": rows})


def bound_to_us() -> None:
    """Make a new process, before exec, die when its parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)


@contextmanager
def process_of(command: Sequence[str], log: Path, threads: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in its own process group, which is killed with all of its children at the end of the block."""
    variables = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=variables, start_new_session=True, preexec_fn=bound_to_us
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def timed(command: Sequence[str], budget: float, folder: Path, threads: int) -> Row:
    """Run a process and return its wall time, and whether it succeeded."""
    log = folder / "log"
    began = time.perf_counter()
    with process_of(command, log, threads) as process:
        try:
            code = process.wait(PATIENCE[0] * budget + PATIENCE[1])
            error = "" if code == 0 else f"exit code {code}: "
        except subprocess.TimeoutExpired:
            error = "still running, and ended: "
        seconds = time.perf_counter() - began
    if error:
        error += log.read_text(encoding="utf-8", errors="replace").replace(str(folder), "FOLDER")[-2000:]
    return {
        "status": "failed" if error else "ok",
        "error": error,
        "process_seconds": seconds,
        "share": seconds / budget,
        "overrun": seconds > OVER * budget,
    }


def ours(drawn: Drawn, budget: float, table: Table, folder: Path) -> Row:
    """Run `graft train` as a user types it, into empty folders."""
    files, precision, threads = drawn.files, table.settings["precision"], table.settings["threads"]
    command = [
        sys.executable, "-m", "graftwork", "train", str(files["train"]),
        "--validation", str(files["validation"]), "--test", str(files["test"]), "--metrics", "accuracy",
        "--budget", f"{budget:g}s", "--precision", precision, "--threads", str(threads), "--device", "cpu",
        "--runs", f"{folder}/runs", "--out", f"{folder}/ladder", "--cache", f"{folder}/cache",
    ]  # fmt: skip
    row = timed(command, budget, folder, threads)
    path = folder / "ladder" / "ladder.json"
    if row["status"] != "ok" or not path.is_file():
        return row
    ladder = read_json(path)
    chosen = ladder["chosen"]
    rung = next((one for one in ladder["rungs"] if one["chosen"]), None)
    return row | {
        "accuracy": chosen["scores"]["accuracy"],
        "validation": rung["validation"]["score"] if rung and rung["validation"] else None,
        "used_seconds": ladder["spent"]["seconds"],
        "chosen": chosen["method"],
        "stopped": ladder["stopped"],
        "tried": [
            {key: one[key] for key in ("method", "seconds", "validation", "decision")} for one in ladder["rungs"]
        ],
        "settings": {"seed": ladder["seed"], "precision": precision},
        "versions": environment()["distributions"],
    }


def theirs(system: str, drawn: Drawn, budget: float, table: Table, folder: Path) -> Row:
    """Run a peer in a separate process; see trainer_worker.py."""
    question = {
        "system": system,
        "files": {name: str(path) for name, path in drawn.files.items()},
        "weights": str(package_folder()),
        "budget_seconds": budget,
        "threads": table.settings["threads"],
        "precision": table.settings["precision"],
        "folder": str(folder),
        "began": time.time(),
    }
    asked, answered = folder / "question.json", folder / "answer.json"
    asked.write_text(json.dumps(question), encoding="utf-8")
    command = [table.pythons[system], str(HERE / "trainer_worker.py"), str(asked), str(answered)]
    row = timed(command, budget, folder, table.settings["threads"])
    return row | read_json(answered) if row["status"] == "ok" else row


def measure(system: str, drawn: Drawn, budget: float, table: Table) -> Row:
    """Measure one system on one data set with one budget, in empty folders, and record the environment."""
    around = environment()
    with tempfile.TemporaryDirectory(prefix="beside_trainer_") as name:
        folder = Path(name)
        found = ours(drawn, budget, table, folder) if system == OURS else theirs(system, drawn, budget, table, folder)
    return {
        "set": drawn.name,
        "budget_seconds": budget,
        "system": system,
        **found,
        "rows": drawn.rows,
        "classes": drawn.classes,
        "words": round(drawn.words, 1),
        "digest": drawn.digest,
        **{key: around[key] for key in ("time", "commit", "processor", "cores", "memory_bytes", "load_average")},
    }


def main() -> None:
    """Measure the rows that are not in the results yet."""
    chosen = _flags()
    if chosen.table:
        print(tables(read_json(chosen.out), OURS))
        return
    pythons = dict.fromkeys(SYSTEMS[1:3], chosen.python) | {AUTOGLUON: chosen.autogluon_python}
    table = Table(chosen.out.absolute(), _settings(chosen), pythons)
    if table.path.exists() and read_json(table.path)["settings"] != table.settings:
        raise SystemExit(f"{table.path} was measured under other settings: give --out another file")
    systems = [one for one in chosen.systems if one != AUTOGLUON or chosen.autogluon_python]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the running process ends too
    with tempfile.TemporaryDirectory(prefix="beside_trainer_rows_") as work:
        for place, name in enumerate(chosen.names):
            drawn = written(chosen.data / name, Path(work), chosen.train_rows, chosen.test_rows)
            for budget in (read_amount(words)[0] for words in chosen.budgets):
                done = {(row["set"], row["budget_seconds"], row["system"]) for row in table.rows()}
                begin = place % len(systems)  # the first system changes with the data set
                for system in systems[begin:] + systems[:begin]:
                    if (name, budget, system) not in done:
                        table.add(row := measure(system, drawn, budget, table))
                        print(told(row), flush=True)


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--data", type=Path, help="folder with one folder per data set")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "beside_trainer.json")
    parser.add_argument("--table", action="store_true", help="print what was measured as Markdown, and stop")
    parser.add_argument("--budgets", nargs="+", default=list(BUDGETS), metavar="TIME")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--python", default=sys.executable, help="a Python with transformers and accelerate")
    parser.add_argument("--autogluon-python", default="", help="a Python with autogluon.multimodal, else left out")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"), help="of all")
    parser.add_argument("--threads", type=int, default=usable_cores(), help="of all")
    parser.add_argument("--train-rows", type=int, default=TRAIN_ROWS, help="at most")
    parser.add_argument("--test-rows", type=int, default=TEST_ROWS, help="at most")
    chosen = parser.parse_args()
    if not chosen.table and not chosen.data:
        parser.error("--data is needed")
    return chosen


def _settings(chosen: argparse.Namespace) -> dict[str, Any]:
    kept = {key: getattr(chosen, key) for key in ("precision", "threads", "train_rows", "test_rows")}
    return kept | {"weights_sha256": WEIGHTS_SHA256}


def told(row: Row) -> str:
    """Format a row for the log."""
    begin = f"{row['set']}, {row['budget_seconds']:g} s, {row['system']}:"
    took = f"{row['process_seconds']:.1f} s{', overrun' if row['overrun'] else ''}"
    if row["status"] != "ok":
        return f"{begin} failed after {took}: {row['error'].strip().splitlines()[-1]}"
    return f"{begin} {100 * row['accuracy']:.1f} in {took}; {row['chosen']}"


if __name__ == "__main__":
    main()
