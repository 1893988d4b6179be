"""Sequential fine-tuning, the contrast that forgets: one network tuned on task after task, one head per task."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graftwork.bank.forgetting import figures
from graftwork.bank.stream_history import History, Row
from graftwork.bank.stream_tasks import How, StreamTask, of_this_task
from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.meter import Stopwatch
from graftwork.core.method import THRESHOLDS_FACT, Logits
from graftwork.core.model import Model
from graftwork.core.progress import Progress
from graftwork.core.task import Dataset, positive_of
from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import safe_load, write_tensors
from graftwork.module.thresholds import thresholds_of, with_thresholds
from graftwork.registry import kinds
from graftwork.run.execute import workbench
from graftwork.run.score_interval import Evidence, evidence_of
from graftwork.run.session import OpenBackbone, Session
from graftwork.train.answer import answer_together
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.loop import FittedModel

RESTORED = ("towers", "blind", THRESHOLDS_FACT)  # facts that predictions need


@dataclass(frozen=True)
class Learnt:
    """A learnt task: its head, fixed from then on, and the test split that it is measured on."""

    name: str
    dataset: Dataset
    encoded: Encoded  # the test split's tokens
    head: Mapping[str, Tensor]
    facts: Mapping[str, Any]

    def logits(self, network: Backbone) -> Logits:
        """Return the logits of the test split by the given network."""
        task = self.dataset.task
        model = Model(network, kinds.get(task.kind), task, int(self.facts["towers"]))
        model.head.load_state_dict(dict(self.head))
        return answer_together(network, self.encoded, [FittedModel(model.eval(), self.facts)])[0]

    def evidence(self, network: Backbone) -> Evidence:
        """Return the headline score on the test split."""
        return evidence_of(self.dataset, "test", self.logits(network))


class Sequential:
    """A learner with method `full`, each task starting from the weights of the previous one. Adds nothing to a bank."""

    def __init__(self, how: How, shared: OpenBackbone, folder: Path):
        """`folder` is that of `stream.json` and the weights; a stream found there is continued."""
        assert shared.backbone is not None
        self.how, self.shared, self.folder = how, shared, folder
        self.history = History(folder / "stream.json", {"sequential": True} | how.identity(shared))
        self.learnt: list[Learnt] = []
        self.network, self._heads = self._restored(shared.backbone)

    def take(self, asked: StreamTask, progress: Progress) -> Row:
        """Learn one task, unless an earlier command did, and measure all tasks with the resulting network.

        Raises `TaskFailed`, and `ConfigError` where a task that the network has learnt is missing or has changed.
        """
        opened = OpenBackbone(self.network, self.shared.load, FrozenStore())  # its states are used for this task only
        session = self.how.session(asked, opened)
        question = self.how.question(asked, session)
        if asked.task.name in self.history.rows:
            return self._recall(session, asked.task.name, question)
        there = {one.name for one in self.learnt}
        missing = [name for name in self.history.rows if name not in there]
        if missing:
            raise ConfigError(
                "tasks are missing that the network was trained on before; they must be scored again",
                where=str(self.history.path),
                got=f"no {', '.join(missing)}",
                do="name them too, or another folder for this stream: --out DIR",
            )
        seconds, row = self._learn(asked, session, progress)
        progress(1.0, "measuring all tasks again")
        return self._settle({"task": asked.task.name, "question": question} | row, seconds)

    def _learn(self, asked: StreamTask, session: Session, progress: Progress) -> tuple[float, Row]:
        """Train the network on one task; return the seconds taken and the row without its measurements."""
        bench = workbench(session, self.how.method, self.how.recipe(asked), self.how.seed)
        bench.progress = progress
        watch, data = Stopwatch(), session.dataset
        with of_this_task((StorageError,)):
            fitted = self.how.method.method.fit(bench)
        assert isinstance(fitted, FittedModel)
        logits = fitted.logits(data.validation.examples)
        thresholds = thresholds_of(bench.setting, logits, data.validation.targets)
        seconds = watch.read().wall_seconds
        self.network = frozen_copy(fitted.model.backbone)
        facts = {key: value for key, value in with_thresholds(fitted, thresholds).facts.items() if key in RESTORED}
        head = {key: value.detach().cpu().clone() for key, value in fitted.model.head.state_dict().items()}
        self.learnt.append(_learnt(session, asked.task.name, head, facts))
        return seconds, {
            "kind": data.task.kind,
            "metric": data.task.metrics[0],
            "positive": positive_of(data.task),
            "rows": {name: len(split.examples) for name, split in data.splits.items()},
            "facts": facts,
            "trained_parameters": fitted.trained_parameters,
        }

    def _settle(self, row: Row, seconds: float) -> Row:
        """Measure every task with the current network; store the weights, then the row that names them."""
        watch = Stopwatch()
        now = [one.evidence(self.network) for one in self.learnt]
        low, high = now[-1].interval
        matrix = [*self.history.more.get("matrix", []), [evidence.score for evidence in now]]
        row |= {
            "score": {"score": now[-1].score, "low": low, "high": high},
            "seconds": {"train": seconds, "measure": watch.read().wall_seconds},
            "figures": asdict(figures(matrix)),
            "network": self.network.card.revision,
        }
        before, weights = self.history.more.get("weights"), f"network-{self.network.card.revision[:16]}.safetensors"
        write_tensors(self.folder / weights, self._weights())
        self.history.more = {"matrix": matrix, "weights": weights}
        self.history.put(row)
        if before is not None and before != weights:
            with contextlib.suppress(FileNotFoundError):
                (self.folder / before).unlink()
        return row

    def _recall(self, session: Session, name: str, question: str) -> Row:
        """Restore a task of an earlier command: its stored head and its test split; return its row."""
        row = self.history.rows[name]
        if row["question"] != question:
            raise ConfigError(
                f"the network was trained on {name!r} already, with other data or another recipe",
                where=str(self.history.path),
                do="name another folder: --out DIR; training of a network can't be undone",
            )
        self.learnt.append(_learnt(session, name, self._heads[name], row["facts"]))
        return row | {"reused": True}

    def _weights(self) -> dict[str, Tensor]:
        tensors = {f"network/{name}": tensor.clone() for name, tensor in self.network.module.state_dict().items()}
        for one in self.learnt:
            tensors |= {f"head/{one.name}/{name}": tensor for name, tensor in one.head.items()}
        return tensors

    def _restored(self, backbone: Backbone) -> tuple[Backbone, dict[str, dict[str, Tensor]]]:
        """Load the network of the last command and the head of every task. Raises `StorageError`."""
        if not self.history.rows:
            return backbone, {}
        path = self.folder / self.history.more["weights"]
        tensors = safe_load(path)
        heads: dict[str, dict[str, Tensor]] = {name: {} for name in self.history.rows}
        weights = {}
        for key, tensor in tensors.items():
            what, _, name = key.partition("/")
            if what == "network":
                weights[name] = tensor
            else:
                task, _, name = name.partition("/")
                heads[task][name] = tensor
        copy = backbone.copy()
        copy.module.load_state_dict(weights)
        network = frozen_copy(copy)
        last = list(self.history.rows.values())[-1]["network"]
        if network.card.revision != last:
            raise StorageError(
                "these are not the weights that the stream saved",
                where=str(path),
                got=f"sha256 {network.card.revision[:16]}…",
                expected=f"sha256 {last[:16]}…",
                do=f"remove {self.history.path} to begin again",
            )
        return network, heads


def frozen_copy(backbone: Backbone) -> Backbone:
    """Return a frozen copy whose revision is a hash of its weights, so that states of other weights never match."""
    copy = backbone.copy()
    copy.module.eval().requires_grad_(False)
    copy.card = replace(copy.card, revision=_content(copy.module))
    return copy


def _content(module: nn.Module) -> str:
    content = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        content.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return content.hexdigest()


def _learnt(session: Session, name: str, head: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Learnt:
    assert session.backbone is not None and session.frozen is not None
    test = session.dataset.test
    kept = replace(session.dataset, splits={"test": test}, report={})
    return Learnt(name, kept, session.frozen.encoded(session.backbone, session.dataset.digest, test), head, facts)
