"""Calibration: bins, the expected calibration error, and the temperature of a module."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from graftwork.core.ragged import Ragged
from graftwork.errors import IncompatibleModule
from graftwork.module.calibration import at_temperature, calibration_error, calibration_of, reliability, temperature_of
from graftwork.registry import kinds


def drawn(rows: int, temperature: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits (rows, 4) that are `temperature` times too large, and classes drawn from their true probabilities."""
    random = np.random.default_rng(seed)
    true = random.normal(size=(rows, 4)) * 1.5
    chances = np.exp(log_softmax(true, axis=1))
    classes = np.array([random.choice(4, p=row) for row in chances])
    return true * temperature, classes


def test_bins_hold_equally_many_rows_and_their_means() -> None:
    confidences = np.linspace(0.5, 1, 30)
    right = np.arange(30) >= 10
    bins = reliability(confidences, right, bins=3)
    assert [one.rows for one in bins] == [10, 10, 10]
    assert [one.accuracy for one in bins] == [0, 1, 1]
    assert bins[0].confidence == pytest.approx(confidences[:10].mean())
    by_hand = sum(abs(confidences[a : a + 10].mean() - right[a : a + 10].mean()) for a in (0, 10, 20)) / 3
    assert calibration_error(bins) == pytest.approx(by_hand)


def test_equal_confidences_share_a_bin_whatever_the_order_of_the_rows() -> None:
    confidences, right = np.repeat([0.6, 0.9], [7, 5]), np.array([1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1])
    bins = reliability(confidences, right)
    assert [(one.rows, one.low, one.high) for one in bins] == [(7, 0.6, 0.6), (5, 0.9, 0.9)]
    mixed = np.random.default_rng(0).permutation(12)
    assert reliability(confidences[mixed], right[mixed]) == bins
    assert reliability([], []) == [] and calibration_error([]) == 0


def test_the_temperature_that_was_put_in_is_found_and_lowers_the_error_on_test() -> None:
    answered = {"validation": drawn(2000, 3.0, 1), "test": drawn(2000, 3.0, 2)}
    found = calibration_of(kinds.get("classification"), answered)
    assert found is not None and found["temperature"] == pytest.approx(3.0, rel=0.1) and not found["why"]
    for split in ("validation", "test"):
        assert found[split]["before"]["ece"] > 0.1 > 2 * found[split]["after"]["ece"]
        assert found[split]["after"]["nll"] < found[split]["before"]["nll"]


def test_the_loss_is_that_of_the_right_class() -> None:
    logits, classes = drawn(60, 1.0, 3)
    found = calibration_of(kinds.get("classification"), {"validation": (logits, classes), "test": (logits, classes)})
    assert found is not None
    by_hand = -log_softmax(logits, axis=1)[np.arange(60), classes].mean()
    assert found["test"]["before"]["nll"] == pytest.approx(by_hand)


def test_the_temperature_stays_1_for_few_rows_for_no_wrong_answer_and_for_no_gain() -> None:
    kind, few, many = kinds.get("classification"), drawn(49, 3.0, 1), drawn(400, 1.0, 5)
    sure = (np.eye(4)[np.arange(200) % 4] * 2, np.arange(200) % 4)
    for given, why in ((few, "fewer than 50"), (sure, "no wrong answer"), (many, "does not lower")):
        found = calibration_of(kind, {"validation": given, "test": few})
        assert found is not None and found["temperature"] == 1 and why in found["why"]
        assert found["validation"]["after"] == found["validation"]["before"]


def test_choices_of_different_number_share_one_probability() -> None:
    random = np.random.default_rng(0)
    counts = random.integers(2, 5, size=300)
    true = Ragged(random.normal(size=(counts.sum(), 1)) * 2, counts)
    marks = np.concatenate(
        [np.eye(len(own), dtype=int)[random.choice(len(own), p=np.exp(log_softmax(own[:, 0])))] for own in true]
    )
    targets = Ragged(np.stack([marks, true.owners], axis=1), counts)
    given = (at_temperature(true, 0.25), targets)
    found = calibration_of(kinds.get("choice"), {"validation": given, "test": given})
    assert found is not None and found["temperature"] == pytest.approx(4.0, rel=0.2)


def test_other_kinds_have_none_and_a_damaged_temperature_is_refused() -> None:
    assert calibration_of(kinds.get("regression"), {}) is None
    assert temperature_of({}) == 1
    for bad in (0, -1.0, float("nan"), "2", True, None):
        with pytest.raises(IncompatibleModule, match="temperature"):
            temperature_of({"calibration": {"temperature": bad}})
