"""The runs of one row of a board: the same run but for the seed, as a store holds them, and what their scores say."""

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

FEWEST_RUNS = 5  # that a band is known from
COVERAGE = 0.95
ROUNDING = 1e-12  # scores that differ by less are alike
TOLERANCE = 0.01  # of a score, where no band is known: what another seed may do (Reimers & Gurevych 2017, D17-1035)


@dataclass(frozen=True)
class Band:
    """Where the score of one more run of a row is expected."""

    low: float
    high: float
    runs: int  # it is known from; 0: no band is known, and this is the recorded score with a tolerance about it

    def holds(self, score: float) -> bool:
        """Whether a score lies in it."""
        return self.low <= score <= self.high


def row_of(root: Path, spec: RunSpec) -> list[tuple[Path, RunResult]]:
    """The runs of the store that differ from `spec` in the seed at most, by seed, failed ones too."""
    found = []
    for run_id in RunStore(root).ids() if root.is_dir() else ():
        folder = root / run_id
        try:
            own = read_spec(folder)
        except GraftworkError:
            continue  # a pre-training, or no run of ours
        if _is_in_row(own, spec):
            found.append((folder, read_result(folder / "result.json")))
    return sorted(found, key=lambda run: run[1].seed)


def _is_in_row(own: RunSpec, spec: RunSpec) -> bool:
    """Whether it differs from `spec` in the seed at most. Seed 0 holds nothing: it is in the rows of those that do."""
    alike = replace(own, seed=spec.seed, held=spec.held) == spec
    return alike and (own.held == spec.held or own.seed == 0)


def held_against(others: list[float], recorded: float, found: float) -> tuple[Band, bool]:
    """The band that decides whether a run's two scores, the recorded one and that of executing it again, are of one
    row with the `others`; and whether they are.

    Either one has to lie where the others with the other one expect it: a false score widens the band that it is part
    of, and not the one that it is held against.
    """
    band, again = band_of([*others, recorded], recorded), band_of([*others, found], found)
    if band.holds(found) and not again.holds(recorded):
        return again, False
    return band, band.holds(found)


def band_of(scores: list[float], recorded: float) -> Band:
    """The 95 % prediction interval for one more run: mean ± t · sd · sqrt(1 + 1/n).

    The recorded score and a tolerance with fewer than five runs, and where all are alike: a method without luck of
    seeds says nothing of what another processor's rounding does.
    """
    count = len(scores)
    if count < FEWEST_RUNS or max(scores) - min(scores) < ROUNDING:
        return Band(recorded - TOLERANCE, recorded + TOLERANCE, 0)
    mean, sd = statistics.fmean(scores), statistics.stdev(scores)
    half = float(t.ppf((1 + COVERAGE) / 2, count - 1)) * sd * math.sqrt(1 + 1 / count)
    return Band(mean - half, mean + half, count)
