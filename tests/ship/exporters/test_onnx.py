"""A folder exported to ONNX answers as its module does: through onnxruntime, and by the program in its README."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.cli.main import main
from graftwork.core.configured_methods import parse_method
from graftwork.core.ragged import Ragged, flat
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.io.files import read_json, write_json
from graftwork.module.task_module import TaskModule
from graftwork.module.trained_on import reopen_data
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.write_folder import write_backbone
from graftwork.registry import kinds
from graftwork.run.execute import execute
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.ship import export as exporting
from graftwork.ship.compress import compress
from graftwork.ship.export import changes, export, write_export
from graftwork.ship.exporters import onnx as onnx_exporter
from graftwork.ship.rung_measure import scores_on

OpenSession = Callable[..., Session]
TEXTS = ["good film", "a bad one, and long, and dull, and long again", "x"]
ROWS: dict[str, Callable[[int], Any]] = {
    "tagging": lambda i: {"words": ["see", "Ann", f"w{i}"], "tags": ["O", "B-PER", "O"]},
    "span": lambda i: {
        "context": f"Ann saw {i} cats",
        "question": "Who saw?",
        "answers": [{"text": "Ann", "answer_start": 0}],
    },
    "choice": lambda i: {"text": f"a {i}", "choices": ["good", "bad", f"c{i}"], "label": i % 3},
    "ranking": lambda i: {
        "text": f"a {i}",
        "choices": ["good", "bad", f"c{i}"],
        "label": [int(i % 3 == j) for j in range(3)],
    },
}


def open_rows(kind: str, folder: Path) -> Session:
    """A session over rows with words or choices."""
    path = folder / f"{kind}.jsonl"
    path.write_text("".join(json.dumps(ROWS[kind](i)) + "\n" for i in range(30)))
    task = Task.from_file(path, kind=kind)
    return open_session(task, [parse_method("lora")], RunSettings("tiny_text", runs=str(folder / "runs")))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, bool], Path]:
    """Modules by kind, method and whether over pairs, made on first use."""
    return {}


@pytest.fixture
def module(open_tiny: OpenSession, made: dict[tuple[str, str, bool], Path], tmp_path: Path) -> Callable[..., Path]:
    """The folder of a trained module."""

    def make(kind: str = "classification", method: str = "linear_probe", pair: bool = False) -> Path:
        if (kind, method, pair) not in made:
            session = open_tiny(kind, pair) if kind not in ROWS else open_rows(kind, tmp_path)
            result, _ = execute(session, parse_method(method), Recipe(epochs=1), 0, lambda done, text: None)
            made[kind, method, pair] = session.store.root / result.id / "module"
        return made[kind, method, pair]

    return make


def test_it_answers_as_the_module(
    module: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = export(module(), tmp_path / "out", to="onnx")
    assert told["largest_difference"] < 1e-4 and told["texts"] > told["known_rows"] > 0
    opened, own = TaskModule.load(tmp_path / "out"), TaskModule.load(module(), device="cpu").in_fp32()
    assert opened.backbone is None and opened.max_length == own.max_length
    for answer, expected in zip(opened.predict(TEXTS), own.predict(TEXTS), strict=True):
        assert answer["label"] == expected["label"]
        assert answer["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    assert opened.cut(["long " * 1000, "short"]) == 1
    assert main(["show", str(tmp_path / "out")]) == 2
    assert "see README.md in this exported folder" in capsys.readouterr().err
    program = (tmp_path / "out" / "example.py").read_text()
    assert f"```python\n{program}```" in (tmp_path / "out" / "README.md").read_text()
    assert len(program.splitlines()) < 40
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["example.py"])
        with pytest.raises(SystemExit, match="Answers with an exported task"):
            runpy.run_path(str(tmp_path / "out" / "example.py"), run_name="__main__")
        patch.setattr(sys, "argv", ["example.py", *TEXTS])
        runpy.run_path(str(tmp_path / "out" / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.split() == [answer["label"] for answer in own.predict(TEXTS)]


def test_data_that_was_moved_is_compared_where_it_is_now(module: Callable[..., Path], tmp_path: Path) -> None:
    folder, there = tmp_path / "module", Path(read_json(module() / "module.json")["data"]["files"]["data"])
    shutil.copytree(module(), folder)
    told = read_json(folder / "module.json")
    write_json(folder / "module.json", told | {"data": told["data"] | {"files": {"data": str(tmp_path / "gone.csv")}}})
    assert export(folder, tmp_path / "alone", to="onnx")["known_rows"] == 0
    assert export(folder, tmp_path / "out", to="onnx", data=there)["known_rows"] > 0
    assert read_json(tmp_path / "out" / "graftwork.json")["data"]["files"]["data"] == str(there)
    with pytest.raises(ConfigError, match="the data that the module was trained on is needed"):
        export(folder, tmp_path / "more", to="onnx", data=tmp_path / "other.csv")


def test_a_network_in_8_bit_integers_for_torch_is_refused(module: Callable[..., Path], tmp_path: Path) -> None:
    compress(module(), tmp_path / "small", allow=100, aim="bytes", rungs="int8")
    with pytest.raises(ConfigError, match="its matrices are 8-bit integers for torch"):
        export(tmp_path / "small", tmp_path / "out", to="onnx")


def test_the_price_is_that_of_what_was_exported(
    module: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, own = export(module(), tmp_path / "out", to="onnx"), TaskModule.load(module(), device="cpu").description
    found = json.loads((tmp_path / "out" / "graftwork.json").read_text())["costs"]
    speed = own["costs"]["predict_per_second"]["value"] * told["times_as_fast"]
    assert found["predict_per_second"] == {"value": pytest.approx(speed), "unit": "per second", "grade": "model"}
    assert found["stored_bytes"]["value"] == pytest.approx(told["bytes"], rel=0.01)  # its own network is in it
    assert found["total_seconds"]["value"] > own["costs"]["total_seconds"]["value"]
    assert main(["price", str(tmp_path / "out"), "--predictions", "1e6"]) == 0
    assert "linear_probe > onnx costs" in capsys.readouterr().out
    write_export(TaskModule.load(module(), device="cpu"), tmp_path / "untimed", "onnx", False, [])
    assert main(["price", str(tmp_path / "untimed"), "--predictions", "1e6"]) == 2
    assert "the speed of predictions was not measured" in capsys.readouterr().err


@pytest.mark.slow
def test_the_program_answers_by_the_costs_of_the_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{text} {number},{text}\n" for number in range(20) for text in ("good", "bad"))
    (tmp_path / "rows.csv").write_text("text,label\n" + rows)
    costs = {"good": {"good": 0.0, "bad": 1.0}, "bad": {"good": 1000.0, "bad": 0.0}}  # never say good
    task = Task.from_file(tmp_path / "rows.csv", costs=costs)
    refused = {
        "lora:rank=2": ("sentence_transformers", "do:       export it to onnx, or train it without --costs"),
        "tfidf_svm": ("sklearn", "do:       train it without --costs"),
    }
    for method, (other, said) in refused.items():
        session = open_session(task, [parse_method(method)], RunSettings("tiny_text", runs=str(tmp_path / "runs")))
        result, _ = execute(session, parse_method(method), Recipe(epochs=1), 0, lambda done, text: None)
        folder = session.store.root / result.id / "module"
        with pytest.raises(ConfigError, match=said):
            export(folder, tmp_path / other, to=other)
        if other == "sentence_transformers":
            export(folder, tmp_path / "out", to="onnx")
    own = TaskModule.load(tmp_path / "out")
    assert [answer["label"] for answer in own.predict(["good 1"])] == ["bad"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["example.py", "good 1", "bad 2"])
        runpy.run_path(str(tmp_path / "out" / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.split() == ["bad", "bad"]


@pytest.mark.slow
def test_a_cross_encoder_is_one_network_that_reads_pairs_together(tmp_path: Path) -> None:
    tiny: Any = open_backbone("tiny_text", precision="fp32")
    write_backbone(replace(tiny, card=replace(tiny.card, towers=2)), tmp_path / "apart")
    rows = "".join(f"{a} {i}\t{b}\t{a == b}\n" for i in range(12) for a in ("good", "bad") for b in ("good", "bad"))
    (tmp_path / "rows.tsv").write_text("text_a\ttext_b\tlabel\n" + rows)
    method = parse_method("cross_encoder:by=lora:rank=2")
    setup = RunSettings(f"hf:{tmp_path / 'apart'}", runs=str(tmp_path / "runs"), precision="fp32")
    session = open_session(Task.from_file(tmp_path / "rows.tsv"), [method], setup)
    assert session.backbone is not None and session.backbone.card.towers == 2
    result, _ = execute(session, method, Recipe(epochs=1), 0, lambda done, text: None)
    folder = session.store.root / result.id / "module"
    assert export(folder, tmp_path / "out", to="onnx")["largest_difference"] < 1e-4
    pairs = [("good 1", "good"), ("bad 2", "a longer one")]
    own, exported = TaskModule.load(folder, device="cpu"), TaskModule.load(tmp_path / "out")
    examples = own.examples(pairs)
    assert np.allclose(exported.fitted.logits(examples), own.fitted.logits(examples), atol=1e-4)
    compress(folder, tmp_path / "merged", allow=100.0, aim="bytes", rungs="merge,half")
    merged = TaskModule.load(tmp_path / "merged")
    assert np.allclose(merged.fitted.logits(examples), own.fitted.logits(examples), atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "method", "pair"),
    [
        ("classification", "adapter:size=4", False),
        ("classification", "lora", True),
        ("classification", "full", False),
        ("classification", "prefix", False),
        ("classification", "bitfit", False),
        ("classification", "ia3", False),
        ("classification", "prototype", True),
        ("classification", "scalar_mix", False),
        ("classification", "top_layers", False),
        ("multilabel", "linear_probe", False),
        ("regression", "lora", True),
        ("tagging", "lora", False),
        ("tagging", "linear_probe", False),
        ("span", "lora", False),
        ("choice", "lora", False),
        ("ranking", "linear_probe", False),
    ],
)
def test_every_kind_and_method_gives_the_logits_of_the_module(
    kind: str, method: str, pair: bool, module: Callable[..., Path], tmp_path: Path
) -> None:
    folder = module(kind, method, pair)
    told = export(folder, tmp_path / "out", to="onnx")
    assert told["largest_difference"] < 1e-4
    own, opened = TaskModule.load(folder, device="cpu").in_fp32(), TaskModule.load(tmp_path / "out")
    examples = own.self_test_examples()[:3]
    assert np.abs(flat(opened.fitted.logits(examples)) - flat(own.fitted.logits(examples))).max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "words"), [("tagging", ["see", "Ann", "w3"]), ("span", ["Ann", "saw", "3", "cats"])])
def test_the_program_answers_over_words(
    kind: str, words: list[str], module: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(module(kind, "lora"), tmp_path / "out", to="onnx")
    given: dict[str, Any] = (
        {"words": words} if kind == "tagging" else {"question": "Who saw?", "context": " ".join(words)}
    )
    opened = TaskModule.load(tmp_path / "out")
    tags = flat(kinds.get(kind).predictions(opened.fitted.logits(opened.examples([given])), opened.task))
    answer = opened.predict([given])[0]["answer"].split() if kind == "span" else [opened.task.labels[i] for i in tags]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["example.py", *(["Who saw?"] if kind == "span" else []), " ".join(words)])
        runpy.run_path(str(tmp_path / "out" / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.split() == answer


def test_a_file_that_is_missing_is_named(module: Callable[..., Path], tmp_path: Path) -> None:
    export(module(), tmp_path / "out", to="onnx")
    (tmp_path / "out" / "tokenizer.json").unlink()
    with pytest.raises(StorageError, match=r"tokenizer\.json"):
        TaskModule.load(tmp_path / "out")


def test_labels_in_another_order_are_refused(module: Callable[..., Path], tmp_path: Path) -> None:
    export(module(), tmp_path / "out", to="onnx")
    path = tmp_path / "out" / "graftwork.json"
    told = json.loads(path.read_text())
    told["task"]["labels"] = told["task"]["labels"][::-1]
    path.write_text(json.dumps(told))
    with pytest.raises(IncompatibleModule, match="labels have changed"):
        TaskModule.load(tmp_path / "out")
    told["task"]["labels"] = told["task"]["labels"][::-1]
    told["export"]["format"] = 2
    path.write_text(json.dumps(told))
    with pytest.raises(IncompatibleModule, match="unknown format"):
        TaskModule.load(tmp_path / "out")
    path.write_text("{}")
    with pytest.raises(StorageError, match="not a description of an export"):
        TaskModule.load(tmp_path / "out")


def test_what_differs_is_not_written(
    module: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "ALLOWED", 0.0)
    with pytest.raises(IncompatibleModule, match="onnx gives other logits than the module"):
        export(module(), tmp_path / "out", to="onnx")
    assert list(tmp_path.glob("*out*")) == [] and list(tmp_path.glob(".out*")) == []


@pytest.mark.slow
def test_8_bit_integers_tell_what_they_change(
    module: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "MOST_CHANGED", 1.0)
    told = export(module(), tmp_path / "out", to="onnx", int8=True)
    assert 0 <= told["int8"]["changed_predictions"] <= 1 and told["int8"]["largest_difference"] > 0
    made = TaskModule.load(tmp_path / "out")
    assert made.description["precision"] == "int8"
    dataset, _ = reopen_data(made.description["data"], made.task)
    assert dataset is not None
    again = scores_on(made.task, dataset.test, made.fitted.logits(dataset.test.examples))
    assert made.description["scores"] == told["scores"] == again
    monkeypatch.setattr(exporting, "TESTED", 0)
    assert export(module(), tmp_path / "unscored", to="onnx", int8=True)["scores"] == {}
    assert TaskModule.load(tmp_path / "unscored").description["scores"] == {}
    monkeypatch.setattr(exporting, "MOST_CHANGED", -1.0)
    with pytest.raises(IncompatibleModule, match="8-bit integers change too many predictions"):
        export(module(), tmp_path / "more", to="onnx", int8=True)
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression", *ROWS])
def test_a_change_is_that_of_a_whole_answer(kind: str, module: Callable[..., Path]) -> None:
    opened = TaskModule.load(module(kind, "lora"), device="cpu").in_fp32()
    examples, _ = exporting.rows_to_compare(opened, exporting.splits_to_compare(exporting.reopened(opened)))
    examples = [one for one in examples if kind != "choice" or len(one.inputs["choices"]) > 1]
    logits = opened.fitted.logits(examples)

    def told(share: float, shift: float) -> dict[str, Any]:
        rows = np.linspace(-1, 1, flat(logits).size).reshape(flat(logits).shape) if share else flat(logits)
        changed = rows * (share or 1.0) + shift
        found = replace(logits, flat=changed) if isinstance(logits, Ragged) else changed
        return changes(opened, examples, found, logits, "onnx")

    alike = 0.05 if kind == "regression" else 0.2 if kind != "multilabel" else 0.0
    assert told(0.0, alike)["changed_predictions"] == 0.0, "what moves all logits alike changes no answer"
    answers = len(flat(logits)) if kind == "tagging" else len(examples)
    assert told(0.0, 0.0)["predictions"] == answers
    assert told(9.0, 0.0)["changed_predictions"] > (0.05 if kind == "tagging" else 0.3)


def test_modules_without_a_network_are_refused(module: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tfidf_svm has no network"):
        export(module(method="tfidf_svm"), tmp_path / "out", to="onnx")


@pytest.mark.slow
def test_it_answers_without_torch(module: Callable[..., Path], tmp_path: Path) -> None:
    export(module(), tmp_path / "out", to="onnx")
    code = (
        "import sys; from graftwork.module.task_module import TaskModule\n"
        f"print(TaskModule.load({str(tmp_path / 'out')!r}).predict(['good film'])); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search("'label'", done.stdout)


def test_a_processor_that_says_nothing_counts_as_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for told, expected in (("flags : avx2", False), ("flags : avx2 avx512_vnni", True), ("Features : neon", True)):
        monkeypatch.setattr(Path, "read_text", lambda path, encoding, told=told: told)
        assert onnx_exporter.has_vnni() is expected
