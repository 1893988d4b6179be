"""Measure the peak memory of `graft predict --file` on files of increasing size: `python memory.py [ROWS …]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import graftwork as gw
from graftwork.data.load import load
from graftwork.io.files import write_json
from graftwork.machine.environment import environment

HERE = Path(__file__).parent.absolute()
ROWS = (50_000, 500_000, 5_000_000)
GRAFT = (sys.executable, "-m", "graftwork")


def write_rows(texts: list[str], rows: int, to: Path) -> None:
    """Write a TSV file of `rows` distinct texts."""
    with to.open("w", encoding="utf-8") as stream:
        stream.write("text\n")
        stream.writelines(f"{text} {number}\n" for number, text in enumerate(islice(cycle(texts), rows)))


def answer(module: Path, given: Path, threads: int) -> dict[str, Any]:
    """Predict a file in a separate process: number of answers, seconds, and the process's peak memory."""
    out = given.with_suffix(".answers.tsv")
    command = [*GRAFT, "predict", str(module), "--file", str(given), "--out", str(out), "--threads", str(threads)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    with out.open(encoding="utf-8") as stream:
        answers = sum(1 for _ in stream) - 1
    out.unlink()
    return {"answers": answers, "seconds": seconds, "peak_bytes": used.ru_maxrss * 1024}


def main() -> None:
    """Write `results/memory.json`; `table.py` prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--backbone", default="tiny_text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "memory.json")
    chosen = parser.parse_args()
    result: dict[str, Any] = {"format": 1, "environment": environment(), "backbone": chosen.backbone, "files": []}
    result |= {"method": "linear_probe", "threads": chosen.threads}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        task = gw.Task.from_file("builtin:tickets")
        run = gw.train(task, method="linear_probe", backbone=chosen.backbone, runs=folder / "runs")
        texts = [example.inputs["text"] for example in load(task).train.examples]
        for rows in chosen.rows:
            given = folder / "given.tsv"
            write_rows(texts, rows, given)
            answered = answer(run.folder / "module", given, chosen.threads)
            result["files"].append({"rows": rows, "file_bytes": given.stat().st_size} | answered)
            print(result["files"][-1], flush=True)
            write_json(chosen.out, result)


if __name__ == "__main__":
    main()
