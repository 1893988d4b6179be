"""Layouts: the paths of the parts of a transformers architecture, and how it is pooled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Layout:
    """One row of a family's table. Paths are dotted; `*` in `blocks` is a number."""

    blocks: str  # path of every block: "encoder.layer.*"
    embedding: str  # path of the token embedding
    roles: Mapping[str, str]  # role -> path inside a block: linear layers, norms after a sum, attention by `attend`
    skipped: tuple[str, ...] = ("embeddings",)  # modules not needed once block 0 is skipped
    pooling: str = "first"  # "mean", "first" or "last"
    towers: int = 1  # sequences that a pair becomes
    lower_case: bool = False  # lower-case texts, whatever the tokenizer does
    token_types: bool = False  # the network distinguishes the texts of a pair by `token_type_ids`
    positions_after_padding: bool = False  # positions count from pad_token_id + 1, as in RoBERTa
    separate_by_end: bool = False  # no template of its own: a pair is joined by the end-of-text token
    most_tokens: int | None = None  # maximum length, if the network states more positions
    tuple_blocks: bool = False  # blocks return a tuple whose first item is the hidden states
    time_first: bool = False  # inside, hidden states are (T, S, D)
    shared_blocks: bool = False  # every block has the same weights
    mixes_rows: bool = False  # a linear layer's input is not per sequence (DeBERTa's relative positions)
    head: str = ""  # name of a left-to-right language model's head, which is outside the network: "lm_head"
    options: Mapping[str, bool] = field(default_factory=dict)  # further arguments of its forward
    learns_like: Mapping[str, str] = field(
        default_factory=dict
    )  # as `PlacesParts.learns_like`, for optional modules; the value of `blocks` means the highest block
    default_rates: Mapping[str, float] = field(default_factory=dict)  # as `OwnRates.default_rates`

    def first_position(self, pad: int) -> int:
        """Return the position of the first token, where `pad` is the padding token's id."""
        return pad + 1 if self.positions_after_padding else 0


BERT_ROLES: Mapping[str, str] = {
    "attention": "attention.self",
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "mlp.up": "intermediate.dense",
    "mlp.down": "output.dense",
    "attention.norm": "attention.output.LayerNorm",
    "mlp.norm": "output.LayerNorm",
}
LLAMA_ROLES: Mapping[str, str] = {
    "attention": "self_attn",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "mlp.up": "mlp.up_proj",  # mlp.gate_proj is the gate
    "mlp.down": "mlp.down_proj",
}
VIT_ROLES: Mapping[str, str] = {
    "attention.query": "attention.q_proj",
    "attention.key": "attention.k_proj",
    "attention.value": "attention.v_proj",
    "attention.output": "attention.o_proj",
    "mlp.up": "mlp.fc1",
    "mlp.down": "mlp.fc2",
}
T5_ROLES: Mapping[str, str] = {
    "attention": "layer.0.SelfAttention",
    "attention.query": "layer.0.SelfAttention.q",
    "attention.key": "layer.0.SelfAttention.k",
    "attention.value": "layer.0.SelfAttention.v",
    "attention.output": "layer.0.SelfAttention.o",
    "mlp.up": "layer.1.DenseReluDense.wi|layer.1.DenseReluDense.wi_1",  # in a gated one wi_0 is the gate
    "mlp.down": "layer.1.DenseReluDense.wo",
}
MBART_ROLES: Mapping[str, str] = {
    "attention": "self_attn",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.out_proj",
    "mlp.up": "fc1",
    "mlp.down": "fc2",
}
WHISPER_ROLES = {  # its attention is transformers' own, which takes no additional keys
    role: path for role, path in MBART_ROLES.items() if role != "attention"
}
BERT = Layout("encoder.layer.*", "embeddings.word_embeddings", BERT_ROLES, token_types=True)
T5 = Layout(
    "encoder.block.*",
    "encoder.embed_tokens",
    T5_ROLES,
    skipped=("encoder.embed_tokens",),
    pooling="mean",  # no token stands for the whole text
    learns_like={"encoder.block.0.layer.0.SelfAttention.relative_attention_bias": "encoder.embed_tokens"},
    default_rates={"full": 1e-3, "lora": 5e-3, "top_layers": 1.5e-3},  # measured: docs/log.md
)
MBART = Layout(
    "layers.*",
    "embed_tokens",
    MBART_ROLES,
    skipped=("embed_tokens",),
    pooling="mean",  # no token stands for the whole text
    learns_like={"layernorm_embedding": "embed_tokens"},  # it is registered behind the blocks
)
BART = replace(MBART, roles={**MBART.roles, "attention.norm": "self_attn_layer_norm", "mlp.norm": "final_layer_norm"})


def sites_of(
    network: nn.Module, role: str, embedding: str, blocks: Iterable[str], roles: Mapping[str, str]
) -> dict[str, nn.Module]:
    """Map qualified names to submodules of a role, in network order. `roles`: role -> path in a block; else empty."""
    from torch.nn import LayerNorm

    if role == "embedding":
        return {embedding: network.get_submodule(embedding)}
    owners = {path: network.get_submodule(path) for path in blocks}
    if role == "block":
        return owners
    if role == "norm":
        return {
            f"{block}.{name}": module
            for block, owner in owners.items()
            for name, module in owner.named_modules()
            if isinstance(module, LayerNorm)
        }
    return {
        f"{block}.{roles[role]}": owner.get_submodule(roles[role]) for block, owner in owners.items() if role in roles
    }
