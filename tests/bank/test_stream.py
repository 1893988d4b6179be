"""A stream adds task after task, proves that the earlier ones are what they were, and goes on where it was stopped."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError

from graftwork.bank import bank_folder as store
from graftwork.bank import integrity, stream_training
from graftwork.bank import stream as streaming
from graftwork.bank.bank_folder import BankFolder
from graftwork.bank.integrity import UnchangedCheck
from graftwork.bank.stream import Stream, stream
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError, GraftworkError, IncompatibleModule, StorageError
from graftwork.io.files import write_json
from graftwork.module.task_module import TaskModule
from graftwork.run import run_checkpoint
from graftwork.run.session import OpenBackbone, open_shared
from graftwork.run.train import train
from graftwork.testing import tiny_dataset
from graftwork.testing.tiny_networks import write_awd_lstm

Stop = Callable[[dict[str, Any]], None]
NAMES = ("one", "two", "three")


@pytest.fixture
def tasks(tmp_path: Path) -> list[Path]:
    """Three task files over texts of their own."""
    return [write_task(tmp_path, name) for name in NAMES]


def write_task(folder: Path, name: str, rows: int = 24, settings: str = "") -> Path:
    """A task file and its data: good and bad texts, each with the task's name and a number in it."""
    data = tiny_dataset(rows=rows)
    examples = [example for split in data.splits.values() for example in split.examples]
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream_:
        lines = [(f"{example.inputs['text']} {name} {i}", example.target) for i, example in enumerate(examples)]
        csv.writer(stream_).writerows([("text", "label"), *lines])
    path = folder / f"{name}.toml"
    path.write_text(f'data = "{name}.csv"\n{settings}', encoding="utf-8")
    return path


def streamed(tasks: list[Path], folder: Path, bank: str | None = "b.bank", **changes: Any) -> Stream:
    """A stream on `tiny_text` into a bank in `folder`."""
    settings: dict[str, Any] = {
        "method": "prototype", "backbone": "tiny_text", "epochs": 1, "runs": folder / "runs", "precision": "fp32",
        "device": "cpu", "cache_size": "0",
    }  # fmt: skip
    return stream(tasks, folder / bank if bank else None, **(settings | changes))


def after(name: str, act: Callable[[], None]) -> Stop:
    """Does something once this task is learnt."""
    return lambda row: act() if row["task"] == name else None


def interrupt() -> None:
    raise KeyboardInterrupt


def forbidden(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("nothing is to be trained")


def modules(folder: Path) -> dict[str, dict[str, bytes]]:
    """Task -> the files of its versions."""
    return {
        task.name: {str(path.relative_to(task)): path.read_bytes() for path in task.rglob("*") if path.is_file()}
        for task in (folder / "b.bank" / "tasks").iterdir()
    }


def test_each_task_is_added_and_the_others_are_compared(tasks: list[Path], tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    done = streamed(tasks, tmp_path, told=seen.append)
    assert [row["task"] for row in done.content["tasks"]] == list(NAMES) == [row["task"] for row in seen]
    assert [row["earlier"] for row in seen] == [{"compared": count, "identical": True} for count in range(3)]
    assert done.path == tmp_path / "stream.json" and not done.failed
    assert json.loads(done.path.read_text(encoding="utf-8"))["tasks"] == done.content["tasks"]
    for row in seen:
        module = TaskModule.load(tmp_path / "b.bank" / "tasks" / row["task"] / "1")
        assert module.description["run"] == row["run"] and module.description["scores"] == row["scores"]
        assert row["bytes"] == sum(path.stat().st_size for path in module.folder.iterdir())
        assert row["score"]["low"] <= row["score"]["score"] <= row["score"]["high"]
        assert row["score"]["score"] == row["scores"][row["metric"]]
        assert all(row["seconds"][phase] >= 0 for phase in ("train", "run", "add", "compare"))
    assert seen[-1]["figures"]["backward_transfer"] == seen[-1]["figures"]["forgetting"] == 0.0


def test_a_task_of_a_stream_is_what_train_makes_of_it(tasks: list[Path], tmp_path: Path) -> None:
    """Sharing an open backbone and its passes changes no bit of what is learnt."""
    streamed(tasks[:2], tmp_path, method="adapter")
    alone = train(
        tasks[1], method="adapter", backbone="tiny_text", epochs=1, runs=tmp_path / "alone", precision="fp32",
        device="cpu", cache_size="0",
    )  # fmt: skip
    added = tmp_path / "b.bank" / "tasks" / "two" / "1"
    for name in ("delta.safetensors", "selftest.json"):
        assert (added / name).read_bytes() == (alone.folder / "module" / name).read_bytes()


def test_the_same_command_again_learns_nothing(
    tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = streamed(tasks, tmp_path)
    before = modules(tmp_path)
    monkeypatch.setattr(stream_training, "train_in", forbidden)
    seen: list[Mapping[str, Any]] = []
    again = streamed(tasks, tmp_path, told=seen.append)
    assert all(row["reused"] for row in seen)
    assert again.content["tasks"] == first.content["tasks"] and modules(tmp_path) == before


def test_it_goes_on_where_it_was_stopped(tasks: list[Path], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        streamed(tasks, tmp_path, told=after("two", interrupt))
    assert set(modules(tmp_path)) == {"one", "two"}
    seen: list[Mapping[str, Any]] = []
    done = streamed(tasks, tmp_path, told=seen.append)
    assert [bool(row.get("reused")) for row in seen] == [True, True, False]
    assert [row["task"] for row in done.content["tasks"]] == list(NAMES)
    assert seen[-1]["earlier"]["compared"] == 2


def test_a_task_that_was_added_before_its_row_was_written_is_not_added_twice(tasks: list[Path], tmp_path: Path) -> None:
    streamed(tasks[:1], tmp_path)
    (tmp_path / "stream.json").unlink()
    done = streamed(tasks[:1], tmp_path)
    assert list((tmp_path / "b.bank" / "tasks" / "one").iterdir()) == [tmp_path / "b.bank" / "tasks" / "one" / "1"]
    assert done.content["tasks"][0]["seconds"]["add"] is None


def test_data_that_changed_make_a_new_version_beside_the_old_one(tasks: list[Path], tmp_path: Path) -> None:
    streamed(tasks[:2], tmp_path)
    before = modules(tmp_path)
    write_task(tmp_path, "one", rows=30)
    done = streamed(tasks[:2], tmp_path)
    assert [(row["task"], row["version"]) for row in done.content["tasks"]] == [("two", 1), ("one", 2)]
    now = modules(tmp_path)
    assert now["two"] == before["two"] and now["one"].items() > before["one"].items()


@pytest.mark.slow
def test_what_the_bank_no_longer_answers_by_counts_in_no_average(tasks: list[Path], tmp_path: Path) -> None:
    done = streamed(tasks[:2], tmp_path)
    rows = [row | {"score": row["score"] | {"score": 5.0 + place}} for place, row in enumerate(done.content["tasks"])]
    write_json(done.path, {**done.content, "tasks": rows})
    BankFolder(tmp_path / "b.bank").remove("one")
    row = streamed(tasks[2:], tmp_path).content["tasks"][-1]
    assert row["task"] == "three" and row["figures"]["average"] == (6.0 + row["score"]["score"]) / 2


def test_bad_data_stop_no_other_task(tasks: list[Path], tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("text,label\na,b\n", encoding="utf-8")
    seen: list[Mapping[str, Any]] = []
    done = streamed([*tasks, tmp_path / "four.toml"], tmp_path, told=seen.append)
    assert [row["task"] for row in done.content["tasks"]] == ["one", "three"]
    assert set(done.failed) == {"two", str(tmp_path / "four.toml")}
    assert "two.csv" in done.failed["two"] and "failed" in next(row for row in seen if row["task"] == "two")
    write_task(tmp_path, "two")
    mended = streamed(tasks, tmp_path)
    assert not mended.failed and [row["task"] for row in mended.content["tasks"]] == ["one", "three", "two"]


def test_strict_stops_at_the_first(tasks: list[Path], tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("text,label\na,b\n", encoding="utf-8")
    with pytest.raises(GraftworkError, match=r"two\.csv"):
        streamed(tasks, tmp_path, strict=True)
    assert set(modules(tmp_path)) == {"one"}


def test_a_file_of_an_earlier_task_that_changes_stops_the_stream(tasks: list[Path], tmp_path: Path) -> None:
    card = tmp_path / "b.bank" / "tasks" / "one" / "1" / "README.md"
    with pytest.raises(IncompatibleModule, match="a file of this task has changed since it was added") as caught:
        streamed(tasks, tmp_path, told=after("one", lambda: card.write_text("better\n", encoding="utf-8")))
    assert str(card.parent) in caught.value.where
    assert [row["task"] for row in json.loads((tmp_path / "stream.json").read_text())["tasks"]] == ["one"]
    with pytest.raises(IncompatibleModule, match="a file of this task has changed"):  # a later command sees it at once
        streamed(tasks, tmp_path)


def test_the_last_bits_of_an_answer_count(tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backbone that is changed by far less than a self-test tolerates."""
    opened: list[OpenBackbone] = []

    def noting(*arguments: Any) -> OpenBackbone:
        opened.append(open_shared(*arguments))
        return opened[-1]

    def touch() -> None:
        assert opened[0].backbone is not None
        with torch.no_grad():
            for weight in opened[0].backbone.module.parameters():
                weight.mul_(1 + 1e-6)

    monkeypatch.setattr(streaming, "open_shared", noting)
    with pytest.raises(IncompatibleModule, match=r"'one' has changed since.*its self-test gives other logits"):
        streamed(tasks, tmp_path, told=after("one", touch))


@pytest.mark.parametrize("changed", ["sources", pytest.param("libraries", marks=pytest.mark.slow)])
def test_it_goes_on_where_another_version_gives_other_bits(
    changed: str, tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graftwork was upgraded meanwhile, or numpy."""
    streamed(tasks[:1], tmp_path)
    logits = UnchangedCheck._logits
    monkeypatch.setattr(UnchangedCheck, "_logits", lambda self, folder: f"other {logits(self, folder)}")
    with pytest.raises(IncompatibleModule, match="its self-test gives other logits"):
        streamed(tasks, tmp_path)
    if changed == "sources":
        monkeypatch.setattr(run_checkpoint, "source_digest", lambda package: "other")
    else:
        monkeypatch.setattr(run_checkpoint, "version", lambda name: "99")
    assert len(streamed(tasks, tmp_path).content["tasks"]) == 3


def test_a_task_that_was_there_before_is_watched_too(tasks: list[Path], tmp_path: Path) -> None:
    streamed(tasks[:1], tmp_path)
    done = streamed(tasks[1:2], tmp_path, out=tmp_path / "other")
    assert done.path == tmp_path / "other" / "stream.json"
    assert done.content["tasks"][0]["earlier"]["compared"] == 1


@pytest.mark.slow
def test_another_task_by_the_name_and_number_of_one_that_is_gone_is_looked_at_anew(
    tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bank that an earlier Graftwork renamed so goes on."""
    streamed(tasks[:2], tmp_path)
    bank = BankFolder(tmp_path / "b.bank")
    bank.remove("two")
    monkeypatch.setattr(store, "require_free", lambda *_: None)
    bank.rename("one", "two")
    done = streamed(tasks[2:], tmp_path)
    assert done.content["tasks"][-1]["task"] == "three" and set(bank.state().tasks) == {"two", "three"}
    assert done.content["self_tests"]["tasks"]["two"]["files"] == bank.state().tasks["two"].digest


@pytest.mark.parametrize(
    "changes",
    [{"seed": 1}, {"method": "bitfit"}, {"batch_size": 8}, {"backbone": "random:tiny_text"}],
    ids=lambda c: next(iter(c)),
)
def test_another_stream_is_not_mixed_into_the_same_file(
    tasks: list[Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    streamed(tasks[:1], tmp_path)
    before = (tmp_path / "stream.json").read_bytes()
    with pytest.raises(GraftworkError):
        streamed(tasks, tmp_path, **changes)
    assert (tmp_path / "stream.json").read_bytes() == before


def test_what_others_do_to_the_bank_meanwhile_is_no_fault(
    tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task is taken away while it is looked at; another one gets a new version."""
    store, real = BankFolder(tmp_path / "b.bank"), integrity.require_digest
    write_task(tmp_path, "one", rows=30)
    newer = streamed(tasks[:1], tmp_path, "other.bank", out=tmp_path / "other")
    write_task(tmp_path, "one")

    def others() -> None:
        store.add(tmp_path / "runs" / newer.content["tasks"][0]["run"] / "module", "one", lambda folder: None)

        def removing(folder: Path, expected: str) -> None:
            if folder.parent.name == "two" and "two" in store.state().tasks:
                store.remove("two")
            real(folder, expected)

        monkeypatch.setattr(integrity, "require_digest", removing)

    done = streamed(tasks, tmp_path, told=after("two", others))
    assert done.content["tasks"][-1]["earlier"]["compared"] == 0
    assert {name: placed.version for name, placed in store.state().tasks.items()} == {"one": 2, "three": 1}


@pytest.mark.parametrize("content", ["{}", "[]", '{"format": 2}', '{"format": 1, "stream": {}}', "no JSON"])
def test_a_file_that_is_none_of_a_stream_is_left_alone(tasks: list[Path], tmp_path: Path, content: str) -> None:
    (tmp_path / "stream.json").write_text(content, encoding="utf-8")
    with pytest.raises((StorageError, ConfigError), match=r"stream\.json"):
        streamed(tasks, tmp_path)
    assert (tmp_path / "stream.json").read_text(encoding="utf-8") == content
    assert not (tmp_path / "b.bank").exists()


def test_another_backbone_than_the_banks_is_refused_before_anything_is_trained(
    tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed(tasks[:1], tmp_path)
    monkeypatch.setattr(stream_training, "train_in", forbidden)
    with pytest.raises(IncompatibleModule, match="tiny_text"):
        streamed(tasks, tmp_path, out=tmp_path / "other", backbone="random:tiny_text")


def test_a_banks_backbone_that_is_not_here_is_not_fetched(
    tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BankFolder.create(tmp_path / "b.bank", backbone={"id": "hf:evil/network", "revision": "a" * 64})
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", not_here)
    with pytest.raises(StorageError, match="a file that names one starts no download"):
        streamed(tasks, tmp_path, backbone=None)


def not_here(name: str, *, local_files_only: bool = False, **options: Any) -> str:
    """What stands in for the hub, which may be asked for a copy that is kept and for nothing else."""
    assert local_files_only, "asked the hub"
    raise LocalEntryNotFoundError("not here")


def test_the_banks_backbone_is_taken_and_a_task_for_another_one_fails_alone(tasks: list[Path], tmp_path: Path) -> None:
    streamed(tasks[:1], tmp_path)
    other = write_task(tmp_path, "four", settings='backbone = "minilm"\n')
    done = streamed([tasks[0], other], tmp_path, backbone=None, precision="auto")
    assert [row["task"] for row in done.content["tasks"]] == ["one"]
    assert "another backbone than the stream's" in done.failed["four"]


def test_a_backbone_that_is_named_from_here_is_the_banks(
    tasks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_awd_lstm(tmp_path / "net")
    asked = [write_task(tmp_path, name, settings='backbone = "hf:net"\n') for name in NAMES]
    streamed(asked[:1], tmp_path, backbone="hf:net")
    done = streamed(asked, tmp_path, backbone=None)
    assert [row["task"] for row in done.content["tasks"]] == list(NAMES) and done.failed == {}


def test_a_task_file_says_its_epochs(tasks: list[Path], tmp_path: Path) -> None:
    task = write_task(tmp_path, "four", settings='epochs = 2\nbackbone = "tiny_text"\n')
    streamed([task], tmp_path, method="bitfit", epochs=None, backbone=None)
    assert TaskModule.load(tmp_path / "b.bank" / "tasks" / "four" / "1").description["recipe"]["epochs"] == 2


def test_tasks_without_a_backbone_go_in_too(tasks: list[Path], tmp_path: Path) -> None:
    done = streamed(tasks[:2], tmp_path, method="tfidf_svm")
    assert [row["earlier"]["compared"] for row in done.content["tasks"]] == [0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "lorra"}, "did you mean 'lora'"),
        ({"bank": None}, "no bank"),
        ({"prices": "nowhere.toml"}, r"nowhere\.toml"),
        ({"cache_size": "many"}, "not a size"),
    ],
)
def test_mistakes_in_the_settings_stop_it_at_once(
    tasks: list[Path], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(GraftworkError, match=message):
        streamed(tasks, tmp_path, **changes)
    assert not (tmp_path / "b.bank" / "tasks").exists() or not modules(tmp_path)


def test_two_tasks_of_one_name_are_refused(tasks: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two tasks have the same name"):
        streamed([tasks[0], tasks[0]], tmp_path)
    with pytest.raises(ConfigError, match="no tasks"):
        streamed([], tmp_path)


def test_tasks_may_be_given_as_they_are(tasks: list[Path], tmp_path: Path) -> None:
    done = stream(
        [Task.from_file(tmp_path / "one.csv", name="mine")], tmp_path / "b.bank", method="majority",
        runs=tmp_path / "runs", cache_size="0",
    )  # fmt: skip
    assert done.content["tasks"][0]["task"] == "mine"


def test_bad_data_as_they_are_raised(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("text,label\na,b\n", encoding="utf-8")
    with pytest.raises(DataError):
        train(tmp_path / "bad.csv", method="majority", runs=tmp_path / "runs")


def test_two_do_not_go_on_with_one_stream(tasks: list[Path], tmp_path: Path) -> None:
    """The rows that one writes would be gone when the other writes its own."""

    def meanwhile(row: Any) -> None:
        with pytest.raises(StorageError, match="another process runs this stream"):
            streamed(tasks[1:], tmp_path)

    assert len(streamed(tasks[:1], tmp_path, told=meanwhile).content["tasks"]) == 1
    assert [row["task"] for row in streamed(tasks[1:2], tmp_path).content["tasks"]] == ["one", "two"]
    assert not (tmp_path / ".stream.claim").exists()


def test_data_in_memory_are_kept_beside_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = tiny_dataset(rows=24)
    examples = [example for split in data.splits.values() for example in split.examples]
    texts, labels = [one.inputs["text"] for one in examples], [one.target for one in examples]
    done = streamed([(texts, labels)], tmp_path / "here", "b.bank", epochs=1)  # type: ignore[list-item]
    assert not done.failed and list((tmp_path / "here" / "frames").iterdir())
    assert not (tmp_path / "frames").exists() and not (tmp_path / "runs").exists()
