"""The order of a grid, what the race spares and what it may not see; on methods that answer without being trained."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from graftwork.compare import leaderboard
from graftwork.compare.answer import answer
from graftwork.compare.grid import Grid, run_grid
from graftwork.compare.report import render_report
from graftwork.config import Prices
from graftwork.core.example import Example
from graftwork.core.meter import Phase
from graftwork.core.method import Setting, Workbench
from graftwork.core.opening import open_backbone
from graftwork.core.run import Recipe
from graftwork.registry import methods
from graftwork.run.methods import parse_method
from graftwork.run.shop import Shop
from graftwork.run.store import RunStore
from graftwork.testing import tiny_dataset
from graftwork.train.frozen import FrozenStore

DATA = tiny_dataset(rows=240)
BACKBONE = open_backbone("tiny_text", precision="fp32")
RECIPE = Recipe(epochs=10, batch_size=8)  # 300 steps
SKILLS = {"able": 0.95, "near": 0.94, "fair": 0.93, "poor": 0.6}
FAST = 0.002


@dataclass
class Answers:
    """Right on a share of the examples: those of a lesser skill are among those of a greater."""

    skill: float
    salt: int
    labels: tuple[str, ...]
    facts: Mapping[str, Any]
    trained_parameters: int = 1

    def logits(self, examples: Sequence[Example]) -> Any:
        luck = [zlib.crc32(f"{self.salt}{example.id}".encode()) % 997 / 997 for example in examples]
        rows = [np.eye(2)[self.labels.index(str(example.target))] for example in examples]
        return np.array([row if at < self.skill else 1 - row for row, at in zip(rows, luck, strict=True)])

    def delta(self) -> dict[str, Any]:
        return {"x": torch.zeros(1)}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        return 1.0, "model"


def answers(method: Any, bench: Workbench) -> Answers:
    """What the methods below learn."""
    if method.learning_rate == method.fails_at:
        raise RuntimeError("diverged")
    unsuited = method.wants and method.learning_rate != method.wants
    facts = {"steps": bench.recipe["steps"]}
    return Answers(method.skill - 0.3 * bool(unsuited), bench.seed, bench.setting.task.labels, facts)


def method(default: float) -> type:
    """A method of that skill, which is trained by gradient for all that the race knows."""

    @dataclass(frozen=True)
    class Method:
        skill: float = default
        wants: float = 0.0  # the only rate that suits; 0: any
        fails_at: float = 0.0
        learning_rate: float = 1e-3

        VERSION: ClassVar[int] = 1
        uses_backbone: ClassVar[bool] = True

        def unfit(self, task: Any, card: Any) -> str:
            return ""

        def fit(self, bench: Workbench) -> Answers:
            return answers(self, bench)

        def restore(self, setting: Setting, delta: Any, facts: Mapping[str, Any]) -> Answers:
            raise AssertionError("nothing is restored here")

    return Method


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name, skill in SKILLS.items():
        monkeypatch.setitem(methods._parts, name, method(skill))
    numerics = {"precision": "fp32", "threads": 1, "device": "cpu"}
    store = RunStore(tmp_path)
    return Shop(DATA, BACKBONE, 0, Phase(), store, FrozenStore(), numerics, Prices())


def grid(shop: Shop, words: str, seeds: int = 2, progress: Any = lambda done, text: None, **flags: bool) -> Grid:
    return run_grid(shop, [parse_method(word) for word in words.split(",")], RECIPE, seeds, progress, **flags)


def board(shop: Shop, made: Grid) -> dict[str, Any]:
    return leaderboard._content(shop, made, ())


def row(content: dict[str, Any], method: str) -> dict[str, Any]:
    return next(row for row in content["rows"] if row["method"] == method)


def recipes(shop: Shop, made: Grid) -> list[tuple[str, float, int]]:
    """(method, share, seed) of every run, in the order of execution."""
    specs = [json.loads((shop.store.root / run.id / "spec.json").read_text()) for run in made.runs]
    return [(spec["method"]["name"], spec["recipe"].get("share", 1.0), spec["seed"]) for spec in specs]


def test_the_worse_half_is_dropped_after_its_trial_and_never_runs_in_full(shop: Shop) -> None:
    made = grid(shop, "majority,poor,able,near", seeds=3)
    content = board(shop, made)
    dropped = row(content, "poor")
    assert [item["status"] for item in content["rows"]] == ["ok", "ok", "ok", "dropped"]
    assert {share for name, share, _ in recipes(shop, made) if name == "poor"} == {1 / 8, 1 / 4}
    assert (dropped["scores"], dropped["costs"], dropped["n_seeds"], len(dropped["runs"])) == ({}, {}, 0, 4)
    told = dropped["dropped"]
    assert told.keys() == {"stage", "why", "validation", "leader", "leader_validation", "cost"}
    assert (told["stage"], told["leader"] in ("able", "near")) == ("1/4 of the steps", True)
    assert told["validation"] < told["leader_validation"]
    assert told["cost"]["runs"] == {"value": 4.0, "unit": "runs", "grade": "counter"}
    assert all("poor" not in (pair["a"], pair["b"]) for pair in content["differences"])
    assert "poor" not in content["frontier"]
    assert {row(content, name)["n_seeds"] for name in ("majority", "able", "near")} == {3}
    assert all(row(content, name)["dropped"] is None for name in ("majority", "able", "near"))
    assert f"Dropped in the race, by accuracy on validation: poor with {100 * told['validation']:.1f}" in answer(
        content
    )


def test_the_race_is_told_whole(shop: Shop) -> None:
    made = grid(shop, "linear_probe,poor,able,near:learning_rate=0.001", seeds=2)
    content = board(shop, made)
    race = content["race"]
    assert race.keys() == {"rule", "trials", "rates", "looks", "dropped", "search_costs"}
    assert "the others (linear_probe) run in full" in race["rule"]
    assert race["trials"] == {"rates": {"share": 0.125, "steps": 38}, "methods": {"share": 0.25, "steps": 75}}
    assert race["rates"].keys() == {"poor", "able"}  # a rate that was given is kept
    assert [one.keys() for one in race["rates"]["able"]] == 3 * [
        {"learning_rate", "run", "status", "validation", "chosen"}
    ]
    assert race["looks"] == 1
    assert [drop["method"] for drop in race["dropped"]] == ["poor"]
    assert race["search_costs"]["runs"]["value"] == 9
    searched = {name: cost["value"] for name, cost in content["search_costs"].items()}
    assert searched["runs"] == len(made.runs) == 9 + 6
    took, shared = (sum(getattr(one, name).wall_seconds for one in made.runs) for name in ("spent", "shared"))
    opened = sum(one.opening.wall_seconds > 0 for one in made.runs)
    assert searched["wall_seconds"] == pytest.approx(took + shop.load.wall_seconds)
    assert searched["separate_total_seconds"] == pytest.approx(took + shared + opened * shop.load.wall_seconds)
    json.dumps(content)


def test_trials_never_see_the_test_split_and_leave_no_module(shop: Shop) -> None:
    made = grid(shop, "able,near,poor", seeds=1)
    trials = [run for item in made.rows for run in item.trials]
    assert len(trials) == 12
    for run in trials:
        folder = shop.store.root / run.id
        lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
        assert {line["split"] for line in lines} == {"validation"}
        assert (run.scores, run.validation.keys()) == ({}, set(DATA.task.metrics))
        assert not (folder / "module").exists()


def test_who_is_clearly_behind_goes_after_a_seed_and_test_scores_of_a_dropped_row_are_not_shown(shop: Shop) -> None:
    made = grid(shop, "able,poor", seeds=2)
    content = board(shop, made)
    dropped = row(content, "poor")
    assert (dropped["status"], dropped["dropped"]["stage"], dropped["n_seeds"]) == ("dropped", "seed 0", 0)
    assert dropped["costs"]["train_seconds"]["value"] > 0
    receipts = [receipt for receipt in leaderboard._receipts(made.rows) if receipt["method"] == "poor"]
    assert len(receipts) == 4 and not any(receipt["scores"] for receipt in receipts)
    shown = render_report(content, leaderboard._receipts(made.rows))
    assert "dropped, validation" in shown and "The race" in shown
    assert row(content, "able")["n_seeds"] == 2


def test_the_rate_that_is_best_on_validation_is_the_rows(shop: Shop) -> None:
    made = grid(shop, f"able:wants={FAST},near", seeds=1)
    content = board(shop, made)
    chosen, own = content["rows"][0], row(content, "near")
    assert (chosen["method"], chosen["config"]["learning_rate"]) == (f"able:wants={FAST}", FAST)
    assert own["config"]["learning_rate"] == 1e-3  # equals everywhere: its own
    spec = json.loads((shop.store.root / chosen["runs"][0] / "spec.json").read_text())
    assert spec["method"]["learning_rate"] == FAST
    assert chosen["runs"] == [shop.spec(parse_method(f"able:wants={FAST}:learning_rate={FAST}"), RECIPE, 0).id]
    assert [one["chosen"] for one in content["race"]["rates"][chosen["method"]]] == [False, False, True]


def test_a_rate_that_fails_loses_and_a_method_that_fails_is_not_judged(shop: Shop) -> None:
    content = board(shop, grid(shop, "able:fails_at=0.001,near,poor:learning_rate=0.5:fails_at=0.5", seeds=2))
    tried = content["race"]["rates"]["able:fails_at=0.001"]
    assert [one["status"] for one in tried] == ["failed", "ok", "ok"]
    assert (tried[0]["validation"], tried[1]["chosen"]) == (None, True)
    assert content["rows"][-1]["status"] == "failed"


def test_exhaustive_runs_everything_at_its_own_rate(shop: Shop) -> None:
    words = "majority,poor,able,near"
    made = grid(shop, words, seeds=2, exhaustive=True)
    expected = [shop.spec(parse_method(word), RECIPE, seed).id for seed in range(2) for word in words.split(",")]
    assert [run.id for run in made.runs] == expected
    content = board(shop, made)
    assert content["race"] is None
    assert {item["status"] for item in content["rows"]} == {"ok"}
    assert all(item["dropped"] is None and len(item["runs"]) == item["n_seeds"] for item in content["rows"])


def test_nothing_races_where_only_baselines_run(shop: Shop) -> None:
    assert grid(shop, "majority", seeds=2).race is None


def test_the_order_is_trials_then_seed_by_seed(shop: Shop) -> None:
    assert recipes(shop, grid(shop, "majority,near,able,fair", seeds=2)) == [
        *[(name, 1 / 8, 0) for name in ("near", "able", "fair") for _ in range(3)],
        *[(name, 1 / 4, 0) for name in ("near", "able", "fair")],
        *[(name, 1.0, seed) for seed in range(2) for name in ("majority", "near", "able")],  # fair: the worse half
    ]  # fmt: skip


def test_an_interrupted_race_goes_on_where_it_was_and_ends_the_same(shop: Shop, tmp_path: Path) -> None:
    begun = 0

    def interrupt(done: float, text: str) -> None:
        nonlocal begun
        begun += text.endswith("starting")
        if begun == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grid(shop, "majority,able,near,poor", progress=interrupt)
    resumed = grid(shop, "majority,able,near,poor")
    assert (resumed.reused, len(resumed.runs)) == (11, 18)
    again = grid(shop, "majority,able,near,poor")
    assert again.reused == len(again.runs)
    assert board(shop, again)["rows"] == board(shop, resumed)["rows"]


def test_progress_never_goes_back_and_ends_at_the_end(shop: Shop) -> None:
    seen: list[float] = []
    grid(shop, "majority,poor,able,near", progress=lambda done, text: seen.append(done))
    assert seen == sorted(seen)
    assert seen[0] == 0 and seen[-1] == pytest.approx(1)


def test_a_short_recipe_is_raced_in_full_and_run_once(shop: Shop) -> None:
    """A trial has at least 20 steps; where that is the whole run, it is the run."""
    short = Recipe(epochs=1, batch_size=16)
    made = run_grid(shop, [parse_method("able")], short, 2, lambda done, text: None)
    assert len({run.id for run in made.runs}) == len(made.runs) == 4
    (item,) = board(shop, made)["rows"]
    assert len(item["runs"]) == item["n_seeds"] == 2
