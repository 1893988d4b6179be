"""LoRA folders: imported they answer as peft and transformers do, exported they load there and give our logits."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from graftwork.bank.exchange.exchange_formats import read_folder, write_folder
from graftwork.bank.exchange.imported_module import write_imported
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError
from graftwork.io.files import read_json, write_json
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone

WriteNetwork = Callable[..., Path]
MakeModule = Callable[..., TaskModule]
Logits = Callable[[TaskModule], Tensor]
RoundsAlike = Callable[[Tensor, Tensor, Tensor], None]
MAPS = {
    "bert": ["query", "value"],
    "roberta": ["query", "key", "value", "attention.output.dense"],
    "electra": ["query", "value", "intermediate.dense"],
    "distilbert": ["q_lin", "v_lin"],
    "xlm-roberta": ["query", "value"],
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The warnings of others are their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def pefts(network: Path, folder: Path, maps: list[str] | str, **settings: Any) -> Any:
    """A classifier of three classes with a random LoRA, saved in `folder`."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(1)
    base = AutoModelForSequenceClassification.from_pretrained(network, num_labels=3, dtype=torch.float32)
    config = peft.LoraConfig(task_type="SEQ_CLS", r=4, lora_alpha=6, lora_dropout=0.1, target_modules=maps, **settings)
    model = peft.get_peft_model(base, config).eval()
    for name, parameter in model.named_parameters():
        if "lora_" in name or "modules_to_save" in name:
            nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    return model


def answers(model: Any, network: Path, texts: list[str]) -> Tensor:
    batch = AutoTokenizer.from_pretrained(network)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        found: Tensor = model(**batch).logits
    return found


def imported(theirs: Path, network: Path, folder: Path, **settings: Any) -> TaskModule:
    backbone = open_backbone(f"hf:{network}", precision="fp32")
    write_imported(folder, read_folder(theirs, backbone), backbone, name="mood", precision="fp32", **settings)
    return TaskModule.load(folder)


@pytest.mark.parametrize("model_type", list(MAPS))
def test_imported_it_answers_as_peft(
    model_type: str, write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network = write_network(model_type)
    model = pefts(network, tmp_path / "theirs", MAPS[model_type])
    found = logits(imported(tmp_path / "theirs", network, tmp_path / "ours"))
    torch.testing.assert_close(found, answers(model, network, texts), atol=1e-5, rtol=1e-5)
    assert found.std() > 0.05
    with model.disable_adapter():
        assert (answers(model, network, texts) - found).abs().max() > 0.01


@pytest.mark.parametrize(
    "settings",
    [
        {"use_rslora": True},
        {"rank_pattern": {"q_lin": 2}},
        {"rank_pattern": {"q_lin": 2}, "use_rslora": True},
        {"layers_to_transform": [1], "layers_pattern": "layer"},
    ],
    ids=str,
)
def test_ranks_scales_and_layers(
    settings: dict[str, Any], write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network = write_network("distilbert")
    model = pefts(network, tmp_path / "theirs", MAPS["distilbert"], **settings)
    found = logits(imported(tmp_path / "theirs", network, tmp_path / "ours"))
    torch.testing.assert_close(found, answers(model, network, texts), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"use_rslora": True}, {"rank_pattern": {"pooler.dense": 2}}], ids=str)
def test_a_lora_on_every_linear_map_is_folded_into_the_pooler(
    settings: dict[str, Any], write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network = write_network("bert")
    model = pefts(network, tmp_path / "theirs", "all-linear", **settings)
    assert any("pooler" in name for name in load_file(tmp_path / "theirs" / "adapter_model.safetensors"))
    found = logits(imported(tmp_path / "theirs", network, tmp_path / "ours"))
    torch.testing.assert_close(found, answers(model, network, texts), atol=1e-5, rtol=1e-5)


def test_without_a_task_type_a_whole_classifier_is_enough(
    write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network, theirs = write_network("bert"), tmp_path / "theirs"
    model = pefts(network, theirs, MAPS["bert"])
    write_json(theirs / "adapter_config.json", read_json(theirs / "adapter_config.json") | {"task_type": None})
    found = logits(imported(theirs, network, tmp_path / "ours"))
    torch.testing.assert_close(found, answers(model, network, texts), atol=1e-5, rtol=1e-5)


def test_the_links_of_the_hubs_cache_are_followed_and_no_others(
    write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network, cache = write_network("bert"), tmp_path / "models--someone--lora"
    model = pefts(network, tmp_path / "theirs", MAPS["bert"])
    snapshot, blobs = cache / "snapshots" / ("a" * 40), cache / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate((tmp_path / "theirs").iterdir()):
        path.rename(blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    found = logits(imported(snapshot, network, tmp_path / "ours"))
    torch.testing.assert_close(found, answers(model, network, texts), atol=1e-5, rtol=1e-5)
    (snapshot / "README.md").unlink(missing_ok=True)
    (snapshot / "README.md").symlink_to(network / "config.json")
    with pytest.raises(StorageError, match="a symbolic link"):
        imported(snapshot, network, tmp_path / "again")


def test_an_archive_of_torchs_is_read_too(
    write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network, theirs = write_network("distilbert"), tmp_path / "theirs"
    model = pefts(network, theirs, MAPS["distilbert"])
    torch.save(load_file(theirs / "adapter_model.safetensors"), theirs / "adapter_model.bin")
    (theirs / "adapter_model.safetensors").unlink()
    found = logits(imported(theirs, network, tmp_path / "ours"))
    torch.testing.assert_close(found, answers(model, network, texts), atol=1e-5, rtol=1e-5)


def test_an_imported_module_says_where_it_comes_from(write_network: WriteNetwork, tmp_path: Path) -> None:
    network = write_network("distilbert")
    pefts(network, tmp_path / "theirs", MAPS["distilbert"])
    module = imported(tmp_path / "theirs", network, tmp_path / "ours", labels=("no", "yes", "perhaps"))
    described = module.description
    assert described["scores"] == {} == described["costs"] and described["run"] is None
    assert described["imported"]["format"] == "peft" and described["imported"]["backbone"] == str(network)
    assert set(described["imported"]["files"]) == {"adapter_config.json", "adapter_model.safetensors"}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in described["imported"]["files"].values())
    assert described["method"]["name"] == "peft_lora" and described["method"]["alpha"] == 6.0
    assert described["trained_parameters"] == 3 * 2 * 2 * 4 * 16 + 17 * 16 + 17 * 3
    assert module.predict(["good"])[0]["label"] in ("no", "yes", "perhaps")
    card = (module.folder / "README.md").read_text()
    assert "scores and costs: unknown" in card and "no, yes, perhaps" in card and "adapter_model.safetensors" in card


def test_labels(write_network: WriteNetwork, tmp_path: Path) -> None:
    network = write_network("distilbert")
    pefts(network, tmp_path / "theirs", MAPS["distilbert"])
    module = imported(tmp_path / "theirs", network, tmp_path / "ours")
    assert module.task.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    for wrong in (("yes", "no"), ("yes", "no", "yes")):
        with pytest.raises(
            ConfigError, match=r"the labels are not one for each class[\s\S]*expected: +3 different ones"
        ):
            imported(tmp_path / "theirs", network, tmp_path / "again", labels=wrong)


def test_one_output_is_no_classifier(write_network: WriteNetwork, tmp_path: Path) -> None:
    network, theirs = write_network("distilbert"), tmp_path / "theirs"
    pefts(network, theirs, MAPS["distilbert"])
    tensors = load_file(theirs / "adapter_model.safetensors")
    for end in ("weight", "bias"):
        tensors[f"base_model.model.classifier.{end}"] = tensors[f"base_model.model.classifier.{end}"][:1].contiguous()
    save_file(tensors, theirs / "adapter_model.safetensors")
    with pytest.raises(ConfigError, match=r"one output predicts a number[\s\S]*--kind regression"):
        imported(theirs, network, tmp_path / "ours")


def test_numbers_that_are_none_are_refused(write_network: WriteNetwork, tmp_path: Path) -> None:
    network, theirs = write_network("distilbert"), tmp_path / "theirs"
    pefts(network, theirs, MAPS["distilbert"])
    path = theirs / "adapter_config.json"
    path.write_text(path.read_text().replace('"lora_alpha": 6', '"lora_alpha": Infinity'))
    with pytest.raises(StorageError, match="Infinity, which is not a JSON number"):
        imported(theirs, network, tmp_path / "ours")


def test_of_pairs(write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]) -> None:
    network = write_network("bert")
    model = pefts(network, tmp_path / "theirs", MAPS["bert"])
    module = imported(tmp_path / "theirs", network, tmp_path / "ours", pair=True)
    assert '`graft predict FOLDER "a text" "another"`' in (module.folder / "README.md").read_text()
    found = logits(module)
    batch = AutoTokenizer.from_pretrained(network)(texts, texts[1:] + texts[:1], padding=True, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(found, model(**batch).logits, atol=1e-5, rtol=1e-5)
    apart = write_network("bert", sentences=True)
    with pytest.raises(ConfigError, match="encodes the two texts of a pair separately"):
        imported(tmp_path / "theirs", apart, tmp_path / "other", pair=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "LOHA"}, "only LoRA can be imported, not LOHA"),
        ({"task_type": "CAUSAL_LM"}, "only classifiers"),
        ({"use_dora": True}, "use_dora True"),
        ({"lora_bias": True}, "lora_bias"),
        ({"bias": "all"}, "bias 'all'"),
        ({"alpha_pattern": {"q_lin": 3}}, "alpha_pattern"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights 'pissa'"),
        ({"use_scaling_of_next_year": True}, "use_scaling_of_next_year True"),
        ({"lora_alpha": None}, "the folder is damaged"),
    ],
    ids=str,
)
def test_what_cannot_be_expressed_is_refused(
    changes: dict[str, Any], message: str, write_network: WriteNetwork, tmp_path: Path
) -> None:
    network, theirs = write_network("distilbert"), tmp_path / "theirs"
    pefts(network, theirs, MAPS["distilbert"])
    write_json(theirs / "adapter_config.json", read_json(theirs / "adapter_config.json") | changes)
    with pytest.raises(GraftworkError, match=message):
        imported(theirs, network, tmp_path / "ours")
    assert not (tmp_path / "ours" / "module.json").exists()


def test_an_odd_config_is_read_or_refused(write_network: WriteNetwork, tmp_path: Path) -> None:
    """Whatever stands in it: never another error than ours."""
    network, theirs = write_network("distilbert"), tmp_path / "theirs"
    pefts(network, theirs, MAPS["distilbert"])
    backbone, path = open_backbone(f"hf:{network}", precision="fp32"), theirs / "adapter_config.json"
    config, refused = read_json(path), 0
    for key in config:
        for odd in (None, {"x": 1}):
            write_json(path, config | {key: odd})
            with suppress(GraftworkError):
                refused -= bool(read_folder(theirs, backbone))
            refused += 1
    assert refused > 10


def drop(tensors: dict[str, Tensor]) -> None:
    del tensors["base_model.model.pre_classifier.weight"]


def unpair(tensors: dict[str, Tensor]) -> None:
    del tensors["base_model.model.distilbert.transformer.layer.0.attention.q_lin.lora_A.weight"]


def narrow(tensors: dict[str, Tensor]) -> None:
    name = "base_model.model.distilbert.transformer.layer.0.attention.q_lin.lora_A.weight"
    tensors[name] = tensors[name][:, :8].contiguous()


def elsewhere(tensors: dict[str, Tensor]) -> None:
    tensors["base_model.model.distilbert.transformer.layer.7.attention.q_lin.lora_A.weight"] = torch.zeros(4, 16)


def more(tensors: dict[str, Tensor]) -> None:
    tensors["base_model.model.distilbert.embeddings.word_embeddings.weight"] = torch.zeros(4, 16)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop, "pre_classifier.weight missing"),
        (unpair, "a matrix A or B"),
        (narrow, "these weights are for another network"),
        (elsewhere, "has no map 'distilbert.transformer.layer.7.attention.q_lin'"),
        (more, "embeddings.word_embeddings.weight"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    spoil: Callable[[dict[str, Tensor]], None], message: str, write_network: WriteNetwork, tmp_path: Path
) -> None:
    network, theirs = write_network("distilbert"), tmp_path / "theirs"
    pefts(network, theirs, MAPS["distilbert"])
    tensors = load_file(theirs / "adapter_model.safetensors")
    spoil(tensors)
    save_file(tensors, theirs / "adapter_model.safetensors")
    with pytest.raises(IncompatibleModule, match=message):
        imported(theirs, network, tmp_path / "ours")


def test_another_network_is_refused(write_network: WriteNetwork, tmp_path: Path) -> None:
    pefts(write_network("distilbert"), tmp_path / "theirs", MAPS["distilbert"])
    with pytest.raises(IncompatibleModule, match="has no map"):
        imported(tmp_path / "theirs", write_network("bert"), tmp_path / "ours")
    with pytest.raises(IncompatibleModule, match=r"has no layer|another network"):
        imported(tmp_path / "theirs", write_network("distilbert", dim=8, n_heads=2), tmp_path / "ours")


def test_no_folder_of_theirs(write_network: WriteNetwork, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="not a folder that peft or adapters saved"):
        imported(tmp_path, write_network("bert"), tmp_path / "ours")
    write_json(tmp_path / "adapter_config.json", {"a": 1})
    with pytest.raises(IncompatibleModule, match="not written by peft or adapters"):
        imported(tmp_path, write_network("bert"), tmp_path / "ours")


def run_readme(folder: Path, texts: list[str], network: Path) -> Tensor:
    """The logits that the Python in the README computes."""
    code = re.findall(r"^```python\n(.*?)^```", (folder / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {
        "FOLDER": str(folder),
        "BASE": str(network),
        "TEXTS": texts,
        "OTHERS": texts[1:] + texts[:1],
    }
    exec(compile(code[0], "README.md", "exec"), names)
    found: Tensor = names["logits"]
    return found


@pytest.mark.parametrize("model_type", ["bert", "distilbert", "mpnet", "t5", "llama"])
def test_exported_lora_gives_our_logits_in_peft(
    model_type: str,
    write_network: WriteNetwork,
    make_module: MakeModule,
    tmp_path: Path,
    logits: Logits,
    texts: list[str],
) -> None:
    network = write_network(model_type)
    module = make_module("lora:rank=3", network)
    write_folder(module, tmp_path / "out", "peft")
    torch.testing.assert_close(run_readme(tmp_path / "out", texts, network), logits(module), atol=1e-5, rtol=1e-5)
    config = read_json(tmp_path / "out" / "adapter_config.json")
    leaves = {"bert": ["query", "value"], "distilbert": ["q_lin", "v_lin"], "mpnet": ["q", "v"], "t5": ["q", "v"],
              "llama": ["q_proj", "v_proj"]}  # fmt: skip
    assert config["target_modules"] == leaves[model_type] and config["base_model_name_or_path"] == str(network)
    assert json.loads((tmp_path / "out" / "labels.json").read_text()) == ["no", "yes", "perhaps"]
    assert not list((tmp_path / "out").glob("*.bin"))


def test_of_a_decoder_whose_tokenizer_puts_nothing_between_two_texts(
    write_network: WriteNetwork, make_module: MakeModule, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network = shutil.copytree(write_network("llama"), tmp_path / "network")
    tokenizer = json.loads((network / "tokenizer.json").read_text())
    (network / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": None}))
    module = make_module("lora", network, pair=True)
    write_folder(module, tmp_path / "out", "peft")
    torch.testing.assert_close(run_readme(tmp_path / "out", texts, network), logits(module), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pair", [False, True])
def test_of_sentence_encoders(
    pair: bool, write_network: WriteNetwork, make_module: MakeModule, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network = write_network("bert", sentences=True)
    module = make_module("lora", network, pair=pair)
    write_folder(module, tmp_path / "out", "peft")
    torch.testing.assert_close(run_readme(tmp_path / "out", texts, network), logits(module), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "shift", "told"), [("multilabel", [0.5, -1.0, 0.0], "logits"), ("regression", None, "logit * 2.0 + 3.0")]
)
def test_other_kinds(
    kind: str,
    shift: list[float] | None,
    told: str,
    write_network: WriteNetwork,
    make_module: MakeModule,
    tmp_path: Path,
    logits: Logits,
    texts: list[str],
) -> None:
    network = write_network("bert")
    module = make_module("lora", network, kind=kind, shift=shift)
    write_folder(module, tmp_path / "out", "peft")
    torch.testing.assert_close(run_readme(tmp_path / "out", texts, network), logits(module), atol=1e-5, rtol=1e-5)
    assert told in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("model_type", ["bert", "roberta", "distilbert"])
def test_an_imported_task_goes_back(
    model_type: str, write_network: WriteNetwork, tmp_path: Path, logits: Logits, texts: list[str]
) -> None:
    network = write_network(model_type)
    model = pefts(network, tmp_path / "theirs", MAPS[model_type])
    module = imported(tmp_path / "theirs", network, tmp_path / "ours")
    write_folder(module, tmp_path / "back", "peft")
    expected = answers(model, network, texts)
    torch.testing.assert_close(run_readme(tmp_path / "back", texts, network), expected, atol=1e-5, rtol=1e-5)
    again = imported(tmp_path / "back", network, tmp_path / "again")
    assert torch.equal(logits(again), logits(module))


def test_what_peft_cannot_hold_is_refused(write_network: WriteNetwork, make_module: MakeModule, tmp_path: Path) -> None:
    network = write_network("bert")
    with pytest.raises(ConfigError, match="a task trained with adapter can't be exported"):
        write_folder(make_module("adapter", network), tmp_path / "out", "peft")
    with pytest.raises(ConfigError, match="the head of a tagging task can't be exported"):
        write_folder(make_module("lora", network, kind="tagging"), tmp_path / "tags", "peft")
    assert not (tmp_path / "out").exists() and not (tmp_path / "tags").exists()
    with pytest.raises(ConfigError, match="another activation"):
        write_folder(make_module("peft_lora:maps=mlp.up:head=relu", network), tmp_path / "other", "peft")
    with pytest.raises(StorageError, match="not empty"):
        write_folder(make_module("lora", network), tmp_path, "peft")
    with pytest.raises(ConfigError, match="unknown format"):
        write_folder(make_module("lora", network), tmp_path / "x", "onnx")


@pytest.mark.parametrize(("format", "method"), [("peft", "lora"), ("adapters", "adapter:placement=pfeiffer")])
def test_what_reads_no_texts_is_not_exported(
    format: str,
    method: str,
    write_network: WriteNetwork,
    make_module: MakeModule,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = make_module(method, write_network("bert"))
    assert module.backbone is not None
    monkeypatch.setattr(module.backbone, "card", replace(module.backbone.card, modality="image"))
    with pytest.raises(ConfigError, match=r"a task on images can't be exported[\s\S]*a task on texts"):
        write_folder(module, tmp_path / "out", format)
    assert not (tmp_path / "out").exists()


@pytest.mark.real
def test_a_lora_off_the_hub(
    shared: Path,
    write_network: WriteNetwork,
    tmp_path: Path,
    logits: Logits,
    texts: list[str],
    rounds_alike: RoundsAlike,
) -> None:
    network = write_network("distilbert", dim=768, n_layers=6, n_heads=12, hidden_dim=64)
    peft = pytest.importorskip("peft")
    theirs = shared / "fixtures" / "adapters" / "peft_lora_distilbert_imdb"
    base = AutoModelForSequenceClassification.from_pretrained(network, num_labels=2, dtype=torch.float32)
    expected = answers(peft.PeftModel.from_pretrained(base, theirs).eval(), network, texts)
    module = imported(theirs, network, tmp_path / "ours", labels=("negative", "positive"))
    exact = answers(peft.PeftModel.from_pretrained(base, theirs).double().eval(), network, texts)
    rounds_alike(logits(module), expected, exact)
    assert module.description["imported"]["backbone"] == "distilbert-base-uncased"
