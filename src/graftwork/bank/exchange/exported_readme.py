"""The README of an exported folder: its content, what it lacks, and Python code that reproduces our logits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from graftwork.bank.exchange.site_names import name_elsewhere
from graftwork.core.method import THRESHOLDS_FACT
from graftwork.errors import ConfigError
from graftwork.io.files import safe_load, write_json, write_tensors, write_text
from graftwork.module.task_module import TaskModule

HEAD = "head.safetensors"
KINDS = ("classification", "multilabel", "regression")  # kinds with one row of logits per example
ENCODERS_OF_TWO = ("t5", "mt5")  # architectures of which the encoder alone is used; no whole classifier is exported
IMPORTS: Mapping[bool, str] = {
    False: """
        import torch
        from safetensors.torch import load_file
        from transformers import AutoModel, AutoTokenizer
        """,
    True: """
        import torch
        from transformers import AutoTokenizer
        """,
}
LOAD: Mapping[tuple[str, bool], str] = {  # (format, head included) -> code that loads it in its library
    ("peft", False): """
        from peft import PeftModel
        model = PeftModel.from_pretrained(AutoModel.from_pretrained(BASE, dtype=torch.float32), FOLDER).eval()
        """,
    ("peft", True): """
        from peft import PeftModel
        from transformers import AutoModelForSequenceClassification
        base = AutoModelForSequenceClassification.from_pretrained(BASE, num_labels=CLASSES, dtype=torch.float32)
        model = PeftModel.from_pretrained(base, FOLDER).eval()
        """,
    ("adapters", False): """
        import adapters
        model = AutoModel.from_pretrained(BASE).eval()
        adapters.init(model)
        model.load_adapter(FOLDER, use_safetensors=True, set_active=True)
        """,
    ("adapters", True): """
        from adapters import AutoAdapterModel
        model = AutoAdapterModel.from_pretrained(BASE).eval()
        name = model.load_adapter(FOLDER, use_safetensors=True, set_active=True)
        model.active_head = name
        """,
}
POOLED: Mapping[str, str] = {
    "mean": """
        mask = batch["attention_mask"][:, :, None]
        pooled = (states * mask).sum(1) / mask.sum(1)
        """,
    "first": """
        pooled = states[:, 0]
        """,
    "last": """
        pooled = states[torch.arange(len(states)), batch["attention_mask"].sum(1) - 1]
        """,
}
PADDED = """tokenizer.padding_side = "right"
tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
"""
ENDED = "[one + tokenizer.eos_token + other for one, other in zip(TEXTS, OTHERS)]"
UNIT = """
    pooled = pooled / pooled.norm(dim=-1, keepdim=True) * pooled.shape[-1] ** 0.5  # to unit mean square
    """
APART = """
    u, v = pooled.chunk(2)  # of the first texts, of the second ones
    pooled = torch.cat([(u - v).abs(), u * v], dim=-1)
    """


def write_readme(folder: Path, format: str, module: TaskModule, *, whole: bool) -> None:
    """Write README.md and labels.json beside exported weights, and the head unless it is among the weights (`whole`).

    Raises `ConfigError` for a head that is not one linear layer with one row of logits per example.
    """
    assert module.backbone is not None
    labels = list(module.task.labels)
    if not whole:
        _write_head(folder, module)
    write_json(folder / "labels.json", labels)
    code = snippet(format, module, whole=whole)
    told = (
        "The head is in it."
        if whole
        else f"Its head is beside it, in {HEAD}: a linear layer on the pooled output scaled to unit mean square, which"
        " no head of that library computes. The lines below compute it."
    )
    write_text(
        folder / "README.md",
        f"# {module.task.name}, for {format}\n\n"
        f"A task of Graftwork ({module.task.kind}), trained with {module.description['method']['name']} on "
        f"{module.backbone.card.id}. {told} The classes, in order, are in labels.json.\n\n"
        f"FOLDER is this folder, BASE the network, TEXTS a list of texts{_of_pairs(module)}.\n\n"
        f"```python\n{code}```\n\n"
        f"`logits` are those of the task module in fp32{_rounded(module)}{_scaled(module)}.\n",
    )


def snippet(format: str, module: TaskModule, *, whole: bool) -> str:
    """Return the code that loads the folder and computes `logits` (texts, classes)."""
    assert module.backbone is not None
    card = module.backbone.card
    apart = len(module.roles) == 2 and card.towers == 2
    parts = [IMPORTS[whole], LOAD[format, whole].replace("CLASSES", str(len(module.task.labels)))]
    texts = "TEXTS" if len(module.roles) == 1 else "TEXTS + OTHERS" if apart else "TEXTS, OTHERS"
    texts = ENDED if texts == "TEXTS, OTHERS" and _joined_by_end(module.backbone) else texts
    cut = f"padding=True, truncation=True, max_length={card.max_length}"
    parts += [
        f"tokenizer = AutoTokenizer.from_pretrained(BASE)\n{PADDED if card.pooling == 'last' else ''}"
        f"batch = tokenizer({texts}, {cut}, return_tensors='pt')\n"
        f"with torch.no_grad():\n    {'logits' if whole else 'states'} = model(**batch)."
        f"{'logits' if whole else 'last_hidden_state'}\n"
    ]
    if not whole:
        parts += [POOLED[card.pooling], UNIT, APART if apart else ""]
        parts += [f'head = load_file(f"{{FOLDER}}/{HEAD}")\nlogits = pooled @ head["weight"].T + head["bias"]\n']
    base = name_elsewhere(card.id)
    parts.insert(1, f"BASE = {base!r}\n" if base else "")
    code = "".join(dedent(part).lstrip("\n") for part in parts)
    # AutoModel would also open a decoder, which this task does not use.
    return code.replace("AutoModel", "AutoModelForTextEncoding") if card.family in ENCODERS_OF_TWO else code


def _write_head(folder: Path, module: TaskModule) -> None:
    """Write the linear layer, with the thresholds chosen on validation added to its bias."""
    delta = safe_load(module.folder / "delta.safetensors")
    if module.task.kind not in KINDS or not {"head.out.weight", "head.out.bias"} <= delta.keys():
        raise ConfigError(
            f"the head of a {module.task.kind} task can't be exported",
            where=str(module.folder),
            expected=f"a task of kind {', '.join(KINDS)}, whose head is one linear layer",
        )
    bias, thresholds = delta["head.out.bias"], module.description["facts"].get(THRESHOLDS_FACT)
    if thresholds is not None:
        bias = bias + bias.new_tensor(thresholds)
    write_tensors(folder / HEAD, {"weight": delta["head.out.weight"], "bias": bias})


def _joined_by_end(backbone: Any) -> bool:
    """Return whether the end token is put between two texts, where the tokenizer of a saved folder puts nothing."""
    added = backbone.tokenizer.num_special_tokens_to_add
    return (added(False), added(True)) == (0, 1)


def _of_pairs(module: TaskModule) -> str:
    return ", OTHERS one of their partners" if len(module.roles) == 2 else ""


def _rounded(module: TaskModule) -> str:
    bf16 = module.description["precision"] == "bf16"
    return "; it was trained and answers in bf16, whose logits differ by its rounding" if bf16 else ""


def _scaled(module: TaskModule) -> str:
    if module.task.kind != "regression":
        return ""
    mean, deviation = module.task.settings.scale
    return f"; the value is logit * {deviation!r} + {mean!r}"
