"""Twelve exports that lie about their task, and whether each is refused by a message that names what is wrong.

    python benchmarks/ship/lies.py MODULE BANK [--out FILE]

MODULE is a task module with several labels, on texts; BANK has two tasks with adapters of one shape.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.bank.bank import Bank
from graftwork.bank.exported_bank import ExportedBank
from graftwork.errors import GraftworkError
from graftwork.io.files import file_digest
from graftwork.module.task_module import TaskModule
from graftwork.ship.export import export
from graftwork.ship.export_bank import export_bank

Lie = Callable[[Path], None]


def change(folder: Path, alter: Callable[[dict[str, Any]], None], name: str = "graftwork.json") -> None:
    """Alter a JSON file of the export, and record the hashes of all files anew: nothing looks changed."""
    path = folder / name
    told = json.loads(path.read_text())
    alter(told)
    path.write_text(json.dumps(told))
    honest = folder / ("graftwork.json" if (folder / "graftwork.json").is_file() else "graftwork_bank.json")
    described = json.loads(honest.read_text())
    described["export"]["files"] = {file: file_digest(folder / file) for file in described["export"]["files"]}
    honest.write_text(json.dumps(described))


def graph_changed(folder: Path, alter: Callable[[Any], None]) -> None:
    """Alter the graph."""
    import onnx

    model = onnx.load(folder / "model.onnx")
    alter(model)
    onnx.save(model, folder / "model.onnx")
    change(folder, lambda told: None)


def array_changed(named: Callable[[Any], bool], alter: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], None]:
    """Return what alters the first initializer, or constant, that is `named`."""

    def altered(model: Any) -> None:
        from onnx import numpy_helper

        constants = [a.t for node in model.graph.node if node.op_type == "Constant" for a in node.attribute]
        found = next(one for one in [*model.graph.initializer, *constants] if named(one))
        new = np.ascontiguousarray(alter(numpy_helper.to_array(found)))
        found.CopyFrom(numpy_helper.from_array(new, found.name))

    return altered


def head(classes: int) -> Callable[[Any], bool]:
    """Return whether an array is the weight of the head."""
    return lambda one: len(one.dims) == 2 and classes in one.dims and min(one.dims) == classes


def wrong_pooling(model: Any) -> None:
    """Take the maximum where sums over tokens were taken."""
    sums = [node for node in model.graph.node if node.op_type == "ReduceSum"]
    assert sums, "no pooling found"
    for node in sums:
        node.op_type = "ReduceMax"


def lies(classes: int) -> dict[str, Lie]:
    """Return name -> what spoils an export of a module."""

    def tokenizer(alter: Callable[[dict[str, Any]], None]) -> Lie:
        return lambda folder: change(folder, alter, "tokenizer.json")

    def vocabulary(told: dict[str, Any]) -> None:
        known = told["model"]["vocab"]
        letters = sorted(token for token in known if token.isalpha())
        ids = [known[token] for token in letters]
        told["model"]["vocab"] |= dict(zip(letters, ids[1:] + ids[:1], strict=True))

    def without_padding_mask(model: Any) -> None:
        for node in model.graph.node:  # every position counts as a token
            node.input[:] = ["ones" if name == "attention_mask" else name for name in node.input]
        from onnx import helper

        same = helper.make_node("Add", ["attention_mask", "spare"], ["sum_of_mask"])
        model.graph.node.insert(0, helper.make_node("Clip", ["sum_of_mask", "spare"], ["ones"]))
        model.graph.node.insert(0, same)
        model.graph.initializer.append(helper.make_tensor("spare", 7, [], [1]))

    def saturated(array: np.ndarray) -> np.ndarray:
        scale = np.abs(array).max() / 127 / 8  # of 8-bit integers, eight times too small
        return (np.clip(np.round(array / scale), -128, 127) * scale).astype(array.dtype)

    def half(array: np.ndarray) -> np.ndarray:
        return (array * 1e6).astype(np.float16).astype(array.dtype)  # infinite beyond 65504

    big = lambda one: len(one.dims) == 2 and min(one.dims) > classes  # noqa: E731
    return {
        "other pooling": lambda folder: graph_changed(folder, wrong_pooling),
        "missing head": lambda folder: graph_changed(folder, array_changed(head(classes), lambda a: a * 0)),
        "transposed head": lambda folder: graph_changed(
            folder, array_changed(head(classes), lambda a: a.T.reshape(a.shape))
        ),
        "swapped labels": lambda folder: change(folder, lambda told: told["task"]["labels"].reverse()),
        "saturated int8": lambda folder: graph_changed(folder, array_changed(big, saturated)),
        "fp16 overflow": lambda folder: graph_changed(folder, array_changed(head(classes), half)),
        "other tokenizer": tokenizer(vocabulary),
        "cut length": tokenizer(lambda told: told["truncation"].update(max_length=16)),
        "other padding": lambda folder: graph_changed(folder, without_padding_mask),
        "wrong thresholds": lambda folder: change(folder, lambda told: told["facts"].update(shift=[0.5] * classes)),
    }


def lies_of_bank(first: str, second: str) -> dict[str, Lie]:
    """Return name -> what spoils an export of a bank with two tasks."""

    def stale(folder: Path) -> None:  # the adapters of the other task beside the head of this one
        from safetensors.numpy import load_file, save_file

        own, other = (load_file(folder / "tasks" / f"{name}.safetensors") for name in (first, second))
        kept = {name: array for name, array in own.items() if name.startswith("head.")}
        save_file(other | kept, folder / "tasks" / f"{first}.safetensors")
        change(folder, lambda told: None, f"tasks/{first}.json")

    def other(folder: Path) -> None:
        shutil.copy(folder / "tasks" / f"{second}.safetensors", folder / "tasks" / f"{first}.safetensors")
        change(folder, lambda told: None, f"tasks/{first}.json")

    return {"stale delta": stale, "wrong task file": other}


def refused(folder: Path, lie: Lie, open_it: Callable[[Path], Any], spoilt: Path) -> str:
    """Return the first line of the refusal of a spoilt copy; empty if it opens."""
    shutil.rmtree(spoilt, ignore_errors=True)
    shutil.copytree(folder, spoilt)
    lie(spoilt)
    try:
        open_it(spoilt)
    except GraftworkError as error:
        return f"{error.what} ({error.got})" if error.got else error.what
    return ""


def caught(module: Path, bank: Path, places: Path) -> dict[str, str]:
    """Export both, spoil copies, and return lie -> message of its refusal; empty for one that opened."""
    opened = TaskModule.load(module, device="cpu")
    export(opened, places / "honest", to="onnx")
    found = {
        name: refused(places / "honest", lie, TaskModule.load, places / "spoilt")
        for name, lie in lies(len(opened.task.labels)).items()
    }
    assert not refused(
        places / "honest", lambda folder: change(folder, lambda told: None), TaskModule.load, places / "a"
    )
    tasks = Bank.open(bank, device="cpu")
    first, second = list(tasks.tasks)[:2]
    export_bank({name: tasks.module(name) for name in (first, second)}, places / "bank", to="onnx")
    for name, lie in lies_of_bank(first, second).items():
        found[name] = refused(
            places / "bank", lie, lambda folder: ExportedBank.open(folder).module(first), places / "spoilt"
        )
    return found


def run() -> None:
    """Print a line per lie, and exit with 1 if any opened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", type=Path)
    parser.add_argument("bank", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as places:
        found = caught(given.module, given.bank, Path(places))
    for name, message in found.items():
        print(f"{name:18} {message or 'OPENED'}")
    if given.out is not None:
        given.out.write_text(
            json.dumps({"caught": sum(map(bool, found.values())), "of": len(found), "lies": found}, indent=1)
        )
    raise SystemExit(not all(found.values()))


if __name__ == "__main__":
    run()
