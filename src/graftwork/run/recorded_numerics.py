"""The numerics part of a receipt: everything known to change the last bits of a result."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import Any

from graftwork.core.run import RunSpec
from graftwork.machine.environment import VARIABLES, accelerator, blas, processor, usable_cores, uses_onednn
from graftwork.machine.torch_in_use import torch_in_use
from graftwork.run.session import Session

OF_TORCH = ("cpu_capability", "mkldnn", "built_with", "deterministic", "matmul_precision")  # None: not imported
_LIBRARIES = re.compile(r"^ +- ((?:Intel\(R\) (?:oneAPI )?M|OpenBLAS|NNPACK|LAPACK).*)$", flags=re.MULTILINE)


def recorded_numerics(session: Session, spec: RunSpec) -> dict[str, Any]:
    """Return the record as JSON. A run without a backbone always computes on the CPU; its precision and attention are
    None. Fields of torch are None if it was not imported."""
    torch = torch_in_use()
    network = getattr(session.backbone, "module", None) if spec.backbone else None
    device = session.numerics["device"] if spec.backbone else "cpu"
    on_cuda = device == "cuda"
    return {
        "device": device,
        "precision": spec.numerics.get("precision"),
        "trained_in": "fp32",  # precision of the master weights, independent of that of frozen weights
        "autocast": False,
        "attention": getattr(getattr(network, "config", None), "_attn_implementation", None),
        "threads": spec.numerics["threads"],
        "interop_threads": torch and torch.get_num_interop_threads(),
        "runs_at_once": session.runs_at_once,
        "world_size": 1,
        "micro_batch": spec.recipe.get("batch_size"),
        "accumulation": 1,
        "max_memory": session.max_memory,
        "deterministic": torch and torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch and torch.get_float32_matmul_precision(),
        "cpu_capability": torch and torch.backends.cpu.get_cpu_capability(),
        "processor": processor(),
        "cores": usable_cores(),
        "accelerator": None if device == "cpu" else accelerator(),
        "cuda": torch.version.cuda if torch and on_cuda else None,
        "cudnn": torch.backends.cudnn.version() if torch and on_cuda else None,
        "mkldnn": torch and uses_onednn(),
        "built_with": torch and _built_with(),
        "blas": blas(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def numerics_of(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return a receipt's numerics; remove the GPU that older receipts record for runs that computed on the CPU."""
    numerics = receipt["numerics"]
    used = numerics["device"] if receipt["model"] else "cpu"
    none = {"accelerator": None, "cuda": None, "cudnn": None} if used == "cpu" else {}
    return {**numerics, "device": used, **none}


@functools.cache
def _built_with() -> list[str]:
    """Return the linear-algebra libraries that torch was built with."""
    import torch

    shown: str = torch.__config__.show()
    return _LIBRARIES.findall(shown)
