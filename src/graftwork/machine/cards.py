"""CUDA devices (cards): the choice of one for a process, and moving a network to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from graftwork.errors import ConfigError, clip
from graftwork.machine.memory import first_line, fits_in_memory

if TYPE_CHECKING:
    from torch import nn

LEAVE = "use --device cpu"


def choose_card(rank: int) -> None:
    """Let "cuda" mean, in this process, device number `LOCAL_RANK`, else `rank`, modulo the number of devices. Raises
    `ConfigError` if it is not a number."""
    import torch

    given = os.environ.get("LOCAL_RANK", str(rank))
    if not given.isdecimal():
        raise ConfigError("LOCAL_RANK is not a number", got=clip(given), do="let torchrun set it, or unset it")
    torch.cuda.set_device(int(given) % torch.cuda.device_count())


def on_device(network: nn.Module, device: str) -> nn.Module:
    """Move a network's weights to `device`, in place, and return it.

    For "cuda", TF32 is turned off: by default, cuDNN rounds the fp32 inputs of convolutions and RNNs to 10 bits.
    Raises `OutOfMemory` if the weights do not fit, `ConfigError` for a GPU in exclusive use or unusable for torch.
    """
    if device == "cuda":
        import torch

        torch.backends.cudnn.allow_tf32 = False
    do = f"end other programs on the GPU (nvidia-smi lists them), take a smaller backbone, or {LEAVE}"
    try:
        with fits_in_memory("the network", where=device, do=do if device == "cuda" else "use a smaller backbone"):
            return network.to(device)
    except RuntimeError as error:
        if device == "cpu" or "CUDA" not in str(error):
            raise
        do = f"see that nvidia-smi lists the GPU and no other program keeps it for itself, or {LEAVE}"
        raise ConfigError("the CUDA device cannot be used", where=device, got=first_line(error), do=do) from error
