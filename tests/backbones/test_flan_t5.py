"""A real T5 1.1: opened to write, it answers as transformers does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from graftwork.core.example import Example
from graftwork.core.writing import TextSearch
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.seq2seq import Seq2SeqBackbone

FOLDER = Path.home() / ".cache" / "graftwork-fixtures" / "flan-t5-small"
ASKED = ["What is the capital of Germany?", "translate English to German: How old are you?"]


@pytest.mark.real
@pytest.mark.skipif(not FOLDER.is_dir(), reason="flan-t5-small has not been made")
@pytest.mark.parametrize("beams", [1, 3])
def test_a_real_network_writes_as_transformers_does(beams: int, shared: Path) -> None:
    backbone = open_backbone(f"hf:{FOLDER}", precision="fp32", writes=True)
    assert isinstance(backbone, Seq2SeqBackbone)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(FOLDER, dtype=torch.float32, attn_implementation="eager").eval()
    inputs = backbone.collate(backbone.encode([Example(text, {"text": text}) for text in ASKED]), range(2))
    with torch.no_grad():
        states, mask = backbone.features(inputs).sequence, inputs["attention_mask"]
        found = [text.tokens for text in backbone.write(states, mask, TextSearch(beams, 1.0, 0, 12))]
        wanted = theirs.generate(**inputs, num_beams=beams, do_sample=False, max_new_tokens=12)[:, 1:].tolist()
    assert found == [row[: row.index(1) + 1] if 1 in row else row for row in wanted]
    assert backbone.text_of(found[0]) == "berlin"
