"""The public contracts over every registered part, and proof that a part which breaks one is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoModel, BertConfig, GPT2Config, PreTrainedTokenizerFast

from graftwork import registry
from graftwork.backbones.elmo import save_bilm
from graftwork.backbones.tiny_text import ARCHITECTURE, tiny_tokenizer
from graftwork.core.backbone import Backbone
from graftwork.core.meter import Cost
from graftwork.core.method import Setting, Workbench
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.data.readers.word_vector_folder import write_folder
from graftwork.kinds.classification import Classification
from graftwork.metrics.accuracy import Accuracy
from graftwork.pretrain.tokenizers.words import train as train_words
from graftwork.pretrain.vocabulary import ROBERTA, TokenizerKind, Vocabulary
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import (
    check_backbone,
    check_kind,
    check_meter,
    check_method,
    check_metric,
    check_suite,
    check_tokenizer,
    tiny_bench,
    tiny_dataset,
)
from graftwork.testing.method_contract import KINDS
from graftwork.testing.tiny_networks import tiny_bilm, tiny_word_vectors, write_awd_lstm, write_network
from graftwork.train.loop import FittedModel, fit_by_gradient, restore_by_attaching

SETTINGS: dict[str, list[dict[str, Any]]] = {  # beside the defaults
    "adapter": [{"size": 4, "placement": "pfeiffer"}],
    "adapterhub": [{"parts": "mlp", "size": 4}, {"parts": "attention+mlp", "reads": "map", "activation": "silu"}],
    "full": [{"embeddings": "frozen"}],
    "lora": [{"rank": 2, "alpha": 8.0}],
    "peft_lora": [{"maps": "attention.query+mlp.down", "rank": 2}, {"maps": "attention.value", "head": "none"}],
    "top_layers": [{"k": 1}],
}
DEFAULTS_DO_NOT_FIT = {"top_layers", "adapterhub", "peft_lora"}  # `tiny_text` has two blocks; these name no place
DEFAULTS_DO_NOT_FIT |= {"prompt"}  # it is no language model: tests/methods/test_prompt.py has one
DEFAULTS_DO_NOT_FIT |= {"verbalised", "zero_shot"}  # it writes nothing: their own tests have a T5
BY_GRADIENT = {
    "adapter",
    "average",
    "bitfit",
    "full",
    "ia3",
    "linear_probe",
    "lora",
    "prefix",
    "scalar_mix",
    "top_layers",
    "ulmfit",
}
OTHER_KINDS = ("tagging", "span", "choice")
DEFAULTS_ARE_SLOW = {"no_transfer"}  # what `full` takes, and weights drawn for every fit
FUSED = ("attention.query", "attention.key", "attention.value")


def method_cases() -> list[Any]:
    """Every method as it comes; other settings of it are slow tests, where its defaults fit."""
    names = registry.methods.names()
    cases: list[Any] = [
        pytest.param(name, {}, marks=(pytest.mark.slow,) if name in DEFAULTS_ARE_SLOW else ())
        for name in names
        if name not in DEFAULTS_DO_NOT_FIT
    ]
    for name, listed in SETTINGS.items():
        marks = () if name in DEFAULTS_DO_NOT_FIT else (pytest.mark.slow,)
        cases += [pytest.param(name, settings, marks=marks) for settings in listed]
    return cases


@pytest.mark.parametrize(("name", "settings"), method_cases(), ids=str)
def test_methods(name: str, settings: dict[str, Any]) -> None:
    kinds = [kind for kind in KINDS if name not in BY_GRADIENT or kind not in OTHER_KINDS]
    check_method(name, settings, of_kinds=kinds)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BY_GRADIENT))
def test_methods_on_other_kinds(name: str) -> None:
    """What is other there than in classification is the kind's: the head of a word, and what stands beside it."""
    settings = {"k": 1} if name == "top_layers" else {}
    check_method(name, settings, of_kinds=OTHER_KINDS)


MEDIA_FAMILIES = {"hf_image": "vit", "hf_speech": "wav2vec2"}  # more of each in tests/backbones


def open_tiny(name: str, folder: Path) -> tuple[Backbone, tuple[str, ...]]:
    """A backbone of each registered name, and the roles that it lacks."""
    vocabulary = {"vocab_size": tiny_tokenizer().get_vocab_size(), "initializer_range": 0.2}
    configs = {
        "hf_text": BertConfig(**(ARCHITECTURE | vocabulary)),
        "hf_decoder": GPT2Config(**vocabulary, n_embd=32, n_layer=2, n_head=2, n_positions=64),
    }
    written = {
        "word_vectors": lambda: write_folder(folder, tiny_word_vectors()),
        "elmo": lambda: save_bilm(tiny_bilm(), folder, {}),
        "awd_lstm": lambda: write_awd_lstm(folder),
    } | {family: lambda network=network: write_network(folder, network) for family, network in MEDIA_FAMILIES.items()}
    if name in written:
        written[name]()
        opened = open_backbone(f"hf:{folder}", precision="fp32")
        return opened, opened.card.lacks
    if name not in configs:
        return open_backbone(name, precision="fp32"), ("attention.qkv",)
    PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizer(), unk_token="[UNK]", pad_token="[PAD]", eos_token="[SEP]"
    ).save_pretrained(folder)
    with torch.random.fork_rng():
        AutoModel.from_config(configs[name]).save_pretrained(folder)
    return open_backbone(f"hf:{folder}", precision="fp32"), FUSED if name == "hf_decoder" else ("attention.qkv",)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "minilm" else ())
        for name in registry.backbones.names()
        if name not in ("hf_seq2seq", "hf_speech_to_text")
    ],
)
def test_backbones(name: str, tmp_path: Path) -> None:
    backbone, absent = open_tiny(name, tmp_path)
    check_backbone(backbone, absent=absent)


def test_a_backbone_in_bf16() -> None:
    check_backbone(open_backbone("tiny_text", precision="bf16"))


@pytest.mark.parametrize("name", registry.kinds.names())
def test_kinds(name: str) -> None:
    check_kind(name)


@pytest.mark.parametrize("name", registry.metrics.names())
def test_metrics(name: str) -> None:
    check_metric(name)


@pytest.mark.parametrize("name", registry.meters.names())
def test_meters(name: str) -> None:
    check_meter(name)


@pytest.mark.parametrize("name", registry.suites.names())
def test_suites(name: str, tmp_path: Path) -> None:
    check_suite(name, tmp_path)


@pytest.mark.parametrize("name", registry.tokenizers.names())
def test_tokenizers(name: str, tmp_path: Path) -> None:
    check_tokenizer(name, tmp_path)


# What the contracts are for: a part that breaks one is found, by the promise that it breaks.


class Altered:
    """A part with some of its members replaced."""

    def __init__(self, part: Any, **members: Any):
        self.__dict__.update(members, _part=part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


class Stretch(nn.Module):
    """y -> y (1 + s), with s (1,)."""

    def __init__(self, start: float):
        super().__init__()
        self.s = nn.Parameter(torch.full((1,), start))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return y * (1 + self.s)


@dataclass(frozen=True)
class Broken:
    """A gradient method with one fault."""

    fault: str = ""
    learning_rate: float = 1e-2

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Any, card: Any) -> str:
        return "it never fits" if self.fault == "unfit" else ""

    def attach(self, model: Model) -> None:
        shared = list(model.backbone.sites("mlp.up").values())[
            -1
        ]  # before plugging moves the model to modules of its own
        model.plug("mlp.down", lambda site: Stretch(1.0 if self.fault == "moves" else 0.0))
        if self.fault == "trains a shared weight":
            shared.requires_grad_(True)
        elif self.fault == "trains nothing":
            model.requires_grad_(False)
        elif self.fault == "trains what is not used":
            model.adapters["unused"] = Stretch(0.0)
        elif self.fault == "hooks a closure":
            model._hooks.pop().remove()
            adapter, site = list(model.adapters.values())[-1], list(model.backbone.sites("mlp.down").values())[-1]
            model._hooks.append(site.register_forward_hook(lambda site, args, y: adapter(args[0], y)))
        elif self.fault == "hooks a shared module":
            shared.register_forward_hook(lambda site, args, y: y + 1)

    def fit(self, bench: Workbench) -> FittedModel:
        if self.fault == "is random":
            noise = float(np.random.default_rng().normal())
            return fit_by_gradient(replace(self, learning_rate=self.learning_rate * (1 + abs(noise))), bench)
        return fit_by_gradient(self, bench)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> FittedModel:
        if self.fault == "forgets":
            delta = {name: torch.zeros_like(tensor) for name, tensor in delta.items()}
        return restore_by_attaching(self, setting, delta, facts)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("unfit", "does not fit the toy task"),
        ("moves", "attaching changed the features"),
        ("trains a shared weight", "a weight of the shared backbone is trained"),
        ("trains nothing", "nothing is trained"),
        ("trains what is not used", "no gradient: .*unused"),
        ("hooks a closure", "goes on using the adapters of the original"),
        ("hooks a shared module", "changes the shared backbone's features"),
        ("is random", "the same seed gave another delta"),
        ("forgets", "a restored module is refused"),
    ],
)
def test_a_broken_method_is_found(fault: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.methods._parts, "broken", Broken)
    if not fault:
        check_method("broken", of_kinds=("classification", "tagging"))
        return
    with pytest.raises(AssertionError, match=message):
        check_method("broken", {"fault": fault})


TINY = open_backbone("tiny_text", precision="fp32")


def mixes_the_batch(inputs: Any, start: int = 0, entering: Any = None) -> Any:
    features = TINY.features(inputs, start, entering)
    features.pooled = features.pooled - features.pooled.mean(dim=0)
    return features


def ignores_start(inputs: Any, start: int = 0, entering: Any = None) -> Any:
    return TINY.features(inputs, min(start, 1), entering)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"features": mixes_the_batch}, "depend on its batch"),
        ({"features": ignores_start}, "starting at block 2"),
        ({"states": lambda inputs: TINY.states(inputs)[1:]}, "2 states of 2 blocks"),
        ({"sites": lambda role: TINY.sites(role) if role != "norm" else {}}, "norm: 0 sites"),
        ({"sites": lambda role: TINY.sites(role) or {"encoder": TINY.module.encoder}}, "attention.qkv: 1 sites"),
        ({"sites": lambda role: {"encoder": TINY.module} if TINY.sites(role) else {}}, "names another module"),
        ({"card": replace(TINY.card, revision="")}, "names no id, revision"),
        ({"card": replace(TINY.card, parameters=1)}, "miscounts parameters"),
    ],
)
def test_a_broken_backbone_is_found(members: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_backbone(Altered(TINY, **members))


@pytest.mark.parametrize(("member", "message"), [("copy", "training a copy changes"), ("twin", "reaches the backbone")])
def test_a_backbone_that_hands_out_itself_is_found(member: str, message: str) -> None:
    opened = open_backbone("tiny_text", precision="fp32")
    with pytest.raises(AssertionError, match=message):
        check_backbone(Altered(opened, **{member: lambda: opened}))


WHOLE = Classification()


def scores_without_sum(logits: NDArray[np.float64], task: Task, examples: Any) -> list[dict[str, Any]]:
    return [answer | {"probabilities": dict.fromkeys(task.labels, 0.5)} for answer in WHOLE.decode(logits, task)]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"predictions": lambda logits, task: logits.argmin(axis=1)}, "predictions of certain logits"),
        ({"decode": scores_without_sum}, "do not sum to 1"),
        ({"decode": lambda logits, task, examples: WHOLE.decode(logits[:1], task) * len(logits)}, "decodes"),
        ({"sentence": lambda answer: ""}, "no sentence tells"),
        ({"decode": lambda logits, task, examples: [{"label": logits.argmax(1)[0]}] * len(logits)}, "not plain JSON"),
        ({"parse": lambda text, task, where: WHOLE.parse(text, replace(task, labels=()), where)}, "parses 'violet'"),
        ({"encode": lambda targets, task: np.array([task.labels.index(t) if t in task.labels else 0 for t in targets])},
         "encodes 'violet'"),
        ({"loss": lambda logits, targets: -logits.softmax(1)[range(len(targets)), targets].log().mean()}, "not finite"),
        ({"loss": lambda logits, targets: -WHOLE.loss(logits, targets)}, "higher where right"),
        ({"constant": lambda targets, task: np.zeros(len(task.labels))}, "a blind answer has a lower loss"),
    ],
)  # fmt: skip
def test_a_broken_kind_is_found(members: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.kinds._parts, "broken", Altered(WHOLE, **members))
    with pytest.raises(AssertionError, match=message):
        check_kind("broken")


def by_place(targets: NDArray[Any], predictions: NDArray[Any], task: Task) -> NDArray[np.float64]:
    """Right or not, the first examples counting more."""
    right = Accuracy().statistics(targets, predictions, task)
    weights = np.linspace(2, 0, len(targets))[:, None]
    return np.concatenate([right * weights, weights], axis=1)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"value": lambda means: 1 - means[..., 0]}, "perfect predictions score 0"),
        ({"value": lambda means: means[..., 0] * 0 + 1}, "wrong score 1"),
        ({"value": lambda means: 100 * means[..., 0] - 99}, "wrong score -"),
        ({"value": lambda means: means.reshape(-1, 1)[0, 0]}, "not a function of each row"),
        ({"statistics": by_place, "value": lambda means: means[..., 0] / means[..., 1]}, "the order of the examples"),
    ],
)
def test_a_broken_metric_is_found(members: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.metrics._parts, "accuracy", Altered(Accuracy(), **members))
    with pytest.raises(AssertionError, match=message):
        check_metric("accuracy")


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (Cost(-1.0, "s", "meter"), "the cost is -1"),
        (Cost(float("nan"), "s", "meter"), "the cost is nan"),
        (Cost(1.0, "furlongs", "meter"), "unit 'furlongs'"),
        (Cost(1.0, "s", "hunch"), "grade 'hunch'"),
    ],
)
def test_a_broken_meter_is_found(cost: Cost, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        needs = ()

        def begin(self) -> None:
            pass

        def end(self, mark: None, readings: Any, costs: Any, prices: Any) -> Cost:
            return cost

    monkeypatch.setitem(registry.meters._parts, "broken", Broken)
    with pytest.raises(AssertionError, match=message):
        check_meter("broken")


@pytest.mark.parametrize(
    ("kind", "pair"),
    [
        *((kind, pair) for kind in ("classification", "multilabel", "regression") for pair in (False, True)),
        ("choice", False),
        ("ranking", False),
    ],
)
def test_the_toy_data_can_be_learnt(kind: str, pair: bool) -> None:
    """Well enough to be told from a blind answer: otherwise no test over it means anything."""
    data = tiny_dataset(kind, pair=pair, rows=160)
    bench = tiny_bench(data, None)
    blind = bench.score(registry.methods.get("majority")().fit(bench).logits(data.validation.examples))
    learnt = bench.score(registry.methods.get("tfidf_svm")().fit(bench).logits(data.validation.examples))
    assert learnt > max(blind, 0.6)
    assert tiny_dataset(kind, pair=pair, rows=160).digest == data.digest


def test_a_broken_suite_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    glue = registry.suites.get("glue")
    faults = {
        "no title or no tasks": replace(glue, tasks=lambda folder: []),
        "two tasks have one name": replace(glue, left_out={"RTE": "no"}),
        "reads outside the folder": replace(glue, tasks=lambda folder: glue.tasks(folder.parent / "elsewhere")),
        "are of no task": replace(glue, tasks=lambda folder: glue.tasks(folder)[:3]),
    }
    for message, broken in faults.items():
        monkeypatch.setitem(registry.suites._parts, "glue", broken)
        with pytest.raises(AssertionError, match=message):
            check_suite("glue", tmp_path)


def longer(texts: Any, size: int, lowercase: bool) -> Vocabulary:
    return train_words(texts, size + 50, lowercase)


turns = count()


def otherwise_every_time(texts: Any, size: int, lowercase: bool) -> Vocabulary:
    return train_words([*texts, *[f"turn{next(turns)}"] * 2000], size, lowercase)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (longer, "tokens where 300 are asked for"),
        (otherwise_every_time, "something else from the same texts"),
        (
            lambda *settings: replace(train_words(*settings), specials=replace(ROBERTA, end="<pad>")),
            "means something else",
        ),
    ],
)
def test_a_broken_tokenizer_is_found(train: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.tokenizers._parts, "broken", TokenizerKind(train, lowercase=True))
    with pytest.raises(AssertionError, match=message):
        check_tokenizer("broken", tmp_path)
