"""`graft train` beside transformers' Seq2SeqTrainer, same rows and steps: `beside_seq2seq_trainer.py --data FOLDER`."""

from __future__ import annotations

import csv
import sys
import tempfile
import time
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
METRICS = ("chrf", "bleu", "rougel")
LONGEST_SOURCE, LONGEST = 512, 128  # tokens


@dataclass(frozen=True)
class Setting:
    """What both train: files of rows, a network, and for how long."""

    name: str
    files: dict[str, Path]
    network: str
    epochs: int
    batch: int
    precision: str

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


def table(result: dict[str, Any]) -> str:
    """Format the results as Markdown."""
    lines = [f"| {result['set']}, {result['precision']} | {' | '.join(METRICS)} | validation loss | tokens/s |"]
    lines.append("|---|" + "---|" * (len(METRICS) + 2))
    for system, runs in result["systems"].items():
        cells = [f"{100 * mean(run['scores'][name] for run in runs):.1f}" for name in METRICS]
        cells.append(f"{mean(run['validation_loss'] for run in runs):.3f}")
        cells.append(f"{median(run['tokens'] / run['seconds'] for run in runs):.0f}")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run the systems one after the other, seed by seed; write `results/NAME_PRECISION.json` and print the table."""
    parser = flags(__doc__, threads=torch.get_num_threads())
    parser.add_argument("--set", default="debian_summaries", choices=SETS)
    parser.add_argument("--network", required=True, help="folder of a T5")
    parser.add_argument("--rows", type=int, nargs=3, default=(1000, 200, 300), metavar=("TRAIN", "VALIDATION", "TEST"))
    parser.add_argument("--methods", nargs="*", default=["full", "lora", "adapter", "top_layers"])
    parser.add_argument("--rates", type=float, nargs="*", default=[2e-4, 5e-4, 1e-3], help="of the Trainer")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    chosen = parser.parse_args()
    begun(chosen)
    logging.set_verbosity_error()
    rows = dict(zip(("train", "validation", "test"), chosen.rows, strict=True))
    path = RESULTS / f"{chosen.set}_{chosen.precision}.json"
    with tempfile.TemporaryDirectory() as work:
        files = drawn(chosen.set, rows, 0, Path(work))
        network = str(Path(chosen.network).expanduser().absolute())
        setting = Setting(chosen.set, files, network, chosen.epochs, chosen.batch, chosen.precision)
        rate, systems = chosen.rates[0], dict[str, list[dict[str, Any]]]()
        for seed in range(chosen.seeds):
            if seed == 0:  # the Trainer's rate is the one with the least loss on validation
                tried = [theirs(setting, one, seed, Path(work)) for one in chosen.rates]
                best = min(tried, key=lambda run: float(run["validation_loss"]))
                rate, peer = best["learning_rate"], best
            else:
                peer = theirs(setting, rate, seed, Path(work))
            systems.setdefault("Seq2SeqTrainer, every weight", []).append(peer)
            for method in chosen.methods:
                systems.setdefault(f"graft, {method}", []).append(ours(setting, method, seed, Path(work)))
            result = {
                "status": "ok", "environment": environment(), "set": chosen.set, "rows": rows, "seeds": seed + 1,
                "epochs": chosen.epochs, "batch": chosen.batch, "precision": chosen.precision,
                "threads": torch.get_num_threads(), "network": Path(network).name, "systems": systems,
            }  # fmt: skip
            path.parent.mkdir(exist_ok=True)
            write_json(path, result)
            print(table(read_json(path)), flush=True)


if __name__ == "__main__":
    main()
