"""sentence-transformers: network, pooling, normalising and the head, whose embedding is the logits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.method import THRESHOLDS_FACT, Logits
from graftwork.io.extras import extra
from graftwork.io.files import write_json, write_tensors, write_text
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.write_folder import write_backbone
from graftwork.registry import exporters
from graftwork.ship.exported_test import write_self_test
from graftwork.ship.folding import elsewhere, folded_network, unfoldable

KINDS = ("classification", "multilabel", "regression")
POOLINGS = {"mean": "mean_tokens", "first": "cls_token", "last": "lasttoken"}  # ours -> the library's setting
MODULES = ("Transformer", "Pooling", "Normalize", "Dense")  # in the order in which they run
README = """# {name}, for sentence-transformers

A task of Graftwork ({kind}), trained with {method} on {backbone}. What was trained is merged into the network. The
embedding is the logits, in the order of labels.json.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(FOLDER)
logits = model.encode(TEXTS)                                              # (N, C)
features = SentenceTransformer(modules=list(model)[:3]).encode(TEXTS)     # (N, D) of length 1, below the head
```

FOLDER is this folder, TEXTS a list of {texts}. selftest.json has texts and their logits.{scaled}
"""
SCALED = " The value is logit * {deviation!r} + {mean!r}."


class SentenceTransformers:
    """Implements `Exporter`: a folder for `SentenceTransformer`, with a `Dense` layer that gives the logits."""

    def unfit(self, module: TaskModule) -> str:
        """Return a reason unless the module is one network with a linear layer on a pooled text."""
        if module.task.kind not in KINDS:
            return f"an embedding is one row for each text, and a task of kind {module.task.kind} has other answers"
        card = None if module.backbone is None else module.backbone.card
        if why := unfoldable(module):
            return f"{why}{elsewhere(module)}"
        assert card is not None
        if card.pooling not in POOLINGS:
            return f"the library has no pooling {card.pooling!r}; onnx takes it"
        if card.towers > 1 and "text_b" in module.roles:
            return "its head compares two texts, and an embedding is of one; onnx takes it"
        return ""

    def write(self, module: TaskModule, folder: Path) -> None:
        """Write the network, modules.json, a folder for each further module, labels.json, selftest.json, README.md."""
        network = folded_network(module)
        card, head = network.backbone.card, network.head
        write_backbone(network.backbone, folder)
        write_json(folder / "modules.json", [_listed(place, name) for place, name in enumerate(MODULES)])
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": card.max_length, "do_lower_case": False})
        pooling = {f"pooling_mode_{name}": card.pooling == own for own, name in POOLINGS.items()}
        write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": card.width} | pooling)
        outputs, width = head.weight.shape
        dense: dict[str, Any] = {"in_features": width, "out_features": outputs, "bias": True}
        dense["activation_function"] = "torch.nn.modules.linear.Identity"
        write_json(folder / "3_Dense" / "config.json", dense)
        shift = head.bias.new_tensor(head.facts.get(THRESHOLDS_FACT, [0.0] * outputs))
        layer = {"linear.weight": head.weight * width**0.5, "linear.bias": head.bias + shift}  # of length 1, not √D
        write_tensors(folder / "3_Dense" / "model.safetensors", layer)
        write_json(folder / "labels.json", list(module.task.labels))
        write_self_test(module, folder)
        write_text(folder / "README.md", _readme(module))

    def logits(self, folder: Path, module: TaskModule, examples: Sequence[Example]) -> Logits:
        """Return the embeddings (N, C) that `SentenceTransformer` gives."""
        with extra("sentence-transformers", "the export to sentence_transformers"):
            from sentence_transformers import SentenceTransformer
        from graftwork.pretrained.transformers_errors import transformers_errors

        with transformers_errors(folder):
            model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        texts = [tuple(example.inputs.values()) for example in examples]
        given = [text[0] if len(text) == 1 else list(text) for text in texts]
        return np.asarray(model.encode(given, show_progress_bar=False))


def _listed(place: int, name: str) -> dict[str, str | int]:
    path = "" if place == 0 else f"{place}_{name}"
    return {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{name}"}


def _readme(module: TaskModule) -> str:
    task, card = module.task, module.backbone.card if module.backbone else None
    scaled = ""
    if task.kind == "regression":
        mean, deviation = task.settings.scale
        scaled = SCALED.format(mean=mean, deviation=deviation)
    return README.format(
        name=task.name,
        kind=task.kind,
        method=module.description["method"]["name"],
        backbone=card.id if card else "",
        texts="texts" if len(module.roles) == 1 else "pairs [text, other]",
        scaled=scaled,
    )


exporters.register("sentence_transformers")(SentenceTransformers())
