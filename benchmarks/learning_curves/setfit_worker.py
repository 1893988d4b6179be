"""SetFit on the draws it receives, one JSON line each; started by `beside_setfit.py`, with a Python that has setfit.

Nothing of Graftwork is imported: setfit may be installed in its own environment.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import sys
import tempfile
import time
from typing import Any

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},  # of its TrainingArguments: all pairs of two classes, as many of one class, once
    "paper": {"num_iterations": 20},  # 20 pairs of each sort per text, as in the paper
}
SEED = 42  # setfit's own default, plus the number of the draw


def main() -> None:
    """Report the versions, then answer draw after draw."""
    folder, threads = sys.argv[1], int(sys.argv[2])
    answers, sys.stdout = sys.stdout, sys.stderr  # keep libraries' output out of the answers
    try:
        import setfit
        import torch
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers, flush=True)
        return
    torch.set_num_threads(threads)
    names = ("setfit", "sentence-transformers", "transformers", "torch", "scikit-learn")
    versions = {name: importlib.metadata.version(name) for name in names}
    print(json.dumps({"versions": versions, "threads": torch.get_num_threads()}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(setfit, folder, json.loads(line))), file=answers, flush=True)


def answer(setfit: Any, folder: str, draw: dict[str, Any]) -> dict[str, Any]:
    """Train on the texts of a draw and predict the test texts; loading the network is not timed."""
    from datasets import Dataset

    model = setfit.SetFitModel.from_pretrained(folder)
    rows = Dataset.from_dict({"text": draw["texts"], "label": draw["labels"]})
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(sys.stderr):
        arguments = setfit.TrainingArguments(
            output_dir=out, seed=SEED + draw["number"], report_to="none", **SETTINGS[draw["setting"]]
        )
        trainer = setfit.Trainer(model=model, args=arguments, train_dataset=rows)
        began = time.perf_counter()
        trainer.train()
        trained = time.perf_counter()
        predicted = model.predict(draw["asked"], as_numpy=True)
        ended = time.perf_counter()
    return {
        "predictions": [int(one) for one in predicted],
        "train_seconds": trained - began,
        "predict_seconds": ended - trained,
    }


if __name__ == "__main__":
    main()
