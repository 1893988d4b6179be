"""Logits and features of a teacher model, computed once per process and shared by all its students."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from graftwork.core.backbone import Backbone, towers_of
from graftwork.core.example import Example, plain
from graftwork.core.length_buckets import read_in_buckets
from graftwork.core.model import join_towers
from graftwork.core.ragged import Numbers
from graftwork.io.files import digest
from graftwork.module.task_module import TaskModule
from graftwork.ship.folding import folded_network, unfoldable
from graftwork.targets.linear_head import PooledHead
from graftwork.train.answer_order import batches
from graftwork.train.loop import FittedModel

KEPT = 8  # results kept, each of one module on one list of examples


@dataclass(frozen=True)
class _Request:
    """A computation to be cached: `key` is a hash of module and examples, `work` computes the result."""

    key: str
    work: Callable[[], Numbers] = field(compare=False)


def answers_of(module: TaskModule, examples: Sequence[Example]) -> Numbers:
    """Return the logits (N, C), or per word (W, C), of `module`: computed, or from the cache."""
    return _known(module, examples, "logits", lambda: module.fitted.logits(examples))


def features_of(module: TaskModule, examples: Sequence[Example]) -> Numbers:
    """Return the input of the head of a `module` that has features: (N, P), or (W, P) for words; cached too."""
    return _known(module, examples, "features", lambda: _joined(_feature_network(module), examples))


def has_features(module: TaskModule) -> bool:
    """Return whether the module predicts by one linear layer on a network's output, with adapters of any kind in it."""
    return _ends_in_pooled_head(module) or not unfoldable(module)


def _ends_in_pooled_head(module: TaskModule) -> bool:
    return isinstance(module.fitted, FittedModel) and isinstance(module.fitted.head, PooledHead)


def _feature_network(module: TaskModule) -> Backbone:
    fitted: Any = module.fitted
    return fitted.model.backbone if _ends_in_pooled_head(module) else folded_network(module).backbone


def _known(module: TaskModule, examples: Sequence[Example], what: str, work: Callable[[], Numbers]) -> Numbers:
    backbone = module.description["backbone"]
    weights = [what, module.description["delta_sha256"], backbone["revision"] if backbone else None]
    return _once(_Request(digest([weights, [plain(example.inputs) for example in examples]]), work))


@lru_cache(KEPT)
def _once(asked: _Request) -> Numbers:
    return asked.work()


@torch.inference_mode()
def _joined(network: Backbone, examples: Sequence[Example]) -> Numbers:
    encoded, parts = network.encode(examples), []
    order = batches(encoded)
    towers = towers_of(network.card.towers, examples[0])
    for rows in order:
        inputs: Any = network.collate(encoded, encoded.sequences(rows))
        pooled = read_in_buckets(network, inputs, 0, None, towers).pooled
        parts.append(join_towers(pooled, towers).double().cpu().numpy())
    return encoded.whole(np.concatenate(parts), np.concatenate(order))
