"""Spoken digits written down by a Whisper, zero-shot and trained on few rows: `speech_to_text.py --data FOLDER`."""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import torch
from driving import begun, flags

import graftwork as gw
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.targets.text_scores import normalised

RESULTS = Path(__file__).parent.absolute() / "results"
SET = "free_spoken_digits"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PRICES = ("train_cpu_seconds", "train_seconds", "total_seconds", "train_flops", "trained_parameters", "stored_bytes")
SPLITS = ("train", "validation", "test")


def drawn(rows: dict[str, int], seed: int, folder: Path) -> dict[str, Path]:
    """Write `rows` of each split, drawn by the seed, as TSV with the columns sound, transcript and label."""
    left: dict[str, list[dict[str, str]]] = {}
    for split in ("train", "test"):
        with Path(SET, f"{split}_list.tsv").open(encoding="utf-8", newline="") as stream:
            listed = list(csv.DictReader(stream, delimiter="\t"))
        left[split] = [listed[place] for place in np.random.default_rng(seed).permutation(len(listed))]
    left["validation"] = left["train"][rows["train"] :]
    files = {}
    for split, count in rows.items():
        files[split] = folder / f"{split}.tsv"
        lines = [("sound", "transcript", "label")]
        lines += [
            (str(Path(SET, row["file"]).absolute()), WORDS[int(row["label"])], row["label"]) for row in left[split]
        ]
        files[split].write_text("".join("\t".join(line) + "\n" for line in lines[: count + 1]), encoding="utf-8")
    return files


def measured(method: str, files: dict[str, Path], chosen: Any, work: Path) -> dict[str, Any]:
    """Train and score one method: error rates of the texts, share of digits that are right, and prices."""
    labels = method.startswith("classification ")
    column = {"label": "label"} if labels else {"label": "transcript", "kind": "generation"}
    task = gw.Task(SET, *(files[split] for split in SPLITS), sound="sound", **column)
    task = task if labels else task.resolved(longest=chosen.longest)
    name = method.removeprefix("classification ")
    run = gw.train(
        task, method=name, backbone=f"hf:{chosen.network}", epochs=chosen.epochs, batch_size=chosen.batch,
        precision=chosen.precision, device="cpu", runs=work / "runs", cache=work / "cache",
    )  # fmt: skip
    told = [json.loads(line) for line in (run.folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    test = [row for row in told if row["split"] == "test"]
    scores = dict(run.result.scores)
    return {
        "wer": 1 - scores["word_accuracy"] if not labels else None,
        "cer": 1 - scores["character_accuracy"] if not labels else None,
        "digits_right": scores["accuracy"] if labels else float(np.mean([_right(row) for row in test])),
        "prices": {price: run.result.costs[price].value for price in PRICES},
        "facts": {key: run.result.facts[key] for key in ("steps", "validation_by_epoch") if key in run.result.facts},
        "written": [] if labels else [[row["target"][0], row["prediction"]] for row in test[:20]],
    }


def _right(row: dict[str, Any]) -> bool:
    """Return whether a text is the digit, as a word or a figure."""
    word = row["target"][0]
    return normalised(row["prediction"]) in (word, str(WORDS.index(word)))


def table(result: dict[str, Any]) -> str:
    """Format the results as Markdown."""
    lines = [
        "| method | WER, % | digits right, % | training, processor s | TFLOP | stored, kB |",
        "|---|---|---|---|---|---|",
    ]
    for method, found in result["methods"].items():
        prices, wer = found["prices"], "–" if found["wer"] is None else f"{100 * found['wer']:.1f}"
        lines.append(
            f"| {method} | {wer} | {100 * found['digits_right']:.1f} | {prices['train_cpu_seconds']:.1f} | "
            f"{prices['train_flops'] / 1e12:.3g} | {prices['stored_bytes'] / 1000:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the methods one after the other; write `results/NAME.json` after each and print the table."""
    parser = flags(__doc__, threads=torch.get_num_threads())
    parser.add_argument("--network", required=True, help="folder of a Whisper")
    parser.add_argument("--rows", type=int, nargs=3, default=(100, 50, 100), metavar=("TRAIN", "VALIDATION", "TEST"))
    parser.add_argument(
        "--methods", nargs="*", default=["majority", "classification log_mel", "zero_shot", "top_layers:k=2", "adapter"]
    )
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--longest", type=int, default=16, help="tokens of a text")
    parser.add_argument("--precision", default="bf16", choices=("fp32", "bf16"))
    parser.add_argument("--name", default="spoken_digits")
    chosen = parser.parse_args()
    chosen.network = str(Path(chosen.network).expanduser().absolute())
    begun(chosen)
    rows = dict(zip(SPLITS, chosen.rows, strict=True))
    path, methods = RESULTS / f"{chosen.name}_{chosen.precision}.json", dict[str, Any]()
    with tempfile.TemporaryDirectory() as work:
        files = drawn(rows, 0, Path(work))
        for method in chosen.methods:
            methods[method] = measured(method, files, chosen, Path(work))
            result = {
                "status": "ok", "environment": environment(), "set": SET, "rows": rows, "epochs": chosen.epochs,
                "batch": chosen.batch, "precision": chosen.precision, "threads": torch.get_num_threads(),
                "network": Path(chosen.network).name, "methods": methods,
            }  # fmt: skip
            path.parent.mkdir(exist_ok=True)
            write_json(path, result)
            print(table(read_json(path)), flush=True)


if __name__ == "__main__":
    main()
