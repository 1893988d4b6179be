"""Runs side by side: each is the run that one gets alone, and what ends a worker is told."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from graftwork.compare import workers
from graftwork.compare.curve import curve
from graftwork.compare.leaderboard import compare
from graftwork.compare.workers import Crew, at_once
from graftwork.config import Prices
from graftwork.core.meter import Cost, Phase
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Task
from graftwork.errors import ConfigError, GraftworkError, StorageError
from graftwork.io.files import read_json
from graftwork.registry import meters, methods, registries
from graftwork.run.settings import OpenedBy, RunSettings
from graftwork.run.store import RunStore
from graftwork.run.train import train
from graftwork.run.worker import Opening, work

METHODS = "majority,bitfit,top_layers:k=1"


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [f"{'good' if i % 2 else 'bad'} film number {i % 50} indeed,{'yes' if i % 2 else 'no'}" for i in range(100)]
    path = tmp_path / "films.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    return path


def board(data: Path, folder: Path, methods: str = METHODS, **flags: Any) -> Any:
    settings: dict[str, Any] = {"methods": methods, "seeds": 2, "epochs": 1, "precision": "fp32"}
    settings |= {"exhaustive": True} | flags
    places = {"runs": folder / "runs", "out": folder / "board", "cache": folder / "cache"}
    return compare(data, backbone="tiny_text", **settings, **places)


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_a_run_beside_others_is_the_run_alone(data: Path, tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    beside = board(data, tmp_path / "beside", jobs=2, progress=lambda done, text: seen.append((done, text)))
    torch.set_num_threads(1)
    alone = board(data, tmp_path / "alone", jobs=1)
    assert beside.executed == alone.executed == 6
    ids = sorted(path.name for path in (tmp_path / "alone/runs").iterdir())
    assert sorted(path.name for path in (tmp_path / "beside/runs").iterdir()) == ids and len(ids) == 6
    for run in ids:
        here, there = (tmp_path / name / "runs" / run for name in ("beside", "alone"))
        for file in ("predictions.jsonl", "spec.json"):
            assert (here / file).read_bytes() == (there / file).read_bytes()
        for file in (there / "module").glob("delta.*"):
            assert (here / "module" / file.name).read_bytes() == file.read_bytes()
        assert json.loads((here / "result.json").read_bytes())["environment"]["runs_at_once"] == 2
    assert seen and all(0 <= done <= 1 for done, _ in seen)
    torch.set_num_threads(2)
    again = board(data, tmp_path / "beside", jobs=2)
    assert again.executed == 0 and again.content["rows"] == beside.content["rows"]
    kept = train(data, method="bitfit", backbone="tiny_text", epochs=1, precision="fp32", runs=tmp_path / "beside/runs")
    assert kept.reused and kept.result.id in ids


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_the_runs_of_a_curve_beside_others_are_those_alone(data: Path, tmp_path: Path) -> None:
    """On draws, and on fresh weights, which the workers open for themselves."""

    def made(name: str, jobs: int) -> Any:
        settings: dict[str, Any] = {"methods": "tfidf_svm,prototype,full,random:full", "sizes": "4/class,100%"}
        places = {"runs": tmp_path / name / "runs", "out": tmp_path / name / "curve", "cache_size": "0"}
        return curve(data, backbone="tiny_text", epochs=1, precision="fp32", draws=2, jobs=jobs, **settings, **places)

    beside = made("beside", jobs=2)
    torch.set_num_threads(1)
    alone = made("alone", jobs=1)
    assert (beside.executed, alone.executed) == (16, 16)
    points = {(point["method"], point["size"]): point for point in alone.content["points"]}
    for point in beside.content["points"]:
        there = points[point["method"], point["size"]]
        assert (point["runs"], point["by_draw"]) == (there["runs"], there["by_draw"])
    for run in sorted(path.name for path in (tmp_path / "alone/runs").iterdir()):
        told = {}
        for name in ("beside", "alone"):
            folder = tmp_path / name / "runs" / run
            receipt = read_json(folder / "receipt.json")
            told[name] = (folder / "predictions.jsonl").read_bytes(), receipt["rerun"], receipt["model"]
        assert told["beside"] == told["alone"]
    assert beside.content["environment"]["runs_at_once"] == 2 and beside.content["savings"]
    torch.set_num_threads(2)
    assert made("beside", jobs=2).executed == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("import sys; sys.exit(3)", "ended with code 3"),
        ('print(\'{"error": {"what": "the disk is full", "where": "runs"}}\')', "the disk is full"),
    ],
)
@pytest.mark.usefixtures("two_threads")
def test_a_worker_that_cannot_go_on_ends_the_comparison(
    answer: str, message: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []

    def popen(command: list[str], **flags: Any) -> subprocess.Popen[str]:
        started.append(subprocess.Popen([command[0], "-c", f"import sys; sys.stdin.readline(); {answer}"], **flags))
        return started[-1]

    monkeypatch.setattr(workers, "subprocess", _Replaced(popen))
    with pytest.raises(GraftworkError, match=message):
        board(data, tmp_path, jobs=2)
    assert started and all(process.poll() is not None for process in started)
    assert not list((tmp_path / "runs").iterdir())


HELD = """
import json, sys
lines = iter(sys.stdin)
next(lines)
print('{"warning": "nothing can be kept"}')
for number, line in enumerate(lines):
    refused = json.loads(line).get("refused")
    again = refused or number == 6  # there are six runs
    print(json.dumps({"error": {"what": f"asked again, {refused}"}} if again else {"held": 17}), flush=True)
"""


@pytest.mark.usefixtures("two_threads")
def test_a_worker_s_run_that_another_process_has_is_asked_for_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And what several workers warn of is said once."""

    def popen(command: list[str], **flags: Any) -> subprocess.Popen[str]:
        return subprocess.Popen([command[0], "-c", HELD], **flags)

    monkeypatch.setattr(workers, "subprocess", _Replaced(popen))
    with pytest.raises(GraftworkError, match="asked again, 17"):
        board(data, tmp_path, jobs=2)
    assert [record.getMessage() for record in caplog.records] == ["nothing can be kept"]


def test_a_worker_that_is_killed_while_it_is_idle_is_replaced() -> None:
    """Were it given an order, nobody would ever answer."""

    class Idle:
        order = None
        ended = False

        def end(self) -> None:
            self.ended = True

    crew, idle = object.__new__(workers.Workers), Idle()
    crew._held, crew._workers, crew._heard = [], [idle], workers.queue.SimpleQueue()  # type: ignore[list-item]
    crew._heard.put((idle, None))  # type: ignore[arg-type]
    assert crew._hear(lambda place, done, text: None) is None
    assert idle.ended and crew._workers == []


def test_a_worker_that_died_while_it_was_idle_is_given_nothing() -> None:
    """Its end is queued behind what others say: whoever hands out orders has to look."""

    class Worker:
        order, taken, ended = None, None, False

        def __init__(self, code: int | None):
            self.code, self.process = code, self

        def poll(self) -> int | None:
            return self.code

        def take(self, place: int, order: object) -> None:
            self.taken = self.order = order  # type: ignore[assignment]

        def end(self) -> None:
            self.ended = True

    crew, dead, alive = object.__new__(workers.Workers), Worker(-9), Worker(None)
    crew._held, crew._workers, crew._heard = [], [dead, alive], workers.queue.SimpleQueue()  # type: ignore[list-item]
    crew._seconds, crew.opening = {}, SimpleNamespace(runs_at_once=1)  # type: ignore[assignment]
    crew._heard.put((dead, None))  # type: ignore[arg-type]
    order = workers.RunOrder("full", None, Recipe(), 0, "")  # type: ignore[arg-type]
    crew._hand_out([(0, order)])
    assert (dead.taken, dead.ended, alive.taken, crew._workers) == (None, True, order, [alive])
    assert crew._hear(lambda place, done, text: None) is None and crew._workers == [alive]


def test_a_second_interrupt_ends_the_workers_at_once() -> None:
    """The first one lets them keep what was done, as long as that takes."""
    told: list[str] = []

    class Worker:
        order = object()

        def __init__(self) -> None:
            self.process = self

        def terminate(self) -> None:
            told.append("terminate")

        def kill(self) -> None:
            told.append("kill")

        def end(self) -> None:
            raise KeyboardInterrupt

    crew = object.__new__(workers.Workers)
    crew._workers = [Worker(), Worker()]  # type: ignore[list-item]
    with pytest.raises(KeyboardInterrupt):
        crew.end(interrupt=True)
    assert told == ["terminate", "terminate", "kill", "kill"]


def test_a_run_that_another_process_executes_comes_last(data: Path, tmp_path: Path) -> None:
    """The others go on meanwhile; when the other process dies, it is executed here."""
    expected = board(data, tmp_path / "alone", methods="majority,tfidf_svm", jobs=1)
    (tmp_path / "here/runs").mkdir(parents=True)
    other, told, held = RunStore(tmp_path / "here/runs"), [], ExitStack()
    first = expected.content["rows"][0]["runs"][0]
    method = expected.content["rows"][0]["method"]

    def progress(done: float, text: str) -> None:
        told.append(text)
        if told.count(f"{method} seed 0: another process is at it") == 3:
            held.close()

    with held:
        assert held.enter_context(other.claim(first))
        found = board(data, tmp_path / "here", methods="majority,tfidf_svm", jobs=1, progress=progress)
    assert told.index(f"{method} seed 0: another process is at it") < told.index("tfidf_svm seed 1: starting")
    assert told[-1].startswith(f"{method} seed 0: ") or told[-2].startswith(f"{method} seed 0: ")
    assert (found.executed, found.reused) == (4, 0)
    assert [row["scores"] for row in found.content["rows"]] == [row["scores"] for row in expected.content["rows"]]


def test_a_finished_run_that_is_removed_meanwhile_is_one_message(data: Path, tmp_path: Path) -> None:
    def remove(done: float, text: str) -> None:
        if text == "tfidf_svm seed 1: starting":
            (tmp_path / "runs" / next(iter(RunStore(tmp_path / "runs").ids())) / "predictions.jsonl").unlink()

    with pytest.raises(StorageError, match=r"predictions.jsonl: no such file or folder"):
        board(data, tmp_path, methods="majority,tfidf_svm", jobs=1, progress=remove)
    assert len(RunStore(tmp_path / "runs").ids()) == 4


def test_a_run_that_fails_in_another_process_meanwhile_is_not_executed_again(data: Path, tmp_path: Path) -> None:
    """Whichever worker is asked for it then; a later command tries it again."""
    (tmp_path / "runs").mkdir()
    line = json.dumps(opening(data, tmp_path).line())
    order = {"method": {"name": "bitfit", "version": 1, "learning_rate": 1e30}, "recipe": {"epochs": 1}, "seed": 0}
    said: list[Mapping[str, Any]] = []

    def ask(**more: Any) -> Mapping[str, Any]:
        work(iter([line, json.dumps(order | more)]), said.append)
        return said[-1]

    failed = ask()
    assert not failed["known"] and RunStore(tmp_path / "runs").find(failed["done"]) is None
    with RunStore(tmp_path / "runs").claim(failed["done"]) as ours:
        assert ours
        held = ask()
    assert ask(refused=held["held"]) == failed, "what had failed before is tried"
    assert ask(refused=held["held"]) == {**failed, "known": True}


class _Replaced:
    """`subprocess` with another `Popen`."""

    PIPE, TimeoutExpired = subprocess.PIPE, subprocess.TimeoutExpired

    def __init__(self, popen: Any):
        self.Popen = popen


@pytest.mark.slow
def test_an_interrupted_worker_leaves_a_checkpoint_and_another_goes_on(data: Path, tmp_path: Path) -> None:
    """Told to end in the middle of a run, it keeps what was done; nothing is printed but the signs of progress."""
    (tmp_path / "runs").mkdir()
    line = opening(data, tmp_path).line()
    order = {"method": {"name": "bitfit", "version": 1}, "recipe": {"epochs": 150}, "seed": 0}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-m", "graftwork.run.worker"], text=True, **pipes) as worker:
        assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
        worker.stdin.write(f"{json.dumps(line)}\n{json.dumps(order)}\n")
        worker.stdin.flush()
        assert "progress" in json.loads(worker.stdout.readline())
        assert list((tmp_path / "runs").iterdir())
        worker.terminate()
        assert worker.wait(timeout=30) == 130
        assert "Traceback" not in worker.stderr.read()
    only_a_checkpoint(tmp_path / "runs")
    said: list[Mapping[str, Any]] = []
    work(iter([json.dumps(line), json.dumps(order)]), said.append)
    (folder,) = (tmp_path / "runs").glob("[!.]*")
    assert said[-1]["done"] == folder.name and read_json(folder / "result.json")["facts"]["attempts"] == 2


@pytest.mark.slow
def test_a_worker_to_which_nobody_listens_ends(data: Path, tmp_path: Path) -> None:
    """Its reader gone in the middle of a run: it ends by itself, and keeps what was done."""
    (tmp_path / "runs").mkdir()
    order = {"method": {"name": "bitfit", "version": 1}, "recipe": {"epochs": 500}, "seed": 0}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-m", "graftwork.run.worker"], text=True, **pipes) as worker:
        assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
        worker.stdin.write(f"{json.dumps(opening(data, tmp_path).line())}\n{json.dumps(order)}\n")
        worker.stdin.flush()
        assert "progress" in json.loads(worker.stdout.readline())
        worker.stdout.close()
        assert worker.wait(timeout=30) == 130
        assert "Traceback" not in worker.stderr.read()
    only_a_checkpoint(tmp_path / "runs")


@pytest.mark.slow
def test_a_worker_imports_nothing_from_the_folder_that_it_is_started_in(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A json.py among somebody's data is no part of the program."""
    (tmp_path / "json.py").write_text("import sys; sys.exit(5)\n")
    monkeypatch.chdir(tmp_path)
    worker = workers._Worker(opening(data, tmp_path, digest="0" * 64), queue.SimpleQueue())
    try:
        _, line = worker.heard.get(timeout=300)
        assert line is not None and "the data changed" in line
    finally:
        worker.end()


def only_a_checkpoint(runs: Path) -> None:
    (folder,) = runs.iterdir()
    assert folder.name.endswith(".checkpoint")
    assert read_json(folder / "1.json")["numbers"]["training"]["step"] > 0


def opening(data: Path, folder: Path, digest: str = "") -> Opening:
    task = Task.from_file(data)
    if not digest:
        from graftwork.data.load import load

        digest = load(task).digest
    places = {"runs": str(folder / "runs"), "cache": str(folder / "cache")}
    setup = RunSettings("tiny_text", precision="fp32", cache_size="10MB", device="cpu", **places)
    return Opening(OpenedBy(task, ({"name": "bitfit", "version": 1},), setup), data=digest, threads=1, runs_at_once=2)


def test_an_opening_is_pure_data(data: Path, tmp_path: Path) -> None:
    made = opening(data, tmp_path)
    assert Opening.read(json.loads(json.dumps(made.line()))) == made


def test_data_that_changed_is_refused(data: Path, tmp_path: Path) -> None:
    line = json.dumps(opening(data, tmp_path, digest="0" * 64).line())
    with pytest.raises(GraftworkError, match="the data changed"):
        work(iter([line]), lambda said: None)


def test_how_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "usable_memory_bytes", lambda: 64 << 30)
    assert [at_once(None, threads, "cpu") for threads in (1, 2, 16)] == [1, 2, workers.MOST_AT_ONCE]
    assert at_once(None, 16, "cuda") == 1 and at_once(3, 16, "cuda") == 3
    monkeypatch.setattr(workers, "usable_memory_bytes", lambda: 9 << 30)
    assert at_once(None, 16, "cpu") == 2
    monkeypatch.setattr(workers, "usable_memory_bytes", lambda: None)
    assert at_once(None, 16, "cpu") == 1
    for jobs in (0, 5):
        with pytest.raises(ConfigError, match="jobs must be between 1 and"):
            at_once(jobs, 4, "cpu")


@pytest.mark.usefixtures("two_threads")
def test_what_a_notebook_registered_is_run_in_its_process(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A meter of its own is in every price tag, though no other process would know it."""

    class Tries:
        needs: tuple[str, ...] = ()

        def begin(self) -> None:
            """Nothing to note."""

        def end(self, mark: None, readings: Any, costs: Any, prices: Any) -> Cost:
            return Cost(1.0, "runs", "meter")

    methods.get("majority")
    assert not any(registry.here_only() for registry in registries)
    monkeypatch.setitem(meters._parts, "tries", Tries)
    assert meters.here_only() == {"tries"}
    with pytest.raises(ConfigError, match="do not know the parts") as refused:
        board(data, tmp_path, methods="majority", jobs=2)
    assert refused.value.got == "jobs 2; tries"
    row = board(data, tmp_path, methods="majority").content["rows"][0]
    assert row["costs"]["tries"]["value"] == 1.0


FOLLOWED = {"known 1": ["c"], "b": ["known 2", "held 2"], "held 1": ["d"], "d": ["e"]}  # by what is ordered then


def order(name: str) -> workers.RunOrder:
    return workers.RunOrder(name, name, Recipe(), 0, "")  # type: ignore[arg-type]


def ended(crew: Crew, *names: str) -> list[tuple[str, bool]]:
    """What has ended, in this order, and whether it was known; `FOLLOWED` says what is ordered when it has."""
    orders, seen = [order(name) for name in names], []
    for place, result, known in crew(orders, lambda place, done, text: None):
        assert orders[place].label == result.id
        seen.append((result.id, known))
        orders += map(order, FOLLOWED.get(result.id, ()))
    return seen


def test_in_one_process_what_is_ordered_meanwhile_is_executed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after the last order, and by what another process had."""
    asked: list[str] = []

    def execute(session: Any, item: str, *rest: Any) -> tuple[RunResult, bool] | None:
        asked.append(item)
        held = item.startswith("held") and asked.count(item) < 3
        return None if held else (RunResult(item, 0, "ok"), item.startswith("known"))

    monkeypatch.setattr(workers, "execute_if_free", execute)
    monkeypatch.setattr(workers, "SECONDS_BETWEEN_LOOKS", 0.001)
    crew = partial(workers.one_by_one, SimpleNamespace(of=lambda which, drawn: None))  # type: ignore[arg-type]
    assert ended(crew, "d") == [("d", False), ("e", False)]
    asked.clear()
    assert ended(crew, "a", "b", "known 1", "held 1") == [
        ("a", False), ("b", False), ("known 1", True), ("known 2", True), ("c", False),
        ("held 1", False), ("d", False), ("e", False), ("held 2", False),
    ]  # fmt: skip
    assert asked.count("held 1") == asked.count("held 2") == 3 and len(asked) == 9 + 4


class Obliging:
    """A worker that has done an order as soon as it takes it, but for what another process has at first."""

    process = SimpleNamespace(poll=lambda: None)

    def __init__(self, opening: Any, heard: Any):
        self.heard, self.order, self.place = heard, None, -1

    def take(self, place: int, order: workers.RunOrder) -> None:
        self.place, self.order = place, order  # type: ignore[assignment]
        held = order.label.startswith("held") and not order.refused
        self.heard.put((self, json.dumps({"held": None} if held else {"done": order.label, "known": False})))


def test_workers_execute_what_is_ordered_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after the last order, after a run that is known, and by what another process had."""
    monkeypatch.setattr(workers, "_Worker", Obliging)
    monkeypatch.setattr(workers, "SECONDS_BETWEEN_LOOKS", 0.001)
    monkeypatch.setattr(workers, "read_result", lambda path: RunResult(path.parent.name, 0, "ok"))
    monkeypatch.setattr(workers, "with_prices", lambda result, prices: result)
    monkeypatch.setattr(Opening, "of", lambda sessions: SimpleNamespace(runs_at_once=2))

    def find(run: str) -> RunResult | None:
        return RunResult(run, 0, "ok") if run.startswith("known") else None

    session = SimpleNamespace(
        store=SimpleNamespace(root=tmp_path, find=find),
        prices=None,
        spec=lambda item, recipe, seed: SimpleNamespace(id=item),
    )
    crew = workers.Workers(SimpleNamespace(whole=[session], of=lambda which, drawn: session))  # type: ignore[arg-type]
    assert ended(crew, "d") == [("d", False), ("e", False)]
    seen = ended(crew, "a", "b", "known 1", "held 1")
    names = [name for name, _ in seen]
    assert sorted(names) == ["a", "b", "c", "d", "e", "held 1", "held 2", "known 1", "known 2"]
    assert [name for name, known in seen if known] == ["known 1", "known 2"] and names[0] == "known 1"
    assert names.index("e") > names.index("d") > names.index("held 1")
    assert len(crew._workers) == 2 and not crew._held
    assert list(crew([], lambda place, done, text: None)) == []


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_a_search_beside_others_answers(data: Path, tmp_path: Path) -> None:
    """Which runs it makes hangs on the time they take; what it makes is the same as alone, and enough to choose."""
    made = board(data, tmp_path, jobs=2, exhaustive=False)
    decision = made.content["decision"]
    runs = {row["method"]: row["n_seeds"] for row in made.rows}
    assert runs["majority"] >= 1 and runs[decision["chosen"]] == 2
    assert {one["method"]: one["runs"] for one in decision["methods"]} == {**dict.fromkeys(decision["left"], 0), **runs}


def test_the_longest_of_a_seed_begins_first() -> None:
    """Methods of which no run has ended yet come first, in their order; a seed is given out whole before the next."""
    crew = object.__new__(workers.Workers)
    crew._seconds = {("full", 0): 90.0, ("majority", 0): 0.1, ("adapter", 0): 60.0}
    names = ("majority", "adapter", "new", "full")
    orders = [workers.RunOrder(name, None, Recipe(), seed, "") for seed in (0, 1) for name in names]  # type: ignore[arg-type]
    waiting = list(enumerate(orders))
    given = [crew._next(waiting)[1] for _ in orders]
    expected = [(name, seed) for seed in (0, 1) for name in ("new", "full", "adapter", "majority")]
    assert [(order.label, order.seed) for order in given] == expected and not waiting


@pytest.mark.parametrize(("status", "expected"), [("ok", {("full", 0): 90.0}), ("failed", {})])
def test_only_the_time_of_a_run_that_ended_well_is_expected_of_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: str, expected: dict[Any, float]
) -> None:
    result = RunResult("ab12", 0, status, spent=Phase(wall_seconds=90.0))
    monkeypatch.setattr(workers, "read_result", lambda path: result)
    crew = object.__new__(workers.Workers)
    crew._heard, crew._held, crew._seconds = queue.SimpleQueue(), [], {}
    crew.store, crew.prices = SimpleNamespace(root=tmp_path), Prices()  # type: ignore[assignment]
    worker = SimpleNamespace(order=workers.RunOrder("full", None, Recipe(), 0, ""), place=3)  # type: ignore[arg-type]
    crew._heard.put((worker, '{"done": "ab12", "known": false}'))  # type: ignore[arg-type]
    found = crew._hear(lambda place, done, text: None)
    assert found is not None and found[0] == 3 and crew._seconds == expected
