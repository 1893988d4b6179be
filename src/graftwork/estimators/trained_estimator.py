"""Base of the estimators: their parameters, the training run of `fit`, and the task module that predicts afterwards."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, cast

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from graftwork.budget.ladder import climb
from graftwork.core.configured_methods import configured_from
from graftwork.core.in_memory import beside
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.estimators.given_rows import Inputs, held_for_validation, require_filled, task_of, texts_of
from graftwork.io.files import write_bytes
from graftwork.module.inputs import Text
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds
from graftwork.run.settings import GivenSettings
from graftwork.run.train import Run, train

DEFAULT_METHOD = "adapter"


@dataclass(eq=False, repr=False)
class TrainedEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose `fit` trains a task module, and which keeps the module's files, so that it can be pickled."""

    KIND: ClassVar[str]  # a name in `kinds`

    method: str | None = None
    _: KW_ONLY
    budget: str | None = None
    learning_rate: float | None = None
    epochs: int | None = None
    batch_size: int | None = None
    backbone: str | None = None
    metrics: str | Sequence[str] | None = None
    validation_fraction: float = 0.1
    random_state: Any = 0
    runs: str | Path | None = None
    precision: str | None = None
    device: str | None = None
    prices: str | Path | None = None
    cache: str | Path | None = None
    cache_size: str | None = None
    max_memory: str | None = None

    def _train(self, rows: Sequence[Inputs], targets: Sequence[Any], class_weights: Any = None) -> None:
        """Train on these rows, in a folder that is removed afterwards, and keep the module."""
        require_filled(rows)
        held = held_for_validation(rows, targets, kinds.get(self.KIND), self.validation_fraction)
        with tempfile.TemporaryDirectory(prefix="graftwork-") as made:
            folder = Path(made)
            runs = folder / "runs" if self.runs is None else Path(self.runs)
            flags = {"name": type(self).__name__.lower(), "kind": self.KIND, "metrics": self.metrics}
            flags |= {} if class_weights is None else {"class_weights": class_weights}
            task = task_of(beside(runs), rows, targets, held, **flags)
            self._keep(self._run(task, runs, folder / "ladder"))

    def _run(self, task: Task, runs: Path, ladder: Path) -> Run:
        given_seed = isinstance(self.random_state, Integral)
        seed = int(self.random_state if given_seed else check_random_state(self.random_state).randint(2**31 - 1))
        settings = {name: value for name, value in self.get_params().items() if name in GivenSettings.__annotations__}
        given = cast("GivenSettings", settings | {"runs": runs})
        if self.budget is None:
            method = DEFAULT_METHOD if self.method is None else self.method
            run = train(task, method=method, seed=seed, learning_rate=self.learning_rate, **given)
            for name in run.unused:
                name = "class_weight" if name == "class_weights" else name
                warnings.warn(f"{method} does not use {name}: it has no effect", UserWarning, stacklevel=4)
            return run
        if self.method is not None or self.learning_rate is not None:
            raise ConfigError(
                "budget finds the method and its learning rate by itself",
                got=f"method={self.method!r}, learning_rate={self.learning_rate!r}",
                do="leave budget out, or both of these",
            )
        return climb(task, self.budget, seed=seed, out=ladder, **given).run

    def _keep(self, run: Run) -> None:
        place = run.folder / "module"
        self._module: TaskModule | None = TaskModule.load(place, device=self.device or "auto")
        self.method_ = configured_from(self._module.description["method"]).label
        self.validation_scores_ = dict(run.result.validation)
        self.price_tag_ = dict(run.result.costs)
        self.module_files_ = {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.is_file()}

    @property
    def module_(self) -> TaskModule:
        """The trained module, whose folder was removed; after unpickling it is opened from `module_files_`."""
        check_is_fitted(self)
        if self._module is None:
            with tempfile.TemporaryDirectory(prefix="graftwork-") as folder:
                for name, content in self.module_files_.items():
                    write_bytes(Path(folder, name), content)
                self._module = TaskModule.load(folder, device=self.device or "auto")
        return self._module

    def _rows(self, X: Any, *, reset: bool) -> list[Inputs]:
        """Return the inputs of each row, a text or a pair. With `reset`, store the number of columns."""
        return texts_of(self, X, reset=reset)

    def _as_module_input(self, X: Any) -> list[Text]:
        """Return X as the input of `TaskModule.predict`. Raises `NotFittedError` before `fit`."""
        check_is_fitted(self)
        inputs = [tuple(row.values()) for row in self._rows(X, reset=False)]
        return [given[0] if len(given) == 1 else given for given in inputs]

    def _answers(self, X: Any) -> list[dict[str, Any]]:
        texts = self._as_module_input(X)
        return self.module_.predict(texts)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: with the files of the module, without the open module."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"_module": None} if "_module" in state else state

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, changed so that X is texts and y is required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.string = tags.input_tags.one_d_array = True
        return tags
