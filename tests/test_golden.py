"""What earlier versions wrote is found, read and answered from for ever: a run, its module, a ladder, a cached pass.

`golden/run_1` was made by `graft train toy.csv --method lora --epochs 1 --backbone tiny_text --threads 1 --precision
fp32 --device cpu`, `golden/ladder_1.json` by the same with `--budget 20s`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import graftwork as gw
from graftwork.core.run import ENGINE
from graftwork.data.load import load
from graftwork.io.cache_folder import CacheFolder
from graftwork.io.files import canonical, read_json
from graftwork.module.task_module import TaskModule
from graftwork.receipts.file_integrity import id_of, read_spec, record_differences
from graftwork.run.store import read_predictions
from graftwork.train.prefix_store import PassSpec, PrefixStore

GOLDEN = Path(__file__).parent / "golden"
RUN = "67f1161c0145"


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As the run was made: its id tells the threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The folder of the run and of its data, to be written to."""
    return shutil.copytree(GOLDEN / "run_1", tmp_path / "run_1")


def test_a_run_of_an_earlier_version_is_the_run_that_is_asked_for_now(
    kept: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kept)
    run = gw.train(
        gw.Task.from_file("toy.csv"), method="lora", epochs=1, backbone="tiny_text", precision="fp32", device="cpu"
    )
    assert run.reused and [path.name for path in (kept / "runs").iterdir() if path.is_dir()] == [RUN]


def test_the_files_of_a_run_are_those_that_its_receipt_tells(kept: Path) -> None:
    folder = kept / "runs" / RUN
    assert id_of(folder, ENGINE) == RUN
    assert record_differences(folder, read_spec(folder), read_json(folder / "receipt.json")) == []


def test_a_module_answers_as_it_did(kept: Path) -> None:
    folder = kept / "runs" / RUN
    module = TaskModule.load(folder / "module")
    assert module.difference < 1e-4
    test = load(gw.Task.from_file(kept / "toy.csv")).test.examples
    earlier = {row["id"]: row["prediction"] for row in read_predictions(folder) if row["split"] == "test"}
    answers = module.predict([example.inputs["text"] for example in test])
    assert {example.id: answer["label"] for example, answer in zip(test, answers, strict=True)} == earlier


def test_a_ladder_has_the_keys_that_it_had(tmp_path: Path, one_thread: None) -> None:
    earlier = read_json(GOLDEN / "ladder_1.json")
    task = gw.Task.from_file(GOLDEN / "run_1" / "toy.csv")
    rungs = ["majority", "linear_probe", "top_layers:k=1"]
    places = {"runs": tmp_path / "runs", "out": tmp_path / "ladder"}
    ladder = gw.climb(task, "30s", rungs=rungs, backbone="tiny_text", epochs=1, **places)
    assert earlier.keys() <= ladder.content.keys()
    assert earlier["rungs"][0].keys() <= ladder.content["rungs"][0].keys()
    assert earlier["chosen"].keys() <= ladder.content["chosen"].keys()


def test_a_cached_pass_is_found_under_the_name_that_it_had() -> None:
    wanted = PassSpec(
        key={"format": 2, "backbone": "a"}, name="tiny", depth=1, blocks=1, sequences=3, features=3, tokens=5,
        widths=(2, 2), width=2, dtype=torch.float32,
    )  # fmt: skip
    found = PrefixStore(CacheFolder(GOLDEN / "prefix_1", 1 << 20), dict).find(wanted)
    assert found is not None and found.states is not None
    assert torch.cat(found.pooled).tolist() == [
        [0.0, 1.0],
        [2.0, 3.0],
        [4.0, 5.0],
        [6.0, 7.0],
        [8.0, 9.0],
        [10.0, 11.0],
    ]
    assert found.states.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
    assert found.cost.wall_seconds == 1.5 and canonical(dict(wanted.key)) == '{"backbone":"a","format":2}'
