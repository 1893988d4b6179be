"""transformers: a folder for `AutoModelForSequenceClassification`, for the modules whose head that class has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.io.files import write_json, write_tensors, write_text
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.model_folder import WEIGHTS
from graftwork.registry import exporters
from graftwork.ship.exported_test import write_self_test

PROBLEMS: Mapping[str, str] = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}
AT_ONCE = 32  # texts of a batch
README = """# {name}, for transformers

A task of Graftwork ({kind}), trained with {method} on {backbone}. What was trained is merged into the network, and the
head is in it.

```python
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(FOLDER)
model = AutoModelForSequenceClassification.from_pretrained(FOLDER).eval()
batch = tokenizer({texts}, padding=True, truncation=True, max_length={max_length}, return_tensors="pt")
with torch.no_grad():
    logits = model(**batch).logits                # (N, C), in the order of model.config.id2label
```

FOLDER is this folder, TEXTS a list of texts{others}. selftest.json has texts and their logits.{scaled}
"""
SCALED = " The value is logit * {deviation!r} + {mean!r}."


class Transformers:
    """Implements `Exporter`: configuration, weights and tokenizer, as `save_pretrained` writes them."""

    def unfit(self, module: TaskModule) -> str:
        """Return a reason unless transformers has a classifier that computes the module's logits."""
        if module.task.kind not in PROBLEMS:
            return f"a task of kind {module.task.kind} has no classifier of whole texts; onnx takes it"
        if module.backbone is None or module.backbone.card.modality != "text":
            return "it is no network that reads texts"
        from graftwork.ship.classifier_folder import no_classifier

        return no_classifier(module)

    def write(self, module: TaskModule, folder: Path) -> None:
        """Write config.json, model.safetensors, the tokenizer, selftest.json and README.md."""
        from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSES

        from graftwork.pretrained.write_folder import config_of, write_tokenizer
        from graftwork.ship.classifier_folder import classifier_of_module

        made = classifier_of_module(module)
        config = config_of(made.backbone) | dict(made.settings)
        names = list(module.task.labels) or ["value"]
        config |= {
            "architectures": [CLASSES[config["model_type"]]],
            "num_labels": len(names),
            "id2label": {str(place): name for place, name in enumerate(names)},
            "label2id": {name: place for place, name in enumerate(names)},
            "problem_type": PROBLEMS[module.task.kind],
        }
        write_json(folder / "config.json", config)
        write_tensors(folder / WEIGHTS, made.weights)
        write_tokenizer(made.backbone, folder)
        write_self_test(module, folder)
        write_text(folder / "README.md", _readme(module))

    def logits(self, folder: Path, module: TaskModule, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C) of the model that transformers opens."""
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        from graftwork.pretrained.transformers_errors import transformers_errors

        with transformers_errors(folder):
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
        columns = list(zip(*(example.inputs.values() for example in examples), strict=True))  # a text, and its partner
        found = []
        for start in range(0, len(examples), AT_ONCE):
            texts = [list(column[start : start + AT_ONCE]) for column in columns]
            batch = tokenizer(*texts, padding=True, truncation=True, max_length=module.max_length, return_tensors="pt")
            with torch.no_grad():
                found.append(model(**batch).logits.float().numpy())
        return np.concatenate(found)


def _readme(module: TaskModule) -> str:
    task, backbone, scaled = module.task, module.backbone, ""
    assert backbone is not None
    if task.kind == "regression":
        mean, deviation = task.settings.scale
        scaled = SCALED.format(mean=mean, deviation=deviation)
    pairs: dict[str, Any] = {"texts": "TEXTS", "others": ""}
    if len(module.roles) == 2:
        pairs = {"texts": "TEXTS, OTHERS", "others": ", OTHERS one of their partners"}
    return README.format(
        name=task.name,
        kind=task.kind,
        method=module.description["method"]["name"],
        backbone=backbone.card.id,
        max_length=backbone.card.max_length,
        scaled=scaled,
        **pairs,
    )


exporters.register("transformers")(Transformers())
