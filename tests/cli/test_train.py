"""`graft train` end to end: one run, its module, its price tag, and the second call that costs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.budget import climber
from graftwork.budget.ladder_lines import ladder_lines
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.run import RunResult
from graftwork.run.session import Session

Graft = Callable[..., Any]

QUICK = ("--backbone", "tiny_text", "--epochs", "1")


def test_a_run_is_told_and_its_module_answers(graft: Graft, tickets: Path) -> None:
    done = graft("train", tickets, *QUICK, "--method", "full", "--seed", "3")
    assert done.code == 0
    assert "method     full (learning_rate" in done.out
    assert "seed 3" in done.out
    assert "recipe     1 epoch of 32 rows a step" in done.out
    for words in ("validation accuracy", "test       accuracy", "price tag", "train_seconds", "stored_bytes"):
        assert words in done.out
    module = next(line.split()[-1] for line in done.out.splitlines() if line.startswith("Task module: "))
    answer = graft("predict", module, "where is my parcel")
    assert answer.code == 0
    assert answer.out.split()[0] in ("delivery", "billing", "technical")


def test_a_prefix_of_some_length(graft: Graft, tickets: Path) -> None:
    done = graft("train", tickets, *QUICK, "--method", "prefix:length=5", "--json")
    result = json.loads(done.out)
    assert done.code == 0 and result["costs"]["trained_parameters"]["value"] == 2 * 2 * 5 * 32 + 3 * (32 + 1)
    refused = graft("train", tickets, *QUICK, "--method", "prefix:length=0")
    assert refused.code == 2 and "length must be above 0, not 0" in refused.err


@pytest.mark.parametrize("command", [("train",), ("curve",), ("stream",), ("pretrain",)])
def test_a_seed_is_no_negative_number(graft: Graft, command: tuple[str, ...]) -> None:
    done = graft(*command, "builtin:tickets", "--seed", "-1")
    assert done.code == 2 and "--seed" in done.err and "-1" in done.err


def test_the_rate_that_is_told_is_the_one_it_ran_at(graft: Graft, tickets: Path) -> None:
    done = graft("train", tickets, *QUICK, "--method", "full", "--learning-rate", "0.00012")
    assert "has no effect" not in done.out
    assert "method     full (learning_rate 0.00012, " in done.out


def test_json_is_the_result(graft: Graft, tickets: Path) -> None:
    done = graft("train", tickets, *QUICK, "--method", "tfidf_svm", "--json")
    result = json.loads(done.out)
    assert (result["status"], result["seed"], result["reused"]) == ("ok", 0, False)
    assert result["scores"]["accuracy"] == 1.0
    stored = json.loads((Path(result["module"]).parent / "result.json").read_text(encoding="utf-8"))
    for key in ("id", "scores", "validation", "costs", "facts", "environment"):
        assert result[key] == stored[key]
    again = json.loads(graft("train", tickets, *QUICK, "--method", "tfidf_svm", "--json").out)
    assert again == result | {"reused": True}


def test_asking_again_costs_nothing_and_says_so(graft: Graft, tickets: Path) -> None:
    command = ("train", tickets, *QUICK, "--method", "linear_probe")
    first = graft(*command).out
    assert "existed already" not in first and "linear_probe does not use a training recipe: epochs has" in first
    assert "This run existed already and was reused." in graft(*command).out
    assert len(list(Path("runs").iterdir())) == 1


def test_a_run_of_compare_is_found(graft: Graft, tickets: Path) -> None:
    graft("compare", tickets, *QUICK, "--methods", "majority,linear_probe", "--seeds", "1")
    assert "This run existed already" in graft("train", tickets, *QUICK, "--method", "linear_probe").out


@pytest.mark.parametrize(
    "change",
    [
        ("--seed", "1"),
        ("--method", "top_layers:k=1:learning_rate=0.1"),
        *(
            pytest.param(change, marks=pytest.mark.slow)
            for change in (
                ("--learning-rate", "0.01"),
                ("--epochs", "2"),
                ("--batch-size", "8"),
                ("--backbone", "random:tiny_text"),
            )
        ),
    ],
    ids=lambda change: change[0],
)
def test_whatever_decides_the_result_makes_another_run(graft: Graft, tickets: Path, change: tuple[str, str]) -> None:
    command = ("train", tickets, *QUICK, "--method", "top_layers:k=1", "--json")
    first, second = json.loads(graft(*command).out), json.loads(graft(*command, *change).out)
    assert first["id"] != second["id"]
    assert not second["reused"]


def test_a_task_file_says_the_backbone_and_the_recipe(graft: Graft, tickets: Path) -> None:
    lines = (f'data = "{tickets.name}"', 'backbone = "tiny_text"', "epochs = 1", "batch_size = 8")
    Path("t.toml").write_text("\n".join(lines), encoding="utf-8")
    done = graft("train", "t.toml", "--method", "top_layers:k=1")
    assert done.code == 0
    assert "recipe     1 epoch of 8 rows a step" in done.out
    assert "recipe     1 epoch of 7 rows" in graft("train", "t.toml", "--method", "bitfit", "--batch-size", "7").out


def test_the_usual_batch_size_makes_the_usual_run(graft: Graft, tickets: Path) -> None:
    first = json.loads(graft("train", tickets, *QUICK, "--method", "top_layers:k=1", "--json").out)
    again = graft("train", tickets, *QUICK, "--method", "top_layers:k=1", "--batch-size", "32", "--json")
    assert json.loads(again.out)["id"] == first["id"]
    told = graft("train", tickets, "--backbone", "tiny_text", "--batch-size", "8", "--method", "linear_probe").out
    assert "linear_probe does not use a training recipe: batch_size has no effect." in told


def test_what_to_mind_about_the_data_is_said(graft: Graft, written: Callable[..., Path]) -> None:
    rows = [(f"row {i % 20}", "ab"[i % 2]) for i in range(40)]
    done = graft("train", written("twice.csv", ("text", "label"), rows), *QUICK, "--method", "majority")
    assert "about the data" in done.out
    assert "the text of an earlier row" in done.out


def test_a_run_that_fails_is_kept_with_its_price_and_exits_2(
    graft: Graft, tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graftwork.methods.tfidf_svm import TfidfSvm

    def explode(self: TfidfSvm, bench: Any) -> Any:
        raise RuntimeError("the solver gave up")

    monkeypatch.setattr(TfidfSvm, "fit", explode)
    done = graft("train", tickets, "--method", "tfidf_svm")
    assert done.code == 2
    assert "the run ended as failed: the solver gave up" in done.err
    run = next(Path("runs").iterdir())
    assert str(run) in done.err
    shown = graft("show", run.name)
    assert "(failed)" in shown.out
    assert "error      the solver gave up" in shown.out
    assert "train_seconds" in shown.out
    monkeypatch.undo()
    monkeypatch.chdir(tickets.parent)
    assert graft("train", tickets, "--method", "tfidf_svm").code == 0  # a failed run is tried again
    assert json.loads((run / "result.json").read_text(encoding="utf-8"))["status"] == "ok"


@pytest.mark.slow
def test_a_budget_climbs_prints_its_answer_and_its_ladder_and_leaves_a_module(
    graft: Graft, tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(climber, "MOST_SEEDS", 1)
    flags = (*QUICK, "--budget", "1h", "--out", "l", "--bank", "b", "--task", "t")
    done = graft("train", tickets, *flags)
    assert done.code == 0
    content = json.loads(Path("l/ladder.json").read_text(encoding="utf-8"))
    heading, answer, runs, *_ = done.out.split("\n\n")
    assert "budget 1 h 0 min" in heading
    chosen, methods = content["chosen"]["method"], content["decision"]["methods"]
    assert answer.startswith(f"Use {chosen}: test accuracy ") and " to train.\n" in answer
    assert f"below the best of {len(methods)}, by 3 validation rows" in answer
    assert f"of the budget; ended since {content['stopped']}" in answer
    ran = [rung for rung in content["rungs"] if rung["run"] or rung["decision"] in ("failed", "interrupted")]
    lines = runs.splitlines()[1:]
    for rung, line in zip(ran, lines, strict=True):
        assert line[:2] == ("> " if rung["chosen"] else "  ")
        assert line[2:].startswith(rung["method"]) and f"  {rung['decision']}" in line
        assert rung["reason"] in line and ("[" in line) == (rung["run"] is not None)
    assert sum(line.startswith(">") for line in lines) == 1
    assert all(rung["method"] in done.out for rung in content["rungs"])
    assert "Note: top_layers was not tried" in done.out and "Written: l/ladder.json" in done.out
    module = next(line.split()[-1] for line in done.out.splitlines() if line.startswith("Task module: "))
    assert graft("predict", module, "where is my parcel").code == 0
    assert json.loads(Path("b/tasks/t/1/module.json").read_text(encoding="utf-8"))["run"] == content["chosen"]["run"]
    again = graft("train", tickets, *flags, "--json")
    found = json.loads(again.out)
    assert found.pop("bank") == {"path": "b", "task": "t", "version": 1, "new": False}
    assert found == json.loads(Path("l/ladder.json").read_text(encoding="utf-8"))
    runs_of = {rung["run"] for rung in content["rungs"] if rung["run"]}
    assert all(rung["reused"] for rung in found["rungs"] if rung["run"] in runs_of)


def test_ctrl_c_leaves_the_best_choice_so_far(graft: Graft, tickets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = climber.execute

    def stopped(session: Session, method: ConfiguredMethod, *rest: Any) -> tuple[RunResult, bool]:
        if method.label == "linear_probe":
            raise KeyboardInterrupt
        return execute(session, method, *rest)

    monkeypatch.setattr(climber, "execute", stopped)
    done = graft("train", tickets, *QUICK, "--budget", "1h", "--out", "l")
    assert done.code == 0 and "ended since interrupted" in done.out
    content = json.loads(Path("l/ladder.json").read_text(encoding="utf-8"))
    assert [rung["decision"] for rung in content["rungs"] if rung["method"] == "linear_probe"] == ["interrupted"]
    assert content["chosen"]["method"] == "tfidf_svm" and "Use tfidf_svm: test accuracy" in done.out
    module = next(line.split()[-1] for line in done.out.splitlines() if line.startswith("Task module: "))
    assert graft("predict", module, "where is my parcel").code == 0


def test_a_budget_too_small_for_one_run_is_one_message(graft: Graft, tickets: Path) -> None:
    done = graft("train", tickets, *QUICK, "--budget", "0.001s")
    assert (done.code, done.out, done.err.count("graft:")) == (2, "", 1)
    assert "ladders/tickets: the budget does not pay for a single run" in done.err
    assert "got:      1 ms; reading the data, opening the backbone and measuring took" in done.err
    assert "do:       give about " in done.err
    assert json.loads(Path("ladders/tickets/ladder.json").read_text(encoding="utf-8"))["chosen"] is None
    assert list(Path("runs").iterdir()) == []


def ladder(*rungs: dict[str, Any], stopped: str = "nothing more is worth it") -> dict[str, Any]:
    """A `ladder.json` of which `full` was chosen, and these rungs beside it."""
    usual = {
        "seed": 0, "expected_gain": None, "predicted_seconds": 2.0, "seconds": 2.5, "reused": False, "run": None,
        "validation": None, "decision": "not worth it", "reason": "", "chosen": False,
    }  # fmt: skip
    full = {"method": "full", "run": "ab", "validation": {"score": 0.9, "low": 0.8, "high": 0.95}, "chosen": True}
    return {
        "task": {"name": "tickets"}, "metric": "accuracy", "backbone": {"id": "minilm"}, "seed": 0,
        "environment": {"precision": "fp32", "device": "cpu"}, "budget": {"amount": 60.0, "unit": "s"},
        "spent": {"amount": 30.0, "unit": "s", "grade": "meter", "share": 0.5}, "stopped": stopped, "notes": [],
        "chosen": {
            "method": "full", "scores": {"accuracy": 0.88}, "interval": [0.8, 0.93],
            "costs": {"train_seconds": {"value": 2.5}},
        },
        "decision": {
            "methods": [{"method": "full", "shortfall": 0.004, "low": 0.0, "high": 0.02}, {"method": "lora"}],
            "validation_rows": 1234, "boards": 40,
        },
        "rungs": [usual | full | {"decision": "kept"}, *(usual | rung for rung in rungs)],
    }  # fmt: skip


def test_the_answer_of_a_ladder_says_what_it_may_lack_and_what_it_is_known_by() -> None:
    lines = ladder_lines(ladder())
    assert lines[0] == "tickets · accuracy, points · minilm, fp32 on cpu · budget 1 min 0 s"
    assert lines[2] == "Use full: test accuracy 88.0 [80.0, 93.0], 2.5 s to train."
    assert lines[3] == (
        "It may be 0.4 points (0.0 … 2.0) below the best of 2, by 1,234 validation rows and 40 earlier boards."
    )
    assert lines[4] == "Spent 30 s (meter), 50 % of the budget; ended since nothing more is worth it."


def test_the_answer_of_a_ladder_has_the_baselines_beside_it() -> None:
    for majority, more in (
        (0.301, ""),
        (0.88, ""),
        (0.9, " full is below majority: label more rows before you use it."),
    ):
        told = ladder_lines(ladder() | {"baselines": {"majority": majority, "tfidf_svm": 0.8}})
        assert told[3] == f"Baselines on test: majority {100 * majority:.1f}, tfidf_svm 80.0.{more}"
    assert ladder_lines(ladder() | {"baselines": {"full": 0.88}})[3].startswith("It may be")  # the choice itself


def test_a_ladder_says_what_would_come_next() -> None:
    told = ladder_lines(
        ladder(
            {"method": "lora", "expected_gain": 0.0002}, {"method": "adapter", "expected_gain": 0.0031},
            {"method": "bitfit", "run": "cd", "expected_gain": 0.05, "decision": "not better"},
        )
    )  # fmt: skip
    assert told[4].endswith("ended since nothing more is worth it (next: adapter, 0.31 points expected).")


def test_methods_that_were_not_run_share_a_line_for_each_reason() -> None:
    """The table has runs alone; `ladder.json` has the forecast and the reason of every method."""
    left = [
        {"method": "lora", "expected_gain": 0.0002}, {"method": "adapter", "expected_gain": 0.0031},
        {"method": "bitfit", "decision": "not affordable"}, {"method": "ulmfit", "decision": "not tried"},
        {"method": "prefix", "decision": "failed", "reason": "no attention"},
    ]  # fmt: skip
    told = ladder_lines(ladder(*left))
    assert told[-3:] == [
        "Not worth their time, by the points expected: lora 0.02, adapter 0.31.",
        "Not affordable with what is left: bitfit.",
        "Not tried: ulmfit.",
    ]
    table = told[7 : told.index("", 7)]
    assert [line.split()[0] for line in table] == [">", "prefix"] and table[1].endswith("failed: no attention")


def test_what_cannot_be_measured_does_not_come_next() -> None:
    broken = {"method": "lora", "expected_gain": 0.05, "decision": "failed", "reason": "nothing to measure"}
    assert "next" not in ladder_lines(ladder(broken))[4]


def test_one_more_seed_is_a_line_of_its_own() -> None:
    lines = ladder_lines(ladder({"method": "full", "seed": 1, "run": "cd", "reused": True, "reason": "no gain"}))
    *_, first, second, _ = lines
    assert first.startswith("> full  ") and second.startswith("  full, seed 1  ")
    assert "there already" in second and second.endswith("not worth it: no gain")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "neither --method nor --budget"),
        (("--method", "full", "--budget", "5min"), "--method and --budget exclude each other"),
        (("--budget", "5 minutes"), "expected: a number above 0 and its unit: 90s, 5min, 1h"),
        (("--budget", "1EUR"), "a budget in money needs a price list"),
        (("--budget", "5min", "--learning-rate", "0.1"), "--learning-rate cannot be used with --budget"),
        (("--method", "full", "--out", "l"), "--out cannot be used with --method"),
        (("--method", "full", "--worth", "1"), "--worth cannot be used with --method"),
        (("--method", "full", "--worth", "0"), "--worth cannot be used with --method"),
        (("--method", "linear_probe", "--learning-rate", "0.1"), "graft ls methods linear_probe lists its settings"),
    ],
)
def test_flags_that_do_not_go_together(graft: Graft, tickets: Path, flags: tuple[str, ...], message: str) -> None:
    done = graft("train", tickets, *QUICK, *flags)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not Path("runs").exists()


def test_the_profile_adds_up_to_the_wall_time(graft: Graft, tickets: Path) -> None:
    done = graft("train", tickets.name, "--method", "lora", "--profile", *QUICK)
    shown = done.out[done.out.index("where the time went, of ") :].splitlines()
    phases = {line.split()[0]: float(line.split()[-2]) for line in shown if line.endswith("%")}
    assert {"tokenise", "forward", "backward", "optimiser", "evaluate", "write"} < phases.keys()
    whole = float(next(line for line in shown if "in all" in line).split()[-2])
    assert 95 <= whole <= 105
