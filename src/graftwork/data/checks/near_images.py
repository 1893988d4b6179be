"""Near-duplicate images: the same picture in another file, size or quality.

A picture's hash has one bit for each of its 63 lowest frequencies without the mean: set if it is above their median
(perceptual hashing by the discrete cosine transform; Zauner 2010, *Implementation and Benchmarking of Perceptual Image
Hash Functions*).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn

from graftwork.core.media import Media
from graftwork.data.checks.near_duplicates import Rows, Sketch
from graftwork.pretrained.media_files import decode_image

SIDE, LOW = 32, 8  # side of the transformed picture, and of the block of frequencies kept
BITS = LOW * LOW - 1
APART = 4  # most bits by which near pictures differ
NEIGHBOURS = 256  # pictures of one bucket that each picture is compared with: bucket keys have only a dozen bits
EVEN = 2.0  # least standard deviation of the grey levels (0 to 255); plainer pictures are not compared

_ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


def sketch_images(images: Sequence[Media]) -> Sketch:
    """Sketch images; those whose hashes differ in `APART` bits or fewer are near, and every such pair shares a bucket.

    The resemblance is the share of equal bits, reduced by half a bit if the hashes are equal and the pixels are not.
    Raises `DataError` for a file that can't be decoded.
    """
    hashes = np.zeros((len(images), BITS), dtype=bool)
    shown = np.zeros(len(images), dtype=bool)
    for row, image in enumerate(images):
        hashes[row], shown[row] = _hash(image)

    packed = np.packbits(hashes, axis=1)  # (N, 8)

    @cache
    def pixels(row: int) -> tuple[tuple[int, int], bytes]:
        return images[row].size, hashlib.blake2b(np.asarray(decode_image(images[row].path)).tobytes()).digest()

    def resemblance(left: Rows, right: Rows) -> NDArray[np.float64]:
        apart = _ONES[packed[left] ^ packed[right]].sum(axis=1)
        found: NDArray[np.float64] = 1.0 - apart / BITS
        for pair in np.flatnonzero(apart == 0):
            if pixels(int(left[pair])) != pixels(int(right[pair])):
                found[pair] = 1.0 - 0.5 / BITS
        return np.asarray(found)

    return Sketch(_keys(hashes, shown), resemblance, 1.0 - (APART + 0.25) / BITS, NEIGHBOURS)


def _hash(image: Media) -> tuple[NDArray[np.bool_], bool]:
    """Return (63,) bits, and whether the picture has any content."""
    small = decode_image(image.path, roughly=True).convert("L").resize((SIDE, SIDE))
    grey = np.asarray(small, dtype=np.float64)
    low = dctn(grey)[:LOW, :LOW].ravel()[1:]
    return low > np.median(low), bool(grey.std() >= EVEN)


def _keys(hashes: NDArray[np.bool_], shown: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return (N, APART + 1) keys: one part of the hash each, so that `APART` differing bits leave one part equal."""
    keys = []
    for part in np.array_split(np.arange(BITS), APART + 1):
        weights = np.uint64(1) << np.arange(len(part), dtype=np.uint64)
        keys.append((hashes[:, part] * weights).sum(axis=1, dtype=np.uint64))
    alone = (np.arange(len(hashes)) + (1 << 32)).astype(np.uint64)  # pictures without content: a bucket each
    return np.where(shown[:, None], np.stack(keys, axis=1), alone[:, None])
