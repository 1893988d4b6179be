"""Texts per processor second of a module: torch in fp32, its export to ONNX, and that in 8-bit integers.

    OMP_NUM_THREADS=1 python benchmarks/ship/onnx_speed.py MODULE ONNX ONNX_INT8 FILE [--out RESULT]

FILE is a TSV file with a column `text` first. One thread; batches of 32 texts sorted by length; the three take turns,
batch by batch, and each is timed on the processor's clock of this process.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from graftwork.module.task_module import TaskModule

BATCH, ROUNDS = 32, 3


def run() -> None:
    """Print and write the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("module", "onnx", "int8", "file"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    modules = {
        "torch fp32": TaskModule.load(given.module, device="cpu").in_fp32(),
        "onnx fp32": TaskModule.load(given.onnx),
        "onnx int8": TaskModule.load(given.int8),
    }
    texts = sorted((line.split("\t")[0] for line in given.file.read_text().splitlines()[1:]), key=len)
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    rates: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(ROUNDS + 1):
        spent = dict.fromkeys(modules, 0.0)
        for batch in batches:
            for name, module in modules.items():
                examples = module.examples(batch)
                start = time.process_time()
                module.fitted.logits(examples)
                spent[name] += time.process_time() - start
        for name, seconds in spent.items():
            rates[name].append(len(texts) / seconds)
    told = {name: {"median": float(np.median(found[1:])), "rounds": found[1:]} for name, found in rates.items()}
    for name, one in told.items():
        print(f"{name:12}{one['median']:8.0f} texts per processor second")
    if given.out is not None:
        given.out.write_text(json.dumps({"texts": len(texts), "batch": BATCH, "threads": 1, "rates": told}, indent=1))


if __name__ == "__main__":
    run()
