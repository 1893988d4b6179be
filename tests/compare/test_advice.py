"""What to do about a board, in words that say what its decision says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from boards import beside, board, broken, decision, row, usual

from graftwork.compare.advice import advice, chosen_row, heading
from graftwork.decision.decision_json import content_of
from graftwork.decision.earlier_boards import Experience
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.standing import Standing
from graftwork.decision.traits import FLOOR, FROZEN, TUNED, Arm, Traits
from graftwork.run.score_interval import Evidence
from graftwork.units import percent

SHORTFALLS = {"full": 0.001, "adapter": 0.004, "linear_probe": 0.1281, "majority": 0.6}


def chosen(method: str, *more: Any, **settings: Any) -> dict[str, Any]:
    """The usual board, with this method chosen."""
    return board(usual(), decision=decision(method, SHORTFALLS, *more, **settings))


def test_what_to_use_is_said_first_with_its_test_score_and_its_price() -> None:
    (first, *_) = advice(chosen("adapter"))
    assert first == "Use adapter: accuracy 89.3 on test (85.0 … 92.9), 102 k parameters, 1 min 42 s to train."
    assert chosen_row(chosen("adapter"))["method"] == "adapter"  # type: ignore[index]


def test_what_is_below_the_majority_class_on_test_is_told_as_that() -> None:
    made = board([row("majority", 0.7, 0.001), row("full", 0.6, 200)], decision=decision("full", {"full": 0.0}))
    first, second, *_ = advice(made)
    floor = percent(next(one for one in made["rows"] if one["method"] == "majority")["scores"]["accuracy"]["mean"])
    assert first.startswith("Use full: accuracy ")
    assert second == f"On test it is below the majority class ({floor}): label more rows before you use it."
    assert not any("majority" in line for line in advice(chosen("adapter")))


def test_a_backbone_that_can_t_read_the_texts_is_said_first() -> None:
    made = chosen("adapter")
    for share, first in ((0.64, "tiny can't read 64% of these texts"), (0.19, "Use adapter")):
        told = {**made, "data_report": {**made["data_report"], "unknown_token_shares": {"train": share}}}
        assert advice(told)[0].startswith(first) and advice(told)[-len(advice(made)) :] == advice(made)


def test_a_method_without_parameters_is_told_without_them() -> None:
    made = chosen("linear_probe")
    chosen_row(made)["costs"]["trained_parameters"]["value"] = 0  # type: ignore[index]
    assert "parameters" not in advice(made)[0] and "12 s to train" in advice(made)[0]


def cheaper_line(price: float, of: float, gain: float, shortfall: float, worth: float = 0.005) -> str:
    """What is said of linear_probe beside full, at these prices."""
    rows = [row("majority", 0.3, 0.001), row("linear_probe", 0.8, price - 2), row("full", 0.93, of - 2)]  # seeds: + 2
    told = decision("full", {"full": 0.001, "linear_probe": shortfall}, beside("linear_probe", gain, 0.1, 0.12),
                    worth=worth)  # fmt: skip
    return advice(board(rows, decision=told))[1]


def test_a_cheaper_method_is_told_with_its_share_of_the_price_and_the_worth_that_would_choose_it() -> None:
    assert cheaper_line(25, 200, 0.118, 0.1281) == (
        "linear_probe costs 1/8, and is expected to be 11.8 points worse (9.8 … 13.8); --worth 12.9 takes it."
    )


@pytest.mark.parametrize(
    ("price", "of", "share"),
    [(25, 200, "1/8"), (70, 200, "1/3"), (190, 200, "about as much"), (2, 800, "next to nothing")],
)
def test_shares_of_a_price(price: float, of: float, share: str) -> None:
    assert cheaper_line(price, of, 0.01, 0.011).startswith(f"linear_probe costs {share}, and is expected to be 1.0 ")


@pytest.mark.parametrize(
    ("shortfall", "worth"), [(0.0081, "0.9"), (0.008, "0.8"), (0.01, "1"), (0.2, "20"), (0.00001, "0.1")]
)
def test_the_worth_that_is_named_would_be_enough(shortfall: float, worth: str) -> None:
    line = cheaper_line(25, 200, 0.02, shortfall)
    assert line.endswith(f"--worth {worth} takes it.") and float(worth) / 100 >= shortfall - 1e-9


def test_a_cheaper_method_that_is_not_expected_to_be_worse() -> None:
    assert cheaper_line(25, 200, -0.004, 0.001) == (
        "linear_probe costs 1/8, and is not expected to be worse (-1.6 … 2.4)."
    )


def test_a_cheaper_method_whose_row_is_not_on_the_board_is_not_told() -> None:
    told = decision("full", SHORTFALLS, beside("lost", 0.01, 0.01, 0.01))
    assert not any(line.startswith("lost costs") for line in advice(board(usual(), decision=told)))


def test_a_settled_choice_says_what_it_may_cost() -> None:
    assert advice(chosen("adapter"))[1] == (
        "It may be 0.4 points (0.0 … 0.8) below the best; no other method is likely to be better by more than 0.5."
    )
    assert "more than 2.0." in advice(chosen("adapter", worth=0.02))[1]


def unsettled(*rivals: tuple[str, int | None, int | None]) -> tuple[str, str]:
    """What is said of these rivals of full: their names, the rows and the runs that would tell."""
    told = [beside(name, 0.001, 0.0, rows=rows, runs=runs) for name, rows, runs in rivals]
    _, what, how, *_ = advice(chosen("full", None, told))
    return what, how


def test_a_choice_that_is_not_settled_says_with_whom_and_what_would_tell() -> None:
    assert unsettled(("adapter", 2345, 4)) == (
        "It may be 0.1 points (0.0 … 0.2) below the best. Not settled: full or adapter.",
        "About 2,300 more labelled rows to choose on, or 4 more runs of each, would settle the first two.",
    )


@pytest.mark.parametrize(
    ("rows", "runs", "words"),
    [
        (87, None, "About 87 more labelled rows to choose on would settle the first two."),
        (None, 3, "3 more runs of each would settle the first two."),
        (None, 1, "1 more run of each would settle the first two."),
        (None, None, "Neither more runs nor twenty times the rows would settle the first two: they are too close."),
    ],
)
def test_what_would_settle_it(rows: int | None, runs: int | None, words: str) -> None:
    what, how = unsettled(("adapter", rows, runs))
    assert what.endswith(" Not settled: full or adapter.") and how == words


def test_of_many_rivals_two_are_named_and_the_others_counted() -> None:
    what, how = unsettled(("adapter", None, 3), ("lora", 5, 5))
    assert what.endswith(" Not settled: full, adapter or lora.") and how.startswith("3 more runs of each")
    rivals = [(name, None, 3) for name in ("adapter", "lora", "bitfit", "dora")]
    assert unsettled(*rivals)[0].endswith(" Not settled: full, adapter, lora or 2 more.")


def test_how_it_is_known_is_told_apart_by_earlier_boards_and_by_these_rows() -> None:
    lines = advice(chosen("full", beside("linear_probe", 0.118, 0.1, 0.13)))
    assert lines[3:] == [
        "51 earlier boards alone say: full 10.0 points (8.0 … 12.0) above linear_probe.",
        "These 1,200 validation rows alone say: full 13.0 points (11.0 … 15.0) above linear_probe.",
    ]


@pytest.mark.parametrize(("reach", "nothing"), [(0.24, False), (0.26, True)])
def test_earlier_boards_that_leave_everything_open_are_said_to_say_nothing(reach: float, nothing: bool) -> None:
    told = beside("linear_probe", 0.118, 0.1, 0.13) | {"prior": (0.1, 0.1 - reach, 0.1 + reach)}
    lines = advice(chosen("full", told))
    assert ("51 earlier boards alone say: nothing of full and linear_probe." in lines) is nothing
    assert any(line.startswith("51 earlier boards alone say: full 10.0 points") for line in lines) is not nothing
    assert lines[-1].startswith("These 1,200 validation rows alone say: ")


def test_without_a_cheaper_method_it_is_told_of_a_rival_that_has_run() -> None:
    fresh = beside("lora", 0.0, 0.0, rows=None, runs=2)
    ran = beside("adapter", 0.0, 0.02, 0.001, rows=None, runs=2)
    lines = advice(chosen("full", None, [fresh, ran]))
    assert lines[3:] == [
        "51 earlier boards alone say: full 2.0 points (0.0 … 4.0) above adapter.",
        "These 1,200 validation rows alone say: full 0.1 points (-1.9 … 2.1) above adapter.",
    ]
    assert len(advice(chosen("full", None, [fresh]))) == 3, "these rows say nothing of one that has not run"


def test_nothing_is_minus_nothing() -> None:
    assert "full 0.0 points (-2.0 … 2.0) above" in advice(chosen("full", beside("adapter", 0.001, 0.1, -0.0001)))[-1]


def test_less_is_said_to_be_below() -> None:
    assert "full 3.0 points (1.0 … 5.0) below" in advice(chosen("full", beside("adapter", 0.001, 0.1, -0.03)))[-1]


def test_six_lines_at_most() -> None:
    rows = [row("majority", 0.3, 0.001, 1), row("linear_probe", 0.8, 10, 1), row("full", 0.93, 200, 1)]
    rival = beside("adapter", 0.001, 0.0, 0.0, rows=80, runs=3)
    told = decision("full", SHORTFALLS, beside("linear_probe", 0.118, 0.1, 0.13), [rival, rival, rival])
    lines = advice(board(rows, decision=told))
    assert len(lines) == 6 and max(map(len, lines)) <= 105, lines


def test_no_method_finished() -> None:
    assert advice(board([broken("full")])) == ["No method finished."]
    assert chosen_row(board([broken("full")])) is None


def test_a_board_of_an_older_version_says_what_it_did_not_choose() -> None:
    told = "nothing was chosen on validation."
    made = {key: value for key, value in board(usual()).items() if key != "decision"}
    (line,) = advice(made)
    assert line.startswith("The highest mean on test is full, accuracy 89.6 on test (") and line.endswith(told)
    assert chosen_row(made) is None
    (line,) = advice(board(usual()))
    assert line.endswith(told), "nor where no run on validation went through"


def test_a_decision_for_a_method_that_has_no_row_is_none() -> None:
    made = board(usual(), decision=decision("lora", {"lora": 0.0}))
    assert advice(made)[0].startswith("The highest mean on test is full") and chosen_row(made) is None


def test_the_heading_says_what_of_what_on_which_machine() -> None:
    rows = [row("majority", 0.3, 0.001, 3), row("lora", 0.8, 10, 1), row("full", 0.9, 200, 3), broken("adapter")]
    machine = {"precision": "fp32", "device": "cpu", "processor": "AMD EPYC, 2 cores", "accelerator": "H100"}
    made = board(rows, environment=machine)
    few = " (5 show a ranking, 10 support a claim)"
    where = "toy · accuracy, points · tiny, fp32 on cpu (AMD EPYC, 2 cores)"
    assert heading(made) == f"{where} · 1 to 3 runs of a method{few}"
    cuda = board(usual(), environment=machine | {"device": "cuda"}) | {"backbone": None}
    assert heading(cuda) == "toy · accuracy, points · no backbone, fp32 on cuda (H100) · 5 runs of a method"
    one = board([row("full", 0.9, 200, 1)])
    assert heading(one) == f"toy · accuracy, points · tiny · 1 run of a method{few}"


def test_the_decisions_here_are_like_those_of_a_comparison() -> None:
    """Key by key; and a real one is understood."""
    arms = {"majority": (FLOOR, 0.3), "linear_probe": (FROZEN, 0.8), "adapter": (TUNED, 0.9), "full": (TUNED, 0.91)}
    known = [Arm(name, name, sort) for name, (sort, _) in arms.items()]
    traits = Traits(rows=500, outputs=4, two_texts=False, words=12.0, kind="classification", backbone="tiny")
    standing = Standing(known, traits, 100, Prior(Sizes(), Experience()))
    for seed, (arm, (_, score)) in enumerate(zip(known, arms.values(), strict=True)):
        standing.begin(arm)
        draws = score + np.random.default_rng(seed).normal(0, 0.03, 200)
        standing.add(arm, Evidence(score, draws), 10.0**seed, False)
    found = content_of(standing, 0.005) | {"left": []}
    assert found["cheaper"] and found["rivals"], "else there would be nothing to compare"
    ours = decision("full", SHORTFALLS, beside("adapter", 0.0, 0.0, 0.0), [beside("lora", 0.0, 0.0, rows=1, runs=1)])
    assert ours.keys() == found.keys() and ours["cheaper"].keys() == found["cheaper"].keys()
    for key in ("methods", "rivals"):
        assert ours[key][0].keys() == found[key][0].keys()
    lines = advice(board(usual(), decision=found))
    assert lines[0].startswith(f"Use {found['chosen']}: accuracy ") and len(lines) == 6
