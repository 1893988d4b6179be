"""What all methods that are trained by gradient descent have in common."""

from __future__ import annotations

from typing import ClassVar

from graftwork.train.loop import fit_by_gradient, restore_by_attaching


class GradientMethod:
    """A base for methods that are trained by `train.loop`: a subclass has a `learning_rate`, and `attach` says what
    trains."""

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True

    fit = fit_by_gradient
    restore = restore_by_attaching
