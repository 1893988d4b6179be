"""Mixtures: whatever rows share a batch, each is answered as it is alone."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.bank import stacked_adapters
from graftwork.bank.mixed_batch import Mixture, _Round
from graftwork.bank.stacked_adapters import Chunks
from graftwork.core.backbone import towers_of
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import THRESHOLDS_FACT, Setting
from graftwork.core.ragged import flat
from graftwork.core.task import Dataset
from graftwork.errors import UnknownName
from graftwork.machine.memory import OutOfMemory
from graftwork.module.task_module import TaskModule, save_module
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.loop import Attaches, FittedModel, build_model

NEAR = {"fp32": 1e-5, "bf16": 8e-2}  # of a logit, beside the largest; random weights of so narrow a network are rough
KINDS = ("classification", "pair", "multilabel", "regression", "tagging", "span", "choice", "ranking")
METHODS = ("linear_probe", "lora", "lora:rank=2", "adapter", "adapter:size=4:placement=pfeiffer", "bitfit", "ia3")
ALONE = ("top_layers:k=1", "full", "prefix", "majority", "tfidf_svm")
ASKED = [
    *(("classification", method) for method in (*METHODS, *ALONE)),
    *((kind, method) for kind in KINDS[1:] for method in ("linear_probe", "lora")),
    ("tagging", "adapter"),
    ("span", "bitfit"),
    ("choice", "top_layers:k=1"),
]


def data_of(kind: str) -> Dataset:
    return tiny_dataset("classification", pair=True) if kind == "pair" else tiny_dataset(kind)


def drawn(method: Attaches, setting: Setting, towers: int, seed: int) -> FittedModel:
    """As training might leave it, and a shift as a kind might choose it."""
    torch.manual_seed(seed)
    model = build_model(method, setting, towers)
    with torch.no_grad():
        for weight in model.delta().values():
            weight.add_(0.02 * torch.randn_like(weight))
    outputs = setting.kind.outputs(setting.task)
    return FittedModel(model, {"towers": towers, "blind": [0.5] * outputs, THRESHOLDS_FACT: [0.25 * seed] * outputs})


def module(folder: Path, kind: str, method: str, precision: str, seed: int = 0) -> TaskModule:
    data, made = data_of(kind), parse_method(method)
    backbone = open_backbone("tiny_text", precision=precision) if made.method.uses_backbone else None
    setting = Setting(data.task, kinds.get(data.task.kind), backbone)
    if isinstance(made.method, Attaches) and backbone is not None:
        fitted: Any = drawn(made.method, setting, towers_of(backbone.card.towers, data.train.examples[0]), seed)
    else:
        fitted = made.method.fit(tiny_bench(data, backbone, epochs=1, seed=seed))
    told = {"run": "", "method": made.config, "recipe": {}, "precision": precision, "backbone_seed": None, "scores": {}}
    kept = data.test.examples[:2]
    save_module(folder, setting, fitted, told | {"trained_parameters": 0}, kept, fitted.logits(kept))
    return TaskModule.load(folder)


@pytest.fixture(scope="module", params=[pytest.param("fp32", marks=pytest.mark.slow), "bf16"])
def precision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def modules(precision: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TaskModule]:
    made = {}
    for kind, method in ASKED:
        folder = tmp_path_factory.mktemp(precision) / "module"
        made[f"{kind}/{method}"] = module(folder, kind, method, precision, seed=len(made) % 2)
    return made


@pytest.fixture(scope="module")
def rows(modules: Mapping[str, TaskModule]) -> list[tuple[str, Example]]:
    """Every task's, of different lengths."""
    listed = []
    for name in modules:
        data = data_of(name.partition("/")[0])
        listed += [(name, example) for example in data.train.examples]
    return listed


def mixture_of(modules: Mapping[str, TaskModule], tokens: int = 512) -> Mixture:
    mixture = Mixture(tokens)
    for name, one in modules.items():
        mixture.put(name, one)
    return mixture


def alone(one: TaskModule, example: Example) -> Any:
    return flat(one.fitted.logits([example]))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_every_row_is_answered_as_it_is_alone(
    modules: Mapping[str, TaskModule], rows: list[tuple[str, Example]], precision: str, seed: int
) -> None:
    chosen = random.Random(seed).choices(rows, k=40 + 30 * seed)
    mixture = mixture_of(modules, tokens=(64, 200, 512, 4096)[seed])
    found, answers = mixture.logits(chosen), mixture.answers(chosen)
    for (name, example), logits, answer in zip(chosen, found, answers, strict=True):
        expected = alone(modules[name], example)
        near = NEAR[precision] * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(np.reshape(logits, expected.shape), expected, atol=near, err_msg=name)
        task = modules[name].task
        told = kinds.get(task.kind).decode(modules[name].fitted.logits([example]), task, [example])[0]
        sure = not isinstance(told.get("label"), str) or np.sort(expected[0])[-1] - np.sort(expected[0])[-2] > 2 * near
        if precision == "fp32" or sure:
            assert answer.keys() == told.keys()
            assert answer.get("label") == told.get("label"), name


def test_what_hangs_stands_on_shelves_and_the_rest_stays(modules: Mapping[str, TaskModule]) -> None:
    residents = mixture_of(modules)._residents
    shelves = {name: one.place.number for name, one in residents.items() if one.place is not None}
    assert {name.partition("/")[2].partition(":")[0] for name in shelves} == {"lora", "adapter", "bitfit", "ia3"}
    assert shelves["classification/lora"] == shelves["tagging/lora"] == shelves["pair/lora"]
    assert len(set(shelves.values())) == 6  # lora of two ranks, adapters of two shapes, bitfit, ia3
    assert all(residents[name].fitted is residents[name].reader is None for name in shelves)
    alone = {name for name, one in residents.items() if one.fitted is not None}
    assert alone == {f"classification/{method}" for method in ALONE[1:]}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32"], indirect=True)
def test_where_rows_are_not_apart_adapters_answer_by_themselves(
    modules: Mapping[str, TaskModule], rows: list[tuple[str, Example]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = rows[::9]
    together = mixture_of(modules).logits(asked)
    monkeypatch.setattr(TransformerBackbone, "rows_apart", False)
    mixture = mixture_of(modules)
    assert not mixture._shelves
    assert mixture._residents["classification/linear_probe"].reader is not None
    for found, expected in zip(mixture.logits(asked), together, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_one_text_runs_once_for_all_tasks_that_change_nothing(
    modules: Mapping[str, TaskModule], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    real = TransformerBackbone.states_up_to

    def counting(self: TransformerBackbone, inputs: Any, depth: int) -> Any:
        ran.append(len(inputs["input_ids"]))
        return real(self, inputs, depth)

    names = ["classification/linear_probe", "multilabel/linear_probe", "regression/linear_probe"]
    names += ["classification/top_layers:k=1", "classification/lora", "regression/lora"]
    mixture = mixture_of({name: modules[name] for name in names})
    monkeypatch.setattr(TransformerBackbone, "states_up_to", counting)
    example = data_of("classification").test.examples[0]
    answers = mixture.answers([(name, example) for name in names])
    assert ran == [3]  # one for all that read the frozen states, one for each LoRA
    assert [next(iter(answer)) for answer in answers] == ["label", "label", "value", "label", "label", "value"]


def test_a_batch_that_finds_no_memory_goes_through_in_halves(
    precision: str, modules: Mapping[str, TaskModule], rows: list[tuple[str, Example]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it runs out among the blocks or at a head, nothing is answered twice and nothing left out."""
    mixture = mixture_of(modules, 10**6)
    asked = random.Random(0).sample(rows, 40)
    whole = mixture.logits(asked)
    real, read, ran, heads = TransformerBackbone.states_up_to, _Round._read, list[int](), list[str]()

    def short(self: TransformerBackbone, inputs: Any, depth: int) -> Any:
        ran.append(len(inputs["input_ids"]))
        if ran[-1] > 12:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        return real(self, inputs, depth)

    def short_at_a_head(self: _Round, resident: Any, part: Any) -> Any:
        heads.append(resident.task.name)
        if len(heads) in (3, 8, 20):
            raise MemoryError
        return read(self, resident, part)

    monkeypatch.setattr(TransformerBackbone, "states_up_to", short)
    monkeypatch.setattr(_Round, "_read", short_at_a_head)
    for found, expected in zip(mixture.logits(asked), whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=NEAR[precision] * max(1, np.abs(expected).max()))
    assert max(ran) > 12 and len(heads) > 20


def test_one_row_that_finds_no_memory_is_told(
    modules: Mapping[str, TaskModule], rows: list[tuple[str, Example]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*_: Any) -> Any:
        raise MemoryError

    mixture = mixture_of(modules)
    with monkeypatch.context() as patched:
        patched.setattr(TransformerBackbone, "states_up_to", short)
        patched.setattr(TransformerBackbone, "states", short)
        with pytest.raises(OutOfMemory, match="one example needs more memory"):
            mixture.answers(rows[:20])
    assert len(mixture.answers(rows[:20])) == 20


def test_tasks_come_and_go(modules: Mapping[str, TaskModule], rows: list[tuple[str, Example]]) -> None:
    mixture = mixture_of(modules)
    asked = [row for row in rows if row[0] == "classification/lora"][:5]
    before = mixture.logits(asked)
    for _ in range(2 * stacked_adapters.ROOM):
        mixture.put("another", modules["classification/lora"])  # replaced again and again: the slot is given back
    for number in range(2 * stacked_adapters.ROOM):
        mixture.put(f"more {number}", modules["tagging/lora"])  # the shelf grows
    for number in range(0, 2 * stacked_adapters.ROOM, 2):
        mixture.drop(f"more {number}")
    mixture.put("late", modules["classification/lora"])
    np.testing.assert_array_equal(mixture.logits(asked), before)
    np.testing.assert_allclose(mixture.logits([("late", example) for _, example in asked]), before, atol=1e-6)
    with pytest.raises(UnknownName, match="did you mean 'late'"):
        mixture.answers([("lat", asked[0][1])])
    mixture.drop("late")
    assert "late" not in mixture._residents


def test_a_backbone_is_left_as_it_was(modules: Mapping[str, TaskModule], rows: list[tuple[str, Example]]) -> None:
    backbone = modules["classification/lora"].backbone
    assert backbone is not None
    inputs = backbone.collate(backbone.encode([rows[0][1]]), [0])
    with torch.no_grad():
        before = backbone.features(inputs).pooled
        mixture = mixture_of(modules)
        assert mixture._backbone is not None
        sites = list(mixture._backbone.module.modules())
        hooks = [(*site._forward_hooks.values(), *site._forward_pre_hooks.values()) for site in sites]
        mixture.answers(rows[::7])
        assert torch.equal(backbone.features(inputs).pooled, before)
    assert [(*site._forward_hooks.values(), *site._forward_pre_hooks.values()) for site in sites] == hooks


@pytest.mark.parametrize(
    "slots", [[5], [0, 1, 2], [3, 3, 3, 3], [0, 0, 4, 4], [1, 1, 1, 2], [0] * 17 + [1] * 15 + [2] * 16, [0] * 30 + [7]]
)
def test_chunks_hold_every_row_once(slots: list[int]) -> None:
    chunks = Chunks.of(slots)
    rows = np.arange(len(slots))
    if chunks.index is None:
        assert chunks.back is None and len(slots) % len(chunks.slots) == 0
        assert np.repeat(chunks.slots, len(slots) // len(chunks.slots)).tolist() == slots
        return
    assert chunks.back is not None
    index, back = chunks.index.numpy(), chunks.back.numpy()
    assert index[back].tolist() == rows.tolist() and len(set(back.tolist())) == len(slots)
    of_places = np.repeat(chunks.slots, len(index) // len(chunks.slots))
    assert of_places.tolist() == [slots[row] for row in index]


@pytest.mark.slow
@pytest.mark.parametrize(("precision_", "near"), [("fp32", 1e-5), ("bf16", 2e-2)])
def test_on_a_real_backbone_the_bounds_are_narrow(precision_: str, near: float) -> None:
    """Adapters of the size that training leaves, on the default backbone: alone and in a mixture."""
    backbone = open_backbone("minilm", precision=precision_)
    task = tiny_dataset().task
    modules = {}
    for seed, method in enumerate((*METHODS, "top_layers", "lora", "adapter", "bitfit")[1:]):
        made = parse_method(method).method
        assert isinstance(made, Attaches)
        fitted = drawn(made, Setting(task, kinds.get(task.kind), backbone), 1, seed)
        modules[f"{method}/{seed}"] = TaskModule(Path(), task, fitted, {"roles": ["text"]}, backbone)
    mixture, chance = mixture_of(modules, tokens=300), random.Random(0)
    words = [
        "who",
        "wrote",
        "the",
        "first",
        "play",
        "of",
        "shakespeare",
        "and",
        "how",
        "far",
        "is",
        "it",
        "from",
        "here",
        "to",
        "the",
        "moon",
    ]
    texts = [" ".join(chance.choices(words, k=chance.randint(2, 24))) for _ in range(40)]
    rows = [(chance.choice(list(modules)), Example(f"row/{i}", {"text": text})) for i, text in enumerate(texts)]
    for (name, example), logits in zip(rows, mixture.logits(rows), strict=True):
        expected = alone(modules[name], example)[0]
        np.testing.assert_allclose(logits, expected, atol=near * max(1.0, float(np.abs(expected).max())), err_msg=name)
