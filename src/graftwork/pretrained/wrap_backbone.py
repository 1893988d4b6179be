"""A torch encoder of the user's own as a backbone: `wrap_backbone`."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.modules.linear import (
    NonDynamicallyQuantizableLinear,
)  # torch's attention reads its weight, and calls none

from graftwork.core.backbone import ROLES
from graftwork.errors import ConfigError
from graftwork.io.files import digest
from graftwork.pretrained.build_backbone import assemble
from graftwork.pretrained.layout import BERT_ROLES, LLAMA_ROLES, MBART_ROLES, Layout
from graftwork.pretrained.transformer import Noting, TransformerBackbone, with_modules
from graftwork.registry import backbones

NETWORK = "network"
POOLINGS = ("mean", "first", "last")
TORCH_ROLES: Mapping[str, str] = {"mlp.up": "linear1", "mlp.down": "linear2"}  # nn.TransformerEncoderLayer
KNOWN_ROLES = (BERT_ROLES, LLAMA_ROLES, MBART_ROLES, TORCH_ROLES)  # common names of parts, role -> path


def wrap_backbone(
    module: nn.Module,
    tokenizer: Any,
    *,
    name: str,
    blocks: str = "",
    roles: Mapping[str, str] | None = None,
    embedding: str = "",
    pooling: str = "mean",
    max_length: int = 512,
    pad_id: int | None = None,
) -> str:
    """Register a torch encoder as the backbone `name`, for `backbone=name`; return the name. The weights are copied.

    `module(input_ids, attention_mask)`, both (S, T) with 1 at the real tokens, returns the states (S, T, D), which may
    depend on the real tokens only. `tokenizer` is one of the library tokenizers, or a fast one of transformers.

    `blocks` is the path of its blocks, "encoder.layers.*": each takes states (S, T, D) first and returns the next ones,
    which enter the next block. By default it is the longest `ModuleList` of one class. `roles` maps roles
    (`attention.query`, `mlp.down`, …) to paths inside a block, where adapters attach; by default it finds common names.
    `embedding` is the path of the token embedding; by default the first. `pad_id` is by default the id of "[PAD]" or
    "<pad>". The backbone is identified by a hash of weights, tokenizer and structure.

    Raises `ConfigError` for parts that can't be found, and for the name of a backbone of this package.
    """
    if pooling not in POOLINGS:
        raise ConfigError("unknown pooling", got=repr(pooling), expected=", ".join(POOLINGS))
    words: Tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(words, Tokenizer):
        raise ConfigError(
            "the tokenizer can't be used",
            got=type(tokenizer).__name__,
            expected="a tokenizers.Tokenizer, or a fast tokenizer of transformers",
        )
    padding = [one for one in (pad_id, words.token_to_id("[PAD]"), words.token_to_id("<pad>")) if one is not None]
    if not padding:
        raise ConfigError("the tokenizer has no padding token", expected="[PAD] or <pad>", do="name its id as pad_id")
    network = copy.deepcopy(module).cpu().float()
    path = blocks or _longest_list(network)
    listed = _at(network, path)
    layout = Layout(
        f"{NETWORK}.{path}",
        f"{NETWORK}.{embedding or _first_embedding(network)}",
        dict(roles) if roles is not None else _found_roles(listed),
        skipped=(),
        pooling=pooling,
    )
    _require_paths(listed, roles or {})
    for part in network.modules():
        if isinstance(part, nn.TransformerEncoder):  # its fast path needs the original blocks and cuts padding off
            part.enable_nested_tensor = part.use_nested_tensor = False
    backbones.register_own(name, WrappedFamily(name, network, words.to_str(), layout, max_length, padding[0]))
    return name


@dataclass
class WrappedFamily:
    """Implements `BackboneFamily` for one network; `source` is not used."""

    name: str
    network: nn.Module
    tokenizer: str  # JSON
    layout: Layout
    max_length: int
    pad_id: int

    model_types: tuple[str, ...] = ()

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
        """Open a copy of the network. Raises `ConfigError` if fresh weights are wanted and can't be drawn."""
        network = copy.deepcopy(self.network)
        if random_seed is not None:
            _draw_anew(network, random_seed, self.name)
        told = {name: _bits(tensor) for name, tensor in network.state_dict().items()}
        embedding: Any = network.get_submodule(self.layout.embedding.removeprefix(f"{NETWORK}."))
        path = self.layout.blocks.removeprefix(f"{NETWORK}.")
        with torch.no_grad():
            width = network(torch.tensor([[self.pad_id]]), torch.ones(1, 1, dtype=torch.long)).shape[-1]
        config = SimpleNamespace(
            vocab_size=embedding.num_embeddings,
            hidden_size=width,
            num_hidden_layers=len(_at(network, path)),
            model_type=type(network).__name__,
            max_position_embeddings=self.max_length,
        )
        return assemble(
            self.name,
            WrappedNetwork(network.bfloat16() if bf16 else network, config, self.layout.blocks),
            Tokenizer.from_str(self.tokenizer),
            self.layout,
            pad_id=self.pad_id,
            max_length=self.max_length,
            random_seed=random_seed,
            identity={"weights": told, "tokenizer": digest(self.tokenizer), "structure": str(network)},
        )


class WrappedNetwork(nn.Module):
    """A wrapped network with the interface of a transformers model."""

    def __init__(self, network: nn.Module, config: SimpleNamespace, blocks: str):
        super().__init__()
        self.network, self.config, self.blocks = network, config, blocks

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_hidden_states: bool = False) -> SimpleNamespace:
        """(S, T), (S, T) -> the last states (S, T, D) and, on request, those that enter each block, then the last."""
        if not output_hidden_states:
            return SimpleNamespace(last_hidden_state=self.network(input_ids, attention_mask))
        entering: list[Tensor] = []
        paths = [path.removeprefix(f"{NETWORK}.") for path in _paths(self, self.blocks)]
        noting = {path: Noting(self.network.get_submodule(path), entering) for path in paths}
        last = with_modules(self.network, noting)(input_ids, attention_mask)
        return SimpleNamespace(last_hidden_state=last, hidden_states=(*entering, last))


def _bits(tensor: Tensor) -> str:
    """Return the sha256 of a tensor's bytes."""
    return hashlib.sha256(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


def _paths(network: nn.Module, blocks: str) -> list[str]:
    pattern = re.compile(re.escape(blocks).replace(r"\*", r"\d+"))
    return [path for path, _ in network.named_modules() if pattern.fullmatch(path)]


def _at(network: nn.Module, blocks: str) -> list[nn.Module]:
    """Return the blocks at a path. Raises `ConfigError` if there are none."""
    found = [network.get_submodule(path) for path in _paths(network, blocks)]
    if not found:
        listed = [f"{path}.*" for path, part in network.named_modules() if isinstance(part, nn.ModuleList)]
        raise ConfigError("the network has no such blocks", got=blocks, expected=", ".join(listed) or "a path with *")
    return found


def _longest_list(network: nn.Module) -> str:
    lists = [
        (len(part), path)
        for path, part in network.named_modules()
        if isinstance(part, nn.ModuleList) and len({type(block) for block in part}) == 1
    ]
    if not lists:
        raise ConfigError(
            "the network has no list of blocks of one class",
            got=type(network).__name__,
            expected="an nn.ModuleList",
            do='name the path of the blocks: blocks="layers.*"',
        )
    longest = max(lists, key=lambda one: one[0])
    return f"{longest[1]}.*"


def _first_embedding(network: nn.Module) -> str:
    for path, part in network.named_modules():
        if isinstance(part, nn.Embedding):
            return str(path)
    raise ConfigError("the network has no nn.Embedding", do='name its token embedding: embedding="…"')


def _found_roles(blocks: list[nn.Module]) -> dict[str, str]:
    """Return role -> path of the linear layers with common names that every block has."""
    found: dict[str, str] = {}
    for known in KNOWN_ROLES:
        for role, path in known.items():
            if role in ROLES and role != "attention" and all(_linear(block, path) for block in blocks):
                found.setdefault(role, path)
    return found


def _linear(block: nn.Module, path: str) -> bool:
    try:
        part = block.get_submodule(path)
    except AttributeError:
        return False
    return isinstance(part, nn.Linear) and not isinstance(part, NonDynamicallyQuantizableLinear)


def _require_paths(blocks: list[nn.Module], roles: Mapping[str, str]) -> None:
    """Raise `ConfigError` for an unknown role, or if its path is not a linear layer in every block."""
    for role, path in roles.items():
        if role not in ROLES or not all(_linear(block, path) for block in blocks):
            raise ConfigError(
                f"the role {role!r} can't be at {path!r}",
                expected=f"one of {', '.join(ROLES)}, at an nn.Linear of every block",
            )


def _draw_anew(network: nn.Module, seed: int, name: str) -> None:
    """Draw fresh weights by the modules' own `reset_parameters`. Raises `ConfigError` if some would remain."""
    drawn: set[int] = set()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in network.modules():
            reset: Any = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
            if reset is not None:
                reset()
                drawn |= {id(one) for one in part.parameters()}
    kept = [path for path, one in network.named_parameters() if id(one) not in drawn]
    if kept:
        raise ConfigError(
            f"random:{name} can't be drawn: some of its modules have no reset_parameters()",
            got=", ".join(kept[:5]),
            do="give them one",
        )
