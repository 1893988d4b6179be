"""Left-to-right language models from any transformers folder or hub name, pooled at the last token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graftwork.pretrained.layout import Layout
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
    head="",  # it keeps no keys
    options={},
)
LLAMA = Layout(
    "layers.*",
    "embed_tokens",
    {
        "attention": "self_attn",
        "attention.query": "self_attn.q_proj",
        "attention.key": "self_attn.k_proj",
        "attention.value": "self_attn.v_proj",
        "attention.output": "self_attn.o_proj",
        "mlp.up": "mlp.up_proj",  # mlp.gate_proj is the gate
        "mlp.down": "mlp.down_proj",
    },
    skipped=("embed_tokens",),
    pooling="last",
    separate_by_end=True,
    most_tokens=LONGEST,
    head="lm_head",
    options={"use_cache": False},
)

LAYOUTS: Mapping[str, Layout] = {"gpt2": GPT2, "openai-gpt": OPENAI_GPT, "llama": LLAMA}

backbones.register("hf_decoder")(TransformerFamily(LAYOUTS))
