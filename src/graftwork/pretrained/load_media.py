"""Loading of a frozen image or sound backbone from a transformers folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils import parametrize
from transformers import AutoFeatureExtractor, PreTrainedModel

from graftwork.core.backbone import ROLES, BackboneCard, Inputs
from graftwork.io.files import digest
from graftwork.nn.packed_linear import use_linear_maps
from graftwork.pretrained.audio import FRAME, HOP, MOST_SECONDS, SpectrogramReader, WaveReader
from graftwork.pretrained.build_backbone import drop_unused
from graftwork.pretrained.chained_network import Architecture, ChainedBackbone, Reader, shapes_of
from graftwork.pretrained.images import PATCH, ImageReader, Preparation, preparation_settings
from graftwork.pretrained.load_folder import encoder_of, fresh_of_folder, has_decoder, in_bf16, pretrained
from graftwork.pretrained.model_folder import locate, model_type, reading_files, weight_digests
from graftwork.pretrained.network_config import configuration
from graftwork.pretrained.tokenizer_folder import checked_copy
from graftwork.pretrained.transformers_errors import transformers_errors

WHISPER, FEATURES = "whisper", "input_features"  # its model_type, and the name of its input


@dataclass(frozen=True)
class ReadNetwork:
    """A loaded network whose reader of input files is not yet built."""

    folder: Path
    name: str
    module: PreTrainedModel
    architecture: Architecture
    random_seed: int | None

    def backbone(
        self,
        reader: Reader,
        modality: str,
        reading: Mapping[str, Any],
        sample: Inputs,
        max_length: int | None = None,
        rate: int = 0,
    ) -> ChainedBackbone:
        """Build the backbone; `reading` is JSON of the settings of `reader`, `sample` a batch of one example.

        Without `max_length` every file has as many positions as the sample.
        """
        identity: dict[str, Any] = {"files": reading_files(self.folder), "random_seed": self.random_seed}
        if self.random_seed is None:
            identity["weights"] = weight_digests(self.folder)
        shapes = shapes_of(self.architecture.unroll(self.module), sample)
        positions = sample["attention_mask"].shape[1]
        card = BackboneCard(
            id=self.name if self.random_seed is None else f"random:{self.name}",
            revision=digest({**identity, "reading": dict(reading)}),
            family=self.module.config.model_type,
            modality=modality,
            width=shapes[-1][1],
            blocks=len(shapes) - 1,
            parameters=sum(parameter.numel() for parameter in self.module.parameters()),
            pooling=self.architecture.pooling,
            max_length=max_length or positions,
            towers=1,
            shared_blocks=False,
            rate=rate,
            shapes=() if set(shapes) == {(positions, shapes[-1][1])} else shapes,
        )
        opened = ChainedBackbone(card, self.module, reader, self.architecture)
        opened.card = replace(card, lacks=tuple(role for role in ROLES if not opened.sites(role)))
        return opened


def open_network(
    source: str, architectures: Mapping[str, Architecture], random_seed: int | None, bf16: bool
) -> ReadNetwork:
    """Load configuration and weights, frozen and in eval mode; with `bf16` all but batch norms are cast to bf16."""
    folder = locate(source)
    with transformers_errors(folder):
        config = configuration(folder)
        if has_decoder(config):
            config.decoder_layers = 0  # Whisper's class would build a decoder too
        if random_seed is None:
            module = pretrained(folder, config, bf16=False)
        else:
            module = fresh_of_folder(folder, config, random_seed, bf16=False)
    module = encoder_of(module) if has_decoder(config) else module
    drop_unused(module)
    for part in [part for part in module.modules() if parametrize.is_parametrized(part)]:
        for name, _ in list(part.get_submodule("parametrizations").named_children()):
            parametrize.remove_parametrizations(part, name)  # fold a weight norm into plain weights
    module.eval().requires_grad_(False)
    for tensor in (*module.parameters(), *module.buffers()):
        tensor.data = tensor.data.clone()  # mapped files are aligned differently: copies would differ in last bits
    return ReadNetwork(
        folder, f"hf:{source}", in_bf16(module) if bf16 else module, architectures[model_type(folder)], random_seed
    )


class ImageFamily:
    """A `BackboneFamily` for the image architectures of one table, `model_type` -> architecture."""

    def __init__(self, architectures: Mapping[str, Architecture]):
        self.architectures = architectures
        self.model_types = tuple(architectures)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> ChainedBackbone:
        """Load a folder or hub name whose `model_type` is in the table."""
        opened = open_network(source, self.architectures, random_seed, bf16)
        with transformers_errors(opened.folder):
            preparation = Preparation.of_folder(opened.folder)
        weight = next(opened.module.parameters())
        pixels = torch.zeros(1, 3, preparation.side, preparation.side, dtype=weight.dtype)
        sample = {"pixel_values": pixels, "attention_mask": torch.ones(1, 1)}
        shapes = set(shapes_of(opened.architecture.unroll(opened.module), sample))
        positions = shapes.pop()[0] if len(shapes) == 1 else (preparation.side // PATCH) ** 2
        sample["attention_mask"] = torch.ones(1, positions)
        reader = ImageReader(preparation, positions)
        return opened.backbone(reader, "image", {"preparation": repr(preparation)}, sample)


class SoundFamily:
    """A `BackboneFamily` for the sound architectures of one table, `model_type` -> architecture."""

    def __init__(self, architectures: Mapping[str, Architecture]):
        self.architectures = architectures
        self.model_types = tuple(architectures)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> ChainedBackbone:
        """Load a folder or hub name whose `model_type` is in the table."""
        opened = open_network(source, self.architectures, random_seed, bf16)
        stated = preparation_settings(opened.folder, "sounds are read")
        config = opened.module.config
        dtype = next(opened.module.parameters()).dtype
        if config.model_type == WHISPER:
            return of_whisper(opened)
        if not hasattr(config, "conv_kernel"):
            return _of_spectrograms(opened, dtype)
        reader = WaveReader(
            rate=int(stated.get("sampling_rate", 16_000)),
            normalise=bool(stated.get("do_normalize", True)),
            kernels=tuple(config.conv_kernel),
            strides=tuple(config.conv_stride),
        )
        samples = reader.fewest
        sample = {
            "input_values": torch.zeros(1, samples, dtype=dtype),
            "samples": torch.tensor([samples]),
            "attention_mask": torch.ones(1, 1, dtype=torch.int64),
        }
        longest = reader.positions(MOST_SECONDS * reader.rate)
        reading = {"rate": reader.rate, "normalise": reader.normalise, "max_length": longest}
        return opened.backbone(reader, "sound", reading, sample, max_length=longest, rate=reader.rate)


def of_whisper(opened: ReadNetwork) -> ChainedBackbone:
    """Return the encoder of a Whisper as a backbone: it takes log-mel frames of 30 seconds, silence included."""
    extractor = _extractor(opened.folder)
    use_linear_maps(opened.module)
    frames = torch.zeros(
        1, extractor.feature_size, extractor.nb_max_frames, dtype=next(opened.module.parameters()).dtype
    )
    positions = opened.module.config.max_source_positions
    sample = {FEATURES: frames, "attention_mask": torch.ones(1, positions)}
    reader = SpectrogramReader(extractor, positions, longest=extractor.n_samples, called=FEATURES)
    reading = {"rate": reader.rate, "frames": extractor.nb_max_frames}
    return opened.backbone(reader, "sound", reading, sample, rate=reader.rate)


def _of_spectrograms(opened: ReadNetwork, dtype: torch.dtype) -> ChainedBackbone:
    extractor = _extractor(opened.folder)
    frames = torch.zeros(1, extractor.max_length, extractor.num_mel_bins, dtype=dtype)
    sample = {"input_values": frames, "attention_mask": torch.ones(1, 1)}
    positions = shapes_of(opened.architecture.unroll(opened.module), sample)[0][0]
    sample["attention_mask"] = torch.ones(1, positions)
    most = FRAME + HOP * extractor.max_length - 1  # one more would be a frame too many
    reader = SpectrogramReader(extractor, positions, longest=most)
    reading = {"rate": reader.rate, "frames": extractor.max_length}
    return opened.backbone(reader, "sound", reading, sample, rate=reader.rate)


def _extractor(folder: Path) -> Any:
    """Return transformers' feature extractor of a folder. Raises `ConfigError` where its settings are missing."""
    preparation_settings(folder, "sounds are read")
    with transformers_errors(folder), checked_copy(folder) as copy:
        return AutoFeatureExtractor.from_pretrained(copy, local_files_only=True, trust_remote_code=False)
