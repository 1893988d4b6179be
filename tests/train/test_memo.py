"""What no seed decides is computed once, and every run is charged for it in full."""

from __future__ import annotations

import time
from dataclasses import replace

from graftwork.core.meter import Phase
from graftwork.core.tally import Tally
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.memo import MemoEntry


def test_the_second_run_does_no_work_and_pays_for_it() -> None:
    done, calls = MemoEntry(), []

    def work(tally: Tally) -> str:
        calls.append(tally)
        time.sleep(0.02)
        tally.add(100.0, padding_share=0.5)
        return "value"

    first, second = (replace(tiny_bench(tiny_dataset(), None), tally=Tally(), charged=Phase()) for _ in range(2))
    assert [done.get(bench, "fit", work) for bench in (first, second)] == ["value", "value"] and len(calls) == 1
    assert first.tally == second.tally == Tally(100.0, 50.0)
    assert first.charged.wall_seconds == 0 and second.charged.wall_seconds >= 0.02
    done.get(first, "another", work)
    assert len(calls) == 2
