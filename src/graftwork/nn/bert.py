"""BERT's encoder (Devlin et al. 2019, arXiv:1810.04805), equal to transformers' bit for bit, with its parameter names.

Importing transformers' own takes longer than opening such a network and predicting with it. There is no dropout: every
network here runs in eval mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graftwork.nn.short_attention import NAME, attend
from graftwork.nn.tracing import being_traced


@dataclass(frozen=True)
class BertShape:
    """The sizes of the network, under the names of transformers' configuration."""

    vocab_size: int
    hidden_size: int  # D
    num_hidden_layers: int  # L
    num_attention_heads: int  # H
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    model_type: str = "bert"
    _attn_implementation: str = NAME


@dataclass(frozen=True)
class Output:
    """The network's output, under the names of transformers."""

    last_hidden_state: Tensor  # (S, T, D)
    hidden_states: tuple[Tensor, ...]  # L + 1 of them
    attentions: tuple[Tensor, ...] | None = None  # L weights (S, H, T, T), if requested


class Embeddings(nn.Module):
    """Token, token-type and position embeddings, summed and layer-normed."""

    def __init__(self, shape: BertShape):
        super().__init__()
        width = shape.hidden_size
        self.word_embeddings = _table(shape.vocab_size, width, shape.pad_token_id)
        self.position_embeddings = _table(shape.max_position_embeddings, width)
        self.token_type_embeddings = _table(shape.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=shape.layer_norm_eps)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        """Map ids and types, (S, T) each, to (S, T, D)."""
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]  # (1, T)
        summed = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        normed: Tensor = self.LayerNorm(summed + self.position_embeddings(places))
        return normed


def _table(rows: int, width: int, padding: int | None = None) -> nn.Embedding:
    """Return an uninitialised table: initialising on the meta device would make torch import its compiler."""
    return nn.Embedding(rows, width, padding, _weight=torch.empty(rows, width))


class SelfAttention(nn.Module):
    """Multi-head self-attention without the output projection."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.heads = shape.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(shape.hidden_size, shape.hidden_size) for _ in range(3))

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """Map (S, T, D), mask (S, 1, T, T) True where a position is seen or None for all, to (S, T, D)."""
        maps = (self.query, self.key, self.value)
        shape = (*hidden.shape[:2], self.heads, -1)
        query, key, value = (one(hidden).view(shape).transpose(1, 2) for one in maps)
        return attend(self, query, key, value, mask)[0].flatten(2)

    def weights(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """Return the attention weights (S, H, T, T) on states (S, T, D); fused kernels do not return them."""
        shape = (*hidden.shape[:2], self.heads, -1)
        query, key = (one(hidden).view(shape).transpose(1, 2) for one in (self.query, self.key))
        scores: Tensor = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
        return (scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)).softmax(dim=-1)


class AddAndNorm(nn.Module):
    """A linear layer, a residual connection and a layer norm."""

    def __init__(self, inputs: int, shape: BertShape):
        super().__init__()
        self.dense = nn.Linear(inputs, shape.hidden_size)
        self.LayerNorm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)

    def forward(self, hidden: Tensor, around: Tensor) -> Tensor:
        """Map (S, T, inputs) and the residual (S, T, D) to (S, T, D)."""
        normed: Tensor = self.LayerNorm(self.dense(hidden) + around)
        return normed


class Attention(nn.Module):
    """Self-attention with output projection, residual connection and layer norm."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.self = SelfAttention(shape)
        self.output = AddAndNorm(shape.hidden_size, shape)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """(S, T, D) -> (S, T, D)."""
        added: Tensor = self.output(self.self(hidden, mask), hidden)
        return added


class Wider(nn.Module):
    """The first half of the feed-forward part: a linear layer and GELU."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.dense = nn.Linear(shape.hidden_size, shape.intermediate_size)
        self.intermediate_act_fn = nn.GELU()

    def forward(self, hidden: Tensor) -> Tensor:
        """(S, T, D) -> (S, T, inner width)."""
        wide: Tensor = self.intermediate_act_fn(self.dense(hidden))
        return wide


class Layer(nn.Module):
    """One transformer block."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.attention = Attention(shape)
        self.intermediate = Wider(shape)
        self.output = AddAndNorm(shape.intermediate_size, shape)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """(S, T, D) -> (S, T, D)."""
        attended = self.attention(hidden, mask)
        added: Tensor = self.output(self.intermediate(attended), attended)
        return added


class Encoder(nn.Module):
    """The stack of blocks."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.layer = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))

    def forward(self, hidden: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
        """Map (S, T, D) to L + 1 states, the first of them the input."""
        states = [hidden]
        for layer in self.layer:
            states.append(layer(states[-1], mask))
        return tuple(states)


class Bert(nn.Module):
    """The network without a head and without the pooler, which nothing here uses."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.config = shape
        self.embeddings = Embeddings(shape)
        self.encoder = Encoder(shape)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> Output:
        """Run the network on inputs of (S, T) each; all hidden states are returned whether requested or not."""
        real = attention_mask.bool()
        mask: Tensor | None = real[:, None, None, :]  # (S, 1, 1, T)
        if mask is not None and not being_traced():
            mask = None if bool(real.all()) else mask.expand(-1, 1, real.shape[1], -1)
        states = self.encoder(self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids), mask)
        layers: list[Any] = list(self.encoder.layer)
        entered = zip(layers, states[:-1], strict=True)
        weights = (layer.attention.self.weights(state, mask) for layer, state in entered)
        return Output(states[-1], states, tuple(weights) if output_attentions else None)


def bert_of(shape: BertShape, stored: Mapping[str, Tensor], dtype: torch.dtype) -> Bert:
    """Build the network from these weights, which are copied only if the `dtype` differs.

    Raises `RuntimeError` where some are missing or of another shape.
    """
    with torch.device("meta"):
        network = Bert(shape)
    weights = {name: stored[name].to(dtype) for name in network.state_dict() if name in stored}
    network.load_state_dict(weights, assign=True)
    return network
