"""The arithmetic chosen by `--precision auto` and `--device auto`, and the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from graftwork.doctor.auto import Auto, auto
from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.machine.environment import built_with_onednn
from graftwork.registry import checks


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" for a device without bf16 products: they would speed up frozen blocks, most of the work."""
    chosen = auto()
    device, precision = chosen.device, chosen.precision
    what = "the GPU" if device == "cuda" else "the processor"
    if precision is None:
        says = f"bf16 or fp32 on {device}, whichever the first run measures to be faster: {what} has products in both"
        yield Finding(says, facts=asdict(chosen))
        return
    if chosen.weighed is not None or precision == "bf16":
        yield Finding(f"{precision} on {device}, for {what} {_reason(chosen)}", facts=asdict(chosen))
        return
    lacks = "has no products in bf16 (AVX512-BF16, AMX)" if device == "cpu" else "has no products in bf16"
    why = f"{what} {lacks}" if device == "cuda" or built_with_onednn() else "torch was built without oneDNN"
    do = "nothing here: --precision bf16 would be emulated; a processor with AVX512-BF16 or AMX, or a GPU, is faster"
    yield Finding(f"{precision} on {device}", "slow", why, do, asdict(chosen))


def _reason(chosen: Auto) -> str:
    if chosen.weighed is None:
        return "has products in bf16"
    own, rates = chosen.weighed.precision, chosen.weighed.flop_per_second
    other = "fp32" if own == "bf16" else "bf16"
    return f"was measured to be {rates[own] / rates[other]:.1f} times as fast in it as in {other}"


checks.register("precision")(Check("machine", look))
