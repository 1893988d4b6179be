"""`graft curve` end to end on a tiny network: table, files, resuming, and what it says to bad input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.compare.curve_page import curve_chart, render_page
from graftwork.compare.curve_table import table_lines

Graft = Callable[..., Any]
Written = Callable[..., Path]

QUICK = ("--backbone", "tiny_text", "--epochs", "1", "--device", "cpu", "--draws", "3")
METHODS = "majority,tfidf_svm,prototype,random:full"


@pytest.fixture
def tickets(written: Written) -> Path:
    """Sixty rows of two classes."""
    labels = ("here", "there")
    rows = [(f"{labels[i % 2]} it is, {'never' if i % 3 else 'always'} order {i}", labels[i % 2]) for i in range(60)]
    return written("tickets.csv", ("text", "label"), rows)


@pytest.fixture
def made(graft: Graft, tickets: Path) -> Any:
    """A curve of three draws at two sizes."""
    done = graft("curve", tickets, *QUICK, "--methods", METHODS, "--sizes", "100%,3/class")
    assert done.code == 0, done.err
    return done


@pytest.mark.slow
def test_the_table_the_files_and_resuming(graft: Graft, tickets: Path, made: Any) -> None:
    head = next(line for line in made.out.splitlines() if line.startswith("method"))
    assert head.split() == ["method", "3/class", "(6)", "100%", "(42)"]
    assert "3 draws a size" in made.out and "What transfer saves in labels" in made.out
    curve = json.loads(Path("curves/tickets/curve.json").read_text(encoding="utf-8"))
    assert curve["format"] == 1 and [size["size"] for size in curve["sizes"]] == ["3/class", "100%"]
    assert [one["method"] for one in curve["methods"]] == METHODS.split(",")
    assert len(curve["points"]) == 8 and all(point["n_draws"] == 3 for point in curve["points"])
    assert len({run for point in curve["points"] for run in point["runs"]}) == 24
    small = next(point for point in curve["points"] if point["method"] == "random:full" and point["size"] == "3/class")
    spec = json.loads((Path("runs") / small["runs"][2] / "spec.json").read_text(encoding="utf-8"))
    assert spec["seed"] == 2 and small["scores"]["accuracy"]["low"] <= small["scores"]["accuracy"]["mean"]
    saved = {(one["method"], one["reference"]) for one in curve["savings"]}
    assert saved == {("prototype", "tfidf_svm"), ("prototype", "random:full")}
    again = graft("curve", tickets, *QUICK, "--methods", METHODS, "--sizes", "100%,3/class")
    assert "24 of 24 runs existed already" in again.out
    page = Path("curves/tickets/report.html").read_text(encoding="utf-8")
    assert "Score against labels" in page and page == render_page(curve | {"x": 0})
    assert str(curve_chart(curve)).count("diamond") == 8
    assert all(len(line) <= 30 for line in table_lines(curve, 30))
    assert sum(line.startswith("method") for line in table_lines(curve, 30)) == 2


@pytest.mark.slow
def test_transfer_is_what_starts_from_pretrained_weights_saving_or_not(graft: Graft, tickets: Path, made: Any) -> None:
    curve = json.loads(Path("curves/tickets/curve.json").read_text(encoding="utf-8"))
    assert [one["transfers"] for one in curve["methods"]] == [False, False, True, False]
    legend = re.findall(r'<path class="(\w+)"[^>]*/></svg>([^<]+)</li>', str(curve_chart(curve)))
    assert {name: line for line, name in legend} == dict.fromkeys(METHODS.split(","), "dotted") | {"prototype": "solid"}
    flags = (*QUICK[2:], "--methods", "tfidf_svm,prototype", "--sizes", "3/class,100%")
    fresh = json.loads(graft("curve", tickets, "--backbone", "random:tiny_text", *flags, "--json").out)
    told = [(one["fresh_weights"], one["transfers"]) for one in fresh["methods"]]
    assert told == [(False, False), (True, False)] and fresh["savings"] == []


@pytest.mark.slow
def test_each_backbone_s_opening_is_counted(made: Any) -> None:
    curve = json.loads(Path("curves/tickets/curve.json").read_text(encoding="utf-8"))
    results: dict[str, list[Any]] = {}
    for point in curve["points"]:
        paths = [Path("runs") / run / "result.json" for run in point["runs"]]
        results.setdefault(point["method"], []).extend(json.loads(path.read_text(encoding="utf-8")) for path in paths)
    openings = [results[name][0]["opening"]["wall_seconds"] for name in ("prototype", "random:full")]
    spent = sum(result["spent"]["wall_seconds"] for listed in results.values() for result in listed)
    assert min(openings) > 0
    assert curve["search_costs"]["wall_seconds"]["value"] == pytest.approx(spent + sum(openings))


def test_a_size_is_left_out_only_where_every_draw_takes_the_same_rows(graft: Graft, written: Written) -> None:
    rows = [(f"{('here', 'there')[i % 2]} it is {i}", ("here", "there")[i % 2]) for i in range(244)]
    path = written("many.csv", ("text", "label"), rows)
    asked = ("--methods", "majority", "--sizes", "8/class,10%", "--seed", "1", "--json")
    curve = json.loads(graft("curve", path, *QUICK, *asked).out)
    assert [size["size"] for size in curve["sizes"]] == ["8/class", "10%"], curve["notes"]


def test_sizes_that_ask_for_too_much_are_capped_or_left_out(graft: Graft, tickets: Path) -> None:
    done = graft("curve", tickets, *QUICK, "--methods", "majority", "--sizes", "2/class,64/class,100%", "--json")
    assert done.code == 0, done.err
    curve = json.loads(done.out)
    assert [size["size"] for size in curve["sizes"]] == ["2/class", "100%"]
    assert "64/class is left out: it takes the same rows as 100%" in curve["notes"]
    done = graft("curve", tickets, *QUICK, "--methods", "majority", "--sizes", "64/class", "--json")
    assert any("2 of 2 classes have fewer rows" in note for note in json.loads(done.out)["notes"])


@pytest.mark.slow
def test_larger_sizes_for_references_alone(graft: Graft, tickets: Path) -> None:
    """They are tried only by what starts from no pretrained weights; who is named on both sides is so too."""
    flags = (*QUICK, "--methods", "majority,tfidf_svm,prototype", "--sizes", "2/class,6/class,100%", "--draws", "2")
    done = graft("curve", tickets, *flags, "--reference-sizes", "100%,12/class")
    assert done.code == 0, done.err
    curve = json.loads(Path("curves/tickets/curve.json").read_text(encoding="utf-8"))
    assert [size["size"] for size in curve["sizes"]] == ["2/class", "6/class", "12/class", "100%"]
    tried = {(point["method"], point["size"]) for point in curve["points"]}
    everywhere = {(one, size["size"]) for one in ("majority", "tfidf_svm") for size in curve["sizes"]}
    assert tried == everywhere | {("prototype", "2/class"), ("prototype", "6/class")}
    assert {(one["method"], one["size"]) for one in curve["savings"]} == {
        ("prototype", "2/class"),
        ("prototype", "6/class"),
    }
    assert "12/class, 100%: only methods that start from no pretrained weights were tried" in curve["notes"]
    (told,) = (line for line in done.out.splitlines() if line.startswith("prototype"))
    assert told.split()[-2:] == ["–", "–"] and "±" in told
    page = render_page(curve)
    assert page.count('<td class="n">–</td>') == 4  # scores and seconds


def test_a_reference_size_of_the_same_rows_gives_way(graft: Graft, tickets: Path) -> None:
    flags = (*QUICK, "--methods", "tfidf_svm,prototype", "--sizes", "2/class,64/class", "--draws", "1")
    curve = json.loads(graft("curve", tickets, *flags, "--reference-sizes", "100%", "--json").out)
    assert [size["size"] for size in curve["sizes"]] == ["2/class", "64/class"] and len(curve["points"]) == 4
    assert "100% is left out: it takes the same rows as 64/class" in curve["notes"]
    assert not any("only methods that start" in note for note in curve["notes"])


@pytest.mark.slow
def test_numbers_have_shares_only(graft: Graft, written: Written) -> None:
    path = written("stars.csv", ("text", "label"), [(f"good {i % 7} and {i}", i % 5) for i in range(60)])
    flags = (path, "--kind", "regression", *QUICK, "--methods", "majority,tfidf_svm")
    refused = graft("curve", *flags, "--sizes", "8/class")
    assert refused.code == 2 and "a regression task has no classes" in refused.err
    done = graft("curve", *flags, "--sizes", "40%,100%")
    assert done.code == 0, done.err


def test_a_size_whose_draws_have_no_rows_is_left_out(graft: Graft, written: Written) -> None:
    path = written("stars.csv", ("text", "label"), [(f"good {i % 7} and {i}", i % 5) for i in range(60)])
    flags = (path, "--kind", "regression", *QUICK, "--methods", "majority")
    done = graft("curve", *flags, "--sizes", "1%,100%", "--json")
    assert done.code == 0, done.err
    assert "1% is left out: a draw of it has fewer than 2 rows" in json.loads(done.out)["notes"]
    refused = graft("curve", *flags, "--sizes", "1%", "--out", "nothing")
    assert refused.code == 2 and "no size is left" in refused.err and not Path("nothing").exists()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--sizes", "8/klass"), "not a size"),
        (("--sizes", "10%,10%"), "named twice"),
        (("--draws", "0"), "draws must be at least 1"),
        (("--methods", "random:majority"), "uses no backbone"),
        (("--methods", "full,full"), "named twice"),
        (("--methods", "nearest"), "unknown method"),
        (("--methods", "random:full", "--backbone", "random:tiny_text"), "fresh weights already"),
        (("--methods", "majority,full", "--reference-sizes", "100%"), "starts from no pretrained weights"),
        (("--sizes", "100%", "--reference-sizes", "100%"), "no size is left"),
    ],
)
def test_bad_words(graft: Graft, tickets: Path, flags: tuple[str, ...], told: str) -> None:
    done = graft("curve", tickets, "--backbone", "tiny_text", *flags)
    assert done.code == 2 and told in done.err and not Path("curves").exists()
