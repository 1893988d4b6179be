"""Print the section *Results* of the README from `results/summary.json`: `python table.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.compare.tasks_table import price, score, sentence, spent_line
from graftwork.methods.top_layers import TopLayers
from graftwork.units import percent, show

HERE = Path(__file__).parent
LINEAR = "tfidf_svm"


def tables(results: Path = HERE / "results") -> str:
    """Format the summary, the scores of every task, claim and finding, and where the linear model is enough."""
    path = results / "summary.json"
    if not path.is_file():
        return "Not measured yet."
    content = json.loads(path.read_text(encoding="utf-8"))
    of_train = f"at most {content['rows_of_train']:,} rows of train each"
    title = f"{len(content['counted'])} tasks, {of_train}, {content['seeds']} seeds; accuracy"
    parts = [title, _summary(content), _scores(content), _bullets(content)]
    return "\n\n".join(parts)


def _summary(content: Mapping[str, Any]) -> str:
    tasks = len(content["counted"])
    lines = [["method", "mean", "mean rank", f"ratio to `{content['against']}`", "trained, a task", "stored, all tasks",
              "training, all tasks"]]  # fmt: skip
    for row in content["rows"]:
        trained = row["costs"].get("trained_parameters")
        whole = row["mean"] is not None
        lines.append([
            f"`{row['method']}`", percent(row["mean"]) if whole else "–", f"{row['mean_rank']:.2f}" if whole else "–",
            f"{row['geometric_mean']:.3f}" if row["geometric_mean"] is not None else "–",
            "–" if trained is None or not tasks else show(trained["sum"] / len(trained["by_task"]), trained["unit"]),
            price(row, "stored_bytes"), price(row, "train_seconds"),
        ])  # fmt: skip
    return _markdown(lines)


def _scores(content: Mapping[str, Any]) -> str:
    rows = content["rows"]
    lines = [["task", *(f"`{row['method']}`" for row in rows), "k of `variable`", "best less `tfidf_svm`"]]
    for task in content["counted"]:
        depths = content["depths"].get(task, {})
        best = max(depths, key=lambda name: depths[name], default=None)
        depth = "–" if best is None else best.partition("=")[2] or str(TopLayers().k)
        found = content["linear"].get(task, {})
        gain = f"{percent(found['delta'])} [{percent(found['low'])}, {percent(found['high'])}]" if found else "–"
        lines.append([task, *(score(row, task) for row in rows), depth, gain])
    return _markdown(lines)


def _bullets(content: Mapping[str, Any]) -> str:
    """Format the differences that the question is about, and the tasks where the linear model is within the noise."""
    wanted = ({"full", "adapter"}, {"full", "adapter:size=16"}, {"full", "variable"}, {"full", LINEAR})
    lines = [sentence(pair) for pair in content["differences"] if {pair["a"], pair["b"]} in wanted]
    near = [task for task, found in content["linear"].items() if found and found["verdict"] in ("cannot tell", "worse")]
    alone = [task for task in near if content["linear"][task]["low"] <= 0]
    lines.append(f"`{LINEAR}` is within the noise of the best method on the backbone, or better, on {len(near)} of "
                 f"{len(content['counted'])} tasks: {', '.join(near) or 'none'}; by the interval of this pair alone on "
                 f"{len(alone)}: {', '.join(alone) or 'none'}")  # fmt: skip
    beaten = {task: found["by"] for task, found in content["linear"].items() if found.get("by")}
    told = "; ".join(f"{task} ({', '.join(by)})" for task, by in beaten.items())
    lines.append(f"Some method on the backbone is shown to beat `{LINEAR}` on {len(beaten)}: {told or 'none'}")
    lines += [spent_line(content), *content["notes"]]
    return "\n".join(f"- {line}" for line in lines if line)


def _markdown(lines: list[list[str]]) -> str:
    ruled = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in ruled)


if __name__ == "__main__":
    print(tables())
