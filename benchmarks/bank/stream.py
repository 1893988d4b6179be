"""Add 100 tasks to one bank, one by one, and fine-tune one network on 25 of them as the contrast that forgets:
`python benchmarks/bank/stream.py --data FOLDER --work FOLDER`.

25 published data sets x 4 sizes. After each add every earlier task's self-test is recomputed and compared bit for bit,
with its files' hashes. The bar: task 1 is bit-identical after each add, and the time of an add is constant within 10 %
(the median of the last 25 adds against that of the first 25). Results are kept in the work folder, so an interrupted
benchmark resumes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from stream_plot import write_plot

import graftwork as gw
from graftwork.bank.forgetting import figures
from graftwork.bank.stream import CONTRAST, stream
from graftwork.machine.environment import environment

HERE = Path(__file__).parent
SIZES = (400, 300, 200, 100)  # rows of train
VALIDATION, TEST = 100, 200  # rows, at most
TEXT, PAIR = ("text",), ("text_a", "text_b")


@dataclass(frozen=True)
class Source:
    """A data set: its files in the collection, and its text columns. The label's column is always `label`."""

    train: str
    test: str | None = None  # None: drawn from the first file
    columns: tuple[str, ...] = TEXT
    kind: str = "classification"


SOURCES = {
    "ag_news": Source("train.tsv.gz", "test.tsv"),
    "banking77": Source("train.tsv", "test.tsv"),
    "clinc150": Source("train.tsv", "test.tsv"),
    "cola": Source("train.tsv", "dev.tsv"),
    "cr": Source("all.tsv"),
    "crowdflower_airline": Source("all.tsv.gz"),
    "crowdflower_corporate_messaging": Source("all.tsv"),
    "crowdflower_disasters": Source("all.tsv"),
    "crowdflower_emotion": Source("all.tsv.gz"),
    "crowdflower_global_warming": Source("all.tsv"),
    "crowdflower_political_audience": Source("all.tsv"),
    "crowdflower_political_bias": Source("all.tsv"),
    "crowdflower_political_message": Source("all.tsv"),
    "crowdflower_primary_emotions": Source("all.tsv"),
    "crowdflower_us_economic_performance": Source("all.tsv.gz"),
    "mr": Source("all.tsv"),
    "mrpc": Source("train.tsv", "test.tsv", PAIR),
    "news_aggregator_head": Source("all.tsv"),
    "sick_nli": Source("train.tsv", "test.tsv", PAIR),
    "sms_spam": Source("all.tsv"),
    "snli": Source("dev.tsv", "test.tsv", PAIR),  # its training file is not in the collection: dev is the training data
    "sst5": Source("train.tsv", "test.tsv"),
    "stsb": Source("train.tsv", "test.tsv", PAIR, "regression"),
    "trec6": Source("train.tsv", "test.tsv"),
    "tweet_stance_atheism": Source("train.tsv", "test.tsv"),
}


def rows_of(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the given columns of an unquoted TSV file, each row once, sorted by a hash of their content."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    header, *lines = (line.split("\t") for line in content.decode("utf-8").rstrip("\n").split("\n"))
    places = [header.index(column) for column in columns]
    found = dict.fromkeys(tuple(line[place].rstrip("\r") for place in places) for line in lines)  # each row once
    return sorted(found, key=lambda row: hashlib.sha256("\t".join(row).encode()).digest())


def write_task(name: str, size: int, most: int, data: Path, work: Path) -> gw.Task:
    """Write the task with `size` rows of train; sizes up to `most` share validation and test, less unknown labels."""
    source, folder = SOURCES[name], work / "data" / f"{name}-{size}"
    columns = (*source.columns, "label")
    first = rows_of(data / name / source.train, columns)
    train, rest = first[:size], first[most:]
    validation, rest = rest[:VALIDATION], rest[VALIDATION:]
    test = (rows_of(data / name / source.test, columns) if source.test else rest)[:TEST]
    labels = {row[-1] for row in train}
    known = [row for row in test if row[-1] in labels or source.kind == "regression"]
    checked = [row for row in validation if row[-1] in labels or source.kind == "regression"]
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in {"train": train, "validation": checked, "test": known}.items():
        lines = ["\t".join(row) for row in (columns, *rows)]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    given = {split: folder / f"{split}.tsv" for split in ("validation", "test")}
    return gw.Task.from_file(folder / "train.tsv", name=f"{name}-{size}", kind=source.kind, **given)


class Watch:
    """A listener that records every add and checks task 1 itself, independently of the comparison in the stream."""

    def __init__(self, bank: Path):
        self.bank = bank
        self.adds: list[dict[str, Any]] = []
        self.first: tuple[str, str] | None = None
        self.name = ""

    def note(self, row: dict[str, Any]) -> None:
        """Record a row of the stream, once its task is in the bank."""
        if "failed" in row:
            print(f"{row['task']}: {row['failed']}", flush=True)
            return
        self.name = self.name or row["task"]
        looked = self._look()
        self.first = self.first or looked
        kept = ("task", "kind", "rows", "metric", "score", "bytes", "seconds", "trained_parameters")
        self.adds.append(
            {key: row[key] for key in kept}
            | {"compared": row["earlier"]["compared"], "first_task_identical": looked == self.first}
            | {"reused": bool(row.get("reused")), "bank_bytes": size_of(self.bank)}
        )
        seconds = row["seconds"]["add"] or 0.0
        print(f"{len(self.adds):4}  {row['task']:<44}{row['score']['score']:.3f}  {seconds:.3f} s", flush=True)

    def _look(self) -> tuple[str, str]:
        """Return hashes of the first task's files and of its answers to its self-test."""
        folder = self.bank / "tasks" / self.name / "1"
        content = hashlib.sha256()
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                content.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
        answered = gw.TaskModule.load(folder).tested
        assert answered is not None
        return content.hexdigest(), hashlib.sha256(answered.tobytes()).hexdigest()


def size_of(folder: Path) -> int:
    """Return the total bytes of its files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def summary(adds: Sequence[dict[str, Any]], contrast: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Compute the results that the benchmark asks for."""
    part = max(1, len(adds) // 4)
    seconds = [add["seconds"]["add"] for add in adds if add["seconds"]["add"] is not None]
    early, late = statistics.median(seconds[:part]), statistics.median(seconds[-part:])
    with_bank = [add["score"]["score"] for add in adds[: len(contrast)]]
    return {
        "tasks": len(adds),
        "first_task_identical_after_every_add": all(add["first_task_identical"] for add in adds),
        "comparisons": sum(add["compared"] for add in adds),
        "add_seconds_median_first_quarter": early,
        "add_seconds_median_last_quarter": late,
        "add_seconds_ratio": late / early,
        "median_bytes_of_a_task": statistics.median(add["bytes"] for add in adds),
        "bank_average_on_the_contrast's_tasks": statistics.fmean(with_bank) if with_bank else None,
        "contrast": vars(figures(contrast)) if contrast else None,
    }


def baseline(tasks: Sequence[gw.Task], work: Path) -> list[float]:
    """Return the score of the majority class, or of the mean, on each task."""
    runs = [gw.train(task, method="majority", runs=work / "runs", cache=work / "cache") for task in tasks]
    return [run.result.scores[task_metric(run)] for run in runs]


def task_metric(run: Any) -> str:
    """Return the headline metric."""
    return str(next(iter(run.result.scores)))


def main() -> None:
    """Write `results/stream.json` and `results/stream.svg`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--work", type=Path, required=True, help="for the rows, the runs, the cache and the bank")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--method", default="adapter")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--sets", type=int, default=len(SOURCES), help="only the first so many data sets")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="rows of train, the largest first")
    parser.add_argument("--contrast", type=int, default=len(SOURCES), help="tasks of the contrast that forgets")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    sizes, names = [int(size) for size in chosen.sizes.split(",")], list(SOURCES)[: chosen.sets]
    work = chosen.work.absolute()
    tasks = [write_task(name, size, max(sizes), chosen.data, work) for size in sizes for name in names]
    settings = {"epochs": chosen.epochs, "runs": work / "runs", "cache": work / "cache", "progress": quiet}
    start, watch = time.perf_counter(), Watch(work / "tasks.bank")
    done = stream(tasks, work / "tasks.bank", method=chosen.method, told=watch.note, **settings)
    bank_seconds, failed = time.perf_counter() - start, dict(done.failed)
    some, start = tasks[: chosen.contrast], time.perf_counter()
    forgets = stream(some, work / "tasks.bank", method=CONTRAST, told=say, **settings) if some else None
    matrix = forgets.content.get("matrix", []) if forgets else []
    content = {
        "status": "ok" if not failed and len(matrix) == len(some) else "with failures",
        "question": "Does adding 100 tasks leave the earlier ones as they were, at the same price for each?",
        "settings": {
            "method": chosen.method, "epochs": chosen.epochs, "sizes": sizes, "data_sets": names, "seed": 0,
            "threads": chosen.threads,
        },
        "summary": summary(watch.adds, matrix),
        "adds": watch.adds,
        "contrast": {
            "method": CONTRAST,
            "tasks": [row["task"] for row in forgets.content["tasks"]] if forgets else [],
            "matrix": matrix,
            "figures": [row["figures"] for row in forgets.content["tasks"]] if forgets else [],
            "majority": baseline(some, work),
            "failed": dict(forgets.failed) if forgets else {},
        },
        "failed": failed,
        "wall_seconds": {"bank": bank_seconds, "contrast": time.perf_counter() - start},
        "environment": environment(),
    }  # fmt: skip
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "stream.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_plot(content, chosen.out / "stream.svg")
    print(json.dumps(content["summary"], indent=1))


def quiet(done: float, text: str) -> None:
    """Ignore progress: a line is printed for every task instead."""


def say(row: dict[str, Any]) -> None:
    """Print a line for a task of the contrast."""
    if "failed" in row:
        print(f"{row['task']}: {row['failed']}", flush=True)
        return
    lost = row["figures"]["forgetting"]
    print(f"  {row['task']:<44}{row['score']['score']:.3f}  average now {row['figures']['average']:.3f}"
          f"{'' if lost is None else f', forgotten {lost:.3f}'}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
