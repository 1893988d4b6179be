"""The time and the choice of `graft compare` against `--exhaustive` with five seeds: `python compare_time.py`."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trainer_rows import Drawn, written

from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment

RESULT = Path(__file__).parent.absolute() / "results" / "compare_time.json"
SETS = ("trec6", "mrpc", "sms_spam", "crowdflower_political_message", "cola", "banking77")
SEEDS = 5


Times = dict[str, float]  # "wall" and "processor" seconds


def board_of(drawn: Drawn, folder: Path, precision: str, exhaustive: bool) -> tuple[Times, dict[str, Any]]:
    """Run `graft compare` in an empty folder; return its times, start included, and its leaderboard."""
    files = drawn.files
    command = [
        sys.executable, "-m", "graftwork", "compare", str(files["train"]), "--validation", str(files["validation"]),
        "--test", str(files["test"]), "--metrics", "accuracy", "--seeds", str(SEEDS), "--precision", precision,
        "--device", "cpu", "--runs", f"{folder}/runs", "--cache", f"{folder}/cache", "--out", f"{folder}/board",
        *(["--exhaustive"] if exhaustive else []),
    ]  # fmt: skip
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "processor": processor}, read_json(folder / "board" / "leaderboard.json")


def measured(drawn: Drawn, work: Path, precision: str) -> dict[str, Any]:
    """Run both, and return their times, and the points that the choice loses on the exhaustive board's test means."""
    found = {}
    for name, exhaustive in (("compare", False), ("exhaustive", True)):
        with tempfile.TemporaryDirectory(dir=work) as folder:
            found[name] = board_of(drawn, Path(folder), precision, exhaustive)
    means = {row["method"]: row["scores"]["accuracy"]["mean"] for row in found["exhaustive"][1]["rows"]}
    chosen = found["compare"][1]["decision"]["chosen"]
    return {
        "set": drawn.name,
        "rows": dict(drawn.rows),
        "digest": drawn.digest,
        "seconds": {name: times for name, (times, _) in found.items()},
        "runs": {name: sum(row["n_seeds"] for row in board["rows"]) for name, (_, board) in found.items()},
        "chosen": chosen,
        "best": max(means, key=lambda method: means[method]),
        "points_lost": 100 * (max(means.values()) - means[chosen]),
        "test_means": means,
    }


def table(content: dict[str, Any]) -> str:
    """Format the results as Markdown."""
    lines = [
        "| set | rows | compare | exhaustive | share of the time | of processor time | chosen | points lost |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in content["rows"]:
        ours, whole = row["seconds"]["compare"], row["seconds"]["exhaustive"]
        lines.append(
            f"| {row['set']} | {row['rows']['train']:,} | {ours['wall']:.0f} s, {row['runs']['compare']} runs | "
            f"{whole['wall']:.0f} s, {row['runs']['exhaustive']} runs | {ours['wall'] / whole['wall']:.2f} | "
            f"{ours['processor'] / whole['processor']:.2f} | `{row['chosen']}` | {row['points_lost']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure the sets that are not in the results yet; print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, help="the folder of the data sets; without it the table is printed")
    parser.add_argument("--rows", type=int, default=4000, help="rows of train, at most")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    asked = parser.parse_args()
    content = read_json(RESULT) if RESULT.exists() else {"format": 1, "rows": []}
    if asked.data:
        settings = {"most_rows": asked.rows, "precision": asked.precision, "environment": environment()}
        with tempfile.TemporaryDirectory() as work:
            for name in asked.sets:
                drawn = written(asked.data / name, Path(work), asked.rows, 2000)
                if drawn.digest not in {row["digest"] for row in content["rows"]}:
                    content["rows"].append(measured(drawn, Path(work), asked.precision) | settings)
                    write_json(RESULT, content)
    print(table(content))


if __name__ == "__main__":
    main()
