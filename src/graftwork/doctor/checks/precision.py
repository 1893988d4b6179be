"""The arithmetic that `--precision auto` and `--device auto` choose here, and why."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from graftwork.doctor.check import Asked, Check, Finding
from graftwork.registry import checks
from graftwork.run.environment import built_with_onednn, cuda_multiplies_bf16, multiplies_bf16, numerics


def look(asked: Asked) -> Iterator[Finding]:
    """Slow in fp32: frozen blocks, most of the work, would take less in bf16."""
    chosen = numerics("auto", "auto")
    device, precision = chosen["device"], chosen["precision"]
    able = cuda_multiplies_bf16() if device == "cuda" else multiplies_bf16(torch.cpu.get_capabilities())
    what = "the GPU" if device == "cuda" else "the processor"
    if able:
        yield Finding(f"{precision} on {device}, for {what} has products in bf16", facts=chosen)
        return
    lacks = "has no products in bf16 (AVX512-BF16, AMX)" if device == "cpu" else "has no products in bf16"
    why = f"{what} {lacks}" if device == "cuda" or built_with_onednn() else "torch was built without oneDNN"
    do = "nothing here: --precision bf16 would be emulated; a processor with AVX512-BF16 or AMX, or a GPU, is faster"
    yield Finding(f"{precision} on {device}", "slow", why, do, chosen)


checks.register("precision")(Check("machine", look))
