"""How much faster and smaller `graft compress --runtime onnx` makes a module, and what that costs in score.

    python benchmarks/ship/compress.py --data FOLDER [--sets trec6,sst2] [--teachers full] [--seeds 0] [--rows 600]

A line of JSON for each set, teacher and seed is appended to `--out` when it is done; lines that are there are not
computed again. The table is printed from the file; with `--table` nothing else is done.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graftwork as gw
from graftwork.core.example import Example
from graftwork.machine.thread_count import limited_to
from graftwork.module.task_module import TaskModule
from graftwork.module.trained_on import reopen_data
from graftwork.registry import methods

Measure = Callable[[dict[str, Any], argparse.Namespace, Path], dict[str, Any]]
BATCH, ROUNDS, TIMED = 32, 3, 256
RESULTS = Path(__file__).parent / "results" / "compress.jsonl"


@dataclass(frozen=True)
class Source:
    """A data set: its files, the most labelled rows that are used, and settings of its task."""

    train: str = "train.tsv"
    test: str | None = "test.tsv"  # None: drawn from the first file
    most: int = 4_000
    settings: tuple[tuple[str, Any], ...] = ()


SOURCES = {
    "trec6": Source(),
    "sst2": Source(),
    "mrpc": Source(settings=(("positive", "paraphrase"),)),
    "banking77": Source(),
    "clinc150": Source(),
    "cola": Source(test="dev.tsv"),
    "sms_spam": Source("all.tsv", None, settings=(("metrics", ("f1", "accuracy")), ("positive", "spam"))),
    "crowdflower_airline": Source("all.tsv.gz", None),
    "imdb": Source("train.tsv.gz", "test.tsv.gz", most=2_000),
    "ncbi_disease": Source("train.conll", "test.conll", settings=(("kind", "tagging"),)),
}


def pieces(path: Path) -> tuple[str, list[str]]:
    """Return the header, if it has one, and the rows of a TSV file, or the sentences of a CoNLL file, each once."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = content.decode("utf-8").replace("\r", "")
    head, listed = ("", text.split("\n\n")) if path.suffix == ".conll" else (text.split("\n")[0], text.split("\n")[1:])
    rows = {row.strip("\n") for row in listed} - {""}
    return head, sorted(rows, key=lambda row: hashlib.sha256(row.encode()).digest())


def draw(source: Source, folder: Path, given: argparse.Namespace) -> tuple[str, dict[str, list[str]]]:
    """Return the header, and rows to train, validate, test and answer; no text of one is in another."""
    head, first = pieces(folder / source.train)
    held = pieces(folder / source.test)[1][: given.test] if source.test else first[: given.test]
    known = {shown(row) for row in held}
    rest = list({shown(row): row for row in first if shown(row) not in known}.values())
    train = min(given.rows or source.most, len(rest) - given.validation)
    ends = (0, train, train + given.validation, train + given.validation + given.texts)
    parts = {name: rest[ends[place] : ends[place + 1]] for place, name in enumerate(("train", "validation", "texts"))}
    parts["test"] = held
    if head:
        labels = {row.split("\t")[-1] for row in parts["train"]}
        kept = {name: [row for row in rows if row.split("\t")[-1] in labels] for name, rows in parts.items()}
        return head, kept | {"texts": parts["texts"]}
    return head, parts


def shown(row: str) -> str:
    """Return a row without its label; a sentence has one for each word, and is compared whole."""
    return row.rpartition("\t")[0] if "\n" not in row else row


def written(name: str, given: argparse.Namespace, folder: Path) -> tuple[gw.Task, Path | None]:
    """Return the task over files in `folder`, and the file of texts without labels; sentences have none."""
    source = SOURCES[name]
    head, parts = draw(source, given.data / name, given)
    end = ".tsv" if head else ".conll"
    for split in ("train", "validation", "test"):
        body = "\n".join([head, *parts[split]]) if head else "\n\n".join(parts[split])
        (folder / f"{split}{end}").write_text(f"{body}\n", encoding="utf-8")
    splits = {split: folder / f"{split}{end}" for split in ("validation", "test")}
    task = gw.Task.from_file(folder / f"train{end}", name=name, **splits, **dict(source.settings))
    if not head or not parts["texts"]:
        return task, None
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerows(row.split("\t")[:-1] for row in (head, *parts["texts"]))
    return task, folder / "texts.csv"


def rates(modules: Mapping[str, TaskModule], examples: Sequence[Example]) -> dict[str, float]:
    """Return predictions per processor second of each, in turn on every batch of texts of near-equal length."""
    ordered = sorted(examples[:TIMED], key=lambda one: sum(len(str(given)) for given in one.inputs.values()))
    batches = [ordered[start : start + BATCH] for start in range(0, len(ordered), BATCH)]
    spent = dict.fromkeys(modules, 0.0)
    for turn in range(ROUNDS + 1):  # the first one warms up
        for batch in batches:
            for name, module in modules.items():
                began = time.process_time()
                module.fitted.logits(batch)
                spent[name] += (time.process_time() - began) * (turn > 0)
    return {name: ROUNDS * len(ordered) / seconds for name, seconds in spent.items()}


def measure(key: dict[str, Any], given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Train the teacher, compress it, and measure both on test."""
    task, texts = written(key["set"], given, folder)
    settings = {"epochs": given.epochs} if given.epochs else {}
    run = gw.train(
        task,
        method=key["teacher"],
        seed=key["seed"],
        precision=key["precision"],
        runs=folder / "runs",
        progress=say,
        **settings,
    )
    shutil.rmtree(folder / "small", ignore_errors=True)
    found = gw.compress(
        run.folder,
        folder / "small",
        allow=key["allow"],
        rungs=given.rungs,
        runtime="onnx",
        texts=texts,
        seed=key["seed"],
        plan=lambda rungs: print(rungs, flush=True),
        progress=say,
    )
    result = key | {
        "found": found | {"module": bool(found["module"]), "of": key["teacher"]},
        "load": os.getloadavg()[0],
        "counted_words": counted_words(task, key["seed"], folder),
    }
    if found["module"]:
        with limited_to(1):
            modules = {"teacher": run.module, "compressed": TaskModule.load(folder / "small")}
            dataset = reopen_data(modules["teacher"].description["data"], task)[0]
            assert dataset is not None
            result["per_second"] = rates(modules, dataset.test.examples)
    return result


def counted_words(task: gw.Task, seed: int, folder: Path) -> float | None:
    """Return the headline score of `tfidf_svm` on test, same rows; None where it does not apply, as for tags."""
    if methods.get("tfidf_svm")().unfit(task, None):
        return None
    scores = gw.train(task, method="tfidf_svm", seed=seed, runs=folder / "runs").result.scores
    return next(iter(scores.values()))


def say(done: float, text: str) -> None:
    """Print a line where something begins."""
    if done in (0.0, 1.0) or "measuring" in text:
        print(f"{time.strftime('%H:%M:%S')}  {done:4.0%}  {text}", flush=True)


def stored(path: Path) -> list[dict[str, Any]]:
    """Return the finished lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def measure_missing(keys: Sequence[dict[str, Any]], given: argparse.Namespace, measure: Measure) -> None:
    """Append a line to `--out` for each key that it lacks."""
    for key in keys:
        if any(key.items() <= line.items() for line in stored(given.out)):
            continue
        folder = given.work / f"{key['set']}_{given.rows or 'all'}"
        folder.mkdir(parents=True, exist_ok=True)
        line = json.dumps(measure(key, given, folder.absolute()))
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with given.out.open("a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, a row for each finished line."""
    rows = [
        "| set | teacher | seed | validation | kept | per second | times | bytes, share | test | loss, at most "
        "| `tfidf_svm` |",
        "|---" * 11 + "|",
    ]
    for line in lines:
        found, name = line["found"], f"| {line['set']} | {line['teacher']} | {line['seed']} | {line['validation']}"
        if not found["module"]:
            rows.append(f"{name} | {found['reason']}{' |' * 7}")
            continue
        rate, test = line["per_second"], found["test"]
        share, words = found["bytes"] / found["original"]["bytes"], line.get("counted_words")
        rows.append(
            f"{name} | {', '.join(found['kept'])} | {rate['teacher']:.0f} to {rate['compressed']:.0f}"
            f" | {rate['compressed'] / rate['teacher']:.1f} | {share:.2f}"
            f" | {100 * test['score']:.1f} | {100 * test['loss']:.1f}, {100 * test['loss_at_most']:.1f}"
            f" | {'' if words is None else f'{100 * words:.1f}'} |"
        )
    return "\n".join(rows)


def asked() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with one folder per data set")
    parser.add_argument("--sets", default=",".join(SOURCES))
    parser.add_argument("--teachers", default="full,adapter")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--rows", type=int, help="labelled rows  [default: all, at most 4,000]")
    parser.add_argument("--validation", type=int, default=600, help="rows that a loss is shown on")
    parser.add_argument("--test", type=int, default=1_000)
    parser.add_argument("--texts", type=int, default=2_000, help="further rows, whose labels are not used")
    parser.add_argument("--epochs", type=int, help="of the teacher")
    parser.add_argument("--allow", type=float, default=2.0)
    parser.add_argument("--rungs", default="", help="as of graft compress")
    parser.add_argument("--precision", default="fp32", help="of the teacher")
    parser.add_argument("--work", type=Path, default=Path("work"), help="files, and runs, which are used again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the table alone")
    return parser.parse_args()


def main() -> None:
    """Measure what the file lacks, and print the table."""
    given = asked()
    settings = {name: getattr(given, name) for name in ("rows", "validation", "texts", "allow", "rungs", "precision")}
    keys = [
        {"set": name, "teacher": teacher, "seed": int(seed)} | settings
        for name in given.sets.split(",")
        for teacher in given.teachers.split(",")
        for seed in given.seeds.split(",")
    ]
    if not given.table:
        measure_missing(keys, given, measure)
    print(table(stored(given.out)))


if __name__ == "__main__":
    main()
