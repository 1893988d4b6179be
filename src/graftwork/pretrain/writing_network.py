"""Common parts of the encoder-decoder objectives: padding, the loss over the targets, loading and saving."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoModelForSeq2SeqLM, GenerationConfig, PreTrainedModel

from graftwork.errors import ConfigError
from graftwork.pretrain import architecture
from graftwork.pretrain.objective import IGNORED, Batch, ContinuedNetwork, Loss
from graftwork.pretrain.vocabulary import Vocabulary


def halves(layers: int, width: int, heads: int, dropout: float) -> dict[str, Any]:
    """Return a size of a network like BART or Marian: encoder and decoder of equal size, MLPs of 4x the width."""
    both = {"layers": layers, "attention_heads": heads, "ffn_dim": 4 * width}
    sizes = {f"{half}_{name}": value for half in ("encoder", "decoder") for name, value in both.items()}
    return {"d_model": width, **sizes, "dropout": dropout, "forced_eos_token_id": None}


def require_spans(share: float, span: float) -> None:
    """Raise `ConfigError` unless spans of this mean length can hide this share of a text."""
    if not 0 < share < 1 or span < 1:
        raise ConfigError(
            "spans can't be hidden so", got=f"share={share}, span={span}", expected="0 < share < 1, and span at least 1"
        )


def load_writer(folder: Path, architecture_name: str, seed: int) -> ContinuedNetwork:
    """Load an encoder-decoder of this architecture. Raises as `architecture.load_network`, or `IncompatibleModule`
    if tensors are missing."""
    network, missing = architecture.load_network(AutoModelForSeq2SeqLM, folder, (architecture_name,), seed)
    architecture.require_heads_only(missing, (), folder)
    vocabulary, config = Vocabulary.open(folder), network.config
    return ContinuedNetwork(
        ready(network, vocabulary, config.decoder_start_token_id), vocabulary, config.max_position_embeddings
    )


def padded(rows: Sequence[Tensor], value: int, width: int = 0) -> Tensor:
    """Return rows of ids, each (T,), as one tensor padded with `value` to the longest of them, but at least `width`."""
    made = torch.full((len(rows), max(width, *(len(row) for row in rows))), value, dtype=torch.int64)
    for place, row in enumerate(rows):
        made[place, : len(row)] = row
    return made


def padded_batch(ids: Tensor, labels: Tensor, vocabulary: Vocabulary) -> Batch:
    """Return the batch of padded encoder inputs (B, S) and target labels (B, T), with the attention mask."""
    tensors = {"ids": ids, "mask": (ids != vocabulary.pad).long(), "labels": labels}
    return Batch(tensors, predicted=int((labels != IGNORED).sum()), rows=len(ids))


def writing_loss(network: nn.Module, batch: Batch, smoothing: float = 0.0) -> Loss:
    """Return the loss over the labels, each predicted from the encoder's input and the labels before it.

    With label smoothing (Szegedy et al. 2016) a share `smoothing` of the target is spread evenly over all tokens; the
    nats are always without it.
    """
    own: Any = network
    labels = batch.tensors["labels"]
    logits = own(
        input_ids=batch.tensors["ids"],
        attention_mask=batch.tensors["mask"],
        decoder_input_ids=own.prepare_decoder_input_ids_from_labels(labels),
        use_cache=False,
    ).logits
    chosen = labels != IGNORED
    logits, targets = logits[chosen].float(), labels[chosen]  # (N, V), (N,)
    nats = cross_entropy(logits, targets, reduction="sum")
    total = cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing) if smoothing else nats
    return Loss(total / batch.predicted, nats.detach(), len(targets))


def ready(network: PreTrainedModel, vocabulary: Vocabulary, start: int) -> PreTrainedModel:
    """Configure `start` as the decoder's first token, and torch's own attention; return the network."""
    network.set_attn_implementation("sdpa")
    network.config.decoder_start_token_id = start
    network.generation_config = GenerationConfig(
        decoder_start_token_id=start, eos_token_id=vocabulary.end, pad_token_id=vocabulary.pad
    )
    return network


def save(network: nn.Module, vocabulary: Vocabulary, folder: Path, length: int) -> None:
    """Write a transformers folder; as a backbone, its encoder is pooled by the mean: no token represents a text."""
    architecture.save(network, vocabulary, folder, "mean", length)
