"""The benchmark of the ladder: its draws of tasks, its units and how two processes share them, what it concludes."""

from __future__ import annotations

import fcntl
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graftwork.compare.statistics import RowSample, bootstrap
from graftwork.data.load import load
from graftwork.io.files import read_json
from graftwork.registry import metrics

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "ladder"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.fixture(scope="module")
def ladder(imported: Callable[[str], ModuleType]) -> SimpleNamespace:
    """Its modules."""
    return SimpleNamespace(**{name: imported(f"ladder/{name}") for name in MODULES})


@pytest.mark.slow
def test_no_text_of_test_stands_in_another_split(ladder: SimpleNamespace, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "trec6"
    folder.mkdir(parents=True)
    rows = [f"question {i} of many more words\t{'ab'[i % 2]}" for i in range(90)]
    (folder / "train.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    (folder / "test.tsv").write_text("\n".join(["text\tlabel", *rows[:30], "a new one\tc"]) + "\n")
    draw = ladder.tasks.Draw(train=40, validation=10, test=31, words=3)
    data = load(ladder.tasks.task("trec6", draw, tmp_path / "data", tmp_path / "task"))
    texts = {name: {example.inputs["text"] for example in split.examples} for name, split in data.splits.items()}
    assert [len(texts[name]) for name in ("train", "validation", "test")] == [40, 10, 30]  # nobody learns label c
    assert not texts["test"] & (texts["train"] | texts["validation"]) and not texts["train"] & texts["validation"]
    assert all(len(text.split()) == 3 for text in texts["train"])


def test_units_are_done_once_and_failures_are_told(ladder: SimpleNamespace, tmp_path: Path) -> None:
    calls: list[str] = []

    def work(name: str, fails: bool = False) -> dict[str, Any]:
        calls.append(name)
        if fails:
            raise ValueError(f"no {tmp_path}/some/file.txt")
        return {"name": name}

    Unit = ladder.units.Unit
    units = [
        Unit("c", lambda: work("c"), needs=("a",)),
        Unit("a", lambda: work("a")),
        Unit("b", lambda: work("b", fails=True)),
        Unit("d", lambda: work("d"), needs=("b",)),
        Unit("sum", lambda: work("sum"), awaits=("c", "d"), again=True),
    ]
    bench = ladder.units.Bench(tmp_path)
    bench.run_all(units, lambda: None)
    assert calls == ["a", "b", "c", "sum"] and bench.result("c") == {"name": "c"}
    assert bench.record("b")["error"] == "ValueError: no …/file.txt"
    assert bench.record("d")["error"] == "needs b" and not bench.done("d")
    ladder.units.Bench(tmp_path).run_all(units, lambda: None)
    assert calls[4:] == ["b", "sum"]


def test_what_another_process_does_is_left_to_it(
    ladder: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "units").mkdir()
    held = (tmp_path / "units" / ".a.lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    order: list[str] = []

    def waited(seconds: float) -> None:
        order.append("waits")
        held.close()

    monkeypatch.setattr(ladder.units.time, "sleep", waited)
    units = [ladder.units.Unit(name, lambda name=name: {"done": order.append(name)}) for name in "ab"]
    ladder.units.Bench(tmp_path).run_all(units, lambda: None)
    assert order == ["b", "waits", "a"]
    needs = [ladder.units.Unit("a", dict), ladder.units.Unit("b", dict, needs=("a",)), ladder.units.Unit("c", dict)]
    assert [unit.name for unit in ladder.units.chosen(needs, "b")] == ["a", "b"]


def test_every_need_is_a_unit_of_its_part(ladder: SimpleNamespace, tmp_path: Path) -> None:
    draw = ladder.tasks.Draw()
    plan = ladder.plan.Plan(ladder.units.Bench(tmp_path), ladder.boards.Place(tmp_path, tmp_path, draw, 3, 3), 1e9, 1)
    for name, part in ladder.run.PARTS.items():
        units = part.units(plan)
        names = [unit.name for unit in units]
        assert len(set(names)) == len(names), name
        for place, unit in enumerate(units):
            assert set(unit.needs) <= set(names[:place]) and set(unit.awaits) <= set(names), unit.name


def test_over_tasks_a_difference_is_paired(ladder: SimpleNamespace) -> None:
    draw = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {"better": [], "worse": [], "same": []}
    for number in range(4):
        base = (draw.random((300, 1)) < 0.7).astype(float)
        runs = {
            "better": np.maximum(base, draw.random((300, 1)) < 0.2), "worse": base, "same": np.flip(base, axis=0),
        }  # fmt: skip
        samples = [RowSample(name, (stats, stats, stats)) for name, stats in runs.items()]
        boot = bootstrap(samples, metrics.get("accuracy"), draws=500, seed=number)
        for name in rows:
            rows[name].append(boot.rows[name])
    whole = ladder.judged.Bootstrap({name: ladder.judged.mean_of(parts) for name, parts in rows.items()})
    found = ladder.judged.judged(whole, {"all": [("better", "worse"), ("same", "worse"), ("better", "missing")]})
    pairs = {(pair["a"], pair["b"]): pair for pair in found["differences"]["all"]}
    assert pairs.keys() == {("better", "worse"), ("same", "worse")}
    assert pairs["better", "worse"]["verdict"] == "better" and pairs["better", "worse"]["low"] > 0
    assert pairs["same", "worse"]["verdict"] == "cannot tell"
    assert found["scores"]["worse"]["mean"] == pytest.approx(np.mean([row.points.mean() for row in rows["worse"]]))


def board(method: str, score: float, joules: float) -> dict[str, Any]:
    costs = {"energy_joules": {"value": joules, "unit": "J"}, "train_cpu_seconds": {"value": 1.0, "unit": "s"},
             "trained_parameters": {"value": 10.0, "unit": "parameters"}}  # fmt: skip
    return {"method": method, "status": "ok", "score": {"mean": score, "sd": 0.01}, "costs": costs, "runs": []}


def test_the_plot_has_a_mark_for_every_row(ladder: SimpleNamespace, tmp_path: Path) -> None:
    rows = {"masked full": 0.8, "masked full, fresh": 0.7, "tfidf_svm": 0.75}
    results = {
        "judge.generations": {"tasks": ["mr"], "scores": {name: {"mean": mean} for name, mean in rows.items()}},
        "pretrain.masked": {"costs": {"energy_joules": {"value": 900.0, "unit": "J"}}},
        "board.masked.mr": {"rows": [board("full:learning_rate=0.001", 0.8, 100.0)]},
        "board.masked.fresh.mr": {"rows": [board("full:learning_rate=0.01", 0.7, 100.0)]},
        "board.baselines.mr": {"rows": [board("tfidf_svm", 0.75, 1.0)]},
    }
    content = {"units": {name: {"status": "ok", "result": result} for name, result in results.items()}}
    found = {point.label: point.joules for point in ladder.ladder_plot.points(content)}
    assert found == {"tfidf_svm": 1.0, "masked full, fresh": 100.0, "masked full": 1000.0}
    ladder.ladder_plot.write_plot(content, tmp_path / "plot.svg")
    drawn = ET.parse(tmp_path / "plot.svg").getroot()
    assert [element.tag.rpartition("}")[2] for element in drawn.iter()].count("circle") == 2
    assert "masked full, fresh 70.0" in (tmp_path / "plot.svg").read_text()


def test_a_line_that_holds_a_test_sentence_is_found(ladder: SimpleNamespace, tmp_path: Path) -> None:
    folder = tmp_path / "ncbi_disease"
    folder.mkdir()
    sentence = "Mutations in the gene cause a form of ataxia - telangiectasia in families"
    (folder / "test.conll").write_text(sentence.replace(" ", "\tO\n") + "\tO\n\nShort\tO\n\n")
    tested = ladder.domain.stretches(tmp_path)
    assert len(tested) == 1
    said = "We say: mutations in the gene cause a form of ataxia-telangiectasia in families."
    assert ladder.domain.shares(said, tested)
    assert not ladder.domain.shares("Mutations in another gene cause a form of ataxia-telangiectasia in them.", tested)


def test_the_checkpoint_of_a_killed_run_is_read_while_it_changes(ladder: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    assert ladder.resume.progress_of(path) is None
    path.write_text('{"numbers": {"step": 7, "steps"')
    assert ladder.resume.progress_of(path) is None
    path.write_text('{"numbers": {"step": 7, "steps": 60}, "run": "a"}')
    assert ladder.resume.progress_of(path) == (7, 60)


def test_the_sizes_are_comparable() -> None:
    import tomllib

    sizes = {path.stem: tomllib.loads(path.read_text()) for path in (FOLDER / "sizes").glob("*.toml")}
    widths = {
        sizes["masked"]["hidden_size"], sizes["causal"]["n_embd"], sizes["awd_lstm"]["embedding_size"],
        sizes["word_vectors"]["width"], 2 * sizes["bidirectional"]["lstm"]["projection_dim"],
    }  # fmt: skip
    assert widths == {192}
    assert sizes["masked"]["num_hidden_layers"] == sizes["causal"]["n_layer"]


def test_results_are_kept_with_what_is_left(ladder: SimpleNamespace, tmp_path: Path) -> None:
    bench = ladder.units.Bench(tmp_path)
    place = ladder.boards.Place(tmp_path, tmp_path, ladder.tasks.Draw(), 3, 3)
    units = [ladder.units.Unit("resume.a", lambda: {"equal": True}), ladder.units.Unit("resume.b", dict)]
    bench.run_all(units[:1], lambda: None)
    ladder.run.keep(ladder.plan.Plan(bench, place, 1e9, 1), "resume", units, tmp_path)
    content = read_json(tmp_path / "resume.json")
    assert (content["status"], content["not_run"], content["failed"]) == ("partial", ["resume.b"], [])
    assert content["units"]["resume.a"]["result"] == {"equal": True}
