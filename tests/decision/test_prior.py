"""The prior: what it learns of earlier boards, and how far that reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graftwork.decision.earlier_boards import Experience, ScoreOnTest, TaskRecord
from graftwork.decision.prior import FEATURES, Prior, Sizes, features_of, landmark_of, spread_of
from graftwork.decision.traits import FLOOR, FROZEN, SIMPLE, TUNED, Arm, Traits

MAJORITY, WORDS = Arm("majority", "majority", FLOOR), Arm("tfidf_svm", "tfidf_svm", SIMPLE)
PROBE, FULL = Arm("linear_probe", "linear_probe", FROZEN), Arm("full", "full", TUNED)
SHALLOW = Arm("top_layers:k=1", "top_layers", TUNED)
ARMS = (MAJORITY, WORDS, PROBE, SHALLOW, FULL)
TRAITS = Traits(rows=500, outputs=4, two_texts=False, words=12.0, kind="classification", backbone="minilm")


def record(name: str, gain: float, traits: Traits = TRAITS, level: float = 0.8) -> TaskRecord:
    """A board on which changing the network brings `gain` above the frozen one."""
    means = {MAJORITY: 0.3, WORDS: level - 0.05, PROBE: level, SHALLOW: level + gain / 2, FULL: level + gain}
    return TaskRecord(name, traits, {arm: ScoreOnTest(mean, 0.005, 3) for arm, mean in means.items()})


def expected_gain(prior: Prior, traits: Traits = TRAITS, level: float = 0.8) -> tuple[float, float]:
    """Mean and deviation of `full` less `linear_probe` on a new task."""
    belief = prior.belief(traits, ARMS, {MAJORITY: 0.3, WORDS: level - 0.05, PROBE: level})
    return belief.difference(ARMS.index(FULL), ARMS.index(PROBE))


def test_what_was_seen_is_expected_again() -> None:
    often = Prior(Sizes(), Experience(tuple(record(str(number), 0.04) for number in range(12))))
    seldom = Prior(Sizes(), Experience(tuple(record(str(number), -0.02) for number in range(12))))
    assert expected_gain(often)[0] == pytest.approx(0.04, abs=0.01)
    assert expected_gain(seldom)[0] == pytest.approx(-0.02, abs=0.01)
    nothing = expected_gain(Prior(Sizes(), Experience()))
    assert nothing[0] == 0 and nothing[1] > 2 * expected_gain(often)[1]


def test_other_backbones_and_kinds_teach_less() -> None:
    known = Prior(Sizes(), Experience(tuple(record(str(number), 0.04) for number in range(12))))
    mean, deviation = expected_gain(known)
    for other in (replace(TRAITS, backbone="another"), replace(TRAITS, kind="tagging")):
        further, wider = expected_gain(known, other)
        assert 0 < further < mean and wider > deviation


def test_of_texts_without_boards_little_is_known_of_methods_among_themselves() -> None:
    """Until there are boards of it: then half of what methods differ by is known, and the rest is each task's own."""
    sizes = Sizes(kinds=("classification",))
    boards = [record(str(number), 0.04) for number in range(12)]
    texts = replace(TRAITS, kind="generation", backbone="t5")

    def depth(traits: Traits, more: list[TaskRecord] = []) -> tuple[float, float]:  # noqa: B006
        belief = Prior(sizes, Experience((*boards, *more))).belief(traits, ARMS, {PROBE: 0.8})
        return belief.difference(ARMS.index(FULL), ARMS.index(SHALLOW))

    known, other = depth(TRAITS), depth(texts)
    spread = spread_of(0.8, 0.0)
    assert other[1] ** 2 - known[1] ** 2 > 0.9 * 2 * (sizes.own_outputs * spread) ** 2 and known[1] < 0.02 < other[1]
    assert depth(replace(TRAITS, kind="span", backbone="t5"))[1] < 0.02, "its methods train as those of other kinds"
    taught = depth(texts, [record(f"text{number}", 0.16, texts) for number in range(12)])
    assert other[0] < taught[0] and 0.5 < (taught[1] / other[1]) ** 2 < 0.65


def test_reading_pairs_together_may_gain_or_lose_more_than_methods_differ_by() -> None:
    """On one task; on the next it says nothing."""
    joint, sizes = Arm("cross_encoder:by=full", "cross_encoder", TUNED), Sizes()
    boards = [record(str(number), 0.04) for number in range(12)]
    told = [replace(one, scores={**one.scores, joint: one.scores[FULL]}) for one in boards]

    def deviation(known: list[TaskRecord], other: Arm) -> float:
        arms = (*ARMS, joint)
        belief = Prior(sizes, Experience(tuple(known))).belief(TRAITS, arms, {PROBE: 0.8})
        return belief.difference(arms.index(FULL), arms.index(other))[1] / spread_of(0.8, 0.0)

    assert deviation(boards, joint) > sizes.task_joint > 2 * deviation(boards, SHALLOW)
    assert deviation(told, joint) > sizes.task_joint


def test_gains_shrink_where_scores_are_near_their_end() -> None:
    known = Prior(Sizes(), Experience(tuple(record(str(number), 0.04) for number in range(12))))
    assert expected_gain(known, level=0.98)[0] < expected_gain(known, level=0.8)[0] / 2


def test_rows_decide_where_they_decided_before() -> None:
    few = [record(f"few{number}", 0.0, replace(TRAITS, rows=100)) for number in range(8)]
    many = [record(f"many{number}", 0.08, replace(TRAITS, rows=10_000)) for number in range(8)]
    prior = Prior(Sizes(tuned_by=(0.1,) * len(FEATURES)), Experience((*few, *many)))
    assert expected_gain(prior, replace(TRAITS, rows=10_000))[0] > expected_gain(prior, replace(TRAITS, rows=100))[0]


def test_a_method_that_nobody_tried_is_expected_to_be_like_its_sort() -> None:
    prior = Prior(Sizes(), Experience(tuple(record(str(number), 0.04) for number in range(12))))
    new = Arm("ia3", "ia3", TUNED)
    belief = prior.belief(TRAITS, (PROBE, new), {PROBE: 0.8})
    mean, deviation = belief.difference(1, 0)
    assert 0.01 < mean < 0.05 and deviation > 0


def test_the_unit_of_a_correlation_is_twice_that_of_a_share() -> None:
    assert spread_of(0.5, 0.0) == pytest.approx(0.5) and spread_of(0.0, -1.0) == pytest.approx(1.0)
    assert spread_of(0.6, -1.0) == pytest.approx(0.8)  # sqrt(1 - r²)
    assert spread_of(1.0, 0.0) > 0.1 and spread_of(-3.0, 0.0) > 0.1  # never nothing


def test_landmarks_are_of_methods_that_leave_the_network_alone() -> None:
    assert landmark_of({PROBE: 0.7, WORDS: 0.6, FULL: 0.9}) == 0.7
    assert landmark_of({}) == 0.5
    unknown = features_of(TRAITS, {})
    assert unknown.shape == (len(FEATURES),) and unknown[4] == unknown[5] == 0
    assert features_of(TRAITS, {WORDS: 0.7, PROBE: 0.6})[4] > 0 > features_of(TRAITS, {WORDS: 0.6, PROBE: 0.7})[4]


def test_what_is_shipped_is_sound() -> None:
    prior = Prior.load()
    assert len(prior.experience.tasks) >= 30
    belief = prior.belief(TRAITS, ARMS, {MAJORITY: 0.3, WORDS: 0.75, PROBE: 0.8})
    assert np.linalg.eigvalsh(belief.covariance).min() > -1e-9
    mean, deviation = belief.difference(ARMS.index(FULL), ARMS.index(MAJORITY))
    assert mean > 0 and deviation > 0
    assert belief.difference(ARMS.index(FULL), ARMS.index(SHALLOW))[0] > 0
