"""The processor, its instructions for matrix products, and whether torch uses them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.machine.environment import built_with_onednn, processor
from graftwork.registry import checks

INSTRUCTIONS = {  # common name -> torch's names, one of which suffices
    "AVX2": ("avx2",),
    "AVX512": ("avx512_f",),
    "VNNI": ("avx512_vnni", "avx_vnni"),
    "AVX512-BF16": ("avx512_bf16",),
    "AMX": ("amx_bf16", "amx_int8"),
    "NEON": ("neon",),
    "SVE": ("sve", "sve2"),
    "bf16 of Arm": ("bf16",),
}
HOLD_BACK = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")


def instructions() -> list[str]:
    """Return the common names of the instructions that this processor has."""
    able: Mapping[str, Any] = torch.cpu.get_capabilities()
    return [name for name, flags in INSTRUCTIONS.items() if any(able.get(flag, False) for flag in flags)]


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" if an environment variable of `HOLD_BACK` is set, or torch was built without oneDNN."""
    found, used = instructions(), torch.backends.cpu.get_cpu_capability()
    onednn = built_with_onednn()
    held = {name: os.environ[name] for name in HOLD_BACK if name in os.environ}
    facts = {"name": processor(), "instructions": found, "used": used, "onednn": onednn, "held_back_by": held}
    yield Finding(f"{processor() or 'unknown'}: {', '.join(found) or 'none of the fast instructions'}", facts=facts)
    if held:
        said = ", ".join(f"{name}={value}" for name, value in held.items())
        why = "the fastest instructions may be left out, and numbers differ from those of other machines"
        yield Finding(f"torch multiplies with {used}, under {said}", "slow", why, f"unset {', '.join(held)}")
    if not onednn:
        why = "products of matrices take several times as long, and none is in bf16"
        yield Finding("torch was built without oneDNN", "slow", why, "install the torch of pytorch.org or PyPI")


checks.register("processor")(Check("machine", look))
