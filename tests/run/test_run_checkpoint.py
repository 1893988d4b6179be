"""A run that is interrupted after any step ends, bit for bit, as one that was not."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.core.backbone import Inputs
from graftwork.core.checkpoint import Checkpoint
from graftwork.core.configured_methods import parse_method
from graftwork.core.model import Model
from graftwork.core.ragged import flat
from graftwork.core.run import Recipe
from graftwork.core.task import Dataset
from graftwork.errors import StorageError
from graftwork.io.files import read_json
from graftwork.machine.signals import ending_cleanly
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.run import run_checkpoint
from graftwork.run.execute import execute
from graftwork.run.run_checkpoint import RunCheckpoint
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_media import tiny_media
from graftwork.testing.tiny_networks import write_network
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train import flops, loop, training_state
from graftwork.train.checkpoint_files import FORMAT, Checkpoints

SHORT = Recipe(epochs=3, batch_size=8)
OpenSession = Callable[..., Any]


class Killed(BaseException):
    """Stands for a kill in the middle of a run: nothing cleans up."""


@pytest.fixture(autouse=True)
def after_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_checkpoint, "EVERY_SECONDS", 0.0)


class Attempts:
    """Fits of one method to one data set, each in a workbench of its own; those in `folder` go on from each other."""

    def __init__(self, data: Dataset, backbone: Any, method: str, epochs: int = 3, **recipe: Any):
        self.epochs = epochs
        self.data, self.backbone, self.method, self.recipe = data, backbone, parse_method(method).method, recipe

    def fit(self, folder: Path, kill_at: int | None = None) -> tuple[Any, io.StringIO]:
        """Fitted, and its log; with `kill_at` it is killed after so many steps of its own."""
        bench, lines, steps = tiny_bench(self.data, self.backbone, epochs=self.epochs), io.StringIO(), 0
        bench.recipe = {**bench.recipe, **self.recipe}
        bench.log = lambda line: lines.write(json.dumps(line) + "\n") and None

        def progress(done: float, text: str) -> None:
            nonlocal steps
            steps += 1
            if steps == kill_at:
                raise Killed

        bench.progress, bench.keeper = progress, RunCheckpoint(Checkpoints(folder, "run", dict), lines, bench)
        return self.method.fit(bench), lines

    def killed(self, folder: Path, kill_at: int) -> None:
        with pytest.raises(Killed):
            self.fit(folder, kill_at)


def without_times(lines: io.StringIO) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [{name: value for name, value in line.items() if name != "time"} for line in found]


def require_equal(attempts: Attempts, whole: Path, broken: Path) -> None:
    """What comes of the attempts in the folder `broken` is what comes of one that nothing interrupts."""
    (one, lines), (other, more) = attempts.fit(whole), attempts.fit(broken)
    deltas = one.delta(), other.delta()
    assert deltas[0].keys() == deltas[1].keys()
    for name, tensor in deltas[0].items():
        assert torch.equal(tensor, deltas[1][name]), name
    assert np.array_equal(
        flat(one.logits(attempts.data.test.examples)), flat(other.logits(attempts.data.test.examples))
    )
    assert json.dumps(one.facts, default=str) == json.dumps(other.facts, default=str)
    assert without_times(lines) == without_times(more)


BY_STEPS = ("full", "full:embeddings=frozen", "top_layers:k=1", "adapter", "lora", "bitfit", "ulmfit", "contrastive")
OF_EACH_SORT = {("full", "bf16"), ("ulmfit", "fp32"), ("contrastive", "fp32")}
KINDS = ("classification", "multilabel", "regression", "tagging", "span", "choice", "ranking")


def slow_but(cases: Sequence[Any], quick: Collection[Any]) -> list[Any]:
    """All of them, those that are not in `quick` marked."""
    return [case if case in quick else pytest.param(*case, marks=pytest.mark.slow) for case in cases]


@pytest.mark.parametrize(("method", "precision"), slow_but([*product(BY_STEPS, ("fp32", "bf16"))], OF_EACH_SORT))
def test_every_method_goes_on_exactly(method: str, precision: str, tmp_path: Path) -> None:
    attempts = Attempts(tiny_dataset(), open_backbone("tiny_text", precision=precision), method)
    for kill_at in (1, 4):  # before anything is kept but the head start; in the second epoch
        attempts.killed(tmp_path / "broken", kill_at)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize(("method", "kind"), [("perceptron_tagger", "tagging"), ("dan", "classification")])
def test_methods_without_a_backbone_go_on_after_an_epoch(method: str, kind: str, tmp_path: Path) -> None:
    attempts = Attempts(tiny_dataset(kind), None, method)
    for kill_at in (1, 3, 2):
        attempts.killed(tmp_path / "broken", kill_at)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize(("kind",), slow_but([(kind,) for kind in KINDS], {("choice",)}))
def test_every_kind_goes_on_exactly(kind: str, tmp_path: Path) -> None:
    attempts = Attempts(tiny_dataset(kind), open_backbone("tiny_text", precision="fp32"), "full")
    attempts.killed(tmp_path / "broken", 5)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize(("method",), slow_but([("full",), ("top_layers",), ("lora",)], {("lora",)}))
def test_a_network_that_writes_drops_the_same_units_when_it_goes_on(method: str, tmp_path: Path) -> None:
    backbone = open_backbone(f"hf:{write_seq2seq(tmp_path / 't5')}", precision="fp32", writes=True)
    attempts = Attempts(tiny_dataset("generation", rows=16), backbone, method)
    for kill_at in (1, 4):
        attempts.killed(tmp_path / "broken", kill_at)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize(("step", "precision"), slow_but([*product(range(1, 13), ("fp32", "bf16"))], {(4, "bf16")}))
def test_every_step_of_gradual_unfreezing_can_be_the_last(step: int, precision: str, tmp_path: Path) -> None:
    """Of four epochs with three steps each, the first ones above a frozen block; half of the way back is kept."""
    attempts = Attempts(tiny_dataset(), open_backbone("tiny_text", precision=precision), "ulmfit", 4, kept_share=0.5)
    attempts.killed(tmp_path / "broken", step)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")


def test_batches_that_were_cut_for_want_of_memory_stay_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There is memory enough when the run goes on: its bits must not depend on that."""
    attempts = Attempts(tiny_dataset(), open_backbone("tiny_text", precision="fp32"), "full")
    forward, short = Model.forward, [True]

    def training(model: Model, inputs: Inputs, entering: torch.Tensor | None = None) -> torch.Tensor:
        if short[0] and torch.is_grad_enabled() and len(inputs["attention_mask"]) > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return forward(model, inputs, entering)

    monkeypatch.setattr(Model, "forward", training)
    one, _ = attempts.fit(tmp_path / "whole")
    attempts.killed(tmp_path / "broken", 4)
    short[0] = False
    other, _ = attempts.fit(tmp_path / "broken")
    assert one.facts["accumulation"] == other.facts["accumulation"]
    assert all(torch.equal(tensor, other.delta()[name]) for name, tensor in one.delta().items())


@pytest.mark.parametrize("method", [pytest.param("full", marks=pytest.mark.slow), "lora"])
def test_augmented_images_are_shown_again_as_they_were(method: str, tmp_path: Path) -> None:
    network = write_network(tmp_path / "network", "vit")
    backbone, data = open_backbone(f"hf:{network}", precision="fp32"), tiny_media(tmp_path / "files", "image")
    attempts = Attempts(data, backbone, method, augmentation="as the backbone does")
    plain, _ = Attempts(data, backbone, method).fit(tmp_path / "plain")
    attempts.killed(tmp_path / "broken", 5)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")
    shown, _ = attempts.fit(tmp_path / "shown")
    assert not all(torch.equal(tensor, plain.delta()[name]) for name, tensor in shown.delta().items())


class Board:
    """Runs of a session over toy data, by `execute`, as a command makes them."""

    def __init__(self, open_tiny: OpenSession):
        self.open_tiny = open_tiny

    def run(self, runs: str, method: str = "full", progress: Callable[[float, str], None] = lambda *_: None) -> Path:
        """The folder of the finished run; the session is opened anew, as by another process."""
        session = self.open_tiny(runs=runs)
        result, known = execute(session, parse_method(method), SHORT, 0, progress)
        assert not known and result.status == "ok", result.error
        return Path(session.store.root / result.id)

    def stopped(self, runs: str, at: float, act: Callable[[], None], method: str = "full") -> None:
        def progress(done: float, text: str) -> None:
            if done >= at:
                act()

        with pytest.raises((Killed, KeyboardInterrupt)):
            self.run(runs, method, progress)


@pytest.fixture
def board(open_tiny: OpenSession) -> Board:
    return Board(open_tiny)


def kill() -> None:
    raise Killed


@pytest.mark.parametrize("method", ["full", pytest.param("contrastive", marks=pytest.mark.slow)])
def test_a_run_that_was_interrupted_leaves_what_one_does_that_was_not(
    method: str, board: Board, tmp_path: Path
) -> None:
    for at in (0.3, 0.8):
        board.stopped("broken", at, kill, method)
    (checkpoints,) = (tmp_path / "broken").iterdir()
    whole, broken = board.run("whole", method), board.run("broken", method)
    assert checkpoints.name == f".{whole.name}.checkpoint" and not checkpoints.exists()
    for name in ("predictions.jsonl", "module/delta.safetensors", "module/selftest.json"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    logs = [io.StringIO((folder / "log.jsonl").read_text()) for folder in (whole, broken)]
    assert without_times(logs[0]) == without_times(logs[1])
    one, other = (read_json(folder / "result.json") for folder in (whole, broken))
    assert one["scores"] == other["scores"]
    assert other["facts"] == {**one["facts"], "attempts": 3}
    assert [read_json(folder / "receipt.json")["timeline"]["resumes"] for folder in (whole, broken)] == [0, 2]


def test_the_price_is_that_of_all_attempts(board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Passes that an earlier attempt had paid are charged once; seconds of all attempts are in the tag."""
    whole = read_json(board.run("whole") / "result.json")
    board.stopped("broken", 0.5, kill)
    checkpoints = Checkpoints(next((tmp_path / "broken").glob(".*.checkpoint")), whole["id"], dict)
    found = checkpoints.read(follows=True)
    assert found is not None
    account = dict(found.numbers["account"])
    checkpoints.computed_in = run_checkpoint.computed_in(board.open_tiny().numerics)
    checkpoints.computed_in = json.loads(json.dumps({"format": FORMAT, **checkpoints.computed_in}))
    account["fit"] = {"wall_seconds": 1000.0, "cpu_seconds": 3000.0}
    checkpoints.write(Checkpoint({**found.numbers, "account": account}, dict(found.tensors)))
    broken = read_json(board.run("broken") / "result.json")
    for name in ("train_flops", "padding_flops"):
        assert whole["costs"][name] == broken["costs"][name], name
    assert 1000 < broken["costs"]["train_seconds"]["value"] < 1100
    assert 3000 < broken["costs"]["train_cpu_seconds"]["value"] < 3100
    assert 1000 < broken["spent"]["wall_seconds"] < 1100


@pytest.mark.slow
@pytest.mark.parametrize("method", ["contrastive", "lora"])
def test_flops_that_were_counted_are_kept(method: str, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a network whose batches of one length do not all cost the same, the first one is what the rest are told by."""
    real = flops.count_flops

    def uneven(work: Callable[[], Any]) -> tuple[Any, float]:
        result, found = real(work)
        last = result[-1] if isinstance(result, tuple) else result
        return result, found + 1e6 * abs(float(torch.as_tensor(last).detach().float().mean()))

    def price(runs: str, *kills: float) -> Any:
        for at in kills:
            board.stopped(runs, at, kill, method)
        return read_json(board.run(runs, method) / "result.json")["costs"]["train_flops"]

    monkeypatch.setattr(flops, "count_flops", uneven)
    whole = price("whole")
    assert price("broken", 0.5) == whole
    monkeypatch.setattr(flops.StepCounter, "restore", lambda counter, counts: None)
    assert price("dropped", 0.5) != whole


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_keeps_what_was_done(
    number: int, board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run_checkpoint, "EVERY_SECONDS", 1e9)
    with ending_cleanly():
        board.stopped("broken", 0.5, lambda: signal.raise_signal(number))
    (checkpoints,) = (tmp_path / "broken").iterdir()
    assert [path.name for path in sorted(checkpoints.iterdir())] == ["1.json", "1.safetensors"]
    steps = json.loads((checkpoints / "1.json").read_text())["numbers"]["training"]["step"]
    losses = len((board.run("broken") / "log.jsonl").read_text().splitlines())
    assert steps >= 0.5 * (losses - 3) - 1


@pytest.mark.parametrize("look", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_signal_ends_a_look_at_validation_and_keeps_what_was_done(
    look: int, board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Were it waited for, whoever asked for the end would lose patience; the first look is that before training."""
    monkeypatch.setattr(run_checkpoint, "EVERY_SECONDS", 1e9)
    real, looks = loop.answer, list[str]()

    def answer(*given: Any) -> Any:
        looks.append("begun")
        if looks.count("begun") == look:
            real(*given)  # what it has counted is forgotten
            signal.raise_signal(signal.SIGTERM)
        looks.append("done")
        return real(*given)

    with monkeypatch.context() as patched, ending_cleanly(), pytest.raises(KeyboardInterrupt):
        patched.setattr(loop, "answer", answer)
        board.run("broken")
    assert looks == ["begun", "done"] * (look - 1) + ["begun"]
    kept = read_json(next((tmp_path / "broken").glob(".*.checkpoint/1.json")))["numbers"]["training"]
    broken = board.run("broken")
    require_same_run(board.run("whole"), broken)
    assert kept["step"] == read_json(broken / "result.json")["facts"]["steps"] * (look - 1) // 3


def test_a_signal_ends_a_pass_between_stages_and_keeps_what_was_done(
    board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run_checkpoint, "EVERY_SECONDS", 1e9)
    real, opened = training_state.open_passes, list[str]()

    def open_passes(*given: Any) -> Any:
        found = real(*given)
        signal.raise_signal(signal.SIGINT)
        opened.append("done")
        return found

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(training_state, "open_passes", open_passes)
        board.run("broken", "ulmfit")
    assert not opened
    require_same_run(board.run("whole", "ulmfit"), board.run("broken", "ulmfit"))


def require_same_run(whole: Path, broken: Path) -> None:
    for name in ("predictions.jsonl", "module/delta.safetensors"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    logs = [io.StringIO((folder / "log.jsonl").read_text()) for folder in (whole, broken)]
    assert without_times(logs[0]) == without_times(logs[1])
    one, other = (read_json(folder / "result.json") for folder in (whole, broken))
    assert other["facts"] == {**one["facts"], "attempts": 2}
    for name in ("train_flops", "padding_flops"):
        assert one["costs"][name] == other["costs"][name], name


def test_a_disk_that_takes_no_checkpoint_is_told_once(
    board: Board, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Checkpoints, checkpoint: Checkpoint) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(Checkpoints, "write", full)
    board.run("whole")
    assert [record.getMessage() for record in caplog.records] == [
        "graft: no checkpoint can be written; the run goes on without: the disk is full"
    ]


def test_other_arithmetic_begins_anew_and_says_so(
    board: Board, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.stopped("broken", 0.5, kill)
    arithmetic = run_checkpoint.arithmetic
    monkeypatch.setattr(
        run_checkpoint, "arithmetic", lambda numerics: arithmetic(numerics) | {"cpu_capability": "AVX9"}
    )
    assert "attempts" not in read_json(board.run("broken") / "result.json")["facts"]
    assert "AVX9 now): beginning anew" in caplog.text


@pytest.mark.parametrize("name", [pytest.param("MKL_NUM_THREADS", marks=pytest.mark.slow), "CUBLAS_WORKSPACE_CONFIG"])
def test_a_variable_that_decides_nothing_here_keeps_the_work(
    name: str, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name, raising=False)
    board.stopped("broken", 0.5, kill)
    monkeypatch.setenv(name, "1")
    assert read_json(board.run("broken") / "result.json")["facts"]["attempts"] == 2


def test_a_variable_that_decides_is_named(
    board: Board, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    board.stopped("broken", 0.5, kill)
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    assert "attempts" not in read_json(board.run("broken") / "result.json")["facts"]
    assert "computed otherwise (MKL_CBWR COMPATIBLE then, AVX2 now): beginning anew" in caplog.text


COMMAND = "import sys; from graftwork.run import run_checkpoint; run_checkpoint.EVERY_SECONDS = 0.0; "
COMMAND += "from graftwork.cli.main import main; sys.exit(main())"


def graft(data: Path, runs: Path, method: str) -> list[str]:
    words = ["train", str(data), "--method", method, "--backbone", "tiny_text", "--epochs", "40", "--threads", "1"]
    return [sys.executable, "-c", COMMAND, *words, "--precision", "fp32", "--runs", str(runs), "--json"]


def stopped_by(number: int, command: list[str], runs: Path, after: int) -> tuple[int, str]:
    """Sent the signal as soon as so many checkpoints were written: its exit code, and what it said."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while max((int(path.stem) for path in runs.glob(".*.checkpoint/*.json")), default=0) < after:
        assert process.poll() is None, "it ended before it could be stopped"
        time.sleep(0.005)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    return process.returncode, said.strip()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["full", "ulmfit"])
def test_killed_in_the_middle_a_command_ends_as_if_it_had_not_been(method: str, write: Any, tmp_path: Path) -> None:
    data, whole, broken = write(), tmp_path / "whole", tmp_path / "broken"
    subprocess.run(graft(data, whole, method), check=True, capture_output=True)
    for after in (10, 40):
        assert stopped_by(signal.SIGKILL, graft(data, broken, method), broken, after) == (-signal.SIGKILL, "")
    subprocess.run(graft(data, broken, method), check=True, capture_output=True)
    (one,), (other,) = whole.glob("[!.]*"), broken.glob("[!.]*")
    assert one.name == other.name and not list(broken.glob(".*.checkpoint"))
    for name in ("module/delta.safetensors", "predictions.jsonl"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert read_json(other / "result.json")["facts"]["attempts"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_end_a_command_says_one_line_and_keeps_what_was_done(
    number: int, code: int, write: Any, tmp_path: Path
) -> None:
    ended = stopped_by(number, graft(write(), tmp_path, "full"), tmp_path, 5)
    assert ended == (code, "graft: stopped; finished runs are kept; the same command resumes")
    assert [path.name.endswith(".checkpoint") for path in tmp_path.glob(".*")] == [True]


@pytest.mark.slow
def test_a_comparison_killed_in_the_middle_of_a_run_goes_on_within_it(write: Any, tmp_path: Path) -> None:
    """The whole command is killed, and given again: its run goes on from its checkpoint, its board is the same."""
    data = write(rows=60)

    def compared(place: str) -> list[str]:
        words = ["compare", str(data), "--methods", "majority,full", "--backbone", "tiny_text", "--seeds", "2"]
        words += ["--epochs", "10", "--threads", "1", "--jobs", "1", "--precision", "fp32", "--exhaustive"]
        return [
            sys.executable,
            "-c",
            COMMAND,
            *words,
            "--runs",
            str(tmp_path / place),
            "--out",
            str(tmp_path / f"{place}-board"),
        ]

    subprocess.run(compared("whole"), check=True, capture_output=True)
    broken = tmp_path / "broken"
    broken.mkdir()
    assert stopped_by(signal.SIGKILL, compared("broken"), broken, 8)[0] == -signal.SIGKILL
    steps = read_json(max(broken.glob(".*.checkpoint/*.json")))["numbers"]["training"]["step"]
    subprocess.run(compared("broken"), check=True, capture_output=True)
    runs = {folder.name: folder for folder in broken.glob("[!.]*")}
    assert runs.keys() == {folder.name for folder in (tmp_path / "whole").glob("[!.]*")} and steps > 0
    for name, folder in runs.items():
        for part in ("predictions.jsonl", "module/delta.safetensors"):
            assert (folder / part).read_bytes() == (tmp_path / "whole" / name / part).read_bytes(), f"{name}/{part}"
    attempts = [read_json(folder / "result.json")["facts"].get("attempts", 1) for folder in runs.values()]
    assert sorted(attempts) == [1] * (len(runs) - 1) + [2]
    assert decided(tmp_path / "broken-board") == decided(tmp_path / "whole-board")


def decided(board: Path) -> Any:
    """All of a board that no clock decides."""
    found = read_json(board / "leaderboard.json")
    named = ("task", "headline_metric", "differences", "majority", "race", "rows", "statistics", "notes")
    return without_prices({name: found[name] for name in named})


def without_prices(value: Any) -> Any:
    if isinstance(value, dict):
        prices = ("costs", "cost", "search_costs")
        return {name: without_prices(item) for name, item in value.items() if name not in prices}
    return [without_prices(item) for item in value] if isinstance(value, list) else value
