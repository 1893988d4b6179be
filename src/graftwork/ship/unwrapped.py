"""A module without its wrapper method, if that only encodes texts in another way, as `cross_encoder` does."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from graftwork.core.method import THRESHOLDS_FACT
from graftwork.module.task_module import TaskModule
from graftwork.module.thresholds import WithThresholds, with_thresholds
from graftwork.train.wrapper_method import FittedOver


def unwrapped(module: TaskModule) -> TaskModule:
    """Return the module of the wrapped method, on a backbone that encodes as the wrapper does; else the module itself.

    Its predictions are the same. Its description keeps the name of the wrapper, which says how it was trained.
    """
    fitted: Any = module.fitted.fitted if isinstance(module.fitted, WithThresholds) else module.fitted
    if not isinstance(fitted, FittedOver) or fitted.backbone is None:
        return module
    below = with_thresholds(fitted.fitted, module.description["facts"].get(THRESHOLDS_FACT))
    described = dict(module.description) | {"backbone": asdict(fitted.backbone.card)}
    return replace(module, fitted=below, backbone=fitted.backbone, description=described)
