"""Parsing of user input: the objective, the size, the recipe and the backbone to continue from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from graftwork.backbones.minilm import package_folder
from graftwork.core.part_settings import chosen_settings
from graftwork.errors import ConfigError, UnknownName
from graftwork.io.files import digest, file_digest, read_json, read_toml
from graftwork.pretrain.objective import Objective, PretrainingRecipe
from graftwork.pretrain.schedule import SCHEDULES
from graftwork.pretrained.model_folder import reading_files, weight_files
from graftwork.pretrained.open_backbone import backbone_folder, whole_name
from graftwork.registry import objectives

MINILM = "minilm"


@dataclass(frozen=True)
class NamedObjective:
    """An objective with its options resolved."""

    objective: Objective
    config: Mapping[str, Any]  # {"name", "version", every option}


def parse_objective(words: str) -> NamedObjective:
    """Parse `"masked"`, or with options `"masked:unit=words:second=next_sentence"`.

    Raises `UnknownName` for an objective or option that does not exist, `ConfigError` for a bad value.
    """
    name, chosen = chosen_settings(words, objectives)
    made = cast(Any, objectives.get(name))(**chosen)
    resolved = {item.name: getattr(made, item.name) for item in fields(made)}
    return NamedObjective(made, {"name": name, "version": made.VERSION} | resolved)


def size_of(objective: Objective, words: str) -> Mapping[str, Any]:
    """Return the objective's size of that name, or read one from a TOML or JSON file.

    Raises `UnknownName`, `ConfigError` for a file without a table, `StorageError` for one that can't be read.
    """
    sizes = objective.sizes
    if words in sizes:
        return sizes[words]
    path = Path(words)
    if not path.suffix and not path.is_file():
        raise UnknownName("size", words, [*sizes, "FILE.toml", "FILE.json"])
    content = read_toml(path) if path.suffix == ".toml" else read_json(path)
    if not isinstance(content, dict):
        raise ConfigError(
            "a size is a table of settings", where=words, do="write the fields of a configuration: hidden_size = 128"
        )
    return content


def recipe_of(default: PretrainingRecipe, changes: Mapping[str, Any]) -> PretrainingRecipe:
    """Return the recipe with fields replaced; None changes nothing. Raises `ConfigError` for a bad value."""
    given = {name: value for name, value in changes.items() if value is not None}
    for name in given:
        if name not in {item.name for item in fields(default)}:
            raise UnknownName("setting of a recipe", name, [item.name for item in fields(default)])
    recipe = replace(default, **given)
    if recipe.schedule not in SCHEDULES:
        raise UnknownName("schedule", recipe.schedule, SCHEDULES)
    least = {"batch": 1, "length": 8, "rows_at_once": 0, "short_length": 0, "head_steps": 0, "learning_rate": 0.0}
    for name, value in least.items():
        if getattr(recipe, name) < value:
            raise ConfigError(f"{name} must be at least {value}", got=str(getattr(recipe, name)))
    if recipe.clip <= 0:
        raise ConfigError("clip must be above 0", got=str(recipe.clip), do="give a large number to cut no gradient")
    if recipe.beta == 1:
        raise ConfigError("beta must be below 1", got=str(recipe.beta))
    if 0 < recipe.short_length < least["length"]:
        raise ConfigError(
            "short_length is too short", got=str(recipe.short_length), expected=f"0, or at least {least['length']}"
        )
    for name in ("warm_up", "short_share", "beta", "weight_decay"):
        if not 0 <= getattr(recipe, name) <= 1:
            raise ConfigError(f"{name} must be from 0 to 1", got=str(getattr(recipe, name)))
    if recipe.short_length > recipe.length:
        raise ConfigError(
            "short_length is more than length",
            got=f"{recipe.short_length} and {recipe.length}",
            do="lower --short-length or raise --length",
        )
    return recipe


def folder_of(backbone: str) -> Path:
    """Return the folder of a backbone's files. Raises `ConfigError` for one without files."""
    folder = package_folder() if backbone == MINILM else backbone_folder(backbone)
    if folder is None or whole_name(backbone) != backbone:
        raise ConfigError(
            f"{backbone!r} can't be pre-trained further",
            expected="minilm, hf:FOLDER, hf:HUB/NAME or runs/<id> of a pre-training",
        )
    return folder


def revision_of(folder: Path) -> str:
    """Return the sha256 over all files that determine a backbone's outputs."""
    weights = {path.name: file_digest(path) for path in weight_files(folder)}
    return digest({"weights": weights, "files": reading_files(folder)})
