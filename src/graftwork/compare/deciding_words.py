"""Words that decided a wrong prediction: what its probability loses when a word is left out.

This is occlusion (Zeiler & Fergus 2014, arXiv:1311.2901; for words Li, Monroe & Jurafsky 2016, arXiv:1612.08220). It
needs only predictions, so it works for any module whose kind has class or choice probabilities (`SharesProbability`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.kind import SharesProbability
from graftwork.core.meter import Stopwatch
from graftwork.errors import GraftworkError
from graftwork.module.predict_many import answer_windows
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds
from graftwork.run.session import Session

MOST = 40  # wrong predictions that are examined, at most
MOST_WORDS = 60  # words of an example; a longer example is left out
MOST_SECONDS = 5.0  # estimated by the module's predictions per second


def with_deciding_words(
    content: Mapping[str, Any] | None, session: Session, board: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return `mistakes_content` with `words` in the most confident wrong predictions of the chosen method.

    `words` is input -> [[word, points that the prediction's probability loses without it]]. Nothing is added if the
    kind has no such probability, the module can't be opened, or there is no time for it.
    """
    if content is None or not content["examples"]:
        return None if content is None else dict(content)
    places = _places(content, session, board)
    if not places or not isinstance(kinds.get(session.dataset.task.kind), SharesProbability):
        return dict(content)
    clock, examples = Stopwatch(), session.dataset.test.examples
    folder = session.store.root / content["run"] / "module"
    try:
        module = TaskModule.load(folder, device=session.numerics["device"], backbone=session.backbone)
        asked = [one for place in places for one in (examples[place], *_without(examples[place]))]
        chances = [_chances(answers[0]) for window in answer_windows([module], asked) for answers in
                   zip(*window.answers, strict=True)]  # fmt: skip
    except GraftworkError:
        return dict(content)
    rows, at = [dict(row) for row in content["examples"]], 0
    for place in places:
        words = _words(examples[place])
        whole, at = chances[at], at + 1
        chosen = int(whole.argmax())
        told: dict[str, list[Any]] = {}
        for (role, word), without in zip(words, chances[at : at + len(words)], strict=True):
            told.setdefault(role, []).append([word, round(100 * float(whole[chosen] - without[chosen]), 1)])
        rows[place]["words"], at = told, at + len(words)
    seconds = round(clock.read().wall_seconds, 1)
    return {**content, "examples": rows, "words_of": len(places), "words_seconds": seconds}


def _places(content: Mapping[str, Any], session: Session, board: Mapping[str, Any]) -> list[int]:
    """Return the rows to examine: the most confident wrong predictions first, as many as there is time for."""
    price = next(row["costs"] for row in board["rows"] if row["method"] == content["chosen"])
    speed = (price.get("predict_per_second") or {}).get("value") or 0.0
    left = MOST_SECONDS * speed
    wrong = [place for place, row in enumerate(content["examples"]) if not row["answers"][0][2]]
    wrong.sort(key=lambda place: -(content["examples"][place]["answers"][0][1] or 0.0))
    found: list[int] = []
    for place in wrong:
        count = len(_words(session.dataset.test.examples[place]))
        if not 1 < count <= MOST_WORDS:
            continue
        left -= 1 + count
        if left < 0 or len(found) == MOST:
            break
        found.append(place)
    return found


def _words(example: Example) -> list[tuple[str, str]]:
    """Return (input, word) for each word between spaces; choices, lists of words and media have none."""
    texts = [(role, text) for role, text in example.inputs.items() if isinstance(text, str)]
    return [(role, word) for role, text in texts for word in text.split()]


def _without(example: Example) -> list[Example]:
    """Return a copy of the example for each of its words, with that word left out."""
    words = _words(example)
    made = []
    for left_out in range(len(words)):
        kept = [pair for place, pair in enumerate(words) if place != left_out]
        texts = {role: " ".join(word for of, word in kept if of == role) for role, _ in words}
        made.append(replace(example, inputs={**example.inputs, **texts}))
    return made


def _chances(answer: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the probabilities (C,) of the classes or choices."""
    listed: Sequence[float] | Mapping[str, float] = answer["probabilities"]
    return np.array(list(listed.values()) if isinstance(listed, Mapping) else listed, dtype=np.float64)
