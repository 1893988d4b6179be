"""Print `results/` as Markdown, the section *Results* of the README."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from scipy.stats import t as student

from graftwork.compare.curve_table import cells, header, saving_lines
from graftwork.compare.savings import savings
from graftwork.units import show

HERE = Path(__file__).parent
NOTHING = "Not measured yet."


def tables(results: Path) -> str:
    """Format a table of scores and label savings per curve, then ours against SetFit."""
    measured = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("**/curve.json"))]
    parts = [_curve(joined(own)) for own in _by_task(measured)]
    beside = {path.stem.removeprefix("setfit_"): path for path in sorted(results.glob("setfit_*.json"))}
    if beside:
        rows = [row for name, path in beside.items() for row in _beside(name, json.loads(path.read_text("utf-8")))]
        columns = ["data", "size", "contender", "draws", "accuracy", "lowest", "training"]
        columns += ["times `contrastive`'s", "`contrastive` less it"]
        parts.append("### Beside SetFit\n\n" + _markdown([columns, *rows]))
    return "\n\n".join(parts) or NOTHING


def _by_task(curves: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    names = sorted({curve["task"]["name"] for curve in curves})
    return [[curve for curve in curves if curve["task"]["name"] == name] for name in names]


def joined(curves: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one curve from curves measured separately on the same draws; each size of a method once."""
    first = curves[0]
    for key in ("task", "draws", "seed"):
        if any(curve[key] != first[key] for curve in curves):
            raise SystemExit(f"{first['task']['name']}: its curves differ in {key}, and can't be joined")
    sizes = {size["size"]: size for curve in curves for size in curve["sizes"]}
    methods = {one["method"]: one for curve in curves for one in curve["methods"]}
    listed = [point for curve in curves for point in curve["points"]]
    points = {(point["method"], point["size"]): point for point in listed}
    if len(points) < len(listed):
        raise SystemExit(f"{first['task']['name']}: a method at a size stands in two curves")
    ordered = sorted(points.values(), key=lambda point: float(point["rows"]))
    return first | {
        "sizes": sorted(sizes.values(), key=lambda size: float(size["rows"])),
        "methods": list(methods.values()),
        "points": ordered,
        "savings": savings(ordered, list(methods.values()), first["headline_metric"]),
    }


def _curve(curve: dict[str, Any]) -> str:
    rows = [[f"`{method}`", *row] for method, row in cells(curve).items()]
    title = f"### {curve['task']['name']}: {curve['headline_metric']}, {curve['draws']} draws"
    listed = "\n".join(f"- {line}" for line in saving_lines(curve))
    return f"{title}\n\n{_markdown([['method', *header(curve)], *rows])}\n\n{listed}".rstrip()


def _beside(name: str, content: dict[str, Any]) -> list[list[str]]:
    """Return a row per size and contender, over the draws that all have; contenders with fewer draws use their own.

    Their seconds are compared with those of `contrastive` on the same draws.
    """
    rows = []
    for size in dict.fromkeys(row["size"] for row in content["rows"]):
        own = [row for row in content["rows"] if row["size"] == size]
        contenders = sorted({row["contender"] for row in own})
        made = {one: {row["draw"] for row in own if row["contender"] == one} for one in contenders}
        most = max(map(len, made.values()))
        common = set.intersection(*(draws for draws in made.values() if len(draws) == most))
        for one in contenders:
            draws = common if len(made[one]) == most else made[one]
            listed = [row for row in own if row["contender"] == one and row["draw"] in draws]
            beside = [row for row in own if row["contender"] == "contrastive" and row["draw"] in draws]
            scores, seconds = [100 * row["accuracy"] for row in listed], _seconds(listed)
            spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
            ratio = f"{seconds / _seconds(beside):.2f}" if beside else "–"
            less = _gain(beside, listed) if beside and one != "contrastive" else ""
            rows.append([
                name, size, f"`{one}`", str(len(listed)), f"{statistics.mean(scores):.1f}{spread}",
                f"{min(scores):.1f}", show(seconds, "s"), ratio, less,
            ])  # fmt: skip
    return rows


def _gain(own: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    """Format the gain in accuracy points of `own` over `others` on the same draws, with a 95 % Student's t interval."""
    theirs = {row["draw"]: row["accuracy"] for row in others}
    gains = [100 * (row["accuracy"] - theirs[row["draw"]]) for row in own]
    mean = statistics.mean(gains)
    if len(gains) < 2:
        return f"{mean:.1f}"
    half = student.ppf(0.975, len(gains) - 1) * statistics.stdev(gains) / len(gains) ** 0.5
    return f"{mean:.1f} [{mean - half:.1f}, {mean + half:.1f}]"


def _seconds(rows: list[dict[str, Any]]) -> float:
    """Return the median training seconds over these draws."""
    return statistics.median(row["train_seconds"] for row in rows)


def _markdown(rows: list[list[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    print(tables(Path(sys.argv[1]) if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir() else HERE / "results"))
