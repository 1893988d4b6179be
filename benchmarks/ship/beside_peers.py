"""Smaller modules beside what other libraries make of the same teacher, with the same texts and students.

    python benchmarks/ship/beside_peers.py --data FOLDER --student FOLDER --peer-python PYTHON --onnx-python PYTHON

A line of JSON for each set, seed and sort of student is appended to `--out`; lines that are there are not computed
again. The table is printed from the file; with `--table` nothing else is done.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from compress import BATCH, measure_missing, say, stored, written

import graftwork as gw
from graftwork.core.example import Example
from graftwork.machine.thread_count import limited_to
from graftwork.module.task_module import TaskModule
from graftwork.module.trained_on import reopen_data

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "beside_peers.jsonl"
ROUNDS, TIMED = 5, 256
ANY_LOSS = 100.0  # of --allow: what is compared is the student, not the choice whether to keep it
PEERS = {  # sort -> the peer, and our rungs and runtime
    "int8": ("sentence-transformers int8", "merge", "onnx"),
    "student": ("SetFit distillation", "distil:student=hf:{student}", None),
    "static": ("model2vec", "distil:student=static", None),
}


class Peer:
    """A process of another environment that made a student and answers texts."""

    def __init__(self, python: str, asked: Mapping[str, Any], stack: ExitStack):
        command = [python, str(HERE / "peer_worker.py")]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process = stack.enter_context(process)
        stack.callback(process.kill)
        self.made = self._ask(asked)

    def answer(self, texts: Sequence[str]) -> tuple[list[int], float]:
        """Return the labels' places, and the processor seconds that they took."""
        said = self._ask({"answer": list(texts)})
        return said["labels"], said["seconds"]

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self._process.args} ended")
        said: dict[str, Any] = json.loads(line)
        return said


def texts_of(examples: Sequence[Example]) -> list[str]:
    """Return the texts."""
    return [str(one.inputs["text"]) for one in examples]


def answering(module: TaskModule, examples: Sequence[Example]) -> Callable[[Sequence[int]], tuple[list[int], float]]:
    """Return a function of rows that gives a module's labels for them and their processor seconds."""

    def answer(rows: Sequence[int]) -> tuple[list[int], float]:
        began = time.process_time()
        found = np.asarray(module.fitted.logits([examples[row] for row in rows])).argmax(axis=1).tolist()
        return found, time.process_time() - began

    return answer


def in_turn(sides: Mapping[str, Callable[[Sequence[int]], tuple[list[int], float]]], lengths: Sequence[int]) -> Any:
    """Return the texts per processor second of each side: the median of rounds, in turn on every batch."""
    ordered = sorted(range(min(TIMED, len(lengths))), key=lambda row: lengths[row])
    batches = [ordered[start : start + BATCH] for start in range(0, len(ordered), BATCH)]
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(ROUNDS + 1):  # the first one warms up
        spent = dict.fromkeys(sides, 0.0)
        for batch in batches:
            for name, answer in sides.items():
                spent[name] += answer(batch)[1]
        for name, seconds in spent.items() if turn else ():
            rounds[name].append(len(ordered) / seconds)
    return {name: statistics.median(rates) for name, rates in rounds.items()}


def measure(key: dict[str, Any], given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Train the teacher, make both students, and measure them on test."""
    task, file = written(key["set"], given, folder)
    run = gw.train(
        task, method="full", seed=key["seed"], precision="fp32", runs=folder / "runs", progress=say, device="cpu"
    )
    dataset = reopen_data(run.module.description["data"], task)[0]
    assert dataset is not None and file is not None
    peer_name, rungs, runtime = PEERS[key["sort"]]
    with TemporaryDirectory(dir=folder) as work, ExitStack() as stack, limited_to(1):
        teacher, small = Path(work) / "teacher", Path(work) / "small"
        gw.export(run.folder, teacher, to="sentence_transformers")
        began = time.process_time()
        found = gw.compress(
            run.folder, small, allow=ANY_LOSS, rungs=rungs.format(student=given.student), runtime=runtime, texts=file,
            seed=key["seed"], progress=say,
        )  # fmt: skip
        took = time.process_time() - began
        ours, test = TaskModule.load(small), dataset.test.examples
        with file.open(encoding="utf-8", newline="") as stream:
            further = [row["text"] for row in csv.DictReader(stream)]
        splits = {
            name: {"texts": texts_of(split.examples), "labels": np.asarray(split.targets).tolist()}
            for name, split in (("train", dataset.train), ("validation", dataset.validation))
        }
        answers = np.asarray(run.module.fitted.logits([Example(text, {"text": text}) for text in further]))
        asked = {"make": peer_name, "teacher": str(teacher), "student": str(given.student), "texts": further}
        peer = Peer(
            given.onnx_python if runtime else given.peer_python,
            {**asked, **splits, "answers": answers.argmax(axis=1).tolist()},
            stack,
        )
        texts = texts_of(test)
        sides = {
            "teacher": answering(run.module, test),
            "graftwork": answering(ours, test),
            peer_name: lambda rows: peer.answer([texts[row] for row in rows]),
        }
        whole = range(len(texts))
        right = {name: np.asarray(answer(whole)[0]) == dataset.test.targets for name, answer in sides.items()}
        return key | {
            "peer": peer_name, "kept": found["kept"], "test_rows": len(texts), "load": os.getloadavg()[0],
            "accuracy": {name: float(one.mean()) for name, one in right.items()},
            "only_one_right": [int((right["graftwork"] > right[peer_name]).sum()),
                               int((right["graftwork"] < right[peer_name]).sum())],
            "per_second": in_turn(sides, list(map(len, texts))),
            "seconds": {"graftwork": took, peer_name: peer.made.pop("seconds")}, "peer_facts": peer.made,
        }  # fmt: skip


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, a row for each finished line."""
    rows = [
        "| set | seed | sort | peer | teacher | ours | peer's | rows only we, only they have right | texts per second |"
        " ours, peer's | seconds to make |",
        "|---" * 11 + "|",
    ]
    for line in lines:
        sides = ("graftwork", line["peer"])
        scores, rates = line["accuracy"], line["per_second"]
        rows.append(
            f"| {line['set']} | {line['seed']} | {line['sort']} | {line['peer']} | {100 * scores['teacher']:.1f} | "
            + " | ".join(f"{100 * scores[side]:.1f}" for side in sides)
            + f" | {line['only_one_right'][0]}, {line['only_one_right'][1]} | {rates['teacher']:.0f} | "
            + ", ".join(f"{rates[side]:.0f}" for side in sides)
            + " | "
            + ", ".join(f"{line['seconds'][side]:.0f}" for side in sides)
            + " |"
        )
    return "\n".join(rows)


def main() -> None:
    """Measure what the file lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with one folder per data set")
    parser.add_argument("--student", type=Path, help="folder of the network that both distil into")
    parser.add_argument("--peer-python", help="a Python that can import setfit and model2vec")
    parser.add_argument("--onnx-python", help="a Python that can import optimum.onnxruntime and sentence_transformers")
    parser.add_argument("--sets", default="trec6,sst2,banking77")
    parser.add_argument("--sorts", default=",".join(PEERS))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--validation", type=int, default=600)
    parser.add_argument("--test", type=int, default=1_000)
    parser.add_argument("--texts", type=int, default=1_500)
    parser.add_argument("--work", type=Path, default=Path("work"), help="files, and runs, which are used again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the table alone")
    given = parser.parse_args()
    keys = [
        {"set": name, "sort": sort, "seed": int(seed), "rows": given.rows, "texts": given.texts}
        for name in given.sets.split(",")
        for seed in given.seeds.split(",")
        for sort in given.sorts.split(",")
    ]
    if not given.table:
        measure_missing(keys, given, measure)
    print(table(stored(given.out)))


if __name__ == "__main__":
    main()
