"""Tiny random networks with a tokenizer of whole words, as transformers folders; for either version of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

WORDS = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "the", "a", "film", "was", "good", "bad", "very", "not", "long", "it"]
TOKENS: dict[str, Any] = {
    "vocab_size": len(WORDS), "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "initializer_range": 0.2,
    "max_position_embeddings": 24,
}  # fmt: skip
SHAPE: dict[str, Any] = TOKENS | {
    "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": SHAPE,
    "roberta": SHAPE,
    "xlm-roberta": SHAPE,
    "electra": SHAPE | {"embedding_size": 8},
    "distilbert": TOKENS | {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32},
    "mpnet": SHAPE,
    "modernbert": SHAPE | {"local_attention": 4, "cls_token_id": 2, "sep_token_id": 3},
    "llama": SHAPE | {"num_attention_heads": 4, "num_key_value_heads": 2},
    "t5": TOKENS | {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 2},
}
LARGE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 64}
TEXTS = ["the film was good", "bad", "the film was not very good it was very very long", ""]


def write_network(folder: Path, model_type: str, *, sentences: bool = False, **changes: Any) -> Path:
    """A folder with random weights, biases too; `sentences`: of a sentence encoder that reads pairs apart."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    read = ["input_ids", "attention_mask"] + (["token_type_ids"] if model_type in ("bert", "electra") else [])
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "eos_token": "[SEP]"}
    names |= {"padding_side": "left"} if model_type == "llama" else {"pad_token": "[PAD]"}
    outer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=read, **names)
    outer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModel.from_config(AutoConfig.for_model(model_type, **(CONFIGS[model_type] | changes)))
        for name, parameter in model.named_parameters():  # a bias of zero would hide a mistake
            if name.endswith("bias"):
                nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    if sentences:
        (folder / "1_Pooling").mkdir()
        (folder / "modules.json").write_text(json.dumps([{"path": "1_Pooling", "type": "st.Pooling"}]))
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    return folder
