"""The transformers Trainer as a contender, with peft for LoRA: BertForSequenceClassification, as people use it."""

from __future__ import annotations

import importlib.metadata
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from pieces import Piece, task, with_portion
from protocol import Answer, Gate, Trained, Watch
from torch import nn
from torch.utils.data import Dataset
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    logging,
)

from graftwork.backbones.minilm import package_folder
from graftwork.core.configured_methods import parse_method
from graftwork.core.task import Split
from graftwork.data.load import load

PRECISIONS = ("fp32", "autocast", "bf16")  # bf16: of the weights
BATCH = 32
DATA_LOADERS_PREFETCH = 4  # batches, with a separate loading process


@dataclass(frozen=True)
class PeerSettings:
    """The settings that can be chosen; the defaults are run_glue's, except the batch of 32."""

    trains: str = "all"  # "all" | "top:K" blocks and the layers after them | "lora" | "bias" | "head"
    precision: str = "fp32"
    attention: str = "sdpa"  # transformers' default for this network
    padding: str = "constant"  # to the piece's max_length; "dynamic": to the batch's longest
    grouped: bool = False  # train_sampling_strategy="group_by_length"
    loaders: int = 0  # processes that load data
    dropout: bool = True
    compiled: bool = False
    learning_rate: float = 5e-5


class Peer:
    """The Trainer with one setting on one piece of data. Implements `Contender`."""

    def __init__(self, piece: Piece, data: Path, settings: PeerSettings, portion: int | None, by_epoch: bool) -> None:
        logging.set_verbosity_error()
        self.settings, self.piece, self.by_epoch = settings, piece, by_epoch
        self.folder = Path(tempfile.mkdtemp(prefix="engine_speed_"))
        whole = load(task(piece, data, self.folder / "data"))
        dataset = with_portion(whole, portion)
        self.classes = len(dataset.task.labels)
        self.tokenizer = AutoTokenizer.from_pretrained(package_folder())
        self.splits = {name: self._encode(split) for name, split in dataset.splits.items()}
        self.facts: Answer = {"tokens": sum(len(row["input_ids"]) for row in self.splits["train"])}
        if dataset is not whole:
            self.facts["share"] = len(dataset.train.examples) / len(whole.train.examples)

    def _encode(self, split: Split) -> list[dict[str, Any]]:
        """Tokenise a split once, before the clock starts; the engine tokenises in its first fit."""
        roles = list(split.examples[0].inputs)
        texts = [[example.inputs[role] for example in split.examples] for role in roles]
        encoded = self.tokenizer(*texts, truncation=True, max_length=self.piece.max_length)
        rows = [dict(zip(encoded, values, strict=True)) for values in zip(*encoded.values(), strict=True)]
        return [row | {"labels": int(target)} for row, target in zip(rows, split.targets, strict=True)]

    def about(self) -> Answer:
        """Return the training data's sizes, and the versions of the libraries."""
        versions = {name: importlib.metadata.version(name) for name in ("transformers", "accelerate", "peft", "torch")}
        rows = {f"{name}_rows": len(self.splits[name]) for name in ("train", "test")}
        return self.facts | rows | {"versions": versions}

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """Run `trainer.train()`; the answer to "start" is the time to make model and trainer."""
        watch = Watch()
        trainer = self._trainer(seed, epochs)
        timed = _Timed(watch, gate, self.facts, lambda: self._now(trainer))
        trainer.add_callback(timed)
        trainer.train()
        return Trained(timed.lap(trainer.state), lambda: self._scores(trainer))

    def _trainer(self, seed: int, epochs: int) -> Trainer:
        chosen = self.settings
        args = TrainingArguments(
            output_dir=str(self.folder / "trainer"),
            num_train_epochs=epochs,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=BATCH,
            learning_rate=chosen.learning_rate,
            seed=seed,
            use_cpu=True,
            bf16=chosen.precision == "autocast",
            optim="adamw_torch_fused",
            train_sampling_strategy="group_by_length" if chosen.grouped else "random",
            dataloader_num_workers=chosen.loaders,
            dataloader_persistent_workers=chosen.loaders > 0,
            dataloader_prefetch_factor=DATA_LOADERS_PREFETCH if chosen.loaders else None,
            dataloader_pin_memory=False,
            torch_compile=chosen.compiled,
            save_strategy="no",
            logging_strategy="epoch",
            report_to="none",
            disable_tqdm=True,
        )
        collator = DataCollatorWithPadding(
            self.tokenizer,
            padding="max_length" if chosen.padding == "constant" else "longest",
            max_length=self.piece.max_length if chosen.padding == "constant" else None,
            pad_to_multiple_of=None if chosen.padding == "constant" else 8,
        )
        return Trainer(self._model(seed), args, train_dataset=self.splits["train"], data_collator=collator)

    def _model(self, seed: int) -> nn.Module:
        """Return the pretrained network with a fresh head drawn from `seed`."""
        torch.manual_seed(seed)
        chosen = self.settings
        config = AutoConfig.from_pretrained(package_folder(), num_labels=self.classes)
        if not chosen.dropout:
            config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        model: nn.Module = AutoModelForSequenceClassification.from_pretrained(
            package_folder(),
            config=config,
            dtype=torch.bfloat16 if chosen.precision == "bf16" else torch.float32,
            attn_implementation=chosen.attention,
        )
        if chosen.trains == "lora":
            ours = parse_method("lora").config
            low_rank = LoraConfig(
                task_type="SEQ_CLS",
                r=ours["rank"],
                lora_alpha=ours["alpha"],
                lora_dropout=0.0,
                target_modules=["query", "value"],
            )
            adapted: nn.Module = get_peft_model(model, low_rank)
            return adapted
        choose_trained(model, chosen.trains)
        return model

    def _scores(self, trainer: Trainer) -> Answer:
        return {split: self._accuracy(trainer, split) for split in ("validation", "test")}

    def _now(self, trainer: Trainer) -> Answer:
        return {"test_now": self._accuracy(trainer, "test")} if self.by_epoch else {}

    def _accuracy(self, trainer: Trainer, split: str) -> float:
        """Return accuracy by the returned label ids: a grouped sampler also reorders the evaluated rows."""
        answered = trainer.predict(cast(Dataset[Any], self.splits[split]))
        predicted = np.asarray(answered.predictions).argmax(axis=1)
        return float((predicted == answered.label_ids).mean())


def choose_trained(model: nn.Module, trains: str) -> None:
    """Keep gradients only for what `trains` names, and for the classifier. The network must be a BERT."""
    if trains == "all":
        return
    lowest = len(cast(nn.ModuleList, model.get_submodule("bert.encoder.layer"))) - int(trains.partition(":")[2] or 0)
    for name, parameter in model.named_parameters():
        place = re.search(r"encoder\.layer\.(\d+)\.", name)
        above = int(place[1]) >= lowest if place else "pooler" in name
        chosen = {"top": above, "bias": name.endswith("bias"), "head": False}[trains.partition(":")[0]]
        parameter.requires_grad_(chosen or name.startswith("classifier"))


class _Timed(TrainerCallback):
    """A callback that reads the watch at each epoch's begin; the time until the next begin counts."""

    def __init__(self, watch: Watch, gate: Gate, facts: Answer, now: Callable[[], Answer]) -> None:
        self.watch, self.gate, self.facts, self.now = watch, gate, facts, now

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any
    ) -> None:
        """Report what was measured before the epoch, and wait for the next command."""
        self.gate(self.lap(state))
        self.watch.go()

    def lap(self, state: TrainerState) -> Answer:
        """Return the measurements since the last gate, and the scores at it."""
        losses = [line["loss"] for line in state.log_history if "loss" in line]
        measured = self.watch.lap()
        now = self.now() if state.global_step else {}
        return measured | self.facts | {"loss": losses[-1] if losses else None} | now
