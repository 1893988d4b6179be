"""Climb ladders on real data and keep forecast and actual times: `python run.py --data FOLDER`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.units import read_amount

HERE = Path(__file__).parent.absolute()
FILES = {  # data set -> files for `graft train`
    "trec6": ("trec6/train.tsv", "--test", "trec6/test.tsv"),
    "sms_spam": ("sms_spam/all.tsv",),
}
BUDGETS = ("30s", "90s", "4min")


def climb(data: Path, name: str, budget: str) -> dict[str, Any]:
    """Run one climb as a user types it, into empty folders; its wall time is that of the whole process."""
    first, *rest = FILES[name]
    files = [str(data / first), *(word if word.startswith("--") else str(data / word) for word in rest)]
    with tempfile.TemporaryDirectory(prefix="budget_") as folder:
        places = ["--runs", f"{folder}/runs", "--out", f"{folder}/ladder", "--cache", f"{folder}/cache"]
        command = [sys.executable, "-m", "graftwork", "train", *files, "--budget", budget, *places]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - began
        path = Path(folder) / "ladder" / "ladder.json"
        whole = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return {
        "data": name,
        "budget_seconds": read_amount(budget)[0],
        "exit_code": done.returncode,
        "error": done.stderr[-2000:].replace(folder, "FOLDER") if done.returncode else "",
        "process_seconds": seconds,
        "ladder": whole and {name: whole[name] for name in ("budget", "rungs", "stopped", "spent", "rules")},
    }


def main() -> None:
    """Measure every data set with every budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--only", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument("--budgets", nargs="+", default=list(BUDGETS))
    parser.add_argument("--out", type=Path, default=HERE / "results" / "climbs.json")
    chosen = parser.parse_args()
    before = environment()
    climbs = []
    for name in chosen.only:
        for budget in chosen.budgets:
            climbs.append(climb(chosen.data, name, budget))
            found = climbs[-1]
            print(f"{name}, {budget}: {found['process_seconds']:.1f} s, exit code {found['exit_code']}", flush=True)
    write_json(
        chosen.out,
        {
            "format": 1,
            "status": "ok" if all(found["exit_code"] == 0 for found in climbs) else "partial",
            "climbs": climbs,
            "environment": before,
            "load_average_after": environment()["load_average"],
        },
    )


if __name__ == "__main__":
    main()
