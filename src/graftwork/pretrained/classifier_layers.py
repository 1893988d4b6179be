"""Layer names of transformers' sequence classifiers whose head reads the first token, by architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ClassifierLayers:
    """A head on the first token: hidden layer, activation, output layer; the paths start at the whole model."""

    hidden: str
    activation: str
    out: str
    own_hidden: bool = True  # False: the hidden layer is the network's own pooler, which no adapter stores


_BERT = ClassifierLayers("pooler.dense", "tanh", "classifier", own_hidden=False)
_ROBERTA = ClassifierLayers("classifier.dense", "tanh", "classifier.out_proj")
CLASSIFIERS: Mapping[str, ClassifierLayers] = {
    "bert": _BERT,
    "ernie": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "electra": ClassifierLayers("classifier.dense", "gelu", "classifier.out_proj"),
    "distilbert": ClassifierLayers("pre_classifier", "relu", "classifier"),
}
