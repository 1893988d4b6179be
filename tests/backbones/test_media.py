"""Every architecture of hf_image and hf_speech, as a tiny random network: it computes what transformers computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image
from transformers import AutoFeatureExtractor, AutoImageProcessor, AutoModel

from graftwork.backbones import hf_image, hf_speech
from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.core.model import Model
from graftwork.errors import ConfigError
from graftwork.methods.adapter import Adapter
from graftwork.methods.bitfit import BitFit
from graftwork.methods.lora import Lora
from graftwork.pretrained.chained_network import ChainedBackbone
from graftwork.pretrained.media_files import decode_sound, identify
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import check_backbone, check_method, tiny_dataset, tiny_networks
from graftwork.testing.tiny_media import tiny_media
from graftwork.testing.tiny_networks import write_network

IMAGES = tuple(hf_image.ARCHITECTURES)
SOUNDS = tuple(name for name in hf_speech.ARCHITECTURES if name != "whisper")  # whose tests are in test_whisper
NEAR = 2e-5


def opened(folder: Path, model_type: str, **options: Any) -> ChainedBackbone:
    backbone = open_backbone(f"hf:{write_network(folder, model_type)}", precision=options.get("precision", "fp32"))
    assert isinstance(backbone, ChainedBackbone)
    return backbone


def examples_of(backbone: Backbone, folder: Path) -> list[Example]:
    return [*tiny_media(folder / "files", backbone.card.modality).train.examples[:6]]


def their_network(folder: Path) -> Any:
    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()


@pytest.mark.parametrize("model_type", [*IMAGES, *SOUNDS])
def test_the_contract(tmp_path: Path, model_type: str) -> None:
    backbone = opened(tmp_path, model_type)
    check_backbone(backbone, absent=backbone.card.lacks)
    assert backbone.card.family == model_type


@pytest.mark.parametrize("model_type", IMAGES)
def test_images_have_transformers_features(tmp_path: Path, model_type: str) -> None:
    backbone = opened(tmp_path, model_type)
    examples = examples_of(backbone, tmp_path)
    processor = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    theirs = processor([Image.open(example.inputs["image"].path) for example in examples], return_tensors="pt")
    inputs = backbone.collate(backbone.encode(examples), range(len(examples)))
    torch.testing.assert_close(inputs["pixel_values"], theirs["pixel_values"], atol=1e-5, rtol=0)
    with torch.no_grad():
        output, features = their_network(tmp_path)(**theirs), backbone.features(inputs)
    if model_type == "vit":
        expected = output.last_hidden_state[:, 0]
        torch.testing.assert_close(features.sequence, output.last_hidden_state, atol=NEAR, rtol=NEAR)
    else:
        expected = output.pooler_output.flatten(1)
    assert float(expected.std()) > 1e-3
    torch.testing.assert_close(features.pooled, expected, atol=NEAR, rtol=NEAR)


@pytest.mark.parametrize("model_type", SOUNDS)
def test_sounds_have_transformers_features(tmp_path: Path, model_type: str) -> None:
    """Each alone in transformers: what a batch pads there depends on its members, and here it does not."""
    backbone = opened(tmp_path, model_type)
    examples, network = examples_of(backbone, tmp_path), their_network(tmp_path)
    extractor = AutoFeatureExtractor.from_pretrained(tmp_path)
    encoded = backbone.encode(examples)
    with torch.no_grad():
        features = backbone.features(backbone.collate(encoded, range(len(examples))))
        for row, example in enumerate(examples):
            samples = decode_sound(example.inputs["sound"].path, extractor.sampling_rate)
            given = extractor(samples, sampling_rate=extractor.sampling_rate, return_tensors="pt")
            states = network(input_values=given["input_values"]).last_hidden_state[0]
            expected = (
                states[:2].mean(dim=0) if model_type not in ("wav2vec2", "hubert", "wavlm") else states.mean(dim=0)
            )
            torch.testing.assert_close(features.sequence[row, : len(states)], states, atol=NEAR, rtol=1e-4)
            torch.testing.assert_close(features.pooled[row], expected, atol=NEAR, rtol=1e-4)
            assert int(encoded.lengths[row]) == len(states)


@pytest.mark.parametrize(
    "model_type",
    [
        pytest.param(m, marks=() if m in ("resnet", "vit", "wav2vec2", "wavlm") else pytest.mark.slow)
        for m in (*IMAGES, *SOUNDS)
    ],
)
def test_files_with_nothing_in_them_have_finite_features(tmp_path: Path, model_type: str) -> None:
    """Digital silence, recordings of one sample, and images of one colour and of one pixel."""
    backbone = opened(tmp_path, model_type)
    role, media = backbone.card.modality, []
    for number, size in enumerate((1, 40, 2000)):
        path = tmp_path / f"{number}.{'png' if role == 'image' else 'wav'}"
        if role == "image":
            Image.new("RGB", (size, min(size, 40)), "navy").save(path)
        else:
            soundfile.write(path, np.full(size, 0.5 * (number == 0)), 8000)
        media.append(Example(f"train/{number}", {role: identify(path, role)}))
    with torch.no_grad():
        features = backbone.features(backbone.collate(backbone.encode(media), range(3)))
    assert bool(torch.isfinite(features.pooled).all())


def test_a_norm_before_the_convolution_of_positions_lifts_no_padding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        tiny_networks.CONFIGS, "hubert", tiny_networks.CONFIGS["hubert"] | {"conv_pos_batch_norm": True}
    )
    test_sounds_have_transformers_features(tmp_path, "hubert")


@pytest.mark.parametrize(
    "model_type", [pytest.param(m, marks=() if m in ("mobilenet_v2", "vit") else pytest.mark.slow) for m in IMAGES]
)
def test_batch_norms_stay_in_fp32(tmp_path: Path, model_type: str) -> None:
    backbone = opened(tmp_path, model_type, precision="bf16")
    norms = [part for part in backbone.module.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    assert bool(norms) == (model_type in ("resnet", "mobilenet_v2"))
    assert all(tensor.dtype != torch.bfloat16 for part in norms for tensor in (part.weight, part.running_var))
    inputs = backbone.collate(backbone.encode(examples_of(backbone, tmp_path)), [0, 1])
    with torch.no_grad():
        assert backbone.features(inputs).sequence.dtype == torch.bfloat16


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["mobilenet_v2", "vit", "wav2vec2"])
@pytest.mark.parametrize("method", ["linear_probe", "top_layers", "full"])
def test_methods_keep_their_promises(tmp_path: Path, model_type: str, method: str) -> None:
    settings = {"k": 1} if method == "top_layers" else {}
    check_method(method, settings, backbone=f"hf:{write_network(tmp_path, model_type)}")


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["vit", "swin", "wav2vec2"])
@pytest.mark.parametrize("method", ["adapter", "lora", "bitfit"])
def test_adapters_keep_their_promises(tmp_path: Path, model_type: str, method: str) -> None:
    check_method(method, backbone=f"hf:{write_network(tmp_path, model_type)}")


def test_what_has_no_attention_is_unfit_for_adapters(tmp_path: Path) -> None:
    task = tiny_media(tmp_path / "files", "image").task
    card = opened(tmp_path / "cnn", "mobilenet_v2").card
    for method in (Adapter(), Lora(), BitFit()):
        assert "to adapt" in method.unfit(task, card)
    convnext = opened(tmp_path / "convnext", "convnext").card
    assert "attention.output" in Adapter().unfit(task, convnext)
    assert not Adapter(placement="pfeiffer").unfit(task, convnext)
    assert not BitFit().unfit(task, convnext)


def test_random_weights_are_others(tmp_path: Path) -> None:
    folder = write_network(tmp_path, "vit", seed=5)
    plain, fresh = (open_backbone(f"{word}hf:{folder}", precision="fp32") for word in ("", "random:"))
    assert plain.card.revision != fresh.card.revision
    inputs = plain.collate(plain.encode(examples_of(plain, tmp_path)), [0])
    assert not torch.allclose(plain.features(inputs).pooled, fresh.features(inputs).pooled)


def test_a_folder_that_does_not_say_how_files_are_read_is_refused(tmp_path: Path) -> None:
    for model_type in ("vit", "wav2vec2"):
        folder = write_network(tmp_path / model_type, model_type)
        (folder / "preprocessor_config.json").unlink()
        with pytest.raises(ConfigError, match="does not say how"):
            open_backbone(f"hf:{folder}", precision="fp32")


def test_augmentation_is_a_function_of_seed_epoch_and_example(tmp_path: Path) -> None:
    backbone = opened(tmp_path, "vit")
    encoded = backbone.encode(examples_of(backbone, tmp_path))
    reader: Any = backbone.reader

    def shown(rows: list[int], seed: int, epoch: int) -> np.ndarray[Any, Any]:
        return np.asarray(reader.augmented(encoded, rows, seed, epoch)["pixel_values"])

    first = shown([0, 3], 7, 1)
    assert np.array_equal(first, shown([3, 0], 7, 1)[::-1])
    assert not np.array_equal(first[0], shown([0], 7, 2)[0])
    assert not np.array_equal(first[0], shown([0], 8, 1)[0])


@pytest.mark.parametrize("model_type", ["wav2vec2", "wavlm", "hubert"])
@pytest.mark.parametrize("stable", [False, True], ids=["plain", "stable"])
def test_a_norm_learns_at_the_rate_of_where_it_works(
    model_type: str, stable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tiny_networks.CONFIGS[model_type] | {"do_stable_layer_norm": stable, "feat_extract_norm": "layer"}
    monkeypatch.setitem(tiny_networks.CONFIGS, model_type, changed)
    model = Model(opened(tmp_path, model_type), kinds.get("classification"), tiny_dataset().task, towers=1)
    model.own_blocks(0, decay=0.5)
    assert model.rates["network.encoder.layer_norm.weight"] == (1.0 if stable else 0.25)
    assert model.rates["network.feature_projection.projection.weight"] == 0.25
    assert model.rates["network.encoder.layers.0.layer_norm.weight"] == 0.5
