"""Small draws of data sets, every method with every seed, for the prior to learn from: `python small.py --data FOLDER`.

Most users label a few hundred rows, and the other benchmarks have thousands. For each run its scores, its time, and the
bits of the correct validation rows are kept: enough to replay any order of decisions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "many_tasks"))  # before the `run` beside this file

from driving import compared

import graftwork as gw
import run as many_tasks
from graftwork.decision.earlier_boards import record_of
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.run.store import read_result

HERE = Path(__file__).parent.absolute()
DRAWS = {  # data set -> rows of train
    "cr": 400, "tweet_stance_atheism": 400, "trec6": 300, "sst2": 500, "crowdflower_airline": 300,
    "crowdflower_disasters": 500, "cola": 600, "mrpc": 500, "clinc150": 900, "ag_news": 250, "sick_nli": 700,
    "sst5": 500, "crowdflower_emotion": 600, "sms_spam": 250, "wic": 500, "trec50": 700,
    "crowdflower_global_warming": 400, "news_aggregator_head": 400, "crowdflower_primary_emotions": 500,
    "banking77": 800, "mr": 300, "snli": 800, "crowdflower_us_economic_performance": 300, "rte": 350,
    "crowdflower_political_bias": 350, "crowdflower_corporate_messaging": 300, "crowdflower_political_message": 500,
    "qnli": 400,
}  # fmt: skip
METHODS = (
    "majority", "tfidf_svm", "dan", "linear_probe", "prototype", "scalar_mix", "top_layers:k=1", "top_layers",
    "top_layers:k=3", "lora", "adapter", "full",
)  # fmt: skip
TEST_ROWS = 1000  # at most
VALIDATION_SHARE, VALIDATION_ROWS = 7, 40  # train rows per validation row, and least validation rows
SEEDS = 3


def task_of(name: str, data: Path, work: Path) -> gw.Task:
    """Return a draw of a data set; its files are written to `work`."""
    rows = DRAWS[name]
    many_tasks.TEST_ROWS, many_tasks.VALIDATION_ROWS = TEST_ROWS, max(VALIDATION_ROWS, rows // VALIDATION_SHARE)
    drawn = many_tasks.splits_of(data / name, rows)
    folder = work / f"{name}_{rows}"
    folder.mkdir(parents=True, exist_ok=True)
    files = {split: folder / f"{split}.tsv" for split in drawn}
    for split, of_split in drawn.items():
        columns = [column for column in ("text", "text_a", "text_b", "label") if column in of_split[0]]
        lines = ["\t".join(columns), *("\t".join(row[column] for column in columns) for row in of_split)]
        files[split].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return gw.Task.from_file(files["train"], name=folder.name, validation=files["validation"], test=files["test"])


def kept(board: Mapping[str, Any], runs: Path) -> dict[str, Any]:
    """Return the committed part of a board: what the prior learns from, and what a replay needs."""
    metric = board["headline_metric"]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in board["rows"]:
        for run in row["runs"]:
            result = read_result(runs / run / "result.json")
            if result.status == "ok":
                found.setdefault(row["method"], []).append({
                    "seed": result.seed, "validation": result.validation[metric], "test": result.scores[metric],
                    "seconds": result.costs["train_seconds"].value, "right": _right(runs / run, metric),
                })  # fmt: skip
    record = record_of(board, f"small/{board['task']['name']}").content()
    return {"record": record, "metric": metric, "rows": board["task"]["rows"], "runs": found}


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a kept task with some of its methods measured again."""
    others = [score for score in old["record"]["scores"] if score["label"] not in new["runs"]]
    record = {**new["record"], "scores": [*others, *new["record"]["scores"]]}
    return {**new, "record": record, "runs": {**old["runs"], **new["runs"]}}


def _right(run: Path, metric: str) -> str | None:
    """Return the bits of a run's correct validation rows as hexadecimal digits; None if the metric is not accuracy."""
    if metric != "accuracy":
        return None
    lines = map(json.loads, (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines())
    right = [line["target"] == line["prediction"] for line in lines if line["split"] == "validation"]
    return np.packbits(right).tobytes().hex()


def main() -> None:
    """Run all draws; finished runs are reused, and each task is written when complete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(DRAWS))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--work", type=Path, default=Path("small_data"))
    parser.add_argument("--out", type=Path, default=HERE / "results" / "small.json")
    parser.add_argument("--methods", nargs="*", default=METHODS, help="measure these again, and keep the others' rows")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs, data, work = (path.absolute() for path in (chosen.runs, chosen.data, chosen.work))
    for name in chosen.names:
        task = task_of(name, data, work)
        out = work / "boards" / task.name
        settings = {"methods": list(chosen.methods), "seeds": chosen.seeds, "precision": "fp32", "jobs": chosen.jobs}
        board = compared(task, runs=runs, out=out, **settings)
        there = read_json(chosen.out)["tasks"] if chosen.out.is_file() else []
        at = {one["record"]["name"]: one for one in there}
        found, name = kept(board.content, runs), f"small/{task.name}"
        at[name] = merged(at[name], found) if name in at else found
        write_json(chosen.out, {"tasks": list(at.values()), "environment": environment()})


if __name__ == "__main__":
    main()
