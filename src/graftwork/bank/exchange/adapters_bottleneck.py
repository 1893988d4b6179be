"""Bottleneck-adapter folders of adapters (AdapterHub): adapter_config.json, adapter.safetensors and a head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from graftwork.bank.exchange.classifier_names import take_classifier
from graftwork.bank.exchange.exported_readme import write_readme
from graftwork.bank.exchange.imported_module import ForeignModule
from graftwork.bank.exchange.site_names import name_elsewhere, without_prefix
from graftwork.core.backbone import Backbone
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import require_finite, safe_load, write_json, write_tensors
from graftwork.methods.adapterhub import SITES
from graftwork.module.task_module import TaskModule
from graftwork.nn.activation import ACTIVATIONS
from graftwork.pretrained.model_json import checked_json
from graftwork.targets.classifier_head import NO_LAYER

FORMAT, VERSION = "adapters", "adapters.1.3.0"
CONFIG, HEAD_CONFIG = "adapter_config.json", "head_config.json"
LARGEST_SIZE = 16  # of a bottleneck, in multiples of the network's width
WEIGHTS, HEAD_WEIGHTS = "adapter.safetensors", "model_head.safetensors"
PICKLED = {WEIGHTS: "pytorch_adapter.bin", HEAD_WEIGHTS: "pytorch_model_head.bin"}
PARTS = ("attention", "mlp")
FORMER = (
    "attention_text_task_adapters",
    "attention_text_lang_adapters",
    "layer_text_task_adapters",
    "layer_text_lang_adapters",
)
RENAMED = {"swish": "silu", "leakyrelu": "leaky_relu"}
FORMER_RENAMED = {"gelu": "gelu_new", "gelu_orig": "gelu"}  # before version 3
FIXED: Mapping[str, Any] = {  # values that the arithmetic here assumes: the library's defaults
    "architecture": None, "ln_before": False, "ln_after": False, "is_parallel": False, "use_gating": False,
    "phm_layer": False, "original_ln_after": True, "cross_adapter": False,
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """The paths of the library's bottlenecks within a block, and the name of its model class with heads."""

    attention: str
    mlp: str
    model: str


FAMILIES: Mapping[str, Family] = {
    "bert": Family("attention.output", "output", "BertAdapterModel"),
    "roberta": Family("attention.output", "output", "RobertaAdapterModel"),
    "xlm-roberta": Family("attention.output", "output", "XLMRobertaAdapterModel"),
    "electra": Family("attention.output", "output", "ElectraAdapterModel"),
    "distilbert": Family("attention_adapters", "output_adapters", "DistilBertAdapterModel"),
}


def is_ours(config: Mapping[str, Any]) -> bool:
    """Return whether an adapter_config.json is from this library."""
    return "config" in config and "model_type" in config


def read(folder: Path, backbone: Backbone) -> ForeignModule:
    """Read a bottleneck adapter and its head. Raises `ConfigError` if it can't be expressed, `IncompatibleModule`."""
    config = checked_json(folder / CONFIG)
    where = folder / CONFIG
    if config["model_type"] != backbone.card.family:
        raise IncompatibleModule(
            "these adapters are for another architecture",
            where=str(where),
            got=f"{backbone.card.family}, of {backbone.card.id}",
            expected=config["model_type"],
        )
    settings, factor = _settings(config, where)
    family, parts = _family(backbone, where), settings["parts"].split("+")
    file, head_file = (_weights(folder, name) for name in (WEIGHTS, HEAD_WEIGHTS))
    stored = safe_load(file)
    require_finite(stored, file)
    tensors = {_current(name): tensor.float() for name, tensor in stored.items()}
    known = {
        f"{block}.{getattr(family, part)}.adapters.{config['name']}": (part, place)
        for place, block in enumerate(backbone.sites("block"))
        for part in parts
    }
    found: dict[tuple[str, int], dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        path, tail = _split(name)
        site = without_prefix(path, known)
        if site is None:
            raise IncompatibleModule(
                f"{backbone.card.id} has no place for {name!r}",
                where=str(file),
                do="name the backbone it was trained on",
            )
        found.setdefault(known[site], {})[tail] = tensor
    size = max((part["adapter_down.0.weight"].shape[0] for part in found.values()), default=0)
    if size > LARGEST_SIZE * backbone.card.width:
        raise IncompatibleModule(
            "the bottleneck is far wider than the network",
            where=str(file),
            got=f"{size:,}",
            expected=f"at most {LARGEST_SIZE * backbone.card.width:,}",
        )
    delta: dict[str, Tensor] = {}
    for part in parts:
        for place, site in enumerate(backbone.sites(SITES[part, settings["reads"]])):
            name = f"adapters.{site.replace('.', '/')}.bottleneck"
            delta |= _filled(name, found.get((part, place)), size, factor, backbone.card.width, file)
    activation, head, labels = _read_head(folder, head_file, backbone)
    return ForeignModule(
        format=FORMAT,
        method="adapterhub",
        settings=settings | {"size": size, "head": activation},
        delta=delta | head,
        labels=labels,
        backbone=config.get("model_name") or "",
        files=(where, file, folder / HEAD_CONFIG, head_file),
        trained_parameters=sum(t.numel() for t in (*stored.values(), *safe_load(head_file).values())),
    )


def _settings(config: Mapping[str, Any], where: Path) -> tuple[dict[str, Any], float]:
    """Return the method's settings except size and head, and the constant scale of its output."""
    inner = config["config"]
    if not isinstance(inner, dict) or "non_linearity" not in inner:
        raise ConfigError("only bottleneck adapters can be imported", where=str(where), got=str(inner)[:200])
    odd = [f"{key} {inner[key]!r}" for key, value in FIXED.items() if inner.get(key, value) != value]
    normed = bool(inner.get("original_ln_before", False))
    if normed and inner.get("residual_before_ln", True) is not True:
        odd.append(f"residual_before_ln {inner['residual_before_ln']!r}")
    chosen = str(inner["non_linearity"]).lower()
    chosen = chosen if "version" in config else FORMER_RENAMED.get(chosen, chosen)
    chosen = RENAMED.get(chosen, chosen)
    odd += [] if chosen in ACTIVATIONS else [f"non_linearity {chosen!r}"]
    parts = [part for part, key in zip(PARTS, ("mh_adapter", "output_adapter"), strict=True) if inner.get(key)]
    odd += [] if parts else ["no adapter after attention or feed-forward parts"]
    if odd:
        raise ConfigError(
            "adapters of this kind can't be imported",
            where=str(where),
            got=", ".join(odd),
            do="train it again here: --method adapter or adapterhub",
        )
    scaling = inner.get("scaling", 1.0)
    factor = float(scaling) if isinstance(scaling, int | float) else 1.0  # a learned scale is among the tensors
    return {"parts": "+".join(parts), "reads": "norm" if normed else "map", "activation": chosen}, factor


def _family(backbone: Backbone, where: Path) -> Family:
    if backbone.card.family not in FAMILIES:
        raise ConfigError(
            f"adapters on the architecture {backbone.card.family!r} are not supported",
            where=str(where),
            expected=f"one of {', '.join(FAMILIES)}",
        )
    return FAMILIES[backbone.card.family]


def _weights(folder: Path, name: str) -> Path:
    """Return the path of the safetensors file, or of the older pickled file."""
    file = folder / name if (folder / name).is_file() else folder / PICKLED[name]
    if name == HEAD_WEIGHTS and not file.is_file():
        raise ConfigError(
            "the adapters have no prediction head",
            where=str(folder),
            expected=f"{HEAD_CONFIG} and {HEAD_WEIGHTS}",
            do="save it too: model.save_head(folder, name, use_safetensors=True)",
        )
    return file


def _current(name: str) -> str:
    """Return the path of a tensor as named since version 2."""
    for former in FORMER:
        name = name.replace(former, "adapters")
    return name


def _split(name: str) -> tuple[str, str]:
    """Split a name into the path of a bottleneck and the name of a tensor in it, "" if unknown."""
    for tail in ("adapter_down.0.weight", "adapter_down.0.bias", "adapter_up.weight", "adapter_up.bias", "scaling"):
        if name.endswith(f".{tail}"):
            return name.removesuffix(f".{tail}"), tail
    return name, ""


def _filled(
    name: str, part: Mapping[str, Tensor] | None, size: int, factor: float, width: int, where: Path
) -> dict[str, Tensor]:
    """Return a bottleneck padded with zeros to the common size; all zeros for a block without one."""
    if part is None:
        shapes = {"down.weight": (size, width), "down.bias": (size,), "up.weight": (width, size), "up.bias": (width,)}
        return {f"{name}.{key}": torch.zeros(shape) for key, shape in shapes.items()}
    try:
        down, d, up, u = (part[f"adapter_{key}"] for key in ("down.0.weight", "down.0.bias", "up.weight", "up.bias"))
    except KeyError as missing:
        raise IncompatibleModule(
            f"the tensor {missing} of {name} is missing", where=str(where), do="save the complete adapter again"
        ) from None
    scale = part["scaling"] * factor if "scaling" in part else torch.tensor(factor)  # (), (1,) or (width,)
    more = size - down.shape[0]
    return {
        f"{name}.down.weight": pad(down, (0, 0, 0, more)),
        f"{name}.down.bias": pad(d, (0, more)),
        f"{name}.up.weight": pad(scale.reshape(-1, 1) * up, (0, more)),
        f"{name}.up.bias": scale * u,
    }


def _read_head(folder: Path, file: Path, backbone: Backbone) -> tuple[str, dict[str, Tensor], tuple[str, ...]]:
    """Read the hidden layer's activation, the layers named as in a delta, and the labels."""
    config = checked_json(folder / HEAD_CONFIG)
    inner, where = config.get("config"), folder / HEAD_CONFIG
    tensors = {name: tensor.float() for name, tensor in safe_load(file).items()}
    labels = _in_order((inner or config).get("label2id") or {})
    if inner is None:  # a classifier of transformers itself
        return *take_classifier(tensors, {}, backbone.card.family, backbone.card.id, file), labels
    prefix = f"heads.{config['name']}."
    layers = sorted({int(name.removeprefix(prefix).partition(".")[0]) for name in tensors if name.startswith(prefix)})
    activation = str(inner.get("activation_function") or NO_LAYER).lower() if len(layers) == 2 else NO_LAYER
    activation = RENAMED.get(activation, activation)
    odd = [f"head_type {inner['head_type']}"] if inner["head_type"] != "classification" else []
    odd += ["use_pooler"] if inner.get("use_pooler") else []
    odd += [f"{len(layers)} layers"] if len(layers) not in (1, 2) else []
    odd += [f"activation_function {activation}"] if len(layers) == 2 and activation not in ACTIVATIONS else []
    if odd:
        raise ConfigError(
            "heads of this kind can't be imported",
            where=str(where),
            got=", ".join(odd),
            do="save it with a classification head, or train it again here",
        )
    head = {}
    for ours, layer in zip(("hidden", "out")[-len(layers) :], layers, strict=True):
        weight = tensors[f"{prefix}{layer}.weight"]
        head[f"head.{ours}.weight"] = weight
        head[f"head.{ours}.bias"] = tensors.get(f"{prefix}{layer}.bias", torch.zeros(weight.shape[0]))
    return activation, head, labels


def _in_order(label2id: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels in the order of their class numbers, which may be strings. Raises `ValueError`."""
    numbers = {label: int(number) for label, number in label2id.items()}
    if sorted(numbers.values()) != list(range(len(numbers))):
        raise ValueError("label2id does not number the classes from 0, each once")
    return tuple(sorted(numbers, key=lambda label: numbers[label]))


def write(module: TaskModule, folder: Path) -> None:
    """Write `folder` for `load_adapter(…, use_safetensors=True)`. Raises `ConfigError` for unsupported tasks."""
    method, backbone = module.description["method"], module.backbone
    _require_exportable(method, module.folder)
    assert backbone is not None
    card, family, name = backbone.card, _family(backbone, module.folder), module.task.name.replace(".", "_")
    whole = method["name"] == "adapterhub"
    parts = method["parts"].split("+") if whole else ["mlp"]
    reads, inner = (method["reads"], ".bottleneck") if whole else ("map", "")
    delta, tensors = safe_load(module.folder / "delta.safetensors"), {}
    for part in parts:
        sites = zip(backbone.sites("block"), backbone.sites(SITES[part, reads]), strict=True)
        for block, site in sites:
            path = f"{block}.{getattr(family, part)}.adapters.{name}"
            for ours, theirs in (("down", "adapter_down.0"), ("up", "adapter_up")):
                for end in ("weight", "bias"):
                    stored = delta[f"adapters.{site.replace('.', '/')}{inner}.{ours}.{end}"]
                    tensors[f"{path}.{theirs}.{end}"] = stored
    about = {"name": name, "model_type": card.family, "model_class": family.model, "hidden_size": card.width}
    about |= {"model_name": name_elsewhere(card.id), "version": VERSION}
    shape = {
        "mh_adapter": "attention" in parts, "output_adapter": "mlp" in parts, "original_ln_before": reads == "norm",
        "original_ln_after": True, "residual_before_ln": True, "ln_before": False, "ln_after": False,
        "non_linearity": method.get("activation", "gelu"), "reduction_factor": _factor(card.width, method["size"]),
        "scaling": 1.0, "leave_out": [],
    }  # fmt: skip
    write_json(folder / CONFIG, about | {"config": shape})
    write_tensors(folder / WEIGHTS, tensors)
    if whole:
        _write_head(folder, delta, method["head"], about, module)
    write_readme(folder, FORMAT, module, whole=whole)


def _require_exportable(method: Mapping[str, Any], where: Path) -> None:
    if method["name"] not in ("adapter", "adapterhub"):
        raise ConfigError(
            f"a task trained with {method['name']} can't be exported to adapters",
            where=str(where),
            expected="one trained with adapter:placement=pfeiffer or adapterhub",
        )
    if method.get("placement") == "houlsby":
        raise ConfigError(
            "a task trained with Houlsby's placement can't be exported to adapters: it trained the blocks' norms too,"
            " for which that format has no place",
            where=str(where),
            do="train the task with adapter:placement=pfeiffer",
        )


def _factor(width: int, size: int) -> float:
    """Return the reduction factor for which the library's int(width // factor) is `size`."""
    exact = width / size
    return exact if int(width // exact) == size else width / (size + 0.5)


def _write_head(
    folder: Path, delta: Mapping[str, Tensor], activation: str, about: Mapping[str, Any], module: TaskModule
) -> None:
    layers = {"hidden": 1, "out": 4} if activation != NO_LAYER else {"out": 1}  # dropout and activation count too
    prefix = f"heads.{about['name']}"
    write_tensors(
        folder / HEAD_WEIGHTS,
        {
            f"{prefix}.{place}.{end}": delta[f"head.{ours}.{end}"]
            for ours, place in layers.items()
            for end in ("weight", "bias")
        },
    )
    head = {
        "head_type": "classification", "num_labels": len(module.task.labels), "layers": len(layers),
        "activation_function": None if activation == NO_LAYER else activation, "use_pooler": False, "bias": True,
        "label2id": {label: number for number, label in enumerate(module.task.labels)}, "dropout_prob": None,
    }  # fmt: skip
    write_json(folder / HEAD_CONFIG, dict(about) | {"config": head})
