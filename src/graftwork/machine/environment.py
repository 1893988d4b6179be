"""The environment section of a receipt: code, software, machine and numerics of a run."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from graftwork import __version__
from graftwork.errors import ConfigError
from graftwork.machine.cgroup import core_quota, memory_limit
from graftwork.machine.thread_count import threads
from graftwork.machine.torch_in_use import cuda_in_use, torch_in_use

PRECISIONS = ("auto", "fp32", "bf16")
DEVICES = ("auto", "cpu", "cuda")
DISTRIBUTIONS = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "numpy",
    "scipy",
    "scikit-learn",
    "pillow",
    "soundfile",
)
INSTRUCTIONS = (  # environment variables that select the instructions of matrix products
    "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_MAX_CPU_ISA",
    "DNNL_DEFAULT_FPMATH_MODE", "ATEN_CPU_CAPABILITY",
)  # fmt: skip
OF_CUDA = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE")  # have no effect on the processor
OF_SEVERAL_THREADS = ("MKL_DYNAMIC",)  # have no effect with one thread
DECIDING = (  # environment variables that select the routines of matrix products
    *INSTRUCTIONS, "LD_PRELOAD", *OF_SEVERAL_THREADS, *OF_CUDA,
)  # fmt: skip
VARIABLES = (
    *DECIDING, "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS",
    "KMP_AFFINITY", "MALLOC_ARENA_MAX", "CUDA_VISIBLE_DEVICES", "PYTHONHASHSEED",
)  # fmt: skip
BF16_PRODUCTS = ("avx512_bf16", "amx_bf16", "bf16")  # processors' names of the feature; the last is Arm's
CHECKOUT = Path(__file__).resolve().parents[3]  # root of the checkout, if this file is in one
CODE = ("src", "pyproject.toml")  # the code in a checkout; changes elsewhere, in data or results, are not "dirty"
GIT_SECONDS = 5
ARITHMETIC = (
    2  # raised when the same run would give other bits; 2: batches padded to their longest text only, short attention
)


def environment() -> dict[str, Any]:
    """Return, as JSON, facts about a run's environment that may explain a different result or price.

    An unknown fact is None. So is a fact that only torch knows, if the process has not imported torch.
    """
    torch = torch_in_use()
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "graftwork": __version__,
        "commit": commit(CHECKOUT),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "accelerator": accelerator(),
        "cores": usable_cores(),
        "memory_bytes": memory_bytes(),
        "load_average": load_average(),
        "distributions": {name: version(name) for name in DISTRIBUTIONS},
        "torch": {
            "version": version("torch") if torch is None else torch.__version__,
            "cuda": torch and torch.version.cuda,
            "threads": threads(),
            "interop_threads": torch and torch.get_num_interop_threads(),
            "cpu_capability": torch and torch.backends.cpu.get_cpu_capability(),
            "mkldnn": torch and uses_onednn(),
            "deterministic": torch and torch.are_deterministic_algorithms_enabled(),
        },
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def numerics(precision: str, device: str = "cpu", network: bool = True) -> dict[str, Any]:
    """Return the arithmetic part of a run's identity: `{"precision": "bf16", "threads": 2, "device": "cpu"}`.

    The precision "auto" is "fp32" on a device without bf16 matrix products. On a GPU with them it is "bf16", on a
    processor with them the measured faster one (`faster_precision`), or without a `network`, unmeasured, "bf16". For
    the device "auto" see `resolve_device`. Raises `ConfigError` for an unknown precision or device.
    """
    if precision not in PRECISIONS:
        raise ConfigError(f"unknown precision {precision!r}", expected=f"one of {', '.join(PRECISIONS)}")
    device = resolve_device(device)
    if precision == "auto":
        on_cuda = device == "cuda"
        import torch

        able = cuda_multiplies_bf16() if on_cuda else multiplies_bf16(torch.cpu.get_capabilities())
        precision = "bf16" if able else "fp32"
        if able and network and not on_cuda:
            from graftwork.machine.faster_precision import faster_precision

            precision = faster_precision(multiplying())
    return {"precision": precision, "threads": threads(), "device": device}


def numerics_without_network(precision: str, device: str) -> dict[str, Any]:
    """Return the `numerics` of methods without a backbone, which compute in fp32 on the processor.

    "auto" means fp32 and cpu, so that torch is not imported to examine the device; other names are kept.
    """
    return numerics("fp32" if precision == "auto" else precision, "cpu" if device == "auto" else device)


def multiplying() -> dict[str, Any]:
    """Return, as JSON, the facts that determine how fast the processor multiplies in fp32 and in bf16."""
    import torch

    capabilities = torch.cpu.get_capabilities()
    return {
        "processor": processor(),
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "products": [flag for flag in BF16_PRODUCTS if capabilities.get(flag, False)],  # virtual machines hide some
        "variables": {name: os.environ[name] for name in INSTRUCTIONS if name in os.environ},
    }


def resolve_device(device: str) -> str:
    """Resolve `device` on this machine: "auto" is "cuda" where available, else "cpu".

    Raises `ConfigError` for an unknown device, and for "cuda" without a CUDA device.
    """
    if device not in DEVICES:
        raise ConfigError(f"unknown device {device!r}", expected=f"one of {', '.join(DEVICES)}")
    if device == "cpu":
        return device
    import torch

    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        built = torch.version.cuda is not None
        raise ConfigError(
            "there is no CUDA device",
            where=f"torch {torch.__version__}",
            got="device cuda",
            expected="auto or cpu",
            do="see that nvidia-smi lists a GPU and CUDA_VISIBLE_DEVICES does not hide it"
            if built
            else "install a torch that was built with CUDA, or use --device auto",
        )
    return ("cuda" if there else "cpu") if device == "auto" else device


def arithmetic(computed_in: Mapping[str, Any]) -> dict[str, Any]:
    """Return `computed_in`, from `numerics`, with all else that determines the last bits of a matrix product.

    Cached states and checkpoints are reused only if this is equal.
    """
    import torch

    deciding = dict(computed_in) | {
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "processor": processor(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "mkldnn": uses_onednn(),
        "matmul": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "variables": deciding_variables(os.environ, computed_in),
    }
    if computed_in["device"] == "cuda":
        deciding |= {"accelerator": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return deciding


def deciding_variables(variables: Mapping[str, str], computed_in: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that select the routines of matrix products on the device and threads of `computed_in`.

    Variables that set the number of threads are left out: torch uses `computed_in["threads"]` for all its libraries.
    """
    idle = {*(OF_CUDA if computed_in["device"] == "cpu" else ())}
    idle |= {*(OF_SEVERAL_THREADS if computed_in["threads"] == 1 else ())}
    return {name: variables[name] for name in DECIDING if name in variables and name not in idle}


def uses_onednn() -> bool:
    """Return whether torch has oneDNN and it is enabled: `memory.attempt` disables it when a kernel lacked memory."""
    import torch

    return built_with_onednn() and bool(torch.backends.mkldnn.enabled)


def built_with_onednn() -> bool:
    """Return whether torch was built with oneDNN."""
    import torch

    return bool(torch.backends.mkldnn.is_available())


def multiplies_bf16(capabilities: Mapping[str, Any]) -> bool:
    """Return whether the processor has bf16 matrix products (AVX512-BF16, AMX, Arm's) and torch has oneDNN for them.

    `torch.ops.mkldnn._is_mkldnn_bf16_supported` is no test: it is true on every AVX512 processor, where bf16 may be
    emulated slowly.
    """
    native = any(capabilities.get(flag, False) for flag in BF16_PRODUCTS)
    return native and built_with_onednn()


def cuda_multiplies_bf16() -> bool:
    """Return whether the GPU has bf16 products (compute capability 8.0 and later), without emulation."""
    import torch

    able: bool = torch.cuda.is_bf16_supported(including_emulation=False)
    return able


def accelerator() -> str | None:
    """Return the name of the GPU that this process uses; None if it has used none."""
    cuda = cuda_in_use()
    return None if cuda is None else str(cuda.get_device_name())


def blas() -> list[dict[str, Any]]:
    """List the BLAS libraries of NumPy and SciPy: name, version, kernels in use, threads."""
    found = [item for item in threadpool_info() if item["user_api"] == "blas"]
    told = [
        {
            "name": item["internal_api"],
            "version": item["version"],
            "kernels": item.get("architecture"),
            "threads": item["num_threads"],
        }
        for item in found
    ]
    return [item for place, item in enumerate(told) if item not in told[:place]]


@functools.cache
def version(distribution: str) -> str | None:
    """Return the installed version of a distribution; None when it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def commit(checkout: Path) -> dict[str, Any] | None:
    """Return `{"hash": …, "dirty": …}` of a git checkout of Graftwork; None when `checkout` is not one or git fails.

    "dirty" is true if `CODE` differs from the commit or holds untracked files that git does not ignore. Cached per
    process, because later changes do not affect the imported code.
    """
    if not (checkout / ".git").exists():
        return None
    head = git(checkout, "rev-parse", "--verify", "HEAD")
    changes = git(checkout, "status", "--porcelain", "--", *CODE)
    return None if head is None or changes is None else {"hash": head, "dirty": changes != ""}


def git(checkout: Path, *words: str) -> str | None:
    """Return the output of `git words`; None if it fails, is missing or exceeds `GIT_SECONDS`. Takes no lock."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # set in hooks
    command = ["git", "--no-optional-locks", "-C", str(checkout), *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True, env=surroundings
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@functools.cache
def processor() -> str | None:
    """Return the processor's name, with its family and model numbers on x86 Linux; None if it is unknown.

    In a virtual machine the name may be only "AMD EPYC", whatever the generation, which the numbers give.
    """
    told: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            fact, _, value = line.partition(":")
            told.setdefault(fact.strip(), value.strip())  # facts of the first core
    name = told.get("model name") or platform.processor() or platform.machine() or None
    if name is None or not told.keys() >= {"cpu family", "model"}:
        return name
    return f"{name} (family {told['cpu family']}, model {told['model']})"


def usable_cores() -> int | None:
    """Return the number of cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count()


def worth_of_cores() -> int:
    """Return how many threads can run at once: the cores of the affinity, limited by the control group's quota."""
    cores, quota = usable_cores() or 1, core_quota()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def usable_memory_bytes() -> int | None:
    """Return the bytes that a command's processes may use together: the machine's memory or the group's limit."""
    return min((size for size in (memory_bytes(), memory_limit()) if size is not None), default=None)


def memory_bytes() -> int | None:
    """Return the machine's physical memory in bytes; None where it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows; systems without the name
        return None


def kernel_bytes(table: Path, field: str) -> int | None:
    """Return a field of a table in /proc in bytes, from a line such as `VmHWM: 45056 kB`; None if it is missing."""
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), None)


def load_average() -> list[float] | None:
    """Return the load average over 1, 5 and 15 minutes; if it exceeds the cores, measured times are unreliable."""
    try:
        return [round(load, 2) for load in os.getloadavg()]
    except (AttributeError, OSError):
        return None
