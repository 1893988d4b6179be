"""A task module answers as it did on its first day, or refuses and says why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.method import SIZELESS, Setting
from graftwork.core.run import Recipe
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError
from graftwork.io import files
from graftwork.io.files import file_digest, read_json, write_json
from graftwork.methods.no_transfer import NoTransfer
from graftwork.module.module_display import _answers
from graftwork.module.module_files import require_fitting
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.run.execute import execute
from graftwork.run.session import Session

OpenSession = Callable[..., Session]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    """One trained module of each kind, made on first use."""
    return {}


@pytest.fixture
def trained(
    open_tiny: OpenSession, kept: dict[tuple[str, bool], Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """A module folder of the test's own, to spoil."""

    def make(kind: str = "classification", pair: bool = False) -> Path:
        if (kind, pair) not in kept:
            session = open_tiny(kind, pair)
            result, _ = execute(session, parse_method("lora"), Recipe(epochs=1), 0, lambda done, text: None)
            home = tmp_path_factory.mktemp("kept") / "module"
            kept[kind, pair] = Path(shutil.copytree(session.store.root / result.id / "module", home))
        return Path(shutil.copytree(kept[kind, pair], tmp_path / "module"))

    return make


def spoil(path: Path, **changes: Any) -> None:
    write_json(path, read_json(path) | changes)


def test_a_module_is_told_by_its_files(trained: Callable[..., Path]) -> None:
    folder = trained()
    description = read_json(folder / "module.json")
    assert description["format"] == 1 and description["task"]["labels"] == ["bad", "good"]
    assert description["method"]["name"] == "lora" and description["backbone"]["id"] == "tiny_text"
    assert description["costs"]["stored_bytes"]["value"] > 0 and description["scores"]["accuracy"] >= 0
    card = (folder / "README.md").read_text()
    assert "classification" in card and "bad, good" in card and "tiny_text" in card
    assert len(read_json(folder / "selftest.json")["inputs"]) == 8


def test_a_runs_folder_opens_too(trained: Callable[..., Path], tmp_path: Path) -> None:
    trained()
    assert TaskModule.load(tmp_path).folder == TaskModule.load(str(tmp_path / "module")).folder


def test_an_open_module_knows_what_its_self_test_gave(trained: Callable[..., Path]) -> None:
    folder = trained()
    stored = read_json(folder / "selftest.json")["logits"]
    tested = TaskModule.load(folder).tested
    assert tested is not None and tested.tolist() == stored  # to the last bit: the same processor computed both


def test_a_module_that_was_moved_answers(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained()
    before = TaskModule.load(folder).predict(["good film"])
    assert TaskModule.load(folder.rename(tmp_path / "moved")).predict(["good film"]) == before


def test_no_module_here(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StorageError, match="not a task module"):
            TaskModule.load(folder)


def test_another_backbone_is_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    card = read_json(folder / "module.json")["backbone"]
    spoil(folder / "module.json", backbone=card | {"revision": "0" * 64})
    with pytest.raises(IncompatibleModule, match=r"another backbone[\s\S]*expected: tiny_text, revision 0000"):
        TaskModule.load(folder)
    spoil(folder / "module.json", backbone=card | {"id": "random:tiny_text"})
    with pytest.raises(IncompatibleModule, match=r"got: +random:tiny_text"):
        TaskModule.load(folder)


def test_a_backbone_that_is_open_is_taken_if_it_is_the_one(trained: Callable[..., Path]) -> None:
    folder = trained()
    own = open_backbone("tiny_text", precision="fp32")
    assert TaskModule.load(folder, backbone=own).backbone is own
    with pytest.raises(IncompatibleModule, match=r"another backbone[\s\S]*got: +random:tiny_text"):
        TaskModule.load(folder, backbone=open_backbone("random:tiny_text", precision="fp32"))


def test_what_is_open_does_not_change_with_its_file(trained: Callable[..., Path]) -> None:
    folder = trained()
    module = TaskModule.load(folder)
    assert module.difference == 0.0
    before = module.predict(["good film"])
    (folder / "delta.safetensors").write_bytes(bytes((folder / "delta.safetensors").stat().st_size))
    assert module.predict(["good film"]) == before
    (folder / "delta.safetensors").write_bytes(b"")  # a mapped file would end the process here
    assert module.predict(["good film"]) == before


def test_the_weights_are_opened_once(trained: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, opened, real = trained(), [], files.open_plain
    monkeypatch.setattr(files, "open_plain", lambda path: opened.append(path.name) or real(path))
    TaskModule.load(folder)
    assert opened.count("delta.safetensors") == 1


def test_an_edited_delta_is_refused(trained: Callable[..., Path]) -> None:
    path = trained() / "delta.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(IncompatibleModule, match=r"delta\.safetensors has changed since this module was saved"):
        TaskModule.load(path.parent)
    path.unlink()
    with pytest.raises(StorageError, match=r"delta\.safetensors"):
        TaskModule.load(path.parent)


def test_other_logits_than_on_the_first_day_are_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    test = read_json(folder / "selftest.json")
    near = [[value + 1e-5 for value in row] for row in test["logits"]]
    spoil(folder / "selftest.json", logits=near)
    TaskModule.load(folder)
    spoil(folder / "selftest.json", logits=[[value + 1.0 for value in row] for row in test["logits"]])
    with pytest.raises(IncompatibleModule, match=r"self-test[\s\S]*a difference of 1"):
        TaskModule.load(folder)


def test_an_unknown_format_is_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    spoil(folder / "module.json", format=99)
    with pytest.raises(IncompatibleModule, match=r"unknown format[\s\S]*got: +99"):
        TaskModule.load(folder)


def test_a_method_that_has_changed_is_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    method = read_json(folder / "module.json")["method"]
    spoil(folder / "module.json", method=method | {"version": 0})
    with pytest.raises(ConfigError, match=r"'lora' has changed since[\s\S]*version 0[\s\S]*train it again"):
        TaskModule.load(folder)


def test_a_delta_that_belongs_to_other_settings_is_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    method = read_json(folder / "module.json")["method"]
    spoil(folder / "module.json", method={**method, "name": "bitfit", "rank": None})
    with pytest.raises(IncompatibleModule, match="damaged"):
        TaskModule.load(folder)


@pytest.mark.parametrize("key", ["task", "backbone", "method", "facts", "delta_sha256"])
def test_a_description_that_lacks_a_part_is_refused(key: str, trained: Callable[..., Path]) -> None:
    folder = trained()
    description = read_json(folder / "module.json")
    del description[key]
    write_json(folder / "module.json", description)
    with pytest.raises(IncompatibleModule, match=rf"damaged[\s\S]*{key}"):
        TaskModule.load(folder)


def test_torn_json_is_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    (folder / "module.json").write_text('{"format": 1,')
    with pytest.raises(StorageError, match="not a valid JSON file"):
        TaskModule.load(folder)


@pytest.mark.parametrize(("kind", "pair"), [("classification", False), ("classification", True)])
def test_classes_have_probabilities_that_sum_to_one(kind: str, pair: bool, trained: Callable[..., Path]) -> None:
    module = TaskModule.load(trained(kind, pair))
    texts = [("good film", "bad film"), ("it was", "so")] if pair else ["good film", "it was"]
    for answer in module.predict(texts):
        assert answer["label"] in module.task.labels == tuple(answer["probabilities"])
        assert sum(answer["probabilities"].values()) == pytest.approx(1)
        assert answer["label"] == max(answer["probabilities"], key=answer["probabilities"].__getitem__)
    json.dumps(module.predict(texts))


def test_labels_are_a_list(trained: Callable[..., Path]) -> None:
    module = TaskModule.load(trained("multilabel"))
    for answer in module.predict(["good film", "bad film"]):
        assert answer["label"] == [label for label, chance in answer["probabilities"].items() if chance > 0.5]


def test_a_number_is_in_the_units_of_the_file(trained: Callable[..., Path]) -> None:
    module = TaskModule.load(trained("regression"))
    good, bad = module.predict(["good good good fine warm", "bad bad sad cold"])
    assert set(good) == {"value"} and isinstance(good["value"], float)
    mean, sd = module.task.settings.scale
    assert abs(good["value"] - mean) < 5 * sd and abs(bad["value"] - mean) < 5 * sd


def test_a_pair_is_given_in_any_form(trained: Callable[..., Path]) -> None:
    module = TaskModule.load(trained("classification", True))
    assert module.roles == ("text_a", "text_b")
    forms: list[Any] = [
        ("good film", "bad film"),
        ["good film", "bad film"],
        {"text_a": "good film", "text_b": "bad film"},
        {"text_b": "bad film", "text_a": "good film"},
    ]
    answers = [module.predict([form])[0] for form in forms]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize(
    ("pair", "given", "message"),
    [
        (True, "good film", r"wrong number of texts[\s\S]*got: +1[\s\S]*2 \(text_a, text_b\)"),
        (True, ("a", "b", "c"), "wrong number of texts"),
        (True, {"text": "good film"}, r"wrong inputs[\s\S]*got: +text\n[\s\S]*text_a, text_b"),
        (True, ("good", " "), "text 1 is empty"),
        (False, ("good", "bad"), r"wrong number of texts[\s\S]*got: +2"),
        (False, {"text_a": "x", "text_b": "y"}, "wrong inputs"),
        (False, "", "text 1 is empty"),
        (False, "\n\t ", "text 1 is empty"),
    ],
)
def test_wrong_inputs_are_refused(
    pair: bool, given: str | tuple[str, ...] | Mapping[str, str], message: str, trained: Callable[..., Path]
) -> None:
    module = TaskModule.load(trained("classification", pair))
    with pytest.raises(ConfigError, match=message):
        module.predict([given])


@pytest.mark.parametrize("given", ["good film", {"text": "good film"}])
def test_a_text_outside_a_list_is_not_taken_apart(given: Any, trained: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match="where a list of texts is expected"):
        TaskModule.load(trained()).predict(given)


def test_nothing_asked_nothing_answered(trained: Callable[..., Path]) -> None:
    assert TaskModule.load(trained()).predict([]) == []


def test_odd_texts_are_answered(trained: Callable[..., Path]) -> None:
    module = TaskModule.load(trained())
    texts = ["good " * 1000, "好电影", "🦓", "a\x00b", "\u202egood", "<script>"]
    assert len(module.predict(texts)) == len(texts)
    assert module.cut(texts) == 1


def test_answers_do_not_depend_on_what_else_is_asked(trained: Callable[..., Path]) -> None:
    module = TaskModule.load(trained())
    alone, among = module.predict(["good film"])[0], module.predict(["bad " * 40, "good film", "so"])[1]
    assert alone["probabilities"] == pytest.approx(among["probabilities"], abs=1e-4)


@pytest.mark.parametrize("name", ["module.json", "selftest.json", "delta.safetensors", "README.md"])
def test_a_link_in_its_folder_refuses_it(trained: Callable[..., Path], name: str) -> None:
    folder = trained()
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(folder.parent / name)
    with pytest.raises(StorageError, match=rf"{name}: a symbolic link where a plain file"):
        TaskModule.load(folder)


def test_a_self_test_reads_no_file_elsewhere(trained: Callable[..., Path]) -> None:
    folder = trained()
    count = len(read_json(folder / "selftest.json")["inputs"])
    spoil(folder / "selftest.json", inputs=[{"image": "../module/../../secret.png"}] * count)
    with pytest.raises(StorageError, match=r"selftest\.json: a file name that points outside its folder"):
        TaskModule.load(folder)


@pytest.mark.parametrize("rank", [300, 10**8])
def test_a_size_that_the_weights_do_not_have_is_refused_before_it_is_built(
    trained: Callable[..., Path], rank: int
) -> None:
    folder = trained()
    spoil(folder / "module.json", method=read_json(folder / "module.json")["method"] | {"rank": rank})
    with pytest.raises(IncompatibleModule, match=rf"larger method than the weights belong to[\s\S]*rank {rank:,}"):
        TaskModule.load(folder)


@dataclass(frozen=True)
class Stepping:
    """As much of a method as has sizes."""

    rank: int = 8
    learning_rate: float = 1e-3
    steps: int = field(default=300, metadata=SIZELESS)

    def attach(self, model: Any) -> None:
        """Never called."""


def test_a_whole_number_that_sizes_nothing_is_not_held_against_the_weights(trained: Callable[..., Path]) -> None:
    folder = trained()
    module = TaskModule.load(folder)
    setting, delta = Setting(module.task, kinds.get("classification"), module.backbone), module.fitted.delta()
    require_fitting(cast(Any, Stepping()), delta, setting, folder)
    with pytest.raises(IncompatibleModule, match=r"larger method than the weights belong to[\s\S]*rank 300"):
        require_fitting(cast(Any, Stepping(rank=300)), delta, setting, folder)


def test_a_size_of_a_method_below_another_is_bounded_too(trained: Callable[..., Path]) -> None:
    folder = trained()
    module, over = TaskModule.load(folder), NoTransfer(by="lora:rank=100000000")
    setting = Setting(module.task, kinds.get("classification"), module.backbone)
    with pytest.raises(IncompatibleModule, match=r"larger method than the weights belong to[\s\S]*rank 100,000,000"):
        require_fitting(over, module.fitted.delta(), setting, folder)
    require_fitting(NoTransfer(by="lora"), module.fitted.delta(), setting, folder)


def test_a_head_that_the_weights_do_not_have_is_refused_before_it_is_built(trained: Callable[..., Path]) -> None:
    folder = trained()
    labels = [f"l{number}" for number in range(100_000)]
    spoil(folder / "module.json", task=read_json(folder / "module.json")["task"] | {"labels": labels})
    with pytest.raises(IncompatibleModule, match=r"larger method than the weights belong to[\s\S]*100,000 outputs"):
        TaskModule.load(folder)


def test_labels_that_have_no_logits_are_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    spoil(folder / "module.json", task=read_json(folder / "module.json")["task"] | {"labels": ["a", "b", "c"]})
    with pytest.raises(GraftworkError, match="shape"):
        TaskModule.load(folder)


def test_a_module_starts_no_download(trained: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = trained()
    spoil(folder / "module.json", backbone=read_json(folder / "module.json")["backbone"] | {"id": "hf:evil/network"})
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(StorageError, match="a file that names one starts no download"):
        TaskModule.load(folder)


def test_weights_that_are_no_numbers_are_refused(trained: Callable[..., Path]) -> None:
    folder = trained()
    content = (folder / "delta.safetensors").read_bytes()[:-4] + b"\x00\x00\xc0\x7f"  # NaN
    (folder / "delta.safetensors").write_bytes(content)
    spoil(folder / "module.json", delta_sha256=file_digest(folder / "delta.safetensors"))
    with pytest.raises(IncompatibleModule, match="NaN or infinity"):
        TaskModule.load(folder)


@pytest.mark.parametrize(
    ("kind", "labels", "roles", "told"),
    [
        ("classification", ["a", "b"], ["text"], "a, b"),
        ("span", [], ["question", "text"], "a span of the passage"),
        ("ranking", [], ["text", "choices"], "one of the given choices, or all of them in order"),
        ("regression", [], ["text"], "a number"),
        ("generation", [], ["text"], "a text of its own"),
        ("another", [], ["text"], "what its kind predicts"),
    ],
)
def test_a_card_says_what_is_answered(kind: str, labels: list[str], roles: list[str], told: str) -> None:
    assert _answers({"kind": kind, "labels": labels}, roles) == told
