"""A transformers decoder with its language-model head; it continues from cached keys and values."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers.cache_utils import Cache, DynamicLayer

from graftwork.core.backbone import device_of
from graftwork.core.language_model import Earlier, KeptKeys, TokenTree
from graftwork.io.files import header_of
from graftwork.nn.short_attention import NAME
from graftwork.pretrained.model_folder import stored_weights, weight_files
from graftwork.pretrained.tokenising import padded


@dataclass(frozen=True)
class Head:
    """The projection from states to the logits of the next token."""

    weight: Tensor  # (V, D)
    bias: Tensor | None = None  # (V,)
    divisor: float = 1.0  # of logits, as in Granite
    cap: float | None = None  # logits are cap · tanh(logits / cap), as in Gemma 2

    def __call__(self, states: Tensor) -> Tensor:
        """(N, D) -> (N, V) fp32."""
        logits = linear(states.to(self.weight.dtype), self.weight, self.bias).float() / self.divisor
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


@dataclass(frozen=True)
class HeadPlace:
    """Place of a network's head: in its folder or, if it is tied, in its token embedding."""

    folder: Path | None  # None: tied
    name: str
    divisor: float = 1.0
    cap: float | None = None

    def map_of(self, embedding: Tensor) -> Head:
        """Return the head of the network with this token embedding (V, D), in its precision and on its device."""
        if self.folder is None:
            return Head(embedding, None, self.divisor, self.cap)
        stored = stored_weights(self.folder)
        weight, bias = stored[f"{self.name}.weight"], stored.get(f"{self.name}.bias")
        return Head(weight.to(embedding), None if bias is None else bias.to(embedding), self.divisor, self.cap)


def head_place(folder: Path, name: str, config: Any, fresh_weights: bool) -> HeadPlace | None:
    """Return the place of the head `name`; None if it is no decoder, or its head is neither tied nor stored."""
    if not name or getattr(config, "word_embed_proj_dim", config.hidden_size) != config.hidden_size:
        return None  # a narrower embedding (OPT-350m) needs a projection, which is not loaded
    after = getattr(config, "logits_scaling", 1.0), getattr(config, "final_logit_softcapping", None)
    if getattr(config, "tie_word_embeddings", True):
        return HeadPlace(None, name, *after)
    if fresh_weights or not any(f"{name}.weight" in header_of(path).numbers for path in weight_files(folder)):
        return None
    return HeadPlace(folder, name, *after)


class AfterPieces(DynamicLayer):
    """The key-value cache of one block: earlier keys and values, never changed, to which a pass appends new ones."""

    def __init__(self, before: Sequence[tuple[Tensor, Tensor]]):
        super().__init__()  # type: ignore[no-untyped-call]
        self.before = before  # keys and values (S or 1, H, K, d)
        self.new: tuple[Tensor, Tensor]  # (S, H, T, d) each

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Record new keys and values (S, H, T, d), and return them appended to the earlier ones."""
        self.new = key_states, value_states
        rows = len(key_states)
        keys = [key.expand(rows, -1, -1, -1) for key, _ in self.before]
        values = [value.expand(rows, -1, -1, -1) for _, value in self.before]
        return torch.cat([*keys, key_states], dim=2), torch.cat([*values, value_states], dim=2)

    def get_seq_length(self) -> int:
        """Return the number of cached tokens."""
        return sum(key.shape[2] for key, _ in self.before)


@dataclass
class TransformerReader:
    """Implements `NextTokenModel`."""

    name: str
    module: nn.Module  # a transformers decoder without a head
    head: Head
    tokenizer: Tokenizer  # of the backbone, with truncation
    pad_id: int
    context: int
    options: Mapping[str, bool]  # further arguments of the network

    @cached_property
    def _whole(self) -> Tokenizer:
        """The tokenizer without truncation."""
        tokenizer = copy.deepcopy(self.tokenizer)
        tokenizer.no_truncation()
        return tokenizer

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a text, as its config.json says."""
        config: Any = self.module.config
        stated = getattr(config, "eos_token_id", None)
        listed = stated if isinstance(stated, list) else [stated]
        return tuple(one for one in listed if isinstance(one, int) and 0 <= one < len(self.head.weight))

    @property
    def is_local(self) -> bool:
        """True if the last tokens of a text depend only on the text near them; Unigram models weigh the whole text."""
        return not isinstance(self._whole.model, Unigram)

    @cached_property
    def _front(self) -> list[int]:
        """The special tokens before every text; those after it are left out, since the text is continued."""
        plain, marked = (self._whole.encode("a", add_special_tokens=special).ids for special in (False, True))
        return list(marked[: marked.index(plain[0])]) if plain and plain[0] in marked else []

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise each text, with the special tokens in front and without truncation."""
        found = self._whole.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._front + encoding.ids for encoding in found]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the first and end character of each token of a text; (0, 0) for special tokens."""
        return [(0, 0)] * len(self._front) + list(self._whole.encode(text, add_special_tokens=False).offsets)

    def text_of(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return str(self._whole.decode(list(tokens), skip_special_tokens=True))

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Pad on the right: (S, T) int64, and (S, T) bool, True where real."""
        lengths = np.array([len(row) for row in rows])
        real = np.arange(int(lengths.max())) < lengths[:, None]
        device = device_of(self.module)
        return padded([list(row) for row in rows], real, self.pad_id).to(device), torch.from_numpy(real).to(device)

    def read(self, ids: Tensor, real: Tensor, after: Earlier | None = None) -> tuple[Tensor, Earlier]:
        """Run tokens (S, T), padded on the right, after the cache; return states (S, T, D) and the longer cache."""
        pieces = after.pieces if after else ()
        begin = after.positions[:, None] if after else torch.zeros((1, 1), dtype=torch.int64, device=ids.device)
        seen = [piece.real.expand(len(ids), -1) for piece in pieces]
        mask = torch.cat([*seen, real], dim=1).to(torch.int64)
        states, keys = self._states(ids, mask, begin + torch.arange(ids.shape[1], device=ids.device), pieces)
        return states, Earlier((*pieces, KeptKeys(*keys, real)))

    def read_trees(self, trees: Sequence[TokenTree], after: Earlier) -> Tensor:
        """Return the states (n, D) at the nodes of all trees; each tree is one row if the attention takes any mask."""
        config: Any = self.module.config
        if config._attn_implementation != NAME:
            return self._paths(trees, after)
        ids, real = self.padded([tree.tokens for tree in trees])  # (S, N) each
        width = ids.shape[1]
        own = np.zeros((len(trees), width, width), dtype=bool)
        for row, tree in zip(own, trees, strict=True):
            row[: len(tree.tokens), : len(tree.tokens)] = tree.seen
        behind = torch.from_numpy(own).to(ids.device)  # (S, N, N)
        before = torch.cat([piece.real.expand(len(ids), -1) for piece in after.pieces], dim=1)  # (S, K)
        mask = torch.cat([before[:, None].expand(-1, width, -1), behind], dim=2)[:, None]  # (S, 1, N, K + N)
        positions = after.positions[:, None] + (behind.sum(dim=2) - 1).clamp(min=0)
        return self._states(ids, mask, positions, after.pieces)[0][real]

    def _paths(self, trees: Sequence[TokenTree], after: Earlier) -> Tensor:
        """Compute `read_trees` with one row per path from a root to a leaf."""
        paths = [(row, path) for row, tree in enumerate(trees) for path in tree.paths]
        ids, real = self.padded([[trees[row].tokens[node - 1] for node in path] for row, path in paths])
        states, _ = self.read(ids, real, after.some([row for row, _ in paths]))
        places = {(row, node): (at, step) for at, (row, path) in enumerate(paths) for step, node in enumerate(path)}
        chosen = [places[row, node + 1] for row, tree in enumerate(trees) for node in range(len(tree.tokens))]
        return states[[at for at, _ in chosen], [step for _, step in chosen]]

    def _states(
        self, ids: Tensor, mask: Tensor, positions: Tensor, pieces: Sequence[KeptKeys]
    ) -> tuple[Tensor, tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]:
        """Return states (S, T, D) and, per block, new keys and values; the mask is (S, K) or (S, 1, T, K)."""
        config: Any = self.module.config
        layers = [
            AfterPieces([(piece.keys[number], piece.values[number]) for piece in pieces])
            for number in range(config.num_hidden_layers)
        ]
        output = self.module(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions.expand(len(ids), -1),
            past_key_values=Cache(layers=list(layers)),
            **self.options,
        )
        new = tuple(layer.new[0] for layer in layers), tuple(layer.new[1] for layer in layers)
        return output.last_hidden_state, new

    def logits(self, states: Tensor) -> Tensor:
        """(N, D) -> (N, V) fp32."""
        return self.head(states)
