"""ELMo's network gives what AllenNLP and bilm-tf stored."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from graftwork.nn.character_ids import WORD_LENGTH
from graftwork.pretrained.allennlp import published_files, read_published
from graftwork.pretrained.character_words import END, START, number_of, symbols_of_words

BATCHES = 3  # rows of a batch: one sentence of each list
NEAR = 1e-5
SOURCES = ("allennlp", "bilm-tf")  # with skip connections, and without


@pytest.fixture(params=SOURCES)
def published(request: pytest.FixtureRequest, shared: Path) -> Path:
    folder = shared / "fixtures" / "elmo" / str(request.param)
    if not (folder / "lm_weights.hdf5").is_file():
        pytest.skip(f"no weights in {folder}")
    return folder


def characters_of_batch(sentences: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """(S, T, symbols) with <S> and </S>, and the mask (S, T)."""
    listed = [[START, *map(number_of, text.split()), END] for text in sentences]
    mask = torch.zeros(len(listed), max(map(len, listed)), dtype=torch.bool)
    characters = torch.zeros(*mask.shape, WORD_LENGTH, dtype=torch.int64)
    for row, numbers in enumerate(listed):
        mask[row, : len(numbers)] = True
        characters[row, : len(numbers)] = torch.from_numpy(symbols_of_words(numbers))
    return characters, mask


def stored(folder: Path, batch: int) -> list[NDArray[np.float32]]:
    """Of each sentence of a batch (tokens, 2P), the top layer's."""
    expected = []
    for row in range(BATCHES):
        with h5py.File(folder / f"lm_embeddings_{row}.hdf5", "r") as file:
            expected.append(np.concatenate(list(file[str(batch)][...]), axis=-1))
    return expected


@pytest.mark.real
def test_embeddings_in_context(published: Path) -> None:
    network = read_published(*published_files(published)).eval()
    name = "sentences.json" if (published / "sentences.json").is_file() else "lm_embeddings_sentences.json"
    sentences = json.loads((published / name).read_text())
    states, worst = None, 0.0
    for batch in range(len(sentences[0])):
        texts = [sentences[row][batch] for row in range(BATCHES)]
        with torch.no_grad():
            left, states = network.resume(*characters_of_batch(texts), states)
        for row, expected in enumerate(stored(published, batch)):
            assert expected.shape[0] == len(texts[row].split())
            worst = max(worst, float(np.abs(left[-1][row, 1 : 1 + len(expected)].numpy() - expected).max()))
    assert worst < NEAR, f"{worst:.2g} away"


@pytest.mark.real
def test_words_out_of_context(published: Path) -> None:
    if not (published / "elmo_token_embeddings.hdf5").is_file():
        pytest.skip("no word embeddings stored here")
    network = read_published(*published_files(published)).eval()
    words = (published / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    with h5py.File(published / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][...]
    marks = {"<S>": START, "</S>": END}
    numbers = [marks.get(word, number_of(word)) for word in words[: len(expected)]]
    with torch.no_grad():
        given = network.words(torch.from_numpy(symbols_of_words(numbers))).numpy()
    assert given.shape == expected.shape
    assert np.abs(given - expected).max() < NEAR
