"""Suspected label errors: flipped labels are found, hard rows and empty classes are not."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.evaluate.label_errors import LabelSuspect, mean_probabilities, suspected_labels


def test_by_hand() -> None:
    chances = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.1, 0.9], [0.95, 0.05], [0.45, 0.55]])
    given = np.array([0, 0, 1, 1, 1, 0])  # thresholds: 0.683 and 0.583
    (found,) = suspected_labels(chances, given)
    assert (found.row, found.likely) == (4, 0)
    assert found.confidence == pytest.approx(0.05)
    assert isinstance(found, LabelSuspect)  # row 5 leans to class 1, and not as much as the rows of class 1 do


def test_flipped_labels_come_first() -> None:
    random = np.random.default_rng(0)
    true = random.integers(0, 4, 1_000)
    logits = random.normal(0, 1, (1_000, 4)) + 6 * np.eye(4)[true]
    given, flipped = true.copy(), random.permutation(1_000)[:50]
    given[flipped] = (true[flipped] + random.integers(1, 4, 50)) % 4
    found = suspected_labels(mean_probabilities([[logits]]), given)
    assert len({one.row for one in found[:50]} & {*flipped.tolist()}) >= 40
    assert [one.confidence for one in found] == sorted(one.confidence for one in found)
    assert all(one.likely != given[one.row] for one in found)


def test_a_class_without_examples_is_never_likely() -> None:
    chances = np.array([[0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.3, 0.6, 0.1]])
    assert {one.likely for one in suspected_labels(chances, np.array([0, 0, 1]))} <= {1}


def test_methods_count_alike_whatever_their_number_of_runs() -> None:
    sure, other = np.array([[50.0, 0.0]]), np.array([[0.0, 50.0]])
    assert mean_probabilities([[sure], [other, other, other]]) == pytest.approx(np.array([[0.5, 0.5]]))
