"""LoRA folders of peft: adapter_config.json and adapter_model.safetensors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from graftwork.bank.exchange.classifier_names import classifier_of, take_classifier
from graftwork.bank.exchange.exported_readme import write_readme
from graftwork.bank.exchange.imported_module import ForeignModule
from graftwork.bank.exchange.site_names import name_elsewhere, targets, without_prefix
from graftwork.core.backbone import Backbone
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import require_finite, safe_load, write_json, write_tensors
from graftwork.methods.peft_lora import MAPS
from graftwork.module.task_module import TaskModule
from graftwork.nn.sites import site_size
from graftwork.pretrained.classifier_layers import CLASSIFIERS
from graftwork.pretrained.model_json import checked_json

FORMAT = "peft"
CONFIG, WEIGHTS, PICKLED = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
LARGEST_RANK = 256  # or the network's width, if larger
PREFIX = "base_model.model."
MATRIX = re.compile(r"(.+)\.lora_([AB])\.weight")
APPLIED = (  # settings that are applied here, or do not change predictions; others are refused
    "auto_mapping", "base_model_name_or_path", "bias", "corda_config", "ensure_weight_tying", "eva_config",
    "exclude_modules", "fan_in_fan_out", "inference_mode", "init_lora_weights", "layers_pattern",
    "layers_to_transform", "loftq_config", "lora_alpha", "lora_dropout", "lora_ga_config", "megatron_config",
    "megatron_core", "modules_to_save", "peft_type", "peft_version", "qalora_group_size", "r", "rank_pattern",
    "revision", "runtime_config", "target_modules", "task_type", "use_rslora",
)  # fmt: skip
STARTS = (True, False, "gaussian", "eva", "orthogonal")  # of the matrices; others change the network's own weights


def is_ours(config: Mapping[str, Any]) -> bool:
    """Return whether an adapter_config.json is from peft."""
    return "peft_type" in config


def read(folder: Path, backbone: Backbone) -> ForeignModule:
    """Read a LoRA and its classifier. Raises `ConfigError` for what can't be expressed, `IncompatibleModule`."""
    config = checked_json(folder / CONFIG)
    _require_plain(config, folder / CONFIG)
    file = folder / WEIGHTS if (folder / WEIGHTS).is_file() else folder / PICKLED
    stored = safe_load(file)
    require_finite(stored, file)
    tensors = {
        name.removeprefix(PREFIX).replace(".modules_to_save.", "."): tensor.float() for name, tensor in stored.items()
    }
    roles = {site: role for role in MAPS for site in backbone.sites(role)}
    known = CLASSIFIERS.get(backbone.card.family)
    head_layers = (known.hidden, known.out) if known else ()  # a LoRA on these is added to the head's own weights
    matrices = _take_pairs(tensors, roles, head_layers, backbone, file)
    of_head = {layer: matrices.pop(layer) for layer in head_layers if layer in matrices}
    rank = max(pair["A"].shape[0] for pair in matrices.values())
    if rank > max(LARGEST_RANK, backbone.card.width):
        raise IncompatibleModule(
            "the rank is larger than the network is wide",
            where=str(file),
            got=f"{rank:,}",
            expected=f"at most {max(LARGEST_RANK, backbone.card.width):,}",
        )
    used = [role for role in MAPS if role in {roles[site] for site in matrices}]
    stabilised = bool(config.get("use_rslora"))
    alpha = float(config["lora_alpha"]) * (math.sqrt(rank) if stabilised else 1.0)
    delta: dict[str, Tensor] = {}
    for site in (site for role in used for site in backbone.sites(role)):
        delta |= _filled(site, matrices.get(site), rank, backbone, stabilised)
    left = _unprefixed(tensors, backbone)
    updates = {layer: _update(pair, float(config["lora_alpha"]), stabilised) for layer, pair in of_head.items()}
    activation, head = take_classifier(left, updates, backbone.card.family, backbone.card.id, file)
    if left:
        raise IncompatibleModule(
            "the file has weights of neither LoRA nor the classifier",
            where=str(file),
            got=", ".join(sorted(left)[:5]),
            do="save it without other modules than the classifier",
        )
    return ForeignModule(
        format=FORMAT,
        method="peft_lora",
        settings={"maps": "+".join(used), "rank": rank, "alpha": alpha, "head": activation},
        delta=delta | head,
        labels=(),
        backbone=config.get("base_model_name_or_path") or "",
        files=(folder / CONFIG, file),
        trained_parameters=sum(tensor.numel() for tensor in stored.values()),
    )


def _take_pairs(
    tensors: dict[str, Tensor], roles: Mapping[str, str], head_layers: Sequence[str], backbone: Backbone, file: Path
) -> dict[str, dict[str, Tensor]]:
    """Remove the matrices from `tensors`; return A and B by site or layer of the head. Raises `IncompatibleModule`."""
    matrices: dict[str, dict[str, Tensor]] = {}
    for name in list(tensors):
        matched = MATRIX.fullmatch(name)
        site = without_prefix(matched[1], (*roles, *head_layers)) if matched else None
        if matched and site is None:
            raise IncompatibleModule(
                f"{backbone.card.id} has no map {matched[1]!r}",
                where=str(file),
                do="name the backbone it was trained on; if that is it, train it again without this map: in peft,"
                f" exclude_modules={[matched[1]]}",
            )
        if matched and site:
            matrices.setdefault(site, {})[matched[2]] = tensors.pop(name)
    if any(pair.keys() != {"A", "B"} for pair in matrices.values()) or not matrices.keys() & roles.keys():
        raise IncompatibleModule(
            "a matrix A or B of an adapted map is missing", where=str(file), do="save the adapter again, whole"
        )
    return matrices


def _require_plain(config: Mapping[str, Any], where: Path) -> None:
    """Raise `ConfigError` for settings that would give other predictions here."""
    if config.get("peft_type") != "LORA":
        raise ConfigError(f"only LoRA can be imported, not {config.get('peft_type')}", where=str(where))
    if config.get("task_type") not in ("SEQ_CLS", None):
        raise ConfigError(
            "only classifiers of texts can be imported",
            where=str(where),
            got=f"task_type {config.get('task_type')}",
            expected="task_type SEQ_CLS or none, with its classifier among the saved modules",
            do="train it on a model for sequence classification",
        )
    odd = [f"{key} {value!r}" for key, value in config.items() if key not in APPLIED and value]
    odd += [f"bias {config['bias']!r}"] if config.get("bias", "none") != "none" else []
    start = config.get("init_lora_weights", True)
    odd += [f"init_lora_weights {start!r}"] if start not in STARTS else []
    if odd:
        raise ConfigError(
            "this LoRA has settings that are not supported",
            where=str(where),
            got=", ".join(odd),
            expected="y + (alpha / r) B A x and nothing else",
            do="train it without these settings, or again here: --method peft_lora",
        )


def _filled(
    site: str, pair: Mapping[str, Tensor] | None, rank: int, backbone: Backbone, stabilised: bool
) -> dict[str, Tensor]:
    """Return A and B of a site at the common rank and scale: smaller ranks zero-padded, a missing pair all zeros."""
    name = f"adapters.{site.replace('.', '/')}"
    if pair is None:
        inward, outward = site_size(backbone.module.get_submodule(site))
        return {f"{name}.a": torch.zeros(rank, inward), f"{name}.b": torch.zeros(outward, rank)}
    own = pair["A"].shape[0]
    ratio = math.sqrt(rank / own) if stabilised else rank / own  # its alpha / r, relative to ours
    b = pair["B"] * ratio if own != rank else pair["B"]
    return {f"{name}.a": pad(pair["A"], (0, 0, 0, rank - own)), f"{name}.b": pad(b, (0, rank - own))}


def _update(pair: Mapping[str, Tensor], alpha: float, stabilised: bool) -> Tensor:
    """Return the change of a layer's weight, (alpha / r) B A."""
    rank = pair["A"].shape[0]
    return pair["B"] @ pair["A"] * (alpha / (math.sqrt(rank) if stabilised else rank))


def _unprefixed(tensors: Mapping[str, Tensor], backbone: Backbone) -> dict[str, Tensor]:
    """Strip the network's name, which precedes a pooler, from the remaining (classifier) tensors."""
    prefix = f"{getattr(backbone.module, 'base_model_prefix', '')}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


def write(module: TaskModule, folder: Path) -> None:
    """Write `folder` for `PeftModel.from_pretrained`. Raises `ConfigError` for a task that peft can't hold."""
    method, backbone = module.description["method"], module.backbone
    if method["name"] not in ("lora", "peft_lora") or backbone is None:
        raise ConfigError(
            f"a task trained with {method['name']} can't be exported to peft",
            where=str(module.folder),
            expected="one trained with lora or peft_lora",
        )
    delta = safe_load(module.folder / "delta.safetensors")
    classifier = method["name"] == "peft_lora"
    prefix = f"{backbone.module.base_model_prefix}." if classifier else ""
    tensors, sites = {}, []
    for name, tensor in delta.items():
        path, _, part = name.rpartition(".")
        if path.startswith("adapters."):
            site = path.removeprefix("adapters.").replace("/", ".")
            sites += [site] if part == "a" else []
            tensors[f"{PREFIX}{prefix}{site}.lora_{part.upper()}.weight"] = tensor
    saved: list[str] = []
    if classifier:
        layers, saved = _classifier(delta, method["head"], backbone, module.folder)
        tensors |= layers
    names = [name for name, _ in backbone.module.named_modules()]
    write_json(folder / CONFIG, _config(method, backbone.card.id, targets(sites, names), saved))
    write_tensors(folder / WEIGHTS, tensors)
    write_readme(folder, FORMAT, module, whole=classifier)


def _classifier(
    delta: Mapping[str, Tensor], activation: str, backbone: Backbone, where: Path
) -> tuple[dict[str, Tensor], list[str]]:
    """Return the head under its names in peft, and the modules that peft must save and load with the LoRA."""
    known = classifier_of(backbone.card.family, where)
    if activation != known.activation:
        raise ConfigError(
            f"the head has another activation than transformers' classifier of {backbone.card.family}",
            where=str(where),
            got=activation,
            expected=known.activation,
            do="train it with the activation of its architecture",
        )
    prefix = PREFIX if known.own_hidden else f"{PREFIX}{backbone.module.base_model_prefix}."
    layers = {f"{prefix}{known.hidden}.{part}": delta[f"head.hidden.{part}"] for part in ("weight", "bias")}
    layers |= {f"{PREFIX}{known.out}.{part}": delta[f"head.out.{part}"] for part in ("weight", "bias")}
    return layers, sorted({known.hidden.partition(".")[0], known.out.partition(".")[0]})


def _config(method: Mapping[str, Any], backbone: str, target_modules: list[str], saved: list[str]) -> dict[str, Any]:
    return {
        "peft_type": "LORA",
        "task_type": "SEQ_CLS" if saved else "FEATURE_EXTRACTION",
        "base_model_name_or_path": name_elsewhere(backbone),
        "r": method["rank"],
        "lora_alpha": method["alpha"],
        "lora_dropout": 0.0,
        "target_modules": target_modules,
        "modules_to_save": saved or None,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
