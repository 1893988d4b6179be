"""A model's folder from elsewhere: what names code, files elsewhere or absurd sizes is refused before it is opened."""

from __future__ import annotations

import json
import shutil
import site
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from transformers import BertConfig, BertModel

from graftwork.backbones.tiny_text import ARCHITECTURE, tiny_tokenizer
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError
from graftwork.io.files import safe_load, write_tensors
from graftwork.pretrained.download_policy import kept_only
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_folder import WEIGHTS, hub_revision, locate
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.tokenizer_file import read_tokenizer
from graftwork.pretrained.transformer import TransformerBackbone

Change = Callable[[dict[str, Any]], Any]
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny BERT as transformers keeps one."""
    folder, tokenizer = tmp_path / "network", tiny_tokenizer()
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), **ARCHITECTURE)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        write_tensors_in(folder, BertModel(config).state_dict())
    (folder / "config.json").write_text(json.dumps(config.to_diff_dict()))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    return folder


def write_tensors_in(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    folder.mkdir(exist_ok=True)
    write_tensors(folder / WEIGHTS, tensors)


def edit(path: Path, change: Change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def opened(folder: Path, fresh: str = "") -> TransformerBackbone:
    backbone = open_backbone(f"{fresh}hf:{folder}", precision="fp32")
    assert isinstance(backbone, TransformerBackbone)
    return backbone


def weights_of(backbone: TransformerBackbone) -> torch.Tensor:
    return torch.cat([parameter.flatten() for parameter in backbone.module.parameters()])


def test_what_is_sound_is_opened(folder: Path) -> None:
    assert opened(folder).card.width == 32


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auto_map", {"AutoModel": "evil.Model"}), ("trust_remote_code", True), ("custom_pipelines", {"x": {}}),
        ("quantization_config", {"quant_method": "bitsandbytes"}), ("_attn_implementation_internal", "evil/kernel"),
        ("experts_implementation", "evil/kernel"), ("transformers_weights", "../x.safetensors"),
        ("fusion_config", {"x": True}), ("kernel_config", {"x": "y"}), ("gguf_file", "x"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_what_names_code_is_refused(folder: Path, name: str, key: str, value: Any) -> None:
    edit(folder / name, lambda content: content.update({key: value}))
    with pytest.raises(StorageError, match=rf"{name}: '{key}' asks for code[\s\S]*do: +remove '{key}'"):
        opened(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [("attn_implementation", "evil/kernel"), ("_attn_implementation", 1), ("_attn_implementation_autoset", "evil"),
     ("torch_dtype", "load"), ("dtype", "hub"), ("dtype", 32),
     ("position_embedding_type", "relative_key")],
)  # fmt: skip
def test_words_that_are_not_known_are_refused(folder: Path, key: str, value: Any) -> None:
    edit(folder / "config.json", lambda content: content.update({key: value}))
    with pytest.raises(StorageError, match=rf"'{key}' is none of the known words[\s\S]*got: [\s\S]*expected: +one of"):
        opened(folder)


def test_a_network_saved_from_a_gguf_file_has_plain_weights(folder: Path) -> None:
    before, stated = opened(folder), {"quant_method": "gguf", "gguf_file": "evil.gguf", "dequantize": False}
    edit(folder / "config.json", lambda content: content.update(quantization_config=stated))
    after = opened(folder)
    assert torch.equal(weights_of(before), weights_of(after))
    assert getattr(after.module.config, "quantization_config", None) is None


def test_what_others_save_is_no_harm(folder: Path) -> None:
    before = opened(folder)
    usual = {"_attn_implementation_autoset": True, "torch_dtype": "float16", "auto_map": None, "use_bfloat16": True,
             "quantization_config": {}, "to_dict": "evil", "pruned_heads": {}, "return_dict": False,
             "_attn_implementation": "sdpa", "task_specific_params": {"a": 1},
             "_name_or_path": "somewhere/x"}  # fmt: skip
    edit(folder / "config.json", lambda content: content.update(usual))
    after = opened(folder)
    assert torch.equal(weights_of(before), weights_of(after)) and weights_of(after).dtype == torch.float32
    assert callable(after.module.config.to_dict)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"hidden_size": 10**9}, "hidden_size is larger than any network has"),
        ({"hidden_size": 10**400}, "hidden_size is larger"),
        ({"vocab_size": -(10**9)}, "vocab_size is larger"),
        ({"num_hidden_layers": 10**7}, "the number of layers is larger"),
        ({"initializer_range": 1e300}, "initializer_range is larger"),
        ({"hidden_act": "a" * 2000}, "a text of 2,000 characters"),
        ({"architectures": ["a"] * 2000}, "a list of 2,000"),
        pytest.param({"num_hidden_layers": 1000}, "far larger than its weights are", marks=pytest.mark.slow),
        ({"vocab_size": 10**6, "hidden_size": 4096}, "far larger than its weights are"),
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_built(folder: Path, changes: dict[str, Any], rule: str) -> None:
    if "num_hidden_layers" in changes and changes["num_hidden_layers"] == 1000:
        changes = changes | {"hidden_size": 512, "intermediate_size": 4096}
    edit(folder / "config.json", lambda content: content.update(changes))
    with pytest.raises(StorageError, match=rule):
        opened(folder)


def test_a_network_is_not_drawn_where_no_memory_holds_it(folder: Path) -> None:
    edit(folder / "config.json", lambda content: content.update(hidden_size=32_000, intermediate_size=640_000))
    with pytest.raises(StorageError, match="far larger than can be drawn here"):
        opened(folder, "random:")


def test_of_the_folder_only_tensors_reach_the_library(folder: Path) -> None:
    """An adapter_config.json, code and generation settings beside the weights are not read."""
    before = weights_of(opened(folder))
    for name in ("adapter_config.json", "generation_config.json", "processor_config.json", "chat_template.json"):
        (folder / name).write_text("{torn")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04evil")
    assert torch.equal(before, weights_of(opened(folder)))


@pytest.mark.parametrize("name", ["../x.safetensors", "/x.safetensors", "a/../../x.safetensors", "..\\x.safetensors"])
def test_an_index_that_points_elsewhere_is_refused(folder: Path, name: str) -> None:
    shutil.move(folder / WEIGHTS, folder.parent / "x.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(StorageError, match=r"index\.json: a file name that points outside its folder"):
        opened(folder)


@pytest.mark.parametrize("content", [{}, [], {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": "x.bin"}}])
def test_an_index_of_something_else_is_refused(folder: Path, content: Any) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))
    with pytest.raises(StorageError, match="not an index of weights"):
        opened(folder)


def test_weights_in_parts_are_put_together(folder: Path) -> None:
    before = weights_of(opened(folder))
    stored = safe_load(folder / WEIGHTS, mapped=False)
    (folder / WEIGHTS).unlink()
    names = sorted(stored)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, listed in parts.items():
        write_tensors(folder / file, {name: stored[name] for name in listed})
    mapped = {name: file for file, listed in parts.items() for name in listed}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": mapped}))
    assert torch.equal(before, weights_of(opened(folder)))
    write_tensors(folder / "b.safetensors", {name: stored[name] for name in names})
    with pytest.raises(StorageError, match="is in two files"):
        opened(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS])
def test_links_are_refused(folder: Path, name: str) -> None:
    shutil.move(folder / name, folder.parent / "elsewhere")
    (folder / name).symlink_to(folder.parent / "elsewhere")
    with pytest.raises(StorageError, match=rf"{name}: a symbolic link"):
        opened(folder)


def test_the_links_of_a_package_manager_are_followed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "package" / "model"
    package.mkdir(parents=True)
    for path in folder.iterdir():
        (package / path.name).symlink_to(path)
    with pytest.raises(StorageError, match="a symbolic link"):
        opened(package)
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path / "site-packages")])
    assert opened(package).card.revision == opened(folder).card.revision
    with pytest.raises(StorageError, match="outside its folder"):
        model_file(package, "../../../secret")


def test_the_links_of_the_hubs_cache_are_followed(folder: Path, tmp_path: Path) -> None:
    repository = tmp_path / "models--a--b"
    snapshot = repository / "snapshots" / SHA
    shutil.copytree(folder, repository / "blobs")
    snapshot.mkdir(parents=True)
    for path in (repository / "blobs").iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert torch.equal(weights_of(opened(snapshot)), weights_of(opened(folder)))
    assert hub_revision(snapshot) == SHA and hub_revision(folder) is None
    (snapshot / WEIGHTS).unlink()
    (snapshot / WEIGHTS).symlink_to(folder / WEIGHTS)  # no blob
    with pytest.raises(StorageError, match="a symbolic link"):
        model_file(snapshot, WEIGHTS)


def test_pooling_is_stated_inside_the_folder(folder: Path) -> None:
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Pooling", "path": "../../elsewhere"}]))
    with pytest.raises(StorageError, match=r"modules\.json: a file name that points outside"):
        opened(folder)


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_weights_that_are_no_numbers_are_refused(folder: Path, number: float) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-4:] = torch.tensor([number]).numpy().tobytes()
    (folder / WEIGHTS).write_bytes(bytes(content))
    with pytest.raises(IncompatibleModule, match="NaN or infinity"):
        opened(folder)


@pytest.mark.parametrize("name", ["evil.Tokenizer", "os", "evil--repo/x.Tokenizer", "EvilTokenizer", 1])
def test_classes_that_transformers_has_not_are_refused(folder: Path, name: Any) -> None:
    edit(folder / "tokenizer_config.json", lambda content: content.update(tokenizer_class=name))
    with pytest.raises(StorageError, match="tokenizer_class names a class that is not one of transformers' own"):
        opened(folder)


@pytest.mark.parametrize(
    "name", ["BertTokenizerFast", "ElectraTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"]
)
def test_classes_that_it_has_or_had_are_not(folder: Path, name: str) -> None:
    edit(folder / "tokenizer_config.json", lambda content: content.update(tokenizer_class=name))
    assert opened(folder).card.width == 32


def test_a_tokenizer_reads_no_other_file(folder: Path) -> None:
    others = {"tokenizer_file": "/etc/passwd", "vocab_file": "../x", "name_or_path": "../x", "cache_dir": "/root"}
    edit(folder / "tokenizer_config.json", lambda content: content.update(others))
    assert opened(folder).card.width == 32


def replaced(content: str, times: int) -> Change:
    part = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    return lambda told: told.update(normalizer={"type": "Sequence", "normalizers": [part] * times})


def template(single: list[Any], ids: int = 1) -> Change:
    special = {"[CLS]": {"id": "[CLS]", "ids": [2] * ids, "tokens": ["[CLS]"] * ids}}
    made = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": special}
    return lambda told: told.update(post_processor=made)


def split(pattern: str) -> Change:
    made = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return lambda told: told.update(pre_tokenizer=made)


SEQUENCE = {"Sequence": {"id": "A", "type_id": 0}}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (replaced("aa", 7), "times as long"), (replaced("a" * 65, 1), "times as long"), (replaced("a", 65), "68 parts"),
        (template([SEQUENCE] * 2), "repeats a text"), (template([SEQUENCE] * 65), "more than 64"),
        (template([SEQUENCE], 65), "becomes more than 64 ids"),
        (split("(a+)+$"), "repeats what repeats"), (split("a" * 4001), "4,001 characters"),
        (lambda told: told.update(normalizer={"type": "Evil"}), "unknown type 'Evil'"),
        (lambda told: told.update(decoder=["x"]), "does not say its type"),
        (lambda told: told["model"].update(type="Evil"), "unknown model"),
        (lambda told: told["model"].update(vocab={"a": 1 << 40}), "id is not between"),
        (lambda told: told["model"].update(vocab={"a": "b"}), "id is no number"),
        (lambda told: told["model"].update(vocab={"a" * 10_001: 1}), "a token of more than"),
        (lambda told: told["model"].update(max_input_chars_per_word=10**9), "max_input_chars_per_word is"),
        (lambda told: told.update(added_tokens=[{}] * 100_001), "added tokens"),
        (lambda told: told.pop("model"), "it has no model"),
    ],
)  # fmt: skip
def test_tokenizers_that_break_a_rule_are_refused(folder: Path, change: Change, rule: str) -> None:
    edit(folder / "tokenizer.json", change)
    with pytest.raises(StorageError, match=rf"tokenizer\.json: no tokenizer can be read: [\s\S]*{rule}"):
        opened(folder)
    with pytest.raises(StorageError, match=rule):
        read_tokenizer(folder / "tokenizer.json")


@pytest.mark.parametrize(
    "pattern",
    [r"\w+(?:['’]\w+)*|[^\w\s]", r"'s|'t| ?\p{L}+| ?\p{N}+|\s+(?!\S)|\s+", r"\d+(?:[.,]\d+)*", r"[(+*]+|\(\w+\)"],
)
def test_usual_patterns_are_not(folder: Path, pattern: str) -> None:
    edit(folder / "tokenizer.json", split(pattern))
    assert read_tokenizer(folder / "tokenizer.json").get_vocab_size() > 100


def test_a_panic_of_the_tokenizer_library_is_a_message(folder: Path) -> None:
    broken = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    edit(folder / "tokenizer.json", lambda told: told.update(normalizer=broken))
    with pytest.raises(GraftworkError, match=r"tokenizer|open this folder"):
        opened(folder)
    with pytest.raises(StorageError, match="no tokenizer can be read"):
        read_tokenizer(folder / "tokenizer.json")


def test_a_name_in_a_file_starts_no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def fetch(name: str, *, local_files_only: bool = False, **rest: Any) -> str:
        asked.append(local_files_only)
        raise OSError("not here")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    with (
        kept_only(),
        pytest.raises(StorageError, match=r"a file that names one starts no download[\s\S]*hf download a/b"),
    ):
        locate("a/b")
    assert asked == [True]
    with pytest.raises(StorageError, match="neither a folder here nor a model"):
        locate("a/b")  # a person asked
    with kept_only("hf:a/b"), pytest.raises(StorageError, match="neither a folder here nor a model"):
        locate("a/b")
    assert asked == [True, True, False, True, False]


def test_a_model_type_that_is_none_is_refused(folder: Path) -> None:
    edit(folder / "config.json", lambda content: content.update(model_type=["bert"]))
    with pytest.raises(ConfigError, match="does not say its model_type"):
        opened(folder)
