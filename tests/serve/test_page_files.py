"""The page's files, read: nothing inline, nothing from elsewhere, no markup made of data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graftwork
from graftwork.serve.pages import TYPES, page_files, page_routes

FOLDER = Path(graftwork.__file__).parent / "serve" / "page"
FILES = sorted((Path(str(file)) for file in page_files()), key=lambda path: path.name)
INDEX = (FOLDER / "index.html").read_text()
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\b"
)
ELSEWHERE = re.compile(r"(https?:)?//(?!www\.w3\.org/2000/svg)[a-z]+\.[a-z]")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_make_no_markup_and_fetch_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text()
    assert not MARKUP.search(text)
    assert not ELSEWHERE.search(text)
    assert "@import" not in text and len(text.splitlines()) <= 400
    assert path.suffix != ".js" or max(map(len, text.splitlines())) <= 120


def test_markup_and_foreign_addresses_would_be_found() -> None:
    assert MARKUP.search("node.innerHTML = text") and ELSEWHERE.search("https://cdn.example/x.js")


def test_the_index_has_nothing_inline() -> None:
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", INDEX) == []


def test_every_file_is_used_and_every_use_has_a_file() -> None:
    named = set(re.findall(r'(?:href|src)="page/([^"]+)"', INDEX))
    imported = {name for path in FILES for name in re.findall(r'from "\./([^"]+)"', path.read_text())}
    assert named | imported | {"index.html"} == {path.name for path in FILES}


def test_every_file_has_a_route_and_a_type() -> None:
    assert {route.path for route in page_routes()} == {
        "/" if path.name == "index.html" else f"/page/{path.name}" for path in FILES
    }
    assert all(path.suffix in TYPES for path in FILES)


def test_colours_are_the_report_s_and_every_one_that_is_used_is_among_them() -> None:
    colours = (FOLDER.parents[1] / "compare" / "colours.css").read_text()
    given = set(re.findall(r"(--[a-z0-9-]+):", colours))
    used = set(re.findall(r"var\((--[a-z0-9-]+)", "".join(path.read_text() for path in FILES)))
    own = {"--share"}  # set by the page itself, from data
    assert used - own <= given and {"--ink", "--paper", "--faint", "--line", "--accent", "--good", "--bad"} <= given
    assert not re.search(r"#[0-9a-f]{3,8}\b", (FOLDER / "page.css").read_text())
