"""One run from data to receipt: whole, repeatable, kept, and priced even when it fails."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.cli.show import run_lines
from graftwork.core.configured_methods import parse_method
from graftwork.core.meter import Cost, Phase
from graftwork.core.method import Workbench
from graftwork.core.metric import score
from graftwork.core.run import Recipe, RunResult
from graftwork.errors import StorageError
from graftwork.io import locks
from graftwork.io.files import file_digest, read_json, safe_load
from graftwork.meters import energy_joules
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.receipts.checklist import RunGroup, paragraph
from graftwork.registry import kinds, meters, metrics
from graftwork.run import execute as module
from graftwork.run.execute import execute
from graftwork.run.receipt import read_receipt
from graftwork.run.receipt_fields import problems
from graftwork.run.session import Session
from graftwork.run.store import read_logits, read_result
from graftwork.train import recipe
from graftwork.train.shared_features import PooledOnce

OpenSession = Callable[..., Session]
During = dict[str, Callable[[Workbench], None]]
SHORT = Recipe(epochs=2, batch_size=8)
CASES = [("classification", False), ("classification", True), ("multilabel", False), ("regression", False)]


def run(session: Session, method: str, seed: int = 0, recipe: Recipe = SHORT) -> tuple[RunResult, Path]:
    result, known = execute(session, parse_method(method), recipe, seed, lambda done, text: None)
    assert not known
    return result, session.store.root / result.id


def ran(session: Session, method: str, seed: int = 0) -> tuple[RunResult, Path]:
    """As `run`, of a kept session."""
    result, _ = execute(session, parse_method(method), SHORT, seed, lambda done, text: None)
    return result, session.store.root / result.id


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("kind", "pair", "method"),
    [
        pytest.param(*case, method, marks=pytest.mark.slow if method != "lora" and case != CASES[0] else ())
        for method in ("lora", "linear_probe", "tfidf_svm")
        for case in CASES
    ],
)
def test_a_run_leaves_a_whole_receipt(kind: str, pair: bool, method: str, kept_session: OpenSession) -> None:
    session = kept_session(kind, pair)
    result, folder = ran(session, method)
    assert result.status == "ok", result.error
    assert {path.name for path in folder.iterdir()} == {
        "spec.json", "log.jsonl", "predictions.jsonl", "receipt.json", "result.json", "module",
    }  # fmt: skip
    assert {path.name for path in (folder / "module").iterdir()} == {
        "module.json", "delta.safetensors", "selftest.json", "README.md",
    }  # fmt: skip
    assert read_result(folder / "result.json") == session.store.find(result.id) == result
    assert read_receipt(folder)["outcome"]["interval"] == (list(result.interval) if result.interval else None)
    assert set(result.costs) == set(meters.names())
    assert result.costs["stored_bytes"].value and result.costs["predict_latency_seconds"].value
    assert (result.costs["train_flops"].value or 0) > 0


@pytest.mark.parametrize(("kind", "pair"), CASES)
def test_predictions_are_those_of_the_scores_and_of_the_module(
    kind: str, pair: bool, kept_session: OpenSession
) -> None:
    session = kept_session(kind, pair)
    data, part = session.dataset, kinds.get(kind)
    result, folder = ran(session, "lora")
    listed = lines(folder / "predictions.jsonl")
    examples = (*data.validation.examples, *data.test.examples)
    assert [line["id"] for line in listed] == [example.id for example in examples]
    for split, scores in ((data.validation, result.validation), (data.test, result.scores)):
        predictions = part.predictions(read_logits(folder, split.name), data.task)
        assert scores == {name: score(metrics.get(name), split.targets, predictions, data.task)
                          for name in data.task.metrics}  # fmt: skip
    headline = next(iter(result.scores.values()))
    assert result.interval is None or result.interval[0] <= headline <= result.interval[1]
    opened = TaskModule.load(folder)
    assert np.array_equal(opened.fitted.logits(data.test.examples), read_logits(folder, "test"))
    answers = opened.predict([example.inputs for example in data.test.examples])
    stored = [line["prediction"] for line in listed if line["split"] == "test"]
    assert [answer.get("label", answer.get("value")) for answer in answers] == stored


@pytest.mark.parametrize(
    ("method", "precision"),
    [
        ("lora", "bf16"),
        ("tfidf_svm", "fp32"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("adapter", "fp32"),
                ("full", "bf16"),
                ("top_layers:k=1", "fp32"),
                ("linear_probe", "bf16"),
                ("ulmfit", "bf16"),
            )
        ),
    ],
)
def test_the_same_spec_gives_the_same_bytes(
    method: str, precision: str, kept_session: OpenSession, open_tiny: OpenSession
) -> None:
    """In another process's session, and in one that has already run other methods over its shared backbone."""
    used, fresh = kept_session(precision=precision), open_tiny(precision=precision)
    ran(used, "adapter:size=3", seed=5)
    (first, one), (second, two) = ran(used, method), run(fresh, method)
    assert first.id == second.id and first.scores == second.scores
    for name in ("predictions.jsonl", "spec.json", "module/delta.safetensors", "module/selftest.json"):
        assert file_digest(one / name) == file_digest(two / name), name
    assert first.facts == second.facts


def test_a_method_with_a_schedule_of_its_own_has_it_in_the_receipt(open_tiny: OpenSession) -> None:
    session = open_tiny()
    names = ("ulmfit:ratio=8", "no_transfer:by=ulmfit:ratio=8", "full")
    slanted, over, linear = (session.spec(parse_method(name), SHORT, 0).recipe for name in names)
    assert (slanted["schedule"], slanted["cut_frac"], slanted["ratio"]) == ("slanted triangular", 0.1, 8.0)
    assert (linear["schedule"], linear["warm_up"]) == ("linear", 0.1)
    assert linear.keys() - slanted.keys() == {"warm_up"}
    assert {over[name] for name in slanted if name in ("schedule", "cut_frac", "ratio")} == {
        "slanted triangular",
        0.1,
        8.0,
    }


def test_another_seed_is_another_run(kept_session: OpenSession) -> None:
    (first, one), (second, two) = (ran(kept_session(), "lora", seed) for seed in (0, 1))
    assert first.id != second.id
    assert file_digest(one / "predictions.jsonl") != file_digest(two / "predictions.jsonl")


def test_a_finished_run_is_not_run_again(open_tiny: OpenSession, during: During) -> None:
    session = open_tiny()
    first, folder = run(session, "staged")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    def refuse(bench: Workbench) -> None:
        raise AssertionError("fitted again")

    during["nothing"] = refuse
    again, known = execute(open_tiny(), parse_method("staged"), SHORT, 0, lambda done, text: None)
    assert known and again == session.store.find(first.id)
    assert again.scores == first.scores and {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_the_id_is_of_what_decides_the_result(open_tiny: OpenSession) -> None:
    session, other_data, half = open_tiny(), open_tiny(pair=True), open_tiny(precision="bf16")
    lora, svm = parse_method("lora"), parse_method("tfidf_svm")
    ids = [
        session.spec(lora, SHORT, 0).id,
        session.spec(lora, SHORT, 1).id,
        session.spec(parse_method("lora:rank=4"), SHORT, 0).id,
        session.spec(lora, Recipe(epochs=3, batch_size=8), 0).id,
        other_data.spec(lora, SHORT, 0).id,
        half.spec(lora, SHORT, 0).id,
        session.spec(svm, SHORT, 0).id,
    ]
    assert len(set(ids)) == len(ids)
    assert session.spec(parse_method("lora:rank=8"), SHORT, 0).id == ids[0]
    assert half.spec(svm, Recipe(epochs=7), 0).id == ids[-1]  # no backbone, no recipe: neither decides anything


def test_a_source_that_is_held_has_another_seed_and_another_id(open_tiny: OpenSession) -> None:
    session, lora = open_tiny(), parse_method("lora")
    held = dataclasses.replace(SHORT, varied=("init",))
    assert session.spec(lora, held, 0) == session.spec(lora, SHORT, 0)
    assert session.spec(lora, held, 1).id != session.spec(lora, SHORT, 1).id
    assert "held" not in session.spec(lora, SHORT, 1).content()
    first, other, still = (
        module.workbench(session, lora, recipe_, seed) for recipe_, seed in ((SHORT, 0), (SHORT, 1), (held, 1))
    )
    assert [bench.seed_of("init") for bench in (first, other, still)] == [0, 1, 1]
    assert [bench.seed_of("order") for bench in (first, other, still)] == [0, 1, 0]
    lengths = np.arange(1, 41)
    orders = [[rows.tolist() for rows in bench.order(lengths, 1)] for bench in (first, other, still)]
    assert orders[0] == orders[2] != orders[1]


@pytest.mark.slow
def test_a_source_that_is_held_is_drawn_as_by_seed_0(open_tiny: OpenSession) -> None:
    """A learning rate of almost nothing leaves the weights as they were drawn."""
    session, held = open_tiny(), dataclasses.replace(SHORT, varied=("order",))
    still = "adapter:size=2:learning_rate=1e-30"
    drawn = {}
    for name, recipe_, seed in (("zero", SHORT, 0), ("one", SHORT, 1), ("held", held, 1)):
        result, folder = run(session, still, seed, recipe_)
        (weights,) = [
            weight
            for at, weight in safe_load(folder / "module" / "delta.safetensors").items()
            if at.endswith("layer/1/output/dense.down.weight")
        ]
        drawn[name] = weights, result
    assert torch.allclose(drawn["zero"][0], drawn["held"][0]) and not torch.allclose(drawn["zero"][0], drawn["one"][0])
    seeds = {
        name: read_receipt(session.store.root / result.id)["randomness"]["derived"]
        for name, (_, result) in drawn.items()
    }
    assert seeds["held"]["init"] == seeds["zero"]["init"] and seeds["held"]["order"] == seeds["one"]["order"]
    assert len({result.id for _, result in drawn.values()}) == 3
    assert read_json(session.store.root / drawn["held"][1].id / "spec.json")["held"] == ["init", "augmentation"]


def test_shared_work_is_charged_to_each_run_in_full(open_tiny: OpenSession) -> None:
    session = open_tiny()
    first, second = (run(session, "linear_probe", seed)[0] for seed in (0, 1))
    flops = [result.costs["train_flops"].value for result in (first, second)]
    assert flops[0] == pytest.approx(flops[1], rel=0.2)  # only the mix differs with the seed
    alone = run(open_tiny(runs="alone"), "linear_probe", seed=1)[0]
    assert alone.costs["train_flops"] == second.costs["train_flops"]


def test_the_shared_work_and_the_opening_stand_beside_what_was_spent(open_tiny: OpenSession, during: During) -> None:
    session = dataclasses.replace(open_tiny(), load=Phase(5.0, 3.0))
    during["charge"] = lambda bench: bench.charged.add(Phase(7.0, 6.0))  # as a pass that is there does
    found = run(session, "staged:act=charge")[0]
    assert (found.shared, found.opening) == (Phase(7.0, 6.0), Phase())  # it has no use for a backbone
    probe = run(session, "linear_probe", seed=0)[0]
    assert probe.opening == session.load and probe.shared.wall_seconds < 0.5
    again = read_result(session.store.root / probe.id / "result.json")
    assert (again.spent, again.shared, again.opening) == (probe.spent, probe.shared, probe.opening)


def test_a_test_pass_of_an_earlier_run_is_charged_and_not_measured(
    open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, seen = open_tiny(), []
    assert session.backbone is not None
    session.tested = PooledOnce(session.backbone, session.dataset.test.examples)
    run(session, "linear_probe", seed=0)
    session.tested._cost = Phase(50.0, 40.0)
    real = module.read_costs
    monkeypatch.setattr(
        module, "read_costs", lambda marks, told, prices: seen.append(told) or real(marks, told, prices)
    )
    found = run(session, "linear_probe", seed=1)[0]
    assert seen[0].charged_evaluate == Phase(50.0, 40.0) and seen[0].phases["evaluate"].wall_seconds < 40
    assert found.costs["total_seconds"].value > 50 and found.shared.wall_seconds >= 50


def test_rates_by_depth_are_another_run_only_where_depth_is_not_the_order(open_tiny: OpenSession) -> None:
    session = open_tiny()
    assert isinstance(session.backbone, TransformerBackbone)
    elsewhere = session.backbone.copy()
    elsewhere.learns_like = {"embeddings.LayerNorm": "encoder.layer.0"}
    moved = dataclasses.replace(session, backbone=elsewhere)

    def other(words: str) -> bool:
        method = parse_method(words)
        return session.spec(method, SHORT, 0).id != moved.spec(method, SHORT, 0).id

    decaying = ("full", "ulmfit", "contrastive:decay=0.5", "no_transfer:by=full")
    assert [other(words) for words in decaying] == [True] * 4
    level = ("full:decay=1", "ulmfit:divisor=1", "contrastive", "lora", "top_layers:k=1", "linear_probe", "tfidf_svm")
    assert [other(words) for words in level] == [False] * 7

    result, folder = run(moved, "contrastive:decay=0.5:steps=2")  # its recipe says nothing else
    receipt = read_receipt(folder)
    assert receipt["method"]["recipe"] == {"rates": "of all parts by depth"} and not problems(receipt)
    assert result.status == "ok" and not any(line.startswith("recipe") for line in run_lines(folder))
    assert "Training took 2 steps, as the method has them" in paragraph(RunGroup([receipt]))


@pytest.fixture
def draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """The machine has a counter, and draws so many joules at each call."""
    zone = tmp_path / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    monkeypatch.setattr(energy_joules, "POWERCAP", zone.parent)
    for name, told in (("name", "package-0"), ("max_energy_range_uj", "262143000000"), ("energy_uj", "5")):
        (zone / name).write_text(f"{told}\n")

    def more(joules: int) -> None:
        counted = int((zone / "energy_uj").read_text())
        (zone / "energy_uj").write_text(f"{counted + 1_000_000 * joules}\n")

    return more


def test_counted_energy_is_that_of_the_phases_and_not_of_the_metering(
    open_tiny: OpenSession, during: During, draw: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def while_it(name: str, joules: int) -> None:
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: (draw(joules), real(*given))[1])

    during["draw"] = lambda bench: draw(40)
    while_it("write_predictions", 2)
    for metering in ("predict_speed", "evidence_of", "environment", "write_receipt"):
        while_it(metering, 1000)
    session = open_tiny()
    found = run(session, "staged:act=draw")[0]
    assert found.costs["energy_joules"] == Cost(42.0, "J", "counter")
    assert found.costs["predict_latency_seconds"].value is not None

    def fail(bench: Workbench) -> None:
        draw(7)
        raise RuntimeError("no more")

    during["fail"] = fail
    failed = run(session, "staged:act=fail")[0]
    assert (failed.status, failed.costs["energy_joules"]) == ("failed", Cost(7.0, "J", "counter"))


def test_the_log_has_a_line_per_step(kept_session: OpenSession) -> None:
    result, folder = ran(kept_session(), "lora")
    steps = [line["step"] for line in lines(folder / "log.jsonl") if "step" in line]
    assert steps == list(range(result.facts["steps"])) and len(steps) > 4


def test_progress_ends_at_one(open_tiny: OpenSession) -> None:
    seen: list[float] = []
    execute(open_tiny(), parse_method("lora"), SHORT, 0, lambda done, text: seen.append(done))
    assert seen[-1] == 1.0 and min(seen) >= 0 and len(seen) > 4


def test_the_test_split_never_reaches_a_method(open_tiny: OpenSession, during: During) -> None:
    session = open_tiny()
    held = {example.inputs["text"] for example in session.dataset.test.examples}

    def look(bench: Workbench) -> None:
        reach = [*bench.train.examples, *bench.validation.examples]
        assert not held & {example.inputs["text"] for example in reach}
        assert bench.train.name == "train" and bench.validation.name == "validation"
        assert not any(value is session.dataset or value is session.dataset.test for value in vars(bench).values())

    during["look"] = look
    assert run(session, "staged:act=look")[0].status == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lora", "linear_probe", "dan", "no_transfer:by=linear_probe"])
def test_a_fit_calls_nothing_of_a_run_but_its_log_and_its_checkpoints(
    method: str, open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it needs (frozen passes, shared work, the score on validation) is prepared and handed down."""
    session, chosen, source = open_tiny(), parse_method(method), Path(module.__file__).parents[1]
    called, real = set[str](), type(chosen.method).fit

    def traced(frame: FrameType, event: str, argument: Any) -> None:
        frames = (frame, frame.f_back)
        of_run = [one is not None and Path(one.f_code.co_filename).parent == source / "run" for one in frames]
        if event == "call" and of_run == [True, False]:
            called.add(frame.f_code.co_qualname)

    def fit(self: Any, bench: Workbench) -> Any:
        sys.setprofile(traced)
        try:
            return real(self, bench)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(type(chosen.method), "fit", fit)
    result, _ = execute(session, chosen, SHORT, 0, lambda done, text: None)
    assert result.status == "ok"
    assert not {name for name in called if not name.startswith(("_Execution._log", "RunCheckpoint.", "_Keep."))} - {
        "computed_in"  # what checkpoints are labelled with
    }


def raising(error: BaseException) -> Callable[[Workbench], None]:
    def act(bench: Workbench) -> None:
        bench.tally.add(1e6)
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("a bug"), "failed"),
        (MemoryError(), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes"), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), "out_of_memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), "out_of_memory"),
    ],
)
def test_a_failure_is_a_result_with_a_price_tag(
    error: Exception, status: str, open_tiny: OpenSession, during: During
) -> None:
    during["fail"] = raising(error)
    session = open_tiny()
    result, folder = run(session, "staged:act=fail")
    assert (result.status, result.error) == (status, str(error) or "MemoryError")
    assert set(result.costs) == set(meters.names())
    assert result.costs["train_flops"].value == 1e6 and (result.costs["total_seconds"].value or 0) > 0
    assert result.costs["stored_bytes"].value == 0 and not result.scores
    assert "raise error" in lines(folder / "log.jsonl")[-1]["traceback"]
    assert read_result(folder / "result.json").status == status and not (folder / "module").exists()


def test_divergence_is_a_failure_that_says_where(kept_session: OpenSession, open_tiny: OpenSession) -> None:
    session = open_tiny()
    result, folder = run(session, "adapter:learning_rate=1e30", recipe=Recipe(epochs=4, batch_size=8))
    assert result.status == "diverged" and "training diverged at step" in result.error
    assert read_receipt(folder)["randomness"]["derived"].keys() == {"init", "order", "augmentation"}
    assert (result.costs["train_flops"].value or 0) > 0
    assert not any("traceback" in line for line in lines(folder / "log.jsonl"))
    after, alone = run(session, "lora")[1], ran(kept_session(), "lora")[1]
    assert file_digest(after / "predictions.jsonl") == file_digest(alone / "predictions.jsonl")


def test_a_failed_run_is_tried_again_and_replaced(open_tiny: OpenSession, during: During) -> None:
    session = open_tiny()
    during["fail"] = raising(ValueError("once"))
    failed, folder = run(session, "staged:act=fail")
    del during["fail"]
    result, again = run(session, "staged:act=fail")
    assert again == folder and (failed.status, result.status) == ("failed", "ok")
    assert read_result(folder / "result.json").status == "ok"
    assert [path.name for path in session.store.root.iterdir()] == [result.id]


def test_facts_that_are_no_json_are_a_failure_and_not_half_a_module(open_tiny: OpenSession, during: During) -> None:
    result, _ = run(open_tiny(), "staged:act=odd facts")
    assert result.status == "failed" and "JSON" in result.error


def test_a_failure_while_speed_is_measured_is_a_failure(
    open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise ZeroDivisionError("no clock")

    monkeypatch.setattr(module, "predict_speed", fail)
    result, _ = run(open_tiny(), "majority")
    assert (result.status, result.error) == ("failed", "no clock")
    assert result.costs["predict_latency_seconds"].value is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), StorageError("the disk is full")])
def test_an_interrupt_leaves_nothing_and_the_next_call_completes(
    error: BaseException, open_tiny: OpenSession, during: During
) -> None:
    session = open_tiny()
    during["stop"] = raising(error)
    with pytest.raises(type(error)):
        run(session, "staged:act=stop")
    assert list(session.store.root.iterdir()) == []
    del during["stop"]
    assert run(session, "staged:act=stop")[0].status == "ok"


def test_an_interrupted_gradient_method_leaves_the_backbone_as_it_was(
    kept_session: OpenSession, open_tiny: OpenSession
) -> None:
    session = open_tiny()

    def stop(done: float, text: str) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(session, parse_method("adapter"), SHORT, 0, stop)
    assert list(session.store.root.iterdir()) == []
    one, two = run(session, "lora")[1], ran(kept_session(), "lora")[1]
    assert file_digest(one / "predictions.jsonl") == file_digest(two / "predictions.jsonl")


def test_a_run_that_another_process_executes_is_waited_for(
    open_tiny: OpenSession, during: During, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`attempt` says so at once; `execute` comes back, and takes what the other has found, a failure too."""
    here, there, method = open_tiny(), open_tiny(), parse_method("staged:act=meanwhile")
    told: list[str] = []

    def arguments(session: Session) -> Any:
        return session, method, SHORT, 0, lambda done, text: told.append(text)

    def meanwhile(bench: Workbench) -> None:
        during.clear()
        assert module.execute_if_free(*arguments(here)) is None and told[-1] == "another process is at it"
        raise ValueError("on the way")

    during["meanwhile"] = meanwhile
    failed, known = execute(*arguments(there))
    assert (failed.status, known) == ("failed", False)
    assert execute(*arguments(here)) == (failed, True)
    assert execute(*arguments(open_tiny()))[0].status == "ok"  # the next command tries again


def test_it_waits_for_a_run_of_another_process(open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    session, method = open_tiny(), parse_method("majority")
    done = execute(session, method, SHORT, 0, lambda done, text: None)
    answers, slept = [None, None, done], list[float]()
    monkeypatch.setattr(module, "execute_if_free", lambda *_: answers.pop(0))
    monkeypatch.setattr(module.time, "sleep", slept.append)
    assert execute(session, method, SHORT, 0, lambda done, text: None) is done
    assert slept == [module.SECONDS_BETWEEN_LOOKS] * 2


def test_of_a_run_that_two_processes_executed_the_first_stays(
    open_tiny: OpenSession, during: During, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system where nothing can be locked."""
    monkeypatch.setattr(locks, "try_lock", lambda handle: None)
    outer, inner = open_tiny(), open_tiny()
    finished: list[int] = []

    def meanwhile(bench: Workbench) -> None:
        if not finished:
            finished.append(0)
            finished.append((run(inner, "staged:act=meanwhile")[1] / "result.json").stat().st_ino)

    during["meanwhile"] = meanwhile
    result, folder = run(outer, "staged:act=meanwhile")
    assert result.status == "ok"
    assert (folder / "result.json").stat().st_ino == finished[1]
    assert [path.name for path in outer.store.root.iterdir()] == [result.id]


@pytest.mark.parametrize("first_fails", [True, False])
def test_two_processes_of_which_one_fails(
    first_fails: bool, open_tiny: OpenSession, during: During, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A good result is never replaced by a failure, and always replaces one; also where nothing can be locked."""
    monkeypatch.setattr(locks, "try_lock", lambda handle: None)
    outer, inner = open_tiny(), open_tiny()
    depth: list[None] = []

    def meanwhile(bench: Workbench) -> None:
        depth.append(None)
        is_inner = len(depth) == 2
        if not is_inner:
            run(inner, "staged:act=meanwhile")
        if is_inner == first_fails:
            raise ValueError("unlucky")

    during["meanwhile"] = meanwhile
    result, folder = run(outer, "staged:act=meanwhile")
    assert result.status == ("ok" if first_fails else "failed")
    assert read_result(folder / "result.json").status == "ok"
    assert [path.name for path in outer.store.root.iterdir()] == [result.id]


TRAIN = """
import sys, torch
from graftwork.run.train import train
torch.set_num_threads(1)
run = train(sys.argv[1], method="lora", backbone="tiny_text", epochs=2, runs=sys.argv[2], precision="fp32")
print(run.result.id, run.result.scores["accuracy"], len(run.module.predict(["good film"])))
"""


@pytest.mark.slow
def test_two_processes_on_one_store_do_not_disturb_each_other(write: Callable[..., Path], tmp_path: Path) -> None:
    command = [sys.executable, "-c", TRAIN, str(write()), str(tmp_path / "runs")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert said[0][0] == said[1][0]
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name == said[0][0].split()[0] and read_json(folder / "result.json")["status"] == "ok"


@pytest.mark.parametrize("method", ["lora", pytest.param("ulmfit", marks=pytest.mark.slow)])
def test_a_run_with_a_part_of_its_steps_trains_on_a_part_of_the_epoch(
    method: str, open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "STEPS_OF_A_PART", 1)
    session = open_tiny()
    short = Recipe(epochs=2, batch_size=2, part=1 / 4)
    result, folder = run(session, method, recipe=short)
    resolved = read_json(folder / "spec.json")["recipe"]
    assert (resolved["epochs"], resolved["part"]) == (1, 1 / 4)
    assert result.facts["steps"] == resolved["steps"] == resolved["batches_per_epoch"]
    steps = [line for line in lines(folder / "log.jsonl") if "step" in line]
    assert len(steps) == resolved["steps"] > 1
    assert result.scores.keys() == result.validation.keys() == set(session.dataset.task.metrics)
    assert (folder / "module").is_dir() and result.costs["train_flops"].value
    assert result.id != session.spec(parse_method(method), Recipe(epochs=2, batch_size=2), 0).id
    again, known = execute(session, parse_method(method), short, 0, lambda done, text: None)
    assert known and again == result


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("linear_probe", "every block is frozen"),
        ("top_layers:k=1", "training starts from the kept states entering block 1"),
        ("lora", "computes in full"),
    ],
)
def test_the_receipt_says_how_frozen_blocks_were_run(method: str, says: str, kept_session: OpenSession) -> None:
    result, _ = ran(kept_session(), method)
    assert result.facts["frozen"].startswith("in eval mode") and says in result.facts["frozen"]


def test_blocks_that_share_their_weights_are_computed_in_full(open_tiny: OpenSession) -> None:
    session = open_tiny()
    assert isinstance(session.backbone, TransformerBackbone)
    session.backbone = dataclasses.replace(
        session.backbone, card=dataclasses.replace(session.backbone.card, shared_blocks=True)
    )
    result, _ = run(session, "top_layers:k=1")  # `compare` and `train` would say first that it does not fit
    assert result.status == "ok" and result.facts["start_block"] == 0
    assert "computes in full: the blocks share their weights" in result.facts["frozen"]


def test_every_split_is_tokenised_once_before_it_is_answered(
    open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, read = TransformerBackbone.encode, []

    def counted(self: TransformerBackbone, examples: Any) -> Any:
        read.append(len(examples))
        return real(self, examples)

    monkeypatch.setattr(TransformerBackbone, "encode", counted)
    session = open_tiny()
    splits = [len(split.examples) for split in session.dataset.splits.values()]
    assert read == splits
    for method in ("linear_probe", "top_layers:k=1"):
        run(session, method)
    assert read.count(splits[0]) == 1  # of the others, predictions read the texts as a user's


def test_the_receipt_says_where_the_time_went(open_tiny: OpenSession) -> None:
    session = open_tiny()
    told: set[str] = set()
    untold = []
    for seed in range(3):  # another program may hold up one of them anywhere
        result, folder = run(session, "full", seed)
        profile = read_json(folder / "result.json")["profile"]
        assert sum(profile.values()) == pytest.approx(result.spent.wall_seconds, rel=0.02)
        told |= set(profile)  # what one run computed, the next finds
        untold.append(profile["other"] / result.spent.wall_seconds)
    assert {"tokenise", "prefix", "head start", "forward", "backward", "optimiser", "evaluate", "write"} < told
    assert min(untold) < 0.25
