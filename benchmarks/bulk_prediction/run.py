"""Time bulk prediction against sentence-transformers, pass by pass in turn: `python run.py --data FOLDER`."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import subprocess
import sys
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graftwork.data.readers.table import open_table
from graftwork.io.files import write_json
from graftwork.machine.environment import environment

HERE = Path(__file__).parent.absolute()
WORKER = HERE / "contender.py"
CONTENDERS = ("graftwork", "sentence_transformers", "sentence_transformers_best")
FILES = {"trec6": ("trec6/train.tsv", 5), "imdb": ("imdb/test.tsv.gz", 1)}  # file; factor of --rows


class Contender:
    """A process that has loaded its network and the texts, and waits for commands."""

    def __init__(self, name: str, texts: Path, threads: int, stack: ExitStack):
        self.name = name
        command = [sys.executable, str(WORKER), name, str(texts), str(threads)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process = stack.enter_context(process)
        stack.callback(process.kill)

    def ask(self, question: str, data: str) -> Any:
        """Ask one question and return the answer; the other processes are idle meanwhile."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([question, data]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} ended while it was asked for {question} {data}")
        return json.loads(answer)


def read_texts(folder: Path, rows: int) -> dict[str, list[str]]:
    """Return the first texts of each data set, in the file's order."""
    found = {}
    for name, (file, times) in FILES.items():
        listed = open_table(folder / file).rows(["text"])
        found[name] = [str(row.cells[0]) for row in islice(listed, rows * times)]
    return found


def measure(contenders: list[Contender], data: str, rounds: int) -> dict[str, dict[str, Any]]:
    """Warm each contender up, then time one pass of each in turn, rotating the order every round."""
    settings = {one.name: one.ask("warm_up", data) for one in contenders}
    seconds: dict[str, list[float]] = {one.name: [] for one in contenders}
    for number in range(rounds):
        shift = number % len(contenders)
        for one in contenders[shift:] + contenders[:shift]:
            seconds[one.name].append(one.ask("pass", data))
            print(f"{data}, round {number + 1}: {one.name} {seconds[one.name][-1]:.2f} s", flush=True)
    return {name: {"seconds": seconds[name], **settings[name]} for name in seconds}


def agreement(contenders: list[Contender], data: str) -> dict[str, dict[str, float]]:
    """Return the cosine of each contender's embeddings with those of sentence-transformers' defaults: mean, lowest."""
    found = {one.name: np.array(one.ask("embed", data)) for one in contenders}
    unit = {name: rows / np.linalg.norm(rows, axis=1, keepdims=True) for name, rows in found.items()}  # (N, D)
    cosines = {name: (rows * unit["sentence_transformers"]).sum(axis=1) for name, rows in unit.items()}
    return {name: {"mean": float(each.mean()), "lowest": float(each.min())} for name, each in cosines.items()}


def main() -> None:
    """Write `results/NAME.json`; `table.py` prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--rows", type=int, default=1000, help="texts of imdb at most; of trec6 five times as many")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="default: results/THREADS_threads.json")
    chosen = parser.parse_args()
    texts = read_texts(chosen.data, chosen.rows)
    out = chosen.out or HERE / "results" / f"{chosen.threads}_threads.json"
    result: dict[str, Any] = {
        "format": 1,
        "status": "failed",
        "environment": environment(),
        "sentence_transformers": importlib.metadata.version("sentence-transformers"),
        "arguments": {"rows": chosen.rows, "rounds": chosen.rounds, "threads": chosen.threads},
        "data": {},
    }
    given = out.with_suffix(".texts")
    write_json(given, texts)
    try:
        with ExitStack() as stack:
            contenders = [Contender(name, given, chosen.threads, stack) for name in CONTENDERS]
            for name, listed in texts.items():
                timed = measure(contenders, name, chosen.rounds)
                for one in timed.values():
                    one["texts_per_second"] = len(listed) / statistics.median(one["seconds"])
                compared = agreement(contenders, name)
                result["data"][name] = {"texts": len(listed), "contenders": timed, "cosine": compared}
        result["status"] = "ok"
    finally:
        given.unlink()
        write_json(out, result)


if __name__ == "__main__":
    main()
