"""`train`: one run, its module, and errors before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.meter import Cost
from graftwork.core.method import Workbench
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError, GraftworkError, StorageError, UnknownName
from graftwork.module.task_module import TaskModule
from graftwork.run.session import open_session, open_shared
from graftwork.run.settings import RunSettings
from graftwork.run.train import train, train_in
from graftwork.ship.export import export

Write = Callable[..., Path]
During = dict[str, Callable[[Workbench], None]]


def test_a_run_and_its_module(write: Write, tmp_path: Path) -> None:
    run = train(write(), method="tfidf_svm", runs=tmp_path / "runs")
    assert not run.reused and run.result.status == "ok"
    assert run.folder == tmp_path / "runs" / run.result.id
    assert run.module.predict(["good fine good"])[0]["label"] == "good"
    again = train(str(write()), method="tfidf_svm", runs=tmp_path / "runs")
    assert again.reused and again.result.scores == run.result.scores


def test_settings_reach_the_run(write: Write, tmp_path: Path) -> None:
    seen: list[float] = []
    run = train(
        Task.from_file(write("regression"), kind="regression"),
        method="lora:rank=2",
        backbone="tiny_text",
        seed=3,
        epochs=2,
        learning_rate=0.01,
        runs=tmp_path / "runs",
        precision="fp32",
        progress=lambda done, text: seen.append(done),
    )
    assert run.result.seed == 3 and run.result.facts["epochs"] == 2 and run.result.facts["learning_rate"] == 0.01
    assert set(run.result.scores) == {"pearson", "spearman"} and seen[-1] == 1.0
    assert run.module.description["method"]["rank"] == 2 and run.module.description["precision"] == "fp32"


def test_a_run_that_is_there_is_priced_by_the_list_that_is_given_now(write: Write, tmp_path: Path) -> None:
    def asked(prices: Path | None) -> RunResult:
        return train(write(), method="majority", runs=tmp_path / "runs", prices=prices).result

    def listed(name: str, per_hour: float) -> Path:
        path = tmp_path / name
        path.write_text(
            f'currency = "{name}"\nper_hour = {per_hour}\ndate = 2026-11-21\nsource = "a page"\n'
            'grams_per_kwh = 400\ncountry = "DEU"\ncarbon_year = 2023\ncarbon_source = "a table"\n'
        )
        return path

    without, euros, dollars = asked(None), asked(listed("EUR", 3.6)), asked(listed("USD", 7.2))
    hours, energy = without.costs["total_seconds"].value, without.costs["energy_joules"].value
    assert hours and energy and without.costs["money"].value is None and "prices" not in without.environment
    assert euros.costs["money"] == Cost(pytest.approx(hours / 1000), "EUR", "model")  # type: ignore[arg-type]
    assert dollars.costs["money"] == Cost(pytest.approx(hours / 500), "USD", "model")  # type: ignore[arg-type]
    assert euros.costs["co2e_grams"].value == pytest.approx(energy / 9000)
    assert dollars.environment["prices"] == (
        "7.2 USD per hour of the machine (a page, 2026-11-21); 400 g CO2e per kWh (DEU 2023, a table); PUE 1"
    )
    assert asked(None) == without


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"method": "lorra"}, UnknownName, "did you mean 'lora'"),
        ({"method": "top_layers:k=2", "backbone": "tiny_text"}, ConfigError, "'top_layers.*can't be used here: k must"),
        ({"method": "lora:rank=0", "backbone": "tiny_text"}, ConfigError, "can't be used here: rank must be above 0"),
        ({"method": "lora", "backbone": "tiny_txt"}, UnknownName, "did you mean 'tiny_text'"),
        ({"method": "majority", "precision": "fp8"}, ConfigError, "fp8"),
        ({"method": "majority", "prices": "nowhere.toml"}, StorageError, "nowhere.toml"),
        ({"method": "lora", "backbone": "tiny_text", "epochs": 0}, ConfigError, "epochs must be above 0"),
    ],
)
def test_mistakes_cost_nothing(
    settings: dict[str, object], error: type[GraftworkError], message: str, write: Write, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        train(write(), runs=tmp_path / "runs", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())


def test_bad_data_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("text,label\na,b\n")
    with pytest.raises(DataError):
        train(tmp_path / "bad.csv", method="majority", runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_run_that_fails_says_why_and_keeps_its_receipt(write: Write, tmp_path: Path, during: During) -> None:
    def fail(bench: Workbench) -> None:
        raise ValueError("no luck")

    during["fail"] = fail
    with pytest.raises(GraftworkError, match="the run ended as failed: no luck") as caught:
        train(write(), method="staged:act=fail", runs=tmp_path / "runs")
    assert (Path(caught.value.where) / "result.json").is_file()


def test_sessions_of_several_tasks_share_what_is_open(write: Write, tmp_path: Path) -> None:
    """Two tasks over the same texts: the second finds the passes of the first, and is charged for them."""
    adapter = parse_method("adapter")
    places = {"runs": str(tmp_path / "runs"), "cache": str(tmp_path / "cache")}
    setup = RunSettings("tiny_text", precision="fp32", **places)
    shared = open_shared([adapter], setup)
    path = write()
    one = Task.from_file(path, name="one")
    other = Task.from_file(path, name="other", labels=("good", "bad"))
    sessions = [open_session(task, [adapter], setup, shared) for task in (one, other)]
    assert sessions[0].backbone is sessions[1].backbone and sessions[0].load == sessions[1].load
    assert sessions[0].dataset.task.labels != sessions[1].dataset.task.labels
    runs = [train_in(session, adapter, Recipe(epochs=1), 0, lambda done, text: None) for session in sessions]
    assert "prefix" in runs[0].result.profile and "prefix" not in runs[1].result.profile
    alone = train(one, method="adapter", backbone="tiny_text", epochs=1, runs=tmp_path / "alone", precision="fp32")
    assert alone.result.id == runs[0].result.id and alone.result.validation == runs[0].result.validation


@pytest.mark.parametrize(("method", "used"), [("tfidf_svm", True), ("majority", False), ("linear_probe", True)])
def test_class_weights_are_used_or_told_unused(write: Write, tmp_path: Path, method: str, used: bool) -> None:
    setup = {"backbone": "tiny_text", "runs": tmp_path / "runs", "precision": "fp32"}
    plain = train(write(), method=method, **setup)
    for seed in (0, 1):  # the second takes the fit on frozen features from the first
        run = train(Task.from_file(write(), class_weights={"good": 5, "bad": 1}), method=method, seed=seed, **setup)
        assert run.unused == (() if used else ("class_weights",))
        assert ("class_weights" in run.result.facts) is used
    assert run.result.id != plain.result.id and plain.unused == ()
    assert "class_weights" not in plain.module.description["task"]


def test_costs_go_with_the_module(write: Write, tmp_path: Path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text(",good,bad\ngood,0,1000\nbad,1,0\n")
    run = train(Task.from_file(write(), costs=costs), method="tfidf_svm", runs=tmp_path / "runs")
    costs.unlink()
    assert next(iter(run.result.scores)) == "saved_cost" and run.result.facts["scale"] > 0
    (answer,) = TaskModule.load(run.folder / "module").predict(["a word that nobody knows"])
    assert answer["label"] == "good" and answer["expected_cost"] < 1
    with pytest.raises(ConfigError, match="has costs, and what is exported to sklearn gives the most probable label"):
        export(run.folder, tmp_path / "out", to="sklearn")
    assert not (tmp_path / "out").exists()


def test_weights_in_a_task_file(write: Write, tmp_path: Path) -> None:
    path = write()
    (path.parent / "w.csv").write_text("label,weight\ngood,2\nbad,1\n")
    for name, line in (("file", 'class_weights = "w.csv"'), ("table", "[class_weights]\ngood = 2\nbad = 1.0")):
        (path.parent / f"{name}.toml").write_text(f'data = "{path.name}"\n{line}\n')
        assert Task.from_file(path.parent / f"{name}.toml").settings.class_weights == {"good": 2.0, "bad": 1.0}
    (path.parent / "odd.toml").write_text(f'data = "{path.name}"\nclass_weights = 3\n')
    with pytest.raises(ConfigError, match="setting 'class_weights' has the wrong type"):
        Task.from_file(path.parent / "odd.toml")
