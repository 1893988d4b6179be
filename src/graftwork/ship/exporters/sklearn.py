"""scikit-learn: a TF-IDF + SVM baseline as a `Pipeline`, from arrays and words instead of a pickle."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.method import THRESHOLDS_FACT, Logits
from graftwork.io.files import write_bytes, write_json, write_text
from graftwork.methods.tfidf_svm import Svm
from graftwork.module.task_module import TaskModule
from graftwork.module.thresholds import WithThresholds
from graftwork.registry import exporters
from graftwork.ship import sklearn_pipeline
from graftwork.ship.exported_test import write_self_test

KINDS = ("classification", "multilabel", "regression")
README = """# {name}, for scikit-learn

A task of Graftwork ({kind}): TF-IDF of words and word pairs, and a linear SVM. It needs scikit-learn alone. There is no
pickle in this folder: `weights.npz` has arrays, `pipeline.json` the vocabulary and the labels, and `pipeline.py` makes
the pipeline of them. FOLDER is this folder.

```python
import sys
sys.path.insert(0, FOLDER)
from pipeline import load

pipeline = load(FOLDER)
print(pipeline.predict(["a text"]))
```

{answers}
"""
ANSWERS = {
    "classification": "`predict` gives labels, `decision_function` the logits (N, C).",
    "multilabel": "`predict` gives a row of 0 and 1 in the order of `labels` in pipeline.json, `decision_function` the "
    "logits (N, C), from which the thresholds that were chosen on validation are taken.",
    "regression": "`predict` gives the values.",
}


class Sklearn:
    """Implements `Exporter`: a folder with a `Pipeline` of `TfidfVectorizer` and `LinearSVC` or `LinearSVR`."""

    def unfit(self, module: TaskModule) -> str:
        """Return a reason unless the module is `tfidf_svm` with one answer for each single text."""
        if not isinstance(_svm_of(module), Svm):
            return f"{module.description['method']['name']} is no TF-IDF + SVM; a network goes to onnx"
        if module.task.kind not in KINDS:
            return f"a task of kind {module.task.kind} has no scikit-learn estimator"
        return "" if module.roles == ("text",) else "it reads two texts, and a pipeline reads one"

    def write(self, module: TaskModule, folder: Path) -> None:
        """Write pipeline.py, pipeline.json, weights.npz, selftest.json and README.md."""
        svm, task = _svm_of(module), module.task
        assert isinstance(svm, Svm)
        weight, bias = svm.weight, svm.bias + np.asarray(module.description["facts"].get(THRESHOLDS_FACT, 0.0))
        if task.kind == "regression":
            mean, deviation = task.settings.scale
            weight, bias = weight * deviation, bias * deviation + mean
        arrays = io.BytesIO()
        np.savez(arrays, weight=weight, bias=bias, idf=svm.vectorizer.idf_)
        write_bytes(folder / "weights.npz", arrays.getvalue())
        told = {
            "kind": task.kind,
            "labels": list(task.labels),
            "token": svm.vectorizer.token_pattern,
            "vocabulary": list(svm.facts["vocabulary"]),
        }
        write_json(folder / "pipeline.json", told)
        write_text(folder / "pipeline.py", Path(sklearn_pipeline.__file__).read_text(encoding="utf-8"))
        write_text(folder / "README.md", README.format(name=task.name, kind=task.kind, answers=ANSWERS[task.kind]))
        write_self_test(module, folder)

    def logits(self, folder: Path, module: TaskModule, examples: Sequence[Example]) -> Logits:
        """Return the logits of the pipeline that the folder's files give."""
        pipeline, texts = sklearn_pipeline.load(folder), [example.inputs["text"] for example in examples]
        if module.task.kind != "regression":
            found = np.asarray(pipeline.decision_function(texts))
            return found.reshape(len(texts), -1)
        mean, deviation = module.task.settings.scale
        return np.asarray((pipeline.predict(texts) - mean) / deviation).reshape(-1, 1)


def _svm_of(module: TaskModule) -> Any:
    """Return the fitted method, without the wrapper that applies thresholds, if any."""
    return module.fitted.fitted if isinstance(module.fitted, WithThresholds) else module.fitted


exporters.register("sklearn")(Sklearn())
