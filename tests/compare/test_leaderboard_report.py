"""The page: self-contained, escaped, complete."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from boards import beside, board, broken, decision, partly, price, receipts, row, usual

from graftwork.compare.leaderboard_data import RowRuns
from graftwork.compare.leaderboard_report import FOLDER, render_report, write_report
from graftwork.compare.plots import charts, score_range
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
    loads = [
        value or "" for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href", "srcset")
    ]
    ids = {f"#{attrs['id']}" for _, attrs in page.tags if "id" in attrs}
    assert loads and set(loads) <= ids  # the contents list and the link to skip to the content
    (policy,) = [attrs["content"] or "" for _, attrs in page.tags if "http-equiv" in attrs]
    assert "default-src 'none'" in policy and "form-action 'none'" in policy and "http" not in policy


def test_styles_import_nothing(made: dict[str, Any]) -> None:
    styles = "".join(re.findall(r"<style>(.*?)</style>", render_report(made, []), re.DOTALL))
    assert "url(" not in styles
    assert "@import" not in styles


def test_everything_is_told(page: Page) -> None:
    for part in ("toy", "Use full: accuracy 89.6 on test", "use it",
                 "earlier boards alone say: full ", "out of memory", "asked for 7 GB", "–",
                 "Price tags", "How every number was obtained", "graft compare toy.csv", "full-3", "Holm",
                 "read off an instrument", "Its runs, shared work counted once", "epochs", "torch"):  # fmt: skip
        assert part in page.text, part


def test_text_from_data_is_escaped() -> None:
    rows = [row("majority", 0.3, 0.1), row(EVIL, 0.9, 10), broken("lora", EVIL)]
    report = {"warnings": [EVIL], "conflicts": [{"text": EVIL}], "classes": {EVIL: {EVIL: 3}}}
    found = Page(render_report(board(rows, data_report=report, notes=(EVIL,), command=EVIL), receipts(rows)))
    assert len(found.scripts) == 1
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert found.text.count(EVIL) >= 6


def parts(svg: Any, sort: str) -> list[ElementTree.Element]:
    """The elements of a chart of one class."""
    return [one for one in ElementTree.fromstring(f"<div>{svg}</div>").iter() if sort in one.get("class", "").split()]


def specks(svg: Any) -> int:
    """The number of dots that are drawn as one path."""
    (path,) = parts(svg, "specks")
    return path.get("d", "").count("h0")


def titles(svg: Any) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(f"<div>{svg}</div>").iter("title")]


def of_cost(made: dict[str, Any], cost: str) -> dict[str, Any]:
    found = charts(made, receipts(usual()))["frontier"]
    return next(one for one in found if (one["metric"], one["cost"]) == ("accuracy", cost))


def test_a_chart_for_every_known_cost(made: dict[str, Any]) -> None:
    drawn = charts(made, receipts(usual()))
    pairs = [(one["metric"], one["cost"]) for one in drawn["frontier"]]
    metrics, costs = drawn["axes"]
    assert pairs[0] == ("accuracy", "train_seconds") and len(pairs) == len(set(pairs)) == len(metrics) * len(costs)
    assert list(metrics) == ["accuracy", "macro_f1"] and len(costs) == 6
    assert "co2e_grams" not in costs


def test_score_against_price(made: dict[str, Any]) -> None:
    svg = of_cost(made, "train_seconds")["svg"]
    best, others = parts(svg, "diamond"), parts(svg, "open")
    assert specks(svg) == 15  # those of the majority class are below the axis
    assert len(best) + len(others) == 3 and best
    assert any(text.startswith("linear_probe, mean of 5\naccuracy ") for text in titles(svg))
    told = titles(charts(made, receipts(usual()))["dots"])
    assert any(text.startswith("linear_probe, seed 3\n") and text.endswith("run linear_probe-3") for text in told)
    (line,) = parts(svg, "solid")
    corners = [tuple(map(float, spot.split())) for spot in line.get("d", "M")[1:].split("L")]
    assert len(corners) == 2 * len(best) - 1
    assert corners == sorted(corners, key=lambda corner: (corner[0], -corner[1]))  # pixels count downwards


def test_a_price_of_zero_has_a_place(made: dict[str, Any]) -> None:
    assert of_cost(made, "trained_parameters")["zero"] and not of_cost(made, "train_seconds")["zero"]
    assert specks(of_cost(made, "trained_parameters")["svg"]) == 15


def test_the_axis_leaves_out_only_what_is_far_below(made: dict[str, Any]) -> None:
    drawn = charts(made, receipts(usual()))
    assert 30 < score_range(made, receipts(usual()))[0] < 80
    assert drawn["below"].startswith("majority (")
    assert "◂ 26.6" in str(drawn["dots"])


def test_a_board_without_scores_or_backbone_is_a_page() -> None:
    rows = [broken("full")]
    empty = board(rows) | {"backbone": None}
    assert "No method finished." in Page(render_report(empty, receipts(rows))).text


def test_what_is_chosen_is_marked_and_only_that(made: dict[str, Any], page: Page) -> None:
    assert page.text.count("use it") == 1
    assert "use it" not in Page(render_report(board(usual()), [])).text


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
    assert "Which differences are real (not enough runs)" in text and "not enough runs to rank" in text
    lost = [row("majority", 0.3, 0.1), row("full", 0.9, 10), partly("lora", 0.85, 5, 1)]
    text = Page(render_report(board(lost), receipts(lost))).text
    assert "not enough runs" not in text
    for part in ("4 of 5", "1 of 5 runs diverged or scored below", "a failed run counts as the majority class's",
                 "ε", "almost stochastic order"):  # fmt: skip
        assert part in text, part


def test_what_more_tries_bring_is_drawn_where_it_is_known(made: dict[str, Any]) -> None:
    assert charts(made, [])["best"] is None
    runs = [
        RunResult(f"{EVIL}-{at}", at, "ok", {"accuracy": 0.9}, {"accuracy": 0.8 + at / 100}, price(10.0 + at))
        for at in range(5)
    ]
    stats = [stats for _, stats in row("full", 0.9, 10).runs]
    rows = [row("majority", 0.3, 0.1), RowRuns(EVIL, {}, "ok", tuple(zip(runs, stats, strict=True)))]
    drawn = charts(board(rows), receipts(rows))["best"]
    heights = [float(dot.get("cy", "nan")) for dot in parts(drawn, "dot")]
    assert len(heights) == 5 and heights == sorted(heights, reverse=True)
    assert titles(drawn)[0].startswith(EVIL) and "<img" not in str(drawn)
    assert "What more tries bring" in Page(render_report(board(rows), receipts(rows))).text


def test_a_board_of_an_older_version_is_a_page(made: dict[str, Any]) -> None:
    older = {key: value for key, value in made.items() if key not in ("decision", "expected_best", "majority")}
    later = ("n_diverged", "counted")
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


def test_every_meaning_of_a_column_is_told(made: dict[str, Any]) -> None:
    text = Page(render_report(made, [])).text
    for part in ("Macro F1: the unweighted mean", "Latency of one prediction", "Over seeds", "95 % interval"):
        assert part.lower() in text.lower(), part


def test_headings_are_in_order_and_charts_are_named(made: dict[str, Any]) -> None:
    page = Page(render_report(made, receipts(usual())))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    drawn = [attrs for tag, attrs in page.tags if tag == "svg" and "aria-hidden" not in attrs]
    assert drawn and all(attrs["role"] == "img" and len(attrs["aria-label"] or "") > 10 for attrs in drawn)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {tag for tag, _ in page.tags} >= {"header", "nav", "main"} and ("html", {"lang": "en"}) in page.tags


@pytest.mark.parametrize(("methods", "tables"), [(12, True), (24, False)])
def test_a_large_board_is_a_small_page(methods: int, tables: bool) -> None:
    rows = [row("majority", 0.3, 0.1), *(row(f"method_{at:02}", 0.5 + at / 60, 2.0 + at) for at in range(methods))]
    page = render_report(board(rows), receipts(rows))
    counted = page if tables else re.sub("<table.*?</table>", "", page, flags=re.DOTALL)  # without the data
    assert 50_000 < len(counted.encode()) < 300_000


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


TEXT = ("ink", "faint", "accent", "good", "bad")
TINTS = ("bar", "good-wash", "bad-wash", *(f"hue{at}" for at in range(6)))
DRAWN = ("edge", *(f"chart{at}" for at in range(8)))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_have_contrast(scheme: int) -> None:
    text = (FOLDER / "colours.css").read_text()
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", text)
    colours = {name: found[scheme] for name, *found in pairs}
    assert len(pairs) == len(re.findall(r"--[\w-]+:", text)) == len(colours)
    over = [(name, ground, 4.5) for name in TEXT for ground in ("paper", "wash")] + [("on-accent", "accent", 4.5)]
    over += [("ink", tint, 4.5) for tint in TINTS] + [(name, "paper", 3.0) for name in DRAWN]
    assert [(name, ground) for name, ground, least in over if contrast(colours[name], colours[ground]) < least] == []


def test_styles_and_charts_name_only_colours_that_there_are(made: dict[str, Any]) -> None:
    text = render_report(made, receipts(usual()))
    assert set(re.findall(r"var\(--([\w-]+)\)", text)) - {"heat"} <= set(re.findall(r"--([\w-]+): light-dark", text))
