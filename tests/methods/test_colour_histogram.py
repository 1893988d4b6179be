"""The histogram by hand, and a task that colours decide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.methods.colour_histogram import ColourHistogram
from graftwork.pretrained.media_files import identify
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_media import tiny_media


def test_features_are_roots_of_the_shares_of_colours(tmp_path: Path) -> None:
    pixels = np.zeros((2, 4, 3), dtype=np.uint8)
    pixels[0] = (255, 0, 0)
    pixels[1, :2] = (0, 0, 200)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    found = ColourHistogram(bins=2).features(Example("train/1", {"image": identify(tmp_path / "a.png", "image")}))
    expected = np.zeros(8)
    expected[[0, 1, 4]] = np.sqrt([0.25, 0.25, 0.5])  # black, blue, red
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_it_learns_colours(tmp_path: Path) -> None:
    data = tiny_media(tmp_path, "image")
    fitted = ColourHistogram().fit(tiny_bench(data, None))
    assert (fitted.logits(data.test.examples).argmax(axis=1) == data.test.targets).all()
    assert fitted.facts["features"] == 216


def test_what_it_does_not_fit() -> None:
    assert "reads images" in ColourHistogram().unfit(tiny_dataset().task, None)
    assert "bins" in ColourHistogram(bins=40).unfit(Task("t", Path(), image="image"), None)
