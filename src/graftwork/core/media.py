"""Media: input files (images and sounds), identified by their content."""

from __future__ import annotations

from dataclasses import dataclass, field

MEDIA = ("image", "sound")  # the input roles whose values are files
COLUMNS = {"image": ("image", "img"), "sound": ("sound", "audio")}  # their usual columns; hub sets have the second
SUFFIXES = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    "sound": (".wav", ".flac", ".ogg"),
}


@dataclass(frozen=True, slots=True)
class Media:
    """An input file. Two files with the same bytes are equal, whatever their paths."""

    path: str = field(compare=False)
    sha256: str
    size: tuple[int, int] = field(compare=False)  # image: width, height; sound: frames, frames per second
