"""Left-to-right language models from any transformers folder or hub name, pooled at the last token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graftwork.pretrained.layout import LLAMA_ROLES, Layout
from graftwork.pretrained.load_folder import TransformerFamily
from graftwork.registry import backbones

LONGEST = 2048  # tokens: these networks state up to 131,072, and the memory of attention grows with the square

GPT2 = Layout(
    "h.*",
    "wte",
    {
        "attention": "attn",
        "attention.qkv": "attn.c_attn",
        "attention.output": "attn.c_proj",
        "mlp.up": "mlp.c_fc",
        "mlp.down": "mlp.c_proj",
    },
    skipped=("wte",),
    pooling="last",
    separate_by_end=True,
    head="lm_head",
    options={"use_cache": False},
)
OPENAI_GPT = replace(
    GPT2,
    embedding="tokens_embed",
    roles={role: path for role, path in GPT2.roles.items() if role != "attention"},  # it computes its own softmax
    skipped=("tokens_embed",),
    tuple_blocks=True,
    head="",  # it has no key-value cache
    options={},
)
LLAMA = Layout(
    "layers.*",
    "embed_tokens",
    LLAMA_ROLES,
    skipped=("embed_tokens",),
    pooling="last",
    separate_by_end=True,
    most_tokens=LONGEST,
    head="lm_head",
    options={"use_cache": False},
)
PHI = replace(
    LLAMA, roles={**LLAMA_ROLES, "attention.output": "self_attn.dense", "mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2"}
)
PHI3 = replace(
    LLAMA,
    roles={
        "attention": "self_attn",
        "attention.qkv": "self_attn.qkv_proj",
        "attention.output": "self_attn.o_proj",
        "mlp.up": "mlp.gate_up_proj",  # fused with the gate
        "mlp.down": "mlp.down_proj",
    },
)
OPT = replace(
    LLAMA,
    blocks="decoder.layers.*",
    embedding="decoder.embed_tokens",
    roles={**LLAMA_ROLES, "attention.output": "self_attn.out_proj", "mlp.up": "fc1", "mlp.down": "fc2"},
    skipped=("decoder.embed_tokens", "decoder.project_in"),
    learns_like={  # registered out of order
        "decoder.final_layer_norm": "decoder.layers.*",
        "decoder.project_in": "decoder.embed_tokens",
    },
)
NEOX = replace(
    LLAMA,
    embedding="embed_in",
    roles={
        "attention": "attention",
        "attention.qkv": "attention.query_key_value",
        "attention.output": "attention.dense",
        "mlp.up": "mlp.dense_h_to_4h",
        "mlp.down": "mlp.dense_4h_to_h",
    },
    skipped=("embed_in",),
    head="embed_out",
)
BLOOM = replace(
    NEOX,
    blocks="h.*",
    embedding="word_embeddings",
    roles={
        "attention.qkv": "self_attention.query_key_value",  # it computes its own softmax
        "attention.output": "self_attention.dense",
        "mlp.up": "mlp.dense_h_to_4h",
        "mlp.down": "mlp.dense_4h_to_h",
    },
    skipped=("word_embeddings", "word_embeddings_layernorm"),
    head="lm_head",
    tuple_blocks=True,
)

LAYOUTS: Mapping[str, Layout] = {
    "gpt2": GPT2,
    "openai-gpt": OPENAI_GPT,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "gemma": LLAMA,
    "gemma2": LLAMA,
    "gemma3_text": LLAMA,
    "granite": LLAMA,
    "olmo": LLAMA,
    "olmo2": LLAMA,
    "smollm3": LLAMA,
    "phi": PHI,
    "phi3": PHI3,
    "opt": OPT,
    "gpt_neox": NEOX,
    "bloom": BLOOM,
    "falcon": BLOOM,
}

backbones.register("hf_decoder")(TransformerFamily(LAYOUTS))
