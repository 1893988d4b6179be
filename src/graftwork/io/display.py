"""Display of results in Python: HTML cards for notebooks, with one table format for all, and data frames."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from graftwork.io.extras import extra

MOST_ROWS = 100  # of a table; the rest is counted
# Cards have no background and the notebook's text colour: they are readable in light and in dark themes.
STYLE = (
    ".graftwork{--ink:currentColor;--faint:#7a8490;--edge:#8a95a1;--line:rgba(128,128,128,.3);--accent:#2f81d6;"
    "--paper:transparent;--chart0:#3d8be0;--chart1:#d0702f;--chart2:#4a9c6a;--chart3:#9b76d0;--chart4:#cf6078;"
    "--chart5:#2c93ad;--chart6:#a8861f;--chart7:#7a8896;font:14px/1.45 system-ui,sans-serif;"
    "color:inherit;max-width:1000px}"
    ".graftwork h4{font-size:15px;margin:4px 0}.graftwork p{margin:2px 0}"
    ".graftwork .quiet{color:var(--faint);font-size:12.5px}"
    ".graftwork table{border-collapse:collapse;margin:8px 0;font-variant-numeric:tabular-nums}"
    ".graftwork th,.graftwork td{padding:3px 14px 3px 0;text-align:left;background:none;border:0;"
    "border-bottom:1px solid var(--line);color:inherit;white-space:nowrap}"
    ".graftwork td.end,.graftwork th.end{text-align:right}.graftwork thead th{color:var(--faint)}"
    ".graftwork .wide{overflow-x:auto}"
)


def card(title: str, lines: Sequence[str] = (), *blocks: str, about: str = "", style: str = "") -> str:
    """Return a card as HTML without scripts: a title, `lines` of text, and `blocks` of HTML.

    `about` is a last line in small type; `style` is CSS for the blocks. Title, lines and `about` are escaped.
    """
    parts = [f"<h4>{escape(title)}</h4>", *(f"<p>{escape(line)}</p>" for line in lines), *blocks]
    parts += [f'<p class="quiet">{escape(about)}</p>'] if about else []
    return f'<style>{STYLE}{style}</style><div class="graftwork">{"".join(parts)}</div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Return a table as HTML; the columns with the numbers `left` are aligned to the left. All cells are escaped."""

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ("" if at in left else ' class="end"' for at in range(len(cells)))
        return "".join(f"<{tag}{side}>{escape(cell)}</{tag}>" for side, cell in zip(sides, cells, strict=True))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows[:MOST_ROWS])
    more = f'<p class="quiet">and {len(rows) - MOST_ROWS} more</p>' if len(rows) > MOST_ROWS else ""
    head = f"<thead><tr>{line(columns, 'th')}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>{more}'


def facts(told: Mapping[str, str]) -> str:
    """Return names and their values as an HTML table, without empty values. All are escaped."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in told.items() if text)
    return f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a pandas DataFrame; each row maps columns to values. Raises `MissingExtra` without pandas."""
    with extra("pandas", "to_frame()"):
        pandas = importlib.import_module("pandas")
    return pandas.DataFrame([dict(row) for row in rows])


class ShownJson(dict[str, Any]):
    """A JSON result that Python and notebooks display as the lines of `told(result)`, the first one as the title."""

    def __init__(self, content: Mapping[str, Any], told: Callable[[Mapping[str, Any]], Sequence[str]]):
        super().__init__(content)
        self.told = told

    def __repr__(self) -> str:
        return "\n".join(self.told(self))

    def _repr_html_(self) -> str:
        title, *lines = self.told(self)
        told = escape("\n".join(lines).strip("\n"))
        return card(title, (), f'<pre style="white-space:pre-wrap">{told}</pre>')
