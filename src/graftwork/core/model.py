"""A model: a frozen backbone, the adapters plugged into it, and the head of one task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.utils.hooks import RemovableHandle

from graftwork.core.backbone import Backbone, Features, Inputs, device_of, learns_like
from graftwork.core.kind import Kind
from graftwork.core.length_buckets import read_in_buckets
from graftwork.core.task import Task
from graftwork.core.writing import TOKENS, TextWriter, reading_part
from graftwork.errors import ConfigError
from graftwork.nn.short_attention import register_key_hook

At = Literal["output", "input", "attention"]  # what an adapter replaces at a site; "attention": its keys and values


def join_towers(pooled: Tensor, towers: int) -> Tensor:
    """Join pooled features (S, R) to (B, P), each row scaled to unit mean square; two towers give [|u - v|, u * v].

    Sentence encoders are trained at this scale, and a head can then share the network's learning rate. The pair
    encodes differences and similarities, symmetric in the two texts (after Conneau et al. 2017, arXiv:1705.02364, and
    Reimers & Gurevych 2019, arXiv:1908.10084); a linear layer on u * v can represent the cosine.
    """
    unit: Tensor = normalize(pooled, dim=-1).mul_(pooled.shape[-1] ** 0.5)
    if towers == 1:
        return unit
    u, v = unit[0::2], unit[1::2]  # each (B, D)
    return torch.cat([(u - v).abs(), u * v], dim=-1)


def joined_width(width: int, towers: int) -> int:
    """Return P, the width that `join_towers` gives for R."""
    return width if towers == 1 else 2 * width


@runtime_checkable
class Stacks(Protocol):
    """An output or input adapter that can be stacked with others of its shape: each row of a batch uses its task's."""

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights that `adapt` takes."""

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Apply K adapters in parallel to x (K, N, in) and y (K, N, out), with stacked weights (K, …) -> (K, N, out).

        The result equals `forward` of each adapter, in the dtype of `y`, which is also that of the weights.
        """


@runtime_checkable
class Folds(Protocol):
    """An adapter that can be merged into the weights of its site, a linear layer or a norm."""

    def fold(self, site: nn.Module, at: At) -> str:
        """Merge it into the weights of `site`, in their dtype; return "", or the reason if nothing could be changed."""


def _adapt_output(adapter: nn.Module, site: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Adapt `output` (S, T, out) of `site` for `args[0]` (S, T, in)."""
    adapted: Tensor = adapter(args[0], output)
    return adapted


def _adapt_input(adapter: nn.Module, site: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return `args` of `site` with the first one, (S, T, in), adapted."""
    return (adapter(args[0], args[0]), *args[1:])


def hook_into(site: nn.Module, adapter: nn.Module, at: At) -> RemovableHandle:
    """Hook `adapter` into the output, input or attention of `site`; removing the handle undoes it.

    The hooks are not closures, so that deepcopy of a network copies its adapters too.
    """
    if at == "attention":
        return register_key_hook(site, adapter)
    if at == "input":
        return site.register_forward_pre_hook(partial(_adapt_input, adapter))
    return site.register_forward_hook(partial(_adapt_output, adapter))


def place_of(name: str, at: At) -> str:
    """Return the name of an adapter's place: the site's name, with `:input` or `:attention` unless it is the output."""
    return name if at == "output" else f"{name}:{at}"


def site_of(place: str) -> tuple[str, At]:
    """Return the site's name and the `At` from a `place` that `place_of` returned."""
    name, _, at = place.partition(":")
    return name, cast("At", at or "output")


class Model(nn.Module):
    """A backbone, adapters and a head. `delta()` is all that requires grad: it is trained, counted, stored and priced.

    Trained weights are initialised on the CPU and then moved, so that a seed gives the same values on every device.
    """

    def __init__(self, backbone: Backbone, kind: Kind, task: Task, towers: int):
        super().__init__()
        self.backbone, self.task, self.towers = backbone, task, towers
        self.network = backbone.module
        self.adapters = nn.ModuleDict()  # name from `place_of`, with slashes for dots -> adapter
        self.head: nn.Module = nn.Identity()  # a `TextWriter` has its own head
        if not isinstance(backbone, TextWriter):
            read = backbone.card.read_widths(kind.per_word)[-1]
            self.head = kind.build_head(task, joined_width(read, towers)).to(self.device)
        self.start = backbone.card.blocks  # the lowest block that changes; L: only the head does
        self._shared = True  # True if the modules are shared with other users
        self.rates: dict[str, float] = {}  # parameter -> factor on the learning rate; missing: 1
        self._hooks: list[RemovableHandle] = []

    def plug(self, role: str, make: Callable[[nn.Module], nn.Module], at: At = "output") -> None:
        """Plug an adapter, built by `make(site)`, into every site of `role`: `adapter(x, y)` replaces y.

        At "output" x is the input and y the output of the site; at "input" both are the input. At "attention", for the
        role "attention" only, `adapter(key, value)` replaces both, (S, H, T, d) each, and may put K - T further ones
        before them: (S, H, K, d) each. Raises `ConfigError` if the backbone has no such site, or if a place has an
        adapter already.
        """
        if not self.backbone.sites(role):
            raise ConfigError(
                f"backbone {self.backbone.card.id!r} has no {role!r} to adapt",
                do="use a method that changes other parts: full, top_layers or linear_probe",
            )
        if self._shared:
            self._move_to(self.backbone.twin())
        for name, site in self.backbone.sites(role).items():
            place = place_of(name, at).replace(".", "/")
            if place in self.adapters:
                raise ConfigError(
                    "two adapters at one place", where=f"{name}, its {at}", do="combine them into one adapter"
                )
            adapter = self.adapters[place] = make(site).to(self.device)
            self._hooks.append(hook_into(site, adapter, at))
        self.start = 0

    def own_blocks(self, first: int, decay: float = 1.0) -> None:
        """Train a private copy of blocks `first … L - 1`; if `first` is 0, of everything, embeddings included.

        Each block has `decay` times the learning rate of the block above it, and the embeddings have the lowest. In an
        encoder-decoder the decoder's blocks are counted after the encoder's, and the highest block of each has the
        full rate. Blocks that share their weights are trained together, from the lowest one on.
        """
        assert not self._hooks, "blocks are owned before adapters are plugged into them"
        self._move_to(self.backbone.copy())
        blocks = list(self.backbone.sites("block"))
        below = {path: len(blocks) - 1 - place for place, path in enumerate(blocks)}
        writes = isinstance(self.backbone, TextWriter)
        below = dict(self.backbone.below_top) if isinstance(self.backbone, TextWriter) else below
        self.rates = _decaying(self.network, below, decay, learns_like(self.backbone))
        self.train_from(first)
        for table in self.backbone.sites("embedding").values():
            if first == 0 and isinstance(table, nn.Embedding) and not writes:  # a writer's head may be it too
                table.sparse = True  # only rows used in a batch have a gradient

    def train_from(self, first: int) -> None:
        """From now on train only blocks `first … L - 1` of the private copy, or all of it for 0; freeze the rest."""
        assert not self._shared, "only blocks of its own are trained"
        self.start = 0 if self.backbone.card.shared_blocks and first < self.backbone.card.blocks else first
        self.network.requires_grad_(first == 0)
        for block in list(self.backbone.sites("block").values())[self.start :]:
            block.requires_grad_(True)

    def freeze_sites(self, role: str) -> None:
        """Freeze the sites of `role`: they keep their weights and are excluded from the delta."""
        assert not self._shared, "what is shared is frozen anyway"
        for site in self.backbone.sites(role).values():
            site.requires_grad_(False)

    def share_frozen_weights(self, backbone: Backbone) -> None:
        """Use the frozen weights of `backbone`, of which this model has a copy, so that memory holds them once."""
        shared = dict(backbone.module.named_modules())
        for path, module in self.network.named_modules():
            for name, weight in module._parameters.items():
                if weight is not None and not weight.requires_grad:
                    module._parameters[name] = shared[path]._parameters[name]

    def _move_to(self, backbone: Backbone) -> None:
        self.backbone, self.network, self._shared = backbone, backbone.module, False

    def unplug(self) -> None:
        """Remove every adapter. The backbone is bit for bit as before: its weights were not changed."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.adapters.clear()

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return device_of(self.network)

    @property
    def prefix(self) -> int | None:
        """The depth up to which nothing changes, so that hidden states can be cached; None if that is 0 or L.

        Also None if the blocks share their weights: the network is then computed in full.
        """
        card = self.backbone.card
        if not 0 < self.start < card.blocks or card.shared_blocks:
            return None
        return min(self.start, reading_part(self.backbone).card.blocks)  # a decoder's states depend on the written text

    def forward(self, inputs: Inputs, entering: Tensor | None = None) -> Tensor:
        """Compute logits (B, C), or (W, C) for words, from inputs (S, T) and maybe the states entering block `prefix`.

        For a `TextWriter`: the log-probabilities (S, U) of the target tokens (S, U) in `inputs[TOKENS]`.
        """
        if isinstance(self.backbone, TextWriter):
            read = self.read({name: given for name, given in inputs.items() if name != TOKENS}, entering)
            return self.backbone.log_probabilities(read, inputs["attention_mask"], inputs[TOKENS])
        logits: Tensor = self.head(self.joined(inputs, entering))
        return logits

    def joined(self, inputs: Inputs, entering: Tensor | None = None) -> Features:
        """Compute the input of the head: the network's features, with towers joined in `pooled` (B, P), or (W, P)."""
        start = self.start if entering is not None else 0
        features = read_in_buckets(self.backbone, inputs, start, entering, self.towers)
        return Features(features.sequence, features.mask, join_towers(features.pooled, self.towers))

    def read(self, inputs: Inputs, entering: Tensor | None = None) -> Tensor:
        """Compute the output (S, T, D) of the backbone, or of a `TextWriter`'s encoder; `entering` as in `forward`."""
        start = (self.prefix or 0) if entering is not None else 0
        return reading_part(self.backbone).features(inputs, start, entering).sequence

    def delta(self) -> dict[str, nn.Parameter]:
        """Return every trainable parameter by name."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}

    def tables(self) -> list[str]:
        """Return the names of trained embedding tables, whose gradients are sparse."""
        return [
            f"{path}.weight"
            for path, module in self.named_modules()
            if isinstance(module, nn.Embedding) and module.sparse and module.weight.requires_grad
        ]

    def load_delta(self, delta: dict[str, Tensor]) -> None:
        """Copy stored values into the trainable parameters. Raises `ConfigError` if names or shapes differ."""
        own = self.delta()
        if own.keys() != delta.keys():
            odd = sorted(own.keys() ^ delta.keys())
            raise ConfigError(
                "the stored weights do not belong to this method and backbone",
                got=", ".join(odd[:5]),
                do="use the method and the backbone that module.json names",
            )
        for name, parameter in own.items():
            if parameter.shape != delta[name].shape:
                raise ConfigError(
                    f"the stored weights have another shape than those of this method and backbone, in {name}",
                    got=str(tuple(delta[name].shape)),
                    expected=str(tuple(parameter.shape)),
                )
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(delta[name])


def _decaying(
    network: nn.Module, blocks: Mapping[str, int], decay: float, placed: Mapping[str, str]
) -> dict[str, float]:
    """Return parameter -> factor on the learning rate: 1 for the highest block, times `decay` for each block below.

    `blocks` maps the path of a block to the number of blocks above it. A parameter outside the blocks has the factor of
    the part that `placed` gives for it, else of the block that is registered before it. Parameters that come before all
    blocks, such as embeddings, have the lowest factor.
    """
    rates = {}
    share = decay ** (max(blocks.values(), default=-1) + 1)
    for name, _ in network.named_parameters():
        above = next((above for path, above in blocks.items() if name.startswith(f"{path}.")), None)
        if above is not None:
            share = decay**above
        rates[name] = share
    for path, like in placed.items():
        known = next(share for name, share in rates.items() if name.startswith(f"{like}."))
        rates |= {name: known for name in rates if name.startswith(f"{path}.")}
    return {f"network.{name}": share for name, share in rates.items()}
