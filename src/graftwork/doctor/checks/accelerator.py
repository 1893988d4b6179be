"""The GPU that runs would use, or the reason why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.registry import checks
from graftwork.units import show

DRIVER = Path("/proc/driver/nvidia/version")  # exists where an NVIDIA driver is loaded


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" where the machine has a GPU that torch cannot use."""
    if torch.cuda.is_available():
        free, whole = torch.cuda.mem_get_info()
        facts = {"name": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "bytes": whole, "free_bytes": free}
        yield Finding(f"{facts['name']}, {show(free, 'bytes')} of {show(whole, 'bytes')} free", facts=facts)
        return
    if not DRIVER.exists():
        yield Finding("none", facts={"cuda": torch.version.cuda})
    elif torch.version.cuda is None:
        why = f"torch {torch.__version__} was built without CUDA"
        yield Finding("a GPU that is not used", "slow", why, "install a torch that was built with CUDA")
    elif "CUDA_VISIBLE_DEVICES" in os.environ:
        why = f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']!r} may hide it"
        yield Finding("a GPU that is not used", "slow", why, "unset CUDA_VISIBLE_DEVICES")
    else:
        why = f"its driver does not fit torch's CUDA {torch.version.cuda}, or the device is not given to this process"
        yield Finding(
            "a GPU that is not used", "slow", why, "see nvidia-smi; install a newer driver, or an older torch"
        )


checks.register("accelerator")(Check("machine", look))
