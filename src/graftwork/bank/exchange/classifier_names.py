"""The head of a transformers sequence classifier, taken from the tensors of an adapter's folder."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path

from torch import Tensor

from graftwork.bank.exchange.site_names import folder_of
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import safe_load
from graftwork.pretrained.classifier_layers import CLASSIFIERS, ClassifierLayers
from graftwork.pretrained.model_folder import weight_files


def classifier_of(family: str, where: Path) -> ClassifierLayers:
    """Return the classifier of an architecture. Raises `ConfigError` for an unknown one."""
    if family not in CLASSIFIERS:
        raise ConfigError(
            f"the classifier that transformers puts on {family!r} is not supported",
            where=str(where),
            expected=f"one of {', '.join(CLASSIFIERS)}",
        )
    return CLASSIFIERS[family]


def take_classifier(
    tensors: MutableMapping[str, Tensor], updates: Mapping[str, Tensor], family: str, backbone: str, where: Path
) -> tuple[str, dict[str, Tensor]]:
    """Remove the head from `tensors`, named as in the model; return its activation and its layers named as in a delta.

    `updates`, layer -> a change of its weight of the same shape, are added: a LoRA on a layer of the head.
    Raises `IncompatibleModule` where a layer is missing.
    """
    known = classifier_of(family, where)
    head = {}
    for ours, theirs in (("hidden", known.hidden), ("out", known.out)):
        for part in ("weight", "bias"):
            name = f"{theirs}.{part}"
            if name in tensors:
                head[f"head.{ours}.{part}"] = tensors.pop(name)
    if not known.own_hidden and "head.hidden.weight" not in head:
        head |= {f"head.hidden.{part}": tensor for part, tensor in _pooler(backbone, known.hidden).items()}
    missing = [
        f"{path}.{part}"
        for ours, path in (("hidden", known.hidden), ("out", known.out))
        for part in ("weight", "bias")
        if f"head.{ours}.{part}" not in head
    ]
    if missing:
        raise IncompatibleModule(
            "the head is incomplete",
            where=str(where),
            got=f"{', '.join(missing)} missing",
            expected=f"{known.hidden} and {known.out}",
            do="save these layers too: otherwise they are random each time the folder is loaded",
        )
    layers = {known.hidden: "head.hidden.weight", known.out: "head.out.weight"}
    for layer, update in updates.items():
        name = layers[layer]
        if head[name].shape != update.shape:
            raise IncompatibleModule(
                f"the LoRA on {layer} is for a layer of another shape",
                where=str(where),
                got=f"{update.shape[0]:,} x {update.shape[1]:,}",
                expected=" x ".join(f"{size:,}" for size in head[name].shape),
                do="name the backbone it was trained on",
            )
        head[name] = head[name] + update
    return known.activation, head


def _pooler(backbone: str, path: str) -> dict[str, Tensor]:
    """Load the pooler from the backbone's own folder; empty if there is none."""
    folder = folder_of(backbone)
    found: dict[str, Tensor] = {}
    for file in weight_files(folder) if folder else []:
        for name, tensor in safe_load(file).items():
            for part in ("weight", "bias"):
                if name == f"{path}.{part}" or name.endswith(f".{path}.{part}"):
                    found[part] = tensor.float().clone()
    return found
