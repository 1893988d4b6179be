"""Which way of adapting a pretrained model to your labelled data is worth its price?

    import graftwork as gw

    board = gw.compare("tickets.csv", methods=["linear_probe", "adapter"], seeds=5)  # or a data frame

A public name is imported, with the libraries that it needs, when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graftwork.bank.bank import Bank
    from graftwork.bank.stream import stream
    from graftwork.benchmark.run_suite import benchmark
    from graftwork.budget.ladder import climb
    from graftwork.compare.compare_tasks import compare_tasks
    from graftwork.compare.curve import curve
    from graftwork.compare.leaderboard import compare
    from graftwork.core.own_metric import register_metric
    from graftwork.core.progress import silent
    from graftwork.core.run import RunResult
    from graftwork.core.task import Task
    from graftwork.doctor.examine import doctor
    from graftwork.errors import GraftworkError
    from graftwork.estimators.classifier import Classifier
    from graftwork.estimators.regressor import Regressor
    from graftwork.estimators.tagger import Tagger
    from graftwork.evaluate.domain_shift import shift
    from graftwork.evaluate.score import score
    from graftwork.module.predict_many import predict_many
    from graftwork.module.task_module import TaskModule
    from graftwork.pretrain.pretraining import pretrain
    from graftwork.pretrained.wrap_backbone import wrap_backbone
    from graftwork.run.data_report import data_report
    from graftwork.run.train import train
    from graftwork.ship.compress import compress
    from graftwork.ship.export import export
    from graftwork.ship.total_cost import price

__version__ = "0.2.0"
__all__ = [
    "Bank",
    "Classifier",
    "GraftworkError",
    "Regressor",
    "RunResult",
    "Tagger",
    "Task",
    "TaskModule",
    "__version__",
    "benchmark",
    "climb",
    "compare",
    "compare_tasks",
    "compress",
    "curve",
    "data_report",
    "doctor",
    "export",
    "predict_many",
    "pretrain",
    "price",
    "register_metric",
    "score",
    "shift",
    "silent",
    "stream",
    "train",
    "wrap_backbone",
]

_HOMES = {
    "Bank": "graftwork.bank.bank",
    "Classifier": "graftwork.estimators.classifier",
    "GraftworkError": "graftwork.errors",
    "Regressor": "graftwork.estimators.regressor",
    "RunResult": "graftwork.core.run",
    "Tagger": "graftwork.estimators.tagger",
    "Task": "graftwork.core.task",
    "TaskModule": "graftwork.module.task_module",
    "benchmark": "graftwork.benchmark.run_suite",
    "climb": "graftwork.budget.ladder",
    "compare": "graftwork.compare.leaderboard",
    "compare_tasks": "graftwork.compare.compare_tasks",
    "compress": "graftwork.ship.compress",
    "curve": "graftwork.compare.curve",
    "data_report": "graftwork.run.data_report",
    "doctor": "graftwork.doctor.examine",
    "export": "graftwork.ship.export",
    "predict_many": "graftwork.module.predict_many",
    "pretrain": "graftwork.pretrain.pretraining",
    "price": "graftwork.ship.total_cost",
    "register_metric": "graftwork.core.own_metric",
    "score": "graftwork.evaluate.score",
    "shift": "graftwork.evaluate.domain_shift",
    "silent": "graftwork.core.progress",
    "stream": "graftwork.bank.stream",
    "train": "graftwork.run.train",
    "wrap_backbone": "graftwork.pretrained.wrap_backbone",
}


class _Face(ModuleType):
    """This module's class: it imports public names on first use and prefers them to subpackages of the same name.

    Otherwise, importing anything from the subpackages `compare` and `train` would replace the functions
    `graftwork.compare` and `graftwork.train` by the subpackages. Imports from the subpackages work as usual.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'graftwork' has no attribute {name!r}")
        found = getattr(importlib.import_module(_HOMES[name]), name)
        for inside, module in vars(sys.modules.get(f"graftwork.{name}", found)).items():
            if isinstance(module, ModuleType):  # `import graftwork.train.loop as loop` looks submodules up here
                setattr(found, inside, module)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return list(__all__)


sys.modules[__name__].__class__ = _Face
