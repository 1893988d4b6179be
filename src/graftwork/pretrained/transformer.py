"""A backbone from a transformers network: tokenises, runs from any block on, pools, and finds parts by role."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from graftwork.core.backbone import BackboneCard, Encoded, Features, Inputs, device_of
from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.nn.pooling import pool_states
from graftwork.pretrained.layout import Layout, sites_of
from graftwork.pretrained.tokenising import TextReader

if TYPE_CHECKING:
    from graftwork.pretrained.transformer_reader import HeadPlace, TransformerReader

BlockOutput = Tensor | tuple[Tensor | None, ...]  # hidden states, or a tuple that begins with them
HAS_BIAS = "has_relative_attention_bias"  # T5's first attention: it computes the position bias of all blocks
RMS_NORMS = ("LayerNorm", "RMSNorm")  # endings of the names of transformers' classes that are no `nn.LayerNorm`


@dataclass
class TransformerBackbone:
    """Implements `Backbone`, `PlacesParts`, `OwnRates` and `ContinuesTexts`.

    The tokenizer must truncate at `card.max_length` and not pad.
    """

    card: BackboneCard
    module: nn.Module  # a transformers model without a head
    tokenizer: Tokenizer
    pad_id: int
    layout: Layout
    head: HeadPlace | None = None  # the place of its language-model head
    before: str = ""  # prefix of every text

    def __post_init__(self) -> None:
        pattern = re.compile(self.layout.blocks.replace(".", r"\.").replace("*", r"\d+"))
        paths = [path for path, _ in self.module.named_modules()]
        self._block_paths = [path for path in paths if pattern.fullmatch(path)]
        self._skipped_paths = [path for path in self.layout.skipped if path in paths]
        first, last = (next(iter(ordered), "") for ordered in (self._block_paths, reversed(self._block_paths)))
        self.learns_like = {
            path: last if like == self.layout.blocks else like
            for path, like in self.layout.learns_like.items()
            if path in paths
        }
        self._roles = {  # of paths with | between them, the one that the network has
            role: next((path for path in choices.split("|") if f"{first}.{path}" in paths), choices)
            for role, choices in self.layout.roles.items()
        }
        biased = [path for path, part in self.module.named_modules() if getattr(part, HAS_BIAS, False)]
        self._biased_path = biased[0] if len(biased) == 1 else None  # each block of UMT5 has its own

    @property
    def default_rates(self) -> Mapping[str, float]:
        """The default learning rates of methods on networks of this layout, by name."""
        return self.layout.default_rates

    @property
    def rows_apart(self) -> bool:
        """False if time is the first dimension, or if a linear layer's input is not per sequence."""
        return not (self.layout.time_first or self.layout.mixes_rows)

    @cached_property
    def reader(self) -> TextReader:
        """The tokenising reader."""
        card = self.card
        types = self.layout.token_types
        return TextReader(self.tokenizer, self.pad_id, card.max_length, card.towers, types, self.before)

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise. A pair is `card.towers` sequences, one or two; a single text is always one.

        Each of `choices` forms a pair with the text.
        """
        return self.reader.encode(examples)

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Return a batch as tensors (S, T), padded on the right, so that positions do not depend on the batch."""
        device = device_of(self.module)
        return {name: rows.to(device) for name, rows in self.reader.collate(encoded, sequences).items()}

    def states(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Return L + 1 tensors (S, T, D), exactly the network's own `hidden_states`."""
        output = self.module(**_of_network(inputs), **self.layout.options, output_hidden_states=True)
        return tuple(output.hidden_states)

    def states_up_to(self, inputs: Inputs, depth: int) -> tuple[Tensor, ...]:
        """Return the first `depth + 1` of `states`; blocks from `depth` on are not run."""
        if depth == self.card.blocks or self.layout.shared_blocks:
            return self.states(inputs)[: depth + 1]
        entering: list[Tensor] = []
        replaced: dict[str, nn.Module] = {}
        for place, path in enumerate(self._block_paths):
            block = self.module.get_submodule(path)
            replaced[path] = Noting(block, entering) if place < depth else Noting(block, entering, self._through)
        with_modules(self.module, replaced)(**_of_network(inputs), **self.layout.options)
        states = entering[: depth + 1]
        return tuple(state.transpose(0, 1) for state in states) if self.layout.time_first else tuple(states)

    def _through(self, hidden: Tensor, bias: Tensor | None = None) -> BlockOutput:
        """Return `hidden` in the form of a block's output; `bias` (1, H, T, T) is for the blocks above, where used."""
        if self._biased_path is not None:
            return hidden, bias, None
        return (hidden, None) if self.layout.tuple_blocks else hidden

    def features(self, inputs: Inputs, start: int = 0, entering: Tensor | None = None) -> Features:
        """Run blocks `start … L - 1` on `entering` (S, T, D) and pool. `start` 0 computes the embeddings too.

        Raises `ConfigError` for a start between the blocks of a network that shares their weights.
        """
        assert 0 <= start <= self.card.blocks, f"no block {start}"
        assert start == 0 or entering is not None, "states are needed to start above the first block"
        mask, words = inputs["attention_mask"].bool(), inputs.get("words")  # each (S, T)
        if start == self.card.blocks and entering is not None:
            return Features(entering, mask, self.pool(entering, mask, words))
        network: nn.Module = self.module
        if start > 0 and entering is not None:
            network = self._from_block(start, entering)
        sequence = network(**_of_network(inputs), **self.layout.options).last_hidden_state  # (S, T, D)
        return Features(sequence, mask, self.pool(sequence, mask, words))

    def pool(self, sequence: Tensor, mask: Tensor, words: Tensor | None = None) -> Tensor:
        """Pool (S, T, D), mask (S, T), to (S, D) fp32 by the layout's pooling; with `words` (S, T) to (W, D)."""
        return pool_states(sequence, mask, self.layout.pooling, words)

    def sites(self, role: str) -> dict[str, nn.Module]:
        """Map qualified names to submodules of this role, in network order."""
        found = sites_of(self.module, role, self.layout.embedding, self._block_paths, self._roles)
        return self._rms_norms() if role == "norm" and not found else found

    def _rms_norms(self) -> dict[str, nn.Module]:
        return {
            f"{block}.{path}": part
            for block, owner in self.sites("block").items()
            for path, part in owner.named_modules()
            if type(part).__name__.endswith(RMS_NORMS) and [*part.parameters(recurse=False)]  # OLMo's have none
        }

    def copy(self) -> TransformerBackbone:
        """Return a backbone with its own weights; the immutable tokenizer is shared."""
        return replace(self, module=copy.deepcopy(self.module))

    def twin(self) -> TransformerBackbone:
        """Return new modules that share the weights: hooks on them do not affect other users of the weights."""
        shared = {id(tensor): tensor for tensor in (*self.module.parameters(), *self.module.buffers())}
        return replace(self, module=copy.deepcopy(self.module, shared))

    def language_model(self) -> TransformerReader:
        """Return the network with its head, loaded on first use."""
        return self._language_model

    @cached_property
    def _language_model(self) -> TransformerReader:
        from graftwork.pretrained.transformer_reader import TransformerReader  # it needs transformers

        assert self.head is not None, f"{self.card.id} is no language model"
        embedding: Any = self.module.get_submodule(self.layout.embedding)
        return TransformerReader(
            self.card.id,
            self.module,
            self.head.map_of(embedding.weight),
            self.tokenizer,
            self.pad_id,
            min(self.card.max_length, getattr(self.module.config, "sliding_window", None) or self.card.max_length),
            self.layout.options,
        )

    def _from_block(self, start: int, entering: Tensor) -> nn.Module:
        """Return the network with stand-ins below block `start`; its own forward still prepares masks and positions."""
        if self.layout.shared_blocks:
            raise ConfigError(
                f"backbone {self.card.id!r} can't start at block {start}: its blocks are one block, used again",
                expected=f"0 or {self.card.blocks}",
                do="choose a method that changes every block, or none",
            )
        inner = entering.transpose(0, 1) if self.layout.time_first else entering
        as_block_returns = self._through(inner, self._position_bias(inner.shape[1]))
        stand_ins: dict[str, nn.Module] = {path: StandIn(inner) for path in self._skipped_paths}
        for path in self._block_paths[:start]:
            stand_ins[path] = StandIn(as_block_returns, self.module.get_submodule(path))
        return with_modules(self.module, stand_ins)

    def _position_bias(self, length: int) -> Tensor | None:
        """Return the position bias (1, H, T, T) that block 0 computes for all blocks, frozen; None if there is none."""
        if self._biased_path is None:
            return None
        attention: Any = self.module.get_submodule(self._biased_path)
        with torch.no_grad():
            bias: Tensor = attention.compute_bias(length, length)
        return bias


class StandIn(nn.Module):
    """A replacement for a module that returns a known output."""

    def __init__(self, output: BlockOutput, block: nn.Module | None = None):
        super().__init__()
        self.output = output
        self.attention_type = getattr(block, "attention_type", None)  # ModernBERT selects a block's mask by it
        self.self_attn = getattr(block, "self_attn", None)  # torch's own encoder looks at that of its first block

    def forward(self, *args: object, **options: object) -> BlockOutput:
        """Return the known output, whatever the arguments."""
        return self.output


class Noting(nn.Module):
    """A replacement for a block that records its input states, and runs the block or, if given, `instead`."""

    def __init__(self, block: nn.Module, entering: list[Tensor], instead: Callable[[Tensor], Any] | None = None):
        super().__init__()
        self.block = block if instead is None else None
        self.entering, self.instead = entering, instead
        self.attention_type = getattr(block, "attention_type", None)
        self.self_attn = getattr(block, "self_attn", None)

    def forward(self, hidden: Tensor, *args: Any, **options: Any) -> Any:
        """Record `hidden` and return the output of the block or of `instead`."""
        self.entering.append(hidden)
        if self.block is not None:
            return self.block(hidden, *args, **options)
        assert self.instead is not None
        return self.instead(hidden)


def with_modules(root: nn.Module, replaced: Mapping[str, nn.Module]) -> nn.Module:
    """Return a copy of `root` over the same submodules except those replaced at these paths.

    `root` is not changed, so other threads may run it meanwhile and nothing needs restoring after an exception.
    """
    twin = copy.copy(root)
    twin._modules = dict(root._modules)
    deeper: dict[str, dict[str, nn.Module]] = {}
    for path, module in replaced.items():
        child, _, rest = path.partition(".")
        if rest:
            deeper.setdefault(child, {})[rest] = module
        else:
            twin._modules[child] = module
    for child, below in deeper.items():
        twin._modules[child] = with_modules(root.get_submodule(child), below)
    return twin


def as_encoder(opened: TransformerBackbone, module: Any) -> TransformerBackbone:
    """Return a backbone like `opened` with the encoder `module`."""
    return replace(opened, module=module, head=None)


def _of_network(inputs: Inputs) -> Inputs:
    """Drop the inputs that only pooling needs."""
    return {name: tensor for name, tensor in inputs.items() if name != "words"}
