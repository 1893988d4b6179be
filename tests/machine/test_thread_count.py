"""Threads as torch counts them, told without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

TOLD = """
import sys
from graftwork.machine.thread_count import threads
early, free = threads(), "torch" not in sys.modules
import torch
print(early, torch.get_num_threads(), free)
"""
DECIDING = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@pytest.mark.parametrize(
    "set_to",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"OMP_NUM_THREADS": "1"}, marks=pytest.mark.slow),
        pytest.param({"OMP_NUM_THREADS": "64"}, marks=pytest.mark.slow),
        pytest.param({"MKL_NUM_THREADS": "1"}, marks=pytest.mark.slow),
    ],
)
def test_as_many_as_torch_begins_with(set_to: dict[str, str]) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in DECIDING}
    done = subprocess.run([sys.executable, "-c", TOLD], env=clean | set_to, capture_output=True, text=True, check=True)
    early, late, free = done.stdout.split()
    assert early == late
    assert free == "True" or "MKL_NUM_THREADS" in set_to or sys.platform != "linux" or os.uname().machine != "x86_64"


@pytest.mark.slow
@pytest.mark.parametrize("set_to", [{"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "2"}, {"MKL_NUM_THREADS": "2"}])
def test_one_number_holds_for_all_libraries_of_torch(set_to: dict[str, str]) -> None:
    """So that the variable behind it decides nothing more."""
    clean = {name: value for name, value in os.environ.items() if name not in DECIDING}
    code = "import torch; print(torch.__config__.parallel_info())"
    done = subprocess.run([sys.executable, "-c", code], env=clean | set_to, capture_output=True, text=True, check=True)
    assert len(set(re.findall(r"(?:get_num|get_max)_threads\(\) : (\d+)", done.stdout))) == 1
