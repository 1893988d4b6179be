"""AWD-LSTM language models, pre-trained here: `runs/<id>` or `hf:<folder>`, with concat pooling (Merity et al. 2017,
arXiv:1708.02182; Howard & Ruder 2018, arXiv:1801.06146)."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graftwork.core.backbone import ROLES, BackboneCard
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import digest
from graftwork.nn.lstm_stack import AwdLstm, AwdLstmShape
from graftwork.pretrained.chained_network import Architecture, Chain, ChainedBackbone, alone
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_folder import locate, reading_files, stored_numbers, stored_weights, weight_digests
from graftwork.pretrained.model_json import checked_sizes
from graftwork.pretrained.network_config import require_room
from graftwork.pretrained.tokenising import TextReader
from graftwork.pretrained.tokenizer_file import read_tokenizer
from graftwork.registry import backbones

MODEL_TYPE = "awd_lstm"
OF_DECODER = "decoder."  # prefix of weights that only pre-training uses
LACKS = tuple(role for role in ROLES if role not in ("embedding", "block"))


class AwdLstmFamily:
    """Implements `BackboneFamily` for the folders that the objective `awd_lstm` writes."""

    model_types: tuple[str, ...] = (MODEL_TYPE,)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> ChainedBackbone:
        """Load a folder. Raises `ConfigError`, `StorageError`, or `IncompatibleModule` for weights of another shape."""
        folder = locate(source)
        shape = read_shape(folder)
        stored = stored_numbers(folder) if random_seed is None else None
        require_room(partial(AwdLstm, shape), stored, folder / "config.json")
        network = AwdLstm(shape)
        identity: dict[str, Any] = {"files": reading_files(folder), "random_seed": random_seed}
        if random_seed is None:
            identity["weights"] = weight_digests(folder)
            load_network(network, folder)
        else:
            network.draw(random_seed)
        network.to(torch.bfloat16 if bf16 else torch.float32).eval().requires_grad_(False)
        card = BackboneCard(
            id=f"hf:{source}" if random_seed is None else f"random:hf:{source}",
            revision=digest({**identity, "pooling": ARCHITECTURE.pooling}),
            family=MODEL_TYPE,
            modality="text",
            width=shape.widths[-1],
            blocks=shape.layers,
            parameters=sum(parameter.numel() for parameter in network.parameters()),
            pooling=ARCHITECTURE.pooling,
            max_length=shape.max_length,
            towers=1,
            shared_blocks=False,
            shapes=tuple((0, width) for width in shape.widths),
            lacks=LACKS,
        )
        return ChainedBackbone(card, network, _reader(folder, shape), ARCHITECTURE)


def unroll(network: Any) -> Chain:
    """Return the embedding and the layers as a chain; padding is on the right, so it never affects real positions."""
    return Chain(
        embed=lambda inputs: network.embedding(inputs["input_ids"]),
        blocks={f"layers.{number}": alone(layer) for number, layer in enumerate(network.layers)},
        finish=lambda state: state,
    )


def read_shape(folder: Path) -> AwdLstmShape:
    """Read the sizes in config.json. Raises `ConfigError` for one that is missing or not a positive integer."""
    path = model_file(folder, "config.json")
    config = checked_sizes(path)
    sizes: dict[str, Any] = {}
    for size in fields(AwdLstmShape):
        sizes[size.name] = config.get(size.name, None if size.default is MISSING else size.default)
        if type(sizes[size.name]) is not int or sizes[size.name] < 1:  # bool is an int
            raise ConfigError(
                f"{size.name} is out of range", where=str(path), got=repr(sizes[size.name]), expected="at least 1"
            )
    return AwdLstmShape(**sizes)


def load_network(network: AwdLstm, folder: Path) -> dict[str, Tensor]:
    """Copy the weights of `folder` into `network`; return the weights of the decoder, which only pre-training uses.

    Raises `StorageError`, or `IncompatibleModule` for weights with other names or shapes.
    """
    stored = stored_weights(folder)
    decoder = {name: stored.pop(name) for name in list(stored) if name.startswith(OF_DECODER)}
    wanted = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    odd = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if odd:
        raise IncompatibleModule(
            "the weights are not those of the network that config.json describes",
            where=str(folder),
            got=f"{odd[0]}: {found.get(odd[0], 'missing')}",
            expected=str(wanted.get(odd[0], "no such tensor")),
        )
    network.load_state_dict(stored)
    return decoder


def _reader(folder: Path, shape: AwdLstmShape) -> TextReader:
    """Open the folder's tokenizer, truncating at the length in config.json.

    Raises `StorageError`, `ConfigError`, or `IncompatibleModule` for more tokens than the network has.
    """
    tokenizer = read_tokenizer(model_file(folder, "tokenizer.json"))
    if tokenizer.get_vocab_size() > shape.vocab_size:
        raise IncompatibleModule(
            "the tokenizer knows more tokens than its network",
            where=str(folder),
            got=f"{tokenizer.get_vocab_size():,} tokens",
            expected=f"at most {shape.vocab_size:,}",
        )
    tokenizer.no_padding()
    tokenizer.enable_truncation(shape.max_length, strategy="longest_first")
    return TextReader(tokenizer, 0, shape.max_length)


ARCHITECTURE = Architecture(unroll, "embedding", {}, "concat")

backbones.register("awd_lstm")(AwdLstmFamily())
