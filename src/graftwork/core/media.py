"""Media: input files (images and sounds), identified by their content."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

MEDIA = ("image", "sound")  # the input roles whose values are files
COLUMNS = {"image": ("image", "img"), "sound": ("sound", "audio")}  # their usual columns; hub sets have the second
SUFFIXES = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    "sound": (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au"),
}


@dataclass(frozen=True, slots=True)
class Media:
    """An input file. Two files with the same bytes are equal, whatever their paths."""

    path: str = field(compare=False)
    sha256: str
    size: tuple[int, int] = field(compare=False)  # image: width, height; sound: frames, frames per second
    silent: bool = field(default=False, compare=False)  # a sound whose samples are all zero


def conversion(path: Path, role: str, options: str = "") -> str:
    """Return the command that converts a file, image or sound, to a format that is read."""
    made = ".png" if role == "image" else ".wav" if path.suffix.lower() == ".flac" else ".flac"
    words = ["magick" if role == "image" else "ffmpeg -i", shlex.quote(str(path)), options]
    return " ".join(filter(None, [*words, shlex.quote(str(path.with_suffix(made)))]))
