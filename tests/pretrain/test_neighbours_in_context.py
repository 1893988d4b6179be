"""Words are found where they stand, by the states that a backbone has of them there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from graftwork.cli.main import main
from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.pretrain.neighbours_in_context import nearest_in_context, sentences_of
from graftwork.pretrained.open_backbone import open_backbone

TEXTS = ("They saw the play. The play was long!\nChildren play here.", "Children play here.", " ", "x " * 200)
SENTENCES = [
    ("They", "saw", "the", "play", "."), ("The", "play", "was", "long", "!"), ("Children", "play", "here", "."),
]  # fmt: skip
ASKED = "We saw a play ."


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    return open_backbone("tiny_text", precision="fp32")


def vector(backbone: Backbone, words: tuple[str, ...], place: int, depth: int) -> torch.Tensor:
    """One sentence alone."""
    encoded = backbone.encode([Example("x/1", {"words": words})])
    assert encoded.words is not None
    state = backbone.states(backbone.collate(encoded, [0]))[depth]
    return state[0, encoded.words.first[0][place]].detach()


def test_texts_become_sentences_once() -> None:
    assert list(sentences_of(TEXTS)) == SENTENCES


@pytest.mark.parametrize("depth", [None, 0, 1])
def test_neighbours_are_those_of_every_sentence_alone(backbone: Backbone, depth: int | None) -> None:
    at = 2 if depth is None else depth
    asked = vector(backbone, tuple(ASKED.split()), 3, at)
    expected = sorted(
        (
            (float(torch.cosine_similarity(asked, vector(backbone, words, place, at), dim=0)), words, place)
            for words in SENTENCES
            for place in range(len(words))
        ),
        reverse=True,
    )
    found = nearest_in_context(backbone, "Play", ASKED, SENTENCES, count=100, depth=depth)
    assert len(found) == len(expected)
    for one, (cosine, *_) in zip(found, expected, strict=True):
        assert one.cosine == pytest.approx(cosine, abs=1e-5)
    if at:
        assert [(one.sentence, one.place) for one in found[:3]] == [tuple(rest) for _, *rest in expected[:3]]


def test_only_the_same_word(backbone: Backbone) -> None:
    found = nearest_in_context(backbone, "play", ASKED, [*SENTENCES, tuple(ASKED.split())], same_word=True)
    assert [one.word for one in found] == ["play"] * 3
    assert {one.sentence for one in found} == set(SENTENCES)  # and not the sentence itself
    assert found[0].marked.count("[play]") == 1


def test_what_can_not_be_asked(backbone: Backbone) -> None:
    with pytest.raises(ConfigError, match="is not in the sentence"):
        nearest_in_context(backbone, "plays", ASKED, SENTENCES)
    with pytest.raises(ConfigError, match="no such depth"):
        nearest_in_context(backbone, "play", ASKED, SENTENCES, depth=3)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS), encoding="utf-8")
    asked = ["nearest", "tiny_text", "play", "--in", ASKED, "--among", str(texts)]
    assert main([*asked, "--same-word", "--count", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("[play]" in line for line in lines)
    assert main([*asked, "--count", "1", "--json"]) == 0
    (first,) = json.loads(capsys.readouterr().out)
    assert first["sentence"][first["place"]] == first["word"]
    assert main(["nearest", "tiny_text", "play", "--among", str(texts)]) == 2
    assert "need --in" in capsys.readouterr().err
    assert main([*asked[:5]]) == 2
    assert "--among PATH" in capsys.readouterr().err
