"""Names of backbones and of their modules in other libraries."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from graftwork.backbones.minilm import package_folder
from graftwork.pretrained.model_folder import locate
from graftwork.pretrained.open_backbone import FOLDER, whole_name

MINILM, ITS_NAME = "minilm", "sentence-transformers/all-MiniLM-L6-v2"


def name_elsewhere(backbone: str) -> str | None:
    """Return the name for transformers' `from_pretrained`; None where a backbone has none (fresh weights)."""
    backbone = whole_name(backbone)
    if backbone == MINILM:
        return ITS_NAME
    return backbone.removeprefix(FOLDER) if backbone.startswith(FOLDER) else None


def folder_of(backbone: str) -> Path | None:
    """Return the transformers folder of a backbone; None if it has none."""
    backbone = whole_name(backbone)
    if backbone == MINILM:
        return package_folder()
    return locate(backbone.removeprefix(FOLDER)) if backbone.startswith(FOLDER) else None


def targets(sites: Collection[str], all_names: Iterable[str]) -> list[str]:
    """Return the last components of the sites' paths if no other module's path ends in them, else the full paths.

    A library that matches modules by the end of their names then finds the same ones.
    """
    leaves = sorted({site.rpartition(".")[2] for site in sites})
    ended = {name for name in (*all_names, "pooler.dense") if name.rpartition(".")[2] in leaves}
    return leaves if ended == set(sites) else sorted(sites)


def without_prefix(name: str, known: Collection[str]) -> str | None:
    """Return `name`, or it without its first component (a network within a model), if that is in `known`; else None."""
    return next((path for path in (name, name.partition(".")[2]) if path in known), None)
