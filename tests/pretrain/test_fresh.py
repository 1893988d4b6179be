"""`random:` before the folder of a pre-training: the same architecture and tokenizer, without what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import graftwork as gw
from graftwork.core.example import Example
from graftwork.data.readers.word_vector_folder import write_folder
from graftwork.errors import UnknownName
from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.start_point import parse_objective
from graftwork.pretrain.vocabulary_training import learn
from graftwork.pretrained.open_backbone import PRETRAINED, open_backbone
from graftwork.pretrained.word_vector_table import WordVectors

SIZES: dict[str, dict[str, Any]] = {
    "masked": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32},
    "causal": {"n_embd": 16, "n_layer": 1, "n_head": 2},
    "awd_lstm": {"embedding_size": 16, "hidden_size": 24, "layers": 2, "max_length": 40},
    "bidirectional": {
        "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 8]], "n_highway": 1, "max_characters_per_token": 50,
                     "activation": "relu"},
        "lstm": {"dim": 8, "projection_dim": 4, "n_layers": 1, "cell_clip": 3, "proj_clip": 3},
    },
    "word_vectors": {"width": 8},
}  # fmt: skip
EXAMPLES = [Example(f"train/{number}", {"text": text}) for number, text in enumerate(("the cat sleeps", "nobody was"))]


@pytest.fixture(params=SIZES)
def run(request: pytest.FixtureRequest, corpus: Path, tmp_path: Path) -> Path:
    """The folder of a run of each objective, as it is left: its backbone."""
    folder = tmp_path / "runs" / "0a1b2c3d4e5f"
    backbone = folder / PRETRAINED
    backbone.mkdir(parents=True)
    made: Any = parse_objective(request.param).objective
    if request.param == "word_vectors":
        words = ("the", "cat", "nobody", "sleeps")
        write_folder(backbone, WordVectors(words, torch.eye(4, 8).numpy()))
        return folder
    vocabulary = learn(open_corpus([corpus]), made.tokenizer, tmp_path / "vocabularies")
    made.save(made.network(SIZES[request.param], vocabulary, 32, 7), vocabulary, backbone)
    return folder


def read(name: str, seed: int = 0) -> torch.Tensor:
    backbone = open_backbone(name, precision="fp32", seed=seed)
    return backbone.features(backbone.collate(backbone.encode(EXAMPLES), [0, 1])).pooled


def test_a_run_without_what_it_learned(run: Path) -> None:
    learned, fresh = (open_backbone(f"{prefix}{run}", precision="fp32").card for prefix in ("", "random:"))
    assert fresh.id == f"random:{learned.id}" and fresh.revision != learned.revision
    same = ("family", "width", "blocks", "parameters", "pooling", "max_length", "towers", "shapes", "lacks")
    assert all(getattr(fresh, name) == getattr(learned, name) for name in same)
    pooled = read(f"random:{run}")
    assert not torch.allclose(pooled, read(str(run)))
    assert torch.equal(pooled, read(f"random:{run}")) and not torch.allclose(pooled, read(f"random:{run}", seed=1))
    assert open_backbone(fresh.id, precision="fp32").card == fresh  # as a task module names it


@pytest.mark.slow
def test_it_is_compared_as_any_backbone(corpus: Path, tmp_path: Path) -> None:
    size = tmp_path / "size.json"
    size.write_text('{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}')
    made = gw.pretrain(corpus, size=str(size), steps=2, recipe={"batch": 4, "length": 24}, validation=0.1,
                       runs=tmp_path / "runs", cache=tmp_path / "cache")  # fmt: skip
    rows = [f"{line},{'ab'[line.startswith('the')]}" for line in corpus.read_text().splitlines()[:60]]
    (tmp_path / "data.csv").write_text("\n".join(["text,label", *rows]))
    runs = [
        gw.train(tmp_path / "data.csv", method="linear_probe", backbone=name, runs=tmp_path / "runs").result
        for name in (str(made.folder), f"random:{made.folder}")
    ]
    assert [run.status for run in runs] == ["ok", "ok"] and runs[0].id != runs[1].id


def test_a_run_that_is_not_there() -> None:
    with pytest.raises(UnknownName, match="no_such_run"):
        open_backbone("random:no_such_run", precision="fp32")
