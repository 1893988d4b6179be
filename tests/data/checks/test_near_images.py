"""Near pictures: another size, quality or file of one is found, other pictures are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from graftwork.core.media import Media
from graftwork.data.checks import near_images
from graftwork.data.checks.near_duplicates import clusters, partners_across
from graftwork.data.checks.near_images import APART, BITS, sketch_images
from graftwork.pretrained.media_files import identify


def picture(seed: int) -> Image.Image:
    """Soft blotches, as photographs have."""
    grid = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(grid).resize((96, 80), Image.Resampling.BICUBIC)


def saved(folder: Path, name: str, image: Image.Image, quality: int = 95) -> Media:
    path = folder / name
    image.save(path, **({"quality": quality} if path.suffix == ".jpg" else {}))
    return identify(path, "image")


def test_other_files_of_one_picture_are_near_and_other_pictures_are_not(tmp_path: Path) -> None:
    media = [saved(tmp_path, f"{i}.png", picture(i)) for i in range(60)]
    media.append(saved(tmp_path, "same.bmp", picture(3)))
    media.append(saved(tmp_path, "worse.jpg", picture(5), quality=40))
    media.append(saved(tmp_path, "small.png", picture(7).resize((48, 40))))
    sketch = sketch_images(media)
    labels = clusters(sketch, np.arange(len(media)))
    assert labels[60] == labels[3] and labels[61] == labels[5] and labels[62] == labels[7]
    assert len(set(labels.tolist())) == 60
    value = sketch.resemblance(np.array([60, 61, 62]), np.array([3, 5, 7]))
    assert value[0] == 1.0 and value[1] < 1.0 and value[2] < 1.0  # 1 is kept for the same pixels


def test_pictures_that_show_nothing_are_left_alone(tmp_path: Path) -> None:
    media = [saved(tmp_path, f"{i}.png", Image.new("RGB", (40, 40), (i, i, i))) for i in range(5)]
    assert len(set(clusters(sketch_images(media), np.arange(5)).tolist())) == 5


def test_a_pair_is_found_among_hundreds_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of one kind, as scans are: a part of their hashes is the same, and of each pair no other one."""
    random = np.random.default_rng(0)
    one = random.random((100, BITS)) < 0.5
    parts = np.array_split(np.arange(BITS), APART + 1)
    one[:, parts[0]] = True
    other = one.copy()
    other[:, [part[0] for part in parts[1:]]] ^= True
    hashes = np.concatenate([one, other])
    media = [Media(str(row), str(row), (8, 8)) for row in range(len(hashes))]
    monkeypatch.setattr(near_images, "_hash", lambda image: (hashes[int(image.path)], True))
    sketch, rows = sketch_images(media), np.arange(100)
    labels = clusters(sketch, np.arange(200))
    assert np.array_equal(labels[:100], labels[100:]) and len(set(labels.tolist())) == 100
    assert set(partners_across(sketch, rows, rows + 100).pairs[:, 0].tolist()) == set(rows.tolist())
