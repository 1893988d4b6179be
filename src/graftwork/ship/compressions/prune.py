"""Feed-forward columns that matter least are removed for real, and the rest is taught again by the module's own answers
(Michel et al. 2019, arXiv:1905.10650)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graftwork.core.method import Entries
from graftwork.core.progress import Progress, silent
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.write_folder import as_transformer
from graftwork.registry import compressions
from graftwork.ship.compression import CompressionData, require_fit
from graftwork.ship.fewer_columns import importance, unprunable, without_columns
from graftwork.ship.folding import folded_network, unfoldable
from graftwork.ship.standalone import save_standalone
from graftwork.ship.teaching import BACKWARD, Teaching, taught, texts_taught, unteachable


@compressions.register("prune")
@dataclass(frozen=True)
class Prune:
    """Every feed-forward part keeps the columns that the loss depends on most to first order."""

    columns: float = 0.5  # share of the columns that is kept in every block
    epochs: int = 5  # passes over all texts after the removal
    learning_rate: float = 2e-4  # peak of the schedule
    temperature: float = 2.0  # of teacher and student in the loss; answers that are numbers have none
    teacher: float = 0.7  # share of the teacher in the loss of a row with a label; the rest is the label's
    features: float = 1.0  # factor of the loss towards what the teacher's head reads, in a student of equal width
    invented: int = 4  # texts invented for each labelled one, which the teacher answers

    EXACT: ClassVar[bool] = False
    STORES: ClassVar[bool] = False
    ORDER: ClassVar[int] = 60
    LADDER: ClassVar[Entries] = ({"columns": 0.25}, {})  # the fastest first

    def unfit(self, module: TaskModule) -> str:
        """Return why columns can't be removed from `module`, or an empty string."""
        reason = unteachable(module) or unfoldable(module)
        if reason:
            return reason
        if not 0 < self.columns < 1:
            return f"columns is a share above 0 and below 1, not {self.columns:g}"
        return unprunable(as_transformer(module.backbone))

    def passes(self, module: TaskModule, data: CompressionData) -> float:
        """Count the teacher's predictions and the steps of the student; columns are two thirds of a block's work."""
        return texts_taught(data, self.invented) * (2 + BACKWARD * self.epochs * (1 + 2 * self.columns) / 3)

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Remove the columns, teach the rest, and write it as a module with a network of its own.

        Raises `ConfigError` for settings or a module that do not fit, `Diverged` for a learning rate too high.
        """
        require_fit("prune", self, module)
        progress(0.0, "measuring what columns matter")
        whole = folded_network(module)
        scores = importance(whole, module.task, data.train)
        kept = max(1, round(self.columns * len(scores[0])))
        lost = 1 - sum(float(one.topk(kept).values.sum()) for one in scores) / sum(float(one.sum()) for one in scores)
        lesson = Teaching(self.epochs, self.learning_rate, self.temperature, self.teacher, self.features, self.invented)
        network = without_columns(whole.backbone, scores, kept)
        student = taught(module, network, data, lesson, seed=seed, progress=progress)
        save_standalone(module, folder, student.backbone, head=student.head)
        facts = {"columns": len(scores[0]), "columns_kept": kept, "importance_removed": lost}
        return facts | dict(student.facts)
