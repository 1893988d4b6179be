"""Measure the memory of resident tasks: `python benchmarks/bank/memory.py`."""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
from mixed import LABELS, module

from graftwork.bank.mixed_batch import Mixture
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.module.task_module import TaskModule, save_module
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.serve.server import keep_few_kernels

HERE = Path(__file__).parent
COUNTS = (1, 100, 1000)
METHODS = ("adapter", "lora")
EXAMPLES = [Example(f"row/{i}", {"text": text}) for i, text in enumerate(("Who wrote Hamlet ?", "How far is it ?"))]


def stored(folder: Path, method: str, precision: str) -> Path:
    """Save a module with random weights and return its folder; memory does not depend on the weights' values."""
    backbone = open_backbone("minilm", precision=precision)
    made, named = module(backbone, method, 0), parse_method(method)
    told = {"run": "", "method": named.config, "recipe": {}, "precision": precision, "backbone_seed": None}
    told |= {"scores": {}, "trained_parameters": made.fitted.trained_parameters}
    setting = Setting(made.task, kinds.get("classification"), backbone)
    save_module(folder, setting, made.fitted, told, EXAMPLES, made.fitted.logits(EXAMPLES))
    return folder


def resident_bytes() -> int:
    """Return the resident memory of this process, after releasing unused memory."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def measure(folder: Path) -> dict[str, Any]:
    """Measure in this process: the backbone alone, then increasing numbers of tasks, each opened, tested and used."""
    keep_few_kernels()
    mixture, found = Mixture(), {}
    backbone = open_backbone("minilm", precision=read_json(folder / "module.json")["precision"])
    backbone.features(backbone.collate(backbone.encode(EXAMPLES), [0, 1]))
    weights = sum(weight.numel() * weight.element_size() for weight in backbone.module.parameters())
    found["backbone"] = {"weights_bytes": weights, "process_bytes": resident_bytes()}
    for count in COUNTS:
        for number in range(len(mixture.names()), count):
            mixture.put(f"task {number}", TaskModule.load(folder, backbone=backbone))
        mixture.answers([(name, EXAMPLES[0]) for name in mixture.names()])
        found[str(count)] = {"process_bytes": resident_bytes()}
    found["file_bytes"] = (folder / "delta.safetensors").stat().st_size
    return found


def main() -> None:
    """Write `results/memory.json`; each method is measured in its own process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "memory.json")
    parser.add_argument("--of", type=Path, help="a module's folder: measure it here, write into --out")
    chosen = parser.parse_args()
    if chosen.of:
        write_json(chosen.out, measure(chosen.of))
        return
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for method in METHODS:
            folder, out = stored(Path(name) / method, method, "bf16"), Path(name) / f"{method}.json"
            command = [sys.executable, __file__, "--of", str(folder), "--out", str(out)]
            subprocess.run(command, check=True)
            found[method] = read_json(out)
            print(method, found[method], flush=True)
    result = {"format": 1, "status": "ok", "environment": environment(), "labels": len(LABELS), "methods": found}
    write_json(chosen.out, result)


if __name__ == "__main__":
    main()
