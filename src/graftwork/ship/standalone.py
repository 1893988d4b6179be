"""A self-contained task module: its folder holds a backbone of its own, so that it needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graftwork.backbones.word_vectors import WordVectorBackbone
from graftwork.core.backbone import Backbone
from graftwork.core.configured_methods import configured, method_from_config
from graftwork.core.example import Example
from graftwork.core.method import THRESHOLDS_FACT, Setting
from graftwork.data.readers.word_vector_folder import write_folder
from graftwork.module.module_files import read_delta, read_self_test
from graftwork.module.module_place import CARRIED, OWN_BACKBONE
from graftwork.module.task_module import TaskModule, save_module
from graftwork.module.thresholds import with_thresholds
from graftwork.pretrained.model_folder import own_settings
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.stored_bits import BITS, STORED_AS
from graftwork.pretrained.write_folder import write_backbone
from graftwork.registry import kinds
from graftwork.ship.folding import LinearHead

SAME = ("run", "recipe", "backbone_seed", "data", "held_out", "compression")  # of module.json, kept
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
    """Write `module` on another network to the new `folder`, with that network inside; return it, opened.

    With `head`, the module is that linear layer on the output of `backbone`, a `linear_probe` of its last block.
    Without it the module's own adapters and head are on `backbone`, which has the sites and the width of the
    module's. `stored_as` is that of `write_backbone`, and `precision`, by default the module's, that in which the new
    one computes. The self-test has the texts of the module's, and the answers of the new one. `scores` are empty: they
    are not known before they are measured.

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
    examples = self_test_texts(module)
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
    """Return the bits of a number of the module's network where it is stored."""
    told = module.description
    if told["backbone"]["id"] != CARRIED:
        return BITS[told["precision"]]
    how = own_settings(module.folder / OWN_BACKBONE).get(STORED_AS)
    return BITS.get(str(how), BITS[told["precision"]])


def self_test_texts(module: TaskModule) -> list[Example]:
    """Return the inputs of a module's self-test, which are texts."""
    stored = read_self_test(module.folder)
    return [
        Example(f"selftest/{number}", {role: _restored(given) for role, given in inputs.items()})
        for number, inputs in enumerate(stored["inputs"])
    ]


def _restored(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def _last(backbone: Backbone) -> Any:
    """Return the shares (L + 1,) of the blocks of a probe that reads the last alone."""
    import torch

    shares = torch.zeros(backbone.card.blocks + 1)
    shares[-1] = 1.0
    return shares
