"""Toy images and sounds whose classes can be learnt, written in milliseconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graftwork.core.example import Example
from graftwork.core.task import SPLITS, Dataset, Task
from graftwork.io.extras import extra
from graftwork.pretrained.media_files import identify
from graftwork.testing.tiny_data import dataset_of

SIDE, RATE, SECONDS = 24, 8000, 0.2
COLOURS = {"red": (200, 40, 30), "blue": (30, 60, 190)}  # class -> colour of its images
PITCHES = {"low": 300.0, "high": 1500.0}  # class -> pitch of its sounds, in Hz
CLASSES = {"image": tuple(COLOURS), "sound": tuple(PITCHES)}


def write_image(path: Path, label: str, number: int) -> Path:
    """Write a noisy image of the class's colour; `number` seeds the noise."""
    with extra("images", "writing images"):
        from PIL import Image

    random = np.random.default_rng([number, len(label)])
    noise = random.normal(0, 25, (SIDE, SIDE + 2 * (number % 3), 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(np.array(COLOURS[label]) + noise, 0, 255).astype(np.uint8)).save(path)
    return path


def write_sound(path: Path, label: str, number: int, rate: int = RATE) -> Path:
    """Write a noisy tone of the class's pitch; `number` seeds the noise and sets the length."""
    with extra("sound", "writing sound"):
        import soundfile

    random = np.random.default_rng([number, len(label)])
    times = np.arange(int(rate * (SECONDS + 0.02 * (number % 4)))) / rate
    tone = 0.5 * np.sin(2 * np.pi * PITCHES[label] * times) + random.normal(0, 0.05, len(times))
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone, rate)
    return path


def write_folder(folder: Path, role: str, each: int) -> Path:
    """Write a folder of class folders with `each` files per class."""
    for label in CLASSES[role]:
        for number in range(each):
            if role == "image":
                write_image(folder / label / f"{number}.png", label, number)
            else:
                write_sound(folder / label / f"{number}.wav", label, number)
    return folder


def tiny_media(folder: Path, role: str, *, rows: int = 20) -> Dataset:
    """Return a toy task of images or sounds, with files in `folder`; validation and test have half of `rows` each."""
    task = Task("tiny", folder).resolved(**{role: role})
    labels, suffix = CLASSES[role], {"image": "png", "sound": "wav"}[role]
    write, number, examples = {"image": write_image, "sound": write_sound}[role], 0, {}
    for name in SPLITS:
        listed = []
        for row in range(rows if name == "train" else rows // 2):
            label, number = labels[row % 2], number + 1
            file = write(folder / f"{number}.{suffix}", label, number)
            listed.append(Example(f"{name}/{row + 1}", {role: identify(file, role)}, label))
        examples[name] = tuple(listed)
    return dataset_of(task, examples)
