"""Translation memory: writes the target of the training row whose source is most like the one that it reads, by TF-IDF
(Nagao 1984; Salton & Buckley 1988, doi:10.1016/0306-4573(88)90021-0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from graftwork.core.example import Example
from graftwork.core.method import Logits, LooksUp, Setting, Workbench
from graftwork.registry import methods
from graftwork.targets.words import TOKEN
from graftwork.targets.written_texts import TextBaseline, written_array

if TYPE_CHECKING:
    from torch import Tensor

AT_ONCE = 256  # sources compared with all of train at a time
LEAST = 1e-6  # lower bound of a similarity, so that its logarithm is finite


@dataclass
class FittedMemory(LooksUp):
    """The training rows, their sources as TF-IDF vectors of length 1."""

    facts: Mapping[str, Any]  # sources, targets

    def __post_init__(self) -> None:
        self._vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=TOKEN)
        self._known = self._vectorizer.fit_transform(self.facts["sources"])  # sparse (R, F)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the targets (N,) of the nearest rows, the first one on ties; the cosine is used as probability."""
        asked = self._vectorizer.transform([example.inputs["text"] for example in examples])
        texts, likeness = list[str](), list[float]()
        for start in range(0, len(examples), AT_ONCE):
            cosines = (asked[start : start + AT_ONCE] @ self._known.T).toarray()  # (at once, R)
            nearest = cosines.argmax(axis=1)
            texts += [self.facts["targets"][place] for place in nearest]
            likeness += cosines[np.arange(len(nearest)), nearest].tolist()
        chances = np.log(np.clip(likeness, LEAST, 1.0)).tolist()
        return written_array(texts, chances, [False] * len(texts))

    def delta(self) -> dict[str, Tensor]:
        """Return nothing: the rows are in the facts."""
        return {}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count two FLOPs for every word that an example's source shares with a training source."""
        asked = self._vectorizer.transform([example.inputs["text"] for example in examples])
        rows_of = self._known.getnnz(axis=0)  # (F,)
        return 2.0 * float(rows_of[asked.indices].sum()), "model"


@methods.register("translation_memory")
@dataclass(frozen=True)
class TranslationMemory(TextBaseline):
    """The target of the nearest training source."""

    CUTS_WORDS: ClassVar[bool] = True

    def fit(self, bench: Workbench) -> FittedMemory:
        """Keep the training rows."""
        rows = bench.train.examples
        sources, targets = [row.inputs["text"] for row in rows], [row.target[0] for row in rows]
        return FittedMemory({"sources": sources, "targets": targets})

    def restore(self, setting: Setting, delta: Mapping[str, Tensor], facts: Mapping[str, Any]) -> FittedMemory:
        """Rebuild the memory from the stored rows."""
        return FittedMemory(facts)
