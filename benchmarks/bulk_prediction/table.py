"""Prints the times in `results/` as Markdown: texts per second, and how many times as fast as each peer."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
NAMES = {
    "graftwork": "graftwork",
    "sentence_transformers_best": "sentence-transformers, bf16, best batch size",
    "sentence_transformers": "sentence-transformers, defaults",
}


def table() -> str:
    """A row per file, data set and contender."""
    lines = [
        ["file", "data", "contender", "precision", "batch size", "texts/s", "graftwork is", "cosine, lowest"],
        ["---"] * 8,
    ]
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for data, found in result["data"].items():
            ours = found["contenders"]["graftwork"]["texts_per_second"]
            for name, title in NAMES.items():
                one = found["contenders"][name]
                speed, cosine = one["texts_per_second"], found["cosine"][name]["lowest"]
                size = str(one.get("batch_size", "by tokens"))
                cells = [path.stem, data, title, one["precision"], size, f"{speed:,.0f}", f"{ours / speed:.2f} x"]
                lines.append([*cells, f"{cosine:.4f}"])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    print(table())
