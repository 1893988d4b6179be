"""The store: whole runs or none, found by id, and errors that say what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.meter import Cost
from graftwork.core.run import RunResult, RunSpec
from graftwork.core.task import Split
from graftwork.errors import StorageError, UnknownName
from graftwork.files import require_writable, write_json
from graftwork.run.store import RunStore, read_logits, read_result, write_predictions, write_run

SPEC = RunSpec({}, "data", None, {"name": "majority"}, {}, 0, {})


def put(store: RunStore, run_id: str, status: str = "ok") -> RunResult:
    result = RunResult(run_id, 0, status, {"accuracy": 0.5}, costs={"money": Cost(None, "EUR", "model")})
    with store.writing(run_id) as folder:
        write_run(folder, SPEC, result)
    return result


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    require_writable(tmp_path / "deep" / "runs")
    return RunStore(tmp_path / "deep" / "runs")


def test_what_is_put_is_found(store: RunStore) -> None:
    result = put(store, "aaa")
    assert store.find("aaa") == result == read_result(store.root / "aaa" / "result.json")
    assert store.find("bbb") is None
    spec = json.loads((store.root / "aaa" / "spec.json").read_text())
    assert spec["format"] == 1 and spec["method"] == {"name": "majority"}


def test_a_run_appears_whole_or_not_at_all(store: RunStore) -> None:
    with store.writing("aaa") as folder:
        assert folder.parent == store.root and not (store.root / "aaa").exists() and store.ids() == []
        write_run(folder, SPEC, RunResult("aaa", 0, "ok"))
        assert store.ids() == []
    assert store.ids() == ["aaa"]
    with pytest.raises(RuntimeError), store.writing("bbb") as folder:
        write_run(folder, SPEC, RunResult("bbb", 0, "ok"))
        raise RuntimeError
    assert [path.name for path in store.root.iterdir()] == ["aaa"]


def test_a_failed_run_is_not_found_and_is_replaced(store: RunStore) -> None:
    put(store, "aaa", "failed")
    (store.root / "aaa" / "left over").touch()
    assert store.find("aaa") is None and store.ids() == ["aaa"]
    put(store, "aaa", "dropped")
    assert not (store.root / "aaa" / "left over").exists()
    put(store, "aaa")
    put(store, "aaa", "failed")  # of another process, too late
    found = store.find("aaa")
    assert found is not None and found.status == "ok"
    assert [path.name for path in store.root.iterdir()] == ["aaa"]


def test_oldest_first_and_by_the_beginning_of_the_id(store: RunStore) -> None:
    for age, name in enumerate(("bbb1", "aaa1", "bbb2")):
        put(store, name)
        os.utime(store.root / name, (1000 + age, 1000 + age))
    (store.root / ".half.x").mkdir()
    (store.root / "no run").mkdir()
    assert store.ids() == ["bbb1", "aaa1", "bbb2"]
    assert store.folder("a") == store.root / "aaa1"
    with pytest.raises(UnknownName, match="unknown run 'bbb3'"):
        store.folder("bbb3")
    with pytest.raises(StorageError, match="'bbb' begins several runs"):
        store.folder("bbb")


def test_a_folder_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="a file stands where a folder is needed"):
        require_writable(tmp_path / "file" / "runs")


def test_looking_writes_nothing(store: RunStore) -> None:
    put(store, "aaa")
    store.root.chmod(0o555)
    before = store.root.stat().st_mtime_ns
    try:
        looking = RunStore(store.root)
        assert (looking.ids(), looking.folder("a").name, looking.find("bbb")) == (["aaa"], "aaa", None)
        assert store.root.stat().st_mtime_ns == before
    finally:
        store.root.chmod(0o755)


def test_a_result_of_another_format_or_a_torn_one(store: RunStore) -> None:
    put(store, "aaa")
    path = store.root / "aaa" / "result.json"
    write_json(path, json.loads(path.read_text()) | {"format": 99})
    with pytest.raises(StorageError, match="another version"):
        store.find("aaa")
    path.write_text('{"format": 1, "id"')
    with pytest.raises(StorageError, match="not a whole JSON file"):
        store.find("aaa")


def test_logits_come_back_bit_for_bit_and_in_order(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    splits = []
    for name in ("validation", "test"):
        examples = tuple(Example(f"{name}/{i}", {"text": "ü\u2028x"}, "a") for i in range(5))
        splits.append((Split(name, examples, np.zeros(5)), random.normal(size=(5, 3)) * 10.0 ** random.integers(-9, 9)))
    decoded = {split.name: [{"label": "a"}] * 5 for split, _ in splits}
    write_predictions(tmp_path, splits, decoded)
    for split, logits in splits:
        assert np.array_equal(read_logits(tmp_path, split.name), logits)


@pytest.mark.parametrize(
    ("answer", "expected"), [({"label": "a"}, "a"), ({"label": ["a", "b"]}, ["a", "b"]), ({"value": 0.5}, 0.5)]
)
def test_an_answer_of_every_kind_is_written(answer: dict[str, object], expected: object, tmp_path: Path) -> None:
    split = Split("test", (Example("test/1", {"text": "x"}, ("a", "b")),), np.zeros(1))
    write_predictions(tmp_path, [(split, np.zeros((1, 2)))], {"test": [answer]})
    line = json.loads((tmp_path / "predictions.jsonl").read_text())
    assert line == {"id": "test/1", "split": "test", "target": ["a", "b"], "prediction": expected, "logits": [0, 0]}
