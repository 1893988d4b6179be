"""Time batches over many tasks against one task and peft, in turn: `python benchmarks/bank/mixed.py --data FOLDER`."""

from __future__ import annotations

import argparse
import importlib.metadata
import random
import statistics
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModel, AutoTokenizer

from graftwork.backbones.minilm import package_folder
from graftwork.bank.mixed_batch import Mixture
from graftwork.core.backbone import Backbone
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.task import Task
from graftwork.data.readers.table import open_table
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.train.loop import FittedModel, build_model
from graftwork.train.probe import Probe

HERE = Path(__file__).parent
ROWS = 64
TASKS = (1, 4, 16, 64)
LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
MIXTURES = {
    "adapter": ("adapter",),
    "lora": ("lora",),
    "methods": ("linear_probe", "lora", "adapter", "bitfit"),
    "methods, top_layers too": ("linear_probe", "lora", "adapter", "bitfit", "top_layers"),
}
PROBES = 26


def module(backbone: Backbone, method: str, seed: int) -> TaskModule:
    """Return a task module with random weights; its cost does not depend on what it has learnt."""
    task = Task(f"{method} {seed}", Path(), labels=LABELS, metrics=("accuracy",))
    torch.manual_seed(seed)
    if method == "linear_probe":
        shares = torch.zeros(backbone.card.blocks + 1)
        shares[-1] = 1.0
        facts = {"block": str(backbone.card.blocks)}
        weight = torch.randn(len(LABELS), backbone.card.width)
        fitted: Any = Probe(backbone, shares, weight, torch.zeros(len(LABELS)), facts)
    else:
        setting = Setting(task, kinds.get("classification"), backbone)
        model = build_model(parse_method(method).method, setting, 1)  # type: ignore[arg-type]
        with torch.no_grad():
            for weight in model.delta().values():
                weight.add_(0.02 * torch.randn_like(weight))
        model.share_frozen_weights(backbone)
        fitted = FittedModel(model, {"towers": 1})
    return TaskModule(Path(), task, fitted, {"roles": ["text"]}, backbone)


def mixture_of(backbone: Backbone, methods: tuple[str, ...], tasks: int) -> Mixture:
    """Return a mixture of so many tasks, with the methods in turn."""
    mixture = Mixture()
    for number in range(tasks):
        mixture.put(f"task {number}", module(backbone, methods[number % len(methods)], number))
    return mixture


def ours(backbone: Backbone, methods: tuple[str, ...], tasks: int, texts: list[str]) -> Callable[[], Any]:
    """Return a call from texts to labels and probabilities: tokens, network and heads."""
    mixture, picked = mixture_of(backbone, methods, tasks), random.Random(tasks).sample(range(ROWS), ROWS)
    rows = [(f"task {picked[i] % tasks}", Example(f"row/{i}", {"text": text})) for i, text in enumerate(texts)]
    return lambda: mixture.answers(rows)


def peft_lora(folder: Path, tasks: int, texts: list[str]) -> Callable[[], Any]:
    """Return a call of peft's batches over many adapters, in bf16, padded together: tokens, network and pooling."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModel.from_pretrained(folder, dtype=torch.bfloat16)
    config = LoraConfig(r=8, lora_alpha=16, target_modules=["query", "value"], init_lora_weights=False)
    model = get_peft_model(network, config, adapter_name="task 0").eval()
    for number in range(1, tasks):
        model.add_adapter(f"task {number}", config)
    model = model.to(torch.bfloat16)
    picked = random.Random(tasks).sample(range(ROWS), ROWS)
    names = [f"task {place % tasks}" for place in picked]

    @torch.inference_mode()
    def answer() -> Any:
        inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        more = {"adapter_names": names} if tasks > 1 else {}
        states = model(**inputs, **more).last_hidden_state
        mask = inputs["attention_mask"][..., None]
        return ((states * mask).sum(1) / mask.sum(1)).float()

    return answer


def probes(backbone: Backbone, tasks: int, text: str) -> Callable[[], Any]:
    """Return a call that predicts one text with so many probes."""
    mixture, example = mixture_of(backbone, ("linear_probe",), tasks), Example("row/0", {"text": text})
    return lambda: mixture.answers([(name, example) for name in mixture.names()])


def timed(contenders: Mapping[str, Callable[[], Any]], rounds: int, calls: int) -> dict[str, dict[str, Any]]:
    """Time each contender in turn, in another order every round; a round's figure is the mean of some calls."""
    for answer in contenders.values():
        for _ in range(3):
            answer()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name in random.Random(number).sample(sorted(contenders), len(contenders)):
            begun = time.perf_counter()
            for _ in range(calls):
                contenders[name]()
            seconds[name].append((time.perf_counter() - begun) / calls)
    return {name: {"seconds": each, "median": statistics.median(each)} for name, each in seconds.items()}


def main() -> None:
    """Write `results/mixed.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set: trec6")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "mixed.json")
    chosen = parser.parse_args()
    texts = [str(row.cells[0]) for row in islice(open_table(chosen.data / "trec6/train.tsv").rows(["text"]), ROWS)]
    backbone = open_backbone("minilm", precision="bf16")
    before = environment()
    found: dict[str, Any] = {}
    for name, methods in MIXTURES.items():
        contenders = {f"{tasks}": ours(backbone, methods, tasks, texts) for tasks in TASKS[len(methods) > 1 :]}
        if len(methods) > 1:  # one task per method, to compare with their mean
            contenders |= {f"1 {method}": ours(backbone, (method,), 1, texts) for method in methods}
        if name == "lora":
            contenders |= {f"peft {tasks}": peft_lora(package_folder(), tasks, texts) for tasks in TASKS}
        found[name] = timed(contenders, chosen.rounds, 2)
        print(name, {key: round(1000 * one["median"], 1) for key, one in found[name].items()}, flush=True)
    text = {f"{tasks}": probes(backbone, tasks, texts[0]) for tasks in (1, PROBES)}
    found["probes"] = timed(text, chosen.rounds, 20)
    print("probes", {key: round(1000 * one["median"], 2) for key, one in found["probes"].items()}, flush=True)
    result = {
        "format": 1,
        "status": "ok",
        "environment": before,
        "peft": importlib.metadata.version("peft"),
        "rows": ROWS,
        "threads": torch.get_num_threads(),
        "rounds": chosen.rounds,
        "seconds": found,
    }
    write_json(chosen.out, result)


if __name__ == "__main__":
    main()
