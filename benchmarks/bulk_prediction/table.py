"""Print `results/` as Markdown: texts per second, speed-up over each peer, and memory by rows."""

from __future__ import annotations

import json
from pathlib import Path

from graftwork.units import show

RESULTS = Path(__file__).parent / "results"
MEMORY = RESULTS / "memory.json"
NAMES = {
    "graftwork": "graftwork",
    "sentence_transformers_best": "sentence-transformers, bf16, best batch size",
    "sentence_transformers": "sentence-transformers, defaults",
}


def times() -> str:
    """Format a row per file, data set and contender."""
    lines = [
        ["file", "data", "contender", "precision", "batch size", "texts/s", "graftwork is", "cosine, lowest"],
        ["---"] * 8,
    ]
    for path in sorted(RESULTS.glob("*_threads.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for data, found in result["data"].items():
            ours = found["contenders"]["graftwork"]["texts_per_second"]
            for name, title in NAMES.items():
                one = found["contenders"][name]
                speed, cosine = one["texts_per_second"], found["cosine"][name]["lowest"]
                size = str(one.get("batch_size", "by tokens"))
                cells = [path.stem, data, title, one["precision"], size, f"{speed:,.0f}", f"{ours / speed:.2f} x"]
                lines.append([*cells, f"{cosine:.4f}"])
    return _markdown(lines)


def memory() -> str:
    """Format a row per predicted file."""
    result = json.loads(MEMORY.read_text(encoding="utf-8"))
    lines = [["rows", "of the file", "answers", "in all", "texts/s", "peak memory"], ["---"] * 6]
    for one in result["files"]:
        size, peak = show(one["file_bytes"], "bytes"), show(one["peak_bytes"], "bytes")
        answers, seconds = one["answers"], one["seconds"]
        cells = [f"{one['rows']:,}", size, f"{answers:,}", show(seconds, "s"), f"{answers / seconds:,.0f}", peak]
        lines.append(cells)
    threads = f"{result['threads']} thread{'' if result['threads'] == 1 else 's'}"
    return f"`{result['backbone']}`, {result['method']}, {threads}:\n\n{_markdown(lines)}"


def _markdown(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    print("\n\n".join([times(), memory()] if MEMORY.exists() else [times()]))
