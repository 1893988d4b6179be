"""The contract of a benchmark suite."""

from __future__ import annotations

from pathlib import Path

from graftwork.io.files import read_toml
from graftwork.registry import kinds, metrics, suites
from graftwork.testing.require import require


def check_suite(name: str, empty: Path) -> None:
    """Check what every suite must do; `empty` is an empty folder. Raises `AssertionError` with the violated rule.

    Tasks can be listed without their files, and each reports its missing files. Metrics are registered if the kind is.
    No task is both included and left out. Every published score is for a metric of a task.
    """
    from graftwork.benchmark.run_suite import PUBLISHED  # local: it imports all comparisons, and scipy, for every test

    suite = suites.get(name)
    tasks = suite.tasks(empty)
    require(bool(tasks) and bool(suite.title), f"the suite {name} has no title or no tasks")
    names = [task.name for task in tasks] + list(suite.left_out)
    require(len(set(names)) == len(names), f"two tasks have one name: {', '.join(names)}")
    columns = set()
    for task in tasks:
        require(bool(task.tests) and bool(task.metrics), f"{task.name} has nothing to be scored on")
        require(len(task.missing()) > 0, f"{task.name} misses no file in an empty folder")
        require(all(path.is_relative_to(empty) for path in task.missing()), f"{task.name} reads outside the folder")
        if task.kind in kinds.names():
            for metric in task.metrics:
                metrics.get(metric)
        columns |= {f"{test} {metric}" for test in task.tests for metric in task.metrics}
    for row in read_toml(PUBLISHED).get(name, ()):
        require(row["scores"].keys() <= columns, f"published figures of {row['name']} are of no task")
        require(row["split"] in ("test", "dev") and bool(row["source"]), f"{row['name']} has no split or source")
