"""Zero-shot: the answers are those of the pretrained network, and nothing is trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.backbone import Backbone
from graftwork.core.method import unfit
from graftwork.core.writing import TextSearch, TextWriter
from graftwork.methods.zero_shot import ZeroShot
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import check_method, tiny_bench, tiny_dataset
from graftwork.testing.tiny_writers import write_seq2seq


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_seq2seq(tmp_path_factory.mktemp("t5"))


@pytest.fixture(scope="module")
def writer(folder: Path) -> Backbone:
    return open_backbone(f"hf:{folder}", precision="fp32", writes=True)


@pytest.mark.slow
def test_it_keeps_the_promises_of_methods(folder: Path) -> None:
    check_method("zero_shot", backbone=f"hf:{folder}", of_kinds=("generation",))


def test_it_writes_what_the_network_writes(writer: Backbone) -> None:
    data = tiny_dataset("generation")
    data = replace(data, task=data.task.resolved(longest=6))
    fitted = ZeroShot().fit(tiny_bench(data, writer))
    assert fitted.trained_parameters == 0 and not fitted.delta() and isinstance(writer, TextWriter)
    examples = data.test.examples[:3]
    inputs = writer.collate(writer.encode(examples), range(3))
    states = writer.features(inputs).sequence
    wanted = writer.write(states, inputs["attention_mask"], TextSearch.of(data.task))
    answers = np.asarray(fitted.logits(examples))
    assert answers["text"].tolist() == [writer.text_of(one.tokens) for one in wanted]
    assert fitted.flops(examples)[0] > 0


def test_it_fits_texts_of_a_network_that_writes(folder: Path, writer: Backbone) -> None:
    task = tiny_dataset("generation").task
    assert unfit(ZeroShot(), task, writer.card) == ""
    assert "writes no texts" in unfit(ZeroShot(), task, open_backbone("tiny_text", precision="fp32").card)
    assert "of kind classification" in unfit(ZeroShot(), tiny_dataset().task, writer.card)
