"""The figure of the report: what it plots is what its axis says."""

from __future__ import annotations

from graftwork.pretrain.pretrain_report import loss_figure


def test_training_and_validation_are_of_one_unit() -> None:
    held = {"step": 1, "validation": {"validation": {"nats": 2.5}}}
    figure = loss_figure([{"step": 1, "loss": 30.0, "nats": 3.0}, held])
    assert [trace["y"] for trace in figure["data"]] == [[3.0], [2.5]]
    assert figure["layout"]["yaxis"]["title"]["text"] == "nats per predicted token"


def test_a_library_has_a_loss_of_its_own_or_none() -> None:
    figure = loss_figure([{"step": 1, "loss": 30.0}])
    assert [trace["y"] for trace in figure["data"]] == [[30.0]]
    title = figure["layout"]["yaxis"]["title"]["text"]
    assert "nats" not in title and "roughly" in title
    assert loss_figure([{"step": 1, "rate": 0.1}])["data"] == []
