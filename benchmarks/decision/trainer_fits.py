"""Full fine-tuning by transformers' Trainer, at its best settings, within a time budget.

The first fit is three epochs at the first learning rate. The remaining budget is spent on the second rate and then on a
second seed, and the fit that is best on validation is scored on test. `trainer_planned` also plans its epochs by the
time: fewer than three, so that the learning rate has decayed to 0 at the end of the budget; or, after the second rate,
up to ten.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from trainer_worker import Clock
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

RATES = (5e-5, 1e-4)  # the second is tried if the budget allows; the better one on validation counts
SEEDS = (0, 1)
EPOCHS, LONGEST = 3.0, 10.0  # LONGEST: at most, for trainer_planned only
BATCH, EVALUATED = 32, 64  # rows per step
MAX_LENGTH = 256  # tokens; this backbone was trained with it, and graft uses it
SETTINGS: dict[str, Any] = {
    "train_sampling_strategy": "group_by_length",
    "per_device_train_batch_size": BATCH,
    "per_device_eval_batch_size": EVALUATED,
    "warmup_steps": 0.1,  # below 1: a share of all steps
    "weight_decay": 0.01,
    "lr_scheduler_type": "linear",
    "eval_strategy": "epoch",
    "save_strategy": "best",
    "save_only_model": True,
    "save_total_limit": 1,
    "load_best_model_at_end": True,
    "metric_for_best_model": "accuracy",
    "greater_is_better": True,
}
MARGIN = 1.1  # factor on forecasts, so that the budget is kept
FORWARDS = 3.2  # a training step takes as long as so many forward passes
CLOSING_SECONDS = 1.5  # to write and read the best weights and to exit
SAMPLES = (1 / 6, 3 / 6, 5 / 6)  # positions in the rows sorted by length at which the speed is measured

Features = list[dict[str, Any]]


@dataclass(frozen=True)
class Plan:
    """A planned fit."""

    rate: float
    seed: int = SEEDS[0]
    epochs: float = EPOCHS


@dataclass
class Fit:
    """A finished fit."""

    plan: Plan
    validation: float = 0.0  # accuracy of its best epoch
    steps: int = 0
    steps_planned: int = 0
    seconds: float = 0.0
    trainer: Any = None  # with the weights of its best epoch

    def told(self) -> dict[str, Any]:
        """Return the fit as stored in the results."""
        counted = {name: getattr(self, name) for name in ("validation", "steps", "steps_planned", "seconds")}
        return asdict(self.plan) | counted


@dataclass
class Bench:
    """The tokenised rows, and the state shared by the fits."""

    question: dict[str, Any]
    clock: Clock
    rows: dict[str, Features]
    labels: list[str]
    tokenizer: Any
    seconds_per_token: float = 0.0  # of a forward pass; measured

    def evaluation(self, split: str) -> float:
        """Return the forecast seconds of scoring a split."""
        return self.seconds_per_token * tokens(self.rows[split])

    def reserve(self) -> float:
        """Return the seconds to reserve: an evaluation, and the test at the end."""
        return MARGIN * (self.evaluation("validation") + self.evaluation("test")) + CLOSING_SECONDS

    def left(self) -> float:
        """Return the seconds available for training."""
        return self.clock.left() - self.reserve()


class InTime(TrainerCallback):
    """A callback that stops training when the remaining time is needed for scoring."""

    def __init__(self, bench: Bench):
        self.bench, self.step = bench, 0.0  # seconds of a step
        self.began = time.perf_counter()

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        """Start timing a step."""
        self.began = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop if another step would end too late."""
        self.step = time.perf_counter() - self.began
        if self.bench.left() < self.step:
            control.should_training_stop = True

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Update the forecast with the measured time of an evaluation."""
        if metrics and "eval_runtime" in metrics:
            self.bench.seconds_per_token = metrics["eval_runtime"] / tokens(self.bench.rows["validation"])


def answer(question: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Return the test score of the fit that is best on validation."""
    torch.set_num_threads(question["threads"])
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    bench = opened(question, clock)
    with tempfile.TemporaryDirectory() as folder:
        fits = [fit(bench, plan, Path(folder) / "0") for plan in [first_plan(bench)]]
        while plan := next_plan(bench, fits):
            fits.append(fit(bench, plan, Path(folder) / str(len(fits))))
            worse = min(fits[-1], best_of(fits[:-1]), key=lambda one: one.validation)
            worse.trainer = None  # to free its memory
        best = best_of(fits)
        scored = best.trainer.predict(bench.rows["test"])
    return {
        "accuracy": accuracy(scored),
        "rows_scored": len(scored.label_ids),
        "validation": best.validation,
        "chosen": described(best),
        "fits": [one.told() for one in fits],
        "settings": SETTINGS | {"rates": RATES, "seeds": SEEDS, "epochs": EPOCHS, "max_length": MAX_LENGTH},
    }


def accuracy(scored: Any) -> float:
    """Return accuracy by the returned labels: grouping by length also reorders the rows of an evaluation."""
    return float((scored.predictions.argmax(-1) == scored.label_ids).mean())


def described(best: Fit) -> str:
    """Describe the fit in words."""
    cut = f", stopped after {best.steps} of {best.steps_planned} steps" if best.steps < best.steps_planned else ""
    return f"rate {best.plan.rate:g}, {best.plan.epochs:.3g} epochs, seed {best.plan.seed}{cut}"


def best_of(fits: list[Fit]) -> Fit:
    """Return the best fit on validation; the first of equals."""
    return max(fits, key=lambda one: one.validation)


def opened(question: dict[str, Any], clock: Clock) -> Bench:
    """Return the tokenised rows, and measure how fast the network reads them."""
    read = {split: lines(Path(path)) for split, path in question["files"].items()}
    labels = sorted({row["label"] for row in read["train"]})
    tokenizer = AutoTokenizer.from_pretrained(question["weights"])
    rows = {split: encoded(tokenizer, table, labels) for split, table in read.items()}
    bench = Bench(question, clock, rows, labels, tokenizer)
    bench.seconds_per_token = measured(bench)
    return bench


def lines(path: Path) -> list[dict[str, str]]:
    """Return the rows of a TSV file."""
    header, *rest = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in rest]


def encoded(tokenizer: Any, table: list[dict[str, str]], labels: list[str]) -> Features:
    """Tokenise the text or both texts, and encode the label."""
    columns = [column for column in ("text", "text_a", "text_b") if column in table[0]]
    texts = [[row[column] for row in table] for column in columns]
    read = tokenizer(*texts, truncation="longest_first", max_length=MAX_LENGTH)
    numbers = [labels.index(row["label"]) for row in table]
    return [
        {name: read[name][place] for name in tokenizer.model_input_names} | {"labels": number}
        for place, number in enumerate(numbers)
    ]


def tokens(rows: Features) -> int:
    """Return the number of tokens of a split."""
    return sum(len(row["input_ids"]) for row in rows)


def measured(bench: Bench) -> float:
    """Return the seconds of a forward pass per token, from three batches of short, medium and long rows."""
    model = network(bench, SEEDS[0]).eval()
    batches = list(samples(bench.rows["test"]))
    collate = DataCollatorWithPadding(bench.tokenizer)
    half = torch.autocast("cpu", torch.bfloat16) if bench.question["precision"] == "bf16" else nullcontext()
    with torch.no_grad(), half:
        model(**collate(batches[0]))  # the first pass is slower
        began = time.perf_counter()
        for batch in batches:
            model(**collate(batch))
        return (time.perf_counter() - began) / sum(tokens(batch) for batch in batches)


def samples(rows: Features) -> Iterator[Features]:
    """Yield batches from the rows sorted by length."""
    ordered = sorted(rows, key=lambda row: len(row["input_ids"]))
    for share in SAMPLES:
        begin = int(share * max(0, len(ordered) - BATCH))
        yield ordered[begin : begin + BATCH]


def network(bench: Bench, seed: int) -> Any:
    """Return the pretrained weights with a fresh head."""
    set_seed(seed)
    return AutoModelForSequenceClassification.from_pretrained(
        bench.question["weights"], num_labels=len(bench.labels), dtype=torch.float32
    )


def first_plan(bench: Bench) -> Plan:
    """Return three epochs; for `trainer_planned` as many as the budget allows, up to three."""
    plan = Plan(RATES[0])
    if bench.question["system"] == "trainer_planned":
        epoch = FORWARDS * bench.evaluation("train") + bench.evaluation("validation")
        plan = replace(plan, epochs=min(EPOCHS, max(0.05, bench.left() / (MARGIN * epoch))))
    return plan


def next_plan(bench: Bench, fits: list[Fit]) -> Plan | None:
    """Return the next fit that is not made yet and that fits in the budget; None if there is none."""
    if fits[0].steps < fits[0].steps_planned or fits[0].plan.epochs < EPOCHS:
        return None
    epochs_paid = bench.left() / (MARGIN * fits[0].seconds / EPOCHS)
    best = best_of(fits).plan
    plans = [Plan(RATES[1])]
    if bench.question["system"] == "trainer_planned" and all(one.plan.epochs == EPOCHS for one in fits):
        longer = min(LONGEST, int(epochs_paid))
        plans += [replace(best, epochs=float(longer))] if longer > EPOCHS else []
    plans += [replace(best, seed=SEEDS[1])] if all(one.plan.seed == SEEDS[0] for one in fits) else []
    made = [one.plan for one in fits]
    return next((plan for plan in plans if plan not in made and plan.epochs <= epochs_paid), None)


def fit(bench: Bench, plan: Plan, folder: Path) -> Fit:
    """Train, evaluate after every epoch (also one cut short by time), and keep the best weights."""
    began = time.perf_counter()
    steps = -(-len(bench.rows["train"]) // BATCH)
    planned = max(1, int(steps * plan.epochs))
    arguments = TrainingArguments(
        output_dir=str(folder),
        learning_rate=plan.rate,
        max_steps=planned,
        seed=plan.seed,
        use_cpu=True,
        bf16=bench.question["precision"] == "bf16",
        dataloader_pin_memory=False,
        disable_tqdm=True,
        logging_strategy="no",
        report_to="none",
        **SETTINGS,
    )
    trainer = Trainer(
        model=network(bench, plan.seed),
        args=arguments,
        data_collator=DataCollatorWithPadding(bench.tokenizer),
        train_dataset=bench.rows["train"],
        eval_dataset=bench.rows["validation"],
        processing_class=bench.tokenizer,
        compute_metrics=lambda scored: {"accuracy": accuracy(scored)},
        callbacks=[InTime(bench)],
    )
    trainer.train()
    state = trainer.state
    return Fit(plan, state.best_metric or 0.0, state.global_step, planned, time.perf_counter() - began, trainer)
