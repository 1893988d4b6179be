"""Colour histogram + linear model: the shares of colours in an image, without positions (Swain & Ballard 1991;
Chapelle et al. 1999)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Setting, Workbench
from graftwork.core.task import Task
from graftwork.pretrained.media_files import decode_image
from graftwork.registry import methods
from graftwork.train.formula_features import LinearOnFormula, fit_on_formula, restore_on_formula

SIDE = 128  # pixels; larger images are shrunk to it, which suffices for a histogram


@methods.register("colour_histogram")
@dataclass(frozen=True)
class ColourHistogram(Baseline):
    """A linear layer on the square roots of a colour histogram, with a bin per combination of red, green and blue."""

    bins: int = 6  # per channel

    VERSION: ClassVar[int] = 2  # 1 chose the penalty on validation
    RESTORES: ClassVar[tuple[int, ...]] = (1,)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task reads images."""
        if task.reads != "image":
            return f"it reads images, and this task reads {task.reads}s"
        return "" if 2 <= self.bins <= 16 else f"bins must be between 2 and 16, not {self.bins}"

    def features(self, example: Example) -> NDArray[np.float32]:
        """Return the square roots (bins^3,) of the bins' shares, which add up to 1; the root reduces the weight of
        common colours."""
        image = decode_image(example.inputs["image"].path)
        image.thumbnail((SIDE, SIDE))
        levels = np.asarray(image, dtype=np.int64).reshape(-1, 3) * self.bins // 256  # (pixels, 3)
        places = (levels[:, 0] * self.bins + levels[:, 1]) * self.bins + levels[:, 2]
        shares = np.bincount(places, minlength=self.bins**3) / len(places)
        return np.sqrt(shares).astype(np.float32)

    def fit(self, bench: Workbench) -> LinearOnFormula:
        """Compute the histograms in one pass over the images, then make a convex fit per penalty."""
        return fit_on_formula(bench, f"colour histograms of {self.bins} bins", self.features)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> LinearOnFormula:
        """Rebuild the model from its stored layer."""
        return restore_on_formula(self.features, self.bins**3, delta, facts)
