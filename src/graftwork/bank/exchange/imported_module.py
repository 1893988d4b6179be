"""Task modules imported from another library: same predictions, without scores or costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from graftwork.core.backbone import Backbone, towers_of
from graftwork.core.configured_methods import configured
from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.ragged import flat
from graftwork.core.task import Task
from graftwork.errors import ConfigError, IncompatibleModule, clip
from graftwork.io.files import file_digest, write_text
from graftwork.module.inputs import asking
from graftwork.module.task_module import save_module
from graftwork.registry import kinds
from graftwork.train.loop import Attaches, build_model

KIND = "classification"
TRIED = (  # self-test inputs of an imported module, which has no data of its own
    "A quick brown fox jumps over the lazy dog.",
    "I waited three weeks, and the parcel never came.",
    "Best film of the year: I laughed, I cried, I went again!",
    "It is what it is.",
    "Where can I change the address of my account?",
    "The proof is left to the reader, who may find it less than obvious, since two of its steps use a lemma that is"
    " stated four chapters later and the third one is wrong.",
    "12:45, platform 9",
    "no",
)


@dataclass(frozen=True)
class ForeignModule:
    """The content of another library's folder, converted to our names."""

    format: str
    method: str
    settings: Mapping[str, Any]  # method settings that differ from the defaults
    delta: Mapping[str, Tensor]
    labels: tuple[str, ...]  # empty: the folder names none
    backbone: str  # the backbone named in the folder; empty: none
    files: tuple[Path, ...]
    trained_parameters: int  # parameters in its files


def write_imported(
    folder: Path,
    found: ForeignModule,
    backbone: Backbone,
    *,
    name: str,
    labels: Sequence[str] = (),
    pair: bool = False,
    precision: str,
) -> None:
    """Write to `folder` a task module `name` on `backbone`, opened in `precision`; `pair`: its inputs are two texts.

    Raises `ConfigError` unless there is one label per class, `IncompatibleModule` where shapes differ.
    """
    classes = _classes(found, labels)
    setting = Setting(Task(name, Path(), kind=KIND, labels=classes), kinds.get(KIND), backbone)
    examples = _tried(pair)
    if towers_of(backbone.card.towers, examples[0]) > 1:
        raise ConfigError(
            f"{backbone.card.id} encodes the two texts of a pair separately, but this head needs them in one sequence",
            do="import it into a bank on the backbone that it was trained on",
        )
    made = configured(found.method, found.settings)
    reason = made.method.unfit(setting.task, backbone.card)
    if reason:
        raise IncompatibleModule(
            f"this can't be converted for {backbone.card.id}: {reason}",
            do="import it into a bank on the backbone that it was trained on",
        )
    assert isinstance(made.method, Attaches)
    _require_shapes(
        found, {name: p.shape for name, p in build_model(made.method, setting, 1).delta().items()}, backbone
    )
    fitted = made.method.restore(setting, dict(found.delta), {"towers": 1, "start_block": 0})
    logits = fitted.logits(examples)
    if not np.isfinite(flat(logits)).all():
        raise IncompatibleModule(
            "its logits are not finite", where=str(found.files[0].parent), do="save it again: its weights are damaged"
        )
    origin = {
        "format": found.format,
        "backbone": found.backbone,
        "files": {path.name: file_digest(path) for path in found.files},
    }
    about = {
        "run": None, "method": made.config, "recipe": {}, "precision": precision, "backbone_seed": 0,
        "scores": {}, "costs": {}, "trained_parameters": found.trained_parameters, "imported": origin,
    }  # fmt: skip
    save_module(folder, setting, fitted, about, examples, logits)
    write_text(folder / "README.md", _card(name, classes, origin, backbone, made.label, tuple(examples[0].inputs)))


def _classes(found: ForeignModule, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the given labels, else those of the folder, else transformers' default names."""
    count = found.delta["head.out.weight"].shape[0]
    if count < 2:
        raise ConfigError(
            "a head with one output predicts a number, and only classifiers are imported",
            where=str(found.files[0].parent),
            do="train it here with --kind regression; if it is a classifier, with an output for each class",
        )
    classes = tuple(labels) or found.labels or tuple(f"LABEL_{number}" for number in range(count))
    if len(classes) != count or len(set(classes)) != count:
        raise ConfigError(
            "the labels are not one for each class",
            got=clip(", ".join(classes)),
            expected=f"{count} different ones, in the order of the classes",
            do="name them: --labels A,B,…",
        )
    return classes


def _tried(pair: bool) -> list[Example]:
    if not pair:
        return [Example(f"selftest/{i}", {"text": text}) for i, text in enumerate(TRIED)]
    pairs = zip(TRIED, TRIED[1:] + TRIED[:1], strict=True)
    return [Example(f"selftest/{i}", {"text_a": a, "text_b": b}) for i, (a, b) in enumerate(pairs)]


def _require_shapes(found: ForeignModule, wanted: Mapping[str, Any], backbone: Backbone) -> None:
    shapes = {name: tensor.shape for name, tensor in found.delta.items()}
    odd = sorted(name for name in wanted.keys() | shapes.keys() if wanted.get(name) != shapes.get(name))
    if odd:
        here, there = wanted.get(odd[0]), shapes.get(odd[0])
        raise IncompatibleModule(
            f"these weights are for another network than {backbone.card.id}",
            where=str(found.files[0].parent),
            got=f"{odd[0]}: {'nothing' if there is None else tuple(there)}",
            expected="nothing" if here is None else str(tuple(here)),
            do=f"name the backbone that it was trained on: {found.backbone or 'the folder does not say which'}",
        )


def _card(
    name: str, labels: Sequence[str], origin: Mapping[str, Any], backbone: Backbone, method: str, roles: Sequence[str]
) -> str:
    files = "".join(f"  - {file}, sha256 {digest}\n" for file, digest in origin["files"].items())
    return (
        f"# {name}: imported\n\n"
        f"A Graftwork task module for {KIND}, made of a folder that {origin['format']} can load. It answers: "
        f"{', '.join(labels[:30])}.\n\n"
        f"- backbone: {backbone.card.id}, revision {backbone.card.revision[:16]}\n"
        f"- the folder says it was trained on: {origin['backbone'] or 'nothing'}. Whether that is this backbone, nobody"
        " can check: the folder holds no hash of it\n"
        f"- method: {method}\n- scores and costs: unknown, it was trained elsewhere\n- made of:\n{files}\n"
        f"Use it: `{asking(roles, 'FOLDER')}`\n"
    )
