"""Print results/ as the tables of the README: `python benchmarks/bank/table.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.io.files import read_json

RESULTS = Path(__file__).parent / "results"
Result = Mapping[str, Any]


def rows_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows))


def milliseconds(seconds: float) -> str:
    """Format milliseconds to three figures."""
    return f"{1000 * seconds:.3g} ms"


def mixed(result: Result) -> str:
    """Format a batch over many tasks beside one task, and beside peft."""
    listed = []
    for name, found in result["seconds"].items():
        medians = {key: one["median"] for key, one in found.items()}
        alone = [seconds for key, seconds in medians.items() if key == "1" or key.startswith("1 ")]
        one = sum(alone) / len(alone)
        for key in [key for key in medians if not key.startswith(("peft", "1"))]:
            peft = medians.get(f"peft {key}")
            beside = f"{medians[key] / peft:.2f}" if peft else "–"
            listed.append([name, key, milliseconds(medians[key]), f"{medians[key] / one:.2f}", beside])
    head = ["64 rows of", "tasks", "time", "of one task's", "of peft's"]
    told = f"One text, asked by 26 probes, takes {_probes(result):.2f} times the time of one probe."
    return rows_of(head, [row for row in listed if row[0] != "probes"]) + f"\n\n{told}"


def _probes(result: Result) -> float:
    found = result["seconds"]["probes"]
    return float(found["26"]["median"] / found["1"]["median"])


def memory(result: Result) -> str:
    """Format the memory of resident tasks."""
    listed = []
    for name, found in result["methods"].items():
        base, weights = found["backbone"]["process_bytes"], found["backbone"]["weights_bytes"]
        before, fewer = base, 0
        for key in ("1", "100", "1000"):
            process = found[key]["process_bytes"]
            each, before, fewer = (process - before) / (int(key) - fewer), process, int(key)
            beside = (process / base, (weights + process - base) / weights, each / found["file_bytes"])
            of_process, of_weights, of_file = (f"{ratio:.2f}" for ratio in beside)
            told = [f"{process / 1e6:,.0f} MB", of_process, of_weights, f"{each / 1e3:,.0f} kB", of_file]
            listed.append([name, key, *told])
    head = [
        "method",
        "tasks",
        "process",
        "of the process with the backbone alone",
        "of the backbone's weights",
        "each of those added",
    ]
    return rows_of([*head, "of its file"], listed)


def stream(result: Result) -> str:
    """Format the tasks added one by one."""
    told, forgot = result["summary"], result["summary"]["contrast"]
    average = told["bank_average_on_the_contrast's_tasks"]
    identical = "yes" if told["first_task_identical_after_every_add"] else "NO"
    return rows_of(
        ["", ""],
        [
            ["tasks added", str(told["tasks"])],
            ["the first one bit-identical after every add", identical],
            ["self-tests of earlier tasks compared", f"{told['comparisons']:,}"],
            ["adding, median of the first quarter", milliseconds(told["add_seconds_median_first_quarter"])],
            ["adding, median of the last quarter", milliseconds(told["add_seconds_median_last_quarter"])],
            ["bytes of a task, median", f"{told['median_bytes_of_a_task']:,.0f}"],
            [
                f"average score of the {len(result['contrast']['matrix'])} tasks of the contrast, bank",
                f"{100 * average:.1f}",
            ],
            ["the same, one network learning them in turn", f"{100 * forgot['average']:.1f}"],
            ["of it forgotten", f"{100 * forgot['forgetting']:.1f}"],
        ],
    )


def server_load(result: Result) -> str:
    """Format overload, swaps and throughput."""
    load, swaps = result["overload"], result["swaps"]
    listed = []
    for name in ("0.8x", "4x"):
        statuses = load[name]["statuses"]
        for code, part in statuses.items():
            since = part["since_sent_ms"]
            listed.append([name, code, f"{part['count']:,}", f"{since['p50']:.0f} ms", f"{since['p99']:.0f} ms"])
    told = load["verdict"]
    said = (
        f"Capacity is {load['capacity']['answers_per_second']:,.0f} answers a second. At four times that the answered "
        f"ones' 99th percentile is {told['p99_at_4x_is']:.2f} times that at 0.8; other answers than these: "
        f"{told['errors']}; the process grew by {told['growth_bytes'] / 1e6:.0f} MB. While tasks were swapped "
        f"{swaps['swaps_written']:,} times under load, {swaps['failed_requests']} of {swaps['requests']:,} requests "
        "failed."
    )
    tables = f"{rows_of(['load', 'status', 'requests', 'median', '99th percentile'], listed)}\n\n{said}"
    if "throughput" not in result:
        return tables
    rate = result["throughput"]
    rates = [
        [name, f"{median:,.0f}", f"{rate['batches_are_times'][name]:.2f}"] for name, median in rate["medians"].items()
    ]
    return f"{tables}\n\n{rows_of(['server, 32 clients', 'answers/s', 'batches are times as fast'], rates)}"


def server_fuzz(result: Result) -> str:
    """Format the malformed requests."""
    statuses = {code: count for code, count in result["statuses"].items() if code != "faults"}
    listed = [[code, f"{count:,}"] for code, count in statuses.items()]
    return (
        rows_of(["status", "answers"], listed) + f"\n\nFaults: {result['faults']} of {result['requests']:,} requests."
    )


TABLES: Mapping[str, tuple[str, Callable[[Result], str]]] = {
    "mixed": ("Many tasks in one batch", mixed),
    "memory": ("Memory of resident tasks", memory),
    "stream": ("Tasks added one by one", stream),
    "server_load": ("The server under load", server_load),
    "server_fuzz": ("The server and what no client should send", server_fuzz),
}


def _origin(result: Result) -> str:
    """Format commit and day; per part if they were measured separately."""
    if "measured" not in result:
        return f"Commit {result['environment']['commit']['hash'][:8]}, {result['environment']['time'][:10]}."
    told = [
        f"{name} at {of['commit']['hash'][:8]}, {of['time'][:10]}, threads of the server {of['threads']}"
        for name, of in result["measured"].items()
    ]
    return f"Commits: {'; '.join(told)}."


def table() -> str:
    """Format all results."""
    parts = []
    for name, (title, show) in TABLES.items():
        path = RESULTS / f"{name}.json"
        if path.is_file():
            result = read_json(path)
            parts.append(f"### {title}\n\n{show(result)}\n\n{_origin(result)}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(table())
