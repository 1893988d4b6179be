"""Speed of matrix products in fp32 and in bf16."""

from __future__ import annotations

from collections.abc import Iterator

from graftwork.doctor.auto import auto
from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.machine.environment import multiplying
from graftwork.machine.faster_precision import measure_rates, place_of
from graftwork.machine.product_rates import SHAPE, product_rates
from graftwork.registry import checks
from graftwork.units import several, show

CLEARLY = 1.2  # only larger ratios of speeds are reported, since measurements vary


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" where the chosen precision is not the faster one."""
    if asked.seconds <= 0:
        return
    chosen = auto()
    device, threads = chosen.device, chosen.threads
    rates = product_rates(asked.seconds, device)
    listed = ", ".join(f"{show(rate, 'FLOP')}/s in {name}" for name, rate in rates.items())
    where = device if device != "cpu" else several(threads, "thread")
    facts = {"flop_per_second": rates, "shape": SHAPE, "device": device, "threads": threads}
    yield Finding(f"{listed}, {where}", facts=facts)
    if chosen.precision is None:  # the first run measures it, and takes the faster one
        return
    if chosen.weighed is not None:
        rates = dict(measure_rates().flop_per_second)  # measured in the same way as the stored rates
    faster = max(rates, key=lambda name: rates[name])
    ratio = rates[faster] / rates[chosen.precision]
    if ratio <= CLEARLY:
        return
    why, do = f"--precision auto is {chosen.precision} here", f"--precision {faster}"
    if chosen.weighed is not None:
        place = place_of(multiplying())
        why += f", because it was the faster one when it was measured: {place}"
        do += "; or remove that file: the next run measures again, and runs may get other ids"
    yield Finding(f"{faster} is {ratio:.1f} times as fast", "slow", why, do)


checks.register("matrix_rate")(Check("speed", look))
