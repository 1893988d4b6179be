"""The chart of the report: what it draws is what its axis says."""

from __future__ import annotations

from graftwork.pretrain.pretrain_report import loss_chart


def test_training_and_validation_are_of_one_unit() -> None:
    held = {"step": 1, "validation": {"validation": {"nats": 2.5}}}
    chart = str(loss_chart([{"step": 1, "loss": 30.0, "nats": 3.0}, held]))
    assert "nats per predicted token" in chart and "validation, step 1\n2.5" in chart
    assert ">30<" not in chart  # no tick of the loss with its penalties


def test_a_library_has_a_loss_of_its_own_or_none() -> None:
    chart = str(loss_chart([{"step": 1, "loss": 30.0}]))
    assert "nats" not in chart and "roughly" in chart and ">30<" in chart
    assert loss_chart([{"step": 1, "rate": 0.1}]) is None


def test_an_infinite_loss_is_left_out() -> None:
    assert "2.5" in str(loss_chart([{"step": 1, "nats": None}, {"step": 2, "nats": 2.5}, {"step": 3, "nats": 2.4}]))
