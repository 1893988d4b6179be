"""Word vectors trained by gensim: what they learn, that they are the same every time, and what is refused."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graftwork as gw
from graftwork.cli.main import main
from graftwork.data.readers.word_vector_folder import named_word_vectors, read_folder
from graftwork.errors import ConfigError, DataError
from graftwork.io.files import read_json
from graftwork.pretrain.objectives import word_vectors
from graftwork.pretrain.pretraining import Pretrained
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.word_vector_table import WordVectors

TOPICS = {"sea": ("ship", "wave", "salt", "sail", "storm"), "yard": ("hen", "grain", "mud", "plough", "barn")}
FAST = "word_vectors:epochs=3:sample=1:learning_rate=0.1"
LONG = FAST.replace("=3", "=15")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines about the sea, and lines about the yard."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("topics") / "lines.txt"
    lines = [" ".join([*draw.choices(TOPICS[topic], k=12), "."]) for topic in ("sea", "yard") * 300]
    path.write_text("\n".join(f"{line} rare{number}" for number, line in enumerate(lines)))
    return path


@pytest.fixture
def train(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pretrained]:
    """A pre-training in portions of 2,000 tokens."""
    monkeypatch.setattr(word_vectors, "PORTION", 2000)

    def run(objective: str = FAST, runs: str = "runs", **settings: Any) -> Pretrained:
        given = {"validation": 0.05, "runs": tmp_path / runs, "cache": tmp_path / "cache"} | settings
        return gw.pretrain(settings.get("corpus", corpus), objective=objective, **given)

    return run


def together(vectors: WordVectors) -> float:
    """How much nearer words of one topic are than words of two."""
    sea, yard = ([vectors.row_of(word) for word in TOPICS[topic]] for topic in TOPICS)
    cosines = vectors.directions @ vectors.directions.T
    return float(cosines[np.ix_(sea, sea)].mean() - cosines[np.ix_(sea, yard)].mean())


@pytest.mark.parametrize(
    "options",
    [
        "",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in (":algorithm=cbow:ngrams=true:buckets=500", ":algorithm=cbow", ":ngrams=true:buckets=500")
        ),
    ],
)
def test_words_of_one_topic_come_together(options: str, train: Callable[..., Pretrained]) -> None:
    vectors = named_word_vectors(str(train(LONG + options).folder))
    assert set(vectors.words) == {*TOPICS["sea"], *TOPICS["yard"], "."} and vectors.width == 50
    assert vectors.words[-1] == "." and together(vectors) > 0.3


def test_a_run_and_what_it_leaves(train: Callable[..., Pretrained], capsys: pytest.CaptureFixture[str]) -> None:
    done = train()
    facts, costs = done.result.facts, done.result.costs
    train_tokens = facts["text"]["train"]["tokens"]
    assert facts["tokens_seen"] == 3 * train_tokens and facts["passes"] == 3 and facts["vocabulary"] == 11
    assert facts["known"]["train"] == pytest.approx(13 / 15, abs=0.001)  # of a line, neither "rare…" nor its end
    assert costs["train_flops"].grade == "model"
    assert (costs["train_flops"].value or 0) == pytest.approx(
        3 * train_tokens * 13 / 15 * 6 * (6 * 50 * 6 + 2 * 50), rel=1e-3
    )
    assert costs["trained_parameters"].value == 2 * 11 * 50 and (costs["stored_bytes"].value or 0) > 11 * 50 * 4
    assert {path.name for path in done.folder.iterdir()} == {
        "backbone", "log.jsonl", "report.html", "result.json", "spec.json",
    }  # fmt: skip
    assert read_json(done.folder / "spec.json")["recipe"] == {}
    card = open_backbone(str(done.folder), precision="fp32").card
    assert (card.family, card.blocks, card.width) == ("word_vectors", 0, 50)
    assert main(["nearest", str(done.folder), "ship", "--count", "4"]) == 0
    found = {line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert found == {"wave", "salt", "sail", "storm"}
    assert main(["show", str(done.folder)]) == 0
    assert train().reused


@pytest.mark.parametrize(
    ("sample", "seen"), [("0.001", 0.12), *(pytest.param(one, 1.0, marks=pytest.mark.slow) for one in ("0.5", "1"))]
)
def test_so_often_a_word_is_seen(
    sample: str, seen: float, train: Callable[..., Pretrained], monkeypatch: pytest.MonkeyPatch
) -> None:
    models: list[Any] = []
    make = word_vectors.WordVectorObjective._model

    def noted(*given: Any) -> Any:
        models.append(make(*given))
        return models[-1]

    monkeypatch.setattr(word_vectors.WordVectorObjective, "_model", noted)
    train(f"word_vectors:epochs=1:sample={sample}")
    chances = [models[0].wv.get_vecattr(word, "sample_int") / (2**32 - 1) for word in models[0].wv.index_to_key]
    assert chances == pytest.approx([seen] * 11, abs=0.02)


def test_of_ngrams_no_loss_is_told(train: Callable[..., Pretrained]) -> None:
    done = train(FAST + ":ngrams=true:buckets=500")
    lines = [json.loads(line) for line in (done.folder / "log.jsonl").read_text().splitlines()]
    assert lines and all("rate" in line and "loss" not in line for line in lines)
    assert "Plotly.newPlot" not in (done.folder / "report.html").read_text()


def test_the_same_command_gives_the_same_bytes(train: Callable[..., Pretrained]) -> None:
    one, two, other = (train(runs=name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    files = [{path.name: path.read_bytes() for path in done.backbone.iterdir()} for done in (one, two, other)]
    assert files[0] == files[1] != files[2]


class Killed(Exception):
    """Stands for a kill: nothing is cleaned up on purpose."""


@pytest.mark.parametrize("options", ["", ":ngrams=true:buckets=500"])
def test_a_run_that_was_stopped_goes_on_exactly(options: str, train: Callable[..., Pretrained]) -> None:
    whole = train(FAST + options)
    places: list[float] = []

    def stop(done: float, words: str) -> None:
        places.append(done)
        if done > 0.5:
            raise Killed

    with pytest.raises(Killed):
        train(FAST + options, runs="again", checkpoint_every="0", progress=stop)
    again = train(FAST + options, runs="again", progress=lambda done, words: places.append(-done))
    assert again.result.facts["weights_sha256"] == whole.result.facts["weights_sha256"]
    assert again.result.facts["attempts"] == 2 and min(-place for place in places if place < 0) > 0.3
    assert (again.folder / "log.jsonl").read_text() == (whole.folder / "log.jsonl").read_text()


@pytest.mark.slow
def test_it_lasts_as_long_as_was_asked(train: Callable[..., Pretrained]) -> None:
    assert train(tokens=5000).result.facts["tokens_seen"] == 5000
    done = train(budget="50MFLOP")
    assert done.result.costs["train_flops"].value == pytest.approx(50e6, rel=1e-3)
    done = train(budget="2s")
    assert done.result.facts["tokens_seen"] > 0
    assert (done.result.costs["total_seconds"].value or 0) < 20


def test_rare_words_are_left_out(train: Callable[..., Pretrained]) -> None:
    assert len(read_folder(train(f"{FAST}:min_count=600").backbone).words) == 10
    with pytest.raises(DataError, match="no two words that occur at least 99999 times"):
        train(f"{FAST}:min_count=99999")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tokenizer": "wordpiece"}, "tokens of word vectors are whole words"),
        ({"steps": 5}, r"do not apply to this objective\n  got:      --steps\n"),
        ({"validate_every": 5}, r"do not apply to this objective\n  got:      --validate-every\n"),
        ({"backbone": "minilm"}, "can't start from a backbone"),
        (
            {"recipe": {"batch": 3, "length": None, "warm_up": 0.1}},
            r"do not apply to this objective\n  got:      --batch, --warm-up\n",
        ),
        ({"size": "size.json"}, r"expected: \{\"width\": 100\}"),
        ({"objective": "word_vectors:algorithm=glove"}, "no algorithm 'glove'"),
        ({"objective": "word_vectors:window=0"}, "window must be at least 1"),
        ({"objective": "word_vectors:sample=0"}, "sample is a share"),
    ],
)
def test_what_is_refused(
    settings: dict[str, Any],
    message: str,
    train: Callable[..., Pretrained],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "size.json").write_text('{"hidden_size": 8}')
    with pytest.raises(ConfigError, match=message):
        train(**settings)


def test_without_gensim_it_says_what_to_install(
    train: Callable[..., Pretrained], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(ConfigError, match=r"graftwork\[vectors\]"):
        train()


@pytest.mark.slow
def test_killed_in_the_middle_it_ends_with_the_same_weights_whatever_the_hash_seed(
    corpus: Path, tmp_path: Path
) -> None:
    words = ["-m", "graftwork", "pretrain", str(corpus), "--objective", "word_vectors", "--tokens", "4000000"]
    words += ["--checkpoint-every", "0", "--threads", "1", "--cache", str(tmp_path / "cache"), "--json"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def start(hash_seed: int, runs: Path) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
        return subprocess.Popen([sys.executable, *words, "--runs", str(runs)], env=environment, stdout=subprocess.PIPE)

    def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(process.communicate()[0])
        return found

    expected = answer(start(1, whole))
    process = start(2, broken)
    while not list(broken.glob("*/checkpoint/*.json")):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert not list(broken.glob("*/result.json"))
    found = answer(start(3, broken))
    assert found["facts"]["weights_sha256"] == expected["facts"]["weights_sha256"]
    assert (found["facts"]["attempts"], found["facts"]["tokens_seen"]) == (2, 4_000_000)
