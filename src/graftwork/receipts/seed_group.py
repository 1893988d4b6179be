"""The runs of one row of a board, which differ only in the seed, and the prediction interval of their scores."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

from scipy.stats import t

from graftwork.core.run import RunResult, RunSpec
from graftwork.errors import GraftworkError
from graftwork.receipts.file_integrity import read_spec
from graftwork.run.store import RunStore, read_result

FEWEST_RUNS = 5  # minimum number of runs for a band
COVERAGE = 0.95
ROUNDING = 1e-12  # smaller differences of scores count as equal
TOLERANCE = 0.01  # for a score without a band: a typical effect of the seed (Reimers & Gurevych 2017, D17-1035)


@dataclass(frozen=True)
class Band:
    """The expected range of the score of one more run of a row."""

    low: float
    high: float
    runs: int  # number of runs behind it; 0: no band, but the recorded score ± the tolerance

    def holds(self, score: float) -> bool:
        """Return whether a score lies in the band."""
        return self.low <= score <= self.high


def row_of(root: Path, spec: RunSpec) -> list[tuple[Path, RunResult]]:
    """Return the runs of the store that differ from `spec` at most in the seed, by seed, including failed ones."""
    found = []
    for run_id in RunStore(root).ids() if root.is_dir() else ():
        folder = root / run_id
        try:
            own = read_spec(folder)
        except GraftworkError:
            continue  # a pre-training, or not a valid run
        if _is_in_row(own, spec):
            found.append((folder, read_result(folder / "result.json")))
    return sorted(found, key=lambda run: run[1].seed)


def _is_in_row(own: RunSpec, spec: RunSpec) -> bool:
    """Return whether `own` differs from `spec` at most in the seed. A run of seed 0 is in rows with any `held`."""
    alike = replace(own, seed=spec.seed, held=spec.held) == spec
    return alike and (own.held == spec.held or own.seed == 0)


def plausible_repeat(others: list[float], recorded: float, found: float) -> tuple[Band, bool]:
    """Test whether a run's recorded score and that of its re-execution are consistent with `others`, the scores of the
    other runs of its row; return the band that decides, and the result.

    Each of the two scores must lie in the band of the others and the other score. So a false score widens only the band
    that it belongs to, not the one that it is tested against.
    """
    band, again = band_of([*others, recorded], recorded), band_of([*others, found], found)
    if band.holds(found) and not again.holds(recorded):
        return again, False
    return band, band.holds(found)


def band_of(scores: list[float], recorded: float) -> Band:
    """Return the 95 % prediction interval for one more run: mean ± t · sd · sqrt(1 + 1/n).

    With fewer than five runs, or if all scores are equal, the recorded score ± a tolerance: a method without variance
    over seeds gives no information on the effect of another processor's rounding.
    """
    count = len(scores)
    if count < FEWEST_RUNS or max(scores) - min(scores) < ROUNDING:
        return Band(recorded - TOLERANCE, recorded + TOLERANCE, 0)
    mean, sd = statistics.fmean(scores), statistics.stdev(scores)
    half = float(t.ppf((1 + COVERAGE) / 2, count - 1)) * sd * math.sqrt(1 + 1 / count)
    return Band(mean - half, mean + half, count)
