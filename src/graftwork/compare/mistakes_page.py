"""The section on mistakes in a board's page: the examples embedded in it, and the file of all examples beside it."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from graftwork.compare.chart import ACCENT, Axis, Series, draw
from graftwork.compare.mistakes import PAIRS
from graftwork.io.files import storage_errors, write_bytes
from graftwork.units import percent

MOST_ROWS = 2_000  # embedded examples, at most
MOST_BYTES = 2_000_000  # of the embedded examples, as JSON
MOST_SUSPECTS = 200  # suspected label errors that are embedded before wrong predictions
BESIDE = ("examples.parquet", "examples.jsonl.gz")
FOLDER = Path(__file__).parent

Row = Mapping[str, Any]


def mistakes_section(content: Mapping[str, Any] | None, beside: str | None) -> dict[str, Any] | None:
    """Return the template's values from `mistakes_content`; `beside` is the name of the file that has all examples."""
    if content is None:
        return None
    wrong = [pair for pair in content["confusions"] if not pair["right"]]
    told = {
        **content,
        "worst": wrong[:PAIRS],
        "wrong_pairs": len(wrong),
        "trues": sorted({pair["true"] for pair in content["confusions"]}),
        "css": Markup((FOLDER / "mistakes.css").read_text(encoding="utf-8")),
        "beside": beside,
        "plot": _plot(content["chosen"], content["reliability"]) if content["reliability"] else None,
    }
    if content["examples"] is None:
        return told
    rows = embedded(content["examples"])
    data = {"methods": content["methods"], "suspects": content["suspects"], "rows": rows,
            "confusions": [[pair["true"], pair["found"]] for pair in content["confusions"]]}  # fmt: skip
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return told | {
        "shown": len(rows),
        "sure": any(sure is not None for row in rows for _, sure, _ in row["answers"]),
        "data": Markup(text),
        "script": Markup((FOLDER / "mistakes.js").read_text(encoding="utf-8")),
    }


def _plot(method: str, bins: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the reliability plot: accuracy against predicted probability."""
    titles = [f"{one['rows']} rows\nprobability {percent(one['confidence'])}\nright {percent(one['accuracy'])}"
              for one in bins]  # fmt: skip
    ticks = [(tenth / 10, f"{10 * tenth}") for tenth in range(0, 11, 2)]
    at, heights = [one["confidence"] for one in bins], [one["accuracy"] for one in bins]
    points = Series(at, heights, titles, colour=ACCENT, size=5, spans=[one["interval"] for one in bins])  # fmt: skip
    ideal = Series([0.0, 1.0], [0.0, 1.0], name="as often right as it says", mark="", line="dotted")
    x, y = Axis("probability of the answer, %", 0, 1, ticks), Axis("right, %", 0, 1, ticks)
    off = percent(sum(one["rows"] * abs(one["confidence"] - one["accuracy"]) for one in bins)
                  / sum(one["rows"] for one in bins))  # fmt: skip
    return draw([ideal, points], x, y, 320, f"Reliability of {method}: {off} points off on average.", 420)


def embedded(rows: Sequence[Row]) -> list[Row]:
    """Return the examples that the page holds, in the order of the test split.

    If not all fit, these come first: suspected label errors; wrong predictions of the chosen method, the most confident
    or the furthest off first; then right ones, the least confident first.
    """

    def rank(place: int) -> tuple[float, ...]:
        row, (_, sure, right) = rows[place], rows[place]["answers"][0]
        if row.get("suspect", {}).get("rank", MOST_SUSPECTS + 1) <= MOST_SUSPECTS:
            return 0, row["suspect"]["rank"]
        return (2, sure or 0.0, place) if right else (1, -row.get("off", sure or 0.0), place)

    kept: list[int] = []
    left = MOST_BYTES
    for place in sorted(range(len(rows)), key=rank):
        left -= len(json.dumps(rows[place], ensure_ascii=False).encode())
        if left < 0 or len(kept) == MOST_ROWS:
            break
        kept.append(place)
    return [rows[place] for place in sorted(kept)]


def write_beside(content: Mapping[str, Any] | None, folder: Path) -> str | None:
    """Write all examples to `folder` if the page can't hold them, and return the file's name, else None.

    The file is Parquet where pyarrow is installed, else gzipped JSON lines. The file of an earlier board is removed.
    """
    rows = (content or {}).get("examples")
    large = rows is not None and len(embedded(rows)) < len(rows)
    parquet = importlib.util.find_spec("pyarrow") is not None
    name = BESIDE[0 if parquet else 1] if large else None
    for old in BESIDE:
        if old != name:
            with storage_errors(folder / old):
                (folder / old).unlink(missing_ok=True)
    if content is None or name is None:
        return None
    flat = [_flat(row, content["methods"]) for row in rows or ()]
    if parquet:
        _write_parquet(folder / name, flat)
    else:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in flat)
        write_bytes(folder / name, gzip.compress(lines.encode(), mtime=0))
    return name


def _flat(row: Row, methods: Sequence[str]) -> dict[str, Any]:
    """Return an example with a column for each input, and three for each method."""
    told = {"id": row["id"], **dict(row["inputs"]), "target": row["target"]}
    for method, (brief, sure, right) in zip(methods, row["answers"], strict=True):
        told |= {method: brief, f"{method} probability": sure, f"{method} right": right}
    return told | {"suspected label": row.get("suspect", {}).get("likely"), "training row like it": row.get("like")}


def _write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    names = dict.fromkeys(name for row in rows for name in row)
    made = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({name: [row.get(name) for row in rows] for name in names}), made)
    write_bytes(path, made.getvalue())
