"""ELMo, contextual word vectors from a bidirectional language model (Peters et al. 2018, arXiv:1802.05365): AllenNLP's
published weights, or a network pre-trained here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graftwork.core.backbone import ROLES, BackboneCard
from graftwork.errors import IncompatibleModule
from graftwork.io.files import digest, file_digest, require_finite, safe_load, write_json, write_tensors
from graftwork.nn.bilm import BiLM, BiLMShape, fresh_bilm
from graftwork.nn.bilstm import Places
from graftwork.pretrained.allennlp import published_files, read_options, read_published
from graftwork.pretrained.chained_network import Architecture, Chain, ChainedBackbone
from graftwork.pretrained.character_words import Cutting, SpelledReader
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_folder import WEIGHTS, stored_numbers, weight_files
from graftwork.registry import backbones

MAX_LENGTH = 512  # positions of a sequence; an LSTM has no limit of its own, but a pass needs one
CONFIG, TOKENIZER = "config.json", "tokenizer.json"


def unrolled(network: BiLM) -> Chain:
    """Return the character embedding and the layers as a chain."""
    return Chain(
        embed=lambda inputs: network.embed(inputs["characters"]),
        blocks={f"layers.{place}": layer for place, layer in enumerate(network.layers)},
        finish=lambda state: state,
        beside=lambda inputs: Places.of(inputs["attention_mask"].bool()),
    )


ELMO = Architecture(unrolled, embedding="words", roles={}, pooling="mean of words")


@dataclass(frozen=True)
class ElmoFolder:
    """The contents of an ELMo folder."""

    shape: BiLMShape
    network: BiLM | None  # None if fresh weights are requested
    cutting: Cutting
    identity: Mapping[str, Any]  # JSON that identifies the network and its tokenisation


class Elmo:
    """Implements `BackboneFamily` for ELMo folders."""

    model_types: tuple[str, ...] = ("elmo",)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> ChainedBackbone:
        """Load a folder with config.json, or one with AllenNLP's options.json and HDF5 weights."""
        folder, fresh = Path(source).expanduser(), random_seed is not None
        ours = (folder / CONFIG).is_file()
        found = _ours(folder, fresh) if ours else _published(folder, fresh)
        network = found.network or fresh_bilm(found.shape, random_seed or 0)
        network.eval().requires_grad_(False)
        if bf16:
            network.to(torch.bfloat16)
        name = f"hf:{source}" if ours else f"elmo:{source}"
        card = BackboneCard(
            id=f"random:{name}" if fresh else name,
            revision=digest({**found.identity, "random_seed": random_seed, "max_length": MAX_LENGTH}),
            family="elmo",
            modality="text",
            width=2 * found.shape.lstm.projected,
            blocks=found.shape.layers,
            parameters=sum(parameter.numel() for parameter in network.parameters()),
            pooling=ELMO.pooling,
            max_length=MAX_LENGTH,
            towers=2,
            shared_blocks=False,
            lacks=tuple(role for role in ROLES if role not in ("embedding", "block")),
        )
        reader = SpelledReader(found.cutting, MAX_LENGTH)
        return ChainedBackbone(card, network, reader, ELMO)


def _published(folder: Path, fresh: bool) -> ElmoFolder:
    options, weights = published_files(folder)
    shape = read_options(options, None if fresh else weights.stat().st_size // 2)
    identity = {"options": file_digest(options)}
    if fresh:
        return ElmoFolder(shape, None, Cutting.treebank(), identity)
    network = read_published(options, weights)
    return ElmoFolder(shape, network, Cutting.treebank(), identity | {"weights": file_digest(weights)})


def _ours(folder: Path, fresh: bool) -> ElmoFolder:
    tokenizer = model_file(folder, TOKENIZER)
    shape = read_options(model_file(folder, CONFIG), None if fresh else stored_numbers(folder))
    identity = {"config": file_digest(folder / CONFIG)}
    cutting = Cutting.treebank()
    if tokenizer.is_file():
        cutting = Cutting.of_file(tokenizer)
        identity["tokenizer"] = file_digest(tokenizer)
    if fresh:
        return ElmoFolder(shape, None, cutting, identity)
    (weights,) = weight_files(folder)
    return ElmoFolder(shape, open_bilm(folder)[0], cutting, identity | {"weights": file_digest(weights)})


def open_bilm(folder: Path) -> tuple[BiLM, dict[str, Tensor]]:
    """Load the network of a folder that `save_bilm` wrote, in fp32; return it and the further tensors stored with it.

    Raises `ConfigError` or `StorageError`, and `IncompatibleModule` for weights that are not those of config.json.
    """
    network = BiLM(read_options(model_file(folder, CONFIG), stored_numbers(folder)))
    (weights,) = weight_files(folder)
    stored, own = safe_load(weights, mapped=False), network.state_dict()
    require_finite(stored, weights)
    wrong = [name for name, tensor in own.items() if name not in stored or stored[name].shape != tensor.shape]
    if wrong:
        raise IncompatibleModule(
            "the weights are not those of config.json",
            where=str(weights),
            got=f"{wrong[0]} {tuple(stored[wrong[0]].shape) if wrong[0] in stored else 'is missing'}",
            expected=str(tuple(own[wrong[0]].shape)),
        )
    network.load_state_dict({name: stored[name].float() for name in own})
    return network, {name: tensor for name, tensor in stored.items() if name not in own}


def save_bilm(network: BiLM, folder: Path, beside: Mapping[str, Tensor]) -> None:
    """Write config.json and model.safetensors, which the family opens together with an optional tokenizer.json."""
    write_tensors(folder / WEIGHTS, {**network.state_dict(), **beside})
    write_json(folder / CONFIG, {"model_type": "elmo", "format": 1, **network.shape.options})


backbones.register("elmo")(Elmo())
