"""Images of any shape become squares."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from graftwork.pretrained import images
from graftwork.pretrained.images import Preparation

BILINEAR = int(Image.Resampling.BILINEAR)


def preparation(resize: int, side: int) -> Preparation:
    return Preparation(resize, side, BILINEAR, 1 / 255, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@pytest.mark.parametrize("size", [(1_000_000, 1), (1, 1_000_000), (1, 1)])
def test_a_line_takes_no_more_memory_than_a_picture(size: tuple[int, int]) -> None:
    square = preparation(256, 224).prepared(Image.new("RGB", size, (7, 8, 9)))
    assert square.shape == (3, 224, 224)
    assert np.array_equal(square[:, 0, 0], [7, 8, 9]) and not np.ptp(square, axis=(1, 2)).any()


def test_the_ends_of_a_long_image_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Image.fromarray(np.random.default_rng(0).integers(0, 256, (10, 100, 3), dtype=np.uint8))
    for image in (wide, wide.transpose(Image.Transpose.ROTATE_90)):
        whole = preparation(8, 8).prepared(image)
        with monkeypatch.context() as patched:
            patched.setattr(images, "MOST_RESIZED", 4 * 8 * 8)
            assert np.array_equal(preparation(8, 8).prepared(image), whole)
