"""The page: self-contained, escaped, complete."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from boards import beside, board, broken, decision, dropped, older, partly, price, receipts, row, usual

from graftwork.compare.leaderboard_data import RowRuns
from graftwork.compare.leaderboard_report import pages, render_report, write_report
from graftwork.compare.plots import figures
from graftwork.core.meter import Cost
from graftwork.core.run import RunResult

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """The tags of a page, its visible text, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self.inside = "", [], ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts.append(data)
        elif self.inside != "style":
            self.text += data


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    told = decision("full", {"full": 0.001, "adapter": 0.004}, beside("adapter", 0.002, 0.01, 0.003))
    return board(usual(), decision=told, command="graft compare toy.csv",
                 search_costs={"wall_seconds": Cost(90.0, "s", "meter")})  # fmt: skip


@pytest.fixture(scope="module")
def page(made: dict[str, Any]) -> Page:
    return Page(render_report(made, receipts(usual())))


def test_it_loads_nothing(page: Page) -> None:
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "img", "base", "object")]
    loads = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href", "srcset")]
    assert loads == []


def test_without_plotly_a_page_has_its_tables_and_says_what_draws_the_plots(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    page = Page(render_report(made, receipts(usual())))
    assert "full (use it)" in page.text
    (script,) = [script for script in page.scripts if script.startswith("const Plotly")]
    assert "a plot needs plotly" in script and "graftwork[report]" in script and len(script) < 1000


def test_without_jinja2_a_page_says_what_to_install(
    made: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    pages.cache_clear()
    write_report(made, [], tmp_path / "report.html")
    assert "pip install &quot;graftwork[report]&quot;" in (tmp_path / "report.html").read_text()


def test_styles_import_nothing(made: dict[str, Any]) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", render_report(made, []), re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style


def test_everything_is_told(page: Page) -> None:
    for part in ("toy", "Use full: accuracy 89.6 on test", "full (use it)",
                 "earlier boards alone say: full ", "out of memory", "asked for 7 GB", "–",
                 "Price tags", "How every number was obtained", "graft compare toy.csv", "full-3", "Holm",
                 "read off an instrument", "Its runs, shared work counted once", "epochs", "torch"):  # fmt: skip
        assert part in page.text, part


def test_text_from_data_is_escaped() -> None:
    rows = [row("majority", 0.3, 0.1), row(EVIL, 0.9, 10), broken("lora", EVIL)]
    report = {"warnings": [EVIL], "conflicts": [{"text": EVIL}], "classes": {EVIL: {EVIL: 3}}}
    found = Page(render_report(board(rows, data_report=report, notes=(EVIL,), command=EVIL), receipts(rows)))
    assert len(found.scripts) == 3
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert found.text.count(EVIL) >= 6
    drawn = json.loads(found.scripts[0])["dots"]
    assert "<img" not in json.dumps(drawn)  # plotly reads some tags in its labels


def test_the_figures_are_valid_and_cover_every_known_cost(made: dict[str, Any]) -> None:
    drawn = figures(made, receipts(usual()))
    names = [item["name"] for item in drawn["costs"]]
    assert "train_seconds" in names
    assert "co2e_grams" not in names
    for figure in [*drawn["frontier"].values(), drawn["dots"]]:
        go.Figure({"data": figure["data"], "layout": figure["layout"]})
    dots, line, means = drawn["frontier"]["train_seconds"]["data"]
    assert len(dots["x"]) == 20
    assert line["y"] == sorted(line["y"])
    assert set(means["text"]) == {"full", "adapter", "linear_probe", "majority"}
    assert "seed 3" in dots["text"][8]
    assert "run linear_probe-3" in dots["text"][8]


def test_a_price_of_zero_has_a_place(made: dict[str, Any]) -> None:
    figure = figures(made, receipts(usual()))["frontier"]["trained_parameters"]
    assert figure["zero"]
    assert min(figure["data"][2]["x"]) > 0


def test_the_close_range_leaves_out_only_what_is_far_below(made: dict[str, Any]) -> None:
    drawn = figures(made, receipts(usual()))
    assert drawn["ranges"]["full"][0] < 30 < drawn["ranges"]["close"][0] < 80
    assert drawn["below"].startswith("majority (")


def test_a_board_without_scores_or_backbone_is_a_page() -> None:
    rows = [broken("full")]
    empty = board(rows) | {"backbone": None}
    assert "No method finished." in Page(render_report(empty, receipts(rows))).text


def test_what_is_chosen_is_marked_and_only_that(made: dict[str, Any], page: Page) -> None:
    assert page.text.count("(use it)") == 1
    assert "(use it)" not in Page(render_report(board(usual()), [])).text


def test_the_race_of_an_older_version_and_who_was_dropped() -> None:
    made = older(board(usual()), dropped("bitfit", 0.512))
    page = Page(render_report(made, receipts(usual())))
    for part in ("The race", "The rule.", "--exhaustive", "dropped, validation 51.2", "learning rate 0.002",
                 "The highest mean on test is full"):  # fmt: skip
        assert part in page.text, part
    drawn = figures(made, receipts(usual()))
    assert "bitfit" not in json.dumps(drawn)
    assert "The race" not in Page(render_report(board(usual()), [])).text


def test_one_machine_is_told_once_whatever_the_time(made: dict[str, Any]) -> None:
    runs = receipts(usual())
    for number, run in enumerate(runs):
        run["environment"].update(time=f"2026-11-23T10:00:{number:02}", load_average=[number, 1.0, 1.0], torch="2")
    page = render_report(made, runs)
    assert "did not all see the same machine" not in page and "2026-11-23T10:00" not in page
    runs[0]["environment"].update(torch="3")
    assert "there are 2 different ones" in render_report(made, runs)


def test_few_and_failed_runs_are_told() -> None:
    few = [row("majority", 0.3, 0.1, 4), row("full", 0.9, 10, 4)]
    text = Page(render_report(board(few), receipts(few))).text
    assert "What can be told apart (not enough runs)" in text and "runs (not enough runs)" in text
    lost = [row("majority", 0.3, 0.1), row("full", 0.9, 10), partly("lora", 0.85, 5, 1)]
    text = Page(render_report(board(lost), receipts(lost))).text
    assert "not enough runs" not in text
    for part in ("4 of 5", "1 of 5 runs diverged or scored below", "a failed run counts as the majority class's",
                 "ε", "almost stochastic order"):  # fmt: skip
        assert part in text, part


def test_what_more_tries_bring_is_drawn_where_it_is_known(made: dict[str, Any]) -> None:
    assert figures(made, [])["best"] is None
    runs = [
        RunResult(f"{EVIL}-{at}", at, "ok", {"accuracy": 0.9}, {"accuracy": 0.8 + at / 100}, price(10.0 + at))
        for at in range(5)
    ]
    stats = [stats for _, stats in row("full", 0.9, 10).runs]
    rows = [row("majority", 0.3, 0.1), RowRuns(EVIL, {}, "ok", tuple(zip(runs, stats, strict=True)))]
    drawn = figures(board(rows), receipts(rows))["best"]
    go.Figure({"data": drawn["data"], "layout": drawn["layout"]})
    assert [len(line["x"]) for line in drawn["data"]] == [5]
    assert drawn["data"][0]["y"] == sorted(drawn["data"][0]["y"]) and "<img" not in json.dumps(drawn)
    assert "What more tries bring" in Page(render_report(board(rows), receipts(rows))).text


def test_a_board_of_before_the_race_is_a_page(made: dict[str, Any]) -> None:
    older = {key: value for key, value in made.items() if key not in ("race", "decision", "expected_best", "majority")}
    later = ("dropped", "n_diverged", "counted")
    older["rows"] = [{key: value for key, value in row.items() if key not in later} for row in made["rows"]]
    later = ("runs", "failed", "aso")
    older["differences"] = [
        {key: value for key, value in pair.items() if key not in later} for pair in made["differences"]
    ]
    assert "full" in Page(render_report(older, [])).text


def test_it_is_written_whole(made: dict[str, Any], tmp_path: Path) -> None:
    write_report(made, receipts(usual()), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.lstrip().startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
