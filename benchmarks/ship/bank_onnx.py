"""A hundred tasks in one ONNX graph: their cost on disk and in memory, mixed batches, and whether labels are equal.

    OMP_NUM_THREADS=1 python benchmarks/ship/bank_onnx.py FILE MODULE … [--tasks 100] [--tasks-as int8] [--out RESULT]

FILE is a TSV file with a column `text` first, of at least 64 rows. The tasks are copies of the modules in turn, whose
trained weights are shaken by noise of a tenth of their standard deviation: tasks of real shapes, of no real use.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from graftwork.bank.exported_bank import ExportedBank
from graftwork.io.files import file_digest
from graftwork.module.task_module import TaskModule
from graftwork.ship.export_bank import export_bank

ROWS, ROUNDS, NOISE = 64, 7, 0.1
MEMORY = """
import sys
from graftwork.bank.exported_bank import ExportedBank
import numpy, onnxruntime, tokenizers
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS:")) * 1024
before = resident()
opened = ExportedBank.open(sys.argv[1])
rows = [(name, "a text") for name in opened.tasks][:64]
opened.predict(rows[:1])
print(resident() - before)
opened.predict(rows)
print(resident() - before)
"""


def shaken(module: TaskModule, folder: Path, rng: np.random.Generator) -> TaskModule:
    """Return a copy of `module` in the new `folder`, with noise on its weights and a self-test of its own."""
    shutil.copytree(module.folder, folder)
    tensors = load_file(folder / "delta.safetensors")
    for name, array in tensors.items():
        if name != "shares" and array.dtype.kind == "f":
            noise = rng.standard_normal(array.shape) * array.std() * NOISE
            tensors[name] = (array + noise).astype(array.dtype)
    save_file(tensors, folder / "delta.safetensors")
    described = dict(module.description) | {"delta_sha256": file_digest(folder / "delta.safetensors")}
    (folder / "module.json").write_text(json.dumps(described))
    found = replace(module, folder=folder, description=described).in_fp32()
    test = json.loads((folder / "selftest.json").read_text())
    test["logits"] = found.fitted.logits(found.self_test_examples()).tolist()
    (folder / "selftest.json").write_text(json.dumps(test))
    return found


def memory(folder: Path) -> list[int]:
    """Return the resident bytes of the open folder in a new process, after one row and after a joint batch."""
    done = subprocess.run([sys.executable, "-c", MEMORY, str(folder)], capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def size(folder: Path) -> int:
    """Return the bytes of the files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def seconds(work: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median processor seconds of each, taking turns."""
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, one in work.items():
            start = time.process_time()
            one()
            found[name].append(time.process_time() - start)
    return {name: float(np.median(times[1:])) for name, times in found.items()}


def measured(
    modules: list[TaskModule], texts: list[str], tasks: int, tasks_as: str | None, places: Path
) -> dict[str, Any]:
    """Make the tasks, export them, and measure."""
    rng = np.random.default_rng(0)
    made = {f"t{n}": shaken(modules[n % len(modules)], places / f"t{n}", rng) for n in range(tasks)}
    start = time.process_time()
    told = export_bank(made, places / "many", to="onnx", tasks_as=tasks_as)
    spent = time.process_time() - start
    export_bank({"t0": made["t0"]}, places / "one", to="onnx")
    many, one = ExportedBank.open(places / "many"), ExportedBank.open(places / "one")
    backbone = sum((places / "one" / name).stat().st_size for name in ("model.onnx", "tokenizer.json"))
    rows = [(f"t{n % tasks}", text) for n, text in enumerate(texts)]
    answers = many.predict(rows)
    own = [made[name].predict([text])[0] for name, text in rows]
    same = [found["label"] == expected["label"] for found, expected in zip(answers, own, strict=True)]
    held = {"many": memory(places / "many"), "one": memory(places / "one")}
    times = seconds(
        {
            "64 rows of 64 tasks": lambda: many.predict(rows),
            "64 rows of one task of many": lambda: many.predict([("t0", text) for text in texts]),
            "64 rows of a bank of one task": lambda: one.predict([("t0", text) for text in texts]),
        }
    )
    return {
        "tasks": tasks,
        "methods": [module.description["method"] for module in modules],
        "tasks_as": tasks_as or "fp16",
        "in_fp32": len(told["in_fp32"]),
        "not_in_int8": len(told.get("not_in_int8", ())),
        "largest_difference": told["largest_difference"],
        "disk": {"bytes": told["bytes"], "times_backbone": told["bytes"] / backbone},
        "of_it_adapters_and_heads": sum(p.stat().st_size for p in (places / "many").rglob("tasks/*.safetensors")),
        "memory": {name: dict(zip(("one_row", "joint_batch"), both, strict=True)) for name, both in held.items()}
        | {"times_one_task": held["many"][1] / held["one"][1]},
        "same_labels": float(np.mean(same)),
        "processor_seconds": times,
        "export_processor_seconds": spent,
    }


def run() -> None:
    """Print and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("modules", type=Path, nargs="+")
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--tasks-as", choices=("fp16", "int8"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    texts = [line.split("\t")[0] for line in given.file.read_text().splitlines()[1 : ROWS + 1]]
    modules = [TaskModule.load(folder, device="cpu") for folder in given.modules]
    with tempfile.TemporaryDirectory() as places:
        found = measured(modules, texts, given.tasks, given.tasks_as, Path(places))
    content = json.dumps(found, indent=1)
    print(content)
    if given.out is not None:
        given.out.write_text(content + "\n")


if __name__ == "__main__":
    run()
