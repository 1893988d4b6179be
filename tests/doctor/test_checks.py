"""Each check on a machine that lacks something: what it says, how bad that is, and what to do."""

from __future__ import annotations

import os
import shutil
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch
from packaging.requirements import Requirement

from graftwork.doctor import places
from graftwork.doctor.check import Finding, IntendedUse
from graftwork.doctor.checks import (
    accelerator,
    backbone,
    cache,
    cores,
    disk,
    disk_rate,
    encoding,
    hub,
    load,
    matrix_rate,
    memory,
    optional,
    precision,
    processor,
    runs,
    threads,
    versions,
)  # fmt: skip
from graftwork.doctor.tested import CHECKOUT, EXTRAS, installed_version, of_extra, versions_tested
from graftwork.io.cache_folder import cache_folder
from graftwork.io.files import write_json
from graftwork.io.locks import holding
from graftwork.machine import environment
from graftwork.machine.faster_precision import MeasuredRates, place_of
from graftwork.pretrain.pretrain_folder import CHECKPOINT
from graftwork.run.store import RunStore

Looked = Callable[..., list[Finding]]


@pytest.fixture
def looked(tmp_path: Path) -> Looked:
    """`looked(disk, runs=…)`: the findings of one check."""

    def look(check: Any, **asked: Any) -> list[Finding]:
        settings = {"runs": tmp_path / "runs", "cache": str(tmp_path / "cache"), "seconds": 0.0} | asked
        return list(check.look(IntendedUse(**settings)))

    return look


def keep(precision: str, rates: dict[str, float]) -> Path:
    """As a run that measured this would have left it."""
    place = place_of(environment.multiplying())
    assert place is not None
    write_json(place, {"precision": precision, "flop_per_second": rates})
    return place


def bad(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.says) for finding in findings if finding.level != "ok"]


def test_the_processor_and_what_holds_it_back(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in processor.HOLD_BACK:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_f": True, "avx512_bf16": False})
    assert looked(processor)[0].says.endswith(": AVX2, AVX512")
    assert bad(looked(processor)) == []
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    [(level, says)] = bad(looked(processor))
    assert level == "slow" and "ATEN_CPU_CAPABILITY=avx2" in says


def test_cores_and_a_quota(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: 4)
    monkeypatch.setattr(cores, "core_quota", lambda: 1.5)
    assert "1.5 cores' worth" in looked(cores)[0].says and bad(looked(cores)) == []
    monkeypatch.setattr(cores, "core_quota", lambda: 0.5)
    assert bad(looked(cores)) == [("slow", "a control group gives 0.5 of a core")]


@pytest.mark.parametrize(
    ("cores_here", "variable", "level"), [(1, None, []), (2, "1", ["slow"]), (2, None, []), (0, None, ["slow"])]
)
def test_threads_beside_cores(
    looked: Looked, monkeypatch: pytest.MonkeyPatch, cores_here: int, variable: str | None, level: list[str]
) -> None:
    for name in threads.COUNTS:
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr(threads, "worth_of_cores", lambda: cores_here)
    assert [finding.level for finding in looked(threads)[1:]] == level
    assert (f"OMP_NUM_THREADS={variable}" in looked(threads)[0].says) == (variable is not None)


def test_precision_and_why(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    [finding] = looked(precision)
    assert finding.level == "slow" and finding.says == "fp32 on cpu" and "AVX512-BF16" in finding.why
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    monkeypatch.setattr(environment, "built_with_onednn", lambda: True)
    [finding] = looked(precision)
    assert finding.level == "ok" and finding.says.startswith("bf16 or fp32 on cpu") and not finding.facts["precision"]
    keep("fp32", {"fp32": 3e9, "bf16": 1e9})
    [finding] = looked(precision)
    assert (finding.level, finding.facts["precision"]) == ("ok", "fp32")
    assert finding.says == "fp32 on cpu, for the processor was measured to be 3.0 times as fast in it as in bf16"
    keep("bf16", {"fp32": 1e9, "bf16": 2e9})
    assert "bf16 on cpu, for the processor was measured to be 2.0 times" in looked(precision)[0].says


def test_a_gpu_that_torch_cannot_use(looked: Looked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(accelerator, "DRIVER", tmp_path / "version")
    assert [finding.says for finding in looked(accelerator)] == ["none"]
    (tmp_path / "version").touch()
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "without CUDA" in looked(accelerator)[0].why
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert looked(accelerator)[0].do == "unset CUDA_VISIBLE_DEVICES"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "driver" in looked(accelerator)[0].why


def test_memory_and_its_limits(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    gigabyte = 10**9
    for name, value in {"memory_bytes": 64, "kernel_bytes": 60, "memory_limit": None, "own_limit": None}.items():
        monkeypatch.setattr(memory, name, lambda *asked, value=value: value and value * gigabyte)
    assert bad(looked(memory)) == [] and looked(memory)[0].says == "60 GB of 64 GB free"
    monkeypatch.setattr(memory, "memory_limit", lambda: 10 * gigabyte)
    assert bad(looked(memory)) == [] and looked(memory)[0].says.endswith("; limited to 10 GB")
    monkeypatch.setattr(memory, "own_limit", lambda: gigabyte)
    assert ("fails", "at most 1 GB of memory") in bad(looked(memory))
    monkeypatch.setattr(memory, "own_limit", lambda: None)
    monkeypatch.setattr(memory, "kernel_bytes", lambda *asked: gigabyte)
    assert ("slow", "1 GB of memory are free") in bad(looked(memory))


def test_the_systems_own_numbers_are_read() -> None:
    free = memory.kernel_bytes(memory.INFO, "MemAvailable")
    assert free is None or 10**6 < free < (memory.memory_bytes() or 0)


def test_busy_processes_are_named(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    second = os.sysconf("SC_CLK_TCK")
    readings = iter([{1: ("idle", 5), 2: ("busy", 0), os.getpid(): ("we", 0)},
                     {1: ("idle", 5), 2: ("busy", second), os.getpid(): ("we", second), 3: ("new", 9)}])  # fmt: skip
    monkeypatch.setattr(load, "ticks", lambda: next(readings))
    monkeypatch.setattr(load, "usable_cores", lambda: 2)
    found = looked(load, seconds=0.02)
    assert list(found[0].facts["cores_taken"]) == ["busy"]
    assert bad(found)[0][0] == "slow" and "busy" in bad(found)[0][1]


@pytest.mark.skipif(not load.PROCESSES.is_dir(), reason="the system does not tell of its processes")
def test_the_process_that_looks_is_among_those_seen() -> None:
    begun = load.ticks()[os.getpid()]
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass
    assert load.ticks()[os.getpid()][1] > begun[1] - 1 and begun[0]


def test_matrix_rates_are_measured_and_compared(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(matrix_rate) == []
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    monkeypatch.setattr(matrix_rate, "product_rates", lambda *_: {"fp32": 1e9, "bf16": 3e9})
    [finding, slow] = looked(matrix_rate, seconds=1.0)
    assert finding.says == "1 GFLOP/s in fp32, 3 GFLOP/s in bf16, 1 thread"
    assert (slow.level, slow.says, slow.do) == ("slow", "bf16 is 3.0 times as fast", "--precision bf16")
    monkeypatch.setattr(matrix_rate, "product_rates", lambda *_: {"fp32": 1e9, "bf16": 1.1e9})
    assert bad(looked(matrix_rate, seconds=1.0)) == []


@pytest.mark.parametrize(("kept", "now", "slow"), [("fp32", 3.0, True), ("fp32", 1.1, False), ("bf16", 3.0, False)])
def test_a_kept_choice_is_measured_again(
    looked: Looked, monkeypatch: pytest.MonkeyPatch, kept: str, now: float, slow: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    monkeypatch.setattr(environment, "built_with_onednn", lambda: True)
    several_threads = {"fp32": 9e9, "bf16": 1e9}  # as where others take the cores: it decides nothing
    monkeypatch.setattr(matrix_rate, "product_rates", lambda *_: several_threads)
    monkeypatch.setattr(matrix_rate, "measure_rates", lambda: MeasuredRates.of({"fp32": 1e9, "bf16": now * 1e9}))
    assert bad(looked(matrix_rate, seconds=1.0)) == []  # nothing is kept yet: the first run will measure
    place = keep(kept, {"fp32": 1e9, "bf16": 1e9})
    assert bad(looked(matrix_rate, seconds=1.0)) == ([("slow", "bf16 is 3.0 times as fast")] if slow else [])
    told = looked(matrix_rate, seconds=1.0)[-1]
    assert not slow or (str(place) in told.why and "remove that file" in told.do)


def test_disk_rates_are_measured_and_compared(looked: Looked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert looked(disk_rate) == []
    [finding, *_] = looked(disk_rate, seconds=0.001)
    assert finding.facts["bytes_per_second"] > 1e3 and finding.facts["sync_seconds"] > 0
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(disk_rate, "write_rate", lambda *_: 1e6)
    monkeypatch.setattr(disk_rate, "sync_seconds", lambda *_: 0.5)
    assert [level for level, _ in bad(looked(disk_rate, seconds=1.0))] == ["slow", "slow"]


def test_a_disk_with_room(looked: Looked, tmp_path: Path) -> None:
    here = looked(disk)
    assert [finding.facts["place"] for finding in here if finding.facts] == ["runs", "cache", "tmp"]
    assert "not made yet" in here[0].says and list(tmp_path.iterdir()) == []


def test_a_full_disk_fails_and_a_full_cache_is_slow(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1000))
    assert [level for level, _ in bad(looked(disk))] == ["fails", "slow", "fails"]
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=5 * 10**9))
    assert bad(looked(disk)) == [("note", "cache: 5 GB free")]
    monkeypatch.setattr(disk, "_free_files", lambda folder: 3)
    assert ("fails", "runs: the disk is full but for room for 3 files") in bad(looked(disk))


def test_a_file_in_the_way_of_a_folder(looked: Looked, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    [(level, says)] = bad(looked(disk))
    assert level == "fails" and "Not a directory" in says
    assert [level for level, _ in bad(looked(disk_rate, seconds=0.01))] == ["note"]


def test_a_disk_across_a_network(looked: Looked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(places, "MOUNTS", tmp_path / "mounts")
    assert places.file_system(tmp_path / "runs") == "nfs4" and places.file_system(Path("/")) == "ext4"
    assert ("slow", f"runs: {tmp_path / 'runs'} lies across a network (nfs4)") in bad(looked(disk))


def test_a_mount_with_a_space_and_one_upon_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "my data").mkdir()
    escaped = f"{tmp_path.resolve()}/my\\040data"
    table = ["/dev/sda / ext4 rw 0 0", f"auto {escaped} autofs rw 0 0", f"server:/x {escaped} cifs rw 0 0"]
    (tmp_path / "mounts").write_text("\n".join(table) + "\n")
    monkeypatch.setattr(places, "MOUNTS", tmp_path / "mounts")
    assert places.file_system(tmp_path / "my data") == "cifs" and places.file_system(tmp_path) == "ext4"


def test_torn_files_of_the_cache(looked: Looked, tmp_path: Path) -> None:
    assert looked(cache)[0].says.startswith("0 B in 0 passes")
    folder = cache_folder(tmp_path / "cache")
    folder.mkdir(parents=True)
    (folder / f"{'a' * 64}-pooled.safetensors").write_bytes(b"torn")
    assert bad(looked(cache)) == [("note", "1 torn")]
    assert looked(cache)[0].facts["bytes"] == 4


def test_models_of_the_hub(looked: Looked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    blobs = tmp_path / "models--google--bert" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "a").write_bytes(b"12345")
    [finding] = looked(hub)
    assert finding.facts["models"] == {"google/bert": 5} and "5 B in 1 model under" in finding.says


def test_a_hub_name_is_never_fetched(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: Any, **__: Any) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    [(level, says)] = bad(looked(backbone, backbone="hf:some/model"))
    assert level == "note" and says == "hf:some/model is not on this machine"


def test_a_backbone_opens_or_says_why_not(looked: Looked) -> None:
    assert looked(backbone, backbone="tiny_text")[0].says.startswith("tiny_text opens in ")
    [finding] = looked(backbone, backbone="minilmm")
    assert finding.level == "fails" and "did you mean 'minilm'?" in finding.do


def test_what_is_beside_finished_runs(looked: Looked, tmp_path: Path) -> None:
    assert bad(looked(runs)) == [] and not (tmp_path / "runs").exists()
    name, root = "0123456789abcdef", tmp_path / "runs"
    for hidden in (f".{name}.checkpoint", f".{name}.k3x9_a2b"):
        (root / hidden).mkdir(parents=True)
        os.utime(root / hidden, (1000, 1000))
    (root / "fedcba9876543210").mkdir()
    (root / "fedcba9876543210" / "spec.json").write_text("{}")
    with RunStore(root).claim("aaaa") as ours:
        assert ours and looked(runs)[0].says == f"0 finished, 1 being executed under {root}"
    says = [says for _, says in bad(looked(runs))]
    assert says == ["1 run was stopped", "1 leftover of killed processes", "1 run without a result"]
    RunStore(root).sweep()
    assert [says for _, says in bad(looked(runs))] == ["1 run was stopped", "1 run without a result"]


@pytest.mark.parametrize("locks", [runs.LOCKS, Path("/no/locks/here")], ids=["told", "not told"])
def test_a_run_that_is_being_executed_leaves_nothing_behind(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: Path
) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    monkeypatch.setattr(runs, "LOCKS", locks)
    with RunStore(root).claim("ab12"):
        for hidden in (".ab12.checkpoint", ".ab12.k3x9_a2b"):
            (root / hidden).mkdir()
        assert bad(looked(runs)) == [] and looked(runs)[0].facts["live"] == 1
        (root / ".cd34.claim").touch()
        os.utime(root / ".cd34.claim", (0, 0))
        assert bad(looked(runs)) == [("note", "1 leftover of killed processes")]


def test_a_pre_training_is_never_taken_for_a_torn_run(looked: Looked, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "0123456789abcdef"
    (folder / CHECKPOINT).mkdir(parents=True)
    (folder / "spec.json").write_text("{}")
    with holding(folder / ".lock"):
        assert bad(looked(runs)) == [] and looked(runs)[0].facts["live"] == 1
    [stopped] = [finding for finding in looked(runs) if finding.level != "ok"]
    assert stopped.says == "1 pre-training was stopped" and stopped.do == "run it again"
    (folder / CHECKPOINT).rmdir()
    assert bad(looked(runs)) == [("note", "1 run without a result")]


def test_libraries_that_are_missing_or_too_old_fail(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = [Requirement("torch>=2.5"), Requirement("scipy>=1.12"), Requirement("rich>=13")]
    here = {"torch": "2.4.1", "scipy": None, "rich": "14.0.0"}
    monkeypatch.setattr(versions, "of_extra", lambda extra: [] if extra else needed)
    monkeypatch.setattr(versions, "installed_version", lambda name: here[name])
    monkeypatch.setattr(versions, "versions_tested", lambda: {"torch": "2.13.0", "rich": "15.0.0"})
    found = bad(looked(versions))
    assert found[:2] == [("fails", "torch 2.4.1"), ("fails", "scipy is missing")]
    assert found[2] == ("note", "torch 2.4.1 (tested: 2.13.0), rich 14.0.0 (tested: 15.0.0)")
    assert looked(versions)[-1].do == "pip install torch==2.13.0 rich==15.0.0"
    assert "finished runs keep their ids" in looked(versions)[-1].why


def test_of_an_extra_only_what_is_installed_is_compared(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"": ["torch>=2.5"], "sound": ["soundfile>=0.13"], "images": ["pillow>=11"], "serve": ["uvicorn>=0.34"]}
    here = {"torch": "2.13.0", "soundfile": None, "pillow": "10.0", "uvicorn": "0.35"}
    monkeypatch.setattr(versions, "of_extra", lambda extra: [Requirement(line) for line in told.get(extra, [])])
    monkeypatch.setattr(versions, "installed_version", lambda name: here[name])
    monkeypatch.setattr(versions, "versions_tested", lambda: {"torch": "2.13.0", "uvicorn": "0.54.0"})
    assert bad(looked(versions)) == [("fails", "pillow 10.0"), ("note", "uvicorn 0.35 (tested: 0.54.0)")]


def test_the_tested_versions_are_found_in_a_checkout_and_in_an_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from graftwork.doctor import tested

    assert versions_tested()["torch"] and installed_version("torch")
    text = (tested.CHECKOUT / "constraints.txt").read_text(encoding="utf-8")
    monkeypatch.setattr(tested, "CHECKOUT", tmp_path)
    kept = {"extra_metadata/constraints.txt": text}
    monkeypatch.setattr(tested.importlib.metadata, "distribution", lambda name: SimpleNamespace(read_text=kept.get))
    beside_the_metadata = versions_tested()
    kept.clear()
    assert beside_the_metadata["torch"] and versions_tested() == {}


def test_extras_that_are_missing_say_what_they_bring(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"elmo": [Requirement("h5py>=3")], "vectors": [Requirement("gensim>=4")]}
    monkeypatch.setattr(optional, "of_extra", lambda extra: told.get(extra, []))
    monkeypatch.setattr(optional, "installed_version", lambda name: None if name == "gensim" else "1")
    [finding] = looked(optional)
    assert finding.level == "ok" and finding.says.startswith("no gensim: training of word vectors")
    monkeypatch.setattr(optional, "installed_version", lambda name: "1")
    assert looked(optional)[0].says == "all are installed"


def test_every_extra_of_the_package_is_explained() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert extras.keys() - {"all", "dev", "docs"} == EXTRAS.keys()
    assert extras["all"] == [f"graftwork[{','.join(EXTRAS)}]"] and "graftwork[all]" in extras["dev"]


def test_what_an_extra_adds_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["torch>=2.5", 'h5py>=3.12; extra == "elmo"', 'pyarrow>=18.0; extra == "parquet"']
    monkeypatch.setattr("importlib.metadata.requires", lambda name: lines)
    assert [[one.name for one in of_extra(extra)] for extra in ("", "elmo", "hub")] == [["torch"], ["h5py"], []]


def test_characters(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "utf-8")
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding="ascii"))
    assert bad(looked(encoding)) == [("note", "the terminal takes ascii")]
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "iso8859-1")
    assert bad(looked(encoding))[0] == ("fails", "file names are iso8859-1")


@pytest.mark.parametrize(("own", "other", "held"), [(0x801, 0x801, True), (0x801, 0x802, False), (0x1C, 0x1D, True)])
def test_a_lock_is_of_a_file_on_its_own_device(own: int, other: int, held: bool) -> None:
    """The second half: where a file system has no device, the number that it reports may be another one."""
    stat = os.stat_result((0, 77, own, *[0] * 7))
    place = f"{os.major(other):02x}:{os.minor(other):02x}:77"
    assert runs._is_of(place, stat) is held
    assert not runs._is_of(place.replace(":77", ":78"), stat)
