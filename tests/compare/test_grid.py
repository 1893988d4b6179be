"""The runs of a board: how they are executed and kept, what stands of them on it, and what they took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from toys import RECIPE, SECONDS, Comparison

from graftwork.compare.grid import Grid, MethodRuns, real_cost, run_all
from graftwork.compare.workers import Finished, Report, RunOrder, one_by_one
from graftwork.core.configured_methods import parse_method
from graftwork.core.meter import Phase
from graftwork.core.run import RunResult
from graftwork.run.session import Session
from graftwork.run.sessions import Sessions


def exhaustive(found: Comparison) -> Grid:
    return run_all(found.runner, found.seeds, found.told, found.has_ended)


def test_exhaustive_runs_every_method_with_every_seed_seed_by_seed(toy_session: Session) -> None:
    words = ["majority", "poor", "able", "near"]
    found = Comparison(toy_session, ",".join(words), seeds=2)
    made = exhaustive(found)
    assert [run.id for run in made.runs] == [
        toy_session.spec(parse_method(word), RECIPE, seed).id for seed in range(2) for word in words
    ]
    assert found.begun == [(word, seed) for seed in range(2) for word in words] and found.ended == words * 2
    board = found.board(made)
    assert {(row["status"], row["n_seeds"]) for row in board["rows"]} == {("ok", 2)}
    assert board["decision"]["chosen"] == "able" and board["decision"]["left"] == []
    assert {one["runs"] for one in board["decision"]["methods"]} == {2}


def test_runs_that_are_there_are_reused(toy_session: Session) -> None:
    first = exhaustive(Comparison(toy_session, "majority,fair", seeds=1))
    assert first.reused == 0
    found = Comparison(toy_session, "majority,fair", seeds=2)
    second = exhaustive(found)
    assert (second.reused, len(second.runs)) == (2, 4) and found.runs() == {"majority": 2, "fair": 2}
    assert found.runner.standing.runs(found.runner.entries[1].arm) == 2, "they count as those that are new"


def test_what_is_appended_when_a_run_ends_is_executed_too(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,simple")
    majority, simple = found.runner.entries
    orders = [found.runner.order(majority, 0)]

    def go_on(entry: MethodRuns) -> None:
        if entry is majority and len(majority.runs) < 3:
            orders.append(found.runner.order(simple if len(majority.runs) == 1 else majority, len(majority.runs)))
            orders.append(found.runner.order(majority, len(majority.runs)))

    found.runner.execute(orders, found.told, go_on)
    assert found.runs() == {"majority": 4, "simple": 1} and len(orders) == 5


def backwards(sessions: Sessions, orders: Sequence[RunOrder], report: Report) -> Iterator[Finished]:
    """A crew that begins with the last."""
    for place in reversed(range(len(orders))):
        for _, result, known in one_by_one(sessions, [orders[place]], lambda _, done, text: None):
            yield place, result, known


def test_runs_stand_in_the_order_of_their_seeds_in_whatever_order_they_end(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,fair", seeds=3, crew=partial(backwards, Sessions(toy_session)))
    made = exhaustive(found)
    assert [run.seed for run in made.runs] == [2, 2, 1, 1, 0, 0]
    for entry, row in zip(made.entries, made.rows(toy_session), strict=True):
        assert [run.seed for run in entry.runs] == [run.seed for run, _ in row.runs] == [0, 1, 2]


def test_validation_counts_and_a_method_of_which_a_run_failed_does_not(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,fair,near:fails_from=1", seeds=2)
    made = exhaustive(found)
    standing, (_, fair, near) = found.runner.standing, made.entries
    assert [any(run.status != "ok" for run in entry.runs) for entry in made.entries] == [False, False, True]
    assert (standing.runs(fair.arm), standing.runs(near.arm), near.arm in standing.arms) == (2, 0, False)
    assert (
        standing.landmarks[fair.arm] == pytest.approx(sum(run.validation["accuracy"] for run in fair.runs) / 2)
        and standing.prices[fair.arm] == SECONDS["fair"]
    )
    rows = {row.method: row for row in made.rows(toy_session)}
    assert (rows["near:fails_from=1"].status, len(rows["near:fails_from=1"].scored)) == ("ok", 1)
    assert [bool(stats) for _, stats in rows["near:fails_from=1"].runs] == [True, False]


def test_the_standing_learns_which_run_kept_its_best_epoch(toy_session: Session) -> None:
    made = exhaustive(Comparison(toy_session, "majority,fair:epochs=3,near:epochs=1", seeds=1))
    told = {one.arm.label: one.kept_best_epoch for one in made.standing.run_scores}
    assert told == {"majority": False, "fair:epochs=3": True, "near:epochs=1": False}


def test_a_method_has_a_row_once_it_has_run_and_is_left_until_then(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,fair,near:fails_from=0")
    majority, _, near = found.runner.entries
    found.runner.execute([found.runner.order(entry, 0) for entry in (majority, near)], found.told, found.has_ended)
    made = found.runner.grid()
    rows = made.rows(toy_session)
    assert [(row.method, row.status) for row in rows] == [("majority", "ok"), ("near:fails_from=0", "failed")]
    assert made.left == ["fair"] and rows[1].config["fails_from"] == 0
    statistics = rows[0].runs[0][1]
    assert statistics.keys() == set(toy_session.dataset.task.metrics)
    assert {len(of) for of in statistics.values()} == {len(toy_session.dataset.splits["test"].examples)}


def test_the_scores_of_a_board_are_of_test(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,fair:skill=0.9:on_test=0.6", seeds=1)
    made = exhaustive(found)
    (run,) = made.entries[1].runs
    assert run.scores["accuracy"] < 0.75 < run.validation["accuracy"]
    assert found.board(made)["rows"][0]["scores"]["accuracy"]["mean"] == pytest.approx(run.scores["accuracy"])


def test_the_price_of_the_search_is_of_every_run_once(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,probe,poor,near")
    made = found.search.run()
    content = found.board(made)
    searched = {name: cost["value"] for name, cost in content["search_costs"].items()}
    assert searched["runs"] == len(made.runs) == len(found.begun) == sum(found.runs().values())
    took, shared = (sum(getattr(one, name).wall_seconds for one in made.runs) for name in ("spent", "shared"))
    opened = sum(one.opening.wall_seconds > 0 for one in made.runs)
    assert searched["wall_seconds"] == pytest.approx(took + toy_session.load.wall_seconds)
    assert searched["separate_total_seconds"] == pytest.approx(took + shared + opened * toy_session.load.wall_seconds)
    json.dumps(content)


def test_a_backbone_is_opened_once_for_the_runs_over_it() -> None:
    def runs(opening: float, *seconds: float) -> list[RunResult]:
        return [RunResult(str(at), at, "ok", spent=Phase(one, 2 * one), opening=Phase(opening, opening))
                for at, one in enumerate(seconds)]  # fmt: skip

    costs = real_cost(runs(5.0, 1.0, 2.0), runs(7.0, 4.0), [])
    assert {name: cost.value for name, cost in costs.items()} == {
        "wall_seconds": 5 + 7 + 7.0, "cpu_seconds": 5 + 7 + 14.0, "runs": 3.0,
    }  # fmt: skip
