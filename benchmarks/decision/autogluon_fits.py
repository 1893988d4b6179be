"""AutoGluon MultiModal under a `time_limit`.

Its settings are its defaults except for backbone, length, precision and cores, and these, which suit few minutes and
few cores better: batches of 32 (not 128), three epochs (not ten, of which the first is warm-up), no processes that load
data, no random changes of texts (they need word lists that it downloads), and a fifth of the time kept for scoring.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from trainer_worker import Clock

SCORING = 0.2  # share of the budget reserved for averaging checkpoints and for the test, outside the limit
BATCH, EPOCHS = 32, 3  # as the Trainer's
MAX_LENGTH = 256  # tokens; this backbone was trained with it, and graft uses it
PRECISIONS = {"fp32": 32, "bf16": "bf16-mixed"}


def answer(question: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Return the test score of its predictor."""
    torch.set_num_threads(question["threads"])
    operator = allow_vision_without_operators()
    import pandas
    from autogluon.multimodal import MultiModalPredictor

    tables = {
        split: pandas.read_csv(Path(path), sep="\t", quoting=3, dtype=str, keep_default_na=False)
        for split, path in question["files"].items()
    }
    columns = [name for name in tables["train"].columns if name != "label"]
    settings = {
        "model.names": ["hf_text"],
        "model.hf_text.checkpoint_name": question["weights"],
        "model.hf_text.max_text_len": MAX_LENGTH,
        "model.hf_text.text_trivial_aug_maxscale": 0.0,
        "optim.max_epochs": EPOCHS,
        "env.num_gpus": 0,
        "env.batch_size": BATCH,
        "env.per_gpu_batch_size": BATCH,
        "env.num_workers": 0,
        "env.num_workers_inference": 0,
        "env.precision": PRECISIONS[question["precision"]],
    }
    predictor = MultiModalPredictor(
        label="label",
        problem_type="binary" if tables["train"]["label"].nunique() == 2 else "multiclass",
        eval_metric="accuracy",
        path=str(Path(question["folder"]) / "autogluon"),
        verbosity=0,
    )
    limit = max(1.0, clock.left() - SCORING * clock.seconds)
    predictor.fit(
        tables["train"],
        tuning_data=tables["validation"],
        time_limit=limit,
        column_types=dict.fromkeys(columns, "text"),
        hyperparameters=settings,
    )
    del operator
    predicted = predictor.predict(tables["test"][columns], as_pandas=False)
    right = predicted == tables["test"]["label"].to_numpy()
    summary = {name: float(value) for name, value in predictor.fit_summary(verbosity=0).items()}
    return {
        "accuracy": float(right.mean()),
        "rows_scored": len(right),
        "validation": summary.get("val_accuracy"),
        "chosen": f"{MultiModalPredictor.__name__}, time_limit {limit:.0f} s",
        "summary": summary,
        "settings": settings | {"model.hf_text.checkpoint_name": "the backbone", "scoring": SCORING},
    }


def allow_vision_without_operators() -> torch.library.Library | None:
    """Allow importing torchvision where its own operators do not load; text needs none of them.

    Its wheels are built for a torch with CUDA; with another torch it can only be imported once these operator names are
    defined. Keep the returned object alive for as long as they are needed.
    """
    if torch.version.cuda is not None:
        return None
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library
