"""Alter runs in many ways and check what `verify` reports: `python benchmarks/honesty/sabotage.py --work FOLDER`.

With `--table` prints results/sabotage.json as the tables of SABOTAGE.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[1]))

from driving import say

import graftwork as gw
from graftwork.backbones.minilm import package_folder
from graftwork.core.run import ENGINE
from graftwork.core.task import Task
from graftwork.io.files import file_digest, read_json, write_json
from graftwork.machine.environment import environment
from graftwork.receipts.file_integrity import id_of, read_spec
from graftwork.receipts.verify import DIFFERENT, EQUAL, Verifier, verifier
from graftwork.run import execute
from graftwork.run.receipt import randomness_of, with_seal
from graftwork.run.receipt_fields import problems

RESULT = Path(__file__).parent / "results" / "sabotage.json"
ROWS = {"train": 160, "validation": 40, "test": 60}
METHOD, SEED, EPOCHS = "adapter", 0, 1
WEIGHTS = "model.safetensors"
Rows = list[list[str]]
Edit = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Scene:
    """Copies of a run, its data and its backbone, which a case may alter."""

    run: Path
    data: Path  # train.csv, validation.csv, test.csv
    backbone: Path

    def spec(self, edit: Edit) -> None:
        """Change spec.json."""
        changed(self.run / "spec.json", edit)

    def receipt(self, edit: Edit, seal: bool = True) -> None:
        """Change receipt.json, and update its seal if `seal` is true."""
        content = read_json(self.run / "receipt.json")
        edit(content)
        write_json(self.run / "receipt.json", with_seal(content) if seal else content)

    def result(self, edit: Edit) -> None:
        """Change result.json."""
        changed(self.run / "result.json", edit)

    def rows(self, split: str, edit: Callable[[Rows], Any]) -> None:
        """Change the rows of a data file, without its header."""
        path = self.data / f"{split}.csv"
        header, *rows = read_rows(path)
        edit(rows)
        write_rows(path, [header, *rows])


Alteration = Callable[[Scene], Path | None]  # returns the run's new path if it was renamed


@dataclass(frozen=True)
class Case:
    """An alteration and the expected report of `verify`: all differences in `named`, and no others except `also`."""

    name: str
    alter: Alteration
    named: tuple[str, ...]
    also: tuple[str, ...] = ()
    verdict: str = DIFFERENT


def changed(path: Path, edit: Edit) -> None:
    """Edit a JSON file."""
    content = read_json(path)
    edit(content)
    write_json(path, content)


def read_rows(path: Path) -> Rows:
    """Return all rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def write_rows(path: Path, rows: Rows) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)


def relabel(rows: Rows) -> None:
    """Give a row another label."""
    rows[0][1] = next(row[1] for row in rows if row[1] != rows[0][1])


def swap_labels(scene: Scene) -> None:
    """Swap the names of two labels in all files."""
    names = sorted({row[1] for row in read_rows(scene.data / "train.csv")[1:]})[:2]
    other = {names[0]: names[1], names[1]: names[0]}
    for split in ROWS:
        scene.rows(split, lambda rows: [row.__setitem__(1, other.get(row[1], row[1])) for row in rows])


def swap_rows(scene: Scene) -> None:
    """Swap a row of train with one of test that has the same label."""
    train, test = (read_rows(scene.data / f"{split}.csv") for split in ("train", "test"))
    place = next(place for place, row in enumerate(train[1:], 1) if row[1] == test[1][1])
    train[place], test[1] = test[1], train[place]
    write_rows(scene.data / "train.csv", train)
    write_rows(scene.data / "test.csv", test)


def flip_byte(path: Path) -> None:
    """Change the last byte of a file; in a safetensors file it belongs to a weight."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.with_suffix(".part").write_bytes(bytes(content))  # a process that has mapped the file keeps the old content
    path.with_suffix(".part").replace(path)


def edit_tokenizer(scene: Scene) -> None:
    """Swap two words in the vocabulary."""
    content = read_json(scene.backbone / "tokenizer.json")
    vocabulary = content["model"]["vocab"]
    vocabulary["card"], vocabulary["parcel"] = vocabulary["parcel"], vocabulary["card"]
    (scene.backbone / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def edit_prediction(scene: Scene) -> None:
    """Correct the first wrong prediction."""
    path = scene.run / "predictions.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wrong = next(line for line in lines if line["prediction"] != line["target"])
    wrong["prediction"] = wrong["target"]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def forge_predictions(scene: Scene) -> None:
    """Do the same, and update the receipt."""
    edit_prediction(scene)
    sha = file_digest(scene.run / "predictions.jsonl")
    size = (scene.run / "predictions.jsonl").stat().st_size
    scene.receipt(lambda content: content["outcome"]["predictions"].update(sha256=sha, bytes=size))


def edit_log(scene: Scene) -> None:
    """Change the first loss."""
    path = scene.run / "log.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    first["loss"] *= 0.5
    path.write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n", encoding="utf-8")


def forge_score(scene: Scene) -> None:
    """Raise the score in result, receipt and module."""
    module = scene.run / "module" / "module.json"
    changed(module, lambda content: content["scores"].update(accuracy=0.99))
    scene.result(lambda content: content["scores"].update(accuracy=0.99))

    def follow(content: dict[str, Any]) -> None:
        content["outcome"]["scores"].update(accuracy=0.99)
        content["outcome"]["weights"]["files"][module.name] = file_digest(module)

    scene.receipt(follow)


def forge(scene: Scene, edit: Edit) -> Path:
    """Change specification, id, receipt and folder to those of a run that was never made."""
    scene.spec(edit)
    spec = read_spec(scene.run)
    run = id_of(scene.run, ENGINE)

    def follow(content: dict[str, Any]) -> None:
        content["identity"]["run"] = run
        content["randomness"] = randomness_of(spec, content["randomness"]["split"])
        content["method"].update(config=dict(spec.method), recipe=dict(spec.recipe), question=dict(spec.question))
        content["numerics"].update({name: spec.numerics[name] for name in spec.numerics})

    scene.receipt(follow)
    scene.result(lambda content: content.update(id=run, seed=spec.seed))
    return scene.run.rename(scene.run.with_name(run))


def upgraded(content: dict[str, Any]) -> None:
    """Change the receipt to another version of torch."""
    content["code"]["distributions"]["torch"] = "2.12.0"


def of_spec(edit: Edit) -> Alteration:
    """Return an alteration of spec.json alone."""
    return lambda scene: scene.spec(edit)


def everywhere(edit: Edit) -> Alteration:
    """Return an alteration of the specification and of all that depends on it."""
    return lambda scene: forge(scene, edit)


def of_rows(split: str, edit: Callable[[Rows], Any]) -> Alteration:
    """Return an alteration of a data file."""
    return lambda scene: scene.rows(split, edit)


def configured(scene: Scene) -> None:
    """Change the epsilon in the backbone's norms."""
    changed(scene.backbone / "config.json", lambda config: config.update(layer_norm_eps=1e-5))


def scored(scene: Scene) -> None:
    """Raise the score in result.json."""
    scene.result(lambda content: content["scores"].update(accuracy=0.99))


def cheaper(scene: Scene) -> None:
    """Shorten the training time in result.json."""
    scene.result(lambda content: content["costs"]["train_seconds"].update(value=0.01))


def resumed(scene: Scene) -> None:
    """Change a field of the receipt without updating the seal."""
    scene.receipt(lambda content: content["timeline"].update(resumes=1), seal=False)


LEARNT = ("losses", "predictions", "weights", "scores", "validation scores")  # what may differ after another training
FILE = tuple(f"data file of {split}" for split in ROWS)
CASES = (
    Case("a label of the data is another", of_rows("train", relabel), ("labels",), FILE),
    Case("a row of train is gone", of_rows("train", list.pop), ("rows",), FILE),
    Case("the rows of train stand in another order", of_rows("train", list.reverse), ("row order",), FILE),
    Case("a text of test is another", of_rows("test", lambda rows: rows[0].__setitem__(0, "no")), ("texts",), FILE),
    Case("a row of train and one of test have changed places", swap_rows, ("split",), FILE),
    Case("two labels have changed names in the data", swap_labels, ("labels",), FILE),
    Case("the order of the labels", of_spec(lambda spec: spec["question"]["labels"].reverse()), ("label map",)),
    Case("a bit of the backbone's weights", lambda s: flip_byte(s.backbone / WEIGHTS), ("backbone weights",)),
    Case("two words of the tokenizer have changed places", edit_tokenizer, ("tokenizer",)),
    Case("the backbone's configuration", configured, ("backbone file",)),
    Case("the seed", of_spec(lambda spec: spec.update(seed=1)), ("seed",)),
    Case("the seed, everywhere", everywhere(lambda spec: spec.update(seed=7)), ("predictions", "weights"), LEARNT),
    Case("the epochs", of_spec(lambda spec: spec["recipe"].update(epochs=5)), ("epochs",)),
    Case("the learning rate", of_spec(lambda spec: spec["method"].update(learning_rate=0.5)), ("learning_rate",)),
    Case("the learning rate, everywhere", everywhere(lambda spec: spec["method"].update(learning_rate=0.01)),
         ("predictions", "weights"), LEARNT),
    Case("the precision", of_spec(lambda spec: spec["numerics"].update(precision="fp64")), ("precision",)),
    Case("the threads", of_spec(lambda spec: spec["numerics"].update(threads=9)), ("threads",)),
    Case("the version of the method", of_spec(lambda spec: spec["method"].update(version=7)), ("method version",)),
    Case("the number of the engine", lambda s: s.receipt(lambda content: content["identity"].update(engine=ENGINE + 1)),
         ("engine",)),
    Case("the version of a library", lambda s: s.receipt(upgraded), ("library version",), verdict=EQUAL),
    Case("a bit of what was learnt", lambda s: flip_byte(s.run / "module" / "delta.safetensors"), ("delta",)),
    Case("a prediction", edit_prediction, ("predictions",)),
    Case("a prediction, and its hash in the receipt", forge_predictions, ("predictions",)),
    Case("a score", scored, ("scores",)),
    Case("a score, everywhere", forge_score, ("scores",)),
    Case("a loss of the log", edit_log, ("log",)),
    Case("the price tag", cheaper, ("price tag",)),
    Case("a field of the receipt", resumed, ("receipt",)),
)  # fmt: skip


class Kept:
    """A JSON file of finished results in the work folder, so that an interrupted benchmark resumes."""

    def __init__(self, path: Path):
        self.path = path
        self.content: dict[str, Any] = read_json(path) if path.is_file() else {}

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the result of `make` for this name, from the file if it is there."""
        if name not in self.content:
            self.content[name] = make()
            write_json(self.path, self.content)
            print(name, json.dumps(self.content[name]), flush=True)
        return self.content[name]


def write_data(folder: Path) -> Task:
    """Write a file per split with rows of the tickets that come with the package, the same every time."""
    header, *rows = read_rows(Task.find("builtin:tickets"))
    common = [label for label, _ in Counter(row[1] for row in rows).most_common(4)]
    kept = sorted((row for row in rows if row[1] in common), key=lambda row: row[0][::-1])
    begin = 0
    for split, count in ROWS.items():
        write_rows(folder / f"{split}.csv", [header, *kept[begin : begin + count]])
        begin += count
    paths = {split: folder / f"{split}.csv" for split in ("validation", "test")}
    return Task.from_file(folder / "train.csv", name="tickets", **paths)


def sabotage(case: Case, run: Path, data: Path, backbone: Path, place: Path) -> dict[str, Any]:
    """Alter a copy of the run, its data and its backbone, and verify it; the receipt gets their new paths."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=place) as copies:
        scene = Scene(*(Path(shutil.copytree(it, Path(copies) / it.name)) for it in (run, data, backbone)))
        scene.receipt(partial(at_home, scene))
        try:
            moved = case.alter(scene)
            with verifier() as asked:
                found = asked.verify(moved or scene.run)
            named = list(dict.fromkeys(one.about for one in found.differences))
            said = {"verdict": found.verdict, "named": named, "executed": found.executed}
        except Exception as error:
            said = {"verdict": f"{type(error).__name__}: {error}", "named": [], "executed": False}
    right = is_right(case, said["verdict"], said["named"])
    told = {"case": case.name, "expected": list(case.named), "expected_verdict": case.verdict}
    return told | said | {"right": right, "seconds": round(time.perf_counter() - began, 2)}


def at_home(scene: Scene, content: dict[str, Any]) -> None:
    """Change the receipt to that of a run made where the scene is."""
    content["rerun"]["backbone"] = f"hf:{scene.backbone}"
    content["model"]["folder"] = str(scene.backbone)
    for split, name in (("train", "data"), ("validation", "validation"), ("test", "test")):
        content["rerun"]["task"][name] = str(scene.data / f"{split}.csv")
        content["data"]["files"][split]["path"] = str(scene.data / f"{split}.csv")


def is_right(case: Case, verdict: str, named: Sequence[str]) -> bool:
    """Return whether the report is the expected one."""
    return set(case.named) <= set(named) <= {*case.named, *case.also} and verdict == case.verdict


def measured(
    folder: Path, kept: Kept, task: Task, methods: Sequence[str] | None, seeds: int
) -> tuple[list[str], dict[str, Any]]:
    """Return the runs of a board of every method that fits, and the cost of writing their receipts."""
    write = execute.write_receipt

    def timed(*arguments: Any) -> None:
        began = time.process_time()
        write(*arguments)
        seconds = time.process_time() - began
        kept.get(f"written {arguments[3].id}", lambda: seconds)

    execute.write_receipt = timed  # type: ignore[assignment]
    try:
        board = gw.compare(
            task, backbone=f"hf:{folder / 'backbone'}", methods=methods, seeds=seeds, epochs=EPOCHS, exhaustive=True,
            runs=folder / "runs", out=folder / "board", jobs=1, cache_size="0", progress=say,
        )  # fmt: skip
    finally:
        execute.write_receipt = write
    runs = [run for row in board.rows for run in row["runs"]]
    sizes = [(folder / "runs" / run / "receipt.json").stat().st_size for run in runs]
    whole = sum(not problems(read_json(folder / "runs" / run / "receipt.json")) for run in runs)
    written = [kept.content[f"written {run}"] for run in runs]
    costs = {
        "receipts": len(runs),
        "whole": whole,
        "largest_bytes": max(sizes),
        "seconds": {"median": statistics.median(written), "largest": max(written)},
    }
    return runs, costs


def untouched(asked: Verifier, folder: Path) -> dict[str, Any]:
    """Return the verdict on an unaltered run."""
    found = asked.verify(folder)
    named = [one.line() for one in found.differences]
    return {"method": found.method, "seed": found.seed, "verdict": found.verdict, "named": named}


def table(result: Mapping[str, Any]) -> str:
    """Format the results as Markdown."""
    head = ["what was altered", "verdict", "named", "executed again", "right"]
    lines = [head, ["---"] * len(head)]
    for case in result["cases"]:
        again = "yes" if case["executed"] else "no"
        named = ", ".join(f"`{name}`" for name in case["named"])
        lines.append([case["case"], case["verdict"], named, again, "yes" if case["right"] else "**no**"])
    right = sum(case["right"] for case in result["cases"])
    board, costs = result["board"], result["receipts"]
    equal = sum(run["verdict"] == EQUAL for run in board)
    methods = ", ".join(f"`{name}`" for name in dict.fromkeys(run["method"] for run in board))
    alarms = sum(run["verdict"] == DIFFERENT for run in board)
    written = costs["seconds"]
    told = [
        f"{right} of {len(result['cases'])} alterations are named as they should be.",
        f"{equal} of {len(board)} runs that nobody touched are bitwise equal, {alarms} false alarms: {methods}.",
        f"{costs['whole']} of {costs['receipts']} receipts are whole; the largest has {costs['largest_bytes']:,} bytes."
        f" Writing one took {1000 * written['median']:.0f} ms of processor time in the median and "
        f"{1000 * written['largest']:.0f} ms for the first of the process.",
    ]
    return "\n\n".join(told) + "\n\n" + "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main() -> None:
    """Run all cases; those in the work folder are not run again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("sabotage"))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--methods", help="of the board without alterations; default: all that fit")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    if chosen.table:
        print(table(read_json(chosen.out)))
        return
    torch.set_num_threads(chosen.threads)
    folder = chosen.work.absolute()
    (folder / "data").mkdir(parents=True, exist_ok=True)
    if not (folder / "backbone").is_dir():
        shutil.copytree(package_folder(), folder / "backbone")
    task = write_data(folder / "data")
    methods = chosen.methods.split(",") if chosen.methods else None
    kept = Kept(folder / "known.json")
    runs, costs = measured(folder, kept, task, methods, chosen.seeds)
    run = next(run for run in runs if read_spec(folder / "runs" / run).method["name"] == METHOD)
    with verifier() as asked:
        board = [kept.get(f"untouched {one}", partial(untouched, asked, folder / "runs" / one)) for one in runs]
    places = (folder / "runs" / run, folder / "data", folder / "backbone", folder)
    cases = [kept.get(f"case {case.name}", partial(sabotage, case, *places)) for case in CASES]
    here = environment()
    content = {
        "status": "ok",
        "python": platform.python_version(),
        "environment": {key: here[key] for key in ("graftwork", "commit", "processor", "distributions", "time")},
        "task": {"data": "builtin:tickets", "rows": ROWS, "epochs": EPOCHS, "threads": chosen.threads},
        "cases": cases,
        "board": board,
        "receipts": costs,
    }
    write_json(chosen.out, content)
    print(table(content))


if __name__ == "__main__":
    main()
