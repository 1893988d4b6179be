"""`graft train` beside transformers' Seq2SeqTrainer, same rows and steps: `beside_seq2seq_trainer.py --data FOLDER`."""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import torch
from driving import begun, flags
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)
from transformers.utils import logging

import graftwork as gw
from graftwork.core.metric import score
from graftwork.core.task import Task
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.separated import records
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.registry import metrics

RESULTS = Path(__file__).parent.absolute() / "results"
SETS = {  # name -> the columns of source and target, and its file of test
    "debian_summaries": ("text", "summary", "test.tsv"),
    "multi30k_en_de": ("source", "target", "test2016.tsv"),
}
SPLITS = ("train", "validation", "test")
TRAINER = "Seq2SeqTrainer"  # it trains every weight
METRICS = ("chrf", "bleu", "rougel")
LONGEST_SOURCE, LONGEST = 512, 128  # tokens


@dataclass(frozen=True)
class Setting:
    """What both train: files of rows, a network, and for how long."""

    name: str
    files: dict[str, Path]
    counts: dict[str, int]  # rows of each split
    network: str
    epochs: int
    batch: int
    precision: str

    def told(self) -> dict[str, Any]:
        """Return what rows that are compared have in common."""
        return {
            "set": self.name, "rows": self.counts, "network": Path(self.network).name, "epochs": self.epochs,
            "batch": self.batch, "precision": self.precision, "threads": torch.get_num_threads(),
        }  # fmt: skip

    def rows(self, split: str) -> list[dict[str, str]]:
        """Return the rows of a split."""
        with self.files[split].open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))


def drawn(name: str, rows: dict[str, int], seed: int, folder: Path) -> dict[str, Path]:
    """Write `rows` of each split, drawn by the seed, as CSV with the columns source and target."""
    source, target, test = SETS[name]
    found, left = {}, dict[str, Any]()
    for split, path in (("train", Path(name, "train.tsv.gz")), ("test", Path(name, test))):
        header, *lines = (record[1] for record in records(TextLines(path), "\t", quoted=False))  # type: ignore[index]
        places = np.random.default_rng(seed).permutation(len(lines))
        left[split] = [(lines[place][header.index(source)], lines[place][header.index(target)]) for place in places]
    left["validation"] = left["train"][rows["train"] :]
    for split, count in rows.items():
        found[split] = folder / f"{split}.csv"
        with found[split].open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([("source", "target"), *left[split][:count]])
    return found


def ours(setting: Setting, method: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train and score by Graftwork."""
    files = setting.files
    task = gw.Task(
        setting.name, files["train"], files["validation"], files["test"], kind="generation", metrics=METRICS
    )  # fmt: skip
    run = gw.train(
        task, method=method, seed=seed, backbone=f"hf:{setting.network}", epochs=setting.epochs,
        batch_size=setting.batch, precision=setting.precision, device="cpu", runs=folder / "runs",
        cache=folder / "cache",
    )  # fmt: skip
    profile, facts = run.result.profile, run.result.facts
    if "validation_by_epoch" not in facts:  # a baseline without a network
        return {"scores": dict(run.result.scores), "validation_loss": None}
    seconds = sum(profile[phase] for phase in ("forward", "backward", "optimiser"))
    return {
        "scores": dict(run.result.scores),
        "validation_loss": -max(facts["validation_by_epoch"][1:]),
        "steps": facts["steps"],
        "seconds": seconds,
        "tokens": setting.epochs * (facts["train_tokens_per_epoch"] + facts["target_tokens"]),
    }


def theirs(setting: Setting, rate: float, seed: int, folder: Path) -> dict[str, Any]:
    """Train every weight by Seq2SeqTrainer: AdamW, linear schedule with a tenth of warm-up, batches of near lengths."""
    tokenizer = AutoTokenizer.from_pretrained(setting.network)
    network = AutoModelForSeq2SeqLM.from_pretrained(setting.network, dtype=torch.float32)

    def encoded(split: str) -> list[dict[str, list[int]]]:
        return [
            {
                "input_ids": tokenizer(row["source"], truncation=True, max_length=LONGEST_SOURCE)["input_ids"],
                "labels": tokenizer(text_target=row["target"], truncation=True, max_length=LONGEST)["input_ids"],
            }
            for row in setting.rows(split)
        ]

    data = {split: encoded(split) for split in setting.files}
    trainer = Seq2SeqTrainer(
        model=network,
        args=Seq2SeqTrainingArguments(
            output_dir=str(folder / "trainer"), num_train_epochs=setting.epochs, learning_rate=rate, seed=seed,
            per_device_train_batch_size=setting.batch, per_device_eval_batch_size=32, warmup_steps=0.1,
            train_sampling_strategy="group_by_length", bf16=setting.precision == "bf16", use_cpu=True,
            save_strategy="no", report_to=[], logging_strategy="no", predict_with_generate=True,
            generation_max_length=LONGEST, disable_tqdm=True,
        ),
        train_dataset=data["train"],  # type: ignore[arg-type]
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=network),
    )  # fmt: skip
    began = time.perf_counter()
    steps = trainer.train().global_step
    seconds = time.perf_counter() - began
    trainer.args.predict_with_generate = False
    loss = trainer.evaluate(data["validation"])["eval_loss"]  # type: ignore[arg-type]
    trainer.args.predict_with_generate = True
    trainer.args.train_sampling_strategy = "sequential"  # "group_by_length" would reorder the rows of test too
    written = trainer.predict(data["test"], num_beams=1).predictions  # type: ignore[arg-type]
    texts = tokenizer.batch_decode(np.where(written < 0, tokenizer.pad_token_id, written), skip_special_tokens=True)
    references, found = np.empty(len(texts), dtype=object), np.empty(len(texts), dtype=object)
    references[:], found[:] = [(row["target"],) for row in setting.rows("test")], [(text,) for text in texts]
    task = Task(setting.name, setting.files["train"], kind="generation")
    return {
        "scores": {name: score(metrics.get(name), references, found, task) for name in METRICS},
        "validation_loss": loss,
        "steps": steps,
        "seconds": seconds,
        "tokens": setting.epochs * sum(len(ids) for row in data["train"] for ids in row.values()),
        "learning_rate": rate,
    }


def kept(path: Path) -> list[dict[str, Any]]:
    """Return the finished rows, one for each (set, settings, system, seed, rate)."""
    return list(read_json(path)["runs"]) if path.is_file() else []


def orders(methods: Sequence[str], seeds: int, rates: Sequence[float]) -> Iterator[tuple[int, str, float | None]]:
    """Yield (seed, system, rate) in turn: with the first seed the Trainer at every rate, later at its best: None."""
    for seed in range(seeds):
        for method in methods:
            tried = rates if method == TRAINER and seed == 0 else [None]
            yield from ((seed, method, rate) for rate in tried)


def best_rate(done: Sequence[Mapping[str, Any]]) -> float:
    """Return the rate of the Trainer that has the least loss on validation with the first seed."""
    tried = [run for run in done if run["system"] == TRAINER and run["seed"] == 0]
    return float(min(tried, key=lambda run: float(run["validation_loss"]))["learning_rate"])


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Format the rows of one setting as Markdown: the Trainer at its best rate alone, speeds also beside its."""
    lines = [f"| system | seeds | {' | '.join(METRICS)} | validation loss | tokens/s | beside the Trainer |"]
    lines.append("|---|" + "---|" * (len(METRICS) + 4))
    peers = [run for run in runs if run["system"] == TRAINER]
    rate = best_rate(peers) if any(run["seed"] == 0 for run in peers) else None
    speed = {run["seed"]: run["tokens"] / run["seconds"] for run in peers if run["learning_rate"] == rate}
    for system in dict.fromkeys(run["system"] for run in runs):
        own = [run for run in runs if run["system"] == system and (system != TRAINER or run["learning_rate"] == rate)]
        cells = [f"{100 * mean(run['scores'][name] for run in own):.1f}" for name in METRICS]
        if own[0]["validation_loss"] is None:
            lines.append(f"| {system} | {len(own)} | {' | '.join([*cells, '', '', ''])} |")
            continue
        cells.append(f"{mean(run['validation_loss'] for run in own):.3f}")
        cells.append(f"{median(run['tokens'] / run['seconds'] for run in own):.0f}")
        ratios = [run["tokens"] / run["seconds"] / speed[run["seed"]] for run in own if run["seed"] in speed]
        cells.append(f"{median(ratios):.2f}" if ratios else "")
        lines.append(f"| {system} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measured(setting: Setting, system: str, seed: int, rate: float | None, folder: Path) -> dict[str, Any]:
    """Run one system once; return its row."""
    began = time.perf_counter()
    if system == TRAINER:
        assert rate is not None
        found = theirs(setting, rate, seed, folder)
    else:
        found = ours(setting, system, seed, folder)
    load = {"load_average": list(os.getloadavg()), "run_seconds": time.perf_counter() - began}
    return setting.told() | {"system": system, "seed": seed} | found | load | {"environment": environment()}


def main() -> None:
    """Run what is missing, append each row to the results as soon as it is there, and print the table."""
    parser = flags(__doc__, threads=torch.get_num_threads())
    parser.add_argument("--set", default="debian_summaries", choices=SETS)
    parser.add_argument("--network", required=True, help="folder of a T5")
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 200, 300], help="train [validation test]")
    parser.add_argument("--methods", nargs="*", default=[TRAINER, "full", "lora", "adapter", "top_layers"])
    parser.add_argument("--rates", type=float, nargs="*", default=[2e-4, 5e-4, 1e-3], help="of the Trainer")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", default="bf16", choices=("fp32", "bf16"), help="of both")
    chosen = parser.parse_args()
    begun(chosen)
    logging.set_verbosity_error()
    train, *rest = chosen.rows
    rows = dict(zip(SPLITS, (train, *(rest or (max(16, train // 5), max(16, 3 * train // 10)))), strict=True))
    path = RESULTS / f"{chosen.set}_{chosen.precision}.json"
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        files = drawn(chosen.set, rows, 0, Path(work))
        network = str(Path(chosen.network).expanduser().absolute())
        setting = Setting(chosen.set, files, rows, network, chosen.epochs, chosen.batch, chosen.precision)
        own: list[dict[str, Any]] = []
        for seed, system, given in orders(chosen.methods, chosen.seeds, chosen.rates):
            everything = kept(path)
            own = [run for run in everything if setting.told().items() <= run.items()]
            rate = best_rate(own) if system == TRAINER and given is None else given
            if any((run["system"], run["seed"], run.get("learning_rate")) == (system, seed, rate) for run in own):
                continue
            with tempfile.TemporaryDirectory() as place:
                own.append(measured(setting, system, seed, rate, Path(place)))
            write_json(path, {"status": "ok", "runs": [*everything, own[-1]]})
            print(f"{system}, seed {seed}: {own[-1]['run_seconds']:.0f} s", flush=True)
        print(table([run for run in kept(path) if setting.told().items() <= run.items()]), flush=True)


if __name__ == "__main__":
    main()
