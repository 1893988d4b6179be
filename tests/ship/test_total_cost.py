"""`price` on boards, modules and runs whose price tags were written by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.compare.price_lines import answer_lines, number, price_lines, sentence
from graftwork.compare.price_page import render_price_page
from graftwork.errors import ConfigError, StorageError, UnknownName

YEAR = 365.25 * 86400
LIST = 'currency = "EUR"\nper_hour = 3.6\ndate = 2026-11-21\nsource = "a test"\n'
CARBON = 'country = "DEU"\ngrams_per_kwh = 360\ncarbon_year = 2023\ncarbon_source = "a test"\n'


def cost(value: float | None, unit: str, grade: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "grade": grade}


def tag(seconds: float, joules: float, latency: float | None, speed: float, size: int) -> dict[str, Any]:
    return {
        "total_seconds": cost(seconds, "s", "meter"),
        "energy_joules": cost(joules, "J", "counter"),
        "predict_latency_seconds": cost(latency, "s", "meter"),
        "predict_per_second": cost(speed, "per second", "meter"),
        "stored_bytes": cost(size, "bytes", "counter"),
    }


def row(method: str, score: float | None, runs: int, costs: dict[str, Any], status: str = "ok") -> dict[str, Any]:
    scores = {} if score is None else {"accuracy": {"mean": score}}
    config = {"name": method, "version": 1}
    return {
        "method": method, "config": config, "status": status, "n_seeds": runs, "n_failed": 0, "scores": scores,
        "costs": costs,
    }  # fmt: skip


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Full trains for 1,000 s and answers 1,000 a second; adapter 100 s and 500 a second."""
    rows = [
        row("full", 0.9, 1, tag(1000, 50_000, 0.004, 1000, 50_000_000)),
        row("adapter", 0.88, 2, tag(100, 5_000, 0.008, 500, 1_000_000)),
        row("majority", 0.2, 1, tag(1e-4, 0.01, 1e-6, 1e6, 3_000)),
        row("lora", None, 1, tag(100, 1, 0.1, 10, 10), status="failed"),
    ]
    board = {
        "task": {"name": "mail"}, "headline_metric": "accuracy", "backbone": None, "majority": 0.2, "rows": rows,
        "search_costs": {"wall_seconds": cost(1300.0, "s", "meter")}, "decision": {"chosen": "full"},
    }  # fmt: skip
    folder = tmp_path / "board"
    folder.mkdir()
    (folder / "leaderboard.json").write_text(json.dumps(board))
    return folder


def listed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return path


def by_name(content: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one for one in content["rows"]}


def crossing_of(content: dict[str, Any], way: str, quantity: str, names: set[str]) -> dict[str, Any] | None:
    found = [
        one
        for one in content["crossings"]
        if (one["way"], one["quantity"], {one["below"], one["above"]}) == (way, quantity, names)
    ]
    return found[0] if found else None


def test_training_of_all_runs_and_predictions_are_added(board: Path) -> None:
    content = gw.price(board, 1e6)
    found = by_name(content)
    assert found["full"]["in_batches"]["seconds"]["total"]["value"] == pytest.approx(1000 + 1e6 / 1000)
    assert found["adapter"]["in_batches"]["seconds"]["total"]["value"] == pytest.approx(2 * 100 + 1e6 / 500)
    assert found["adapter"]["one_at_a_time"]["seconds"]["total"]["value"] == pytest.approx(200 + 8000)
    assert found["adapter"]["in_batches"]["energy"]["each"]["value"] == pytest.approx(50 / 500)  # 5,000 J in 100 s
    assert found["adapter"]["in_batches"]["energy"]["each"]["grade"] == "model"
    assert content["left_out"] == [{"name": "lora", "reason": "no run of it finished"}]
    assert content["search_seconds"] == 1300


def test_they_cross_where_the_sum_says(board: Path) -> None:
    content = gw.price(board, 1e6)
    at = crossing_of(content, "in_batches", "seconds", {"full", "adapter"})
    assert at is not None and at["at"] == pytest.approx(800 / (1 / 500 - 1 / 1000), rel=1e-9)  # 800,000
    alone = crossing_of(content, "one_at_a_time", "seconds", {"full", "adapter"})
    assert alone is not None and alone["at"] == pytest.approx(200_000, rel=1e-9)
    batches, single = answer_lines(content)[2:4]
    assert batches.startswith("In full batches, above 800,000 predictions full is the cheaper one (than adapter)")
    assert single.startswith("One at a time, above 200,000 predictions full is the cheaper one (than adapter)")
    assert {"Where they cross, in full batches", "Where they cross, one at a time"} <= set(price_lines(content))


def test_rows_of_different_tasks_are_told(board: Path, tmp_path: Path) -> None:
    shutil.copytree(board, tmp_path / "other")
    path = tmp_path / "other" / "leaderboard.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"task": {"name": "calls"}}))
    told = "The rows are of different tasks: calls, mail. None replaces another"
    assert told in answer_lines(gw.price([board, tmp_path / "other"], 1e6))
    assert not any("different tasks" in line for line in answer_lines(gw.price(board, 1e6)))


def test_compressed_modules_of_a_board_are_priced_and_their_compression_once(board: Path) -> None:
    path = board / "leaderboard.json"
    told = json.loads(path.read_text())
    made = row("adapter > int8", 0.87, 1, tag(150, 7_500, 0.004, 1000, 1_000_000))  # 50 s more than the run
    shipped = {"rows": [made | {"of": "adapter", "seconds": 50.0}], "chosen": "adapter > int8"}
    path.write_text(json.dumps(told | {"shipped": shipped}))
    content = gw.price(board, 1e6)
    one = by_name(content)["adapter > int8"]
    assert one["runs"] == 2 and content["chosen"] == "adapter > int8"
    assert one["in_batches"]["seconds"]["training"]["value"] == pytest.approx(2 * 100 + 50)
    assert one["in_batches"]["energy"]["training"]["value"] == pytest.approx(50 * 250)
    assert one["in_batches"]["seconds"]["total"]["value"] == pytest.approx(250 + 1000)


def test_money_is_blank_without_a_price_list(board: Path) -> None:
    content = gw.price(board, 1e6)
    assert content["by"] == "seconds"
    assert by_name(content)["full"]["in_batches"]["money"]["total"]["value"] is None
    assert crossing_of(content, "in_batches", "money", {"full", "adapter"}) is None
    assert any("give --prices FILE" in line for line in answer_lines(content))


def test_money_and_storage_follow_the_price_list(board: Path, tmp_path: Path) -> None:
    prices = listed(tmp_path, LIST + "per_gb_month = 0.5\n" + CARBON)
    content = gw.price(board, 1e6, per="month", years=2, prices=prices)
    full = by_name(content)["full"]["in_batches"]
    assert content["predictions"] == 24e6 and content["by"] == "money"
    assert full["money"]["storage"]["value"] == pytest.approx(0.05 * 0.5 * 24)
    assert full["money"]["total"]["value"] == pytest.approx(1.0 + 0.6 + 24e6 / 1000 * 0.001)
    assert full["co2e"]["total"]["value"] == pytest.approx((50_000 + 24e3 * 50) / 3.6e6 * 360)
    assert full["machines"] == pytest.approx(24e3 / (2 * YEAR))
    unpriced = gw.price(board, 1e6, prices=listed(tmp_path, LIST))
    parts = by_name(unpriced)["full"]["in_batches"]["money"]
    assert parts["storage"]["value"] is None and parts["total"]["value"] == pytest.approx(2.0)
    assert "per_gb_month" in answer_lines(unpriced)[-1]


def test_hardware_has_its_own_speed_and_price(board: Path, tmp_path: Path) -> None:
    table = '[hardware.gpu]\ntimes_as_fast = 10\nper_hour = 7.2\ncurrency = "USD"\n'
    found = by_name(gw.price(board, 1e6, prices=listed(tmp_path, LIST + table), hardware="gpu"))["full"]["in_batches"]
    assert found["seconds"]["total"] | {"low": 0, "high": 0} == cost(200.0, "s", "guess") | {"low": 0, "high": 0}
    assert found["money"]["total"]["value"] == pytest.approx(0.4)
    assert found["money"]["total"]["unit"] == "USD"
    assert found["energy"]["total"]["value"] is None  # its watts are not known
    prices = listed(tmp_path, LIST + table + "watts = 300\n")
    assert by_name(gw.price(board, 1e6, prices=prices, hardware="gpu"))["full"]["in_batches"]["energy"]["total"][
        "value"
    ] == pytest.approx(60_000)
    assert by_name(gw.price(board, 0, prices=prices))["full"]["in_batches"]["money"]["total"]["value"] == 1.0


def test_a_pre_training_is_shared_by_those_who_stand_on_it(board: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pretraining"
    folder.mkdir()
    costs = {"total_seconds": cost(36_000, "s", "meter"), "energy_joules": cost(1e6, "J", "guess")}
    (folder / "result.json").write_text(json.dumps({"costs": costs}))
    found = by_name(gw.price(board, 1e6, pretraining=folder, tasks=100))
    assert found["adapter"]["in_batches"]["seconds"]["total"]["value"] == pytest.approx(2200 + 360)
    assert found["majority"]["in_batches"]["seconds"]["pretraining"]["value"] == 0
    with pytest.raises(ConfigError, match="none is named"):
        gw.price(board, 1e6, tasks=3)
    with pytest.raises(StorageError, match="not a pre-training"):
        gw.price(board, 1e6, pretraining=tmp_path)


def test_a_run_is_priced_like_a_board_of_one(board: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    costs = tag(100, 5_000, None, 500, 1_000_000)
    (run / "result.json").write_text(json.dumps({"costs": costs, "scores": {"accuracy": 0.5}}))
    (run / "spec.json").write_text(json.dumps({"method": {"name": "adapter", "version": 1}}))
    content = gw.price(run, 1e6)
    assert [one["name"] for one in content["rows"]] == ["adapter"]
    assert content["rows"][0]["one_at_a_time"]["seconds"]["total"]["value"] is None  # it was not measured
    assert "not known" in answer_lines(content)[1]
    assert [one["name"] for one in gw.price([board, run], 1)["rows"]][-1] == f"adapter ({run})"
    (run / "result.json").write_text(json.dumps({"costs": {}, "scores": {}}))
    with pytest.raises(ConfigError, match="no price tag"):
        gw.price(run, 1e6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"predictions": -1}, "predictions must be"),
        ({"predictions": float("nan")}, "predictions must be"),
        ({"per": "week"}, "unknown period"),
        ({"hardware": "gpu"}, "none is named"),
        ({"source": "nowhere"}, "nothing that has a price"),
    ],
)
def test_wrong_questions_are_refused(board: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, StorageError), match=message):
        gw.price(**{"source": board, "predictions": 1.0} | given)


def test_prices_need_a_date_and_hardware_a_speed(board: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'per_hour' without its date"):
        gw.price(board, 1, prices=listed(tmp_path, 'currency = "EUR"\nper_hour = 1\nsource = "a test"\n'))
    with pytest.raises(UnknownName, match="unknown hardware 'tpu'"):
        gw.price(board, 1, prices=listed(tmp_path, LIST + "[hardware.gpu]\ntimes_as_fast = 2\n"), hardware="tpu")
    with pytest.raises(ConfigError, match="without its speed"):
        gw.price(board, 1, prices=listed(tmp_path, LIST + "[hardware.gpu]\nwatts = 2\n"), hardware="gpu")
    with pytest.raises(ConfigError, match="'watts' has a wrong value"):
        table = "[hardware.gpu]\ntimes_as_fast = 2\nwatts = 0\n"
        gw.price(board, 1, prices=listed(tmp_path, LIST + table), hardware="gpu")
    with pytest.raises(ConfigError, match="'hardware' has a wrong value"):
        gw.price(board, 1, prices=listed(tmp_path, LIST + "hardware = 3\n"))


def test_the_answer_stands_above_and_the_page_has_its_charts(board: Path) -> None:
    content = gw.price(board, 1e9)
    lines = price_lines(content)
    assert len(answer_lines(content)) <= 6
    assert lines[: len(answer_lines(content))] == answer_lines(content)
    assert lines[0].startswith("1 billion predictions in full batches: full costs least")  # not the majority class
    page = render_price_page(content)
    assert page.count("<svg viewBox") >= 2 and "full is the cheaper one" in page
    assert render_price_page(gw.price(board, 0)).count("<script") == 1  # the page's own


def test_numbers_and_sentences_are_readable() -> None:
    assert [number(value) for value in (12, 45_000, 3.1e6, 1e9)] == ["12", "45,000", "3.1 million", "1 billion"]
    whole = {"below": "full", "above": "adapter", "at": 3.1e6, "open_from": None, "open_to": None}
    assert sentence(whole) == "above 3.1 million predictions adapter is the cheaper one (than full)"
    assert sentence(whole | {"at": 0.0}).endswith("from the first prediction on")
    assert sentence(whole | {"at": None, "open_from": 0.0}).endswith("for any number the bands overlap")
