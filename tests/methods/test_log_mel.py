"""The filters and the spectrum where they are known, and a task that pitches decide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graftwork.core.method import Setting
from graftwork.core.task import Task
from graftwork.errors import IncompatibleModule
from graftwork.methods.log_mel import RATE, LogMel, log_mel, mel_filters
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_media import tiny_media


def test_filters_are_transformers_htk_filters() -> None:
    from transformers.audio_utils import mel_filter_bank

    theirs = mel_filter_bank(257, 40, 0, RATE / 2, RATE, norm=None, mel_scale="htk")
    np.testing.assert_allclose(mel_filters(40).T, theirs, atol=1e-6)


@pytest.mark.parametrize("pitch", [250.0, 1000.0, 4000.0])
def test_a_tone_is_loudest_in_its_own_band(pitch: float) -> None:
    tone = np.sin(2 * np.pi * pitch * np.arange(RATE) / RATE).astype(np.float32)
    frames = log_mel(tone, 40)
    assert frames.shape == (98, 40)
    place = round(pitch * 512 / RATE)
    assert frames.mean(axis=0).argmax() == mel_filters(40)[:, place].argmax()
    np.testing.assert_allclose(log_mel(0.01 * tone, 40), frames, atol=1e-4)  # loudness is no feature


def test_a_recording_shorter_than_a_frame_has_features() -> None:
    assert log_mel(np.ones(10, dtype=np.float32), 20).shape == (1, 20)


def test_it_learns_pitches(tmp_path: Path) -> None:
    data = tiny_media(tmp_path, "sound")
    fitted = LogMel().fit(tiny_bench(data, None))
    assert (fitted.logits(data.test.examples).argmax(axis=1) == data.test.targets).all()
    assert fitted.facts["features"] == 40 * 7
    setting = Setting(data.task, kinds.get("classification"), None)
    assert LogMel().restore(setting, fitted.delta(), fitted.facts).weight.shape == fitted.weight.shape
    with pytest.raises(IncompatibleModule, match="another formula"):
        LogMel(stretches=10**9).restore(setting, fitted.delta(), fitted.facts)


def test_what_it_does_not_fit() -> None:
    assert "reads sounds" in LogMel().unfit(tiny_dataset().task, None)
    sound = Task("t", Path(), sound="sound")
    assert "bands" in LogMel(bands=1).unfit(sound, None)
    assert "stretches" in LogMel(stretches=0).unfit(sound, None)
