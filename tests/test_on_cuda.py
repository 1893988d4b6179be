"""Every method, kind and family on a pretended CUDA card: fitted, interrupted, continued, stored, opened, and answering
alone and in a mixed batch of a bank."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel, BertConfig, GPT2Config, PreTrainedTokenizerFast

from graftwork import registry
from graftwork.backbones.elmo import save_bilm
from graftwork.backbones.tiny_text import ARCHITECTURE, tiny_tokenizer
from graftwork.bank.mixed_batch import Mixture
from graftwork.core.backbone import Backbone, device_of
from graftwork.core.configured_methods import ConfiguredMethod, parse_method
from graftwork.core.media import MEDIA
from graftwork.core.method import Setting, unfit
from graftwork.core.ragged import flat
from graftwork.core.task import Dataset
from graftwork.data.readers.word_vector_folder import write_folder
from graftwork.errors import ConfigError
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import resolve_device
from graftwork.machine.memory import OutOfMemory
from graftwork.methods.adapterhub import AdapterHub
from graftwork.module.task_module import TOLERANCE, TaskModule, save_module, self_test_examples
from graftwork.pretrained.model_folder import OWN_SETTINGS
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.run import run_checkpoint
from graftwork.run.run_checkpoint import RunCheckpoint
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_media import tiny_media
from graftwork.testing.tiny_networks import tiny_bilm, tiny_word_vectors, write_awd_lstm, write_network
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train import linear_fit
from graftwork.train.checkpoint_files import Checkpoints
from graftwork.train.loop import Attaches
from pretended_cuda import Card, pretended_cuda

SETTINGS = {  # of methods whose defaults name no place in two blocks
    "top_layers": "top_layers:k=1",
    "adapterhub": "adapterhub:parts=attention+mlp:size=4",
    "peft_lora": "peft_lora:maps=attention.query+mlp.down:rank=2",
}
METHODS = [
    SETTINGS.get(name, name)
    for name in registry.methods.names()
    if registry.methods.get(name)().uses_backbone and name != "zero_shot"  # it answers with texts
]
SENTENCES = "hf_text that reads each text of a pair by itself"
NETWORKS = {"prompt": "hf_decoder", "verbalised": "hf_seq2seq", "cross_encoder": SENTENCES}  # of methods that need one
QUICK = ("full", "lora", "linear_probe")  # of these every change is tested
KINDS = ("classification", "multilabel", "regression", "tagging", "span", "choice", "ranking")
FAMILIES = [  # minilm is `hf_text` with other weights; what writes has tests of its own
    name for name in registry.backbones.names() if name not in ("minilm", "hf_seq2seq", "hf_speech_to_text")
]
QUICK_KINDS = ("tagging", "choice")  # a head of words and one of choices; the others have one of texts, or of both
QUICK_FAMILIES = ("hf_text", "hf_decoder", "hf_image")
MEDIA_FAMILIES = {"hf_image": "vit", "hf_speech": "wav2vec2"}


class Killed(BaseException):
    """Stands for a kill in the middle of a fit: nothing cleans up."""


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    monkeypatch.setattr(run_checkpoint, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(linear_fit.fit_best_linear, "__defaults__", ((2.0,),))  # they are fitted on the processor
    with pretended_cuda(monkeypatch) as made:
        yield made


def fitted(made: ConfiguredMethod, data: Dataset, backbone: Backbone, folder: Path, kill_at: int | None = None) -> Any:
    """Fit, going on from what an attempt in the same folder left; with `kill_at` it is killed after so many steps."""
    bench, steps = tiny_bench(data, backbone, epochs=1), 0

    def progress(done: float, text: str) -> None:
        nonlocal steps
        steps += 1
        if steps == kill_at:
            raise Killed

    bench.progress, bench.keeper = progress, RunCheckpoint(Checkpoints(folder, "run", dict), io.StringIO(), bench)
    return made.method.fit(bench)


def near(found: Any, expected: Any, precision: str = "fp32") -> bool:
    found, expected = flat(found).ravel(), flat(expected).ravel()
    return bool(np.abs(found - expected).max() <= TOLERANCE[precision] * max(1.0, np.abs(expected).max()))


def lives_on_cuda(method: str, data: Dataset, name: str, folder: Path, precision: str = "fp32") -> None:
    """Fit, kill, go on, store, open here and on the processor, and answer alone and together."""
    made, device = parse_method(method), resolve_device("auto")
    backbone = open_backbone(name, precision=precision, device=device, seed=0)
    assert device_of(backbone.module).type == device == "cuda"
    whole = fitted(made, data, backbone, folder / "whole")
    with pytest.raises(Killed) if isinstance(made.method, Attaches) else contextlib.suppress(Killed):
        fitted(made, data, backbone, folder / "broken", kill_at=2)
    again, examples = fitted(made, data, backbone, folder / "broken"), data.test.examples
    for part, tensor in whole.delta().items():
        other = again.delta()[part]
        assert not isinstance(tensor, Tensor) or tensor.device.type == "cpu"
        assert np.array_equal(*(np.asarray(one.float() if isinstance(one, Tensor) else one) for one in (tensor, other)))
    answers = whole.logits(examples)
    assert np.isfinite(flat(answers)).all() and near(again.logits(examples), answers, precision)
    setting = Setting(data.task, registry.kinds.get(data.task.kind), backbone)
    kept = self_test_examples(folder / "module", examples)
    told = {"run": "", "method": made.config, "recipe": {}, "precision": precision, "backbone_seed": None, "scores": {}}
    save_module(folder / "module", setting, whole, told | {"trained_parameters": 0}, kept, whole.logits(kept))
    opened = TaskModule.load(folder / "module")
    assert opened.backbone is not None and device_of(opened.backbone.module).type == "cuda"
    assert near(opened.fitted.logits(examples), answers, precision)
    if precision == "fp32":
        assert near(TaskModule.load(folder / "module", device="cpu").fitted.logits(examples), answers)
    mixture, rows = Mixture(64), [("one", example) for example in examples] + [("other", examples[0])]
    for task in ("one", "other"):
        mixture.put(task, opened)
    together = mixture.logits(rows)
    assert near(np.concatenate([flat(found).ravel() for found in together[:-1]]), answers, precision)
    assert near(together[-1], together[0], precision)


def fits(method: str, data: Dataset, backbone: Backbone) -> bool:
    made = parse_method(method).method
    if data.task.reads != backbone.card.modality or unfit(made, data.task, backbone.card):
        return False
    roles = made.roles if isinstance(made, AdapterHub) else ()
    return all(backbone.sites(role) for role in roles)  # norms behind sums are named by some networks only


def datasets(folder: Path, rows: int = 20) -> Iterator[Dataset]:
    yield from (tiny_dataset(kind, rows=rows) for kind in KINDS)
    yield tiny_dataset(pair=True, rows=rows)
    yield from (tiny_media(folder / role, role, rows=rows) for role in MEDIA)


def tiny(family: str, folder: Path) -> str:
    """The name of a small random network of a family."""
    if family == "tiny_text":
        return family
    vocabulary = {"vocab_size": tiny_tokenizer().get_vocab_size(), "initializer_range": 0.2}
    configs = {
        "hf_text": BertConfig(**(ARCHITECTURE | vocabulary)),
        "hf_decoder": GPT2Config(**vocabulary, n_embd=32, n_layer=2, n_head=2, n_positions=64),
    }
    configs[SENTENCES] = configs["hf_text"]
    if family == "word_vectors":
        write_folder(folder, tiny_word_vectors())
    elif family == "elmo":
        save_bilm(tiny_bilm(), folder, {})
    elif family == "awd_lstm":
        write_awd_lstm(folder)
    elif family == "hf_seq2seq":
        write_seq2seq(folder)
    elif family in MEDIA_FAMILIES:
        write_network(folder, MEDIA_FAMILIES[family])
    else:
        PreTrainedTokenizerFast(
            tokenizer_object=tiny_tokenizer(), unk_token="[UNK]", pad_token="[PAD]", eos_token="[SEP]"
        ).save_pretrained(folder)
        AutoModel.from_config(configs[family]).save_pretrained(folder)
    if family == SENTENCES:
        told = read_json(folder / "config.json")
        write_json(folder / "config.json", told | {OWN_SETTINGS: {"pooling": "mean", "towers": 2}})
    return f"hf:{folder}"


def slow_but(names: Sequence[str], quick: Sequence[str]) -> list[Any]:
    """All of them, those that are not in `quick` marked."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("method", slow_but(METHODS, QUICK))
def test_methods(method: str, tmp_path: Path) -> None:
    name = tiny(NETWORKS.get(method, "tiny_text"), tmp_path / "network")
    backbone = open_backbone(name, precision="fp32")
    data = next(data for data in datasets(tmp_path, rows=12) if fits(method, data, backbone))
    lives_on_cuda(method, data, name, tmp_path)


@pytest.mark.parametrize("kind", slow_but(KINDS[1:], QUICK_KINDS))  # classification is what every method meets
def test_kinds(kind: str, tmp_path: Path) -> None:
    lives_on_cuda("lora", tiny_dataset(kind, rows=12), "tiny_text", tmp_path)


@pytest.mark.parametrize("family", slow_but([name for name in FAMILIES if name != "tiny_text"], QUICK_FAMILIES))
def test_families(family: str, tmp_path: Path) -> None:
    name = tiny(family, tmp_path / "network")
    backbone = open_backbone(name, precision="fp32")
    method = next(
        method
        for method in ("full", "linear_probe")
        if not unfit(parse_method(method).method, tiny_dataset().task, backbone.card)
    )
    data = next(data for data in datasets(tmp_path, rows=12) if fits(method, data, backbone))
    lives_on_cuda(method, data, name, tmp_path)


def test_a_network_for_which_the_card_has_no_room(card: Card) -> None:
    card.room = 1000
    with pytest.raises(OutOfMemory) as caught:
        open_backbone("tiny_text", precision="fp32", device="cuda")
    assert (caught.value.where, caught.value.what) == ("cuda", "the network needs more memory than is available")
    assert "CUDA out of memory" in caught.value.got and "--device cpu" in caught.value.do


def test_a_card_that_another_process_has_for_itself(monkeypatch: pytest.MonkeyPatch, card: Card) -> None:
    def busy() -> None:
        raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nCUDA kernel errors …")

    monkeypatch.setattr(card, "touch", busy)
    with pytest.raises(ConfigError) as caught:
        open_backbone("tiny_text", precision="fp32", device="cuda")
    assert caught.value.got == "CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    assert "--device cpu" in caught.value.do


def test_fp32_is_fp32_in_convolutions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    open_backbone("tiny_text", precision="fp32", device="cpu")
    assert torch.backends.cudnn.allow_tf32
    open_backbone("tiny_text", precision="fp32", device="cuda")
    assert not torch.backends.cudnn.allow_tf32


def test_what_the_card_has_no_room_for_goes_in_parts(card: Card, tmp_path: Path) -> None:
    data, method = tiny_dataset(rows=12), parse_method("lora")
    opened = open_backbone("tiny_text", precision="fp32", device="cuda")
    torch.cuda.reset_peak_memory_stats()
    whole = fitted(method, data, opened, tmp_path / "whole")
    card.room = torch.cuda.max_memory_allocated() // 2 - 1  # of a frozen pass, which has more rows than a step
    parted = fitted(method, data, opened, tmp_path / "parted")
    assert parted.facts["accumulation"]["parts"] == 2 and "accumulation" not in whole.facts
    assert "CUDA out of memory" in parted.facts["accumulation"]["cuts"][0]["why"]
    assert near(parted.logits(data.test.examples), whole.logits(data.test.examples))


# Each method on another family, in turn in fp32 and bf16: the whole product takes an hour and showed nothing more.
OTHERS = [
    (method, FAMILIES[number % len(FAMILIES)], ("fp32", "bf16")[number % 2]) for number, method in enumerate(METHODS)
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "family", "precision"), OTHERS)
def test_every_method_on_a_family_and_every_kind(method: str, family: str, precision: str, tmp_path: Path) -> None:
    name = tiny(family, tmp_path / "network")
    backbone = open_backbone(name, precision=precision)
    for number, data in enumerate(datasets(tmp_path)):
        if fits(method, data, backbone):
            lives_on_cuda(method, data, name, tmp_path / str(number), precision)
