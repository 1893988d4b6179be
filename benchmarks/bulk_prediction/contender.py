"""A contender process: loads once, then answers questions, one JSON line each. Started by `run.py`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.backbones.minilm import package_folder
from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.machine.environment import numerics
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.train.probe import Probe

CLASSES = 6
SEARCHED = (32, 64, 128, 256)  # batch sizes
COMPARED = 64  # texts whose embeddings are compared


class Contender(Protocol):
    """The interface of what is timed."""

    def warm_up(self, texts: list[str]) -> dict[str, Any]:
        """Do the work once and choose the settings; returns them."""

    def once(self, texts: list[str]) -> None:
        """Run one pass over all texts."""

    def embed(self, texts: list[str]) -> NDArray[np.floating[Any]]:
        """Return (N, D), the input of the head."""


class Graftwork:
    """A linear probe of the last block: the whole network, a small head, labels and probabilities."""

    def __init__(self) -> None:
        precision = numerics("auto")["precision"]
        backbone = open_backbone("minilm", precision=precision)
        task = Task("bulk", Path(), kind="classification", labels=tuple(f"class {i}" for i in range(CLASSES)))
        shares = torch.zeros(backbone.card.blocks + 1)
        shares[-1] = 1.0
        width = backbone.card.width
        weight = torch.randn(CLASSES, width, generator=torch.Generator().manual_seed(0))
        self.probe = Probe(backbone, shares, weight, torch.zeros(CLASSES), {"block": str(backbone.card.blocks)})
        self.reader = Probe(backbone, shares, torch.eye(width), torch.zeros(width), self.probe.facts)
        description = {"roles": ["text"], "precision": precision}
        self.module = TaskModule(Path(), task, self.probe, description, backbone)

    def warm_up(self, texts: list[str]) -> dict[str, Any]:
        """Warm up; there is nothing to choose."""
        self.once(texts)
        return {"precision": self.module.description["precision"]}

    def once(self, texts: list[str]) -> None:
        """Compute labels and probabilities."""
        assert len(self.module.predict(texts)) == len(texts)

    def embed(self, texts: list[str]) -> NDArray[np.floating[Any]]:
        """Return the pooled features, through an identity head."""
        return self.reader.logits([Example(f"input/{i}", {"text": text}) for i, text in enumerate(texts)])


class SentenceTransformers:
    """Its defaults, or `best`: bf16 weights and the fastest of a few batch sizes. It sorts by length itself."""

    def __init__(self, best: bool) -> None:
        from sentence_transformers import SentenceTransformer

        self.best, self.batch_size = best, SEARCHED[0]
        options = {"dtype": torch.bfloat16} if best else {}
        self.model = SentenceTransformer(str(package_folder()), device="cpu", model_kwargs=options)

    def warm_up(self, texts: list[str]) -> dict[str, Any]:
        """Choose the batch size on the texts that are timed later."""
        self.once(texts)
        if self.best:
            self.batch_size = min(SEARCHED, key=lambda size: self._timed(texts, size))
        return {"precision": "bf16" if self.best else "fp32", "batch_size": self.batch_size}

    def once(self, texts: list[str]) -> None:
        """Compute embeddings; no head is applied, which is in its favour."""
        self.model.encode(texts, batch_size=self.batch_size, show_progress_bar=False)

    def embed(self, texts: list[str]) -> NDArray[np.floating[Any]]:
        """Return its embeddings."""
        found: NDArray[np.floating[Any]] = self.model.encode(texts, batch_size=self.batch_size, show_progress_bar=False)
        return found

    def _timed(self, texts: list[str], size: int) -> float:
        self.batch_size = size
        return timed(lambda: self.once(texts))


MAKERS: dict[str, Callable[[], Contender]] = {
    "graftwork": Graftwork,
    "sentence_transformers": lambda: SentenceTransformers(best=False),
    "sentence_transformers_best": lambda: SentenceTransformers(best=True),
}


def timed(work: Callable[[], None]) -> float:
    """Return the wall seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(name: str, file: str, threads: str) -> None:
    """Answer questions until the input ends."""
    torch.set_num_threads(int(threads))
    texts: dict[str, list[str]] = json.loads(Path(file).read_text(encoding="utf-8"))
    contender = MAKERS[name]()
    for line in sys.stdin:
        question, data = json.loads(line)
        given = texts[data]
        answer: Any
        if question == "warm_up":
            answer = contender.warm_up(given)
        elif question == "pass":
            answer = timed(lambda given=given: contender.once(given))  # type: ignore[misc]
        else:
            answer = np.asarray(contender.embed(given[:COMPARED]), dtype=float).tolist()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
