"""The side of the library `adapters` in the parity tests, run by the Python of an environment that has it.

theirs.py make ROOT                 networks, and adapters with heads over them; each with the logits of `TEXTS`
theirs.py answer NETWORK FOLDER …   what the lines in the README of each exported FOLDER compute, on its NETWORK
theirs.py load NETWORK FOLDER       a network as large as the adapter in FOLDER wants; logits of both, fp32 and fp64
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import adapters
import torch
from adapters import AutoAdapterModel, BnConfig, DoubleSeqBnConfig, SeqBnConfig
from networks import CONFIGS, LARGE, TEXTS, write_network
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

CASES: dict[str, tuple[str, Any, dict[str, Any]]] = {  # name -> architecture, adapter, head
    "pfeiffer": ("xlm-roberta", SeqBnConfig(reduction_factor=4), {}),
    "houlsby": ("xlm-roberta", DoubleSeqBnConfig(reduction_factor=2), {"layers": 1, "activation_function": None}),
    "left-out": ("bert", SeqBnConfig(reduction_factor=4, non_linearity="gelu", leave_out=[1], scaling=0.5), {}),
    "sizes": ("roberta", SeqBnConfig(reduction_factor={"0": 2, "default": 8}, non_linearity="gelu_new"), {}),
    "channels": ("distilbert", SeqBnConfig(reduction_factor=4, scaling="channel"), {"activation_function": "relu"}),
    "attention": (
        "distilbert",
        BnConfig(
            mh_adapter=True, output_adapter=False, reduction_factor=3, non_linearity="leakyrelu", scaling="learned"
        ),
        {"layers": 1},
    ),
    "both-normed": (
        "electra",
        BnConfig(
            mh_adapter=True, output_adapter=True, reduction_factor=4, non_linearity="tanh", original_ln_before=True
        ),
        {"activation_function": "gelu"},
    ),
}  # fmt: skip
STATIC = ("bert", "roberta", "distilbert")  # with the heads of transformers' own classifiers


def main(command: str, *places: str) -> None:
    if command == "make":
        make(Path(places[0]))
        return
    if command == "answer":
        print(json.dumps([follow(*pair) for pair in zip(places[::2], places[1::2], strict=True)]))
        return
    network, folder = map(Path, places)
    write_network(network, "xlm-roberta", **LARGE)
    model = AutoAdapterModel.from_pretrained(network)
    model.active_head = model.load_adapter(str(folder), set_active=True)
    print(json.dumps([answers(model, network), answers(model.double(), network)]))


def follow(network: str, folder: str) -> list[list[float]]:
    """The logits that the Python in the README of `folder` computes."""
    text = (Path(folder) / "README.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"FOLDER": folder, "TEXTS": TEXTS}
    exec(compile(code[0], "README.md", "exec"), names)
    assert names["BASE"] == network
    found: list[list[float]] = names["logits"].tolist()
    return found


def answers(model: nn.Module, network: Path) -> list[list[float]]:
    batch = AutoTokenizer.from_pretrained(network)(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        found: list[list[float]] = model.eval()(**batch).logits.tolist()
    return found


def shake(model: nn.Module, *words: str) -> None:
    """Random values for what would answer nothing untrained."""
    for name, parameter in model.named_parameters():
        if any(word in name for word in words):
            nn.init.normal_(parameter, std=0.3)


def make(root: Path) -> None:
    (root / "saved").mkdir(parents=True)
    for model_type in CONFIGS:
        if model_type != "mpnet":
            write_network(root / "networks" / model_type, model_type)
    torch.manual_seed(0)
    for number, (case, (model_type, config, head)) in enumerate(CASES.items()):
        network, folder = root / "networks" / model_type, root / "saved" / case
        model = AutoAdapterModel.from_pretrained(network)
        model.add_adapter("mood", config=config)
        model.set_active_adapters("mood")
        model.add_classification_head("mood", num_labels=3, id2label={0: "no", 1: "yes", 2: "perhaps"}, **head)
        shake(model, ".adapters.mood", "heads.mood")
        model.save_adapter(str(folder), "mood", use_safetensors=number % 2 == 0)
        write(root, case, network, answers(model, network))
    for model_type in STATIC:
        network, case = root / "networks" / model_type, f"static-{model_type}"
        plain = AutoModelForSequenceClassification.from_pretrained(network, num_labels=3)
        adapters.init(plain)
        plain.add_adapter("mood", config=SeqBnConfig(reduction_factor=4))
        plain.set_active_adapters("mood")
        shake(plain, ".adapters.mood", "classifier")
        plain.save_adapter(str(root / "saved" / case), "mood", use_safetensors=True)
        write(root, case, network, answers(plain, network))


def write(root: Path, case: str, network: Path, logits: list[list[float]]) -> None:
    (root / "saved" / case / "logits.json").write_text(json.dumps({"network": str(network), "logits": logits}))


if __name__ == "__main__":
    main(*sys.argv[1:])
