"""Every objective's pre-training on a pretended CUDA card: interrupted, continued, and what is left opened."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import graftwork as gw
from graftwork.core.backbone import device_of
from graftwork.io.files import read_json
from graftwork.machine.memory import OutOfMemory
from graftwork.pretrain import pretraining
from graftwork.pretrain.objective import AtOnce
from graftwork.pretrain.objectives.masked import Masked
from graftwork.pretrain.objectives.translation import transformer_size
from graftwork.pretrain.parallel import Peers
from graftwork.pretrain.pretrain_loop import PretrainState
from graftwork.pretrain.pretraining import Pretrained
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import objectives
from pretended_cuda import Card, pretended_cuda

BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
GPT = {"n_embd": 16, "n_layer": 1, "n_head": 2}
MARIAN = transformer_size(1, 16, 2, 0.1)
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2}
CNN = {
    "embedding": {"dim": 4},
    "filters": [[1, 8]],
    "n_highway": 1,
    "max_characters_per_token": 50,
    "activation": "relu",
}
LSTM = {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3, "use_skip_connections": True}
SIZES: dict[str, dict[str, Any]] = {
    "masked": BERT,
    "replaced_token": BERT,
    "causal": GPT,
    "awd_lstm": {"embedding_size": 6, "hidden_size": 9, "layers": 3, "max_length": 32},
    "bidirectional": {"char_cnn": CNN, "lstm": LSTM},
    "span_corruption": T5,
    "translation": MARIAN,
    "denoising": MARIAN,
}
QUICK = [("masked", "bf16")]  # one that writes is slow
OTHERS = [
    *((name, precision) for name in SIZES for precision in ("fp32", "bf16") if (name, precision) not in QUICK),
    *((f"masked:second={second}", "bf16") for second in ("next_sentence", "sentence_order")),
    ("masked:positions=sinusoidal", "fp32"),
    ("bidirectional:samples=0:predicted=20", "bf16"),
    ("bidirectional:samples=8", "fp32"),
    ("translation:positions=learned:average=2", "bf16"),
]


class Killed(BaseException):
    """Stands for a kill in the middle of a run: nothing cleans up."""


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    with pretended_cuda(monkeypatch) as made:
        yield made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a killed run leaves its log open
        gc.collect()


@pytest.fixture
def few(corpus: Path, tmp_path: Path) -> Path:
    """The first hundred lines of the corpus."""
    (tmp_path / "few.txt").write_text("\n".join(corpus.read_text().splitlines()[:100]))
    return tmp_path / "few.txt"


def trained(objective: str, precision: str, corpus: Path, folder: Path) -> Pretrained:
    """Three steps, with a checkpoint after each."""
    folder.mkdir(exist_ok=True)
    length = 12
    if objective.startswith("translation"):
        lines = corpus.read_text().splitlines()
        corpus, length = folder / "pairs.tsv", 24
        corpus.write_text("source\ttarget\n" + "".join(f"{line[:30]}\t{line[-30:]}\n" for line in lines))
    (folder / "size.json").write_text(json.dumps(SIZES[objective.partition(":")[0]]))
    return gw.pretrain(
        corpus, objective=objective, size=str(folder / "size.json"), steps=3, recipe={"batch": 8, "length": length},
        validation=0.1, validate_every=2, checkpoint_every="0", precision=precision, runs=folder / "runs",
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize(
    ("objective", "precision"), [*QUICK, *(pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS)]
)
def test_objectives(
    objective: str, precision: str, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, card: Card
) -> None:
    whole = trained(objective, precision, few, tmp_path / "whole")
    assert read_json(whole.folder / "spec.json")["numerics"]["device"] == "cuda" and card.synchronised
    with monkeypatch.context() as patch:
        step = PretrainState.step

        def killed(self: PretrainState, number: int, steps: int) -> Any:
            if number == 2:
                raise Killed
            return step(self, number, steps)

        patch.setattr(PretrainState, "step", killed)
        with pytest.raises(Killed):
            trained(objective, precision, few, tmp_path / "broken")
    torch.manual_seed(99)
    again = trained(objective, precision, few, tmp_path / "broken")
    assert again.result.facts["attempts"] == 2
    assert again.result.facts["weights_sha256"] == whole.result.facts["weights_sha256"]
    opened = open_backbone(str(whole.folder), precision=precision, device="cuda")
    assert device_of(opened.module).type == "cuda"


def test_every_objective_is_here() -> None:
    by_gradient = {name for name in objectives.names() if not isinstance(objectives.get(name)(), AtOnce)}
    assert by_gradient == set(SIZES)


def test_word_vectors_are_learnt_on_the_processor(few: Path, tmp_path: Path, card: Card) -> None:
    """By a library that knows no card: with one in the machine it is the same run."""
    how: dict[str, Any] = {"objective": "word_vectors", "runs": tmp_path / "runs"}
    first = gw.pretrain(few, **how)
    assert read_json(first.folder / "spec.json")["numerics"]["device"] == "cpu"
    assert gw.pretrain(few, device="cpu", **how).reused and gw.pretrain(few, device="cuda", **how).reused


def test_a_batch_for_which_the_card_has_no_room(few: Path, tmp_path: Path, card: Card) -> None:
    trained("masked", "fp32", few, tmp_path / "whole")
    card.room = torch.cuda.max_memory_allocated() - 1
    with pytest.raises(OutOfMemory) as caught:
        trained("masked", "fp32", few, tmp_path / "small")
    assert (
        caught.value.what == "a pass over 8 rows of 12 tokens needs more memory than is available"
        and "--rows-at-once" in caught.value.do
    )


class Second(Peers):
    """The second of two processes on one machine."""

    def add_up(self, tensors: Any) -> None:
        pass

    def broadcast(self, number: float) -> float:
        return number


@pytest.mark.parametrize(("local", "cards", "expected"), [("1", 2, 1), ("1", 1, 0), ("5", 4, 1), (None, 2, 1)])
def test_each_process_has_a_card_of_its_own(
    local: str | None, cards: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    if local is not None:
        monkeypatch.setenv("LOCAL_RANK", local)
    for objective, device, group in (
        (Masked(), "auto", Second(1, 2)), (Masked(), "cpu", Second(1, 2)), (Masked(), "auto", Peers()),
    ):  # fmt: skip
        pretraining._computed_in("fp32", device, objective, group)
    assert chosen == [expected]
