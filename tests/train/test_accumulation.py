"""A batch in parts is the same step but for rounding; what ran out of memory is halved, and said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from graftwork.core.backbone import Inputs
from graftwork.core.kind import OwnOutputs
from graftwork.core.method import Workbench
from graftwork.core.model import Model
from graftwork.machine.memory import Cut, Memory, OutOfMemory
from graftwork.methods.full import Full
from graftwork.methods.lora import Lora
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import accumulation
from graftwork.train.loop import Attaches, FittedModel, fit_by_gradient

BACKBONE = open_backbone("tiny_text", precision="fp32")
Short = Callable[[Callable[[int, int], bool]], list[int]]
FIRST_LOSS, LOSSES = 1e-5, 1e-2  # relative, in fp32: of the first step, and of all, in which rounding adds up by AdamW


def bench_of(kind: str = "classification", memory: Memory | None = None) -> tuple[Workbench, list[Mapping[str, Any]]]:
    bench = tiny_bench(tiny_dataset(kind), BACKBONE)
    lines: list[Mapping[str, Any]] = []
    bench.log, bench.memory = lines.append, memory or Memory()
    return bench, lines


def losses(lines: list[Mapping[str, Any]]) -> list[float]:
    return [line["loss"] for line in lines if "step" in line]


@pytest.fixture
def short_of_memory(monkeypatch: pytest.MonkeyPatch) -> Short:
    """Training passes for which a condition on (their number, their sequences) holds find no memory."""
    forward = Model.forward

    def patched(fits_not: Callable[[int, int], bool]) -> list[int]:
        passes: list[int] = []

        def training(model: Model, inputs: Inputs, entering: Tensor | None = None) -> Tensor:
            if torch.is_grad_enabled():
                passes.append(len(inputs["attention_mask"]))
                if fits_not(len(passes), passes[-1]):
                    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
            return forward(model, inputs, entering)

        monkeypatch.setattr(Model, "forward", training)
        return passes

    return patched


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(name, marks=() if name in ("classification", "tagging", "ranking") else pytest.mark.slow)
        for name in kinds.names()
        if not isinstance(kinds.get(name), OwnOutputs)
    ],
)
@pytest.mark.parametrize("method", [Full(), pytest.param(Lora(), marks=pytest.mark.slow)], ids=["full", "lora"])
def test_parts_make_the_step_of_the_whole_batch(kind: str, method: Attaches) -> None:
    whole, said = bench_of(kind)
    parts, told = bench_of(kind, Memory(cuts=[Cut(0, 40, "test")]))
    fit_by_gradient(method, whole)
    fitted = fit_by_gradient(method, parts)
    assert fitted.facts["accumulation"]["parts"] > 1
    first, other = losses(said), losses(told)
    assert first[0] == pytest.approx(other[0], rel=FIRST_LOSS)
    assert first == pytest.approx(other, rel=LOSSES, abs=LOSSES)


def test_without_want_of_memory_nothing_is_said() -> None:
    bench, lines = bench_of()
    assert "accumulation" not in fit_by_gradient(Lora(), bench).facts
    assert not any("cut" in line for line in lines)


def test_what_runs_out_is_halved_and_said_and_can_be_done_again_to_the_bit(
    short_of_memory: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, lines = bench_of()
    passes = short_of_memory(lambda number, sequences: sequences > 3)
    fitted = fit_by_gradient(Full(), bench)
    said = fitted.facts["accumulation"]
    assert said["parts"] >= 3 and max(passes) == 8 and "can't allocate" in said["cuts"][0]["why"]
    assert [line["cut"] for line in lines if "cut" in line] == said["cuts"]
    monkeypatch.undo()
    again, _ = bench_of(memory=Memory(cuts=[Cut(**cut) for cut in said["cuts"]]))
    same = fit_by_gradient(Full(), again)
    assert same.facts["accumulation"] == said
    assert equal(fitted, same)


def equal(one: FittedModel, other: FittedModel) -> bool:
    return all(torch.equal(tensor, other.delta()[name]) for name, tensor in one.delta().items())


def test_a_pass_that_ended_half_way_adds_nothing(short_of_memory: Short, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that runs out in the second part, after the first has left its gradient."""
    bench, _ = bench_of(memory=Memory(cuts=[Cut(0, 40, "test")]))
    short_of_memory(lambda number, sequences: number == 2)
    fitted = fit_by_gradient(Full(), bench)
    cuts = fitted.facts["accumulation"]["cuts"]
    assert cuts[0]["positions"] > cuts[1]["positions"] and cuts[1]["step"] == 0
    monkeypatch.undo()
    plain, _ = bench_of(memory=Memory(cuts=[Cut(**cut) for cut in cuts]))
    assert equal(fitted, fit_by_gradient(Full(), plain))


def test_one_example_that_does_not_fit_ends_the_run(short_of_memory: Short) -> None:
    bench, _ = bench_of()
    short_of_memory(lambda number, sequences: True)
    with pytest.raises(OutOfMemory, match=r"one example of \d+ tokens needs more memory than is available"):
        fit_by_gradient(Lora(), bench)


@pytest.mark.slow
def test_a_bound_cuts_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulation, "PROCESS_BYTES", 0)
    found = {}
    for bound in (10_000_000, 2_500_000, 2_350_000):
        bench, _ = bench_of(memory=Memory(bound))
        found[bound] = fit_by_gradient(Full(), bench).facts.get("accumulation")
        again, _ = bench_of(memory=Memory(bound))
        assert fit_by_gradient(Full(), again).facts.get("accumulation") == found[bound], "a bound cuts always alike"
    assert found[10_000_000] is None
    assert 1 < found[2_500_000]["parts"] < found[2_350_000]["parts"]
    assert found[2_350_000]["cuts"][0]["why"] == "--max-memory 2350000"


def test_a_bound_below_one_example_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = bench_of(memory=Memory(1_000_000))
    with pytest.raises(OutOfMemory, match="more than --max-memory") as caught:
        fit_by_gradient(Full(), bench)
    assert caught.value.expected == "at most 1 MB" and "for weights, optimiser and process" in caught.value.got


LIMITED = """
import resource, sys
import torch
from graftwork.core.example import Example
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.methods.full import Full
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.data.splits.batch_order import bucket
from graftwork.train.loop import fit_by_gradient
from graftwork.train.seeds import derive

torch.set_num_threads(1)
data = tiny_dataset(rows=1000)
bench = tiny_bench(data, open_backbone("tiny_text", precision="fp32"), epochs=1)
bench.order = lambda lengths, epoch: bucket(lengths, 1000, derive(0, "order"), epoch)
bench.recipe = {**bench.recipe, "batch_size": 1000}
fit_by_gradient(Full(), tiny_bench(data, open_backbone("tiny_text", precision="fp32"), epochs=1))  # warm
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
if sys.argv[1] != "0":
    resource.setrlimit(resource.RLIMIT_AS, (held + int(sys.argv[1]),) * 2)
facts = fit_by_gradient(Full(), bench).facts
print(facts.get("accumulation", {}).get("parts", 1), facts["validation_by_epoch"][-1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")
def test_under_a_limit_of_the_system_a_batch_is_halved_and_the_run_ends_well() -> None:
    """Also where the kernels of oneDNN find none: no limit ends the run."""

    def ended(limit: int) -> tuple[int, float]:
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, str(limit)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        parts, score = done.stdout.split()
        return int(parts), float(score)

    whole = ended(0)
    limited = [ended(limit) for limit in (60_000_000, 40_000_000, 25_000_000)]  # whole it takes about 120 MB
    assert whole[0] == 1 and all(parts > 1 and abs(whole[1] - score) < 0.02 for parts, score in limited)
