"""Opening of a backbone by the name that a user types."""

from __future__ import annotations

import glob
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graftwork.core.backbone import Backbone, BackboneCard, BackboneFamily, WritingFamily, device_of
from graftwork.errors import ConfigError, UnknownName
from graftwork.machine.cards import on_device
from graftwork.pretrained.download_policy import kept_only
from graftwork.pretrained.model_folder import holds_decoder, locate, model_type
from graftwork.registry import backbones

PRECISIONS = ("bf16", "fp32")
FOLDER, FRESH = "hf:", "random:"
HUB_PAGE = re.compile(r"https?://huggingface\.co/([^/]+(?:/[^/]+)?)")
PRETRAINED = "backbone"  # subfolder of a pre-training run with its backbone
LENGTH = re.compile(r"@(\d{1,9})$")  # at the end of a name: the number of tokens at which texts are truncated


def open_backbone(name: str, *, precision: str, device: str = "cpu", seed: int = 0, writes: bool = False) -> Backbone:
    """Open `minilm`, `tiny_text`, `hf:<folder or hub name>`, or `random:` before any of these for fresh weights.

    The folder of a finished pre-training (`runs/<id>`) names its backbone, and `random:runs/<id>` its architecture
    and tokenizer with fresh weights; `<family>:<source>` names the family for sources without a config.json. With
    `@128` after any of these, texts are truncated at 128 tokens.
    `precision` ("bf16" or "fp32") is the precision of the frozen weights, `device` ("cpu" or "cuda") the device of them
    and of everything built on them; `seed` draws fresh weights. With `writes`, for tasks whose outputs are texts, an
    encoder-decoder is opened with its decoder and language-model head; other networks do not differ.
    Raises `UnknownName`, `ConfigError`, `StorageError`, `IncompatibleModule` or `OutOfMemory`.
    """
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    whole = whole_name(name)
    family, source = _family(whole, writes)
    opened = family.open(source, random_seed=seed if name.startswith(FRESH) else None, bf16=precision == "bf16")
    on_device(opened.module, device)
    if whole == name:
        return opened
    from graftwork.pretrained.reading_length import at_length

    return at_length(opened, int(name.rpartition("@")[2]), name)


def whole_name(name: str) -> str:
    """Return a backbone's name without a length: `minilm` of `minilm@128`. A path that exists is left as it is."""
    path = Path(name.removeprefix(FRESH).rpartition(":")[2]).expanduser()
    return name if path.exists() else LENGTH.sub("", name)


def opened_like(backbone: Backbone, name: str, *, seed: int = 0, writes: bool = False) -> Backbone:
    """Open `name`, as `open_backbone`, in the precision of an open backbone and on its device."""
    precision = "bf16" if any(str(one.dtype) == "torch.bfloat16" for one in backbone.module.parameters()) else "fp32"
    return open_backbone(name, precision=precision, device=device_of(backbone.module).type, seed=seed, writes=writes)


def can_write(name: str) -> bool:
    """Return whether the backbone of this name writes texts if opened with `writes`."""
    return isinstance(_family(whole_name(name), writes=True)[0], WritingFamily)


def backbone_names() -> list[str]:
    """Return the valid names: single networks, and the forms that take a folder or another backbone."""
    single = _single()
    named = [part for part in backbones.names() if part not in single and not part.startswith("hf_")]
    forms = [
        f"{FOLDER}<folder or hub name>",
        f"{FRESH}<backbone>",
        "runs/<id of a pre-training>",
        "<backbone>@<tokens>",
    ]
    return sorted([*single, *forms, *(f"{part}:<file or folder>" for part in named)])


def backbone_folder(name: str) -> Path | None:
    """Return the folder with config.json that `name` refers to; None where it is not a folder's name.

    Raises `StorageError` for a `hf:` name that cannot be found.
    """
    name = whole_name(name)
    if name.startswith(FOLDER):
        return locate(name.removeprefix(FOLDER))
    pretrained = Path(name) / PRETRAINED
    return pretrained if (pretrained / "config.json").is_file() else None


def lasting_name(name: str) -> str:
    """Return a backbone's name with its path made absolute."""
    whole = whole_name(name)
    length = name.removeprefix(whole)
    fresh, rest = (FRESH, whole.removeprefix(FRESH)) if whole.startswith(FRESH) else ("", whole)
    family, colon, source = rest.partition(":")
    if colon and Path(source).expanduser().exists():
        return f"{fresh}{family}:{Path(source).expanduser().resolve()}{length}"
    pretrained = not colon and backbone_folder(rest) is not None
    return f"{fresh}{Path(rest).resolve()}{length}" if pretrained else name


def lasting_card(card: BackboneCard) -> dict[str, Any]:
    """Return the card as JSON, with a name that opens the backbone from any working directory."""
    return asdict(replace(card, id=lasting_name(card.id)))


def require_kept(name: str) -> None:
    """Raise `StorageError` where a backbone named in an untrusted file would have to be downloaded."""
    _, colon, source = whole_name(name).removeprefix(FRESH).partition(":")
    if colon and not Path(source).expanduser().exists():
        with kept_only():
            locate(source)  # for any family: most take a hub name


def _single() -> list[str]:
    return [part for part in backbones.names() if not backbones.get(part).model_types]


def _family(name: str, writes: bool) -> tuple[BackboneFamily, str]:
    """Return the family that opens `name`, and its source. If the name states it, no other one is imported.

    A folder that holds an encoder without its decoder is opened as a network that only reads.
    """
    fresh, name = name.startswith(FRESH), name.removeprefix(FRESH)
    folder = backbone_folder(name)
    if folder is not None:
        source = name.removeprefix(FOLDER) if name.startswith(FOLDER) else str(folder)
        return _family_of(model_type(folder), source, writes and (fresh or holds_decoder(folder))), source
    part, colon, source = name.partition(":")
    if part in backbones.names():
        family = backbones.get(part)
        if bool(colon) == bool(family.model_types):  # single networks take no source, others need one
            return family, source
    known = backbone_names()
    if "/" in name or Path(name).exists():
        raise ConfigError(f"unknown backbone {name!r}", expected=f"one of {', '.join(known)}", do=_advice(name))
    raise UnknownName("backbone", name, known, else_do="" if ":" in name else f"a model of the hub is {FOLDER}{name}")


def _advice(name: str) -> str:
    """Return advice for an unknown `name`, depending on what exists at that path."""
    path, page = Path(name).expanduser(), HUB_PAGE.match(name)
    if page:
        return f"write {FOLDER}{page[1]}"
    if path.is_file():
        return f"of a file of word vectors write word_vectors:{name}; else name the folder with its config.json"
    if (path / "spec.json").is_file():
        return f"a run without {PRETRAINED}/: name one of graft pretrain, or let it end by the same command"
    if any(path.glob("*options.json")):
        return f"of AllenNLP's ELMo write elmo:{name}"
    longer = [other for other in path.parent.glob(f"{glob.escape(path.name)}*") if backbone_folder(str(other))]
    return f"did you mean {str(longer[0])!r}?" if longer else f"write {FOLDER}{name}"


def _family_of(architecture: str, source: str, writes: bool) -> BackboneFamily:
    """Return the family of an architecture; with `writes` one that writes, if any. Likely ones are imported first."""
    families: list[BackboneFamily] = []
    writing: BackboneFamily | None = None
    for part in sorted(backbones.names(), key=lambda part: (part != architecture, not part.startswith("hf_"))):
        family = backbones.get(part)
        takes = architecture in family.model_types
        if isinstance(family, WritingFamily):
            writing = family if takes else writing
        else:
            families.append(family)
        if takes and writes == isinstance(family, WritingFamily):
            return family
    ordinary = next((family for family in families if architecture in family.model_types), None)
    if writes and ordinary is not None:
        return ordinary
    raise ConfigError(
        f"no backbone family takes model_type {architecture!r}" + (" to read texts alone" if writing else ""),
        where=source,
        expected=f"one of {', '.join(sorted(known for family in families for known in family.model_types))}",
        do="it writes texts: use it for a task of kind generation" if writing else "",
    )
