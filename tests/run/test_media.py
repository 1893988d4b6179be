"""Images and sounds through the engine: kept states, augmentation in the receipt, rates and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graftwork as gw
from graftwork.core.configured_methods import parse_method
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.run.receipt import read_receipt
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import read_logits
from graftwork.testing.tiny_media import write_folder, write_sound
from graftwork.testing.tiny_networks import write_network


def trained(folder: Path, model_type: str, method: str, role: str = "image", **options: Any) -> Any:
    """A run on a folder of 24 files, which is written where it is not there yet."""
    data, network = folder / "things", folder / model_type
    if not data.is_dir():
        write_folder(data, role, 12)
    if not network.is_dir():
        write_network(network, model_type)
    options = {"runs": folder / "runs", "cache": folder / "cache", "precision": "fp32"} | options
    return gw.train(Task.from_file(data), method=method, backbone=f"hf:{network}", epochs=1, **options)


@pytest.mark.parametrize(
    ("model_type", "k", "depth"),
    [
        ("resnet", 2, 1),
        pytest.param("vit", 1, 1, marks=pytest.mark.slow),
        pytest.param("swin", 2, 2, marks=pytest.mark.slow),
        pytest.param("convnext", 2, 1, marks=pytest.mark.slow),
        pytest.param("mobilenet_v2", 2, 15, marks=pytest.mark.slow),
    ],
)
def test_kept_states_of_any_shape_change_no_number(tmp_path: Path, model_type: str, k: int, depth: int) -> None:
    method = f"top_layers:k={k}"
    kept = trained(tmp_path, model_type, method)
    again = trained(tmp_path, model_type, method, runs=tmp_path / "again")
    alone = trained(tmp_path, model_type, method, runs=tmp_path / "alone", cache_size="0")
    assert kept.result.facts["start_block"] == depth
    assert "kept states" in kept.result.facts["frozen"]
    assert list((tmp_path / "cache").rglob("*.safetensors"))
    for other in (again, alone):
        assert np.array_equal(read_logits(kept.folder, "test"), read_logits(other.folder, "test"))


def test_the_receipt_says_what_was_augmented(tmp_path: Path) -> None:
    full = trained(tmp_path, "vit", "full")
    assert full.result.facts["augmentation"].startswith("random resized crop (50% to 100% of the area)")
    plain = trained(tmp_path, "vit", "full", augment=False)
    assert plain.result.facts["augmentation"] == "none"
    assert plain.result.id != full.result.id
    assert not np.array_equal(read_logits(plain.folder, "test"), read_logits(full.folder, "test"))
    top = trained(tmp_path, "vit", "top_layers:k=1")
    assert top.result.facts["augmentation"] == "none: training starts from the kept states entering block 1"
    for method in ("linear_probe", "contrastive:steps=2"):
        run = trained(tmp_path, "vit", method)
        assert "augmentation" not in run.result.facts
        assert not read_receipt(run.folder)["method"]["recipe"], "a plan of its own, which shows every image as it is"


def test_batch_norms_keep_their_statistics(tmp_path: Path) -> None:
    run = trained(tmp_path, "resnet", "full")
    network = run.module.fitted.model.backbone.module
    start = dict(open_backbone(f"hf:{tmp_path / 'resnet'}", precision="fp32").module.named_buffers())
    statistics = {name: tensor for name, tensor in network.named_buffers() if "running" in name}
    assert statistics
    assert all(bool((tensor == start[name]).all()) for name, tensor in statistics.items())


def test_a_probe_of_uneven_widths_tries_blocks_and_no_mix(tmp_path: Path) -> None:
    tried = trained(tmp_path, "resnet", "linear_probe").result.facts["cross_validation"]
    assert list(tried) == ["3", "2", "1", "0"]
    assert "mix" in trained(tmp_path, "vit", "linear_probe").result.facts["cross_validation"]


def test_recordings_of_other_rates_are_resampled_and_counted(tmp_path: Path) -> None:
    write_folder(tmp_path / "things", "sound", 12)
    write_sound(tmp_path / "things" / "low" / "x.wav", "low", 3, rate=16_000)
    run = trained(tmp_path, "wav2vec2", "linear_probe", role="sound")
    assert any("resampled" in warning and "8,000" in warning for warning in run.warnings)
    assert run.result.scores["accuracy"] >= 0.5


def test_a_backbone_of_texts_takes_no_images(tmp_path: Path) -> None:
    write_folder(tmp_path / "things", "image", 6)
    with pytest.raises(ConfigError, match="reads texts, and the data are images"):
        gw.train(Task.from_file(tmp_path / "things"), method="linear_probe", backbone="tiny_text", runs=tmp_path / "r")
    folder = write_network(tmp_path / "vit", "vit")
    rows = "\n".join(f"number {i}\t{'ab'[i % 2]}" for i in range(20))
    (tmp_path / "t.tsv").write_text(f"text\tlabel\n{rows}\n")
    with pytest.raises(ConfigError, match="reads images, and the data are texts"):
        setup = RunSettings(f"hf:{folder}", runs=str(tmp_path / "r"), precision="fp32")
        open_session(Task.from_file(tmp_path / "t.tsv"), [parse_method("linear_probe")], setup)
