"""GGUF files: the network and tokenizer in one, and what a header may say."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import LlamaConfig, LlamaForCausalLM

from graftwork.core.example import Example
from graftwork.errors import StorageError
from graftwork.io.extras import MissingExtra
from graftwork.pretrained.gguf_file import MAGIC
from graftwork.pretrained.model_folder import locate
from graftwork.pretrained.open_backbone import open_backbone

TOKENS = ["<s>", "</s>", "<unk>", *map(chr, range(33, 127)), "Ġ", "th", "Ġth"]
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
OUTSIDE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
HEADS, KEY_HEADS, SHAPE = 4, 2, {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
EXAMPLES = [Example("1", {"text": "the film"}), Example("2", {"text": "so"})]


def network() -> LlamaForCausalLM:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LlamaForCausalLM(LlamaConfig(
            **SHAPE, vocab_size=len(TOKENS), num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS,
            max_position_embeddings=64, initializer_range=0.2, bos_token_id=0, eos_token_id=1,
        )).eval()  # fmt: skip


def in_turn(weight: NDArray[Any], heads: int) -> NDArray[Any]:
    """As llama.cpp keeps rotary maps: the two halves of a head in turn."""
    return weight.reshape(heads, 2, len(weight) // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path: Path, architecture: str = "llama") -> Path:
    """What llama.cpp's converter makes of `network`."""
    writer = pytest.importorskip("gguf").GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(SHAPE["hidden_size"])
    writer.add_block_count(SHAPE["num_hidden_layers"])
    writer.add_feed_forward_length(SHAPE["intermediate_size"])
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3] + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(["t h", "Ġ th"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    for name, tensor in network().state_dict().items():
        part, weight = name.removesuffix(".weight"), tensor.numpy()
        if part not in OUTSIDE:
            block, part = part.removeprefix("model.layers.").split(".", 1)
            heads = {"self_attn.q_proj": HEADS, "self_attn.k_proj": KEY_HEADS}.get(part)
            weight = in_turn(weight, heads) if heads else weight
        called = OUTSIDE.get(part) or f"blk.{block}.{NAMES[part]}"
        writer.add_tensor(f"{called}.weight", np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAFTWORK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gguf"


def test_a_file_and_a_folder_with_nothing_else_are_the_network_in_it(tmp_path: Path, own_cache: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    named, lone = (open_backbone(f"hf:{source}", precision="fp32") for source in (path, tmp_path))
    inputs = named.collate(named.encode(EXAMPLES), [0, 1])
    assert inputs["input_ids"].tolist()[0][0] == TOKENS.index("th")
    with torch.no_grad():
        theirs = network().model(**inputs, output_hidden_states=True).hidden_states
    real = inputs["attention_mask"].bool()
    for ours, own in zip(named.states(inputs), theirs, strict=True):
        torch.testing.assert_close(ours[real], own[real], atol=1e-6, rtol=1e-6)
    assert named.card.id == f"hf:{path}" and named.card.revision == lone.card.revision
    assert [one.name for one in own_cache.iterdir()] == [locate(str(path)).name]  # unpacked once, nothing left over


def test_an_architecture_that_is_not_known_is_told(tmp_path: Path, own_cache: Path) -> None:
    with pytest.raises(StorageError, match=r"can't open this file: .*llamp"):
        locate(str(write_gguf(tmp_path / "tiny.gguf", "llamp")))
    assert [*own_cache.iterdir()] == []


def header(*, version: int = 3, tensors: int = 0, entries: int = 0, rest: bytes = b"") -> bytes:
    return MAGIC + struct.pack("<IQQ", version, tensors, entries) + rest


def text(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


MANY = 1 << 60
BAD = {
    "it does not begin": [b"GGUX", header(version=1), b""],
    "where 65,536 is most": [header(tensors=MANY)],
    "where 4,096 is most": [header(entries=MANY)],
    "where 16,777,216 is most": [header(entries=1, rest=struct.pack("<Q", MANY))],
    "where 2,000,000 is most": [header(entries=1, rest=text(b"a") + struct.pack("<IIQ", 9, 0, MANY))],
    "it ends inside": [header(entries=1), header(entries=1, rest=text(b"a") + struct.pack("<IIQ", 9, 8, 10))],
    "an entry of the unknown type": [header(entries=1, rest=text(b"a") + struct.pack("<IIQ", 9, 9, 1))],
    "where 4 is most": [header(tensors=1, rest=text(b"a") + struct.pack("<I", 5))],
    "larger than the file": [header(tensors=1, rest=text(b"a") + struct.pack("<IQQIQ", 2, 90, 90, 0, 0))],
}


@pytest.mark.parametrize("rule", BAD)
def test_a_header_beyond_the_limits_is_refused_before_a_library_reads_it(rule: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    for content in BAD[rule]:
        path.write_bytes(content)
        with pytest.raises(StorageError, match=f"not a whole GGUF file: .*{rule}"):
            locate(str(path))


def test_without_its_library_a_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    (tmp_path / "a.gguf").write_bytes(header())
    with pytest.raises(MissingExtra, match=r'a GGUF file needs gguf[\s\S]*pip install "graftwork\[gguf\]"'):
        locate(str(tmp_path))


def test_several_files_are_told_apart_by_their_names(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(StorageError, match=r"several GGUF files[\s\S]*a.gguf, b.gguf[\s\S]*name one: .*a.gguf"):
        locate(str(tmp_path))
