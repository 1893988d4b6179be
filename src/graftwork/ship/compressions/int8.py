"""Linear layers in int8: a quarter of the bytes of fp32, and products in int8 on a CPU that has them
(Zafrir et al. 2019, arXiv:1910.06188, but without training)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graftwork.core.method import AS_IT_COMES, Entries
from graftwork.core.progress import Progress, silent
from graftwork.core.ragged import flat
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.stored_bits import BITS
from graftwork.registry import compressions
from graftwork.ship.compression import CompressionData
from graftwork.ship.folding import own_network, unchangeable
from graftwork.ship.standalone import save_standalone, stored_bits


@compressions.register("int8")
@dataclass(frozen=True)
class Int8:
    """Every matrix as int8 with a scale for each row; what it is multiplied with is quantised as it comes."""

    EXACT: ClassVar[bool] = False
    STORES: ClassVar[bool] = True
    ORDER: ClassVar[int] = 80
    LADDER: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, module: TaskModule) -> str:
        """Return why the matrices of `module` can't be int8, or already are; or an empty string."""
        reason = unchangeable(module)
        return reason or ("" if stored_bits(module) > BITS["int8"] else "its matrices are int8 already")

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Quantise the matrices and write the module, which computes all else in fp32."""
        network, head = own_network(module)
        made = save_standalone(module, folder, network, head=head, stored_as="int8", precision="fp32")
        progress(0.5, "comparing the answers")
        examples = data.validation.examples
        before, after = flat(module.fitted.logits(examples)), flat(made.fitted.logits(examples))
        return {"largest_difference": float(np.abs(before - after).max()), "cosine_of_logits": _cosine(before, after)}


def _cosine(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Return the mean cosine of logits (N, C) before and after; if C is 1, the cosine of the two columns."""
    rows = (before, after) if before.shape[1] > 1 else (before.T, after.T)
    norms = np.linalg.norm(rows[0], axis=1) * np.linalg.norm(rows[1], axis=1)
    return float(((rows[0] * rows[1]).sum(axis=1) / np.maximum(norms, 1e-12)).mean())
