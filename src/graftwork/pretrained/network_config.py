"""A transformers configuration from config.json: only known fields, and sizes that fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, PreTrainedConfig

from graftwork.errors import StorageError
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_json import checked_sizes

BESIDE = {  # fields that networks read but their configurations do not list
    "pooler_hidden_size", "attention_head_size", "share_att_key", "position_buckets", "norm_rel_ebd",
    "conv_kernel_size", "conv_groups", "conv_act", "embedding_size", "head_dim", "global_attn_every_n_layers",
    "rope_theta", "rope_scaling", "global_rope_theta", "local_rope_theta", "partial_rotary_factor", "rotary_pct",
    "rotary_emb_base", "rope_local_base_freq", "sliding_window_pattern", "n_embed",
    "decoder_start_token_id", "scale_decoder_outputs", "tie_word_embeddings",
}  # fmt: skip
NOT_TAKEN = {  # listed fields for heads and other purposes
    "dtype", "torch_dtype", "id2label", "label2id", "num_labels", "problem_type", "output_hidden_states",
    "output_attentions", "return_dict", "transformers_version",
}  # fmt: skip
SLACK = 1 << 25  # parameters of parts that weight files may lack, such as a head
MOST_FRESH = 1 << 31  # maximum number of parameters to draw


def configuration(folder: Path) -> PreTrainedConfig:
    """Build the configuration of a transformers network from its known fields; others are ignored.

    Raises `StorageError` for a config.json that breaks a rule.
    """
    content = checked_sizes(model_file(folder, "config.json"))
    kind = type(AutoConfig.for_model(content.get("model_type", "")))
    known = ({field.name for field in fields(kind)} | {*kind.attribute_map} | BESIDE) - NOT_TAKEN
    return kind.from_dict({key: value for key, value in content.items() if key in known and not key.startswith("_")})


def require_room(build: Callable[[], nn.Module], stored: int | None, where: Path) -> nn.Module:
    """Build the network on the meta device, without memory; `where` is the file that states its sizes.

    Raises `StorageError` if it has far more than the `stored` parameters or, for None, too many to draw at random.
    """
    with torch.device("meta"):
        network = build()
    numbers = sum(part.numel() for part in (*network.parameters(), *network.buffers()))
    room = MOST_FRESH if stored is None else 2 * stored + SLACK
    if numbers > room:
        raise StorageError(
            "it describes a network far larger than " + ("can be drawn here" if stored is None else "its weights are"),
            where=str(where),
            got=f"{numbers:,} numbers",
            expected=f"at most {room:,}",
            do="use the file that belongs to the weights",
        )
    return network
