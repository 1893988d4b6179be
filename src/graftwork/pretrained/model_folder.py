"""A transformers folder on disk or on the hub: its location, files, weights and intended pooling."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.backbone import POOLINGS
from graftwork.errors import ConfigError, StorageError, clip, nearest
from graftwork.io.files import file_digest, header_of, read_json, require_finite, safe_load
from graftwork.io.json_limits import SMALL
from graftwork.pretrained.download_policy import may_fetch
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.gguf_file import gguf_in, unpacked_folder
from graftwork.pretrained.layout import Layout
from graftwork.pretrained.model_json import checked_json
from graftwork.pretrained.stored_bits import from_stored

if TYPE_CHECKING:
    from torch import Tensor

SENTENCE_TOWERS = 2  # sentence embedding networks encode each text of a pair separately
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
NO_WEIGHT = ".masked_bias"  # constant for minus infinity in Pythia and older GPTs; infinite in fp16
MODULES = "modules.json"
OWN_SETTINGS = "graftwork"  # key of config.json: text settings of a network that this package wrote
GENERATION = "generation_config.json"  # tokens that begin and end the texts that a network writes
MOST_SHARDS = 1_000
MOST_BYTES = 64 << 20  # of a file other than weights
SENTENCE_SETTINGS = tuple(  # older sentence-transformers names; the first one present is used
    f"sentence_{network}_config.json"
    for network in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
READ_WITH = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "spm.model", "sentencepiece.bpe.model",
    "modules.json", *SENTENCE_SETTINGS, "1_Pooling/config.json", "preprocessor_config.json",
)  # fmt: skip
COMMIT = re.compile(r"[0-9a-f]{40}")
OR_A_HUB_NAME = ", or a hub name like 'google/electra-small-discriminator'"
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
SENTENCE_POOLINGS = {
    "pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_lasttoken": "last",
    "mean": "mean", "cls": "first", "lasttoken": "last",
}  # fmt: skip


def locate(source: str) -> Path:
    """Return the folder `source`, or the local copy of the hub's repository of that name.

    For a GGUF file, or a folder with one and no config.json, return the folder that the file is unpacked into. Only a
    hub name without a local copy is downloaded. Raises `StorageError`.
    """
    folder = Path(source).expanduser()
    if (packed := gguf_in(folder)) is not None:
        return unpacked_folder(packed)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise StorageError(
                "not a transformers folder: it has no config.json",
                where=str(folder),
                do="name the folder that save_pretrained wrote",
            )
        return folder
    a_path_here = len(folder.parts) > 1 and folder.parent.is_dir()
    if a_path_here or folder.exists() or not HUB_NAME.fullmatch(source):
        near = nearest(folder.name, _folders_beside(folder))
        raise StorageError(
            "no such folder",
            where=source,
            expected="a folder with config.json" + ("" if folder.is_absolute() else OR_A_HUB_NAME),
            do=f"did you mean {str(folder.parent / near)!r}?" if near else "",
        )
    return _from_hub(source)


def model_type(folder: Path) -> str:
    """Return the `model_type` of config.json. Raises `ConfigError` when it names none, `StorageError`."""
    config = checked_json(model_file(folder, "config.json"))
    named = config.get("model_type")
    if not isinstance(named, str):
        raise ConfigError(
            "config.json does not say its model_type",
            where=str(folder / "config.json"),
            do="save the model again: model.save_pretrained(FOLDER)",
        )
    return named


def weight_files(folder: Path) -> list[Path]:
    """Return the network's safetensors files. Raises `StorageError` when there are none, or outside the folder."""
    if (whole := model_file(folder, WEIGHTS)).is_file():
        return [whole]
    if (index := model_file(folder, INDEX)).is_file():
        return [model_file(folder, name, index) for name in _shards(index)]
    pickled = sorted(path.name for path in folder.glob("*.bin")) + sorted(path.name for path in folder.glob("*.pt"))
    if pickled:
        raise StorageError(
            "the weights are pickled, and a pickle can run any program when it is opened",
            where=str(folder / pickled[0]),
            expected=WEIGHTS,
            do="convert them to safetensors where you trust them: load with transformers, then save_pretrained",
        )
    raise StorageError("the folder has no weights", where=str(folder), expected=WEIGHTS)


def weight_digests(folder: Path) -> dict[str, str]:
    """Map each weight file's name to its sha256, after checking its header. Raises `StorageError`."""
    paths = weight_files(folder)
    for path in paths:
        header_of(path)
    return {path.name: file_digest(path) for path in paths}


def stored_weights(folder: Path) -> dict[str, Tensor]:
    """Memory-map the tensors of all weight files, all finite. Raises `StorageError` or `IncompatibleModule`."""
    stored: dict[str, Tensor] = {}
    for path in weight_files(folder):
        tensors = {name: tensor for name, tensor in safe_load(path).items() if not name.endswith(NO_WEIGHT)}
        require_finite(tensors, path)
        tensors = from_stored(tensors, path)
        twice = next((name for name in tensors if name in stored), None)
        if twice is not None:
            raise StorageError(
                f"the tensor {clip(twice)} is in two files", where=str(path), expected="every tensor once"
            )
        stored |= tensors
    return stored


def stored_numbers(folder: Path) -> int:
    """Count the parameters in the weight files by their headers. Raises `StorageError`."""
    return sum(sum(header_of(path).numbers.values()) for path in weight_files(folder))


def holds_decoder(folder: Path) -> bool:
    """Return whether the weights include a decoder; an encoder-decoder may lack it. Raises `StorageError`."""
    names = (name for path in weight_files(folder) for name in header_of(path).numbers)
    return any("decoder" in name.split(".")[:2] for name in names)


def _shards(index: Path) -> list[str]:
    """Return the files that an index names. Raises `StorageError` where they are not safetensors files."""
    content = read_json(index, SMALL)
    named = content.get("weight_map") if isinstance(content, dict) else None
    shards = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
    if not 0 < len(shards) <= MOST_SHARDS or not all(name.endswith(".safetensors") for name in shards):
        raise StorageError(
            "not an index of weights",
            where=str(index),
            expected=f"a weight_map of 1 to {MOST_SHARDS} .safetensors files",
        )
    return shards


def reading_files(folder: Path) -> dict[str, str]:
    """Map each non-weight file that affects how inputs are read to its sha256. Raises `StorageError`."""
    found = {name: path for name in READ_WITH if (path := model_file(folder, name)).is_file()}
    for path in found.values():
        if path.stat().st_size > MOST_BYTES:
            raise StorageError(
                "the file is too large for its purpose",
                where=str(path),
                got=f"{path.stat().st_size:,} bytes",
                expected=f"at most {MOST_BYTES:,} bytes",
            )
    return {name: file_digest(path) for name, path in found.items()}


def read_as_trained(folder: Path, layout: Layout) -> tuple[Layout, int | None]:
    """Return the layout with the folder's own pooling, sequences per pair and case, and its maximum length, if any.

    They are stated by sentence-transformers or, for a network that this package wrote, by config.json.
    """
    own = own_settings(folder)
    layout = replace(layout, pooling=own["pooling"]) if own.get("pooling") in [*POOLINGS] else layout
    layout = replace(layout, towers=own["towers"]) if own.get("towers") in (1, SENTENCE_TOWERS) else layout
    own_length = own["max_length"] if type(own.get("max_length")) is int and own["max_length"] > 0 else None
    settings = model_file(folder, f"{_pooling(folder)}/config.json", folder / MODULES)
    if not settings.is_file():
        return layout, own_length
    stated = checked_json(settings)
    modes = {mode for mode, chosen in stated.items() if mode.startswith("pooling_mode_") and chosen is True}
    modes |= {str(stated["pooling_mode"])} if "pooling_mode" in stated else set()
    if len(modes) != 1 or not modes <= SENTENCE_POOLINGS.keys():
        raise ConfigError(
            "the folder states a pooling that is not known here",
            where=str(settings),
            got=", ".join(sorted(modes)) or "none",
            expected=f"one of {', '.join(SENTENCE_POOLINGS)}",
        )
    limits, told = _sentence_settings(folder)
    length = told.get("max_seq_length")
    if length is not None and not (type(length) is int and length > 0):
        raise ConfigError(
            "max_seq_length is no number of tokens",
            where=str(limits),
            got=clip(str(length)),
            expected="a whole number above 0",
        )
    lower_case = told.get("do_lower_case") is True
    layout = replace(layout, pooling=SENTENCE_POOLINGS[modes.pop()], towers=SENTENCE_TOWERS, lower_case=lower_case)
    return layout, length


def own_settings(folder: Path) -> dict[str, Any]:
    """Return the settings that this package wrote into config.json; empty for a network from elsewhere."""
    own = checked_json(model_file(folder, "config.json")).get(OWN_SETTINGS)
    return own if isinstance(own, dict) else {}


def _sentence_settings(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the sentence-transformers settings file and its content, empty if there is none."""
    paths = [model_file(folder, name) for name in SENTENCE_SETTINGS]
    found = next((path for path in paths if path.is_file()), None)
    return (paths[0], {}) if found is None else (found, checked_json(found))


def _pooling(folder: Path) -> str:
    """Return the subfolder with sentence-transformers' pooling settings."""
    path = model_file(folder, MODULES)
    listed = read_json(path, SMALL) if path.is_file() else []
    if not isinstance(listed, list) or not all(isinstance(part, dict) for part in listed):
        raise StorageError("not a list of modules", where=str(path), expected="[{…}, …]")
    named = [str(part.get("path")) for part in listed if str(part.get("type")).endswith(".Pooling")]
    return named[0] if named else "1_Pooling"


def _folders_beside(folder: Path) -> list[str]:
    parent = folder.parent
    return [entry.name for entry in parent.iterdir() if entry.is_dir()] if parent.is_dir() else []


def hub_revision(folder: Path) -> str | None:
    """Return the commit of a folder in the hub's cache; None for another folder."""
    named = folder.resolve().parts[-3:]
    at_commit = len(named) == 3 and named[0].startswith("models--") and named[1] == "snapshots"
    return named[2] if at_commit and COMMIT.fullmatch(named[2]) else None


def _from_hub(name: str) -> Path:
    """Return the local copy of a hub repository, downloaded if missing or incomplete."""
    import huggingface_hub

    wanted = [*READ_WITH, GENERATION, "model*.safetensors", INDEX]
    try:
        kept = Path(huggingface_hub.snapshot_download(name, allow_patterns=wanted, local_files_only=True))
        if (kept / "config.json").is_file() and any(kept.glob("*.safetensors")):
            return kept
    except (OSError, ValueError):
        pass  # no local copy yet
    if not may_fetch(name):
        raise StorageError(
            "this backbone is not on this machine, and a file that names one starts no download",
            where=name,
            do=f"if it is a folder, go where it is named from; if you trust the hub's, fetch it: hf download {name}",
        )
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=[*wanted, "pytorch_model.bin.index.json"]))
    except Exception as error:  # also the many of the connection, which have no common base
        raise StorageError(
            "neither a folder here nor a model the hub would give: "
            + (str(error) or type(error).__name__).splitlines()[0],
            where=name,
            expected="a folder with config.json, or a hub name",
            do="check the name and the connection, or download the folder by other means and name it",
        ) from error
