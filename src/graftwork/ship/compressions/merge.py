"""The trained weights are merged into those of the network: no answer changes, and nothing runs beside the network
(for LoRA: Hu et al. 2021, arXiv:2106.09685, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from graftwork.core.method import AS_IT_COMES, Entries
from graftwork.core.progress import Progress, silent
from graftwork.core.ragged import flat
from graftwork.errors import ConfigError
from graftwork.module.module_place import CARRIED
from graftwork.module.task_module import TaskModule
from graftwork.registry import compressions
from graftwork.ship.compression import CompressionData
from graftwork.ship.folding import folded_network, unfoldable
from graftwork.ship.standalone import save_standalone
from graftwork.train.probe import Probe

CLOSE = {"fp32": 1e-4, "bf16": 0.1}  # largest difference of a logit, times the largest logit if that is above 1


@compressions.register("merge")
@dataclass(frozen=True)
class Merge:
    """One network with a linear layer on top; it takes no settings."""

    EXACT: ClassVar[bool] = True
    STORES: ClassVar[bool] = False
    ORDER: ClassVar[int] = 10
    LADDER: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, module: TaskModule) -> str:
        """Return why `module` can't be one network with a linear layer, or that it is already; or an empty string."""
        reason = unfoldable(module)
        carried = module.description["backbone"] is not None and module.description["backbone"]["id"] == CARRIED
        if not reason and carried and isinstance(module.fitted, Probe):
            return "it is one network already"
        return reason

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Fold, write and compare logits on validation. Raises `ConfigError` if they differ by more than rounding."""
        network = folded_network(module)
        made = save_standalone(module, folder, network.backbone, head=network.head)
        progress(0.5, "comparing the answers")
        examples = data.validation.examples
        before, after = flat(module.fitted.logits(examples)), flat(made.fitted.logits(examples))
        difference, largest = float(np.abs(before - after).max()), float(np.abs(before).max())
        allowed = CLOSE[module.description["precision"]] * max(1.0, largest)
        if not difference <= allowed:
            raise ConfigError(
                "the merged network gives other logits than the module",
                where=str(module.folder),
                got=f"a difference of {difference:.3g}",
                expected=f"at most {allowed:.3g}",
                do="compress it without merge",
            )
        return {"largest_difference": difference}
