"""A self-contained task module: its folder holds a backbone of its own, so that it needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graftwork.backbones.word_vectors import WordVectorBackbone
from graftwork.core.backbone import Backbone
from graftwork.core.configured_methods import configured, method_from_config
from graftwork.core.method import THRESHOLDS_FACT, Setting
from graftwork.data.readers.word_vector_folder import write_folder
from graftwork.module.module_files import read_delta
from graftwork.module.module_place import CARRIED, OWN_BACKBONE
from graftwork.module.task_module import TaskModule, save_module
from graftwork.module.thresholds import with_thresholds
from graftwork.pretrained.model_folder import own_settings
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.stored_bits import BITS, STORED_AS
from graftwork.pretrained.write_folder import write_backbone
from graftwork.registry import kinds
from graftwork.ship.folding import LinearHead

SAME = ("run", "recipe", "backbone_seed", "data", "held_out", "compression")  # keys of module.json that are copied
NOT_MEASURED: Mapping[str, float] = {}  # scores of a module that was not measured yet


def save_standalone(
    module: TaskModule,
    folder: Path,
    backbone: Backbone,
    *,
    head: LinearHead | None = None,
    stored_as: str | None = None,
    precision: str | None = None,
) -> TaskModule:
    """Write `module` with `backbone` as its network to the new `folder`, which contains the network; return it, opened.

    With `head`, the new module is a `linear_probe` of the last block with that linear layer. Without it the module's
    own adapters and head are used, so `backbone` must have the same sites and width. `stored_as` is passed to
    `write_backbone`; `precision` is the one to compute in, by default the module's. The self-test has the texts of the
    module's, with the new predictions. `scores` are empty, as they are not measured yet.

    Raises `ConfigError` for a backbone that can't be written, `StorageError`.
    """
    told = module.description
    if isinstance(backbone, WordVectorBackbone):
        write_folder(folder / OWN_BACKBONE, backbone.vectors)
    else:
        write_backbone(backbone, folder / OWN_BACKBONE, stored_as=stored_as)
    precision = precision or told["precision"]
    opened = open_backbone(f"hf:{folder / OWN_BACKBONE}", precision=precision, device="cpu", seed=told["backbone_seed"])
    setting = Setting(module.task, kinds.get(module.task.kind), opened)
    if head is None:
        config, facts = dict(told["method"]), dict(told["facts"])
        delta = read_delta(module.folder, told["delta_sha256"])
    else:
        config, facts = (
            dict(configured("linear_probe", {}).config),
            {"block": str(opened.card.blocks)} | dict(head.facts),
        )
        delta = {"shares": _last(opened), "weight": head.weight, "bias": head.bias}
    thresholds = facts.pop(THRESHOLDS_FACT, None)
    fitted = with_thresholds(method_from_config(config).restore(setting, delta, facts), thresholds)
    examples = [replace(example, source=None) for example in module.self_test_examples()]
    about = {name: told[name] for name in SAME if name in told} | {
        "method": config,
        "precision": precision,
        "scores": dict(NOT_MEASURED),
        "trained_parameters": told["trained_parameters"],
        "backbone": asdict(replace(opened.card, id=CARRIED)),
    }
    save_module(folder, setting, fitted, about, examples, fitted.logits(examples))
    return TaskModule.load(folder, device="cpu")


def stored_bits(module: TaskModule) -> int:
    """Return how many bits each weight of the module's network has in its file."""
    told = module.description
    if told["backbone"]["id"] != CARRIED:
        return BITS[told["precision"]]
    how = own_settings(module.folder / OWN_BACKBONE).get(STORED_AS)
    return BITS.get(str(how), BITS[told["precision"]])


def _last(backbone: Backbone) -> Any:
    """Return the shares (L + 1,) of a probe that uses the last block alone."""
    import torch

    shares = torch.zeros(backbone.card.blocks + 1)
    shares[-1] = 1.0
    return shares
