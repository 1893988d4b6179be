"""A climb on its way: what runs next, what can be afforded, what is stopped, what is kept and chosen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from graftwork.budget import climber as climbing
from graftwork.budget.averaging import GAIN_VARIES, answering_seconds, average_of, gain_of_average, outscores
from graftwork.budget.budget_account import Budget, BudgetAccount
from graftwork.budget.climber import MOST_SEEDS, SPENT, Climber, PossibleRun, kept_gain
from graftwork.budget.forecast import Forecast
from graftwork.budget.rung import Rung
from graftwork.config import Prices
from graftwork.core.configured_methods import ConfiguredMethod, configured_from, parse_method
from graftwork.core.meter import Cost, Phase
from graftwork.core.method import Setting, Workbench
from graftwork.core.run import Recipe, RunResult
from graftwork.decision.earlier_boards import Experience
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.traits import SIMPLE, TUNED, Arm
from graftwork.errors import ConfigError
from graftwork.methods.average import Average
from graftwork.methods.majority import Constant, Majority
from graftwork.registry import methods
from graftwork.run.execute import execute
from graftwork.run.score_interval import Evidence
from graftwork.run.session import Session
from graftwork.run.store import RunStore

OpenSession = Callable[..., Session]
KNOWN = Prior(Sizes(), Experience())  # no earlier board: nothing here hangs on those that the package ships
DURING: dict[str, Callable[[int, int], None]] = {}  # what a run of so many seconds and this seed does on its way


@dataclass
class FakeWatch:
    """Advances when a method works."""

    seconds: float = 0.0

    def read(self) -> Phase:
        return Phase(self.seconds, self.seconds)


WATCH = FakeWatch()


@dataclass(frozen=True)
class Paid:
    """The majority baseline, as a method that takes its time and trains no network."""

    seconds: int = 1
    learning_rate: float = 0.1

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = False

    def unfit(self, task: Any, card: Any) -> str:
        return ""

    def fit(self, bench: Workbench) -> Constant:
        for tenth in range(10 * self.seconds):
            WATCH.seconds += 0.1
            DURING.get("tenth", lambda seconds, seed: None)(self.seconds, bench.seed)
            bench.progress(tenth / (10 * self.seconds), "working")
        if self.learning_rate > 9:
            raise ValueError("no luck")
        return Majority().fit(bench)

    def restore(self, setting: Setting, delta: dict[str, Any], facts: Any) -> Constant:
        return Majority().restore(setting, delta, facts)


@dataclass(frozen=True)
class Tuned:
    """The same as a method that changes the network: its runs are what a climb weighs."""

    seconds: int = 1
    learning_rate: float = 0.1

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Any, card: Any) -> str:
        return ""

    def attach(self, model: Any) -> None:
        """Never called: it trains nothing."""

    def fit(self, bench: Workbench) -> Constant:
        return Paid(self.seconds, self.learning_rate).fit(bench)

    def restore(self, setting: Setting, delta: dict[str, Any], facts: Any) -> Constant:
        return Majority().restore(setting, delta, facts)


@dataclass(frozen=True)
class Alike(Tuned):
    """The same as one whose runs start alike, so that they can be averaged."""

    SAME_START: ClassVar[bool] = True

    def fit(self, bench: Workbench) -> Constant:
        return replace(super().fit(bench), facts={"head_start": {"used": True}})


@dataclass
class Foreseen:
    """Forecasts that are right, times `wrong`; operations are seconds, but for those that `looks_like` names."""

    wrong: float = 1.0
    looks_like: Mapping[str, float] = field(default_factory=dict)
    broken: str = ""  # the label of a method that can't even be measured
    epochs: int = 0  # of every run
    evaluation: float = 0.0  # seconds of a run that operations don't count
    measured: list[str] = field(default_factory=list)

    def operations(self, method: ConfiguredMethod) -> float:
        return self.looks_like.get(method.label, float(method.config["seconds"]))

    def forecast(self, method: ConfiguredMethod) -> Forecast:
        WATCH.seconds += 0.1
        self.measured.append(method.label)
        if method.label == self.broken:
            raise ValueError("nothing to measure")
        parts = {"steps": self.wrong * method.config["seconds"], "evaluation": self.evaluation}
        return Forecast(parts, epochs=self.epochs)


class Climb:
    """Methods with known scores, and a climb over them on the fake watch."""

    def __init__(self, session: Session):
        self.session = session
        self.recipe = Recipe()
        self.scores: dict[str, float | Sequence[float]] = {}  # label -> validation score, of each seed or of all

    def evidence(self, dataset: Any, folder: Path) -> Evidence:
        """In place of `validation_evidence`."""
        spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        made = configured_from(spec["method"])
        found = self.scores.get(made.label, self.scores.get(made.label.partition(":learning_rate")[0]))
        assert found is not None
        score = found if isinstance(found, float) else found[spec["seed"]]
        return Evidence(score, score + np.random.default_rng(made.config.get("seconds", 0)).normal(0, 0.02, 1000))

    def climber(self, budget: float, forecasts: Foreseen | None = None, worth: float = 0.005) -> Climber:
        """That has not begun."""
        account = BudgetAccount(Budget(budget, "s"), Prices(), WATCH)
        known = Foreseen() if forecasts is None else forecasts
        return Climber(self.session, account, known, self.recipe, 0, lambda done, text: None, worth)

    def __call__(
        self,
        budget: float,
        scores: Mapping[str, float | Sequence[float]],
        forecasts: Foreseen | None = None,
        worth: float = 0.005,
        keep: Callable[[], None] = lambda: None,
    ) -> Climber:
        """A whole climb over these methods."""
        self.scores = dict(scores)
        climber = self.climber(budget, forecasts, worth)
        climber.climb([parse_method(words) for words in scores], keep)
        return climber


@pytest.fixture(autouse=True)
def paid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, made in (("paid", Paid), ("tuned", Tuned), ("alike", Alike)):
        monkeypatch.setitem(methods._parts, name, made)
    monkeypatch.setattr(Prior, "load", lambda data="": KNOWN)
    WATCH.seconds = 0.0
    DURING.clear()


@pytest.fixture
def climb(kept_session: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Climb:
    """`climb(budget, {method: score})`; the session is kept, its store is the test's own."""
    (tmp_path / "runs").mkdir()
    made, really = Climb(replace(kept_session(), store=RunStore(tmp_path / "runs"))), execute

    def timed(session: Session, method: ConfiguredMethod, *rest: Any) -> tuple[RunResult, bool]:
        result, reused = really(session, method, *rest)
        seconds = float(method.config["seconds"]) if "seconds" in method.config else 0.0
        costs = {**result.costs, "train_seconds": Cost(seconds, "s", "meter")}
        return replace(result, spent=Phase(seconds), costs=costs), reused

    monkeypatch.setattr(climbing, "validation_evidence", made.evidence)
    monkeypatch.setattr(climbing, "execute", timed)  # what a receipt says that a run took is real time
    return made


def ran(climber: Climber) -> list[str]:
    """The labels of the runs that were begun, in their order."""
    return [rung.method.label for rung in climber.rungs if rung.seconds is not None]


def decisions(climber: Climber) -> list[tuple[str, str]]:
    return [(rung.method.label, rung.decision) for rung in climber.rungs]


def rung_of(climber: Climber, words: str) -> Rung:
    """The first rung of a method."""
    return next(rung for rung in climber.rungs if rung.method.label == words)


def ends(error: BaseException, seconds: int, seed: int = 0) -> Callable[[int, int], None]:
    """What ends the run of so many seconds with this seed."""

    def act(own: int, of: int) -> None:
        if (own, of) == (seconds, seed):
            raise error

    return act


def test_the_fakes_are_of_their_sorts() -> None:
    assert [Arm.of(parse_method(words)).sort for words in ("paid", "tuned")] == [SIMPLE, TUNED]


def test_baselines_first_and_the_cheapest_of_them_whatever_they_are_called(climb: Climb) -> None:
    baselines = {"paid:seconds=20": 0.62, "paid:seconds=3": 0.6, "paid:seconds=7": 0.61}
    climber = climb(1000, {"tuned": 0.65, **baselines})
    assert ran(climber)[:4] == ["paid:seconds=3", "paid:seconds=7", "paid:seconds=20", "tuned"]
    for rung in climber.rungs[:4]:
        assert rung.seconds == pytest.approx(rung.method.config["seconds"])
        assert rung.measuring_seconds == pytest.approx(0.1)
        assert rung.decision == "best so far"  # each is better than all before; more seeds of the last one follow
    assert [rung.gain is None for rung in climber.rungs[:4]] == [True, True, True, False]  # baselines run in any case


def test_after_every_run_one_is_kept(climb: Climb) -> None:
    """What a kill leaves names one run."""
    climb.scores = {"paid": 0.5, "paid:seconds=2": 0.6, "paid:seconds=3": 0.55, "paid:seconds=4": 0.7}
    climber, kept = climb.climber(1000), []
    climber.climb(
        [parse_method(words) for words in climb.scores],
        lambda: kept.append([name for name, found in decisions(climber) if found == "kept"]),
    )
    assert kept[:4] == [["paid"], ["paid:seconds=2"], ["paid:seconds=2"], ["paid:seconds=4"]]


def test_of_two_that_may_gain_alike_the_shorter_runs_first(climb: Climb) -> None:
    dear_first = {"paid": 0.6, "tuned:seconds=8": 0.6, "tuned:seconds=2": 0.6}
    assert ran(climb(1000, dear_first))[1:3] == ["tuned:seconds=2", "tuned:seconds=8"]


def test_without_a_baseline_the_cheapest_runs_first_all_the_same(climb: Climb) -> None:
    climber = climb(1000, {"tuned:seconds=9": 0.7, "tuned:seconds=2": 0.6})
    assert ran(climber)[0] == "tuned:seconds=2" and climber.rungs[0].gain is None


def test_what_is_left_does_not_pay_for_it(climb: Climb) -> None:
    climber = climb(40, {"paid": 0.5, "paid:seconds=10": 0.6, "paid:seconds=30": 0.7, "paid:seconds=90": 0.8})
    assert decisions(climber) == [
        ("paid", "best so far"), ("paid:seconds=10", "kept"), ("paid:seconds=30", "not affordable"),
        ("paid:seconds=90", "not affordable"),
    ]  # fmt: skip
    assert climber.rungs[2].reason == "needed 1.1 x 30 s, left 28.7 s"
    assert climber.account.spent() <= 40 and climber.stopped == "the budget pays for nothing more that is worth it"
    assert climber.rungs[3].forecast is None  # nothing is spent on measuring what is dearer still


@pytest.mark.parametrize(("budget", "decision"), [(12, "kept"), (11, "not affordable")])
def test_the_margin_counts(budget: float, decision: str, climb: Climb) -> None:
    assert decisions(climb(budget, {"paid:seconds=10": 0.5})) == [("paid:seconds=10", decision)]


def test_a_guess_counts_what_a_measured_run_takes_beside_its_operations(climb: Climb) -> None:
    """Else a method would look cheap until it is measured, and be measured for nothing."""
    climber = climb.climber(1000, Foreseen(wrong=2.0, evaluation=7.0))
    climber._open([parse_method(words) for words in ("tuned:seconds=5", "tuned:seconds=20")])
    known, guessed = climber.first
    assert climber._count([known, guessed])
    climber._measure(climber.first[known])
    assert climber._expected(known) == 17 and climber._expected(guessed) == 47
    measuring = 47 * 0.1 / 17
    assert climber._offer(guessed, 500, 1.0).seconds == pytest.approx(measuring + 47)
    part = climber._offer(guessed, measuring + 27, 1.0)  # half of its steps
    assert part.seconds == pytest.approx(measuring + 27) and part.kept == pytest.approx(1 - 0.5**3)


def test_what_is_hopelessly_dear_is_not_measured(climb: Climb) -> None:
    climber = climb(10, {"paid": 0.5, "paid:seconds=2": 0.5, "paid:seconds=1000": 0.5})
    assert climber.rungs[2].decision == "not affordable"
    assert "by its operations needed about 16 min 40 s, left 6.8 s" in climber.rungs[2].reason
    assert isinstance(climber.forecasts, Foreseen) and climber.forecasts.measured == ["paid", "paid:seconds=2"]


def test_where_a_whole_run_is_not_affordable_a_part_of_it_is_made(
    climb: Climb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest that is paid for; the fake takes all of its seconds whatever its part, so the budget ends it."""
    asked: list[Recipe] = []
    timed = climbing.execute

    def noted(session: Session, method: ConfiguredMethod, recipe: Recipe, *rest: Any) -> tuple[RunResult, bool]:
        asked.append(recipe)
        return timed(session, method, recipe, *rest)

    monkeypatch.setattr(climbing, "execute", noted)
    climber = climb(30, {"paid": 0.5, "tuned:seconds=60": 0.9}, Foreseen(epochs=6))
    cut = rung_of(climber, "tuned:seconds=60")
    assert cut.part == 0.4 and asked == [Recipe(), Recipe(part=0.4)]
    assert cut.forecast is not None and cut.forecast.seconds == pytest.approx(24)
    assert cut.decision == "interrupted" and climber.chosen() is rung_of(climber, "paid")


def test_a_part_of_a_run_is_offered_for_a_part_of_its_gain(climb: Climb) -> None:
    offered = climb.climber(60, Foreseen(epochs=6))
    offered._open([parse_method("paid"), parse_method("tuned:seconds=60")])
    rung = offered.first[Arm.of(parse_method("tuned:seconds=60"))]
    rung.forecast = Forecast({"steps": 60.0}, epochs=6)
    arm = Arm.of(rung.method)
    assert offered._offer(arm, 60.0, 1.0) == PossibleRun(60.0, 1.0)
    assert offered._offer(arm, 47.0, 1.0) == PossibleRun(45.0, kept_gain(0.75))
    assert offered._offer(arm, 11.0, 1.0) == PossibleRun(60.0, 1.0)  # not even a fifth
    assert 0.5 < kept_gain(1 / 3) < kept_gain(2 / 3) < kept_gain(1.0) == 1.0


def test_what_is_measured_and_fits_comes_before_measuring_what_may_not(climb: Climb) -> None:
    """Measuring the second would take what the first needs."""
    climb.scores = {"paid": 0.5, "tuned:seconds=15": 0.7, "tuned:seconds=40": 0.8}
    climber = climb.climber(22, Foreseen(epochs=3))
    climber._open([parse_method(words) for words in climb.scores])
    climber._count(list(climber.first))
    first, second = (climber.first[Arm.of(parse_method(words))] for words in list(climb.scores)[1:])
    first.forecast, climber.seconds_per_flop, climber.measuring = Forecast({"steps": 15.0}, epochs=3), 1.0, 0.2
    there, dear = (climber._offer(Arm.of(rung.method), 12.0, 1.0) for rung in (first, second))
    assert there.seconds == pytest.approx(12.0) and dear.seconds == pytest.approx(0.2 * 40 + 40 / 5)
    assert climber._offer(Arm.of(second.method), 12.0, 2.0).seconds == 12.0  # where nothing else is left


def test_epochs_that_were_asked_for_are_left_alone(climb: Climb) -> None:
    climb.recipe = Recipe(epochs=6)
    climber = climb(30, {"paid": 0.5, "tuned:seconds=60": 0.9}, Foreseen(epochs=6))
    assert rung_of(climber, "tuned:seconds=60").decision == "not affordable"


@pytest.mark.parametrize("sort", ["paid", "tuned"])
def test_one_that_cannot_be_afforded_does_not_end_it_for_cheaper_ones(sort: str, climb: Climb) -> None:
    dear = f"{sort}:seconds=60"
    climber = climb(40, {dear: 0.9, "paid": 0.6, "tuned:seconds=2": 0.605, "tuned:seconds=3": 0.61})
    assert dear not in ran(climber) and {"paid", "tuned:seconds=2", "tuned:seconds=3"} <= set(ran(climber))
    assert [decision for words, decision in decisions(climber) if words == dear] == ["not affordable"]


def test_one_that_is_dearer_than_it_looked_does_not_make_cheaper_ones_look_dear(climb: Climb) -> None:
    """It seems to gain most for its time; once measured, seconds per operation are too many for the others."""
    scores = {"paid": 0.6, "tuned:seconds=90": 0.9, "tuned:seconds=5": 0.65, "tuned:seconds=7": 0.7}
    climber = climb(60, scores, Foreseen(looks_like={"tuned:seconds=90": 4.5}))
    assert isinstance(climber.forecasts, Foreseen) and climber.forecasts.measured[:2] == ["paid", "tuned:seconds=90"]
    assert {"tuned:seconds=5", "tuned:seconds=7"} <= set(ran(climber)) and "tuned:seconds=90" not in ran(climber)


@pytest.mark.parametrize("sort", ["paid", "tuned"])
@pytest.mark.parametrize("wrong", [0.01, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.1, 0.5))])
@pytest.mark.parametrize("budget", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_a_wrong_forecast_does_not_overrun(sort: str, wrong: float, budget: float, climb: Climb) -> None:
    scores = {"paid": 0.5, f"{sort}:seconds=5": 0.6, f"{sort}:seconds=150": 0.7, f"{sort}:seconds=200": 0.7}
    climber = climb(budget, scores, Foreseen(wrong))
    assert climber.account.spent() <= 1.05 * budget
    ended = [rung for rung in climber.rungs if rung.result is not None]
    labels = {rung.method.label for rung in ended}
    assert {"paid", f"{sort}:seconds=5"} <= labels and not labels & set(list(scores)[2:])
    store = climber.session.store
    assert len(store.ids()) == len(ended)
    assert {path.name for path in store.root.iterdir()} == set(store.ids())  # nothing half-written
    stopped = [rung for rung in climber.rungs if rung.decision == "interrupted"]
    if wrong == 0.01:
        assert len(stopped) == 1 and climber.stopped == "the budget is spent"
        assert stopped[0].result is None and "still running after" in stopped[0].reason
    chosen = climber.chosen()
    assert chosen is not None and chosen.method.config["seconds"] == 5


@pytest.mark.parametrize("wrong", [pytest.param(0.2, marks=pytest.mark.slow), 5.0])
def test_more_runs_of_a_method_are_forecast_by_the_one_before(wrong: float, climb: Climb) -> None:
    climber = climb(1000, {"paid": 0.6, "tuned:seconds=2": 0.601, "tuned:seconds=3": 0.6}, Foreseen(wrong), worth=0.0)
    again = [rung for rung in climber.rungs if rung.seed > 0]
    assert again
    for rung in again:
        assert rung.forecast is not None and rung.forecast.parts.keys() == {"as before"}
        assert rung.forecast.seconds == pytest.approx(rung.method.config["seconds"], rel=0.1)


def test_more_seeds_where_two_are_close(climb: Climb) -> None:
    close = {"paid": 0.6, "tuned:seconds=2": 0.601, "tuned:seconds=3": 0.6}
    climber = climb(3000, close, worth=0.0)
    seeds = {
        words: [rung.seed for rung in climber.rungs if rung.method.label == words and rung.result] for words in close
    }
    for words in ("tuned:seconds=2", "tuned:seconds=3"):
        assert 1 < len(seeds[words]) <= MOST_SEEDS and seeds[words] == list(range(len(seeds[words])))
    assert max(map(len, seeds.values())) == MOST_SEEDS  # it would go on for ever


def test_no_more_seeds_where_one_is_far_ahead(climb: Climb) -> None:
    climber = climb(3000, {"paid": 0.6, "tuned:seconds=2": 0.7, "tuned:seconds=3": 0.9})
    assert ran(climber).count("tuned:seconds=2") == 1


def test_more_seeds_are_not_run_where_they_cannot_be_afforded(climb: Climb) -> None:
    climber = climb(60, {"paid": 0.6, "tuned:seconds=22": 0.701, "tuned:seconds=24": 0.7})
    assert [rung.seed for rung in climber.rungs if rung.result] == [0, 0, 0]
    assert climber.account.spent() <= 60


def test_a_hopeless_method_is_not_run(climb: Climb) -> None:
    """Whatever changes the network falls far behind here, so that one more that does is not worth its time."""
    behind = {"tuned": 0.3, "tuned:seconds=2": 0.3}
    climber = climb(300, {"paid": 0.9, **behind, "tuned:seconds=200": 0.3})
    assert "tuned:seconds=200" not in ran(climber) and ran(climber)[:2] == ["paid", "tuned"]
    left = rung_of(climber, "tuned:seconds=200")
    assert left.decision == "not worth it" and left.result is None and left.seconds is None
    assert left.gain is not None and left.reason == f"expected to gain {100 * left.gain:.2f} points"
    assert climber.stopped == "nothing more is worth it" and climber.chosen() is climber.rungs[0]


@pytest.mark.parametrize(("worth", "made"), [(0.0, 1), (0.005, 0)])
def test_what_a_point_is_worth_decides_how_far_it_goes(worth: float, made: int, climb: Climb) -> None:
    """Two hundredths of a point are to be gained, for more than half of the budget."""
    climber = climb(100, {"paid": 0.73, "tuned:seconds=2": 0.58, "tuned:seconds=60": 0.58}, worth=worth)
    assert ran(climber).count("tuned:seconds=60") == made
    gain = rung_of(climber, "tuned:seconds=60").gain
    assert gain is not None and 0.0001 < gain < 0.0003


def test_other_learning_rates_of_the_best_come_last(climb: Climb) -> None:
    climb.scores = {"paid": 0.6, "tuned": 0.7, "tuned:seconds=3": 0.6, "tuned:learning_rate=0.2": 0.75}
    climber = climb.climber(1000)
    climber.climb([parse_method(words) for words in ("paid", "tuned", "tuned:seconds=3")])
    labels = ran(climber)
    assert labels.index("tuned:learning_rate=0.2") > max(map(labels.index, ("paid", "tuned", "tuned:seconds=3")))
    chosen = climber.chosen()
    assert chosen is not None and chosen.method.label == "tuned:learning_rate=0.2"
    rates = {rung.method.config["learning_rate"] for rung in climber.rungs}
    assert rates == {0.05, 0.1, 0.2}  # and not those of the better rate in turn


GOOD = "alike:seconds=9:learning_rate=0.3"
OF_TWO, OF_THREE, *OF_MORE = (
    f"average:by={GOOD}" if runs == 3 else f"average:runs={runs}:by={GOOD}" for runs in range(2, MOST_SEEDS + 1)
)
AVERAGES = dict.fromkeys((OF_TWO, OF_THREE, *OF_MORE), 0.8)


def test_once_nothing_else_is_worth_it_the_runs_of_the_best_are_averaged(climb: Climb) -> None:
    """Each average finds the runs in the store: it takes no time of its own."""
    climb.scores = {"paid": 0.6, GOOD: [0.78, 0.81, 0.78, 0.79, 0.79]} | AVERAGES
    climber = climb.climber(1000)
    climber.climb([parse_method(words) for words in ("paid", GOOD)])
    assert ran(climber) == ["paid", GOOD, *(words for average in AVERAGES for words in (GOOD, average))]
    assert [rung.seed for rung in climber.rungs if rung.method.label == GOOD] == list(range(MOST_SEEDS))
    chosen = climber.chosen()
    assert chosen is climber.rungs[-1] and chosen.arm == Arm.of(parse_method(GOOD))
    assert WATCH.seconds == pytest.approx(1 + 9 * MOST_SEEDS, abs=1)
    assert climber.standing.runs(chosen.arm) == MOST_SEEDS  # an average tells nothing of one run
    assert climber.stopped == "nothing more is worth it"


def test_an_average_far_below_its_runs_on_validation_is_not_kept(climb: Climb) -> None:
    """Nor is the method run again for a larger one."""
    climb.scores = {"paid": 0.6, GOOD: [0.78, 0.81, 0.78, 0.79, 0.79]} | dict.fromkeys(AVERAGES, 0.5)
    climber = climb.climber(1000)
    climber.climb([parse_method(words) for words in ("paid", GOOD)])
    chosen = climber.chosen()
    assert chosen is not None and (chosen.method.label, chosen.seed) == (GOOD, 1)
    assert [(rung.method.label, rung.decision) for rung in climber.rungs if rung.averages] == [(OF_TWO, "not better")]
    assert ran(climber).count(GOOD) == 2


def test_an_average_is_expected_to_gain_and_rows_of_validation_may_say_otherwise() -> None:
    """The more rows there are, the less an average may be below its runs."""

    def kept(difference: float, luck: float) -> bool:
        """Whether the average of two is kept, where luck with the rows has this standard deviation."""
        rows = np.random.default_rng(0).normal(0, luck, 1000)
        return outscores(Evidence(0.7 + difference, 0.7 + rows), [Evidence(0.7, np.full(1000, 0.7))] * 2, 0.5)

    usual = 0.5 * gain_of_average(2)
    for luck in (0.005, 0.01, 0.04):
        least = -(luck**2) * usual / (GAIN_VARIES * usual) ** 2
        assert kept(0.9 * least, luck) and not kept(1.1 * least, luck)
    assert kept(0.0, 0.0) and not kept(-0.001, 0.0) and kept(0.0, 0.04)


def test_an_average_that_fails_leaves_its_method_as_it_was(climb: Climb, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(average: Average, bench: Workbench) -> None:
        raise ValueError("no memory")

    monkeypatch.setattr(Average, "fit", fails)
    climb.scores = {"paid": 0.6, GOOD: [0.78, 0.81, 0.78, 0.79, 0.79]}
    climber = climb.climber(1000)
    climber.climb([parse_method(words) for words in ("paid", GOOD)])
    averages = [rung for rung in climber.rungs if rung.averages]
    assert [(rung.method.label, rung.decision, rung.reason) for rung in averages] == [(OF_TWO, "failed", "no memory")]
    chosen = climber.chosen()
    assert chosen is not None and (chosen.method.label, chosen.seed) == (GOOD, 1)


def test_the_time_of_an_average_is_that_of_a_run_besides_training() -> None:
    """What several runs share is in the training of each, and in the time that passed of the first alone."""
    method = parse_method(GOOD)
    costs = {"train_seconds": Cost(9.0, "s", "meter")}
    found = SimpleNamespace(costs=costs, shared=Phase(4.0, 4.0), spent=Phase(7.0, 7.0))
    known = Evidence(0.8, np.array([0.8]))
    rungs = [Rung(method, seed, result=cast(RunResult, found), evidence=known) for seed in (0, 1)]
    assert answering_seconds([], rungs[0].arm) == 0 and answering_seconds(rungs, rungs[0].arm) == 7 - (9 - 4)
    average = average_of(rungs, rungs[0].arm)
    assert average is not None and average.forecast is not None and average.forecast.seconds == 2
    assert average_of([*rungs, average], average.arm) is None


def test_runs_are_averaged_as_far_as_the_budget_goes(climb: Climb) -> None:
    climb.scores = {"paid": 0.6, GOOD: 0.79} | AVERAGES
    climber = climb.climber(32)
    climber.climb([parse_method(words) for words in ("paid", GOOD)])
    assert [rung.method.label for rung in climber.rungs if rung.averages] == [OF_TWO, OF_THREE]
    assert climber.account.spent() <= 32


@pytest.mark.parametrize(("budget", "first"), [(2000, OF_TWO), (785, "tuned:seconds=700")])
def test_an_average_comes_before_a_run_that_gains_less_in_its_time(budget: float, first: str, climb: Climb) -> None:
    """Unless the budget would not pay for that run afterwards."""
    slow = "tuned:seconds=700"
    climb.scores = {"paid": 0.6, GOOD: 0.79, slow: 0.7} | AVERAGES
    climber = climb.climber(budget)
    climber.climb([parse_method(words) for words in ("paid", GOOD, slow)])
    begun = ran(climber)
    assert begun[:2] == ["paid", GOOD]
    assert next(label for label in begun if label in (OF_TWO, slow)) == first


@pytest.mark.parametrize(("behind", "overtakes"), [(0.002, True), (0.3, False)])
def test_a_method_that_is_little_behind_overtakes_by_its_average(behind: float, overtakes: bool, climb: Climb) -> None:
    """By what its runs gain together; a method that is far behind is not run again."""
    other = "tuned:seconds=8:learning_rate=0.3"
    climb.scores = {"paid": 0.6, other: 0.79, GOOD: 0.79 - behind} | AVERAGES
    climber = climb.climber(1000)
    climber.climb([parse_method(words) for words in ("paid", other, GOOD)])
    chosen = climber.chosen()
    assert chosen is not None and bool(chosen.averages) == overtakes
    assert overtakes or ran(climber).count(GOOD) == 1


def test_what_starts_from_its_own_draw_is_not_averaged(climb: Climb) -> None:
    climber = climb(1000, {"paid": 0.6, "tuned:learning_rate=0.3": 0.7})
    assert not any(rung.averages for rung in climber.rungs)


def test_a_learning_rate_that_was_asked_for_is_left_alone(climb: Climb) -> None:
    climber = climb(1000, {"paid": 0.6, "tuned:learning_rate=0.3": 0.7})
    assert {rung.method.label for rung in climber.rungs} == {"paid", "tuned:learning_rate=0.3"}


def test_a_baseline_that_is_best_has_no_other_rates(climb: Climb) -> None:
    climber = climb(1000, {"paid": 0.9, "tuned": 0.2})
    assert {rung.method.label for rung in climber.rungs} == {"paid", "tuned"}
    assert climber.stopped == "nothing more is worth it"


def test_what_does_not_get_better_is_told_by_how_much(climb: Climb) -> None:
    climber = climb(100, {"paid": 0.6, "tuned:seconds=5": 0.4})
    first, second = climber.rungs[:2]
    assert (first.decision, first.reason) == ("kept", "")
    assert second.decision == "not better" and second.reason.endswith(" points against paid")
    low, high = (float(part.split()[0]) for part in second.reason.split(" to "))
    assert low < -20 < high < 0


def test_a_run_that_is_there_costs_nothing(climb: Climb) -> None:
    climb(100, {"paid": 0.5, "paid:seconds=20": 0.6})
    WATCH.seconds = 0.0
    climber = climb(10, {"paid": 0.5, "paid:seconds=20": 0.6, "paid:seconds=2": 0.7})
    assert [(rung.reused, rung.decision) for rung in climber.rungs] == [
        (True, "best so far"),
        (True, "best so far"),
        (False, "kept"),
    ]
    assert climber.account.spent() == pytest.approx(2.1)


def test_a_method_that_fails_does_not_end_it(climb: Climb) -> None:
    climber = climb(100, {"paid:learning_rate=10.0": 0.5, "paid:seconds=2": 0.6, "tuned:learning_rate=10.0": 0.5})
    found = {rung.method.label: (rung.decision, rung.reason) for rung in climber.rungs}
    assert found == {
        "paid:learning_rate=10.0": ("failed", "no luck"), "paid:seconds=2": ("kept", ""),
        "tuned:learning_rate=10.0": ("failed", "no luck"),
    }  # fmt: skip
    chosen = climber.chosen()
    assert chosen is not None and chosen.method.label == "paid:seconds=2"


def test_one_more_seed_that_fails_takes_no_good_run_away(climb: Climb) -> None:
    """There is a best choice at every moment: what was trained, and kept, is there."""
    DURING["tenth"] = ends(ValueError("no luck"), 2, seed=1)
    words = "tuned:seconds=2:learning_rate=0.3"
    climber = climb(3000, {"paid": 0.6, words: 0.606}, worth=0.0)
    runs = [(rung.seed, rung.decision) for rung in climber.rungs if rung.method.label == words]
    assert runs == [(0, "kept"), (1, "failed")]
    chosen = climber.chosen()
    assert chosen is not None and (chosen.method.label, chosen.seed) == (words, 0)


def test_one_that_cannot_be_measured_failed_and_does_not_end_it(climb: Climb) -> None:
    scores = {"paid": 0.5, "tuned": 0.7, "tuned:seconds=2": 0.6}
    climber = climb(100, scores, Foreseen(broken="tuned"))
    broken = rung_of(climber, "tuned")
    assert (broken.decision, broken.reason, broken.seconds) == ("failed", "nothing to measure", None)
    assert "tuned:seconds=2" in ran(climber)


def test_ctrl_c_in_the_second_run_leaves_the_first(climb: Climb) -> None:
    DURING["tenth"] = ends(KeyboardInterrupt(), 5)
    kept: list[int] = []
    climber = climb(100, {"paid": 0.6, "tuned:seconds=5": 0.9, "tuned:seconds=6": 0.9}, keep=lambda: kept.append(1))
    assert decisions(climber)[:2] == [("paid", "kept"), ("tuned:seconds=5", "interrupted")]
    assert climber.stopped == "interrupted" and climber.chosen() is climber.rungs[0]
    assert kept == [1] and ran(climber) == ["paid", "tuned:seconds=5"]
    assert climber.rungs[1].seconds == pytest.approx(0.1) and climber.rungs[1].result is None


def test_ctrl_c_while_measuring_leaves_what_there_is(climb: Climb, monkeypatch: pytest.MonkeyPatch) -> None:
    forecasts = Foreseen()
    measure = forecasts.forecast

    def interrupted(method: ConfiguredMethod) -> Forecast:
        if method.label == "tuned:seconds=5":
            raise KeyboardInterrupt
        return measure(method)

    monkeypatch.setattr(forecasts, "forecast", interrupted)
    climber = climb(100, {"paid": 0.6, "tuned:seconds=5": 0.9}, forecasts)
    assert climber.stopped == "interrupted" and climber.chosen() is climber.rungs[0]
    assert [rung.method.label for rung in climber.rungs] == ["paid", "tuned:seconds=5"]


def test_ctrl_c_before_anything_is_there_is_ctrl_c(climb: Climb) -> None:
    DURING["tenth"] = ends(KeyboardInterrupt(), 1)
    with pytest.raises(KeyboardInterrupt):
        climb(100, {"paid": 0.6, "paid:seconds=2": 0.6})


def test_what_is_there_is_kept_after_every_run(climb: Climb) -> None:
    best: list[tuple[int, str]] = []
    climb.scores = {"paid": 0.5, "paid:seconds=2": 0.6, "paid:seconds=3": 0.4}
    climber = climb.climber(100)

    def keep() -> None:
        chosen = climber.chosen()
        assert chosen is not None
        best.append((len(climber.rungs), chosen.method.label))

    climber.climb([parse_method(words) for words in climb.scores], keep)
    assert best == [(1, "paid"), (2, "paid:seconds=2"), (3, "paid:seconds=2")]


def test_the_method_with_the_highest_expected_score_is_chosen_and_its_best_run(climb: Climb) -> None:
    """One lucky run of another method is not as much as four good ones."""
    climber = climb.climber(1000)
    assert climber.chosen() is None
    climber._open([parse_method(words) for words in ("paid", "tuned:seconds=2", "tuned:seconds=3")])
    runs = [("paid", 0, 0.5), ("tuned:seconds=3", 0, 0.66)]
    runs += [("tuned:seconds=2", seed, score) for seed, score in enumerate((0.65, 0.659, 0.655, 0.652))]
    for words, seed, score in runs:
        method = parse_method(words)
        climber.rungs.append(Rung(method, seed, evidence=Evidence(score, np.full(1000, score))))
        climber.standing.begin(Arm.of(method))
        climber.standing.add(Arm.of(method), climber.rungs[-1].evidence, 1.0, False)  # type: ignore[arg-type]
    chosen = climber.chosen()
    assert chosen is not None
    assert (chosen.method.label, chosen.seed) == ("tuned:seconds=2", 1)


@pytest.mark.parametrize(("worth", "label"), [(0.005, "tuned:seconds=2"), (0.0, "tuned:seconds=3")])
def test_of_equals_the_cheapest_is_chosen(worth: float, label: str, climb: Climb) -> None:
    """The order by expected score alone goes by a thousandth of a point, unless the best is wanted at any cost."""
    climber = climb.climber(1000, worth=worth)
    climber._open([parse_method(words) for words in ("tuned:seconds=3", "tuned:seconds=2")])
    for words, score in (("tuned:seconds=3", 0.9001), ("tuned:seconds=2", 0.9)):
        method = parse_method(words)
        climber.rungs.append(Rung(method, 0, evidence=Evidence(score, np.full(1000, score))))
        climber.standing.begin(Arm.of(method))
        climber.standing.add(Arm.of(method), climber.rungs[-1].evidence, method.config["seconds"], False)  # type: ignore[arg-type]
    chosen = climber.chosen()
    assert chosen is not None and chosen.method.label == label


def test_a_recipe_that_makes_no_sense_is_told_before_any_run(climb: Climb) -> None:
    climber = climb.climber(100)
    climber.recipe = Recipe(epochs=-1)
    with pytest.raises(ConfigError, match="epochs"):
        climber.climb([parse_method("tuned")])
    assert WATCH.seconds == 0 and not climber.rungs


def test_a_result_is_there_before_operations_are_counted_and_counting_is_stopped(climb: Climb) -> None:
    """Counting each takes a third of the budget."""

    class Slow(Foreseen):
        def operations(self, method: ConfiguredMethod) -> float:
            WATCH.seconds += 0.0 if method.label.startswith("paid") else 4.0
            return super().operations(method)

    scores = {"tuned:seconds=1": 0.9, "tuned:seconds=2": 0.9, "tuned:seconds=3": 0.9, "tuned:seconds=4": 0.9}
    climber = climb(10, {**scores, "paid": 0.5}, Slow())
    chosen = climber.chosen()
    assert chosen is not None and chosen.method.label == "paid" and climber.stopped == SPENT
    assert WATCH.seconds <= 10 + 4
