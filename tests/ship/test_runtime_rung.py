"""A ladder for a runtime: its last rungs export, and the folder that is written opens with that runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork import compress
from graftwork.errors import ConfigError, UnknownName
from graftwork.module.task_module import TaskModule
from graftwork.ship.compress import ladder
from graftwork.ship.compression import CompressionData
from graftwork.ship.rung_measure import stored_with_backbone
from graftwork.ship.runtime_rung import runtime_rungs

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


def test_what_the_ladder_made_is_exported_and_measured_so(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher()
    found = compress(module.folder, tmp_path / "small", allow=100.0, rungs="merge", runtime="onnx")
    assert [one["rung"] for one in found["rungs"]] == ["merge", "onnx", "onnx int8"]
    assert "onnx" in found["kept"] and found["exported"] and found["runtime"] == "onnx"
    made = TaskModule.load(tmp_path / "small")  # its files have the hashes that were recorded
    assert made.backbone is None and made.description["compression"]["kept"] == found["kept"]
    assert made.description["scores"]["accuracy"] == pytest.approx(found["test"]["score"])
    assert (
        found["bytes"]
        <= stored_with_backbone(made)
        == sum(one.stat().st_size for one in (tmp_path / "small").iterdir())
    )
    texts = ["a warm film", "dull", "x y z"]
    assert [one["label"] for one in made.predict(texts)] == [one["label"] for one in module.predict(texts)]
    with pytest.raises(ConfigError, match="exported already"):
        compress(tmp_path / "small", tmp_path / "smaller")


def test_rungs_of_the_runtime_are_the_last_and_store_in_place_of_others() -> None:
    without, given = ([label for label, _ in ladder((), runtime)] for runtime in (None, "onnx"))
    assert without[-2:] == ["int8", "half"] and given == [*without[:-2], "onnx", "onnx int8"]
    assert [label for label, _ in ladder("merge,prune", "onnx")] == ["merge", "prune", "onnx", "onnx int8"]
    assert runtime_rungs(None) == []
    with pytest.raises(UnknownName, match="onnx"):
        runtime_rungs("onyx")
    with pytest.raises(UnknownName, match="runtime"):
        runtime_rungs("sklearn")  # an exporter whose folders are not opened here
