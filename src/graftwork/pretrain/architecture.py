"""Networks from transformers configurations: sizes, initialisation, loading and saving."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from graftwork.errors import ConfigError, UnknownName
from graftwork.io.files import read_json, storage_errors, write_json
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrained.layout import Layout
from graftwork.pretrained.load_folder import TransformerFamily, load_weights, require_whole
from graftwork.pretrained.model_folder import model_type, read_as_trained
from graftwork.pretrained.network_config import configuration
from graftwork.pretrained.transformers_errors import transformers_errors
from graftwork.registry import backbones

PLACES = ("n_positions", "max_position_embeddings")  # what configurations call the number of positions
POSITIONS = ("learned", "sinusoidal")


def fresh_config(
    size: Mapping[str, Any], architecture: str, known: Collection[str], vocabulary: Vocabulary, length: int
) -> PreTrainedConfig:
    """Return the configuration of a fresh network for rows of up to `length` tokens.

    `size` has fields of a transformers config; its "model_type" replaces the default `architecture`. Raises
    `UnknownName` for an architecture not in `known` or a field that does not exist, `ConfigError` for a bad value.
    """
    fields = {**size}
    architecture = fields.pop("model_type", architecture)
    if architecture not in known:
        raise UnknownName("architecture", architecture, known)
    own = {"vocab_size": vocabulary.size, "pad_token_id": vocabulary.pad}
    own |= {"bos_token_id": vocabulary.start, "eos_token_id": vocabulary.end}
    plain = AutoConfig.for_model(architecture)
    for field in fields:
        if field not in plain.to_dict() and field not in plain.attribute_map:
            raise UnknownName(f"field of a {architecture} configuration", field, plain.to_dict())
    places = next((name for name in PLACES if name in plain.to_dict()), None)  # None: relative positions (T5)
    first = layout_of(architecture).first_position(vocabulary.pad)
    try:
        room = {places: first + length} if places else {}
        config = AutoConfig.for_model(architecture, **{**room, **fields, **own})
        longest = int(getattr(config, places)) - first if places else length
    except (TypeError, ValueError, StrictDataclassError) as error:
        raise ConfigError(
            f"not a {architecture} configuration: {error}", got=str(fields), do="mend the fields of --size"
        ) from None
    if longest < length:
        raise ConfigError(
            "the rows are longer than a network of this size takes",
            got=f"--length {length}",
            expected=f"at most {longest}",
        )
    return config


def draw_network(make: Any, config: PreTrainedConfig, seed: int) -> PreTrainedModel:
    """Build the network of `config` with `make` (a transformers Auto class), its weights drawn from `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            network: PreTrainedModel = make.from_config(config, attn_implementation="eager")
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"no network can be made of this size: {error}",
                do="choose other sizes: hidden_size is a multiple of num_attention_heads",
            ) from None
    return network


def load_network(make: Any, folder: Path, known: Collection[str], seed: int) -> tuple[PreTrainedModel, list[str]]:
    """Load the network of a folder in fp32; return it and the names of its missing tensors, drawn from `seed`.

    Raises `UnknownName` for an architecture not in `known`, `StorageError` for weights that can't be read.
    """
    architecture = model_type(folder)
    if architecture not in known:
        raise UnknownName("architecture for this objective", architecture, known, where=str(folder))
    with transformers_errors(folder), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load_weights(make, folder, configuration(folder), torch.float32)


def require_heads_only(missing: Collection[str], heads: Collection[str], folder: Path) -> None:
    """Raise `IncompatibleModule` if tensors other than those of the heads (name prefixes `heads`) are missing."""
    require_whole([name for name in missing if not name.startswith(tuple(heads))], folder)


def with_sinusoids(network: PreTrainedModel, table: str, opened: Path | None = None) -> PreTrainedModel:
    """Put frozen sinusoids (Vaswani et al. 2017) into the network's position table; return the network.

    A network opened from a folder must have them already. Raises `ConfigError` if it does not, and for a network
    without such a table.
    """
    try:
        weight = network.base_model.get_submodule(table).weight
    except AttributeError:
        raise ConfigError(
            "this architecture has no table of positions",
            got=f"positions=sinusoidal of {network.config.model_type}",
            do="leave positions= out",
        ) from None
    assert isinstance(weight, Tensor)
    fixed = sinusoids(*weight.shape)
    if opened is None:
        with torch.no_grad():
            weight.copy_(fixed)
    elif not torch.allclose(weight, fixed, atol=1e-6):
        raise ConfigError(
            "the positions of this backbone are learned ones",
            where=str(opened),
            got="positions=sinusoidal",
            do="leave positions= out",
        )
    weight.requires_grad_(False)
    return network


def sinusoids(length: int, width: int) -> Tensor:
    """Return the position table (T, D): sin in even columns, cos in odd ones; root mean square 0.02, as embeddings."""
    places = torch.arange(length, dtype=torch.float64)[:, None]
    turns = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(places * turns)
    table[:, 1::2] = torch.cos(places * turns)[:, : width // 2]
    return (0.02 * math.sqrt(2) * table).float()


def save(network: nn.Module, vocabulary: Vocabulary, folder: Path, pooling: str, length: int) -> None:
    """Write a transformers folder whose config.json also records the pooling; `length` is the maximum in tokens."""
    assert isinstance(network, PreTrainedModel)
    network.config.graftwork = {"pooling": pooling}
    with transformers_errors(folder), storage_errors(folder):
        try:
            network.save_pretrained(folder)
        except SafetensorError as error:  # its message ends with the system's error number: "… (os error 28)"
            said = re.search(r"\(os error (\d+)\)", str(error))
            raise OSError(int(said[1]) if said else 0, str(error)) from error
    vocabulary.save(folder, max_length=length)


def read_as(source: Path, folder: Path) -> None:
    """Copy the pooling of the backbone in `source` into config.json of `folder`, if that file records a pooling."""
    path = folder / "config.json"
    content = read_json(path)
    if "graftwork" in content:
        layout, _ = read_as_trained(source, layout_of(content["model_type"]))
        write_json(path, content | {"graftwork": {"pooling": layout.pooling}})


def layout_of(architecture: str) -> Layout:
    """Return the architecture's layout (module names and pooling) from the backbone family that opens it.

    Raises `UnknownName` for an architecture that no family opens.
    """
    families = [backbones.get(name) for name in backbones.names()]
    known = {kind: own for one in families if isinstance(one, TransformerFamily) for kind, own in one.layouts.items()}
    if architecture not in known:
        raise UnknownName("architecture", architecture, known)
    return known[architecture]


def check_word(name: str, value: str, known: Collection[str]) -> None:
    """Raise `UnknownName` if the value of option `name` is not in `known`."""
    if value not in known:
        raise UnknownName(name, value, known)


def bert_size(layers: int, width: int, dropout: float = 0.0) -> dict[str, Any]:
    """Return a size in BERT's proportions: heads of 64, MLPs of 4x the width (Turc et al. 2019, arXiv:1908.08962).

    No dropout by default: small networks see little text, most of it once, and dropout only hurts them (Geiping &
    Goldstein 2022).
    """
    return {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": max(1, width // 64),
        "intermediate_size": 4 * width,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
    }
