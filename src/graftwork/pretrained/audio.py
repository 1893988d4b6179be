"""Readers of sounds: samples at a network's rate, or a spectrogram of a fixed length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.core.backbone import Encoded, Inputs
from graftwork.core.example import Example
from graftwork.core.media import Media
from graftwork.pretrained.media_files import KeptArrays, decode_sound

FRAME, HOP = 400, 160  # samples of a spectrogram frame, and between frame starts
ALIKE = "input_values"  # what most networks call their input
MOST_SECONDS = 30  # longest part of a recording that is encoded: the cost of attention grows with its square


@dataclass
class WaveReader:
    """A `Reader` for networks that take samples: T follows from their initial convolutions."""

    rate: int
    normalise: bool  # scale each recording to mean 0 and variance 1
    kernels: tuple[int, ...]  # of the convolutions
    strides: tuple[int, ...]
    kept: KeptArrays = field(default_factory=KeptArrays, repr=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> WaveReader:
        """Return itself: it has no state to train."""
        return self

    def positions(self, samples: int) -> int:
        """Return T for this number of samples."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            samples = (samples - kernel) // stride + 1
        return samples

    @property
    def fewest(self) -> int:
        """The fewest samples that give one position."""
        samples = 1
        for kernel, stride in zip(reversed(self.kernels), reversed(self.strides), strict=True):
            samples = (samples - 1) * stride + kernel
        return samples

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Encode each recording as one sequence, cut after `MOST_SECONDS`."""
        media = tuple(example.inputs["sound"] for example in examples)
        rows = [[0] * self.positions(len(self._samples(one))) for one in media]
        cut = sum(one.size[0] > MOST_SECONDS * one.size[1] for one in media)
        return Encoded(ids=rows, types=rows, towers=1, cut=cut, media=media)

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Return `input_values` (S, samples), zero-padded on the right, and `samples` (S,), the real lengths."""
        assert encoded.media is not None
        waves = [self._samples(encoded.media[row]) for row in sequences]
        lengths = np.array([len(wave) for wave in waves])
        values = np.zeros((len(waves), int(lengths.max())), dtype=np.float32)
        for row, wave in zip(values, waves, strict=True):
            row[: len(wave)] = wave
        positions = torch.tensor([self.positions(int(length)) for length in lengths])
        return {
            "input_values": torch.from_numpy(values),
            "samples": torch.from_numpy(lengths),
            "attention_mask": (torch.arange(int(positions.max())) < positions[:, None]).long(),
        }

    def _samples(self, sound: Media) -> NDArray[np.float32]:
        def made() -> NDArray[np.float32]:
            samples = decode_sound(sound.path, self.rate)[: MOST_SECONDS * self.rate]
            if self.normalise:
                samples = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
            return np.pad(samples, (0, max(0, self.fewest - len(samples)))).astype(np.float32)

        return self.kept.get(sound, made)


@dataclass
class SpectrogramReader:
    """A `Reader` for networks that take a spectrogram of a fixed length; shorter recordings are padded with silence."""

    extractor: Any  # a transformers feature extractor
    positions: int  # T of a recording
    longest: int  # samples of the longest recording that is read whole
    called: str = ALIKE  # the name of the network's input
    kept: KeptArrays = field(default_factory=KeptArrays, repr=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> SpectrogramReader:
        """Return itself: it has no state to train."""
        return self

    @property
    def rate(self) -> int:
        """Samples per second."""
        return int(self.extractor.sampling_rate)

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Encode each recording as one sequence, all of one length; `cut` counts longer recordings."""
        media = tuple(example.inputs["sound"] for example in examples)
        for one in media:
            self._frames(one)
        row = [0] * self.positions
        cut = sum(one.size[0] / one.size[1] * self.rate > self.longest for one in media)
        return Encoded(ids=[row] * len(media), types=[row] * len(media), towers=1, cut=cut, media=media)

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Return the spectrograms (S, frames, bands), or (S, bands, frames) for Whisper."""
        assert encoded.media is not None
        frames = [self._frames(encoded.media[row]) for row in sequences]
        return {
            self.called: torch.from_numpy(np.stack(frames)),
            "attention_mask": torch.ones(len(frames), self.positions, dtype=torch.int64),
        }

    def _frames(self, sound: Media) -> NDArray[np.float32]:
        def made() -> NDArray[np.float32]:
            samples = decode_sound(sound.path, self.rate)
            samples = np.pad(samples, (0, max(0, FRAME - len(samples))))
            found = self.extractor(samples, sampling_rate=self.rate, return_tensors="np")
            return np.asarray(found[self.called][0], dtype=np.float32)

        return self.kept.get(sound, made)
