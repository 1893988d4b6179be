"""Media: the files that are inputs, images and sounds. Each is known by its content."""

from __future__ import annotations

from dataclasses import dataclass, field

MEDIA = ("image", "sound")  # the roles whose inputs are files
SUFFIXES = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    "sound": (".wav", ".flac", ".ogg"),
}


@dataclass(frozen=True, slots=True)
class Media:
    """A file that is an input. It is its content: two of the same bytes are equal, wherever they lie."""

    path: str = field(compare=False)
    sha256: str
    size: tuple[int, int] = field(compare=False)  # of an image width and height; of a sound frames, and frames a second
