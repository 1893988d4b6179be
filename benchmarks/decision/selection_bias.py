"""What selection bias costs a choice on few rows of validation: `python selection_bias.py --data FOLDER`.

Every method is fitted once on a few hundred rows (`pooled_fits.py`). What it chose among (epochs, blocks, penalties) is
kept for a pool of further rows. Then rows of validation are drawn from the pool again and again; on each draw every
method chooses anew, methods are searched and chosen as `compare` does, and the rest of the pool says what that lost.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from refit import records
from replays import KEPT, Replay, Seen, keeps_an_epoch

from graftwork.decision.choice import WORTH
from graftwork.decision.earlier_boards import Experience, ScoreOnTest, TaskRecord, shipped_prior
from graftwork.decision.posterior import FLATTERED
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.traits import FLOOR, Arm, Traits
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from run import FULL, search, source_of

HERE = Path(__file__).parent.absolute()
RESULT = HERE / "results" / "selection_bias.json"
ROWS = (40, 60, 120, 250)  # rows of validation
REPEATS = 20  # draws of each number
CORRECTED, REPORTED, BEST, BEST_CORRECTED = (
    "chosen, without selection bias", "chosen, with selection bias", "best on validation",
    "best on validation, without selection bias",
)  # fmt: skip


@dataclass(frozen=True)
class Fits:
    """The fits of all methods on one draw of a data set."""

    name: str
    traits: Traits
    right: Mapping[Arm, NDArray[np.int64]]  # (T, N): whether a prediction that was tried is right, for each pooled row
    kept: Mapping[Arm, NDArray[np.int64]]  # (T, N): the same of what would have been kept, had that one been the best
    seconds: Mapping[Arm, float]

    @classmethod
    def read(cls, path: Path) -> Fits:
        """Read what `pooled_fits.py` has written."""
        with np.load(path) as kept:
            told = json.loads(str(kept["about"]))
            arms = {Arm(one["label"], one["name"], one["sort"]): one["seconds"] for one in told["methods"]}

            def unpacked(name: str) -> NDArray[np.int64]:
                return np.unpackbits(kept[name], axis=1)[:, : told["pool"]].astype(np.int64)

            right = {arm: unpacked(arm.label) for arm in arms}
            halfway = {arm: unpacked(arm.label + KEPT) for arm in arms if arm.label + KEPT in kept}
        return cls(path.stem, Traits(**told["traits"]), right, right | halfway, arms)


@dataclass(frozen=True)
class Draw:
    """What the methods have chosen on one draw of validation rows."""

    rows: NDArray[np.int64]  # (M, R): whether what each method kept is right, for each of these rows
    shown: NDArray[np.float64]  # (M,) scores of what each method kept, on these rows, flattered as a choice flatters
    bias: NDArray[np.float64]  # (M,) the selection bias that is expected of them
    worth: NDArray[np.float64]  # (M,) their scores on the rest of the pool


def draw_of(fits: Fits, rows: int, number: int) -> Draw:
    """Draw validation rows and let every method choose on them."""
    pool = next(iter(fits.right.values())).shape[1]
    order = np.random.default_rng(number).permutation(pool)
    here, there = order[:rows], order[rows:]
    kept, worth = [], []
    for arm, right in fits.right.items():
        best = int(right[:, here].mean(axis=1).argmax())
        kept.append(fits.kept[arm][best, here])
        worth.append(fits.kept[arm][best, there].mean())
    bits = np.stack(kept)
    return Draw(bits, bits.mean(axis=1), expected_bias(list(fits.right), fits.traits, bits), np.array(worth))


def expected_bias(arms: Sequence[Arm], traits: Traits, bits: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (M,) the bias by a law: of methods that keep their best epoch, a number of standard errors of a score.

    The standard error is one for all methods, so that luck does not tell them apart; `bits` (M, R) are the rows that
    each method got right.
    """
    variances = [of.var() / len(of) for arm, of in zip(arms, bits, strict=True) if arm.sort != FLOOR]
    return FLATTERED * math.sqrt(statistics.fmean(variances)) * np.array([keeps_an_epoch(arm, traits) for arm in arms])


def replayed(fits: Fits, prior: Prior, rows: int, repeats: int) -> dict[str, Any]:
    """Return the mean loss of each rule, its price and its cost, in fractions and runs of `full`, and the biases."""
    draws = [draw_of(fits, rows, number) for number in range(repeats)]
    arms, labels = list(fits.right), [arm.label for arm in fits.right]
    worth = np.mean([one.worth for one in draws], axis=0)  # (M,)
    full, lost, prices, spent, stated = fits.seconds[arms[labels.index(FULL)]], {}, {}, {}, {}
    for rule, correct in ((CORRECTED, True), (REPORTED, False)):
        found = []
        for one in draws:
            seen = {
                arm: Seen((one.shown[place],), worth[place], fits.seconds[arm],
                          (np.packbits(one.rows[place]).tobytes().hex(),))
                for place, arm in enumerate(arms)
            }  # fmt: skip
            record = TaskRecord(fits.name, fits.traits, {arm: ScoreOnTest(seen[arm].test, 0.0, 1) for arm in arms})
            found.append(search(Replay(record, seen, rows), prior, 0, WORTH, unflattered=correct))
        lost[rule] = statistics.fmean(one.loss for one in found)
        prices[rule] = math.exp(statistics.fmean(math.log(one.price) for one in found))
        spent[rule] = statistics.fmean(one.spent for one in found)
        stated[rule] = statistics.fmean(one.shortfall[0] for one in found if one.shortfall)
    for rule, correct in ((BEST, False), (BEST_CORRECTED, True)):
        chosen = [int((one.shown - correct * one.bias).argmax()) for one in draws]
        lost[rule] = float(worth.max() - worth[chosen].mean())
        prices[rule] = math.exp(statistics.fmean(math.log(max(0.05, fits.seconds[arms[at]]) / full) for at in chosen))
        spent[rule] = sum(fits.seconds.values()) / full
    lost["always full"] = float(worth.max() - worth[labels.index(FULL)])
    prices["always full"] = spent["always full"] = 1.0
    true = np.mean([one.shown - one.worth for one in draws], axis=0)
    expected = np.mean([one.bias for one in draws], axis=0)
    biases = {
        arm.label: {"true": float(of), "expected": float(by)}
        for arm, of, by in zip(arms, true, expected, strict=True)
        if len(fits.right[arm]) > 1
    }
    told = {"lost": lost, "stated": stated, "price": prices, "spent": spent}
    return {"set": fits.name, "train": fits.traits.rows, "rows": rows, **told, "bias": biases}


def of_set(path: Path, repeats: int) -> list[dict[str, Any]]:
    """Replay the choices on one set with every number of rows that leaves half of its pool."""
    sizes, fits = Sizes.read(shipped_prior()[0]), Fits.read(path)
    others = tuple(record for record in records() if source_of(record.name) != source_of(fits.name))
    prior, pool = Prior(sizes, Experience(others)), next(iter(fits.right.values())).shape[1]
    return [replayed(fits, prior, rows, repeats) for rows in ROWS if 2 * rows <= pool]


def table(content: Mapping[str, Any]) -> str:
    """Format the results as Markdown."""
    lines = []
    for rows in ROWS:
        found = [one for one in content["sets"] if one["rows"] == rows]
        if not found:
            continue
        lines += [f"### {rows} rows of validation: {len(found)} sets", ""]
        lines += ["| rule | points lost | at most | stated | price of the choice | spent |", "| --- " * 6 + "|"]
        for rule in found[0]["lost"]:
            lost = [100 * one["lost"][rule] for one in found]
            error = statistics.stdev(lost) / math.sqrt(len(lost)) if len(lost) > 1 else 0.0
            price = math.exp(statistics.fmean(math.log(one["price"][rule]) for one in found))
            spent = statistics.fmean(one["spent"][rule] for one in found)
            stated = [one["stated"][rule] for one in found if rule in one["stated"]]
            told = f"{statistics.fmean(lost):.2f} ± {error:.2f} | {max(lost):.1f}"
            told += f" | {100 * statistics.fmean(stated):.2f}" if stated else " | –"
            lines.append(f"| {rule} | {told} | {price:.2f} | {spent:.1f} |")
        lines += ["", "| method | selection bias, points | expected |", "| --- | --- | --- |"]
        for method in dict.fromkeys(chain.from_iterable(one["bias"] for one in found)):
            known = [one["bias"][method] for one in found if method in one["bias"]]
            means = [100 * statistics.fmean(one[of] for one in known) for of in ("true", "expected")]
            lines.append(f"| `{method}` | {means[0]:.1f} | {means[1]:.1f} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def main() -> None:
    """Fit what is not fitted yet, replay the choices, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the data sets; without it the tables are printed")
    parser.add_argument("--work", type=Path, default=Path("pooled_fits"), help="for the fits, which can go on later")
    parser.add_argument("sets", nargs="*", help="data sets; by default those of small.py")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--out", type=Path, default=RESULT)
    asked = parser.parse_args()
    if asked.data:
        command = [sys.executable, HERE / "pooled_fits.py", "--data", asked.data, "--work", asked.work, *asked.sets]
        subprocess.run(command, check=True)
        with Pool() as pool:
            paths = sorted(path for path in asked.work.glob("*.npz") if not asked.sets or path.stem in asked.sets)
            found = pool.starmap(of_set, [(path, asked.repeats) for path in paths], chunksize=1)
        content = {
            "format": 1,
            "repeats": asked.repeats,
            "sets": list(chain.from_iterable(found)),
            "environment": environment(),
        }
        write_json(asked.out, content)
    print(table(read_json(asked.out)))


if __name__ == "__main__":
    main()
