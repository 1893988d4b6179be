"""How things stand: runs that come in one by one, what follows, what would settle it, and what is kept of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graftwork.decision.decision_json import content_of
from graftwork.decision.earlier_boards import Experience
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.settling import settling
from graftwork.decision.standing import Standing
from graftwork.decision.traits import FLOOR, FROZEN, TUNED, Arm, Traits
from graftwork.run.score_interval import Evidence

FLOOR_ARM, PROBE, SMALL, FULL = (
    Arm("majority", "majority", FLOOR), Arm("linear_probe", "linear_probe", FROZEN),
    Arm("lora", "lora", TUNED), Arm("full", "full", TUNED),
)  # fmt: skip
TRAITS = Traits(rows=500, outputs=4, two_texts=False, words=12.0, kind="classification", backbone="minilm")
SECONDS = {FLOOR_ARM: 0.1, PROBE: 1.0, SMALL: 5.0, FULL: 10.0}


def standing(rows: int = 100) -> Standing:
    return Standing((FLOOR_ARM, PROBE, SMALL, FULL), TRAITS, rows, Prior(Sizes(), Experience()))


def evidence(score: float, seed: int = 0, deviation: float = 0.03) -> Evidence:
    return Evidence(score, score + np.random.default_rng(seed).normal(0, deviation, 500))


def ran(scores: dict[Arm, float], rows: int = 100) -> Standing:
    there = standing(rows)
    for seed, (arm, score) in enumerate(scores.items()):
        there.begin(arm)
        there.add(arm, evidence(score, seed), SECONDS[arm], False)
    return there


def test_it_learns_run_by_run() -> None:
    there = ran({FLOOR_ARM: 0.3, PROBE: 0.7})
    before = there.posterior.gain(FULL, PROBE)[0]
    there.begin(FULL)
    there.add(FULL, evidence(0.9, 5), 10.0, False)
    assert there.posterior.gain(FULL, PROBE)[0] > before
    assert there.choice(0.005).chosen == FULL and there.prices[FULL] == 10.0
    assert there.landmarks == {FLOOR_ARM: 0.3, PROBE: 0.7, FULL: 0.9} and there.runs(FULL) == 1


def test_a_run_that_kept_its_best_epoch_counts_for_less() -> None:
    gains = []
    for kept in (False, True):
        there = ran({FLOOR_ARM: 0.3, PROBE: 0.7})
        there.add(FULL, evidence(0.75, 5), 10.0, kept)
        assert there.landmarks[FULL] == 0.75  # the score itself stays
        gains.append(there.posterior.gain(FULL, PROBE)[0])
    assert gains[1] < gains[0]


def test_a_method_that_failed_is_out() -> None:
    there = ran({FLOOR_ARM: 0.3, PROBE: 0.7, FULL: 0.9})
    there.give_up(FULL)
    assert there.choice(0.0).chosen == PROBE and FULL not in there.posterior.arms
    assert there.next_run(SECONDS, 5, 0.005, 100.0) is None or there.next_run(SECONDS, 5, 0.005, 100.0)[0] != FULL  # type: ignore[index]


def test_one_that_comes_later_is_a_candidate_too() -> None:
    there = ran({FLOOR_ARM: 0.3, PROBE: 0.7})
    faster = Arm("full:learning_rate=0.1", "full", TUNED)
    there.admit(faster)
    assert there.begun[faster] == 0 and faster in there.posterior.arms


def test_what_is_on_its_way_counts_as_expected() -> None:
    there = ran({FLOOR_ARM: 0.3, PROBE: 0.7})
    first = there.next_run(SECONDS, 5, 0.005, 1000.0)
    assert first is not None
    there.begin(first[0])
    second = there.next_run(SECONDS, 5, 0.005, 1000.0)
    assert second is None or second[0] != first[0] or second[1] < first[1]


def test_nothing_is_worth_a_large_part_of_what_there_is() -> None:
    there = ran({FLOOR_ARM: 0.3, PROBE: 0.7, SMALL: 0.9, FULL: 0.5}, rows=5000)
    assert there.next_run(SECONDS, 5, 0.05, 0.01) is None


def test_prior_and_rows_are_told_apart() -> None:
    there = ran({PROBE: 0.7, FULL: 0.9}, rows=60)
    expected, seen, joined = (
        there.expected_before(FULL, PROBE),
        there.seen(FULL, PROBE),
        there.posterior.gain(FULL, PROBE),
    )
    assert expected[0] == pytest.approx(0.0) and seen[0] == pytest.approx(0.2, abs=0.01)
    assert expected[0] < joined[0] < seen[0]
    for mean, low, high in (expected, seen, joined):
        assert low < mean < high


def test_more_rows_settle_what_few_leave_open() -> None:
    there = ran({FLOOR_ARM: 0.3, PROBE: 0.7, SMALL: 0.74, FULL: 0.70}, rows=40)
    found = settling(there, SMALL, FULL, 0.005)
    assert found.rows is None or found.rows > 0
    clear = ran({FLOOR_ARM: 0.3, PROBE: 0.7, SMALL: 0.95, FULL: 0.4}, rows=4000)
    assert settling(clear, SMALL, FULL, 0.005).rows in (0, 1)
    exactly = ran({SMALL: 0.7, FULL: 0.7}, rows=40)
    gain = exactly.posterior.gain(SMALL, FULL)[0]
    assert settling(exactly, SMALL, FULL, -gain).rows is None  # a tie with what it is worth: nothing settles that


def test_what_is_kept_is_json_and_says_all() -> None:
    there = ran({FLOOR_ARM: 0.3, PROBE: 0.7, SMALL: 0.72})
    content = json.loads(json.dumps(content_of(there, 0.005)))
    assert content["worth"] == 0.005 and content["chosen"] in ("lora", "linear_probe")
    assert [one["method"] for one in content["methods"]] == ["majority", "linear_probe", "lora", "full"]
    assert content["methods"][3]["runs"] == 0 and content["methods"][3]["validation"] is None
    assert content["validation_rows"] == 100 and content["boards"] == 0 and content["traits"]["rows"] == 500
    for rival in content["rivals"]:
        assert set(rival) == {"method", "ran", "gain", "prior", "rows_alone", "rows", "runs"}
    assert Traits(**content["traits"]) == TRAITS
