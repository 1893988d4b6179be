"""Weights stored in 16 bits; computation is unchanged, in the module's precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from graftwork.core.method import AS_IT_COMES, Entries
from graftwork.core.progress import Progress, silent
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.stored_bits import BITS
from graftwork.pretrained.write_folder import tensors_of
from graftwork.registry import compressions
from graftwork.ship.compression import CompressionData
from graftwork.ship.folding import own_network, unchangeable
from graftwork.ship.standalone import save_standalone, stored_bits

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


@compressions.register("half")
@dataclass(frozen=True)
class Half:
    """Half of the bytes of a network that is stored in fp32."""

    dtype: str = "fp16"  # fp16 keeps 11 bits of a weight, bf16 8 of them and the range of fp32

    EXACT: ClassVar[bool] = False
    STORES: ClassVar[bool] = True
    ORDER: ClassVar[int] = 90
    LADDER: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, module: TaskModule) -> str:
        """Return why the weights of `module` can't be stored in 16 bits, or already are; or an empty string."""
        if self.dtype not in DTYPES:
            return f"dtype must be one of {', '.join(DTYPES)}, not {self.dtype!r}"
        reason = unchangeable(module)
        if reason:
            return reason
        if stored_bits(module) < BITS["fp32"]:
            return "its weights are stored in 16 bits or fewer already"
        largest = max(float(tensor.abs().max()) for tensor in tensors_of(own_network(module)[0]).values())
        most = torch.finfo(DTYPES[self.dtype]).max
        return "" if largest < most else f"a weight of {largest:.3g} is beyond what {self.dtype} can hold"

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Round every weight of the network; the head and what stays in the delta are not rounded."""
        network, head = own_network(module)
        save_standalone(module, folder, network, head=head, stored_as=self.dtype)
        return {"dtype": self.dtype}
