"""Validation loss of methods at multiples of their default rate: `rates.py --data FOLDER --network FOLDER_OF_A_T5`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from beside_seq2seq_trainer import RESULTS, SETS, SPLITS, Setting, drawn, kept, ours
from driving import begun, flags

from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.registry import methods

DRAW = 1  # seed of the rows: another draw than that of `beside_seq2seq_trainer.py`
ROWS = (300, 60, 16)  # of train, validation, test; test is not looked at


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Format the losses of one setting as Markdown: a row per method, a column per multiple."""
    multiples = sorted({run["multiple"] for run in runs})
    lines = [f"| method | usual default | {' | '.join(f'{multiple:g} x' for multiple in multiples)} |"]
    lines.append("|---|---|" + "---|" * len(multiples))
    for method in dict.fromkeys(run["method"] for run in runs):
        losses = {run["multiple"]: run["validation_loss"] for run in runs if run["method"] == method}
        cells = [f"{losses[multiple]:.3f}" if multiple in losses else "" for multiple in multiples]
        lines.append(f"| {method} | {methods.get(method).learning_rate:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, append each row to the results as soon as it is there, and print the table."""
    parser = flags(__doc__)
    parser.add_argument("--set", default="debian_summaries", choices=SETS)
    parser.add_argument("--network", required=True, help="folder of a network that writes")
    parser.add_argument("--methods", nargs="*", default=["full", "lora", "adapter", "top_layers"])
    parser.add_argument("--multiples", type=float, nargs="*", default=[5, 1, 2.5, 10], help="of the default rate")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", default="bf16", choices=("fp32", "bf16"))
    chosen = parser.parse_args()
    begun(chosen)
    path = RESULTS / f"rates_{chosen.set}_{chosen.precision}.json"
    rows = dict(zip(SPLITS, ROWS, strict=True))
    with tempfile.TemporaryDirectory() as work:
        files = drawn(chosen.set, rows, DRAW, Path(work))
        network = str(Path(chosen.network).expanduser().absolute())
        setting = Setting(chosen.set, files, rows, network, chosen.epochs, chosen.batch, chosen.precision)
        for multiple in chosen.multiples:
            for method in chosen.methods:
                told = setting.told() | {"method": method, "multiple": multiple}
                if any(told.items() <= run.items() for run in kept(path)):
                    continue
                rate = multiple * methods.get(method).learning_rate
                with tempfile.TemporaryDirectory() as place:
                    found = ours(setting, f"{method}:learning_rate={rate:g}", 0, Path(place))
                row = told | {"learning_rate": rate, "validation_loss": found["validation_loss"]}
                row |= {"load_average": list(os.getloadavg()), "environment": environment()}
                write_json(path, {"status": "ok", "runs": [*kept(path), row]})
                print(f"{method}, {multiple:g} x: {row['validation_loss']:.3f}", flush=True)
        print(table([run for run in kept(path) if setting.told().items() <= run.items()]), flush=True)


if __name__ == "__main__":
    main()
