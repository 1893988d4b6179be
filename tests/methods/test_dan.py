"""Deep averaging network: its average, what it learns, and a module that needs no file of vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.core.configured_methods import method_from_config, parse_method
from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.run import RunResult
from graftwork.errors import ConfigError, DataError, IncompatibleModule, StorageError
from graftwork.methods.dan import Averaging, Dan, Network, _dropped
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.loop import Diverged

WORDS = ("good", "bad", "the", "zebra", "never")
QUICK = Dan(size=8, width=8, epochs=6)


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """Five words, their vectors far apart."""
    path = tmp_path / "tiny.txt"
    path.write_text("".join(f"{word} {place} {-place} 0.5\n" for place, word in enumerate(WORDS)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "pair"), [("classification", True), ("multilabel", False), ("regression", False), ("regression", True)]
)
def test_what_is_stored_restores_what_was_fitted(kind: str, pair: bool) -> None:
    data = tiny_dataset(kind, pair=pair, rows=40)
    fitted = QUICK.fit(tiny_bench(data, None))
    facts = json.loads(json.dumps(fitted.facts))
    restored = QUICK.restore(Setting(data.task, kinds.get(kind), None), fitted.delta(), facts)
    logits = fitted.logits(data.test.examples)
    assert logits.shape == (len(data.test.examples), kinds.get(kind).outputs(data.task))
    assert np.array_equal(restored.logits(data.test.examples), logits)
    assert restored.trained_parameters == fitted.trained_parameters > 0
    assert np.ptp(logits) > 1e-3, "it looks at the text"


@pytest.mark.parametrize(
    "size",
    [
        {"width": 10**9},
        *(pytest.param(one, marks=pytest.mark.slow) for one in ({"depth": 10**9}, {"depth": 1}, {"width": 7})),
    ],
)
def test_sizes_that_the_weights_do_not_have_are_refused_before_they_are_built(size: dict[str, int]) -> None:
    data = tiny_dataset("classification", rows=40)
    fitted = replace(QUICK, epochs=1).fit(tiny_bench(data, None))
    setting = Setting(data.task, kinds.get("classification"), None)
    with pytest.raises(IncompatibleModule, match="another network than the weights belong to"):
        replace(QUICK, **size).restore(setting, fitted.delta(), fitted.facts)
    labels = tuple(f"l{number}" for number in range(10**5))
    with pytest.raises(IncompatibleModule, match="100,000 outputs"):
        QUICK.restore(replace(setting, task=replace(data.task, labels=labels)), fitted.delta(), fitted.facts)


def test_it_learns_and_keeps_its_best_epoch() -> None:
    data = tiny_dataset(rows=60)
    bench = tiny_bench(data, None)
    lines: list[dict[str, float]] = []
    bench.log = lambda line: lines.append(dict(line))
    fitted = Dan(size=16, width=16, epochs=15).fit(bench)
    scores = fitted.facts["validation_by_epoch"]
    assert bench.score(fitted.logits(data.validation.examples)) == max(scores) >= 0.9
    assert scores[fitted.facts["best_epoch"] - 1] == max(scores)
    assert RunResult("0", 0, "ok", facts=fitted.facts).kept_best_epoch
    assert [line["validation"] for line in lines] == scores and lines[-1]["loss"] < lines[0]["loss"]
    assert bench.tally.grade == "model" and bench.tally.flops > 0


def test_a_seed_decides_vectors_layers_and_order() -> None:
    data = tiny_dataset()
    one, again, other = (QUICK.fit(tiny_bench(data, None, seed=seed)).delta() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


def test_the_average_is_of_known_words_and_a_pair_is_read_in_four_ways() -> None:
    table = torch.tensor([[1.0, 2.0], [3.0, -2.0]])
    torch.manual_seed(0)
    plain = Network(table, texts=1, outputs=2, width=3, depth=1)
    mean = torch.tensor([[2.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
    torch.testing.assert_close(plain([[0, 1], [0, 0], []]), plain.layers(mean))
    pair = Network(table, texts=2, outputs=1, width=3, depth=0)
    u, v = torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, -2.0]])
    read = torch.cat([u, v, (u - v).abs(), u * v], dim=1)
    torch.testing.assert_close(pair([[0, 1], [1]]), pair.layers(read))


def test_words_of_train_that_occur_once_have_no_vector() -> None:
    data = tiny_dataset()
    first = data.train.examples[0]
    once = replace(first, inputs={"text": f"{first.inputs['text']} hapax"})
    train = replace(data.train, examples=(once, *data.train.examples[1:]))
    fitted = QUICK.fit(tiny_bench(replace(data, splits={**data.splits, "train": train}), None))
    assert "good" in fitted.facts["vocabulary"] and "hapax" not in fitted.facts["vocabulary"]
    answers = fitted.logits([Example("a", {"text": "hapax"}), Example("b", {"text": "zebra quagga"})])
    assert np.isfinite(answers).all() and np.array_equal(answers[0], answers[1])


def test_word_dropout_leaves_a_word() -> None:
    random = np.random.default_rng(0)
    kept = [_dropped([4, 5, 6], 0.9, random) for _ in range(50)]
    assert all(kept) and {len(rows) for rows in kept} >= {1, 3}
    assert set(map(tuple, kept)) != {(4, 5, 6)}
    assert _dropped([], 0.5, random) == []
    assert _dropped([4, 5], 0.0, random) == [4, 5]


def test_vectors_of_a_file_start_it_and_the_module_needs_no_file(vectors: Path) -> None:
    data = tiny_dataset()
    method = Dan(vectors=str(vectors), width=4, epochs=3, words=4)
    fitted = method.fit(tiny_bench(data, None))
    assert fitted.facts["vocabulary"] == ["good", "bad", "the", "zebra"], "the first four, and what train has"
    assert fitted.facts["words_trained"] == 3
    table = fitted.delta()["table"]
    assert torch.equal(table[3], torch.tensor([3.0, -3.0, 0.5])), "a word that train lacks keeps its vector"
    assert not torch.equal(table[0], torch.tensor([0.0, 0.0, 0.5])), "one that it has learns"
    assert torch.equal(table[4], torch.zeros(3))
    stored = parse_method(f"dan:vectors={vectors}:width=4:epochs=3:words=4").identity
    vectors.unlink()
    again = method_from_config(json.loads(json.dumps(stored)))
    restored = again.restore(Setting(data.task, kinds.get("classification"), None), fitted.delta(), fitted.facts)
    examples = [Example("a", {"text": "a good zebra"}), Example("b", {"text": "a good quagga"})]
    assert np.array_equal(restored.logits(examples), fitted.logits(examples))
    assert not np.array_equal(*fitted.logits(examples)), "words of the file count that train lacks"
    with pytest.raises(ConfigError, match="not named"):
        again.fit(tiny_bench(data, None))


def test_a_file_is_known_by_its_content(vectors: Path, tmp_path: Path) -> None:
    def identity(path: Path) -> object:
        return parse_method(f"dan:vectors={path}").identity["vectors"]

    first, copied = identity(vectors), tmp_path / "copy.txt"
    copied.write_bytes(vectors.read_bytes())
    assert identity(copied) == first and str(first).startswith("sha256-")
    copied.write_bytes(vectors.read_bytes() + b"more 1 2 3\n")
    assert identity(copied) != first
    assert parse_method("dan").identity == parse_method("dan").config
    (tmp_path / "folder").mkdir()
    assert identity(tmp_path / "folder") not in (first, identity(copied))
    with pytest.raises(StorageError, match="no such file"):
        parse_method("dan:vectors=nowhere.txt").identity  # noqa: B018


def test_a_file_that_holds_no_vectors_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match="empty"):
        Dan(vectors=str(tmp_path / "empty.txt")).fit(tiny_bench(tiny_dataset(), None))


def test_what_it_does_not_fit() -> None:
    for kind in ("tagging", "choice"):
        assert "one per word or choice" in Dan().unfit(tiny_dataset(kind).task, None)
    assert "reads images" in Dan().unfit(replace(tiny_dataset().task, image="image"), None)
    for wrong in (Dan(size=0), Dan(drop=1.0), Dan(depth=-1), Dan(l2=-0.1)):
        assert wrong.unfit(tiny_dataset().task, None)


def test_cost_is_counted() -> None:
    network = Network(torch.ones(2, 3), texts=1, outputs=2, width=4, depth=1)
    fitted = Averaging(network, {"vocabulary": ["a", "b"], "words_trained": 2})
    layers = 3 * 4 + 4 + 4 * 2 + 2
    assert fitted.flops([Example("x", {"text": "a b b"})]) == (3 * 3 + 2 * layers, "model")
    assert fitted.trained_parameters == layers + 2 * 3


def test_a_pair_is_read_in_the_order_of_its_roles() -> None:
    data = tiny_dataset("classification", pair=True, rows=40)
    fitted = QUICK.fit(tiny_bench(data, None))
    given = {"text_a": "a good day", "text_b": "a bad one"}
    one, other = Example("1", given), Example("1", dict(reversed(given.items())))
    assert one.inputs == other.inputs and fitted.bags([one]) != fitted.bags([Example("1", {**given, "text_b": ""})])
    assert np.array_equal(fitted.logits([one]), fitted.logits([other]))


def test_words_are_learnt_as_they_are_read_however_their_accents_are_written() -> None:
    data = tiny_dataset("classification", rows=40)
    accented = [
        replace(example, inputs={"text": example.inputs["text"] + " cafe\u0301"}) for example in data.train.examples
    ]
    data = replace(data, splits={**data.splits, "train": replace(data.train, examples=accented)})
    fitted = QUICK.fit(tiny_bench(data, None))
    assert "caf\u00e9" in fitted.facts["vocabulary"]
    assert fitted.bags([Example("1", {"text": "cafe\u0301"})]) == [[fitted.facts["vocabulary"].index("caf\u00e9")]]


def test_without_any_score_on_validation_the_run_diverged() -> None:
    bench = tiny_bench(tiny_dataset(rows=40), None)
    bench.score = lambda *arguments: float("nan")
    with pytest.raises(Diverged, match="training diverged"):
        QUICK.fit(bench)
