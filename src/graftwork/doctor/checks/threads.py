"""The threads that torch computes with, and the variables that set them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.machine.environment import VARIABLES, blas, worth_of_cores
from graftwork.registry import checks

COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" with more threads than cores, or with fewer while a variable of `COUNTS` is set."""
    threads, cores = torch.get_num_threads(), worth_of_cores()
    said = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    facts = {"threads": threads, "interop_threads": torch.get_num_interop_threads(), "blas": blas(), "variables": said}
    listed = "; ".join(f"{name}={value}" for name, value in said.items())
    yield Finding(f"{threads} of torch{f'; {listed}' if listed else ''}", facts=facts)
    counts = [name for name in COUNTS if name in said]
    if threads > cores:
        why = "threads wait for one another where they are more than the cores"
        yield Finding(f"{threads} threads on {cores} cores", "slow", why, f"--threads {cores}")
    elif threads < cores and counts:
        why = f"{' and '.join(f'{name}={said[name]}' for name in counts)} is set"
        yield Finding(f"{threads} of {cores} cores compute", "slow", why, f"unset {', '.join(counts)}")


checks.register("threads")(Check("machine", look))
