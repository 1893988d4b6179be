"""Prompts of a small language model beside a probe, an adapter and the whole of another network, on the same rows:
`python board.py --data FOLDER --model FOLDER [NAME …]`."""

from __future__ import annotations

import csv
import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, compared, flags

import graftwork as gw

HERE = Path(__file__).parent.absolute()
FILES = {  # task -> its files of train, validation and test; the last two may be drawn from one file
    "sst2": ("train.tsv", "dev.tsv", "test.tsv"),
    "trec6": ("train.tsv", "train.tsv", "test.tsv"),
    "boolq": ("train.tsv", "dev32.tsv", "dev.tsv.gz"),
    "copa": ("train_choices.jsonl", "train_choices.jsonl", "dev_choices.jsonl"),
    "mrpc": ("train.tsv", "dev.tsv", "test.tsv"),
}
NAMED = {"sst2": "sentiment", "trec6": "question_type", "boolq": "yes_no", "mrpc": "same_meaning"}
OF_COPA = {"cause": "because", "effect": "so"}  # as lm-evaluation-harness asks it
VARIANTS = ("drawn", "calibrated", "named")  # the template: drawn by the seed, also calibrated, made for the task
TUNED = ("linear_probe", "adapter", "full")

Row = dict[str, str]


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
            random.Random(0).shuffle(known[file])
        rows, known[file] = known[file][: sizes[split]], known[file][sizes[split] :]
        paths[split] = folder / name / f"{split}.jsonl"
        paths[split].parent.mkdir(parents=True, exist_ok=True)
        paths[split].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given: dict[str, Any] = {"kind": "choice", "text": "premise"} if name == "copa" else {}
    return gw.Task.from_file(paths["train"], name=name, validation=paths["validation"], test=paths["test"], **given)


def prompts(name: str, shots: list[int], variants: list[str]) -> list[str]:
    """Return the methods that prompt: templates drawn by the seed, calibrated too, and the one made for the task."""
    settings = {"drawn": ""}
    if name in NAMED:
        settings |= {"calibrated": ":calibrate=contextual", "named": f":template={NAMED[name]}"}
    return [f"prompt:shots={number}{settings[one]}" for number in shots for one in variants if one in settings]


def main() -> None:
    """Make two boards of every task, one for each network. Finished runs are reused, so that it goes on."""
    parser = flags(__doc__, FILES)
    parser.add_argument("--model", required=True, help="folder of a language model")
    parser.add_argument("--shots", type=int, nargs="+", default=[0, 4, 16])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--seeds", type=int, default=5)
    for split, rows in (("train", 1000), ("validation", 200), ("test", 500)):
        parser.add_argument(f"--{split}", type=int, default=rows, help=f"rows of {split} at most")
    parser.add_argument("--tuned", nargs="*", default=list(TUNED), help="methods on minilm")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    chosen = parser.parse_args()
    results, model = chosen.results.absolute(), Path(chosen.model).expanduser().absolute()
    runs = begun(chosen)
    sizes = {"train": chosen.train, "validation": chosen.validation, "test": chosen.test}
    for name in chosen.names:
        task = drawn(name, sizes, runs / "rows")
        for backbone, methods in (
            (f"hf:{model}", prompts(name, chosen.shots, chosen.variants)),
            ("minilm", chosen.tuned),
        ):
            out = results / f"{name}_{'minilm' if backbone == 'minilm' else 'prompted'}"
            asked: dict[str, Any] = {"seeds": chosen.seeds, "jobs": 1, "out": out, "runs": runs, "backbone": backbone}
            compared(task, methods=["majority", *methods], **asked)


if __name__ == "__main__":
    main()
