"""Test every property of tests/properties on 10,000 examples: `python benchmarks/robust/properties.py`.

Hypothesis draws new examples in every call. A property with fewer distinct examples than requested is tested on all of
them, and reports so.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graftwork.io.files import write_json
from graftwork.machine.environment import environment

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests" / "properties"
QUESTION = (
    "Is there a file, a split, a batch, a sample of scores or a price for which what should hold of all of them fails?"
)
LEAST = "examples_of_a_property_at_least"
BAR = {LEAST: 10_000, "counter_examples": 0}


@dataclass
class Counting:
    """A pytest plugin that sets the number of examples and records the outcome of every property."""

    examples: int
    profile: str = "thorough"  # defined in tests/properties/conftest.py
    tried: dict[str, dict[str, Any]] = field(default_factory=dict)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import settings  # not earlier: pytest rewrites its asserts

        settings.register_profile("asked", settings.get_profile(self.profile), max_examples=self.examples)
        settings.load_profile("asked")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if call.when == "call" and (told := getattr(item, "hypothesis_statistics", "")):
            passed = sum(int(count) for count in re.findall(r"(\d+) passing", told))
            self.tried[f"{item.path.stem}::{item.name}"] = {
                "examples": passed,
                "all_there_are": "nothing left to do" in told,
                "seconds": round(call.duration, 2),
                "failed": "" if report.passed else str(report.longrepr)[-2000:],
            }
        return report


def summary(tried: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Return the measurement for the bar: the fewest examples among the properties that have more."""
    open_ended = [one["examples"] for one in tried.values() if not one["all_there_are"]]
    return {
        "properties": len(tried),
        "examples": sum(one["examples"] for one in tried.values()),
        "examples_of_a_property": min(open_ended, default=0),
        "counter_examples": sum(bool(one["failed"]) for one in tried.values()),
    }


def is_met(measured: dict[str, int]) -> bool:
    """Return whether every property had its examples and held for them."""
    return measured["examples_of_a_property"] >= BAR[LEAST] and measured["counter_examples"] <= BAR["counter_examples"]


def main() -> int:
    """Measure and write; return 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=BAR[LEAST])
    parser.add_argument("--only", default="", help="properties whose names hold this; default: all")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    chosen = parser.parse_args()
    counting, begun = Counting(chosen.examples), time.monotonic()
    pytest.main([str(TESTS), "-p", "no:xdist", "-p", "no:cacheprovider", "-k", chosen.only], plugins=[counting])
    here, measured = environment(), summary(counting.tried)
    content = {
        "format": 1,
        "question": QUESTION,
        "commit": here["commit"],
        "environment": here,
        "bar": BAR,
        "measured": measured | {"seconds": time.monotonic() - begun},
        "status": "ok" if is_met(measured) else "failed",
        "properties": counting.tried,
    }
    write_json(chosen.out / "properties.json", content)
    print(content["measured"], content["status"])
    return int(content["status"] != "ok")


if __name__ == "__main__":
    sys.exit(main())
