"""Which module to ship, in words that say what was shown and what was not."""

from __future__ import annotations

from typing import Any

from boards import board, decision, row

from graftwork.compare.advice import advice
from graftwork.compare.plots import shipped_chart
from graftwork.compare.shipped_lines import apart_lines, ship_lines, shipped_cells, shipped_table


def made(chosen: str | None, **of_int8: Any) -> dict[str, Any]:
    """A board of full, with two modules made of it."""
    found = board([row("full", 0.93, 200)], decision=decision("full", {"full": 0.001}))
    (own,) = found["rows"]
    merged = own | {
        "method": "full > merge", "of": "full", "exact": True, "shown": True, "speed_ratio": 1.01, "bytes": 45_600_000,
        "validation": 0.91, "loss": 0.0, "loss_at_most": 0.0,
    }  # fmt: skip
    smaller = merged | {
        "method": "full > merge > int8", "exact": False, "shown": False, "speed_ratio": 2.1, "loss": 0.011,
        "loss_at_most": 0.049, "bytes": 23_400_000,
    }  # fmt: skip
    tried = [{"rung": "half", "verdict": "no gain", "kept": False, "speed_ratio": 0.97}]
    shipped = {
        "worth": 0.005, "validation_rows": 61, "rows_needed": 598, "chosen": chosen,
        "rows": [merged, smaller | of_int8],
        "originals": [{"method": "full", "validation": 0.91, "bytes": 91_000_000, "tried": tried}],
        "left_out": [["tfidf_svm", "it uses no network"]], "frontier_cost": "predict_per_second",
    }  # fmt: skip
    return found | {"shipped": shipped}


def test_the_module_to_ship_is_told_second_with_its_speed_and_what_it_may_lose() -> None:
    told = made("full > merge > int8", shown=True, loss_at_most=0.004)
    assert advice(told)[1] == ship_lines(told)[0]
    start = "Ship full > merge > int8: 2.1 times as fast per prediction, 23.4 MB with its network, "
    assert ship_lines(told)[0].startswith(f"{start}at most 0.4 points lost; accuracy 89.6")
    assert "no answer changes" in ship_lines(made("full > merge"))[0]


def test_one_that_is_not_shown_to_lose_little_is_not_shipped_and_the_rows_for_it_are_told() -> None:
    assert ship_lines(made(None)) == [
        "Ship full as it is: full > merge > int8 is 2.1 times as fast per prediction, but may lose 4.9 points; 0.5 are "
        "allowed, which 61 rows of validation can't show: 598 are needed."
    ]
    assert "than timing varies" in ship_lines(made(None, speed_ratio=1.0))[0]
    slower = made(None)
    slower["shipped"]["rows"] = []
    assert ship_lines(slower) == ["Ship full as it is: no rung makes its predictions faster."]


def test_the_table_has_originals_and_what_became_of_them_in_the_width_of_a_page() -> None:
    cells = shipped_cells(made(None))
    assert [line[0] for line in cells] == ["full", "full > merge", "full > merge > int8"]
    assert [line[5] for line in cells] == ["–", "none", "1.1, 4.9"]
    assert apart_lines(made(None)) == [
        "Tried on full and not kept: half (no gain, 0.97 times as fast).",
        "tfidf_svm was not compressed: it uses no network."
    ]  # fmt: skip
    assert max(map(len, shipped_table(made(None), 60)[-2:])) <= 60
    assert "full &gt; merge &gt; int8" in str(shipped_chart(made(None)))


def test_a_board_without_compressed_modules_says_nothing_of_them() -> None:
    plain = {name: value for name, value in made(None).items() if name != "shipped"}
    assert (ship_lines(plain), shipped_cells(plain), shipped_table(plain, 100)) == ([], [], [])
    assert shipped_chart(plain) is None and not any("Ship" in line for line in advice(plain))
