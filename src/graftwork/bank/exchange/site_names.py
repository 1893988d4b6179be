"""What a backbone is called elsewhere, and the paths of its parts as other libraries write them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from graftwork.backbones.minilm import package_folder
from graftwork.pretrained.model_folder import locate
from graftwork.pretrained.open_backbone import FOLDER

MINILM, ITS_NAME = "minilm", "sentence-transformers/all-MiniLM-L6-v2"


def name_elsewhere(backbone: str) -> str | None:
    """What transformers' `from_pretrained` takes for a backbone; None where it has no such name (fresh weights)."""
    if backbone == MINILM:
        return ITS_NAME
    return backbone.removeprefix(FOLDER) if backbone.startswith(FOLDER) else None


def folder_of(backbone: str) -> Path | None:
    """The transformers folder of a backbone, where it has one."""
    if backbone == MINILM:
        return package_folder()
    return locate(backbone.removeprefix(FOLDER)) if backbone.startswith(FOLDER) else None


def targets(sites: Collection[str], all_names: Iterable[str]) -> list[str]:
    """The last words of the sites' paths where these mean the sites and nothing else, or the whole paths.

    A library that finds a module by the end of its name then finds the same ones.
    """
    leaves = sorted({site.rpartition(".")[2] for site in sites})
    ended = {name for name in (*all_names, "pooler.dense") if name.rpartition(".")[2] in leaves}
    return leaves if ended == set(sites) else sorted(sites)


def without_prefix(name: str, known: Collection[str]) -> str | None:
    """`name` as one of `known`, be it after the name of the network inside a larger model; None where it is none."""
    return next((path for path in (name, name.partition(".")[2]) if path in known), None)
