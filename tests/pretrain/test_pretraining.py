"""From text to a backbone: folders, receipts, interruption, several processes, another backbone to start from."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.core.run import RunResult
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError, StorageError, UnknownName
from graftwork.io import locks
from graftwork.io.files import file_digest, only_one_process, read_json
from graftwork.pretrain import pretraining
from graftwork.pretrain.corpus_tokens import TokenisedCorpus
from graftwork.pretrain.objectives.masked import Masked
from graftwork.pretrain.objectives.translation import transformer_size
from graftwork.pretrain.objectives.word_vectors import WordVectorObjective
from graftwork.pretrain.parallel import Peers
from graftwork.pretrain.pretrain_report import write_report
from graftwork.pretrain.pretraining import Pretrained
from graftwork.pretrain.training_text import Material
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.receipts.file_integrity import read_spec
from graftwork.run.store import RunStore

TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
RECIPE = {"batch": 8, "length": 24}


@pytest.fixture
def size(tmp_path: Path) -> str:
    """A file of one."""
    (tmp_path / "size.json").write_text(json.dumps(TINY))
    return str(tmp_path / "size.json")


@pytest.fixture
def made(corpus: Path, size: str, tmp_path: Path) -> Pretrained:
    """Six steps of masked language modelling."""
    return gw.pretrain(corpus, size=size, steps=6, recipe=RECIPE, validation=0.1, runs=tmp_path / "runs")


def test_a_run_and_what_it_leaves(made: Pretrained) -> None:
    result, folder = made.result, made.folder
    assert {path.name for path in folder.iterdir()} == {
        "backbone", "log.jsonl", "report.html", "result.json", "spec.json",
    }  # fmt: skip
    spec = read_json(folder / "spec.json")
    assert spec["method"]["name"] == "masked"
    assert spec["recipe"]["steps"] == 6
    assert set(result.scores) == {"perplexity", "bits_per_byte", "word_perplexity"}
    assert result.facts["after"]["validation"]["nats"] < result.facts["before"]["validation"]["nats"]
    assert result.facts["tokens_seen"] == 6 * 8 * 24
    assert result.facts["weights_sha256"] == file_digest(made.backbone / "model.safetensors")
    costs = result.costs
    assert costs["train_flops"].value is not None and costs["train_flops"].value > 1e6
    assert costs["trained_parameters"].value == result.facts["parameters"]
    assert costs["stored_bytes"].value is not None and costs["stored_bytes"].value > 10_000
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4, 5, 6]
    page = (folder / "report.html").read_text()
    assert "for each of 100 tasks" in page
    assert "perplexity" in page


def test_the_price_is_of_all_that_the_run_took(made: Pretrained) -> None:
    total = made.result.costs["total_seconds"].value
    assert total == pytest.approx(made.result.spent.wall_seconds)


def test_the_same_again_is_found(made: Pretrained, corpus: Path, size: str) -> None:
    again = gw.pretrain(corpus, size=size, steps=6, recipe=RECIPE, validation=0.1, runs=made.folder.parent)
    assert again.reused
    assert again.result == made.result
    other = gw.pretrain(corpus, size=size, steps=6, recipe=RECIPE, validation=0.1, runs=made.folder.parent, seed=1)
    assert not other.reused
    assert other.result.facts["weights_sha256"] != made.result.facts["weights_sha256"]


def test_the_folder_of_a_run_is_a_backbone(made: Pretrained, corpus: Path, tmp_path: Path) -> None:
    opened = open_backbone(str(made.folder), precision="fp32")
    assert (opened.card.family, opened.card.width, opened.card.pooling) == ("bert", 16, "mean")
    assert opened.card.revision == open_backbone(opened.card.id, precision="fp32").card.revision
    rows = "\n".join(
        ["text,label", *(f"{line},{'ab'[line.startswith('the')]}" for line in corpus.read_text().splitlines()[:80])]
    )
    (tmp_path / "data.csv").write_text(rows)
    run = gw.train(
        Task.from_file(tmp_path / "data.csv"), method="linear_probe", backbone=str(made.folder), runs=tmp_path / "runs"
    )
    assert run.result.status == "ok"
    assert run.module.backbone is not None


def test_a_perplexity_that_is_too_large_for_a_number_is_reported(made: Pretrained) -> None:
    facts = made.result.facts
    before = facts["before"]["validation"]
    spec, path = read_spec(made.folder), made.folder / "report.html"
    for too_large in (math.inf, None):  # None: it went through a checkpoint, and JSON has no word for it
        changed = {**facts, "before": {"validation": before | {"word_perplexity": too_large}}}
        write_report(spec, replace(made.result, facts=changed), made.folder)
        assert "∞" in path.read_text()


def test_going_on_from_a_run(made: Pretrained, corpus: Path, tmp_path: Path) -> None:
    general = tmp_path / "general.txt"
    general.write_text("\n".join(f"other words of number {n} stand here" for n in range(300)))
    more = gw.pretrain(
        corpus,
        backbone=str(made.folder),
        steps=4,
        recipe={**RECIPE, "learning_rate": 3e-3},
        general=general,
        replay=0.25,
        validation=0.1,
        runs=tmp_path / "runs",
    )
    facts = more.result.facts
    assert facts["added"] == []
    assert facts["before"]["validation"] == pytest.approx(made.result.facts["after"]["validation"])
    names = ("perplexity", "bits_per_byte", "word_perplexity")
    assert set(more.result.scores) == {*names, *(f"general_{name}" for name in names)}
    assert facts["after"]["general"]["nats"] < facts["before"]["general"]["nats"]
    with pytest.raises(ConfigError, match="longer than the backbone"):
        gw.pretrain(corpus, backbone=str(made.folder), recipe={"length": 48}, runs=tmp_path / "runs")


@pytest.mark.parametrize("objective", ["masked", "masked:second=next_sentence"])
def test_how_a_backbone_is_read_stays_as_it_was(objective: str, made: Pretrained, corpus: Path, tmp_path: Path) -> None:
    """One of another origin states nothing, and is read as its architecture is; ours states its mean."""
    theirs = shutil.copytree(made.backbone, tmp_path / "theirs")
    config = read_json(theirs / "config.json")
    (theirs / "config.json").write_text(json.dumps({name: config[name] for name in config if name != "graftwork"}))
    for source in (f"hf:{theirs}", str(made.folder)):
        more = gw.pretrain(
            corpus,
            objective=objective,
            backbone=source,
            steps=1,
            recipe=RECIPE | {"head_steps": 0},
            runs=tmp_path / "runs",
        )
        pooling = open_backbone(source, precision="fp32").card.pooling
        assert open_backbone(str(more.folder), precision="fp32").card.pooling == pooling
        assert pooling == ("mean" if source == str(made.folder) else "first")


def test_pairs_of_rows_are_validated_where_one_row_is_passed_at_once(corpus: Path, size: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"objective": "masked:second=next_sentence", "size": size, "steps": 1}
    how |= {"runs": tmp_path / "runs", "recipe": RECIPE | {"rows_at_once": 1}}
    one = gw.pretrain(corpus, validation=0.1, **how).result.facts["after"]["validation"]
    two = gw.pretrain(corpus, validation=0.1, **how | {"recipe": RECIPE | {"rows_at_once": 2}})
    assert one["predicted"] == two.result.facts["after"]["validation"]["predicted"]
    with pytest.raises(ConfigError, match=r"more rows in a batch[\s\S]*at least 2"):
        gw.pretrain(corpus, validation=0.1, **how | {"recipe": RECIPE | {"batch": 1}})


def test_one_row_that_is_held_out_is_too_few_for_pairs(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    one = replace(tokens, validation=replace(tokens.validation, ids=tokens.validation.ids[:30]))
    material = Material(vocabulary, one, None, 0.0, "", ())
    recipe = replace(Masked.recipe, length=24)
    assert len(material.held(Masked(second="sentence_order"), recipe)["validation"].rows) == 1
    with pytest.raises(DataError, match=r"only one row of text is held out[\s\S]*48 tokens[\s\S]*larger --validation"):
        material.held(Masked(second="next_sentence"), recipe)


@pytest.mark.slow
def test_one_pass_is_over_the_corpus_and_not_over_what_is_replayed(corpus: Path, size: str, tmp_path: Path) -> None:
    def passes(**more: Any) -> dict[str, Any]:
        done = gw.pretrain(corpus, size=size, recipe=RECIPE, validation=0.1, runs=tmp_path / "runs", **more)
        return dict(done.result.facts)

    alone, half = passes(), passes(general=corpus, replay=0.5)
    assert half["steps"] == pytest.approx(2 * alone["steps"], abs=1)
    assert half["passes"] == pytest.approx(1, abs=0.1) == alone["passes"]
    assert half["tokens_seen"] == half["steps"] * 8 * 24


def test_all_processes_compute_as_the_leading_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def found(precision: str, device: str, network: bool) -> dict[str, Any]:
        asked.append(network)
        return {"precision": "bf16", "threads": 1, "device": "cpu"}

    monkeypatch.setattr(pretraining, "numerics", found)
    for said, precision in ((0.0, "fp32"), (1.0, "bf16")):
        monkeypatch.setattr(Peers, "broadcast", lambda self, number, said=said: said)
        told = pretraining._computed_in("auto", "cpu", Masked(), Peers(1, 2))
        assert told == {"precision": precision, "threads": 1, "device": "cpu"}
    pretraining._computed_in("auto", "cpu", WordVectorObjective(), Peers())
    assert asked == [True, True, False]  # gensim computes in its own


def test_what_runs_in_one_process_says_so(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "peers", lambda: nullcontext(Peers(0, 2)))
    with pytest.raises(ConfigError, match="one process only"):
        gw.pretrain(corpus, objective="word_vectors", runs=tmp_path / "runs")
    assert not list(tmp_path.glob("runs/*"))


def test_every_process_has_a_row_of_the_batch(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "peers", lambda: nullcontext(Peers(0, 4)))
    with pytest.raises(ConfigError, match=r"more processes than rows[\s\S]*4 processes, --batch 3"):
        gw.pretrain(corpus, recipe={"batch": 3}, runs=tmp_path / "runs")


def test_causal_by_arithmetic(corpus: Path, size: str, tmp_path: Path) -> None:
    (tmp_path / "gpt.toml").write_text("n_embd = 16\nn_layer = 1\nn_head = 2\n")
    done = gw.pretrain(
        corpus,
        objective="causal",
        tokenizer="bpe",
        size=str(tmp_path / "gpt.toml"),
        budget="1GFLOP",
        recipe={**RECIPE, "short_length": 16},
        prompt="the cat",
        runs=tmp_path / "runs",
    )
    costs = done.result.costs["train_flops"]
    assert costs.value is not None and 0.95e9 < costs.value <= 1.03e9
    assert "the cat" in (done.folder / "report.html").read_text()
    assert open_backbone(str(done.folder), precision="fp32").card.family == "gpt2"


def test_bad_input(corpus: Path, size: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with pytest.raises(DataError, match="smaller than one batch"):
        gw.pretrain(corpus, size=size, steps=1, recipe={"batch": 100_000}, runs=runs)
    with pytest.raises(DataError, match="held out"):
        gw.pretrain(corpus, size=size, steps=1, recipe=RECIPE, validation=0, runs=runs)
    with pytest.raises(UnknownName, match="'masked'"):
        gw.pretrain(corpus, objective="maskd", runs=runs)
    with pytest.raises(UnknownName, match="'small'"):
        gw.pretrain(corpus, size="smal", runs=runs)
    brought: tuple[dict[str, Any], ...] = (
        {"tokenizer": "bpe"}, {"size": size}, {"vocabulary": 900}, {"lowercase": False}
    )  # fmt: skip
    for given in brought:
        with pytest.raises(ConfigError, match="those of the backbone of --from"):
            gw.pretrain(corpus, backbone="minilm", runs=runs, **given)
    with pytest.raises(ConfigError, match=r"--validate-every must be at least 1[\s\S]*0"):
        gw.pretrain(corpus, size=size, steps=1, recipe=RECIPE, validate_every=0, runs=runs)
    for recipe, told in (({"clip": 0.0}, "clip"), ({"beta": 1.0}, "beta"), ({"short_length": 2}, "short_length")):
        with pytest.raises(ConfigError, match=told):
            gw.pretrain(corpus, size=size, steps=1, recipe={**RECIPE, **recipe}, runs=runs)
    for share in (0.01, 0.99):
        with pytest.raises(ConfigError, match="rows of one text only"):
            gw.pretrain(corpus, size=size, steps=1, recipe=RECIPE, general=corpus, replay=share, runs=runs)
    with pytest.raises(ConfigError, match="be pre-trained further"):
        gw.pretrain(corpus, backbone="tiny_text", runs=runs)
    with pytest.raises(ConfigError, match="--general"):
        gw.pretrain(corpus, replay=0.1, runs=runs)
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    with pytest.raises(DataError):
        gw.pretrain(empty, runs=runs)
    assert not list(runs.glob("*/result.json"))


def command(corpus: Path, size: str, tmp_path: Path, *more: str) -> list[str]:
    words = ["pretrain", str(corpus), "--size", size, "--steps", "60", "--batch", "8", "--length", "24"]
    words += ["--validation", "0.1", "--validate-every", "20", "--threads", "1", "--precision", "fp32"]
    return ["-m", "graftwork", *words, "--cache", str(tmp_path / "cache"), "--json", *more]


def in_pairs(corpus: Path, folder: Path) -> Path:
    """A table of the beginnings and the ends of its lines."""
    rows = [f"{line[:40]}\t{line[-40:]}" for line in corpus.read_text().splitlines()]
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "\n".join(rows))
    return folder / "pairs.tsv"


def weights(folder: Path) -> str:
    found = list(folder.glob("*/result.json"))
    assert len(found) == 1
    return str(read_json(found[0])["facts"]["weights_sha256"])


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["masked", "causal", "span_corruption", "translation"])
def test_killed_in_the_middle_it_ends_with_the_same_weights(
    objective: str, corpus: Path, size: str, tmp_path: Path
) -> None:
    if objective == "causal":
        (tmp_path / "size.json").write_text('{"n_embd": 16, "n_layer": 1, "n_head": 2, "resid_pdrop": 0.1}')
    elif objective == "translation":
        (tmp_path / "size.json").write_text(json.dumps(transformer_size(1, 16, 2, 0.1)))
        corpus = in_pairs(corpus, tmp_path)
    elif objective == "span_corruption":
        small = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.1}
        (tmp_path / "size.json").write_text(json.dumps(small))
    words = command(corpus, size, tmp_path, "--objective", objective, "--checkpoint-every", "0")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run([sys.executable, *words, "--runs", str(whole)], check=True, capture_output=True)
    process = subprocess.Popen([sys.executable, *words, "--runs", str(broken)], stdout=subprocess.DEVNULL)
    while not any(int(path.stem) > 5 for path in broken.glob("*/checkpoint/*.json")):  # one after every step
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(broken.glob("*/result.json"))
    subprocess.run([sys.executable, *words, "--runs", str(broken)], check=True, capture_output=True)
    assert weights(broken) == weights(whole)
    one, two = (next(folder.glob("*/log.jsonl")).read_text() for folder in (whole, broken))
    assert one == two
    assert read_json(next(broken.glob("*/result.json")))["facts"]["attempts"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["masked", "translation"])
def test_two_processes_learn_as_one(objective: str, corpus: Path, size: str, tmp_path: Path) -> None:
    (tmp_path / "size.json").write_text(json.dumps({**TINY, "hidden_dropout_prob": 0.1}))
    if objective == "translation":
        (tmp_path / "size.json").write_text(json.dumps(transformer_size(1, 16, 2, 0.1)))
        corpus = in_pairs(corpus, tmp_path)
    words = command(corpus, size, tmp_path, "--objective", objective, "--rows-at-once", "4")
    one, two = tmp_path / "one", tmp_path / "two"
    subprocess.run([sys.executable, *words, "--runs", str(one)], check=True, capture_output=True)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "--no-python"]
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*launch, sys.executable, *words, "--runs", str(two)], check=True, capture_output=True, env=surroundings
    )
    curves: list[list[dict[str, Any]]] = []
    for folder in (one, two):
        text = next(folder.glob("*/log.jsonl")).read_text()
        curves.append([json.loads(line) for line in text.splitlines()])
    assert len(curves[0]) == len(curves[1]) > 60
    for first, second in zip(*curves, strict=True):
        if "loss" in first:
            assert second["loss"] == pytest.approx(first["loss"], rel=1e-6)
        else:
            nats = first["validation"]["validation"]["nats"]
            assert second["validation"]["validation"]["nats"] == pytest.approx(nats, rel=1e-6)


def test_two_at_once_are_refused(made: Pretrained, corpus: Path, size: str) -> None:
    (made.folder / "result.json").unlink()
    with (
        only_one_process(made.folder / ".lock", "", ""),
        pytest.raises(StorageError, match="another process trains this run"),
    ):
        gw.pretrain(corpus, size=size, steps=6, recipe=RECIPE, validation=0.1, runs=made.folder.parent)


def test_a_file_system_without_locks_is_no_other_process(
    made: Pretrained, corpus: Path, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "try_lock", lambda handle: None)
    (made.folder / "result.json").unlink()
    again = gw.pretrain(corpus, size=size, steps=6, recipe=RECIPE, validation=0.1, runs=made.folder.parent)
    assert not again.reused and again.result.scores == made.result.scores


def test_what_another_process_finished_meanwhile_is_not_trained_again(
    made: Pretrained, corpus: Path, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def find(store: RunStore, run_id: str) -> RunResult | None:
        looks.append(run_id)
        return found(store, run_id) if len(looks) > 1 else None

    found = RunStore.find
    monkeypatch.setattr(RunStore, "find", find)
    before = (made.folder / "result.json").stat().st_mtime_ns
    again = gw.pretrain(corpus, size=size, steps=6, recipe=RECIPE, validation=0.1, runs=made.folder.parent)
    assert again.reused and again.result == made.result and len(looks) == 2
    assert (made.folder / "result.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_minilm_gets_a_head_and_says_so(corpus: Path, tmp_path: Path) -> None:
    done = gw.pretrain(corpus, backbone="minilm", steps=2, recipe=RECIPE, validation=0.1, runs=tmp_path / "runs")
    assert done.result.facts["added"] == ["a masked-LM head"]
    assert any("lacked a masked-LM head: it was added" in note for note in done.result.facts["notes"])
    card = open_backbone(str(done.folder), precision="fp32").card
    assert (card.pooling, card.towers) == ("mean", 2)  # read as it was before


@pytest.mark.slow
def test_a_budget_of_arithmetic_pays_for_the_head_too(corpus: Path, tmp_path: Path) -> None:
    recipe = {**RECIPE, "head_steps": 3, "short_length": 0}
    done = gw.pretrain(corpus, backbone="minilm", steps=2, recipe=recipe, validation=0.1, runs=tmp_path / "runs")
    spent = done.result.costs["train_flops"].value
    assert spent is not None
    again = gw.pretrain(
        corpus, backbone="minilm", budget=f"{spent + 1:.0f}FLOP", recipe=recipe, validation=0.1, runs=tmp_path / "runs"
    )
    assert again.result.costs["train_flops"].value == spent
