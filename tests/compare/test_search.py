"""A comparison that answers early: what it runs and when, what it spares, what it may not see, how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import pytest
from toys import SECONDS, SECONDS_OF, Comparison, Over

from graftwork.compare import grid
from graftwork.compare import search as searching
from graftwork.compare.advice import advice
from graftwork.compare.run_times import BEFORE_THE_BACKBONE
from graftwork.compare.search import LEAST_SHARE, STARTING, Search
from graftwork.compare.workers import Finished, Report, RunOrder, one_by_one
from graftwork.core.meter import Phase
from graftwork.core.run import RunResult
from graftwork.decision.earlier_boards import Experience
from graftwork.decision.next_run import LEAST_GAIN
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.standing import Standing
from graftwork.decision.traits import TUNED
from graftwork.run import score_interval
from graftwork.run.session import Session
from graftwork.run.sessions import Sessions
from graftwork.run.store import read_logits

ALL = "able,near,fair,probe,poor,simple,majority"


def test_baselines_run_first_and_each_once(toy_session: Session) -> None:
    """Those without a backbone before those that read it; what changes the network comes after them."""
    found = Comparison(toy_session, ALL)
    found.search.run()
    labels = [label for label, _ in found.begun]
    assert found.begun[:3] == [("simple", 0), ("majority", 0), ("probe", 0)]
    first = labels.index("able")
    assert not {"simple", "majority", "probe"} & {*labels[3:first]}
    assert sorted(found.ended) == sorted(labels)


def test_a_much_better_method_is_found_however_dear_it_is(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,probe,poor,fair,able")
    board = found.board(found.search.run())
    assert found.chosen() == board["decision"]["chosen"] == board["rows"][0]["method"] == "able"
    assert advice(board)[0].startswith("Use able: accuracy 9")


def test_a_method_that_earlier_looks_leave_no_gain_never_runs(toy_session: Session) -> None:
    """The other rate of a method that is far behind: methods of one name are expected to be alike."""
    found = Comparison(toy_session, "majority,probe,poor,poor:learning_rate=0.002,able", seeds=1)
    made = found.search.run()
    assert found.runs()["poor"] == 1 and made.left == ["poor:learning_rate=0.002"]
    board = found.board(made)
    assert board["decision"]["left"] == made.left
    assert "poor:learning_rate=0.002" not in [row["method"] for row in board["rows"]]
    told = {one["method"]: one for one in board["decision"]["methods"]}
    assert (told["poor:learning_rate=0.002"]["runs"], told["poor:learning_rate=0.002"]["validation"]) == (0, None)
    assert told["poor:learning_rate=0.002"]["shortfall"] > 0.2


@pytest.mark.parametrize(
    ("seeds", "made"), [(1, 1), *(pytest.param(n, n, marks=pytest.mark.slow) for n in (2, 3)), (6, 3)]
)
def test_the_chosen_method_runs_with_seeds_that_show_its_spread_and_so_do_cheap_ones(
    seeds: int, made: int, toy_session: Session
) -> None:
    found = Comparison(toy_session, "majority,simple,probe,poor,able", seeds)
    found.search.run()
    assert found.runs() == {"majority": made, "simple": made, "probe": made, "poor": 1, "able": made}
    assert sorted(seed for label, seed in found.begun if label == "able") == list(range(made))


def test_seeds_that_change_the_choice_are_followed_by_more_search(toy_session: Session) -> None:
    """One whose first run was luck is left, and the one that is chosen instead has as many runs."""
    lucky, other = "fair:skill=0.97:later=0.6", "near:skill=0.85"
    found = Comparison(toy_session, f"majority,probe,{other},{lucky}")
    found.search.run()
    assert found.chosen() == other
    assert found.runs() == {"majority": 3, "probe": 3, other: 3, lucky: 3}
    assert found.begun.index((lucky, 2)) < found.begun.index((other, 1))


def test_no_row_of_test_is_read_while_it_searches(toy_session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reading(folder: Any, split: str, *kind: Any) -> Any:
        read.append(split)
        assert split != "test"
        return read_logits(folder, split, *kind)

    for module in (grid, score_interval):
        monkeypatch.setattr(module, "read_logits", reading)
    found = Comparison(toy_session, "majority,probe,able,near")
    made = found.search.run()
    assert found.chosen() == "able" and set(read) == {"validation"}
    with pytest.raises(AssertionError):
        made.rows(toy_session)


def test_what_is_better_on_test_alone_is_not_chosen(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,probe,near:on_test=0.4,fair:on_test=0.99")
    board = found.board(found.search.run())
    assert [row["method"] for row in board["rows"]][:2] == ["fair:on_test=0.99", "probe"]
    assert board["decision"]["chosen"] == "near:on_test=0.4"
    assert advice(board)[0].startswith("Use near:on_test=0.4: accuracy 4")


@pytest.mark.parametrize(("worth", "chosen"), [(0.0, "able"), (0.005, "able"), (0.03, "near")])
def test_a_cheaper_method_is_chosen_where_the_difference_does_not_matter(
    worth: float, chosen: str, toy_session: Session
) -> None:
    found = Comparison(toy_session, "majority,probe,near,able", worth=worth)
    board = found.board(found.search.run())
    decision = board["decision"]
    assert (decision["chosen"], decision["worth"], decision["within"]) == (chosen, worth, worth > 0)
    assert SECONDS["near"] < SECONDS["able"]
    assert decision["cheaper"]["method"] == {"able": "near", "near": "probe"}[chosen]


def test_a_method_that_fails_is_not_chosen(toy_session: Session) -> None:
    failing = "able:fails_from=0"
    found = Comparison(toy_session, f"majority,probe,near,{failing}")
    board = found.board(found.search.run())
    assert found.chosen() == "near" and found.begun.count((failing, 0)) == 1
    assert board["rows"][-1]["method"] == failing and board["rows"][-1]["status"] == "failed"
    assert failing not in [one["method"] for one in board["decision"]["methods"]]


def test_one_that_fails_while_its_seeds_are_added_is_not_chosen_either(toy_session: Session) -> None:
    failing = "able:fails_from=1"
    found = Comparison(toy_session, f"majority,probe,near:skill=0.8,{failing}")
    board = found.board(found.search.run())
    assert found.chosen() == "near:skill=0.8" and found.runs()["near:skill=0.8"] == 3
    (row,) = [row for row in board["rows"] if row["method"] == failing]
    assert (row["status"], row["n_seeds"], row["n_failed"]) == ("ok", 1, 2), "what it came to is on the board"
    assert advice(board)[0].startswith("Use near:skill=0.8: ")


@pytest.mark.parametrize("words", ["able:fails_from=1", "able:fails_from=1,near:fails_from=1"])
def test_nothing_is_chosen_where_all_fail_while_their_seeds_are_added(words: str, toy_session: Session) -> None:
    found = Comparison(toy_session, words)
    board = found.board(found.search.run())
    assert board["decision"] is None and {row["status"] for row in board["rows"]} == {"ok"}
    assert "nothing was chosen" in advice(board)[0]


def test_what_was_not_worth_a_run_is_tried_once_all_that_ran_has_failed(
    toy_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Methods of one name are alike here, so the second has nothing to gain as long as the first can be chosen."""
    alike = Prior(Sizes(label=1e-4, task_label=1e-4), Experience())
    monkeypatch.setattr(Prior, "load", lambda data="": alike)
    found = Comparison(toy_session, "near:fails_from=1,near:learning_rate=0.002", seeds=3)
    found.search.run()
    assert found.begun[:2] == [("near:fails_from=1", 0), ("near:fails_from=1", 1)]
    assert found.runs()["near:learning_rate=0.002"] == 3 and found.chosen() == "near:learning_rate=0.002"


def test_nothing_is_chosen_where_every_method_fails(toy_session: Session) -> None:
    found = Comparison(toy_session, "simple:fails_from=0,probe:fails_from=0,able:fails_from=0,near:fails_from=0")
    board = found.board(found.search.run())
    assert [seed for _, seed in found.begun] == [0] * 4, "each was tried, and once"
    assert board["decision"] is None and advice(board) == ["No method finished."]


def test_a_control_is_never_chosen_and_runs_beside_the_chosen_one(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,probe,over,fair")
    made = found.search.run()
    board = found.board(made)
    assert board["rows"][0]["method"] == "over" and board["decision"]["chosen"] == "fair" and made.left == []
    assert found.runs()["over"] == found.runs()["fair"] == 3
    assert found.begun.index(("over", 0)) > found.begun.index(("fair", 0))
    assert "over" not in [one["method"] for one in board["decision"]["methods"]]


def test_another_method_over_one_may_be_chosen(toy_session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Over, "CONTROL", False)
    monkeypatch.setitem(SECONDS, "over", SECONDS["fair"])
    found = Comparison(toy_session, "majority,probe,over,fair")
    assert found.board(found.search.run())["decision"]["chosen"] == "over"


def test_controls_run_where_there_are_no_others(toy_session: Session) -> None:
    found = Comparison(toy_session, "over")
    board = found.board(found.search.run())
    assert found.runs()["over"] >= 1 and board["decision"] is None


def test_nothing_but_the_majority_class(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority")
    made = found.search.run()
    board = found.board(made)
    assert found.runs() == {"majority": 3} and made.left == []
    assert (board["decision"]["chosen"], board["decision"]["cheaper"]) == ("majority", None)
    assert advice(board)[0].startswith("Use majority: accuracy 50.0 on test")


def test_the_majority_class_is_chosen_only_where_nothing_is_above_it(toy_session: Session) -> None:
    below = Comparison(toy_session, "majority,poor:skill=0.3")
    below.search.run()
    assert below.chosen() == "majority"
    above = Comparison(toy_session, "majority,poor:skill=0.58", worth=0.5)
    above.search.run()
    assert above.chosen() == "poor:skill=0.58", "however little a point is worth"


def test_without_baselines_the_quickest_runs_first(toy_session: Session) -> None:
    found = Comparison(toy_session, "able,near,poor:skill=0.3")
    found.search.run()
    assert found.begun[0] == ("poor:skill=0.3", 0) and found.chosen() == "able"
    assert all(found.runs().values())


def at_once(
    seen: list[list[str]], sessions: Sessions, orders: Sequence[RunOrder], report: Report
) -> Iterator[Finished]:
    """A crew that takes every order at once; noted is what it is at whenever a run ends, which are the last first."""
    alone, taken, going = partial(one_by_one, sessions), 0, list[int]()
    while going or taken < len(orders):
        going += range(taken, len(orders))
        taken = len(orders)
        seen.append([orders[place].label for place in going])
        place = going.pop()
        for _, result, known in alone([orders[place]], lambda _, *told, place=place: report(place, *told)):
            yield place, result, known


def test_two_runs_at_once_are_kept_on_their_way_and_no_more(toy_session: Session) -> None:
    """What is on its way counts as if it came out as expected: the second is of another method."""
    session, calls = replace(toy_session, runs_at_once=2), list[list[list[str]]]()

    def crew(orders: Sequence[RunOrder], report: Report) -> Iterator[Finished]:
        calls.append([])
        return at_once(calls[-1], Sessions(session), orders, report)

    found = Comparison(session, "majority,probe,poor,fair,near,able", crew=crew)
    found.search.run()
    baseline, *search = calls[0]
    assert baseline == ["probe"], "its score tells where on its scale the task lies"
    assert len(search[0]) == 2 and max(map(len, search)) == 2 and [len(going) for going in search].count(1) == 1
    assert len({*search[0]}) == 2, "not two runs of one method of which nothing is known"
    assert found.chosen() == "able" and found.runs()["able"] == 3
    seeds = [run.seed for entry in found.runner.entries if entry.item.label == "able" for run in entry.runs]
    assert seeds == [0, 1, 2], "in the order of seeds, in whatever order they ended"


def test_no_core_waits_for_the_last_baseline(toy_session: Session) -> None:
    session, calls = replace(toy_session, runs_at_once=2), list[list[str]]()

    def crew(orders: Sequence[RunOrder], report: Report) -> Iterator[Finished]:
        return at_once(calls, Sessions(session), orders, report)

    found = Comparison(session, "majority,probe,probe:skill=0.6,probe:skill=0.5,able", crew=crew)
    found.search.run()
    assert sorted(calls[0]) == ["probe", "probe:skill=0.5", "probe:skill=0.6"]
    assert len(calls[1]) == 2 and calls[2] == ["probe", "able"]


def test_a_gain_below_a_part_of_what_a_point_is_worth_is_worth_no_run(
    toy_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short the run is; who wants the best pays for less."""
    asked: dict[float, float] = {}
    next_run = Standing.next_run

    def noted(self: Standing, *given: Any, least: float) -> Any:
        asked[given[2]] = least
        return next_run(self, *given, least=least)

    monkeypatch.setattr(Standing, "next_run", noted)
    for worth in (0.0, 0.005, 0.02):
        Comparison(toy_session, "majority,probe,near", worth=worth).search.run()
    assert asked == {0.0: LEAST_GAIN, 0.005: LEAST_SHARE * 0.005, 0.02: LEAST_SHARE * 0.005}


def test_an_interrupted_search_goes_on_where_it_was_and_ends_the_same(
    toy_session: Session, tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = "majority,probe,poor,near"

    def interrupt(order: RunOrder) -> None:
        if order.label == "near":
            raise KeyboardInterrupt

    cut = Comparison(toy_session, words, when_begun=interrupt)
    with pytest.raises(KeyboardInterrupt):
        cut.search.run()
    resumed, again = Comparison(toy_session, words), Comparison(toy_session, words)
    made = resumed.search.run()
    assert made.reused == len(cut.ended) == len(cut.begun) - 1 == 3 and made.reused < len(made.runs)
    assert resumed.begun[: len(cut.begun)] == cut.begun
    once_more = again.search.run()
    assert once_more.reused == len(once_more.runs) == len(made.runs)
    assert again.begun == resumed.begun and again.board(once_more)["rows"] == resumed.board(made)["rows"]


def test_where_it_takes_long_a_shorter_reading_is_advised(
    toy_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(toy_session), "shorter_reading", lambda session: "read less")
    comparison = Comparison(toy_session, "majority,probe,poor,near,able", seeds=3)
    assert comparison.search.outlook().advice == ""
    monkeypatch.setattr(searching, "LONG_WAIT", comparison.search.outlook().likely_seconds - 1)
    assert comparison.search.outlook().advice == "read less"


def test_what_it_expects_of_its_time(toy_session: Session) -> None:
    """It expects one run of each method and two more of the chosen one, and at most every seed of all."""
    words, baselines = "majority,probe,poor,near,able", SECONDS["majority"] + SECONDS["probe"]
    found = Comparison(toy_session, words, seeds=3)
    outlook = found.search.outlook()
    assert outlook.first_seconds == pytest.approx(baselines)
    assert outlook.likely_seconds == found.search.seconds_left() == pytest.approx(baselines + 53 + 2 * 53 / 3)
    assert (outlook.most_seconds, outlook.runs) == (pytest.approx(3 * (baselines + 53)), 15)
    two = Comparison(replace(toy_session, runs_at_once=2), words, seeds=3).search.outlook()
    assert two.first_seconds == outlook.first_seconds + STARTING, "of the processes"
    assert two.likely_seconds == pytest.approx((outlook.likely_seconds + STARTING) / 2)
    assert two.most_seconds == outlook.most_seconds / 2
    one = Comparison(toy_session, words, seeds=1).search.outlook()
    assert one.likely_seconds == one.most_seconds == pytest.approx(baselines + 53)
    more = Comparison(toy_session, f"{words},fair,poor:learning_rate=0.002", seeds=3).search
    tuned = [more.seconds(arm) for arm in more.entries if arm.sort == TUNED]
    assert more.outlook().likely_seconds == pytest.approx(baselines + 6 * fmean(tuned)), "it tries four"
    only = Comparison(toy_session, "majority,probe").search.outlook()
    assert only.likely_seconds == only.first_seconds < only.most_seconds


def test_the_time_that_is_left_comes_to_nothing(toy_session: Session) -> None:
    found = Comparison(toy_session, "majority,probe,able")
    left: list[tuple[str, int, float]] = []
    found.when_begun = lambda order: left.append((order.label, order.seed, found.search.seconds_left()))
    found.search.run()
    told = {(label, seed): seconds for label, seed, seconds in left}
    assert told["able", 0] > SECONDS["able"], "and that of seeds that are still to come"
    assert told["able", 2] < told["able", 1] and found.search.seconds_left() == 0


def test_what_is_left_holds_the_runs_that_are_expected_to_be_worth_their_time(toy_session: Session) -> None:
    """And nothing of what is only thought of counts as begun."""
    found, left = Comparison(toy_session, "majority,probe,poor,near,able"), dict[str, float]()

    def look(order: RunOrder) -> None:
        begun = dict(found.runner.standing.begun)
        left.setdefault(order.label, found.search.seconds_left())
        assert found.runner.standing.begun == begun

    found.when_begun = look
    found.search.run()
    assert found.begun[2][0] == "poor" and left["poor"] > SECONDS["poor"] + SECONDS["near"] + SECONDS["able"]


def test_what_a_run_takes_is_what_runs_of_its_method_took_else_by_its_operations(
    toy_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Search, "seconds", SECONDS_OF)
    search = Comparison(toy_session, "majority,probe,near,able").search
    arms = {arm.label: arm for arm in search.entries}

    def seconds(label: str) -> float:
        return search.seconds(arms[label])

    assert seconds("majority") == BEFORE_THE_BACKBONE < seconds("probe") < seconds("able")

    def took(label: str, *each: float, status: str = "ok") -> None:
        search.entries[arms[label]].runs += [
            RunResult(f"{label}-{at}", at, status, spent=Phase(one)) for at, one in enumerate(each)
        ]

    operations = {label: search.pace._operations_of(search.entries[arm]) for label, arm in arms.items()}
    assert operations["able"] == operations["near"] > operations["probe"] > 0
    took("probe", 50.0, 10.0, 90.0)
    assert seconds("probe") == 50.0
    rate = 150 / (3 * operations["probe"])
    assert seconds("able") == pytest.approx(BEFORE_THE_BACKBONE + operations["able"] * rate)
    took("near", 7.0)
    assert seconds("able") == pytest.approx(BEFORE_THE_BACKBONE + 7.0), "by what changes the network, once there is any"
    took("able", 1.0, status="failed")
    assert seconds("able") == pytest.approx(BEFORE_THE_BACKBONE + 7.0), "a run that failed says nothing"
