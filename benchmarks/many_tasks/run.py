"""Full fine-tuning, top layers, adapters, a probe and a linear model on many tasks: `python run.py --data FOLDER`."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from table import tables

sys.path.append(str(Path(__file__).parents[1]))

from driving import compared

import graftwork as gw
from graftwork.compare.sentences import verdict
from graftwork.compare.tasks_data import over_tasks
from graftwork.core.run import Recipe
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.run.store import read_result
from graftwork.train.recipe import EPOCHS, resolve
from graftwork.units import duration

HERE = Path(__file__).parent.absolute()
TASKS = (
    "crowdflower_airline", "crowdflower_corporate_messaging", "crowdflower_disasters", "crowdflower_emotion",
    "crowdflower_global_warming", "crowdflower_political_audience", "crowdflower_political_bias",
    "crowdflower_political_message", "crowdflower_primary_emotions", "crowdflower_us_economic_performance",
    "newsgroups20_headers", "sms_spam", "news_aggregator_head", "trec6", "cola", "mrpc", "rte", "banking77",
)  # fmt: skip
TOP = ("top_layers:k=1", "top_layers", "top_layers:k=3", "top_layers:k=5")  # the best on validation is "variable"
METHODS = ("majority", "tfidf_svm", "linear_probe", "adapter:size=16", "adapter", *TOP, "full")
VARIABLE, LINEAR = "variable", "tfidf_svm"
ON_BACKBONE = ("linear_probe", "adapter:size=16", "adapter", VARIABLE, "full")
ROWS, TEST_ROWS, VALIDATION_ROWS = 4000, 2000, 1000  # at most; ROWS of train, unless --rows is given
SEEDS = 3
TRAINED = (*TOP, "adapter:size=16", "adapter", "full")  # trained for the recipe's number of epochs
BOARD, CHOICE = "leaderboard.json", "variable.json"  # in a task's folder
# Seconds of a run per row of trec6's train, of 10 words, one thread (benchmarks/first_board), plus a base.
SECONDS = {
    "majority": 0.0, "tfidf_svm": 1e-4, "linear_probe": 2.7e-3, "adapter:size=16": 1.7e-2, "adapter": 1.8e-2,
    "top_layers:k=1": 4e-3, "top_layers": 8.4e-3, "top_layers:k=3": 1.1e-2, "top_layers:k=5": 1.7e-2,
    "full": 2.3e-2,
}  # fmt: skip
WORDS, MOST_WORDS, BASE = (
    10,
    190,
    2.0,
)  # words per row for these figures; words that the backbone reads at most; seconds

Row = dict[str, str]


def rows_of(folder: Path, name: str) -> list[Row]:
    """Return the rows of the unquoted file `name.tsv` or `name.tsv.gz`; empty if there is no such file."""
    for path in (folder / f"{name}.tsv", folder / f"{name}.tsv.gz"):
        if path.is_file():
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            header, *lines = raw.decode("utf-8").rstrip("\n").split("\n")
            return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    return []


def key_of(row: Row) -> str:
    """Return the key for drawing rows: their texts, so that equal rows are in one split."""
    texts = "\t".join(value for column, value in row.items() if column in ("text", "text_a", "text_b"))
    return hashlib.sha256(texts.encode()).hexdigest()


def splits_of(folder: Path, most: int) -> dict[str, list[Row]]:
    """Return train, validation and test of a data set, at most so many rows of each, drawn by a hash of their texts.

    The published test is the test; if its labels are hidden or there is none, dev is; without either, a fifth of all
    rows is drawn. A text of validation or test is never in train.
    """
    train, dev, test = (rows_of(folder, name) for name in ("train", "dev", "test"))
    train = train or rows_of(folder, "all")
    if not test and dev:
        test, dev = dev, []
    if not test:
        test = [row for row in train if int(key_of(row)[:8], 16) % 5 == 0]
        train = [row for row in train if int(key_of(row)[:8], 16) % 5]
    if not dev:
        dev = [row for row in train if int(key_of(row)[8:16], 16) % 8 == 0]
    tested = {key_of(row) for row in test}
    held = tested | {key_of(row) for row in dev}
    kept = {
        "train": ([row for row in train if key_of(row) not in held], most),
        "validation": ([row for row in dev if key_of(row) not in tested], min(VALIDATION_ROWS, max(50, most // 4))),
        "test": (test, TEST_ROWS),
    }
    drawn = {name: sorted(rows, key=lambda row: key_of(row)[16:])[:limit] for name, (rows, limit) in kept.items()}
    known = {row["label"] for row in drawn["train"]}
    return {name: [row for row in rows if row["label"] in known] for name, rows in drawn.items()}


def written(name: str, data: Path, work: Path, most: int) -> gw.Task:
    """Return the task over its drawn rows, which are written to `work`."""
    files = {}
    for split, rows in splits_of(data / name, most).items():
        files[split] = work / name / f"{split}.tsv"
        columns = [column for column in ("text", "text_a", "text_b", "label") if column in rows[0]]
        lines = ["\t".join(columns), *("\t".join(row[column] for column in columns) for row in rows)]
        files[split].parent.mkdir(parents=True, exist_ok=True)
        files[split].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return gw.Task.from_file(
        files["train"], name=name, validation=files["validation"], test=files["test"], metrics=("accuracy", "macro_f1")
    )


def forecast(task: gw.Task, seeds: int) -> float:
    """Return the rough seconds a task will take: those of trec6's runs, scaled by rows, words and epochs."""
    lines = task.data.read_text(encoding="utf-8").splitlines()[1:]
    words = statistics.fmean(min(MOST_WORDS, len(line.split())) for line in lines)
    labels = {line.rpartition("\t")[2] for line in lines}
    longer = resolve(Recipe(), len(lines), len(labels))["epochs"] / EPOCHS  # relative to trec6's runs
    sized = len(lines) * words / WORDS
    return seeds * sum(
        BASE + sized * seconds * (longer if name in TRAINED else 1.0) for name, seconds in SECONDS.items()
    )


def chosen_depths(board: Mapping[str, Any], runs: Path) -> dict[str, float]:
    """Return the mean validation accuracy over runs of each `top_layers`."""
    found = {}
    for row in board["rows"]:
        if row["method"] in TOP and row["status"] == "ok":
            results = [read_result(runs / run_id / "result.json") for run_id in row["runs"]]
            found[row["method"]] = statistics.fmean(result.validation["accuracy"] for result in results)
    return found


def with_variable(board: Mapping[str, Any], validation: Mapping[str, float]) -> dict[str, Any]:
    """Return the board with one row `variable` in place of all `top_layers`: the best of them on validation."""
    best = max(validation, key=lambda name: validation[name], default="")
    others = set(TOP) - {best}

    def renamed(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {key: VARIABLE if value == best else value for key, value in entry.items()}

    rows = [row | {"method": VARIABLE if row["method"] == best else row["method"]}
            for row in board["rows"] if row["method"] not in others]  # fmt: skip
    pairs = [renamed(pair) for pair in board["differences"] if not others & {pair["a"], pair["b"]}]
    return {**board, "rows": rows, "differences": pairs}


def main() -> None:
    """Run the benchmark. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(TASKS))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--work", type=Path, default=Path("many_tasks_data"), help="where the drawn rows are written")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--rows", type=int, default=ROWS, help="of train, at most")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--threads", type=int, default=1, help="of a run; one run at a time")
    parser.add_argument("--forecast", action="store_true", help="write the rows, say how long it will take, and stop")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs, out, work, data = (path.absolute() for path in (chosen.runs, chosen.out, chosen.work, chosen.data))
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)  # so that boards store relative paths
    tasks = [written(name, data, Path(), chosen.rows) for name in chosen.names]
    seconds = {task.name: forecast(task, chosen.seeds) for task in tasks}
    for name, expected in seconds.items():
        print(f"{name}: about {duration(expected)}", flush=True)
    print(f"all: about {duration(sum(seconds.values()))}, by one thread of benchmarks/first_board", flush=True)
    if chosen.forecast:
        return
    drawn = {"rows_of_train": chosen.rows, "seeds": chosen.seeds}
    others = [name for name, choice in choices(out).items() if {key: choice[key] for key in drawn} != drawn]
    if others:
        parser.error(f"{out} has boards of other rows or seeds: {', '.join(others)}. Give --out another folder")
    for task in tasks:
        board = compared(task, methods=METHODS, seeds=chosen.seeds, jobs=1, runs=runs, out=out / task.name)
        depths = {"depths": chosen_depths(board.content, runs)}
        write_json(out / task.name / CHOICE, drawn | depths | {"environment": environment()})
        write_json(out / "summary.json", summary(out) | drawn)
    print(tables(out))


def choices(out: Path) -> dict[str, dict[str, Any]]:
    """Return for each measured task: its rows and seeds, the environment, and the validation scores of its depths."""
    return {name: read_json(out / name / CHOICE) for name in TASKS if (out / name / CHOICE).is_file()}


def summary(out: Path) -> dict[str, Any]:
    """Return the summary of all existing boards, whenever they were measured."""
    depths = {name: choice["depths"] for name, choice in choices(out).items()}
    boards = {name: with_variable(read_json(out / name / BOARD), found) for name, found in depths.items()}
    return over_tasks(boards, {}, "full") | {
        "depths": depths,
        "linear": {name: linear(board) for name, board in boards.items()},
    }


def linear(board: Mapping[str, Any]) -> dict[str, Any]:
    """Return the board's verdict on the linear model against the best method on the backbone.

    `by` lists all methods shown to beat it, because the best may vary more between seeds than another.
    """
    metric = board["headline_metric"]
    means = {row["method"]: row["scores"][metric]["mean"] for row in board["rows"] if metric in row["scores"]}
    best = max((name for name in means if name in ON_BACKBONE), key=lambda name: means[name], default=None)
    if best is None or LINEAR not in means:
        return {}
    pair = next(pair for pair in board["differences"] if {pair["a"], pair["b"]} == {best, LINEAR})
    sign = 1 if pair["a"] == best else -1
    told = {"better": "worse", "worse": "better"}.get(pair["verdict"], pair["verdict"]) if sign < 0 else pair["verdict"]
    told = "unknown" if pair["p"] is None else told
    low, high = sorted((sign * pair["low"], sign * pair["high"]))
    beaten_by = [name for name in ON_BACKBONE if verdict(board, name, LINEAR) == "better"]
    return {"best": best, "delta": sign * pair["delta"], "low": low, "high": high, "verdict": told, "by": beaten_by}


if __name__ == "__main__":
    main()
