"""The ladder of pre-training, measured: `python benchmarks/ladder/run.py --data FOLDER --work FOLDER [PART …]`.

Every part is split into units; results are kept in the work folder and never recomputed, so that an interrupted
benchmark resumes. The same command in a second process shares the work. A failed unit is reported, and the others
continue.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import ablation
import domain
import generations
import resume
import torch
import ulmfit_parts
from boards import Place
from estimate import estimate
from ladder_plot import write_plot
from plan import Plan
from tasks import Draw
from units import Bench, Unit, chosen

from graftwork.io.files import finite, write_json
from graftwork.machine.environment import environment

HERE = Path(__file__).parent.absolute()
PARTS: dict[str, ModuleType] = {
    "generations": generations,
    "ablation": ablation,
    "ulmfit": ulmfit_parts,
    "domain": domain,
    "resume": resume,
}
BUDGET = 2e13  # FLOP
CORPUS = 20_000_000  # bytes
TRY = {"budget": 3e9, "corpus_bytes": 400_000, "vocabulary": 600, "recipe": {"batch": 4, "length": 32}}
TRY_DRAW = Draw(train=40, validation=20, test=40, words=24)


def keep(plan: Plan, part: str, units: Sequence[Unit], out: Path) -> None:
    """Write `results/<part>.json`: the results of finished units, and which units are missing."""
    records = {unit.name: plan.bench.record(unit.name) for unit in units}
    left = [name for name, record in records.items() if record is None]
    failed = [name for name, record in records.items() if record is not None and record["status"] != "ok"]
    content = {
        "format": 1,
        "status": "partial" if left or failed else "ok",
        "failed": failed,
        "not_run": left,
        "settings": {
            "budget_flop": plan.budget,
            "corpus_bytes": plan.corpus_bytes,
            "rows": vars(plan.place.draw),
            "seeds": plan.place.seeds,
            "epochs": plan.place.epochs,
        },
        "units": {name: record for name, record in records.items() if record is not None},
        "environment": environment(),
    }
    write_json(out / f"{part}.json", finite(content))
    if part == "generations" and plan.bench.done("judge.generations"):
        write_plot(content, out / "generations.svg")


def main() -> None:
    """Run the requested parts, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--work", type=Path, required=True, help="where runs and what is done are kept")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="units, and what they need: 'board.masked.*'")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, default=BUDGET, help="FLOP of a rung's pre-training")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--try", action="store_true", dest="a_try", help="everything once, tiny; into the work folder")
    parser.add_argument("--estimate", action="store_true", help="20 steps of every rung: how long will it take?")
    asked = parser.parse_args()
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: one of {', '.join(PARTS)}")
    torch.set_num_threads(asked.threads)
    data, work = asked.data.absolute(), asked.work.absolute()
    out = work / "results" if asked.a_try else asked.out.absolute()
    for folder in (work, work / "runs", out):
        folder.mkdir(parents=True, exist_ok=True)
    os.chdir(work)  # so that paths of runs are relative to it
    draw, seeds, epochs = (TRY_DRAW, 1, 1) if asked.a_try else (Draw(), asked.seeds, asked.epochs)
    settings = TRY if asked.a_try else {"budget": asked.budget, "corpus_bytes": CORPUS}
    plan = Plan(Bench(work), Place(data, work, draw, seeds, epochs), **settings)
    if asked.estimate:
        estimate(plan)
        return
    for part in asked.parts or PARTS:
        units = PARTS[part].units(plan)
        plan.bench.run_all(chosen(units, asked.only), partial(keep, plan, part, units, out))
        keep(plan, part, units, out)


if __name__ == "__main__":
    main()
