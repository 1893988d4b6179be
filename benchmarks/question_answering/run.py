"""Answer questions about passages and keep the results: `python run.py --data FOLDER [squad1] [abbreviations]`."""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import graftwork as gw
from graftwork.core.example import Example
from graftwork.data.load import load
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.methods.abbreviation_rule import asked_for, stands_for
from graftwork.targets.abbreviations import definitions
from graftwork.targets.answer_scores import exact_match, words_f1

HERE = Path(__file__).parent.absolute()
METHODS = ("majority", "ngram_window", "abbreviation_rule", "full")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a gzipped JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def trained(task: gw.Task, methods: Sequence[str], chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield test and validation scores and costs of every method: one seed, the default recipe except for epochs."""
    for method in methods:
        epochs = chosen.epochs if method not in METHODS[:3] else None
        run = gw.train(task, method=method, epochs=epochs, runs=chosen.runs, precision=chosen.precision)
        result = run.result
        costs = {name: result.costs[name].value for name in ("train_seconds", "stored_bytes", "predict_per_second")}
        print(f"{task.name}, {method}: {result.scores}", flush=True)
        yield {
            "method": method,
            "test": result.scores,
            "validation": result.validation,
            "costs": costs,
            "facts": result.facts,
        }


def squad(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the board, and the questions about acronyms with the rule's answers."""
    rows = lines_of(chosen.data / "squad1" / "dev.jsonl.gz")
    rows = rows[:: max(1, len(rows) // chosen.rows)] if chosen.rows else rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "squad1.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        task = gw.Task.from_file(path, kind="span")
        data = load(task)
        board = list(trained(task, chosen.methods.split(","), chosen))
    asked = [e for split in data.splits.values() for e in split.examples if asked_for(e.inputs["question"])]
    acronyms = [acronym(example) for example in asked]
    means = {name: sum(row[name] for row in acronyms) / max(1, len(acronyms)) for name in ("exact_match", "span_f1")}
    kept = {name: data.report[name] for name in ("splits", "rows", "passages", "mended")}
    return {"data": kept, "board": board, "acronyms": {"questions": acronyms, "rule": means}}


def acronym(example: Example) -> dict[str, Any]:
    """Return the answer of the rule alone, without its fallback, to a question about an acronym."""
    question, text = example.inputs["question"], example.source or ""
    place = stands_for(asked_for(question) or "", text)
    found = text[slice(*place)] if place else ""
    golds = example.target.texts
    return {
        "id": example.id,
        "question": question,
        "golds": sorted(set(golds)),
        "rule": found,
        "exact_match": exact_match(golds, found, False),
        "span_f1": words_f1(golds, found, False),
    }


def abbreviations(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return precision and recall of pairs, as the field reports them, and of long forms as answers to questions."""
    records = lines_of(chosen.data / "abbr_med1250" / "all.jsonl.gz")[: chosen.rows]
    gold: set[tuple[str, str, str]] = set()
    found: set[tuple[str, str, str]] = set()
    for record in records:
        gold |= {(record["id"], pair["short"], pair["long"]) for pair in record["pairs"]}
        texts = (record["title"], record["text"])
        found |= {(record["id"], one.short, one.long) for text in texts for one in definitions(text)}
    right = len(gold & found)
    precision, recall = right / len(found), right / len(gold)
    pairs = {
        "gold": len(gold),
        "found": len(found),
        "right": right,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "abbr_med1250.jsonl"
        rows, left_out = questions_of(records)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        task = gw.Task.from_file(path, kind="span")
        board = list(trained(task, METHODS[:3], chosen))
        report = load(task).report
    kept = {name: report[name] for name in ("splits", "rows", "passages", "mended")}
    return {"pairs": pairs, "data": kept | {"left_out": left_out}, "board": board}


def questions_of(records: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return a question per pair, on title and text, and the number of dropped pairs that do not occur there."""
    rows, left_out = [], 0
    for record in records:
        context = f"{record['title']}\n{record['text']}"
        for number, pair in enumerate(record["pairs"]):
            start = context.find(pair["long"])
            if start < 0:
                left_out += 1
                continue
            rows.append(
                {
                    "id": f"{record['id']}-{number}",
                    "title": record["id"],
                    "context": context,
                    "question": f"What does {pair['short']} stand for?",
                    "answers": [{"text": pair["long"], "answer_start": start}],
                }
            )
    return rows, left_out


QUESTIONS = {"squad1": squad, "abbreviations": abbreviations}


def main() -> None:
    """Run the benchmark. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(QUESTIONS))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--methods", default=",".join(METHODS), help="of squad1")
    parser.add_argument("--rows", type=int, help="questions or records at most, to try it")
    parser.add_argument("--epochs", type=int, help="of methods that train a network (default: the recipe's)")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    for name in chosen.names:
        found = QUESTIONS[name](chosen)
        known = {"rows": chosen.rows, "epochs": chosen.epochs, "threads": chosen.threads}
        write_json(
            chosen.out / f"{name}.json",
            {"format": 1, "status": "ok", "settings": known} | found | {"environment": environment()},
        )


if __name__ == "__main__":
    main()
