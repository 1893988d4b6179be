"""A transformers folder on disk or on the hub: where it is, what it holds, how its network was trained to be read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError

from graftwork.core.backbone import POOLINGS
from graftwork.core.layout import Layout
from graftwork.errors import ConfigError, StorageError, nearest
from graftwork.files import file_digest, read_json

SENTENCE_TOWERS = 2  # a pair in a network trained to embed sentences: each text by itself
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
READ_WITH = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "spm.model", "sentencepiece.bpe.model",
    "modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "preprocessor_config.json",
)  # fmt: skip
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
SENTENCE_POOLINGS = {
    "pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_lasttoken": "last",
    "mean": "mean", "cls": "first", "lasttoken": "last",
}  # fmt: skip


def locate(source: str) -> Path:
    """The folder named `source`, or the local copy of the hub's repository of that name.

    The network is used only for a hub name that has no local copy. Raises `StorageError`.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise StorageError("not a transformers folder: it has no config.json", where=str(folder))
        return folder
    a_path_here = len(folder.parts) > 1 and folder.parent.is_dir()
    if a_path_here or folder.exists() or not HUB_NAME.fullmatch(source):
        near = nearest(folder.name, _folders_beside(folder))
        raise StorageError(
            "no such folder",
            where=source,
            expected="a folder with config.json, or a hub name like 'google/electra-small-discriminator'",
            do=f"did you mean {str(folder.parent / near)!r}?" if near else "",
        )
    return _from_hub(source)


def model_type(folder: Path) -> str:
    """The architecture that config.json names. Raises `ConfigError` when it names none."""
    config = read_json(folder / "config.json")
    named = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(named, str):
        raise ConfigError("config.json does not say its model_type", where=str(folder / "config.json"))
    return named


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of the network. Raises `StorageError` when there are none."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        return [folder / name for name in sorted(set(read_json(folder / INDEX)["weight_map"].values()))]
    pickled = sorted(path.name for path in folder.glob("*.bin")) + sorted(path.name for path in folder.glob("*.pt"))
    if pickled:
        raise StorageError(
            "the weights are pickled, and a pickle can run any program when it is opened",
            where=str(folder / pickled[0]),
            expected=WEIGHTS,
            do="convert them to safetensors where you trust them: load with transformers, then save_pretrained",
        )
    raise StorageError("the folder has no weights", where=str(folder), expected=WEIGHTS)


def reading_files(folder: Path) -> dict[str, str]:
    """Path -> sha256 of every file beside the weights that decides how texts are read."""
    return {path: file_digest(folder / path) for path in READ_WITH if (folder / path).is_file()}


def read_as_trained(folder: Path, layout: Layout) -> tuple[Layout, int | None]:
    """The layout with the pooling that a sentence-transformers folder states, and its length limit if it has one.

    Of a network pre-trained here config.json states the pooling.
    """
    own = read_json(folder / "config.json").get("graftwork", {}).get("pooling")
    layout = replace(layout, pooling=own) if own in POOLINGS else layout
    listed = read_json(folder / "modules.json") if (folder / "modules.json").is_file() else []
    paths = [part["path"] for part in listed if part["type"].endswith(".Pooling")] or ["1_Pooling"]
    settings = folder / paths[0] / "config.json"
    if not settings.is_file():
        return layout, None
    stated = read_json(settings)
    modes = {mode for mode, chosen in stated.items() if mode.startswith("pooling_mode_") and chosen is True}
    modes |= {stated["pooling_mode"]} if "pooling_mode" in stated else set()
    if len(modes) != 1 or not modes <= SENTENCE_POOLINGS.keys():
        raise ConfigError(
            "the folder states a pooling that is not known here",
            where=str(settings),
            got=", ".join(sorted(modes)) or "none",
            expected=f"one of {', '.join(SENTENCE_POOLINGS)}",
        )
    limits = folder / "sentence_bert_config.json"
    length = read_json(limits).get("max_seq_length") if limits.is_file() else None
    return replace(layout, pooling=SENTENCE_POOLINGS[modes.pop()], towers=SENTENCE_TOWERS), length


def _folders_beside(folder: Path) -> list[str]:
    parent = folder.parent
    return [entry.name for entry in parent.iterdir() if entry.is_dir()] if parent.is_dir() else []


def _from_hub(name: str) -> Path:
    """The local copy of a hub repository, fetched when it is not there or not whole."""
    wanted = [*READ_WITH, "model*.safetensors", INDEX]
    try:
        kept = Path(huggingface_hub.snapshot_download(name, allow_patterns=wanted, local_files_only=True))
        if (kept / "config.json").is_file() and any(kept.glob("*.safetensors")):
            return kept
    except (OSError, ValueError):
        pass  # no local copy yet
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=[*wanted, "pytorch_model.bin.index.json"]))
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise StorageError(
            f"neither a folder here nor a model the hub would give: {str(error).splitlines()[0]}",
            where=name,
            expected="a folder with config.json, or a hub name",
            do="check the name and the connection, or download the folder by other means and name it",
        ) from error
