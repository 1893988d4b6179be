"""The environment of a run: complete, JSON, quick, and never a reason to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.errors import ConfigError
from graftwork.machine import environment as module
from graftwork.machine import faster_precision
from graftwork.machine.environment import (
    arithmetic,
    commit,
    deciding_variables,
    environment,
    multiplies_bf16,
    multiplying,
    numerics,
    processor,
    resolve_device,
)
from graftwork.run.recorded_code import diff_digest

KEYS = {
    "time", "graftwork", "commit", "python", "platform", "processor", "accelerator", "cores", "memory_bytes",
    "load_average", "distributions", "torch", "variables",
}  # fmt: skip


def run_git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean git checkout with one commit."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # as in a git hook
        monkeypatch.delenv(name)
    commit.cache_clear()
    run_git(tmp_path, "init")
    diff_digest.cache_clear()
    (tmp_path / "src").mkdir()
    for name in ("src/a.py", "pyproject.toml", "results.json"):
        (tmp_path / name).write_text("1\n")
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "-m", "one")
    return tmp_path


def test_every_fact_is_there_and_is_json() -> None:
    facts = environment()
    assert facts.keys() == KEYS
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_the_facts_are_true() -> None:
    facts = environment()
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert abs((datetime.now(UTC) - datetime.fromisoformat(facts["time"])).total_seconds()) < 5
    assert facts["torch"]["version"] == torch.__version__
    assert facts["torch"]["threads"] == torch.get_num_threads()
    assert facts["distributions"]["numpy"] == sys.modules["numpy"].__version__
    assert facts["processor"] == processor() and facts["cores"] >= 1 and facts["memory_bytes"] > 2**28


def test_variables_that_change_arithmetic_are_kept_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("SOME_SECRET_TOKEN", "hidden")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    variables = environment()["variables"]
    assert variables["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in variables and "SOME_SECRET_TOKEN" not in variables


@pytest.mark.parametrize(
    ("name", "computed_in", "decides"),
    [
        ("MKL_CBWR", {"device": "cpu", "threads": 1}, True),
        ("MKL_NUM_THREADS", {"device": "cpu", "threads": 2}, False),
        ("MKL_DYNAMIC", {"device": "cpu", "threads": 1}, False),
        ("MKL_DYNAMIC", {"device": "cpu", "threads": 2}, True),
        ("CUBLAS_WORKSPACE_CONFIG", {"device": "cpu", "threads": 2}, False),
        ("CUBLAS_WORKSPACE_CONFIG", {"device": "cuda", "threads": 2}, True),
        ("NVIDIA_TF32_OVERRIDE", {"device": "cpu", "threads": 2}, False),
    ],
)
def test_a_variable_decides_only_where_its_routines_run(name: str, computed_in: dict[str, Any], decides: bool) -> None:
    assert deciding_variables({name: "1"}, computed_in) == ({name: "1"} if decides else {})


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISTRIBUTIONS", ("no-such-distribution",))
    assert environment()["distributions"] == {"no-such-distribution": None}


@pytest.mark.parametrize(
    ("name", "dirty"),
    [("src/a.py", True), ("src/new.py", True), ("pyproject.toml", True), ("results.json", False), ("new.csv", False)],
)
def test_only_other_code_makes_a_checkout_dirty(checkout: Path, name: str, dirty: bool) -> None:
    clean, difference = commit(checkout), diff_digest(checkout)
    assert clean is not None and len(clean["hash"]) == 40 and clean["dirty"] is False
    commit.cache_clear()
    diff_digest.cache_clear()
    (checkout / name).write_text("2\n")
    assert commit(checkout) == {"hash": clean["hash"], "dirty": dirty}
    assert (diff_digest(checkout) != difference) == dirty


def test_a_git_hook_around_the_run_does_not_mislead(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(checkout / "elsewhere"))
    assert commit(checkout) is not None


def test_no_checkout_no_commit_and_no_git(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert commit(checkout / "inside") is None
    (checkout / "empty").mkdir()
    run_git(checkout / "empty", "init")
    assert commit(checkout / "empty") is None
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert commit(checkout) is None


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel\t\t: 2\n",
         "AMD EPYC (family 25, model 17)"),
        ("processor\t: 0\nmodel name\t: Some Name\n", "Some Name"),
    ],
)  # fmt: skip
def test_a_processor_is_told_by_name_and_generation(monkeypatch: pytest.MonkeyPatch, told: str, name: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self: told if str(self) == "/proc/cpuinfo" else "")
    assert processor.__wrapped__() == name


def test_asking_again_is_quick() -> None:
    environment()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        environment()
        times.append(time.perf_counter() - began)
    assert min(times) < 0.02


def test_numerics_are_words_and_numbers() -> None:
    assert numerics("fp32") == {"precision": "fp32", "threads": torch.get_num_threads(), "device": "cpu"}
    assert numerics("bf16")["precision"] == "bf16"
    with pytest.raises(ConfigError, match="fp16") as caught:
        numerics("fp16")
    assert "auto, fp32, bf16" in str(caught.value)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"avx512_bf16": True}, "bf16"),
        ({"avx512_bf16": False, "amx_bf16": True}, "bf16"),
        ({"architecture": "arm64", "bf16": True}, "bf16"),
        ({"avx512_f": True, "avx512_bw": True, "avx512_bf16": False}, "fp32"),  # bf16 would be emulated
        ({"avx2": True}, "fp32"),
        ({}, "fp32"),
    ],
)
def test_auto_is_bf16_only_where_the_processor_multiplies_it(
    capabilities: dict[str, bool], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    monkeypatch.setattr(module, "built_with_onednn", lambda: True)
    assert numerics("auto")["precision"] == expected


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA device, as far as it can be asked about."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA Example")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})


def test_auto_is_cuda_where_there_is_one(cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [resolve_device(name) for name in ("auto", "cpu", "cuda")] == ["cuda", "cpu", "cuda"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [resolve_device(name) for name in ("auto", "cpu")] == ["cpu", "cpu"]


def test_bf16_is_asked_of_the_device_that_computes(cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "built_with_onednn", lambda: True)
    assert numerics("auto", "cpu")["precision"] == "bf16"
    assert numerics("auto", "cuda")["precision"] == "fp32"  # this one would emulate it
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert numerics("auto", "auto") == {"precision": "bf16", "threads": torch.get_num_threads(), "device": "cuda"}


@pytest.fixture
def fp32_is_faster(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A processor with bf16 products that is slow in them; the list has what was asked about it."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    monkeypatch.setattr(module, "built_with_onednn", lambda: True)
    monkeypatch.setattr(faster_precision, "faster_precision", lambda machine: asked.append(machine) or "fp32")
    return asked


def test_auto_is_fp32_where_bf16_is_slower(fp32_is_faster: list[dict[str, Any]]) -> None:
    assert numerics("auto")["precision"] == "fp32"
    assert [machine["products"] for machine in fp32_is_faster] == [["avx512_bf16"]]


def test_nothing_is_measured_where_it_decides_nothing(
    fp32_is_faster: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [numerics(word)["precision"] for word in ("bf16", "fp32")] == ["bf16", "fp32"]
    assert numerics("auto", network=False)["precision"] == "bf16"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert numerics("auto", "auto")["precision"] == "bf16"  # on the GPU
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert numerics("auto", "cpu")["precision"] == "fp32" and fp32_is_faster == []


def test_what_decides_a_measurement_is_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = multiplying()
    assert before == multiplying() and json.loads(json.dumps(before)) == before
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert multiplying() == before  # the same processor
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert multiplying() != before
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True, "bf16": True})
    assert multiplying()["products"] == ["amx_bf16", "bf16"]


@pytest.mark.parametrize(
    ("built", "remedy"),
    [(None, "install a torch that was built with CUDA"), ("12.8", "see that nvidia-smi lists a GPU")],
)
def test_a_device_that_is_not_there_is_said_with_a_remedy(
    built: str | None, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", built)
    with pytest.raises(ConfigError) as caught:
        numerics("fp32", "cuda")
    error = caught.value
    assert (error.what, error.where) == ("there is no CUDA device", f"torch {torch.__version__}")
    assert (error.got, error.expected) == ("device cuda", "auto or cpu") and remedy in error.do


def test_another_gpu_is_another_arithmetic(cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpu, before = arithmetic(numerics("fp32", "cpu")), arithmetic(numerics("fp32", "cuda"))
    assert before["accelerator"] == "NVIDIA Example" and "accelerator" not in on_cpu
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA Other")
    assert arithmetic(numerics("fp32", "cuda")) != before


def test_a_library_that_is_off_is_recorded_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "built_with_onednn", lambda: True)
    for on in (True, False):
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", on)
        assert arithmetic(numerics("fp32"))["mkldnn"] is on
        assert environment()["torch"]["mkldnn"] is on


def test_without_the_library_bf16_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "built_with_onednn", lambda: False)
    assert not multiplies_bf16({"avx512_bf16": True})


def test_what_may_be_used_is_the_least_of_machine_and_control_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, quota, worth in ((4, None, 4), (4, 1.5, 2), (4, 0.5, 1), (2, 8.0, 2), (None, None, 1)):
        monkeypatch.setattr(module, "usable_cores", lambda cores=cores: cores)
        monkeypatch.setattr(module, "core_quota", lambda quota=quota: quota)
        assert module.worth_of_cores() == worth
    for whole, limit, least in ((64, None, 64), (64, 10, 10), (64, 128, 64), (None, 10, 10), (None, None, None)):
        monkeypatch.setattr(module, "memory_bytes", lambda whole=whole: whole)
        monkeypatch.setattr(module, "memory_limit", lambda limit=limit: limit)
        assert module.usable_memory_bytes() == least


@pytest.mark.parametrize("variable", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "DNNL_DEFAULT_FPMATH_MODE"])
def test_arithmetic_follows_whatever_picks_the_routines(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = arithmetic(numerics("fp32"))
    assert before["precision"] == "fp32" and before["torch"] == torch.__version__ and before["processor"]
    assert json.loads(json.dumps(before)) == before
    monkeypatch.setenv(variable, "AVX2")
    assert arithmetic(numerics("fp32")) != before != arithmetic(numerics("bf16"))
