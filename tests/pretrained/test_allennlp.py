"""Published files are read as TensorFlow wrote them: against the same sums, written out in its own order of things."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError
from graftwork.pretrained.allennlp import published_files, read_published
from graftwork.pretrained.character_words import END, START, number_of, symbols_of_words
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import check_backbone

Array = NDArray[np.float64]
P, C, L, WIDTH = 4, 6, 2, 3
FILTERS = [[1, 2], [3, 3]]
SENTENCES = ("a play", "Zoë plays in an unbelievably-long-winded-and-most-extraordinarily-titled play", "")


def options(**lstm: Any) -> dict[str, Any]:
    return {
        "lstm": {"dim": C, "projection_dim": P, "n_layers": L, "cell_clip": 0.5, "proj_clip": 0.3,
                 "use_skip_connections": True} | lstm,
        "char_cnn": {"embedding": {"dim": WIDTH}, "filters": FILTERS, "n_highway": 1, "n_characters": 262,
                     "max_characters_per_token": 50, "activation": "tanh"},
    }  # fmt: skip


def write(folder: Path, **lstm: Any) -> Path:
    """A published network of random weights."""
    folder.mkdir(exist_ok=True)
    draw, features = np.random.default_rng(0), sum(count for _, count in FILTERS)
    (folder / "options.json").write_text(json.dumps(options(**lstm)))
    with h5py.File(folder / "lm_weights.hdf5", "w") as file:

        def put(path: str, *shape: int) -> None:
            file[path] = draw.normal(size=shape).astype(np.float32)

        put("char_embed", 261, WIDTH)
        for number, (span, count) in enumerate(FILTERS):
            put(f"CNN/W_cnn_{number}", 1, span, WIDTH, count)
            put(f"CNN/b_cnn_{number}", count)
        for name in ("carry", "transform"):
            put(f"CNN_high_0/W_{name}", features, features)
            put(f"CNN_high_0/b_{name}", features)
        put("CNN_proj/W_proj", features, P)
        put("CNN_proj/b_proj", P)
        for cell in (f"RNN_{side}/RNN/MultiRNNCell/Cell{layer}/LSTMCell" for side in (0, 1) for layer in range(L)):
            put(f"{cell}/W_0", 2 * P, 4 * C)
            put(f"{cell}/B", 4 * C)
            put(f"{cell}/W_P_0", C, P)
    return folder


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def word_of(file: h5py.File, symbols: list[int]) -> Array:
    """(P,) a word out of context."""
    table = np.concatenate([np.zeros((1, WIDTH)), file["char_embed"][...]])
    letters, found = table[symbols], []
    for number, (span, _) in enumerate(FILTERS):
        weight, bias = file[f"CNN/W_cnn_{number}"][0], file[f"CNN/b_cnn_{number}"][...]
        looks = [np.einsum("sw,swf->f", letters[at : at + span], weight) for at in range(len(letters) - span + 1)]
        found.append(np.tanh(np.max(looks, axis=0) + bias))
    x = np.concatenate(found)
    high = file["CNN_high_0"]
    carry = sigmoid(x @ high["W_carry"][...] + high["b_carry"][...])
    x = carry * np.maximum(x @ high["W_transform"][...] + high["b_transform"][...], 0) + (1 - carry) * x
    return np.asarray(x @ file["CNN_proj/W_proj"][...] + file["CNN_proj/b_proj"][...])


def layer_of(file: h5py.File, side: int, number: int, read: Array, clips: tuple[float, float]) -> Array:
    """(T, P) -> (T, P): one direction of one layer, TensorFlow's LSTMCell from the zero state."""
    cell = file[f"RNN_{side}/RNN/MultiRNNCell/Cell{number}/LSTMCell"]
    content, hidden, left = np.zeros(C), np.zeros(P), []
    for x in read:
        i, j, f, o = np.split(np.concatenate([x, hidden]) @ cell["W_0"][...] + cell["B"][...], 4)
        content = sigmoid(f + 1) * content + sigmoid(i) * np.tanh(j)
        content = np.clip(content, -clips[0], clips[0]) if clips[0] else content
        hidden = (sigmoid(o) * np.tanh(content)) @ cell["W_P_0"][...]
        hidden = np.clip(hidden, -clips[1], clips[1]) if clips[1] else hidden
        left.append(hidden)
    return np.array(left)


def written_out(folder: Path, numbers: list[int]) -> list[Array]:
    """L + 1 states (T, 2P) of one sequence."""
    lstm = json.loads((folder / "options.json").read_text())["lstm"]
    clips = (lstm["cell_clip"], lstm["proj_clip"])
    with h5py.File(folder / "lm_weights.hdf5") as file:
        words = np.array([word_of(file, symbols) for symbols in symbols_of_words(numbers).tolist()])
        states = [np.concatenate([words, words], axis=1)]
        for number in range(L):
            entered = np.split(states[-1], 2, axis=1)
            left = [
                layer_of(file, 0, number, entered[0], clips),
                layer_of(file, 1, number, entered[1][::-1], clips)[::-1],
            ]
            skipped = number > 0 and lstm["use_skip_connections"]
            states.append(np.concatenate(left, axis=1) + (states[-1] if skipped else 0))
    return states


@pytest.mark.parametrize("lstm", [{}, {"use_skip_connections": False}, {"cell_clip": 0, "proj_clip": None}], ids=str)
def test_states_are_those_written_out(tmp_path: Path, lstm: dict[str, Any]) -> None:
    network = read_published(*published_files(write(tmp_path, **lstm))).eval()
    listed = [[START, *map(number_of, text.split()), END] for text in SENTENCES]
    mask = torch.zeros(len(listed), max(map(len, listed)), dtype=torch.bool)
    symbols = torch.zeros(*mask.shape, 50, dtype=torch.int64)
    for row, numbers in enumerate(listed):
        mask[row, : len(numbers)] = True
        symbols[row, : len(numbers)] = torch.from_numpy(symbols_of_words(numbers))
    with torch.no_grad():
        states = network(symbols, mask)
    for row, numbers in enumerate(listed):
        for state, expected in zip(states, written_out(tmp_path, numbers), strict=True):
            np.testing.assert_allclose(state[row, : len(numbers)].numpy(), expected, atol=1e-5)


def test_the_folder_opens_as_a_backbone(tmp_path: Path) -> None:
    backbone = open_backbone(f"elmo:{write(tmp_path)}", precision="fp32")
    assert (backbone.card.width, backbone.card.blocks, backbone.card.family) == (2 * P, L, "elmo")
    check_backbone(backbone, absent=backbone.card.lacks)
    fresh = open_backbone(f"random:elmo:{tmp_path}", precision="fp32", seed=1)
    assert fresh.card.revision != backbone.card.revision
    assert fresh.card.parameters == backbone.card.parameters


def _torn(folder: Path) -> None:
    weights = folder / "lm_weights.hdf5"
    weights.write_bytes(weights.read_bytes()[:500])


def _without_projection(folder: Path) -> None:
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file["CNN_proj/W_proj"]


def _option(part: str, name: str, value: Any) -> Any:
    def change(folder: Path) -> None:
        changed = options()
        changed[part][name] = value
        (folder / "options.json").write_text(json.dumps(changed))

    return change


@pytest.mark.parametrize(
    ("harm", "error", "message"),
    [
        (_torn, StorageError, "not a whole HDF5 file"),
        (_without_projection, IncompatibleModule, "no CNN_proj/W_proj"),
        (_option("lstm", "dim", 7), IncompatibleModule, "other sizes than options.json says"),
        (_option("lstm", "dim", "many"), ConfigError, "not the sizes of an ELMo network"),
        (_option("char_cnn", "activation", "swish"), ConfigError, "activation 'swish'"),
        (_option("char_cnn", "max_characters_per_token", 20), ConfigError, "max_characters_per_token 20"),
        (_option("char_cnn", "filters", []), ConfigError, "filters of spans"),
        (lambda folder: (folder / "options.json").unlink(), StorageError, "0 files \\*options.json"),
        (lambda folder: (folder / "other_weights.hdf5").touch(), StorageError, "2 files \\*weights.hdf5"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, harm: Any, error: type[GraftworkError], message: str) -> None:
    write(tmp_path)
    harm(tmp_path)
    with pytest.raises(error, match=message):
        open_backbone(f"elmo:{tmp_path}", precision="fp32")


def test_without_h5py_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError, match=r"graftwork\[elmo\]"):
        open_backbone(f"elmo:{tmp_path}", precision="fp32")


def linked(file: Any) -> None:
    file["char_embed"] = h5py.ExternalLink("other.hdf5", "char_embed")


def softly(file: Any) -> None:
    file["other"] = np.zeros((261, WIDTH), np.float32)
    file["char_embed"] = h5py.SoftLink("/other")


def stored_elsewhere(file: Any) -> None:
    file.create_dataset("char_embed", (261, WIDTH), "f4", external=[("secret.bin", 0, 261 * WIDTH * 4)])


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((261, WIDTH), "f4")
    layout[:] = h5py.VirtualSource("other.hdf5", "char_embed", (261, WIDTH))
    file.create_virtual_dataset("char_embed", layout)


def inflated(file: Any) -> None:
    file.create_dataset("char_embed", (1 << 28,), "f4", chunks=(1 << 16,), compression="gzip")


def of_texts(file: Any) -> None:
    file["char_embed"] = ["text"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (linked, "char_embed is a link"),
        (softly, "char_embed is a link"),
        (stored_elsewhere, "the numbers of char_embed are in another file"),
        (virtual, "the numbers of char_embed are in another file"),
        (inflated, "char_embed unpacks to far more"),
        (of_texts, "char_embed is no array of numbers"),
    ],
)
def test_arrays_stand_in_the_file_and_are_of_its_size(tmp_path: Path, change: Any, rule: str) -> None:
    folder = write(tmp_path)
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file["char_embed"]
        change(file)
    with pytest.raises(GraftworkError, match=rf"lm_weights\.hdf5: {rule}"):
        read_published(*published_files(folder))


@pytest.mark.parametrize("size", [{"dim": 10**9}, {"n_layers": 10**7}, {"projection_dim": 100_000, "dim": 100_000}])
def test_absurd_sizes_are_refused_before_the_network_is_built(tmp_path: Path, size: dict[str, int]) -> None:
    folder = write(tmp_path)
    (folder / "options.json").write_text(json.dumps(options(**size)))
    with pytest.raises(StorageError, match=r"options\.json: [\s\S]*larger"):
        read_published(*published_files(folder))
