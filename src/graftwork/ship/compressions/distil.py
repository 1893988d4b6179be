"""A student of the module: fewer blocks, another network or word vectors, taught by the module's own answers (Hinton et
al. 2015, arXiv:1503.02531; Sanh et al. 2019, arXiv:1910.01108)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graftwork.core.backbone import Backbone
from graftwork.core.example import text_of
from graftwork.core.method import Entries
from graftwork.core.progress import Progress, silent
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import opened_like
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.write_folder import as_transformer
from graftwork.registry import compressions
from graftwork.ship.compression import CompressionData, require_fit
from graftwork.ship.fewer_blocks import spread, with_blocks
from graftwork.ship.folding import folded_network, own_network, unchangeable, unfoldable
from graftwork.ship.standalone import save_standalone
from graftwork.ship.static_vectors import static_backbone
from graftwork.ship.teaching import BACKWARD, Teaching, taught, texts_taught, unteachable

OWN, STATIC = "own", "static"
HALF, THIRD = "half", "third"
WORD = 0.1  # cost of encoding a word alone, as a share of the cost of encoding a text
RATE, STATIC_RATE = 2e-4, 3e-3  # learning rates, where none is given


@compressions.register("distil")
@dataclass(frozen=True)
class Distil:
    """A smaller network that learns the teacher's logits on labelled, unlabelled and invented texts."""

    student: str = OWN  # "own": blocks of the module's network; "static": word vectors made of it; or a backbone
    layers: int = 0  # of student=own: blocks kept, at even distances; 0: as `dropped` says
    dropped: str = HALF  # of student=own: share of the blocks that is dropped, half or third
    epochs: int = 5  # passes over all texts
    learning_rate: float = 0.0  # peak of the schedule; 0: 2e-4, for word vectors 3e-3
    temperature: float = 2.0  # of teacher and student in the loss; answers that are numbers have none
    teacher: float = 0.7  # share of the teacher in the loss of a row with a label; the rest is the label's
    features: float = 1.0  # factor of the loss towards what the teacher's head reads, in a student of equal width
    invented: int = 2  # texts invented for each labelled one, which the teacher answers
    words: int = 40_000  # of student=static: words with a vector, at most
    width: int = 256  # of student=static: numbers of a vector, at most

    EXACT: ClassVar[bool] = False
    STORES: ClassVar[bool] = False
    ORDER: ClassVar[int] = 50
    LADDER: ClassVar[Entries] = ({"student": STATIC}, {}, {"dropped": THIRD})  # the fastest first

    def unfit(self, module: TaskModule) -> str:
        """Return why no such student can be made of `module`, or an empty string."""
        reason = unteachable(module)
        if reason:
            return reason
        if self.student == STATIC and "words" in module.roles:
            return "word vectors have no context, and this task labels each word by its context"
        if self.student not in (OWN, STATIC):
            return ""
        if self.dropped not in (HALF, THIRD):
            return f"dropped is {HALF} or {THIRD}, not {self.dropped}"
        return unchangeable(module) or self._too_few(module)

    def passes(self, module: TaskModule, data: CompressionData) -> float:
        """Count the teacher's predictions and the steps of the student; those of word vectors cost next to nothing."""
        texts = texts_taught(data, self.invented)
        if self.student == STATIC:
            return texts + WORD * self.words
        blocks = module.backbone.card.blocks if module.backbone else 1
        share = self._kept(blocks) / blocks if self.student == OWN else 1.0
        return texts * (2 + BACKWARD * self.epochs * share)

    def _too_few(self, module: TaskModule) -> str:
        if self.student == STATIC or module.backbone is None:
            return ""
        card = module.backbone.card
        if card.shared_blocks:
            return f"the blocks of {card.id} are one block, used again"
        kept = self._kept(card.blocks)
        fits = 0 < kept < card.blocks
        return "" if fits else f"a student of {card.id} keeps fewer than its {card.blocks} blocks, and not {kept}"

    def _kept(self, blocks: int) -> int:
        """Return how many of the blocks the student keeps."""
        return self.layers or (blocks // 2 if self.dropped == HALF else blocks - blocks // 3)

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Make the student, teach it, and write it as a module with a network of its own.

        Raises `ConfigError` for settings or a module that do not fit, `Diverged` for a learning rate too high.
        """
        require_fit("distil", self, module)
        network, made = self._network(module, data)
        rate = self.learning_rate or (STATIC_RATE if self.student == STATIC else RATE)
        lesson = Teaching(self.epochs, rate, self.temperature, self.teacher, self.features, self.invented)
        student = taught(module, network, data, lesson, seed=seed, progress=progress)
        save_standalone(module, folder, student.backbone, head=student.head)
        return made | dict(student.facts)

    def _network(self, module: TaskModule, data: CompressionData) -> tuple[Backbone, dict[str, object]]:
        """Return the untrained student, and facts about it. What can't be folded into its weights, it must learn."""
        if self.student not in (OWN, STATIC):
            assert module.backbone is not None
            named = opened_like(module.backbone, self.student)
            return as_transformer(named), {"student": self.student, "blocks": named.card.blocks}
        network = own_network(module)[0] if unfoldable(module) else folded_network(module).backbone
        if self.student == STATIC:
            return self._static(module, network, data)
        kept = spread(network.card.blocks, self._kept(network.card.blocks))
        return with_blocks(network, kept), {"student": OWN, "blocks_kept": kept}

    def _static(
        self, module: TaskModule, network: TransformerBackbone, data: CompressionData
    ) -> tuple[Backbone, dict[str, object]]:
        texts = [text_of(given) for one in (*data.train.examples, *data.unlabelled) for given in one.inputs.values()]
        bf16 = module.description["precision"] == "bf16"
        made = static_backbone(network, texts, words=self.words, width=self.width, bf16=bf16)
        return made, {"student": STATIC, "words": len(made.known.vocabulary), "width": made.card.width}
