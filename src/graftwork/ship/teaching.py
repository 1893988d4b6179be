"""Training of a student towards the logits of its teacher and the labels (Hinton et al. 2015, arXiv:1503.02531)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from graftwork.core.backbone import Backbone
from graftwork.core.kind import LearnsFromLogits
from graftwork.core.media import MEDIA
from graftwork.core.method import THRESHOLDS_FACT, Scorer, Setting, Workbench
from graftwork.core.progress import Progress
from graftwork.core.ragged import flat
from graftwork.core.run import Recipe
from graftwork.core.task import Split
from graftwork.data.splits.batch_order import epoch_batches
from graftwork.errors import ConfigError
from graftwork.methods.full import Full
from graftwork.module.task_module import TaskModule
from graftwork.module.thresholds import thresholds_of
from graftwork.registry import kinds
from graftwork.ship.compression import CompressionData
from graftwork.ship.folding import LinearHead
from graftwork.ship.invented_texts import invent_examples, readable
from graftwork.ship.taught_targets import TaughtLoss, taught_targets
from graftwork.ship.teacher_answers import answers_of, features_of, has_features
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.recipe import resolve
from graftwork.train.seeds import derive

BATCH = 32  # rows of a step
BACKWARD = 3.0  # cost of a training step in forward passes: one forward, two backward (for inputs and for weights)
ONLY_HERE = "students"  # name of the data in a store of frozen passes that only one fit uses


@dataclass(frozen=True)
class Teaching:
    """The settings of distillation."""

    epochs: int  # passes over labelled, unlabelled and invented texts
    learning_rate: float  # peak of the schedule
    temperature: float  # divides the logits of teacher and student in the loss
    teacher: float  # share of the teacher in the loss of a row with a label, 0 … 1
    features: float  # factor of the loss on features, the head's input, against the teacher's; 0: none
    invented: int  # texts made from each labelled one, for the teacher to predict


@dataclass(frozen=True)
class Student:
    """A trained student: its network, whose weights are its own, and its head."""

    backbone: Backbone
    head: LinearHead
    facts: Mapping[str, Any]


def unteachable(module: TaskModule) -> str:
    """Return why no student can learn from the module's predictions, or an empty string."""
    if module.backbone is None:
        return "it uses no network, and answers faster than a student would"
    kind = kinds.get(module.task.kind)
    if not isinstance(kind, LearnsFromLogits):
        return (
            f"a student learns from label probabilities or numbers, and tasks of kind {module.task.kind} have neither"
        )
    media = sorted(set(module.roles) & set(MEDIA))
    return f"a student reads texts, and this reads {media[0]}s" if media else ""


def texts_taught(data: CompressionData, invented: int) -> int:
    """Return how many texts a student learns from in an epoch, with `invented` ones for each labelled one."""
    return (1 + invented) * len(data.train.examples) + len(data.unlabelled)


def require_sense(lesson: Teaching) -> None:
    """Raise `ConfigError` for settings that are out of range."""
    wrong = {
        "epochs": lesson.epochs < 1,
        "learning_rate": lesson.learning_rate <= 0,
        "temperature": lesson.temperature <= 0,
        "teacher": not 0 <= lesson.teacher <= 1,
        "features": lesson.features < 0,
        "invented": lesson.invented < 0,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise ConfigError(
                f"{name} of a student's training is out of range",
                got=repr(getattr(lesson, name)),
                expected="epochs, learning_rate and temperature above 0, teacher at most 1, none below 0",
            )


def taught(
    module: TaskModule, network: Backbone, data: CompressionData, lesson: Teaching, *, seed: int, progress: Progress
) -> Student:
    """Train all weights of a copy of `network`, and a linear head, to reproduce the logits of `module`, the teacher.

    The teacher predicts every text once, before training. The epoch with the best validation score is kept. Raises
    `ConfigError` or `Diverged`.
    """
    require_sense(lesson)
    progress(0.0, "the teacher answers")
    train, loss = _lessons(module, network, data, lesson, seed)
    setting = Setting(module.task, kinds.get(module.task.kind), network)
    recipe = resolve(
        Recipe(epochs=lesson.epochs, batch_size=BATCH, learning_rate=lesson.learning_rate),
        len(train.examples),
        setting.kind.outputs(module.task),
        pretrained=False,  # the defaults for few rows of many classes do not suit a student
    )
    bench = Workbench(
        setting=setting,
        train=train,
        validation=data.validation,
        seed=seed,
        recipe=recipe,
        order=partial(epoch_batches, recipe, derive(seed, "order")),
        passes=FrozenStore().of(network, ONLY_HERE),
        score=Scorer(module.task.metrics[0], setting, data.validation),
        progress=progress,
        teacher_loss=loss,
    )
    fitted = Full(decay=1.0).fit(bench)
    thresholds = thresholds_of(setting, fitted.logits(data.validation.examples), data.validation.targets)
    model, out = fitted.model, fitted.model.head.out
    model.network.requires_grad_(False)
    kept: dict[str, Any] = {"blind": fitted.facts["blind"]} if "blind" in fitted.facts else {}
    kept |= {} if thresholds is None else {THRESHOLDS_FACT: thresholds.tolist()}
    told = {name: fitted.facts[name] for name in ("epochs", "best_epoch", "steps", "validation_by_epoch")}
    rows = {"labelled": len(data.train.examples), "answered_by_teacher": len(train.examples)}
    head = LinearHead(out.weight.detach().clone(), out.bias.detach().clone(), kept)
    return Student(model.backbone, head, dataclasses.asdict(lesson) | told | rows)


def _lessons(
    module: TaskModule, network: Backbone, data: CompressionData, lesson: Teaching, seed: int
) -> tuple[Split, TaughtLoss]:
    """Return the training split of a student (texts with the teacher's outputs, labelled ones first) and its loss."""
    labelled, further = data.train.examples, data.unlabelled
    if lesson.invented and readable(labelled[0].inputs):
        further += invent_examples(labelled, lesson.invented, derive(seed, "invented"))
    texts = [examples for examples in (labelled, further) if examples]
    logits = [answers_of(module, examples) for examples in texts]
    features = [features_of(module, examples) for examples in texts] if _comparable(module, network, lesson) else []
    encoded, kind = torch.from_numpy(flat(data.train.targets)[:0]), kinds.get(module.task.kind)
    loss = TaughtLoss(
        kind,
        tuple(encoded.shape[1:]),
        encoded.dtype,
        kind.outputs(module.task),
        lesson.temperature,
        lesson.teacher,
        lesson.features,
    )
    targets = taught_targets(data.train.targets, logits, features)
    return Split(data.train.name, (*labelled, *further), targets), loss


def _comparable(module: TaskModule, network: Backbone, lesson: Teaching) -> bool:
    """Return whether features are learnt: the teacher has some, and the student agrees in shape and pooling."""
    if not lesson.features or module.backbone is None or not has_features(module):
        return False
    ours, theirs = network.card, module.backbone.card
    return (ours.width, ours.pooling, ours.towers) == (theirs.width, theirs.pooling, theirs.towers)
