"""A bank exported to ONNX answers rows of any tasks as the bank does, from one graph."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, load_file, save_file

from graftwork.bank.bank import Bank
from graftwork.bank.exported_bank import ExportedBank
from graftwork.cli.main import main
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.errors import ConfigError, IncompatibleModule, StorageError, UnknownName
from graftwork.io.files import file_digest
from graftwork.run.execute import execute
from graftwork.run.session import Session
from graftwork.ship import export as exporting
from graftwork.ship.export_bank import export_bank
from graftwork.ship.onnx_tasks import GraphOfTasks

OpenSession = Callable[..., Session]
TEXTS = ["good film", "a bad one, and long, and dull", "x"]
METHODS = ("linear_probe", "lora", "lora:rank=2", "adapter:size=4", "bitfit")
UNFIT = "full"


@pytest.fixture
def bank(open_tiny: OpenSession, tmp_path: Path) -> Bank:
    """Tasks by several methods, and one over pairs."""
    made = Bank.create(tmp_path / "bank", backbone="tiny_text", precision="fp32")
    session = open_tiny("classification", False)
    for number, method in enumerate(METHODS):
        result, _ = execute(session, parse_method(method), Recipe(epochs=1), 0, lambda done, text: None)
        made.add(session.store.root / result.id / "module", f"t{number}")
    result, _ = execute(
        open_tiny("multilabel", True), parse_method("lora"), Recipe(epochs=1), 0, lambda done, text: None
    )
    made.add(tmp_path / "runs" / result.id / "module", "pairs")
    return made


@pytest.mark.slow
def test_rows_of_all_tasks_are_answered_as_in_the_bank(
    bank: Bank, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = export_bank({name: bank.module(name) for name in bank.tasks}, tmp_path / "out", to="onnx")
    assert told["tasks"] == len(METHODS) + 1 and told["largest_difference"] < 1e-4
    opened = ExportedBank.open(tmp_path / "out")
    assert opened.load_all() == {} and list(opened.tasks) == list(bank.tasks)
    rows = [(f"t{number}", text) for text in TEXTS for number in range(len(METHODS))]
    rows += [("pairs", (one, one[::-1])) for one in TEXTS]
    for found, expected in zip(opened.predict(rows), bank.predict(rows), strict=True):
        assert found["label"] == expected["label"]
        assert found["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-4)
    assert opened.cut([("t0", "long " * 1000), ("t0", "short")]) == [True, False]
    with pytest.raises(UnknownName, match="t9"):
        opened.predict([("t9", "a")])
    with pytest.raises(ConfigError, match="no network that can be looked into"):
        opened.open_backbone()
    shown = opened.tasks["t1"].description["costs"]
    assert shown["total_seconds"]["value"] > 0 and shown["predict_per_second"]["value"] is None  # that was torch's
    one = opened.module("t1")
    assert np.allclose(
        one.fitted.logits(one.examples(TEXTS)), bank.module("t1").fitted.logits(one.examples(TEXTS)), atol=1e-4
    )
    assert main(["predict", str(tmp_path / "out"), "t1", "good film"]) == 0
    assert main(["predict", str(tmp_path / "out"), "t1"]) == 2
    assert f"graft predict {tmp_path / 'out'} t1 " in capsys.readouterr().err


@pytest.mark.slow
def test_files_of_another_task_are_refused(bank: Bank, tmp_path: Path) -> None:
    names = ["t1", "t2"]
    export_bank({name: bank.module(name) for name in names}, tmp_path / "out", to="onnx")
    path = tmp_path / "out" / "graftwork_bank.json"
    told = json.loads(path.read_text())
    first, second = (tmp_path / "out" / "tasks" / f"{name}.safetensors" for name in names)
    whole = first.read_bytes()
    first.write_bytes(second.read_bytes())
    with pytest.raises(IncompatibleModule, match=r"tasks/t1.safetensors has changed"):
        ExportedBank.open(tmp_path / "out")
    told["export"]["files"]["tasks/t1.safetensors"] = told["export"]["files"]["tasks/t2.safetensors"]
    path.write_text(json.dumps(told))
    with pytest.raises(IncompatibleModule, match=r"tasks/t1.safetensors holds other adapters"):
        ExportedBank.open(tmp_path / "out").module("t1")
    opened = ExportedBank.open(tmp_path / "out")
    assert list(opened.load_all()) == ["t1"] and opened.predict([("t2", "good film")])  # the other task answers
    own = load(whole)
    save_file({name: one if name.startswith("head.") else one * 3 for name, one in own.items()}, first)
    told["export"]["files"]["tasks/t1.safetensors"] = file_digest(first)
    path.write_text(json.dumps(told))
    with pytest.raises(IncompatibleModule, match=r"the adapters in tasks/t1.safetensors are not those"):
        ExportedBank.open(tmp_path / "out").module("t1")
    path.write_text("[]")
    with pytest.raises(StorageError, match="not a description of an export"):
        ExportedBank.open(tmp_path / "out")


@pytest.mark.slow
def test_8_bit_integers_tell_what_they_change_of_each_task(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {name: bank.module(name) for name in ("t0", "t1")}
    monkeypatch.setattr(exporting, "MOST_CHANGED", 1.0)
    told = export_bank(modules, tmp_path / "out", to="onnx", int8=True)
    assert told["int8"].keys() == modules.keys() and told["int8"]["t1"]["predictions"] > 9
    opened = ExportedBank.open(tmp_path / "out")
    assert opened.precision == "int8" and opened.load_all() == {}
    monkeypatch.setattr(exporting, "MOST_CHANGED", -1.0)
    with pytest.raises(IncompatibleModule, match="8-bit integers change too many predictions of task 't"):
        export_bank(modules, tmp_path / "more", to="onnx", int8=True)
    assert not (tmp_path / "more").exists()


@pytest.mark.slow
def test_adapters_that_half_precision_would_change_stay_in_fp32(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {name: bank.module(name) for name in ("t0", "t1")}
    assert export_bank(modules, tmp_path / "half", to="onnx")["in_fp32"] == []
    monkeypatch.setattr("graftwork.ship.export_bank.same_logits", lambda module, *given: module is not coarse)
    coarse = modules["t1"]
    monkeypatch.setattr(type(coarse), "in_fp32", lambda module: module)
    told = export_bank(modules, tmp_path / "whole", to="onnx")
    assert told["in_fp32"] == ["t1"]
    found = {one: load_file(tmp_path / one / "tasks" / "t1.safetensors") for one in ("half", "whole")}
    for name in found["half"]:
        assert found["whole"][name].dtype == np.float32
        assert found["half"][name].dtype == (np.float32 if name.startswith("head.") else np.float16)
    assert ExportedBank.open(tmp_path / "whole").load_all() == {}


@pytest.mark.slow
def test_adapters_are_stored_as_8_bit_integers_where_these_change_few_predictions(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["t0", "t1", "t3", "t4"]
    modules = {name: bank.module(name) for name in names}
    few = iter([True, True, False, True])
    monkeypatch.setattr("graftwork.ship.export_bank.are_few", lambda told: next(few))
    told = export_bank(modules, tmp_path / "out", to="onnx", tasks_as="int8")
    assert told["adapters_int8"].keys() == modules.keys() and told["not_in_int8"] == ["t3"] and told["in_fp32"] == []
    stored = {name: load_file(tmp_path / "out" / "tasks" / f"{name}.safetensors") for name in names}
    matrices = [name for name, one in stored["t1"].items() if one.ndim == 2 and not name.startswith("head.")]
    for name in (one for one in matrices if not one.endswith("|scale")):
        assert stored["t1"][name].dtype == np.int8 and np.abs(stored["t1"][name]).max() == 127
        assert stored["t1"][f"{name}|scale"].size == min(stored["t1"][name].shape)
    for name in ("t3", "t4"):  # kept, and vectors alone
        assert {one.dtype for place, one in stored[name].items() if not place.startswith("head.")} == {
            np.dtype("float16")
        }
    opened = ExportedBank.open(tmp_path / "out")
    assert opened.precision == "fp32" and opened.load_all() == {}
    for name in names:
        examples = modules[name].examples(TEXTS)
        found, expected = opened.module(name).fitted.logits(examples), modules[name].fitted.logits(examples)
        assert np.allclose(found, expected, atol=0.05)
    with pytest.raises(ConfigError, match="unknown type for stored adapters"):
        export_bank(modules, tmp_path / "more", to="onnx", tasks_as="int4")


@pytest.mark.slow
def test_a_task_is_read_and_tested_on_first_use_and_many_share_batches(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(bank.path), str(tmp_path / "out"), "--to", "onnx", "--tasks-as", "int8"]) == 0
    said = capsys.readouterr().out
    assert all(re.search(rf"8-bit integers change \d.* % of \d+ predictions of {name}\n", said) for name in bank.tasks)
    runs: list[list[str]] = []
    answered = GraphOfTasks.logits

    def counted(graph: GraphOfTasks, wanted: Any) -> Any:
        runs.append(list(wanted))
        return answered(graph, wanted)

    monkeypatch.setattr(GraphOfTasks, "logits", counted)
    opened = ExportedBank.open(tmp_path / "out")
    opened.predict([("t1", "good film")])
    assert runs == [["t1"]] * 3  # its test, a text that is too long, and the row
    runs.clear()
    assert opened.load_all() == {}
    others = [name for name in bank.tasks if name != "t1"]
    assert runs == [others, ["pairs"]]  # the only one of its kind is also tested on texts that are too long
    runs.clear()
    opened.predict([(name, "good film") for name in others[:2]])
    assert runs == [others[:2]]


@pytest.mark.slow
def test_tasks_that_need_a_graph_of_their_own_are_named(
    open_tiny: OpenSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = open_tiny("classification", False)
    result, _ = execute(session, parse_method("full"), Recipe(epochs=1), 0, lambda done, text: None)
    bank = Bank.create(tmp_path / "bank", backbone="tiny_text", precision="fp32")
    bank.add(session.store.root / result.id / "module", "whole")
    with pytest.raises(ConfigError, match="whole: full has weights of its own"):
        export_bank({"whole": bank.module("whole")}, tmp_path / "out", to="onnx")
    with pytest.raises(ConfigError, match="the bank has no task"):
        export_bank({}, tmp_path / "out", to="onnx")
    assert main(["export", str(tmp_path / "bank"), str(tmp_path / "out"), "--to", "onnx", "--task", "whole"]) == 0
    assert "see README.md there" in capsys.readouterr().out
    given = ["export", str(tmp_path / "bank"), str(tmp_path / "more"), "--to", "onnx", "--task", "whole"]
    assert main([*given, "--tasks-as", "int8"]) == 2
    assert "--tasks-as is for several tasks of a bank" in capsys.readouterr().err
