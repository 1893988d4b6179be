"""Decoders as the hub has them: their folders, tokenizers and configurations, and what methods make of them."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    FalconConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GPTNeoXConfig,
    LlamaConfig,
    OlmoConfig,
    OPTConfig,
    Phi3Config,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.core.example import Example
from graftwork.core.model import Model
from graftwork.errors import IncompatibleModule
from graftwork.methods.bitfit import BitFit
from graftwork.pretrained.network_config import configuration
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import check_method, tiny_dataset

TOKENIZER = tiny_tokenizer()
SHAPE: dict[str, Any] = {
    "vocab_size": TOKENIZER.get_vocab_size(), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 32, "max_position_embeddings": 64, "initializer_range": 0.2, "bos_token_id": 2,
    "eos_token_id": 3, "pad_token_id": None,
}  # fmt: skip
GROUPED = SHAPE | {"num_key_value_heads": 2, "head_dim": 8}
LLAMA = LlamaConfig(**GROUPED)
CONFIGS: dict[str, PreTrainedConfig] = {
    "llama": LLAMA,
    "phi3": Phi3Config(**GROUPED),
    "gemma2": Gemma2Config(**GROUPED, sliding_window=4),
    "qwen3": Qwen3Config(**GROUPED),
    "olmo": OlmoConfig(**GROUPED),
    "opt": OPTConfig(**SHAPE, ffn_dim=32, word_embed_proj_dim=8, init_std=0.2),
    "gpt_neox": GPTNeoXConfig(**SHAPE),
    "falcon": FalconConfig(**SHAPE, alibi=True),
}
TEXTS = ["the film was so good", "sad", "it was a warm film is it so fine or cold", ""]
EXAMPLES = [Example(f"train/{i}", {"text": text}) for i, text in enumerate(TEXTS)]


def save_decoder(folder: Path, config: PreTrainedConfig = LLAMA, begin: bool = False, **saved: Any) -> Path:
    """A language model as save_pretrained writes it; its tokenizer has no token for padding, and adds none but BOS."""
    tokenizer = tiny_tokenizer()
    tokenizer.post_processor = None  # type: ignore[assignment]
    names = {"unk_token": "[UNK]", "bos_token": "[CLS]", "eos_token": "[SEP]"}
    outer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names, add_bos_token=begin)
    outer.chat_template = "{{ messages }}"
    outer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = AutoModelForCausalLM.from_config(config)
    network.save_pretrained(folder, **saved)
    return folder


def opened(folder: Path, precision: str = "fp32") -> TransformerBackbone:
    """Opened by its name."""
    backbone = open_backbone(f"hf:{folder}", precision=precision)
    assert isinstance(backbone, TransformerBackbone)
    return backbone


def pooled_of(backbone: TransformerBackbone) -> torch.Tensor:
    return backbone.features(backbone.collate(backbone.encode(EXAMPLES), range(len(EXAMPLES)))).pooled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama, which no test changes."""
    return save_decoder(tmp_path_factory.mktemp("llama"))


def test_without_a_padding_token_the_last_real_token_is_read(folder: Path) -> None:
    backbone = opened(folder)
    inputs = backbone.collate(backbone.encode(EXAMPLES), range(4))
    assert inputs["input_ids"][1, -1] == backbone.pad_id == 3 and not inputs["attention_mask"][1, -1]
    theirs = AutoModel.from_pretrained(folder).eval()
    for row, text in enumerate(TEXTS[:3]):
        ids = PreTrainedTokenizerFast.from_pretrained(folder)(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            alone = theirs(input_ids=ids).last_hidden_state[0, -1]
        torch.testing.assert_close(pooled_of(backbone)[row], alone, atol=1e-5, rtol=0)


def test_the_token_of_the_beginning_is_added_where_the_tokenizer_adds_it(tmp_path: Path, folder: Path) -> None:
    plain, begun = opened(folder), opened(save_decoder(tmp_path, begin=True))
    pair = [Example("train/1", {"text_a": "so", "text_b": "is"})]
    ours = begun.encode(EXAMPLES).ids
    assert ours == [[2, *ids] for ids in plain.encode(EXAMPLES[:3]).ids] + [[2]]
    theirs = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert ours == theirs(TEXTS)["input_ids"] and begun.encode(pair).ids == [theirs("so", "is")["input_ids"]]
    (so,), (a,) = (plain.encode([Example("1", {"text": word})]).ids for word in ("so", "is"))
    assert plain.encode(pair).ids == [[*so, 3, *a]]


def test_parts_of_the_weights_and_a_head_of_their_own_make_no_difference(tmp_path: Path, folder: Path) -> None:
    whole = opened(folder)
    assert "lm_head.weight" in load_file(folder / "model.safetensors")
    sharded = save_decoder(tmp_path / "sharded", max_shard_size="20KB")
    assert len([*sharded.glob("model-0*.safetensors")]) > 1
    tied = save_decoder(tmp_path / "tied", LlamaConfig(**GROUPED, tie_word_embeddings=True))
    for other in map(opened, (sharded, tied)):
        assert torch.equal(pooled_of(other), pooled_of(whole)) and other.card.parameters == whole.card.parameters


def test_rotary_frequencies_stay_exact_in_bf16_and_weights_may_be_stored_in_fp16(tmp_path: Path, folder: Path) -> None:
    exact, rough = opened(folder), opened(folder, "bf16")
    assert rough.module.rotary_emb.inv_freq.dtype == torch.float32  # type: ignore[union-attr]
    assert torch.equal(rough.module.rotary_emb.inv_freq, exact.module.rotary_emb.inv_freq)  # type: ignore[union-attr, arg-type]
    stored = load_file(save_decoder(tmp_path) / "model.safetensors")
    save_file({name: one.half() for name, one in stored.items()}, tmp_path / "model.safetensors", {"format": "pt"})
    half = opened(tmp_path)
    assert next(half.module.parameters()).dtype == torch.float32
    torch.testing.assert_close(pooled_of(half), pooled_of(exact), atol=1e-2, rtol=0)


def test_an_infinite_number_that_is_no_weight_is_passed_over(tmp_path: Path) -> None:
    before = pooled_of(opened(save_decoder(tmp_path, CONFIGS["gpt_neox"])))
    stored = load_file(tmp_path / "model.safetensors")
    infinite = {"gpt_neox.layers.0.attention.masked_bias": torch.tensor(-1e9).half()}
    save_file(stored | infinite, tmp_path / "model.safetensors", {"format": "pt"})
    assert torch.equal(pooled_of(opened(tmp_path)), before)


def test_a_network_that_is_nothing_but_a_decoder_is_not_whole_without_it(tmp_path: Path) -> None:
    stored = load_file(save_decoder(tmp_path, CONFIGS["opt"]) / "model.safetensors")
    save_file({"model.decoder.embed_tokens.weight": stored["model.decoder.embed_tokens.weight"]},
              tmp_path / "model.safetensors", {"format": "pt"})  # fmt: skip
    with pytest.raises(IncompatibleModule, match="not whole"):
        opened(tmp_path)


OLD = {  # entries of published configurations, by names that transformers took before
    "gpt_neox": (
        GPTNeoXConfig, {"rotary_pct": 0.5, "rotary_emb_base": 500},
        {"rope_theta": 500, "partial_rotary_factor": 0.5, "rope_type": "default"},
    ),
    "llama": (
        LlamaConfig, {"rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"rope_theta": 5e5, "rope_type": "linear", "factor": 2.0},
    ),
    "mistral": (LlamaConfig, {"rope_theta": 1e9}, {"rope_theta": 1e9, "rope_type": "default"}),
    "gemma3_text": (
        Gemma3TextConfig, {"rope_theta": 1e6, "rope_local_base_freq": 2e4, "sliding_window_pattern": 2},
        {"full_attention": {"rope_theta": 1e6, "rope_type": "default"},
         "sliding_attention": {"rope_theta": 2e4, "rope_type": "default"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_positions_turn_as_older_configurations_say(name: str, tmp_path: Path) -> None:
    make, stated, expected = OLD[name]
    content = make(**SHAPE).to_dict()
    content = {key: value for key, value in content.items() if key not in ("rope_parameters", "layer_types")}
    (tmp_path / "config.json").write_text(json.dumps(content | stated))
    found = configuration(tmp_path)
    assert found.rope_parameters == expected
    if name == "gemma3_text":
        assert found.layer_types == ["sliding_attention", "full_attention"]


def test_logits_from_kept_states_are_those_of_the_whole_run(folder: Path) -> None:
    task = tiny_dataset().task
    model = Model(opened(folder), kinds.get(task.kind), task, towers=1).eval()
    model.own_blocks(1)
    inputs = model.backbone.collate(model.backbone.encode(EXAMPLES), range(4))
    with torch.no_grad():
        entering = model.backbone.states(inputs)[1] * inputs["attention_mask"][:, :, None]
        assert torch.equal(model(inputs, entering), model(inputs))


@pytest.mark.real
def test_a_real_decoder_has_transformers_states() -> None:
    """SmolLM2: 30 blocks, 9 heads of queries and 3 of keys, stored in fp16 after a GGUF file."""
    folder = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache/graftwork-fixtures/smollm2-135m"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not made")
    exact, rough = opened(folder), opened(folder, "bf16")
    inputs = exact.collate(exact.encode(EXAMPLES[:3]), range(3))
    with torch.no_grad():
        theirs = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()(**inputs, output_hidden_states=True)
    real = inputs["attention_mask"].bool()
    for ours, own in zip(exact.states(inputs), theirs.hidden_states, strict=True):
        assert (ours[real] - own[real]).abs().max() < 1e-5 * own[real].abs().max()
    assert torch.nn.functional.cosine_similarity(pooled_of(exact)[:3], pooled_of(rough)[:3]).min() > 0.999


METHODS = ("lora", "ia3", "prefix", "bitfit", "adapter", "top_layers", "full", "linear_probe")
LACKS = {("falcon", "prefix"): "have no attention that takes a prefix"}
UNBIASED = ("llama", "phi3", "gemma2", "qwen3", "olmo")


@pytest.mark.parametrize(
    ("family", "method"),
    [
        pytest.param(family, method, marks=pytest.mark.slow if (family, method) != ("phi3", "prefix") else ())
        for family in CONFIGS
        for method in METHODS
    ],
)
def test_methods(family: str, method: str, tmp_path: Path) -> None:
    folder = save_decoder(tmp_path, CONFIGS[family])
    settings = {"top_layers": {"k": 1}, "adapter": {"size": 4}, "prefix": {"length": 2}}.get(method, {})
    if method == "bitfit" and family in UNBIASED:
        assert "no biases" in BitFit().unfit(tiny_dataset().task, opened(folder).card)
        return
    if (family, method) in LACKS:
        with pytest.raises(AssertionError, match=LACKS[family, method]):
            check_method(method, settings, backbone=f"hf:{folder}", of_kinds=("classification",))
        return
    check_method(method, settings, backbone=f"hf:{folder}", of_kinds=("classification",))
