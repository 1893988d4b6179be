"""Bottleneck folders of adapters: what is read, written and refused; in its own environment, the library's answers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from networks import LARGE
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from graftwork.bank.exchange.exchange_formats import read_folder, write_folder
from graftwork.bank.exchange.imported_module import write_imported
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule
from graftwork.io.files import read_json, write_json
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone

WriteNetwork = Callable[..., Path]
MakeModule = Callable[..., TaskModule]
Logits = Callable[[TaskModule], Tensor]
RoundsAlike = Callable[[Tensor, Tensor, Tensor], None]
THEIRS = Path(__file__).with_name("theirs.py")
PFEIFFER = {
    "mh_adapter": False, "output_adapter": True, "reduction_factor": 4, "non_linearity": "relu",
    "original_ln_before": True, "original_ln_after": True, "residual_before_ln": True, "ln_before": False,
    "ln_after": False, "adapter_residual_before_ln": False, "leave_out": [],
}  # fmt: skip
HEAD = {"head_type": "classification", "layers": 2, "activation_function": "tanh", "label2id": {"no": 0, "yes": 1}}


def imported(theirs: Path, network: Path, folder: Path, **settings: Any) -> TaskModule:
    backbone = open_backbone(f"hf:{network}", precision="fp32")
    write_imported(folder, read_folder(theirs, backbone), backbone, name="mood", precision="fp32", **settings)
    return TaskModule.load(folder)


def saved(folder: Path, *, adapter: dict[str, Any] | None = None, head: dict[str, Any] | None = None) -> Path:
    """A folder as the library wrote it in 2021: names of that time, torch's archives, no version."""
    torch.manual_seed(5)
    about = {"hidden_size": 16, "model_class": "XLMRobertaModelWithHeads", "model_name": None, "name": "mood"}
    about |= {"model_type": "xlm-roberta"}
    tensors = {}
    for block in range(3):
        path = f"roberta.encoder.layer.{block}.output.layer_text_task_adapters.mood"
        tensors[f"{path}.adapter_down.0.weight"] = torch.randn(4, 16) * 0.3
        tensors[f"{path}.adapter_down.0.bias"] = torch.randn(4) * 0.3
        tensors[f"{path}.adapter_up.weight"] = torch.randn(16, 4) * 0.3
        tensors[f"{path}.adapter_up.bias"] = torch.randn(16) * 0.3
    heads = {"heads.mood.1": nn.Linear(16, 16), "heads.mood.4": nn.Linear(16, 2)}
    folder.mkdir()
    write_json(folder / "adapter_config.json", about | {"config": PFEIFFER | (adapter or {}), "type": "text_task"})
    write_json(folder / "head_config.json", about | {"config": HEAD | (head or {})})
    torch.save(tensors, folder / "pytorch_adapter.bin")
    layers = {
        f"{name}.{end}": getattr(layer, end).detach() for name, layer in heads.items() for end in ("weight", "bias")
    }
    torch.save(layers, folder / "pytorch_model_head.bin")
    return folder


def test_a_folder_of_2021_is_read(write_network: WriteNetwork, tmp_path: Path) -> None:
    theirs = saved(tmp_path / "theirs")
    module = imported(theirs, write_network("xlm-roberta"), tmp_path / "ours")
    assert module.description["method"] == {
        "name": "adapterhub", "version": 1, "parts": "mlp", "reads": "norm", "size": 4, "activation": "relu",
        "head": "tanh", "learning_rate": 0.002,
    }  # fmt: skip
    assert module.task.labels == ("no", "yes")
    assert set(module.description["imported"]["files"]) == {
        "adapter_config.json", "pytorch_adapter.bin", "head_config.json", "pytorch_model_head.bin"
    }  # fmt: skip
    assert module.description["trained_parameters"] == 3 * (2 * 4 * 16 + 4 + 16) + 17 * 16 + 17 * 2
    assert {path.name for path in module.folder.iterdir()} == {
        "module.json", "delta.safetensors", "selftest.json", "README.md"
    }  # fmt: skip


def test_labels_are_those_of_their_numbers(write_network: WriteNetwork, tmp_path: Path) -> None:
    backbone = open_backbone(f"hf:{write_network('xlm-roberta')}", precision="fp32")
    numbers = {f"class {number}": str(number) for number in reversed(range(11))}  # as texts "10" is before "2"
    theirs = saved(tmp_path / "theirs", head={"label2id": numbers})
    assert read_folder(theirs, backbone).labels == tuple(f"class {number}" for number in range(11))
    for odd in ({"no": 1, "yes": 2}, {"no": 0, "yes": 0}, {"no": 0, "yes": "one"}):
        write_json(theirs / "head_config.json", {"name": "mood", "config": HEAD | {"label2id": odd}})
        with pytest.raises(IncompatibleModule, match=r"label2id does not number|invalid literal for int"):
            read_folder(theirs, backbone)


def test_before_version_3_gelu_was_another(write_network: WriteNetwork, tmp_path: Path) -> None:
    theirs = saved(tmp_path / "theirs", adapter={"non_linearity": "gelu"})
    network = write_network("xlm-roberta")
    assert imported(theirs, network, tmp_path / "old").description["method"]["activation"] == "gelu_new"
    path = theirs / "adapter_config.json"
    write_json(path, read_json(path) | {"version": "adapters.1.3.0"})
    assert imported(theirs, network, tmp_path / "new").description["method"]["activation"] == "gelu"


@pytest.mark.parametrize(
    ("adapter", "head", "message"),
    [
        ({"ln_after": True}, {}, "ln_after True"),
        ({"is_parallel": True}, {}, "is_parallel True"),
        ({"phm_layer": True}, {}, "phm_layer"),
        ({"use_gating": True}, {}, "use_gating"),
        ({"original_ln_after": False}, {}, "original_ln_after False"),
        ({"residual_before_ln": "post_add"}, {}, "residual_before_ln 'post_add'"),
        ({"non_linearity": "mish"}, {}, "non_linearity 'mish'"),
        ({"output_adapter": False}, {}, "no adapter after"),
        ({"mh_adapter": True, "output_adapter": False}, {}, "has no place for"),
        ({"architecture": "prefix_tuning"}, {}, "architecture 'prefix_tuning'"),
        ({"non_linearity": None}, {}, "non_linearity 'none'"),
        ({}, {"head_type": "tagging"}, "head_type tagging"),
        ({}, {"use_pooler": True}, "use_pooler"),
        ({}, {"activation_function": "mish"}, "activation_function mish"),
    ],
    ids=str,
)
def test_what_cannot_be_expressed_is_refused(
    adapter: dict[str, Any], head: dict[str, Any], message: str, write_network: WriteNetwork, tmp_path: Path
) -> None:
    theirs = saved(tmp_path / "theirs", adapter=adapter, head=head)
    with pytest.raises(GraftworkError, match=message):
        imported(theirs, write_network("xlm-roberta"), tmp_path / "ours")


def test_an_odd_config_is_read_or_refused(write_network: WriteNetwork, tmp_path: Path) -> None:
    """Whatever stands in them: never another error than ours."""
    theirs, refused = saved(tmp_path / "theirs"), 0
    backbone = open_backbone(f"hf:{write_network('xlm-roberta')}", precision="fp32")
    for path in (theirs / "adapter_config.json", theirs / "head_config.json"):
        config = read_json(path)
        changed = [config | {key: odd} for key in config for odd in (None, {"x": 1})]
        changed += [
            config | {"config": config["config"] | {key: odd}} for key in config["config"] for odd in (None, {"x": 1})
        ]
        for content in [*changed, [], "x", None]:
            write_json(path, content)
            with suppress(GraftworkError):
                refused -= bool(read_folder(theirs, backbone))
            refused += 1
        write_json(path, config)
    assert refused > 20


def test_what_does_not_belong_together_is_refused(write_network: WriteNetwork, tmp_path: Path) -> None:
    theirs = saved(tmp_path / "theirs")
    with pytest.raises(IncompatibleModule, match=r"another architecture[\s\S]*got: +bert[\s\S]*expected: +xlm-roberta"):
        imported(theirs, write_network("bert"), tmp_path / "ours")
    with pytest.raises(IncompatibleModule, match=r"another network"):
        imported(theirs, write_network("xlm-roberta", hidden_size=8), tmp_path / "ours")
    with pytest.raises(IncompatibleModule, match=r"has no place for 'roberta.encoder.layer.2"):
        imported(theirs, write_network("xlm-roberta", num_hidden_layers=2), tmp_path / "ours")
    (theirs / "pytorch_model_head.bin").unlink()
    with pytest.raises(ConfigError, match="the adapters have no prediction head"):
        imported(theirs, write_network("xlm-roberta"), tmp_path / "ours")


def test_exported_files_have_the_librarys_names(
    write_network: WriteNetwork, make_module: MakeModule, tmp_path: Path
) -> None:
    module = make_module("adapter:placement=pfeiffer:size=5", write_network("bert"))
    write_folder(module, tmp_path / "out", "adapters")
    config = read_json(tmp_path / "out" / "adapter_config.json")
    assert int(16 // config["config"]["reduction_factor"]) == 5 and config["config"]["non_linearity"] == "gelu"
    assert not config["config"]["original_ln_before"] and config["version"].startswith("adapters.")
    tensors = load_file(tmp_path / "out" / "adapter.safetensors")
    assert len(tensors) == 3 * 4
    assert tensors["encoder.layer.2.output.adapters.mood.adapter_up.weight"].shape == (16, 5)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "adapter_config.json", "adapter.safetensors", "head.safetensors", "labels.json", "README.md"
    }  # fmt: skip


def test_a_name_with_a_dot_is_none_there(write_network: WriteNetwork, make_module: MakeModule, tmp_path: Path) -> None:
    module = make_module("adapter:placement=pfeiffer", write_network("bert"))
    write_folder(replace(module, task=module.task.resolved(name="mood.v2")), tmp_path / "out", "adapters")
    assert read_json(tmp_path / "out" / "adapter_config.json")["name"] == "mood_v2"  # a module's name there has no dot
    assert all(".mood_v2." in name for name in load_file(tmp_path / "out" / "adapter.safetensors"))


def test_an_imported_task_goes_back(write_network: WriteNetwork, tmp_path: Path, logits: Logits) -> None:
    network = write_network("xlm-roberta")
    module = imported(saved(tmp_path / "theirs"), network, tmp_path / "ours")
    write_folder(module, tmp_path / "back", "adapters")
    assert not list((tmp_path / "back").glob("*.bin"))
    again = imported(tmp_path / "back", network, tmp_path / "again")
    assert torch.equal(logits(again), logits(module)) and again.task.labels == ("no", "yes")


def test_what_adapters_cannot_hold_is_refused(
    write_network: WriteNetwork, make_module: MakeModule, tmp_path: Path
) -> None:
    bert = write_network("bert")
    for method, network, message in (
        ("adapter", bert, r"Houlsby's placement[\s\S]*do: .*adapter:placement=pfeiffer"),
        ("lora", bert, "a task trained with lora can't be exported"),
        ("adapter:placement=pfeiffer", write_network("mpnet"), "architecture 'mpnet' are not supported"),
    ):
        with pytest.raises(ConfigError, match=message):
            write_folder(make_module(method, network), tmp_path / "out", "adapters")
        assert not (tmp_path / "out").exists()


@pytest.mark.real
def test_an_adapter_off_the_hub(shared: Path, write_network: WriteNetwork, tmp_path: Path, logits: Logits) -> None:
    network = write_network("xlm-roberta", **LARGE)
    module = imported(shared / "fixtures" / "adapters" / "adapterhub_xlmt_sentiment", network, tmp_path / "ours")
    assert module.task.labels == ("Neg", "Neu", "Pos") and module.description["method"]["size"] == 48
    assert logits(module).std() > 0.05


# The library itself. It pins an older transformers, so it lives in an environment of its own: `make adapters`.

CASES = ("pfeiffer", "houlsby", "left-out", "sizes", "channels", "attention", "both-normed")
NETWORKS = ("xlm-roberta", "bert", "distilbert", "roberta", "electra")
EXPORTED = (
    "adapter:placement=pfeiffer:size=5",
    "adapterhub:parts=attention+mlp:size=3",
    "adapterhub:parts=mlp:reads=map:activation=silu:head=none",
)
STATIC = ("static-bert", "static-roberta", "static-distilbert")


@pytest.fixture(scope="session")
def python() -> str:
    """The Python of the environment that has the library."""
    found = os.environ.get("GRAFTWORK_ADAPTERS_PYTHON")
    if not found:
        pytest.skip("the library needs an environment of its own: make adapters")
    return found


def ask(python: str, *words: str | Path) -> str:
    done = subprocess.run([python, str(THEIRS), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def made(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Networks, and folders that the library saved with the logits that it gave."""
    root = tmp_path_factory.mktemp("theirs")
    ask(python, "make", root)
    return root


@pytest.mark.parametrize("case", CASES + STATIC)
def test_imported_it_answers_as_the_library(case: str, made: Path, tmp_path: Path, logits: Logits) -> None:
    folder = made / "saved" / case
    given = json.loads((folder / "logits.json").read_text())
    module = imported(folder, Path(given["network"]), tmp_path / "ours")
    torch.testing.assert_close(logits(module), torch.tensor(given["logits"]), atol=1e-5, rtol=1e-5)
    assert logits(module).std() > 0.05
    assert module.task.labels == (("no", "yes", "perhaps") if case in CASES else ("LABEL_0", "LABEL_1", "LABEL_2"))


@pytest.fixture(scope="session")
def answered(
    python: str, made: Path, write_module: MakeModule, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], tuple[TaskModule, Tensor]]:
    """Exported modules, and what the library answers with each by the lines in its README; all in one process."""
    root, modules = tmp_path_factory.mktemp("exported"), {}
    for number, (method, model_type) in enumerate(product(EXPORTED, NETWORKS)):
        module = write_module(root / f"{number}-module", method, made / "networks" / model_type)
        write_folder(module, root / f"{number}", "adapters")
        modules[method, model_type] = (module, made / "networks" / model_type, root / f"{number}")
    words = [place for _, network, folder in modules.values() for place in (network, folder)]
    found = json.loads(ask(python, "answer", *words))
    return {key: (modules[key][0], torch.tensor(rows)) for key, rows in zip(modules, found, strict=True)}


@pytest.mark.parametrize("model_type", NETWORKS)
@pytest.mark.parametrize("method", EXPORTED)
def test_exported_it_answers_as_here(
    method: str, model_type: str, answered: dict[tuple[str, str], tuple[TaskModule, Tensor]], logits: Logits
) -> None:
    module, found = answered[method, model_type]
    torch.testing.assert_close(found, logits(module), atol=1e-5, rtol=1e-5)


@pytest.mark.real
def test_off_the_hub_it_answers_as_the_library(
    shared: Path, python: str, tmp_path: Path, logits: Logits, rounds_alike: RoundsAlike
) -> None:
    theirs, network = shared / "fixtures" / "adapters" / "adapterhub_xlmt_sentiment", tmp_path / "network"
    found, exact = torch.tensor(json.loads(ask(python, "load", network, theirs)), dtype=torch.float64)
    module = imported(theirs, network, tmp_path / "ours")
    rounds_alike(logits(module), found, exact)


def test_a_safetensors_file_goes_before_an_archive(write_network: WriteNetwork, tmp_path: Path) -> None:
    theirs = saved(tmp_path / "theirs")
    tensors = torch.load(theirs / "pytorch_adapter.bin", weights_only=True)
    save_file(tensors, theirs / "adapter.safetensors")
    (theirs / "pytorch_adapter.bin").write_bytes(b"spoilt")
    module = imported(theirs, write_network("xlm-roberta"), tmp_path / "ours")
    assert "adapter.safetensors" in module.description["imported"]["files"]
