"""A bank that is open: tasks answered together, changed by others meanwhile, damaged, emptied; whatever it is, the rest
goes on."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from graftwork.bank import bank as bank_module
from graftwork.bank.bank import Bank, BankChanges
from graftwork.bank.task_version import Failure
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError, UnknownName
from graftwork.io.files import read_json, write_json
from graftwork.module import task_module
from graftwork.module.task_module import TaskModule
from graftwork.pretrained import open_backbone
from graftwork.testing.tiny_networks import write_awd_lstm

MakeModule = Callable[..., Path]


@pytest.fixture
def bank(tmp_path: Path, module: MakeModule) -> Bank:
    """Tasks of several kinds and methods."""
    made = Bank.create(tmp_path / "shop.bank")
    made.add(module("linear_probe"), "probe")
    made.add(module("lora"), "lora")
    made.add(module("lora", "tagging"), "tags")
    made.add(module("linear_probe", pair=True), "pairs")
    made.add(module("majority"), "always")
    return made


@pytest.fixture
def elsewhere(bank: Bank) -> Bank:
    """The same bank, open in what stands for another process."""
    return Bank.open(bank.path)


def near(answer: dict[str, Any], other: dict[str, Any]) -> bool:
    """The same label, and probabilities up to the last bits."""
    return bool(answer["label"] == other["label"] and answer["probabilities"] == pytest.approx(other["probabilities"]))


def count_loads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of the modules that are opened from here on."""
    opened: list[Path] = []
    load = TaskModule.load

    def counted(folder: Path, **settings: Any) -> TaskModule:
        opened.append(folder)
        return load(folder, **settings)

    monkeypatch.setattr(TaskModule, "load", counted)
    return opened


def spoil(bank: Bank, name: str, version: int = 1, file: str = "delta.safetensors") -> Path:
    """Change the last byte of a file, in place."""
    path = bank.path / "tasks" / name / str(version) / file
    with path.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        last = stream.read(1)
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([last[0] ^ 1]))
    return path


def test_rows_of_any_tasks_are_answered_in_their_order(bank: Bank) -> None:
    rows: list[tuple[str, Any]] = [
        ("tags", "good film"),
        ("probe", "bad film"),
        ("always", "x"),
        ("pairs", ("good film", "bad film")),
        ("lora", "so good"),
        ("probe", {"text": "good good"}),
        ("tags", ["bad", "film"]),
    ]
    answers = bank.predict(rows)
    for (task, given), answer in zip(rows, answers, strict=True):
        alone = bank.module(task).predict([given])[0]
        if "label" in alone:
            assert near(answer, alone)
        else:
            assert [(span["start"], span["label"]) for span in answer["spans"]] == [
                (span["start"], span["label"]) for span in alone["spans"]
            ]
    assert bank.predict([]) == []
    examples = list(zip((task for task, _ in rows), bank._examples(rows), strict=True))
    assert Bank.open(bank.path).answers(examples) == answers


def test_every_task_that_takes_an_input_is_asked(bank: Bank) -> None:
    assert set(bank.predict_all("good film")) == {"probe", "lora", "tags", "always"}
    assert set(bank.predict_all({"text": "good film"})) == {"probe", "lora", "tags", "always"}
    assert set(bank.predict_all(("good film", "bad film"))) == {"pairs"}
    assert set(bank.predict_all({"text_b": "x", "text_a": "y"})) == {"pairs"}
    assert set(bank.predict_all(["good", "film"])) == set(bank.predict_all({"words": ["good"]})) == {"tags"}
    assert list(bank.predict_all("good film", ["lora", "probe"])) == ["lora", "probe"]
    assert bank.predict_all("good film")["probe"] == bank.predict([("probe", "good film")])[0]
    with pytest.raises(ConfigError, match="no task of this bank takes such inputs"):
        bank.predict_all({"question": "who?", "context": "me"})


def test_what_several_tasks_read_alike_is_one_example(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    answers = bank._mixture.answers

    def watched(rows: Sequence[tuple[str, Any]], *more: Any) -> Any:
        seen.extend(rows)
        return answers(rows, *more)

    monkeypatch.setattr(bank._mixture, "answers", watched)
    bank.predict_all("good film")
    examples = dict(seen)
    assert examples["probe"] is examples["lora"] is examples["always"] and examples["tags"] is not examples["probe"]


def test_wrong_rows_say_which(bank: Bank) -> None:
    with pytest.raises(UnknownName, match=r"unknown task 'prob'[\s\S]*did you mean 'probe'"):
        bank.predict([("probe", "fine"), ("prob", "good film")])
    with pytest.raises(ConfigError, match=r"row 2, task 'pairs': wrong number of texts"):
        bank.predict([("probe", "fine"), ("pairs", "one text")])
    with pytest.raises(ConfigError, match=r"row 1, task 'probe': text 1 is empty"):
        bank.predict([("probe", " ")])


def test_examples_of_another_task_are_refused(bank: Bank) -> None:
    example = bank._examples([("pairs", ("a", "b"))])[0]
    with pytest.raises(ConfigError, match=r"row 2, task 'probe'[\s\S]*text_a, text_b[\s\S]*expected: text$"):
        bank.answers([("pairs", example), ("probe", example)])


def test_what_is_longer_than_the_backbone_takes_is_told(bank: Bank) -> None:
    long = "good " * 100
    rows: list[tuple[str, Any]] = [
        ("probe", long), ("probe", "good"), ("always", long), ("tags", long), ("pairs", ("good", long)), ("lora", long)
    ]  # fmt: skip
    assert bank.cut(rows) == [True, False, False, False, True, True]
    assert bank.cut(rows[1:2]) == [False]


def test_tasks_are_opened_when_they_are_asked_and_once(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = count_loads(monkeypatch)
    again = Bank.open(bank.path)
    assert set(again.tasks) == {"probe", "lora", "tags", "pairs", "always"} and not opened
    assert again.tasks["lora"].description["method"]["name"] == "lora"
    for _ in range(2):
        again.predict([("probe", "good film"), ("lora", "good film")])
        assert [folder.parent.name for folder in opened] == ["probe", "lora"]
    assert again.load_all() == {} and len(opened) == 5
    assert again.refresh() == BankChanges() and len(opened) == 5


def test_one_backbone_is_open_for_all(bank: Bank, module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def counted(*words: Any, **settings: Any) -> Any:
        opened.append(words)
        return open_backbone.open_backbone(*words, **settings)

    monkeypatch.setattr(task_module, "open_backbone", counted)
    elsewhere = Bank.open(bank.path)
    elsewhere.load_all()
    assert len(opened) <= 1
    assert elsewhere.module("probe").backbone is elsewhere.module("lora").backbone is elsewhere.open_backbone()


def test_a_backbone_of_another_name_and_the_same_content_is_the_banks(
    bank: Bank, module: MakeModule, tmp_path: Path
) -> None:
    moved = Path(shutil.copytree(module("lora", seed=3), tmp_path / "moved"))
    described = read_json(moved / "module.json")
    write_json(moved / "module.json", described | {"backbone": described["backbone"] | {"id": "hf:/not/here"}})
    assert bank.add(moved, "moved").version == 1
    assert bank.predict([("moved", "good film")])[0]["label"] in ("good", "bad")


@pytest.mark.parametrize("name", ["hf:nets/own", "runs/own"])
def test_a_banks_backbone_is_found_from_every_folder(
    name: str, tmp_path: Path, module: MakeModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_awd_lstm(tmp_path / (f"{name}/backbone" if name.startswith("runs") else name.removeprefix("hf:")))
    made = module(backbone=name)
    Bank.create("filled.bank").add(made, "task")
    Bank.create("empty.bank", backbone=name)
    monkeypatch.chdir("/")
    monkeypatch.setattr(task_module, "_OPEN", weakref.WeakValueDictionary())
    assert TaskModule.load(made).predict(["good film"])
    task_module._OPEN.clear()
    assert Bank.open(tmp_path / "filled.bank").predict([("task", "good film")])
    task_module._OPEN.clear()
    assert Bank.open(tmp_path / "empty.bank").open_backbone().card.family == "awd_lstm"


@pytest.mark.parametrize(
    ("made", "got"),
    [({"backbone": "random:tiny_text"}, "random:tiny_text, revision "), ({"precision": "bf16"}, "in bf16")],
)
def test_another_backbone_is_refused_and_the_bank_is_as_it_was(
    made: dict[str, str], got: str, bank: Bank, module: MakeModule
) -> None:
    before = (bank.path / "bank.json").read_bytes()
    with pytest.raises(IncompatibleModule) as raised:
        bank.add(module("linear_probe", **made), "other")
    assert got in raised.value.got and raised.value.expected.startswith("tiny_text, revision ")
    assert raised.value.expected.endswith("in fp32") and raised.value.got != raised.value.expected
    assert (bank.path / "bank.json").read_bytes() == before and "other" not in bank.tasks


def test_a_bank_is_made_for_a_backbone(tmp_path: Path, module: MakeModule) -> None:
    bank = Bank.create(tmp_path / "bank", backbone="random:tiny_text", precision="fp32")
    assert bank.card is not None and bank.card.id == "random:tiny_text" and bank.precision == "fp32"
    with pytest.raises(IncompatibleModule, match="another backbone than the bank's"):
        bank.add(module("lora"))
    assert bank.add(module("lora", backbone="random:tiny_text")).name == "tiny"
    late = Bank.create(tmp_path / "late", backbone="tiny_text")
    assert late.open_backbone().card.id == "tiny_text" and late.precision is None
    late.add(module("lora"))
    assert late.precision == "fp32" and late.check() == [] and late.predict([("tiny", "good film")])
    empty = Bank.create(tmp_path / "empty")
    assert (empty.card, empty.precision, dict(empty.tasks)) == (None, None, {})
    with pytest.raises(ConfigError, match="the bank has no backbone yet"):
        empty.open_backbone()
    with pytest.raises(UnknownName, match="unknown precision 'half'"):
        Bank.create(tmp_path / "never", precision="half")


def test_a_module_with_an_edited_delta_or_self_test_is_not_added(
    bank: Bank, module: MakeModule, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(module("lora", seed=1), tmp_path / "copy"))
    delta = (copy / "delta.safetensors").read_bytes()
    for content in (delta[:-1] + bytes([delta[-1] ^ 1]), delta[: len(delta) // 2], b""):
        (copy / "delta.safetensors").write_bytes(content)
        with pytest.raises(GraftworkError, match=r"has changed since this module was saved|not a valid safetensors"):
            bank.add(copy, "lora")
    (copy / "delta.safetensors").write_bytes(delta)
    test = read_json(copy / "selftest.json")
    write_json(copy / "selftest.json", test | {"logits": [[value + 1 for value in row] for row in test["logits"]]})
    with pytest.raises(IncompatibleModule, match="the self-test gives other logits"):
        bank.add(copy, "lora")
    assert bank.tasks["lora"].version == 1 and bank.check() == []
    assert [path.name for path in (bank.path / "tasks" / "lora").iterdir()] == ["1"]


def test_check_tells_the_same_bits_from_near_ones(bank: Bank, module: MakeModule, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(module("lora", seed=1), tmp_path / "copy"))
    test = read_json(copy / "selftest.json")
    write_json(copy / "selftest.json", test | {"logits": [[value + 1e-5 for value in row] for row in test["logits"]]})
    bank.add(copy, "near")
    found = {finding.task: finding for finding in bank.examine()}
    assert found["near"].difference == pytest.approx(1e-5, rel=0.2) and found["lora"].difference == 0.0
    assert found[""].difference is None and bank.check() == []


def test_check_finds_whatever_was_changed(bank: Bank) -> None:
    spoil(bank, "probe")
    spoil(bank, "tags", file="README.md")
    (bank.path / "tasks" / "pairs" / "1" / "selftest.json").unlink()
    shutil.rmtree(bank.path / "tasks" / "always")
    ledger = bank.path / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"task":"lora"', b'"task":"LORA"'))
    found = {finding.task: finding.problem for finding in bank.check()}
    assert found.keys() == {"", "probe", "tags", "pairs", "always"}
    assert "the ledger is damaged at line 3" in found[""] or "at line 4" in found[""]
    assert "a file of this task has changed since it was added" in found["probe"]
    assert "the folder of this version is missing" in found["always"]


def test_a_damaged_task_is_refused_and_the_others_answer(bank: Bank) -> None:
    spoil(bank, "probe")
    (bank.path / "tasks" / "lora" / "1" / "module.json").write_text("{}")
    again = Bank.open(bank.path)
    assert set(again.failed) == {"lora"} and "lora" not in again.tasks
    with pytest.raises(IncompatibleModule, match=r"the task 'lora' can't be opened[\s\S]*module\.json is damaged"):
        again.predict([("lora", "good film")])
    with pytest.raises(IncompatibleModule, match="a file of this task has changed since it was added"):
        again.predict([("probe", "good film")])
    failed = again.load_all()
    assert set(failed) == {"lora", "probe"} and "has changed since it was added" in failed["probe"]
    with pytest.raises(IncompatibleModule, match="the task 'probe' can't be opened"):
        again.predict([("probe", "good film")])
    assert again.predict([("always", "x")])[0]["label"] == "bad"


def test_the_tasks_that_can_be_opened_answer_and_the_others_are_told(bank: Bank) -> None:
    for name in ("lora", "probe"):
        spoil(bank, name)
    opened = Bank.open(bank.path)
    assert opened.predict_all("good film").keys() == {"tags", "always"}
    assert opened.failed.keys() == {"lora", "probe"} and "has changed since it was added" in opened.failed["lora"]
    assert opened.predict_all("good film").keys() == {"tags", "always"}
    with pytest.raises(IncompatibleModule, match="'lora' can't be opened"):
        opened.predict_all("good film", ["lora", "always"])
    spoil(bank, "pairs")
    with pytest.raises(IncompatibleModule, match="'pairs' can't be opened"):
        opened.predict_all(("good film", "bad film"))


def test_every_task_that_can_not_be_opened_is_told(bank: Bank) -> None:
    for name in ("lora", "probe"):
        spoil(bank, name)
    opened = Bank.open(bank.path)
    assert opened.load_all().keys() == opened.load_all().keys() == {"lora", "probe"}


def test_failures_that_threads_find_at_once_are_all_told(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(bank, "probe")
    spoil(bank, "lora")
    opened = Bank.open(bank.path)
    other = threading.Thread(target=opened.load_all, args=(["lora"],))

    def kept(digest: str, error: Exception) -> Failure:
        if threading.current_thread() is not other:
            other.start()  # between reading what has failed and recording one more
            other.join(timeout=0.5)
        return Failure(digest, str(error))

    monkeypatch.setattr(Failure, "of", kept)
    opened.load_all(["probe"])
    other.join(timeout=10)
    assert opened.failed.keys() == {"lora", "probe"}


def test_what_others_change_is_taken_in(bank: Bank, elsewhere: Bank, module: MakeModule) -> None:
    bank.load_all()
    elsewhere.add(module("lora", seed=5), "lora")
    elsewhere.add(module("linear_probe", seed=2), "new")
    elsewhere.rename("tags", "spans")
    elsewhere.remove("always")
    before = bank.predict([("lora", "good film")])
    changes = bank.refresh()
    assert (set(changes.added), set(changes.updated)) == ({"new", "spans"}, {"lora"})
    assert (set(changes.removed), changes.failed) == ({"tags", "always"}, {})
    assert bank.tasks["lora"].version == 2 and bank.predict([("lora", "good film")]) != before
    assert near(bank.predict([("lora", "good film")])[0], elsewhere.predict([("lora", "good film")])[0])
    assert bank.predict_all("good film").keys() == {"probe", "lora", "spans", "new"}
    with pytest.raises(UnknownName):
        bank.predict([("always", "x")])
    assert bank.refresh() == BankChanges()


def test_a_version_that_can_not_be_opened_leaves_the_old_one_answering(
    bank: Bank, elsewhere: Bank, module: MakeModule
) -> None:
    bank.load_all()
    before = bank.predict([("lora", "good film")])
    elsewhere.add(module("lora", seed=5), "lora")
    path = spoil(bank, "lora", 2)
    changes = bank.refresh()
    assert changes.updated == () and "has changed since it was added" in changes.failed["lora"]
    assert bank.predict([("lora", "good film")]) == before and bank.tasks["lora"].version == 1
    assert bank.refresh().failed.keys() == {"lora"}  # it is tried again
    spoil(bank, "lora", 2)
    assert path.is_file() and bank.refresh().updated == ("lora",)
    assert bank.tasks["lora"].version == 2 and bank.predict([("lora", "good film")]) != before


@pytest.mark.parametrize("how", ["emptied", "truncated", "overwritten"])
def test_what_becomes_of_the_files_does_not_touch_what_is_open(how: str, bank: Bank) -> None:
    bank.load_all()
    asked = "a good film, and so it was"
    before = bank.predict_all(asked)
    for path in sorted(bank.path.rglob("*"), reverse=True):
        if how == "emptied":
            path.rmdir() if path.is_dir() else path.unlink()
        elif path.is_file():
            path.write_bytes(b"" if how == "truncated" else bytes(path.stat().st_size))
    assert bank.predict_all(asked) == before
    with pytest.raises(StorageError, match="no bank here" if how == "emptied" else "not a valid JSON file"):
        bank.refresh()
    assert bank.predict_all(asked) == before and len(bank.tasks) == 5
    assert bank.tasks["lora"].description["task"]["labels"] == ["bad", "good"]


def test_a_task_that_others_changed_before_it_was_asked_is_opened_as_it_is_now(
    bank: Bank, elsewhere: Bank, module: MakeModule
) -> None:
    bank.remove("always")
    with pytest.raises(UnknownName, match="unknown task 'always'"):
        elsewhere.predict([("always", "x")])
    bank.rename("probe", "other")
    bank.add(module("lora", seed=4), "probe")
    assert near(elsewhere.predict([("probe", "good film")])[0], bank.predict([("probe", "good film")])[0])
    assert elsewhere.tasks["probe"].description["method"]["name"] == "lora"


def test_another_bank_in_its_place_is_not_taken_in(bank: Bank, module: MakeModule) -> None:
    bank.load_all()
    shutil.rmtree(bank.path)
    Bank.create(bank.path).add(module("lora", backbone="random:tiny_text"), "lora")
    with pytest.raises(IncompatibleModule, match="the bank has another backbone than when it was opened"):
        bank.refresh()
    assert len(bank.predict_all("good film")) == 4


@pytest.mark.slow
def test_rows_are_answered_while_tasks_are_swapped(bank: Bank, elsewhere: Bank, module: MakeModule) -> None:
    elsewhere.add(module("lora", seed=6), "lora")
    bank.refresh()
    either = [elsewhere.module("lora", version).predict(["good film"])[0] for version in (1, 2)]
    assert not near(*either)
    done, failures, seen = threading.Event(), [], set()

    def ask() -> None:
        try:
            while not done.is_set():
                answer = bank.predict([("probe", "bad film"), ("lora", "good film"), ("always", "x")])[1]
                matching = [place for place, one in enumerate(either) if near(answer, one)]
                assert len(matching) == 1, answer
                seen.update(matching)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    for number in range(12):
        elsewhere.rollback("lora", 1 + number % 2)
        assert bank.refresh().updated == ("lora",)
    done.set()
    thread.join()
    assert failures == [] and seen == {0, 1}


def test_a_bank_keeps_no_module_once_the_mixture_has_it(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[TaskModule]] = []

    class Taking:
        def put(self, name: str, module: TaskModule) -> None:
            alive.append(weakref.ref(module))

    monkeypatch.setattr(bank_module, "Mixture", Taking)
    Bank.open(bank.path).load_all()
    gc.collect()
    assert len(alive) == 5 and [one() for one in alive] == [None] * 5


def test_a_version_answers_under_its_own_name(bank: Bank, elsewhere: Bank, module: MakeModule) -> None:
    before = bank.predict([("probe", "good film")])
    bank.add(module("lora", seed=1), "probe")
    first, second, now = bank.predict([(name, "good film") for name in ("probe@1", "probe@2", "probe")])
    assert [first] == before and second == now != first
    assert "probe@1" not in bank.tasks and set(bank.by_version) >= {"probe@1", "probe@2"}
    assert bank.module("probe@1").task.name == "probe@1" and bank.by_version["probe@1"].version == 1
    elsewhere.refresh()
    assert elsewhere.predict([("probe@1", "good film")]) == before
    with pytest.raises(UnknownName, match="probe@3") as raised:
        bank.predict([("probe@3", "good film")])
    assert "probe@2" in raised.value.message
    bank.remove("probe")
    with pytest.raises(UnknownName):
        bank.predict([("probe@1", "good film")])


def test_a_version_that_was_edited_does_not_answer(bank: Bank, module: MakeModule) -> None:
    bank.add(module("lora", seed=1), "probe")
    spoil(bank, "probe", 1)
    with pytest.raises(IncompatibleModule):
        bank.predict([("probe@1", "good film")])
    assert bank.predict([("probe", "good film"), ("probe@2", "good film")])


def test_versions_and_their_modules(bank: Bank, module: MakeModule) -> None:
    bank.add(module("lora", seed=1), "probe")
    assert bank.versions("probe") == [1, 2]
    assert bank.module("probe").description["method"]["name"] == "lora"
    assert bank.module("probe", 1).description["method"]["name"] == "linear_probe"
    assert bank.module("probe").task.name == "probe"
    assert bank.rollback("probe").version == 1 and bank.predict([("probe", "good film")])
    assert bank.rename("probe", "called").name == "called" and "probe" not in bank.tasks
    with pytest.raises(UnknownName):
        bank.module("probe")
