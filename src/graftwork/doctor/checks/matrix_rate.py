"""How fast this machine multiplies matrices, in fp32 and in bf16."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from graftwork.doctor.check import Asked, Check, Finding
from graftwork.doctor.rates import flop_rate
from graftwork.registry import checks
from graftwork.run.environment import numerics
from graftwork.units import several, show

SHAPE = (1024, 384, 1536)  # (m, k, n): a batch of tokens against the widest layer of minilm
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def look(asked: Asked) -> Iterator[Finding]:
    """Slow where the chosen precision is not the faster one."""
    if asked.seconds <= 0:
        return
    chosen = numerics("auto", "auto")
    device, threads = chosen["device"], chosen["threads"]
    rates = {name: flop_rate(SHAPE, dtype, asked.seconds, device) for name, dtype in PRECISIONS.items()}
    listed = ", ".join(f"{show(rate, 'FLOP')}/s in {name}" for name, rate in rates.items())
    where = device if device != "cpu" else several(threads, "thread")
    facts = {"flop_per_second": rates, "shape": SHAPE, "device": device, "threads": threads}
    yield Finding(f"{listed}, {where}", facts=facts)
    faster = max(rates, key=lambda name: rates[name])
    if faster != chosen["precision"] and rates[faster] > 1.2 * rates[chosen["precision"]]:
        why = f"--precision auto is {chosen['precision']} here"
        yield Finding(
            f"{faster} is {rates[faster] / rates[chosen['precision']]:.1f} times as fast",
            "slow",
            why,
            f"--precision {faster}",
        )


checks.register("matrix_rate")(Check("speed", look))
