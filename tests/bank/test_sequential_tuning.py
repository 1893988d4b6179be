"""The contrast: one network that learns task after task, what it forgets, and that it can be stopped too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.bank.forgetting import figures
from graftwork.bank.sequential_tuning import frozen_copy
from graftwork.bank.stream import Stream, stream
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import safe_load, write_tensors
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.run.train import train
from graftwork.testing import tiny_dataset
from graftwork.testing.tiny_data import pooled


def write_task(folder: Path, name: str, rows: int = 24) -> Path:
    """Good and bad texts."""
    examples = [example for split in tiny_dataset(rows=rows).splits.values() for example in split.examples]
    lines = [f"{example.inputs['text']} {name} {i},{example.target}" for i, example in enumerate(examples)]
    (folder / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return folder / f"{name}.csv"


@pytest.fixture
def tasks(tmp_path: Path) -> list[Path]:
    return [write_task(tmp_path, name) for name in ("one", "two", "three")]


def contrast(tasks: Sequence[Task | Path], folder: Path, **changes: Any) -> Stream:
    settings: dict[str, Any] = {
        "method": "full-sequential:learning_rate=0.02", "backbone": "tiny_text", "epochs": 3, "runs": folder / "runs",
        "precision": "fp32", "device": "cpu", "cache_size": "0", "out": folder / "out",
    }  # fmt: skip
    return stream(tasks, folder / "b.bank", **(settings | changes))


def test_the_matrix_and_what_it_says(tasks: list[Path], tmp_path: Path) -> None:
    done = contrast(tasks, tmp_path)
    matrix, rows = done.content["matrix"], done.content["tasks"]
    assert [len(row) for row in matrix] == [1, 2, 3]
    assert [row["score"]["score"] for row in rows] == [row[-1] for row in matrix]
    for i, row in enumerate(rows):
        assert row["figures"] == vars(figures(matrix[: i + 1]))
    assert len({row["network"] for row in rows}) == 3
    assert not (tmp_path / "b.bank").exists() and not list((tmp_path / "runs").iterdir())
    assert json.loads((tmp_path / "out" / "stream.json").read_text())["matrix"] == matrix


def test_earlier_tasks_are_measured_with_the_network_as_it_is_now_and_their_own_head(
    tasks: list[Path], tmp_path: Path
) -> None:
    """The kept weights, read by hand: features of the changed network, the first task's linear layer."""
    done = contrast(tasks[:2], tmp_path)
    tensors = safe_load(tmp_path / "out" / done.content["weights"])
    network = open_backbone("tiny_text", precision="fp32").copy()
    first = {name.removeprefix("network/"): tensor for name, tensor in tensors.items() if name.startswith("network/")}
    assert any(not torch.equal(tensor, first[name]) for name, tensor in network.module.state_dict().items())
    network.module.load_state_dict(first)
    data = load(Task.from_file(tasks[0]))
    encoded = network.encode(data.test.examples)
    with torch.no_grad():
        read = pooled(network, network.collate(encoded, range(len(encoded.ids))))  # (B, D)
        unit = read / read.norm(dim=1, keepdim=True) * read.shape[1] ** 0.5
        logits = unit @ tensors["head/one/out.weight"].T + tensors["head/one/out.bias"]  # (B, C)
    right = logits.argmax(dim=1).numpy() == data.test.targets
    assert done.content["matrix"][1][0] == right.mean()


def test_the_first_task_is_full_fine_tuning(tasks: list[Path], tmp_path: Path) -> None:
    first = contrast(tasks[:1], tmp_path).content["tasks"][0]
    alone = train(
        tasks[0], method="full:learning_rate=0.02", backbone="tiny_text", epochs=3, runs=tmp_path / "alone",
        precision="fp32", device="cpu", cache_size="0",
    )  # fmt: skip
    assert first["score"]["score"] == alone.result.scores[first["metric"]]


@pytest.mark.slow
def test_it_goes_on_as_if_it_had_not_been_stopped(tasks: list[Path], tmp_path: Path) -> None:
    whole = contrast(tasks, tmp_path, out=tmp_path / "whole")
    contrast(tasks[:2], tmp_path)
    seen: list[dict[str, Any]] = []
    done = contrast(tasks, tmp_path, told=seen.append)
    assert [bool(row.get("reused")) for row in seen] == [True, True, False]
    assert done.content["matrix"] == whole.content["matrix"]
    assert [row["network"] for row in done.content["tasks"]] == [row["network"] for row in whole.content["tasks"]]
    assert len(list((tmp_path / "out").glob("*.safetensors"))) == 1


@pytest.mark.slow
def test_tasks_of_several_kinds_keep_their_own_heads(tmp_path: Path) -> None:
    """Pairs, numbers, several labels with thresholds of their own, and words of which some are not seen."""
    kinds = {"multilabel": False, "tagging": False, "classification": True, "regression": False}
    tasks = [write_kind(tmp_path, kind, pair) for kind, pair in kinds.items()]
    whole = contrast(tasks, tmp_path, out=tmp_path / "whole", epochs=1)
    assert not whole.failed and [row["kind"] for row in whole.content["tasks"]] == list(kinds)
    facts = [row["facts"] for row in whole.content["tasks"]]
    assert "shift" in facts[0] and "blind" in facts[1] and [fact["towers"] for fact in facts] == [1, 1, 1, 1]
    contrast(tasks[:3], tmp_path, epochs=1)
    assert contrast(tasks, tmp_path, epochs=1).content["matrix"] == whole.content["matrix"]


def write_kind(folder: Path, kind: str, pair: bool) -> Task:
    """The toy task of a kind as JSONL, each text with a number of its own."""
    data = tiny_dataset(kind, pair=pair, rows=24)
    lines = []
    for i, example in enumerate(example for split in data.splits.values() for example in split.examples):
        inputs = {
            role: [*given, str(i)] if role == "words" else f"{given} {i}" for role, given in example.inputs.items()
        }
        target = [*example.target, "O"] if kind == "tagging" else example.target
        label = {"tags": target} if kind == "tagging" else {"label": list(target) if kind == "multilabel" else target}
        lines.append(json.dumps(inputs | label))
    (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Task.from_file(folder / f"{kind}.jsonl", kind=kind)


def test_what_was_learnt_must_be_there_and_the_same(tasks: list[Path], tmp_path: Path) -> None:
    contrast(tasks[:2], tmp_path)
    with pytest.raises(ConfigError, match=r"(?s)must be scored again.*no one\n"):
        contrast(tasks[1:], tmp_path)
    with pytest.raises(ConfigError, match=r"(?s)must be scored again.*no two"):
        contrast([tasks[0], tasks[2]], tmp_path)
    write_task(tmp_path, "two", rows=30)
    with pytest.raises(ConfigError, match="was trained on 'two' already"):
        contrast(tasks, tmp_path)


def test_other_weights_are_refused(tasks: list[Path], tmp_path: Path) -> None:
    contrast(tasks[:1], tmp_path)
    path = next((tmp_path / "out").glob("*.safetensors"))
    tensors = safe_load(path)
    write_tensors(
        path, {name: tensor + 1 if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    )
    with pytest.raises(StorageError, match="not the weights that the stream saved"):
        contrast(tasks, tmp_path)


@pytest.mark.slow
def test_a_task_that_fails_leaves_the_network_as_it_was(tasks: list[Path], tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("text,label\na,b\n", encoding="utf-8")
    done = contrast(tasks, tmp_path)
    assert set(done.failed) == {"two"}
    assert done.content["matrix"] == contrast([tasks[0], tasks[2]], tmp_path, out=tmp_path / "other").content["matrix"]


def test_a_changed_network_goes_by_another_name() -> None:
    backbone = open_backbone("tiny_text", precision="bf16")
    one, same = frozen_copy(backbone), frozen_copy(backbone)
    assert one.card.revision == same.card.revision != backbone.card.revision
    with torch.no_grad():
        next(one.module.parameters()).view(-1)[0] += 1
    assert frozen_copy(one).card.revision != same.card.revision
    assert torch.equal(next(same.module.parameters()), next(backbone.module.parameters()))
