"""A reader of images: resized, cropped and scaled as the model's folder states, and augmented in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Encoded, Inputs
from graftwork.core.example import Example
from graftwork.core.media import Media
from graftwork.errors import ConfigError
from graftwork.io.extras import extra
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.media_files import KeptArrays, decode_image
from graftwork.pretrained.model_json import checked_sizes

if TYPE_CHECKING:
    from PIL.Image import Image

AREA, RATIO = (0.5, 1.0), (3 / 4, 4 / 3)  # of a random crop: share of the image's area, width / height
PREPARED = "preprocessor_config.json"
LARGEST_SIDE = 2048  # maximum side in pixels of a resized image
MOST_RESIZED = 1 << 25  # maximum pixels after the shorter side was resized
PATCH = 16  # pixels: if feature maps shrink between blocks, T is the number of patches of this size


def preparation_settings(folder: Path, what: str) -> dict[str, Any]:
    """Read preprocessor_config.json. Raises `ConfigError` if it is missing; `what` it says is named in the message."""
    path = model_file(folder, PREPARED)
    if not path.is_file():
        raise ConfigError(
            f"the folder does not say how {what}",
            where=str(folder),
            expected=PREPARED,
            do="copy it from where the weights come from",
        )
    return checked_sizes(path)


@dataclass(frozen=True)
class Preparation:
    """The preprocessing of an image to a square array."""

    resize: int | tuple[int, int]  # pixels of the shorter side, or height and width
    side: int  # of the centre crop
    resample: int  # Pillow's filter number
    scale: float
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    @classmethod
    def of_folder(cls, folder: Path) -> Preparation:
        """Read preprocessor_config.json, with transformers' defaults for missing values. Raises `ConfigError`."""
        with extra("images", "preparing images", where=str(folder)):
            import PIL  # noqa: F401 - transformers' processors need it
        from transformers import AutoImageProcessor

        from graftwork.pretrained.tokenizer_folder import checked_copy

        preparation_settings(folder, "images are prepared")
        with checked_copy(folder) as copy:
            stated = AutoImageProcessor.from_pretrained(
                copy, backend="pil", local_files_only=True, trust_remote_code=False
            )
        resize, side = _sizes(stated, folder)
        return cls(
            resize=resize,
            side=side,
            resample=int(stated.resample),
            scale=float(stated.rescale_factor) if stated.do_rescale else 1.0,
            mean=_of_channels(stated.image_mean if stated.do_normalize else 0.0),
            deviation=_of_channels(stated.image_std if stated.do_normalize else 1.0),
        )

    def prepared(self, image: Image) -> NDArray[np.uint8]:
        """Resize and centre-crop an image to (3, side, side)."""
        if isinstance(self.resize, int):
            image = _middle(image, MOST_RESIZED // self.resize**2)
            width, height = image.size
            short, long = sorted(image.size)
            lengths = (self.resize, int(self.resize * long / short))
            target = lengths if width <= height else lengths[::-1]
        else:
            target = self.resize[::-1]
        image = image.resize(target, self.resample)
        left, top = (image.width - self.side) // 2, (image.height - self.side) // 2
        return _array(image.crop((left, top, left + self.side, top + self.side)))

    def augmented(self, image: Image, random: np.random.Generator) -> NDArray[np.uint8]:
        """Return a random resized crop (3, side, side), mirrored with probability 1/2."""
        from PIL import Image as images

        area = random.uniform(*AREA) * image.width * image.height
        ratio = float(np.exp(random.uniform(*np.log(RATIO))))
        width, height = min(image.width, (area * ratio) ** 0.5), min(image.height, (area / ratio) ** 0.5)
        left, top = random.uniform(0, image.width - width), random.uniform(0, image.height - height)
        part = image.resize((self.side, self.side), self.resample, box=(left, top, left + width, top + height))
        return _array(part.transpose(images.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else part)

    def numbers(self, pixels: Tensor) -> Tensor:
        """Rescale and normalise uint8 (S, 3, side, side) to fp32, as in the network's pretraining."""
        mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in (self.mean, self.deviation))
        return (pixels.float() * self.scale - mean) / deviation


@dataclass
class ImageReader:
    """An `AugmentingReader` of images. Prepared images are cached in memory as long as they fit."""

    preparation: Preparation
    positions: int  # T of an image
    augmentation: str = (
        f"random resized crop ({AREA[0]:.0%} to {AREA[1]:.0%} of the area), horizontal flip, by seed, epoch and example"
    )
    kept: KeptArrays = field(default_factory=KeptArrays, repr=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> ImageReader:
        """Return itself: it has no state to train."""
        return self

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Encode each image as one sequence, all of one length."""
        media = tuple(example.inputs["image"] for example in examples)
        for one in media:
            self._prepared(one)
        row = [0] * self.positions
        return Encoded(ids=[row] * len(media), types=[row] * len(media), towers=1, cut=0, media=media)

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Return `pixel_values` (S, 3, H, W)."""
        assert encoded.media is not None
        return self._inputs([self._prepared(encoded.media[row]) for row in sequences])

    def augmented(self, encoded: Encoded, sequences: Sequence[int], seed: int, epoch: int) -> Inputs:
        """Like `collate`, with random crops of the images."""
        assert encoded.media is not None
        return self._inputs(
            [
                self.preparation.augmented(
                    decode_image(encoded.media[row].path), np.random.default_rng([seed, epoch, row])
                )
                for row in sequences
            ]
        )

    def _inputs(self, images: Sequence[NDArray[np.uint8]]) -> Inputs:
        return {
            "pixel_values": self.preparation.numbers(torch.from_numpy(np.stack(images))),
            "attention_mask": torch.ones(len(images), self.positions, dtype=torch.int64),
        }

    def _prepared(self, image: Media) -> NDArray[np.uint8]:
        made: NDArray[np.uint8] = self.kept.get(image, lambda: self.preparation.prepared(decode_image(image.path)))
        return made


def _middle(image: Image, times: int) -> Image:
    """Cut an image longer than `times` its width to its middle: the ends would be cropped anyway."""
    width, height = (min(side, times * min(image.size)) for side in image.size)
    if (width, height) == image.size:
        return image
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def _array(image: Image) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


def _of_channels(stated: Any) -> tuple[float, float, float]:
    red, green, blue = stated if isinstance(stated, list | tuple) else [stated] * 3
    return float(red), float(green), float(blue)


def _sizes(stated: Any, folder: Path) -> tuple[int | tuple[int, int], int]:
    """Return `resize` and `side` of a preparation."""
    size, crop = stated.size, stated.crop_size if stated.do_center_crop else None
    edge = size.shortest_edge
    share = getattr(stated, "crop_pct", None)
    if share is not None and edge:  # ConvNeXt's own rule
        return (int(edge / share), edge) if edge < 384 else ((edge, edge), edge)
    resize = edge or (size.height, size.width)
    side = (crop.height, crop.width) if crop else resize
    if stated.do_resize and isinstance(side, tuple) and side[0] == side[1] and side[0]:
        if max(side[0], *([resize] if isinstance(resize, int) else resize)) > LARGEST_SIDE:
            raise ConfigError(
                "images of this size are not read",
                where=str(folder / PREPARED),
                got=f"size {size}, crop {crop}",
                expected=f"at most {LARGEST_SIDE:,} pixels a side",
            )
        return resize, int(side[0])
    raise ConfigError(
        "images that are not brought to one square are not known here",
        where=str(folder / PREPARED),
        got=f"size {size}, crop {crop}",
        expected="a square size, or a shorter side and a square crop",
    )
