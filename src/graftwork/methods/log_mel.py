"""Log-mel statistics + linear model: the log power of mel bands in a few segments of a recording (Davis & Mermelstein
1980)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Setting, Workbench
from graftwork.core.task import Task
from graftwork.pretrained.media_files import decode_sound
from graftwork.registry import methods
from graftwork.train.formula_features import LinearOnFormula, fit_on_formula, restore_on_formula

RATE = 16_000  # samples per second; every recording is resampled to it
FRAME, HOP, POINTS = 400, 160, 512  # samples of a frame (25 ms), of the hop (10 ms) and of the Fourier transform
FLOOR = 1e-8  # added to the relative power before the logarithm


@lru_cache(maxsize=4)
def mel_filters(bands: int) -> NDArray[np.float64]:
    """Return triangular filters (bands, POINTS / 2 + 1), equally wide on the mel scale 2595 log10(1 + f / 700), from 0
    to RATE / 2."""
    highest = 2595 * np.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, highest, bands + 2) / 2595) - 1)  # (bands + 2,) Hz
    frequencies = np.arange(POINTS // 2 + 1) * RATE / POINTS
    rising = (frequencies - corners[:-2, None]) / (corners[1:-1] - corners[:-2])[:, None]
    falling = (corners[2:, None] - frequencies) / (corners[2:] - corners[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling))


def log_mel(samples: NDArray[np.float32], bands: int) -> NDArray[np.float64]:
    """Samples (T,) at RATE -> (frames, bands): the logarithm of each band's power relative to the loudest."""
    padded = np.pad(samples, (0, max(0, FRAME - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP] * np.hanning(FRAME)
    power = np.abs(np.fft.rfft(frames, POINTS)) ** 2 @ mel_filters(bands).T
    loudest = max(float(power.max()), float(np.finfo(np.float32).tiny))
    return np.asarray(np.log(power / loudest + FLOOR), dtype=np.float64)


@methods.register("log_mel")
@dataclass(frozen=True)
class LogMel(Baseline):
    """A linear layer on each mel band's mean in equal segments of the recording and its standard deviation overall."""

    bands: int = 40  # of the mel scale
    stretches: int = 6  # equal parts of the recording

    VERSION: ClassVar[int] = 2  # 1 chose the penalty on validation
    RESTORES: ClassVar[tuple[int, ...]] = (1,)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task reads sounds."""
        if task.reads != "sound":
            return f"it reads sounds, and this task reads {task.reads}s"
        if not 2 <= self.bands <= 80:
            return f"bands must be between 2 and 80, not {self.bands}"
        return "" if self.stretches > 0 else f"stretches must be above 0, not {self.stretches}"

    def features(self, example: Example) -> NDArray[np.float32]:
        """Return the segments' means in order, then the standard deviations: ((stretches + 1) x bands,)."""
        frames = log_mel(decode_sound(example.inputs["sound"].path, RATE), self.bands)  # (frames, bands)
        cuts = np.linspace(0, len(frames), self.stretches + 1)
        means = [frames[int(start) : max(int(end), int(start) + 1)].mean(axis=0) for start, end in pairwise(cuts)]
        return np.concatenate([*means, frames.std(axis=0)]).astype(np.float32)

    def fit(self, bench: Workbench) -> LinearOnFormula:
        """Compute the features in one pass over the recordings, then make a convex fit per penalty."""
        return fit_on_formula(bench, f"log-mel of {self.bands} bands in {self.stretches} stretches", self.features)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> LinearOnFormula:
        """Rebuild the model from its stored layer."""
        return restore_on_formula(self.features, (self.stretches + 1) * self.bands, delta, facts)
