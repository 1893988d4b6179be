"""Tiny random networks for images, sounds and texts, written as folders in milliseconds, and word vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graftwork.nn.bilm import BiLM, BiLMShape, fresh_bilm
from graftwork.pretrained.word_vector_table import WordVectors

SIDE, RATE = 32, 8000  # image side in pixels, samples per second
LAYERS: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "initializer_range": 0.2,
}  # fmt: skip
WAVES: dict[str, Any] = LAYERS | {
    "conv_dim": (8, 8), "conv_kernel": (10, 4), "conv_stride": (8, 4),
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "vocab_size": 8,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "vit": LAYERS | {"image_size": SIDE, "patch_size": 8},
    "swin": {"image_size": SIDE, "patch_size": 4, "embed_dim": 8, "depths": (2, 2), "num_heads": (2, 2),
             "window_size": 2, "initializer_range": 0.2},
    "convnext": {"image_size": SIDE, "hidden_sizes": (8, 16), "depths": (1, 2), "num_stages": 2,
                 "layer_scale_init_value": 0.5, "initializer_range": 0.2},
    "resnet": {"embedding_size": 8, "hidden_sizes": (8, 16), "depths": (1, 2), "layer_type": "basic"},
    "mobilenet_v2": {"depth_multiplier": 0.35, "image_size": SIDE, "tf_padding": True},
    "wav2vec2": WAVES,
    "hubert": WAVES | {"do_stable_layer_norm": True, "feat_extract_norm": "layer"},
    "wavlm": WAVES,
    "audio-spectrogram-transformer": LAYERS | {"max_length": 40, "num_mel_bins": 16, "patch_size": 8,
                                               "frequency_stride": 8, "time_stride": 8},
}  # fmt: skip
_SQUARE = {"do_resize": True, "do_rescale": True, "do_normalize": True}
PREPARED: dict[str, dict[str, Any]] = {
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": SIDE, "width": SIDE}},
    "swin": {"image_processor_type": "ViTImageProcessor", "size": {"height": SIDE, "width": SIDE}},
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": SIDE}, "crop_pct": 0.875},
    "resnet": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": SIDE}, "crop_pct": 0.875},
    "mobilenet_v2": {"image_processor_type": "MobileNetV2ImageProcessor", "size": {"shortest_edge": SIDE + 8},
                     "do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}},
}  # fmt: skip

WORDS = ("the", "a", "was", "film", "so", "it", "good", "fine", "warm", "bad", "sad", "cold", "is", "?", "do", "n't")


def tiny_word_vectors(words: Sequence[str] = WORDS, width: int = 8) -> WordVectors:
    """Return random vectors, the same on every call."""
    return WordVectors(words, np.random.default_rng(0).normal(size=(len(words), width)).astype(np.float32))


def write_network(folder: Path, model_type: str, seed: int = 0) -> Path:
    """Write a random network of `CONFIGS` with its preprocessor as a folder; batch norms have random statistics."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(model_type, **CONFIGS[model_type])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AutoModel.from_config(config)
        for parameter in network.parameters():
            if parameter.dim() == 4:
                torch.nn.init.kaiming_normal_(parameter)  # so that the input still affects the output of a deep network
        for name, buffer in network.named_buffers():
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 2.0)
            elif name.endswith("running_mean"):
                buffer.normal_(0, 0.2)
    network.save_pretrained(folder)
    prepared = _SQUARE | PREPARED[model_type] if model_type in PREPARED else {
        "feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": RATE, "do_normalize": True
    }  # fmt: skip
    if model_type == "audio-spectrogram-transformer":
        prepared = {"feature_extractor_type": "ASTFeatureExtractor", "sampling_rate": RATE, "max_length": 40,
                    "num_mel_bins": 16}  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(prepared))
    return folder


def tiny_bilm(seed: int = 0) -> BiLM:
    """Return a random two-layer ELMo network, with weights large enough to distinguish words."""
    options = {
        "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 8], [3, 16]], "n_highway": 1, "activation": "relu",
                     "max_characters_per_token": 50},
        "lstm": {"dim": 32, "projection_dim": 16, "n_layers": 2, "cell_clip": 3, "proj_clip": 3,
                 "use_skip_connections": True},
    }  # fmt: skip
    return fresh_bilm(BiLMShape.of(options, "tiny_bilm"), seed)


def write_awd_lstm(folder: Path, seed: int = 0) -> Path:
    """Write a folder of a random, narrow AWD-LSTM with the tokeniser of `tiny_text`; [SEP] precedes each text."""
    from tokenizers.processors import TemplateProcessing

    from graftwork.backbones.awd_lstm import MODEL_TYPE
    from graftwork.backbones.tiny_text import MAX_LENGTH, tiny_tokenizer
    from graftwork.io.files import write_json, write_tensors, write_text
    from graftwork.nn.lstm_stack import AwdLstm, AwdLstmShape

    tokenizer = tiny_tokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[SEP] $A", pair="[SEP] $A [SEP] $B:1", special_tokens=[("[SEP]", tokenizer.token_to_id("[SEP]"))]
    )
    shape = AwdLstmShape(tokenizer.get_vocab_size(), embedding_size=12, hidden_size=20, max_length=MAX_LENGTH)
    network = AwdLstm(shape)
    network.draw(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3.0)  # so that a narrow network distinguishes two texts
    write_tensors(folder / "model.safetensors", network.state_dict())
    write_text(folder / "tokenizer.json", tokenizer.to_str())
    write_json(folder / "config.json", {"model_type": MODEL_TYPE, **asdict(shape)})
    return folder
