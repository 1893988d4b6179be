"""The pages in a real browser: widths, colour schemes, sorting, axes to choose, and axe-core's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from boards import RowRuns, beside, board, broken, decision, receipts, row, usual

from graftwork.compare.curve_page import render_page
from graftwork.compare.leaderboard_report import page as made_page
from graftwork.compare.leaderboard_report import render_report
from graftwork.compare.mistakes_page import mistakes_section
from graftwork.compare.price_page import render_price_page
from graftwork.compare.tasks_data import over_tasks
from graftwork.compare.tasks_report import render_tasks
from graftwork.io.files import finite, write_json
from graftwork.ship.total_cost import price as price_of

pytestmark = [pytest.mark.slow, pytest.mark.browser]

WIDTHS = (390, 1280, 1920)
SCHEMES = ("light", "dark")
Open = Callable[..., Any]


def report(folder: Path) -> str:
    """A board of every sort of row."""
    told = decision("full", {"full": 0.001, "adapter": 0.004}, beside("adapter", 0.002, 0.01, 0.003))
    rows = [*usual(), broken("a_method_with_a_long_name")]
    report = {"warnings": ["Few rows."], "classes": {"train": {"a": 3, "b": 4}, "test": {"a": 1, "b": 2}}}
    made = board(rows, decision=told, command="graft compare toy.csv " + 30 * "--long x ", data_report=report)
    for one in made["rows"]:  # as many prices as a board has
        one["costs"] |= {
            "train_cpu_seconds": {"value": 90.5, "unit": "s", "grade": "counter"},
            "stored_parameters": {"value": 27_700, "unit": "parameters", "grade": "counter"},
            "padding_flops": {"value": 2.37e11, "unit": "FLOP", "grade": "model"},
            "predict_flops": {"value": 3.42e8, "unit": "FLOP", "grade": "counter"},
        }
    return render_report(
        made, receipts(rows), mistakes_section(wrong(), None), 'graft predict runs/0123/module "a text"'
    )


def wrong() -> dict[str, Any]:
    """What goes wrong on a test split of 24 rows and 12 classes: every sort of note, and words that decided."""
    names = [f"class_{number}" for number in range(12)]
    pairs = [{"true": name, "found": said, "count": 1, "right": said == name, "share": 0.5}
             for place, name in enumerate(names) for said in (name, names[place - 1])]  # fmt: skip
    lines = [{"true": name, "total": 2, "cells": [
        next((pair | {"pair": at} for at, pair in enumerate(pairs) if (pair["true"], pair["found"]) == (name, said)),
             None) for said in names]} for name in names]  # fmt: skip
    examples = [{
        "id": f"test/{at}", "inputs": [["text", f"where is my card {at}?"]], "target": pair["true"],
        "answers": [[pair["found"], 0.9 - at / 100, pair["right"]], ["class_0", None, pair["true"] == "class_0"]],
        "confusions": [at], "like": "train/3",
        "suspect": {"rank": at + 1, "likely": "class_1", "confidence": 0.1},
        "words": {"text": [["where", 60.0], ["is", -40.0], ["my", 5.0], ["card", 0.0]]},
    } for at, pair in enumerate(pairs)]  # fmt: skip
    one = {"support": 2, "precision": 0.5, "recall": None, "interval": [0.1, 0.9], "f1": 0.5, "runner_up": 0.25}
    bins = [{"rows": 12, "confidence": at, "accuracy": at - 0.1, "interval": [at - 0.2, at]} for at in (0.5, 0.9)]
    return {
        "chosen": "full", "run": "full-0", "right_means": "the class of the target", "rows": 24, "wrong": 12,
        "confusions": pairs, "table": {"founds": names, "lines": lines}, "classes": [one | {"name": n} for n in names],
        "runner_up": "tfidf_svm", "one_class": True, "reliability": bins, "examples": examples,
        "methods": ["full", "tfidf_svm"], "suspects": 24, "words_of": 12, "words_seconds": 1.5,
    }  # fmt: skip


def tasks(folder: Path) -> str:
    """A board over five tasks, one of which failed."""

    def one(full: float, svm: float) -> dict[str, Any]:
        rows: list[RowRuns] = [row("majority", 0.3, 0.01), row("full", full, 100), row("tfidf_svm", svm, 1)]
        return board([*rows, row("lora", (full + svm) / 2, 30)])

    shares = {"reviews": (0.9, 0.8), "tickets": (0.7, 0.72), "spam": (0.95, 0.6), "stance": (0.62, 0.6)}
    content = over_tasks({name: one(*share) for name, share in shares.items()}, {"bad": "bad.csv: no rows"})
    return render_tasks(content | {"name": "tasks"}, folder)


def curve(folder: Path) -> str:
    """Two methods at two sizes."""

    def point(method: str, rows: float, mean: float) -> dict[str, Any]:
        score = {"mean": mean, "sd": 0.02, "low": mean - 0.05, "high": mean + 0.05}
        return {
            "method": method, "size": f"{rows:g}", "rows": rows, "n_draws": 2, "n_failed": 0,
            "scores": {"accuracy": score}, "by_draw": {"0": {"accuracy": mean - 0.01}, "1": {"accuracy": mean + 0.01}},
            "costs": {"train_seconds": {"value": rows / 10, "unit": "s", "grade": "meter"}},
        }  # fmt: skip

    return render_page({
        "task": {"name": "toy"}, "backbone": {"id": "tiny"}, "headline_metric": "accuracy", "draws": 2,
        "sizes": [{"size": f"{rows:g}", "rows": rows} for rows in (10.0, 80.0)],
        "methods": [{"method": "full", "transfers": True}, {"method": "tfidf_svm", "transfers": False}],
        "points": [point(name, rows, mean) for name, rows, mean in
                   (("full", 10, 0.6), ("full", 80, 0.8), ("tfidf_svm", 10, 0.4), ("tfidf_svm", 80, 0.7))],
        "savings": [], "notes": ["A note."], "search_costs": {}, "environment": {}, "data_report": {},
        "command": "graft curve toy.csv",
    })  # fmt: skip


def price(folder: Path) -> str:
    """What a million predictions of a board's methods cost."""
    write_json(folder / "leaderboard.json", finite(board([row("full", 0.9, 900), row("tfidf_svm", 0.8, 2)])))
    return render_price_page(finite(price_of(folder, 1e6)))


def data(folder: Path) -> str:
    """A data report with tables in tables."""
    found = {"rows": {"train": 30, "test": 10}, "classes": {"train": {"a": 20, "b": 10}, "test": {"a": 5, "b": 5}},
             "cues": {"strongest": [{"word": "who", "share": 0.8}, {"word": "many", "share": 0.7}]}}  # fmt: skip
    return made_page("data.html.j2", {"title": "toy", "kind": "classification", "warnings": ["Few."], "report": found})


PAGES = {made.__name__: made for made in (report, tasks, curve, price, data)}


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page from the disk; in the end no script may have failed."""
    wrong: list[str] = []

    def tab(name: str, width: int = 1280, scheme: str = "light", **how: bool) -> Any:
        path = tmp_path / f"{name}.html"
        path.write_text(PAGES[name](tmp_path), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **how)
        made = context.new_page()
        made.on("pageerror", lambda error: wrong.append(str(error)))
        made.goto(path.as_uri())
        return made

    yield tab
    assert wrong == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(opened: Open, name: str, width: int) -> None:
    tab = opened(name, width)
    tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing(opened: Open, name: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")
    for width in WIDTHS:
        tab = opened(name, width, scheme)
        tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        found = axe.Axe().run(tab)
        told = [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found.response["violations"]]
        assert told == [] and len(found.response["passes"]) > 20


@pytest.mark.parametrize("scheme", SCHEMES)
def test_charts_turn_with_the_page(opened: Open, scheme: str) -> None:
    tab = opened("report", scheme=scheme)
    ink, paper = tab.evaluate("""[document.querySelector('.chart svg text'), document.documentElement].map(
        (one, at) => getComputedStyle(one)[at ? "backgroundColor" : "fill"].match(/\\d+/g).map(Number))""")
    assert len(ink) == len(paper) == 3 and (sum(ink) < sum(paper)) == (scheme == "light")


def test_the_switch_of_colours_is_remembered(opened: Open) -> None:
    tab = opened("report")
    before = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    tab.select_option("#colours", "dark")
    dark = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    tab.reload()
    assert tab.evaluate("getComputedStyle(document.documentElement).backgroundColor") == dark != before
    assert tab.input_value("#colours") == "dark"


def column(tab: Any, place: int) -> list[str]:
    found: list[str] = tab.eval_on_selector_all(
        f"section:first-of-type tbody tr > :nth-child({place})", "all => all.map(one => one.textContent.trim())"
    )
    return found


def test_columns_sort_by_keyboard(opened: Open) -> None:
    tab = opened("report")
    head = tab.locator("section:first-of-type thead th", has_text="train time")
    place = tab.locator("section:first-of-type thead th").all_inner_texts().index("train time") + 1
    started = column(tab, place)
    head.locator("button").focus()
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    down = column(tab, place)
    tab.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "ascending"
    up = column(tab, place)
    known = [text for text in up if text != "–"]
    assert [text for text in down if text != "–"] == known[::-1] and sorted(started) == sorted(up)
    assert len(known) > 3
    tab.locator("section:first-of-type thead button", has_text="method").click()
    assert head.get_attribute("aria-sort") is None
    names = column(tab, 1)
    assert names == sorted(names)


def test_both_axes_of_the_frontier_are_chosen(opened: Open) -> None:
    tab = opened("report")
    shown = tab.locator("[data-cost]:visible svg")
    assert shown.get_attribute("aria-label").startswith("accuracy against train time")
    score, cost = tab.locator(".axes select").all()
    score.select_option("macro_f1")
    cost.select_option(label="stored size")
    assert shown.count() == 1 and shown.get_attribute("aria-label").startswith("macro_f1 against stored size")


def test_the_contents_lead_to_what_goes_wrong(opened: Open) -> None:
    tab = opened("report")
    tab.locator("nav a", has_text="What goes wrong").click()
    assert 0 <= tab.evaluate("document.getElementById('what-goes-wrong').getBoundingClientRect().top") < 100
    assert tab.inner_text("#mistakes-count") == "24 of 24 examples"
    rights = tab.locator("#mistakes-list article tr:first-child td:nth-child(2)").all_inner_texts()
    assert rights == ["wrong"] * 10


def test_the_reliability_plot_is_whole_on_a_phone(opened: Open) -> None:
    tab = opened("report", 390)
    assert tab.locator("#mistakes .chart").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_without_scripts_the_usual_pair_is_shown_and_no_control(opened: Open) -> None:
    tab = opened("report", java_script_enabled=False)
    assert tab.locator("[data-cost]:visible svg").count() == 1
    assert tab.locator("select:visible, button:visible").count() == 0


def test_print_shows_no_controls_and_cuts_nothing(opened: Open) -> None:
    for name in PAGES:
        tab = opened(name, 640, "dark")  # less than the width of A4 without its margins, in pixels
        tab.emulate_media(media="print", color_scheme="dark")
        assert tab.locator("select:visible, #mistakes button:visible, nav:visible, .skip:visible").count() == 0
        assert tab.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel)"
        assert tab.eval_on_selector_all(".scroll, .chart", wide) == []


def test_the_skip_link_comes_first_and_focus_is_seen(opened: Open) -> None:
    tab = opened("report")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
