"""The race's decisions: the rate that is kept, who is clearly behind, and who is not."""

from __future__ import annotations

import numpy as np
import pytest
from boards import Share, hits

from graftwork.compare import race
from graftwork.compare.race import Try, at_rate, behind, best_rate, not_searched, races, rates, worse_half
from graftwork.compare.statistics import Sample
from graftwork.run.methods import parse_method


def tries(*scores: float | None) -> list[Try]:
    return [
        Try(rate, str(rate), "failed" if score is None else "ok", score)
        for rate, score in zip((1.0, 0.5, 2.0), scores, strict=True)
    ]


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ((0.8, 0.9, 0.7), 0.5),
        ((0.8, 0.8, 0.8), 1.0),
        ((0.7, 0.8, 0.8), 0.5),
        ((None, 0.1, 0.2), 2.0),
        ((-0.5, -0.2, None), 0.5),
        ((None, None, None), 1.0),
    ],
)
def test_the_best_rate_is_kept_and_the_own_one_of_equals(scores: tuple[float | None, ...], kept: float) -> None:
    assert best_rate(tries(*scores)) == kept


def test_methods_with_a_learning_rate_race_and_no_others() -> None:
    names = (
        "majority",
        "dan",
        "linear_probe",
        "scalar_mix",
        "contrastive",
        "no_transfer:by=full",
        "top_layers",
        "lora",
    )
    assert [name for name in names if races(parse_method(name))] == ["top_layers", "lora"]


def test_whose_rate_was_not_searched_beside_others_is_said() -> None:
    chosen = [parse_method(name) for name in ("full", "dan", "no_transfer:by=full", "no_transfer:by=linear_probe")]
    (note,) = not_searched(chosen, ["full"])
    assert note.startswith("no_transfer:by=full: the race did not search its learning rate, as it did that of full;")
    assert not_searched(chosen, []) == ()


def test_rates_are_around_the_methods_own_unless_one_was_given() -> None:
    own = parse_method("adapter").config["learning_rate"]
    assert rates(parse_method("adapter:size=8")) == [own, own / 2, own * 2]
    assert rates(parse_method("adapter:learning_rate=0.5")) == []
    assert rates(parse_method(f"adapter:learning_rate={own}")) == []


def test_a_method_at_another_rate_is_the_one_that_names_it() -> None:
    faster, asked = at_rate(parse_method("adapter:size=8"), 0.002), parse_method("adapter:size=8:learning_rate=0.002")
    assert (faster.method, faster.config) == (asked.method, asked.config)


def sample(name: str, share: float, seeds: int = 1) -> Sample:
    return Sample(name, tuple(hits(share, seed) for seed in range(seeds)))


def test_who_is_clearly_behind_goes_and_says_why() -> None:
    lost = behind([sample("a", 0.9), sample("b", 0.89), sample("c", 0.6), sample("d", 0.5)], Share(), "here", looks=3)
    assert [drop.method for drop in lost] == ["d", "c"]
    worst = lost[0]
    assert (worst.stage, worst.leader) == ("here", "a")
    assert worst.validation == hits(0.5, 0).mean() and worst.leader_validation == hits(0.9, 0).mean()
    assert worst.why.startswith("worse than a on validation, p = ")


def test_one_alone_is_not_behind() -> None:
    assert behind([], Share(), "", looks=1) == [] == behind([sample("a", 0.9)], Share(), "", looks=1)


def test_the_worse_half_goes_and_says_that_this_shows_nothing() -> None:
    lost = worse_half({"a": 0.8, "b": 0.9, "c": 0.7, "d": 0.6, "e": 0.5}, "here")
    assert [(drop.method, drop.leader, drop.stage) for drop in lost] == [("e", "b", "here"), ("d", "b", "here")]
    assert (lost[0].validation, lost[0].leader_validation) == (0.5, 0.9)
    assert "does not show it to be worse" in lost[0].why


def test_two_stay_and_equals_of_the_last_that_stays() -> None:
    assert worse_half({}, "") == [] == worse_half({"a": 0.9, "b": 0.1}, "")
    assert [drop.method for drop in worse_half({"a": 0.9, "b": 0.2, "c": 0.1}, "")] == ["c"]
    assert worse_half({"a": 0.9, "b": 0.5, "c": 0.5}, "") == []
    assert [drop.method for drop in worse_half({"a": -0.1, "b": -0.3, "c": -0.2, "d": -0.2}, "")] == ["b"]


def test_the_more_looks_the_more_it_takes() -> None:
    near = [sample("a", 0.80), sample("b", 0.76)]
    assert behind(near, Share(), "", looks=1)
    assert not behind(near, Share(), "", looks=10_000)


def runs_of(truth: np.ndarray, luck: np.random.Generator, examples: np.ndarray) -> list[Sample]:
    """One run each: examples are hard or easy for all, the rest is the method's and the run's luck."""
    answers = [(examples + luck.normal(0, 0.3, len(examples)) < share).astype(float)[:, None] for share in truth]
    return [Sample(f"m{number}", (right,)) for number, right in enumerate(answers)]


@pytest.mark.parametrize(
    ("truth", "at_most", "at_least"), [([1.0] * 5, 0.06, 0.0), ([1.3, 1.0, 1.0, 1.0, -0.5], 0.0, 0.95)]
)
def test_equals_rarely_go_the_best_never_and_the_hopeless_do(
    truth: list[float], at_most: float, at_least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over 80 simulated looks: how often the first of five goes, and how often the last."""
    monkeypatch.setattr(race, "DRAWS", 100)
    luck, lost = np.random.default_rng(3), []
    for _ in range(80):
        runs = runs_of(np.array(truth), luck, luck.normal(0, 1, 200))
        lost.append({drop.method for drop in behind(runs, Share(), "", looks=5)})
    assert np.mean(["m0" in gone for gone in lost]) <= at_most
    assert np.mean(["m4" in gone for gone in lost]) >= at_least
    if at_least == 0:
        assert np.mean([bool(gone) for gone in lost]) <= at_most


def test_the_rule_states_its_numbers() -> None:
    for words in ("1/8 of its steps (at least 20)", "once, half and twice", "1/4 of its steps", "below 0.05 divided by",
                  "at least 2 stay", "No price decides", "test split is never looked at"):  # fmt: skip
        assert words in race.rule()
    assert "the others run in full" in race.rule() and "trained by gradient races" not in race.rule()
    assert "the others (dan, majority) run in full as they come, also those" in race.rule(["dan", "majority"])
    assert (race.FACTORS, race.RATE_SHARE, race.METHOD_SHARE, race.ALWAYS_KEPT) == ((1, 0.5, 2), 1 / 8, 1 / 4, 2)
