"""Prompts of small language models beside a probe, an adapter and the whole of another network, on the same rows:
`python board.py --data FOLDER --models FOLDER … [NAME …]`.

One cell is a task, a network, a number of shots, a template and a draw of shots. A finished cell is a line of
results/cells.jsonl, and is skipped: interrupted, the same command goes on. `--table` prints what is there.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, flags

import graftwork as gw
from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Scorer, Setting
from graftwork.core.run import Recipe
from graftwork.registry import kinds
from graftwork.run.execute import workbench
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.units import percent, show

HERE = Path(__file__).parent.absolute()
FILES = {  # task -> its files of train, validation and test; the last two may be drawn from one file
    "sst2": ("train.tsv", "dev.tsv", "test.tsv"),
    "trec6": ("train.tsv", "train.tsv", "test.tsv"),
    "boolq": ("train.tsv", "dev32.tsv", "dev.tsv.gz"),
    "copa": ("train_choices.jsonl", "train_choices.jsonl", "dev_choices.jsonl"),
    "clinc150": ("train.tsv", "dev.tsv", "test.tsv"),
    "mrpc": ("train.tsv", "dev.tsv", "test.tsv"),
}
OF_COPA = {"cause": "because", "effect": "so"}  # as lm-evaluation-harness asks it
INTENTS = 10  # of clinc150
TEMPLATES = {  # five built-in templates of each form, none made for a task
    "text": ("listed", "category", "question", "input_output", "labelled"),
    "pair": ("listed", "relation", "question", "input_output", "labelled"),
    "choice": ("continued", "question", "input_output", "likely", "labelled"),
}
FORMS = {"boolq": "pair", "mrpc": "pair", "copa": "choice"}
TUNED = ("majority", "linear_probe", "adapter", "full")

Row = dict[str, str]
Cell = dict[str, Any]


def read(path: Path) -> list[Row]:
    """Return the rows of a file; a row of copa gets its connective behind the premise."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        if path.suffix != ".jsonl":
            return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
        rows = [json.loads(line) for line in stream]
    for row in rows:
        row["premise"] = f"{row['premise'].rstrip('.')} {OF_COPA[row.pop('question')]}"
    return rows


def drawn(name: str, sizes: dict[str, int], folder: Path) -> gw.Task:
    """Write the drawn rows of a task as files, the same for every method, and return the task over them."""
    known: dict[str, list[Row]] = {}
    paths = {}
    for split, file in zip(("train", "validation", "test"), FILES[name], strict=True):
        if file not in known:
            known[file] = read(Path(name) / file)
            if name == "clinc150":
                intents = random.Random(0).sample(sorted({row["label"] for row in known[file]}), INTENTS)
                known[file] = [row for row in known[file] if row["label"] in intents]
            random.Random(0).shuffle(known[file])
        rows, known[file] = known[file][: sizes[split]], known[file][sizes[split] :]
        paths[split] = folder / name / f"{split}.jsonl"
        paths[split].parent.mkdir(parents=True, exist_ok=True)
        paths[split].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given: dict[str, Any] = {"kind": "choice", "text": "premise"} if name == "copa" else {}
    return gw.Task.from_file(paths["train"], name=name, validation=paths["validation"], test=paths["test"], **given)


def cells(name: str, network: str, draw: int, shots: list[int], templates: int) -> Iterator[Cell]:
    """Yield the cells of one draw; without shots there is one draw of them."""
    if network == "minilm":
        yield from ({"shots": None, "template": None, "method": method} for method in TUNED)
        return
    for number in shots if draw == 0 else [number for number in shots if number]:
        for template in TEMPLATES[FORMS.get(name, "text")][:templates]:
            yield {"shots": number, "template": template, "method": f"prompt:shots={number}:template={template}"}


def ran(session: Session, method: str, draw: int) -> Cell:
    """Fit a method on the rows of train, and score it on those of test."""
    named, test = parse_method(method), session.dataset.test
    began = time.process_time()
    fitted = named.method.fit(workbench(session, named, Recipe(), draw))
    fitting = time.process_time() - began
    setting = Setting(session.dataset.task, kinds.get(session.dataset.task.kind), session.backbone)
    began = time.process_time()
    accuracy = Scorer("accuracy", setting, test)(fitted.logits(test.examples))
    answering = time.process_time() - began
    told = {
        key: fitted.facts[key] for key in ("shots_dropped", "prompt_tokens", "tokens_read_once") if key in fitted.facts
    }
    costs = {
        "predict_flops": fitted.flops(test.examples[:1])[0],
        "fit_cpu_seconds": round(fitting, 2),
        "answer_cpu_seconds": round(answering, 2),
    }
    return (
        {"accuracy": accuracy, "test": len(test.examples), "train": len(session.dataset.train.examples)} | told | costs
    )


def table(path: Path) -> str:
    """Format a table per task: of prompts the mean, the spread over templates and that over draws, and the range."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    header = ["network", "method", "cells", "accuracy", "sd of templates", "sd of draws", "range", "FLOP a prediction"]
    parts = []
    for name in [one for one in FILES if any(cell["task"] == one for cell in found)]:
        lines = [header, ["---"] * len(header)]
        of_task = [cell for cell in found if cell["task"] == name]
        groups = {(cell["network"], cell["method"].partition(":template")[0]): cell for cell in of_task}
        for network, method in sorted(groups):
            some = [one for one in of_task if one["network"] == network and one["method"].startswith(method)]
            some = [one for one in some if one["method"].partition(":template")[0] == method]
            scores = [one["accuracy"] for one in some]
            spread = [_sd_of_means(some, key) for key in ("template", "draw")]
            price = statistics.mean(one["predict_flops"] for one in some)
            lines.append([
                network, f"`{method}`", str(len(some)), percent(statistics.mean(scores)), *spread,
                f"{percent(min(scores))} to {percent(max(scores))}", show(price, "FLOP"),
            ])  # fmt: skip
        rows = {(one["test"], one["train"]) for one in of_task}
        told = "; ".join(f"{test} rows of test, {train} of train" for test, train in sorted(rows))
        parts.append(f"{name}: {told}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(parts)


def _sd_of_means(some: list[Cell], key: str) -> str:
    """Return the standard deviation between the means of templates, or of draws, in points."""
    means = [statistics.mean(one["accuracy"] for one in some if one[key] == value) for value in {c[key] for c in some}]
    return percent(statistics.stdev(means)) if len(means) > 1 else ""


def main() -> None:
    """Run the cells that are not there, draw by draw, so that what is there is balanced whenever it is ended."""
    parser = flags(__doc__, FILES)
    parser.add_argument("--models", type=Path, nargs="*", default=[], help="folders of language models")
    parser.add_argument("--shots", type=int, nargs="+", default=[0, 4, 16])
    parser.add_argument("--templates", type=int, default=5)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--train", type=int, default=300, help="rows of train at most; shots are drawn from them")
    parser.add_argument("--rows", type=int, default=500, help="rows of test at most")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no cell after these")
    parser.add_argument("--no-tuned", action="store_true", help="prompts alone")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "cells.jsonl")
    parser.add_argument("--table", action="store_true", help="print the table of what is there")
    chosen = parser.parse_args()
    out, began = chosen.out.absolute(), time.monotonic()
    networks = {model.name: f"hf:{model.expanduser().absolute()}" for model in chosen.models}
    networks |= {} if chosen.no_tuned else {"minilm": "minilm"}
    if chosen.table:
        print(table(out))
        return
    runs = begun(chosen)
    sizes = {"train": chosen.train, "validation": 50, "test": chosen.rows}
    about = {"rows": chosen.rows, "asked_train": chosen.train, "precision": "bf16"}
    lines = out.read_text(encoding="utf-8").splitlines() if out.is_file() else []
    keys = ("task", "network", "method", "draw", *about)
    done = {tuple(cell[key] for key in keys) for cell in map(json.loads, lines)}
    for draw in range(chosen.draws):
        for name in chosen.names:
            task = drawn(name, sizes, runs / f"rows-{chosen.train}-{chosen.rows}")
            for network, backbone in networks.items():
                listed = cells(name, network, draw, chosen.shots, chosen.templates)
                planned = [cell | {"task": name, "network": network, "draw": draw} | about for cell in listed]
                left = [cell for cell in planned if tuple(cell[key] for key in keys) not in done]
                session: Session | None = None
                for cell in left:
                    if time.monotonic() - began > 60 * chosen.minutes:
                        return
                    if session is None:
                        settings = RunSettings(backbone, runs=str(runs), precision="bf16")
                        session = open_session(task, [parse_method(one["method"]) for one in left], settings)
                    finished = cell | ran(session, cell["method"], draw)
                    with out.open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps(finished) + "\n")
                    print(name, network, cell["method"], draw, percent(finished["accuracy"]), flush=True)


if __name__ == "__main__":
    main()
