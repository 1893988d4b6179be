"""What `POST /v1/attention` answers, and what it refuses."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

from graftwork.core.backbone import Backbone
from graftwork.core.method import Setting
from graftwork.core.task import Task
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError
from graftwork.machine.memory import OutOfMemory
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds, methods
from graftwork.serve.attention_route import MOST_WORDS, attention, network_of
from graftwork.serve.http_bodies import AttentionQuestion
from graftwork.train.loop import FittedModel, build_model


@dataclass
class WithBackbone:
    """As much of a bank as attention needs."""

    backbone: Any

    def open_backbone(self) -> Backbone:
        return self.backbone


@pytest.fixture(scope="module")
def tiny() -> WithBackbone:
    return WithBackbone(open_backbone("tiny_text", precision="fp32"))


def test_words_and_a_share_for_each_pair_of_them(tiny: WithBackbone) -> None:
    found = attention(tiny, AttentionQuestion(text="my card is lost", block=1, head=1))
    assert found["words"] == ["[CLS]", "my", "card", "is", "lost", "[SEP]"]
    assert found["added"] == [True, False, False, False, False, True]
    assert [sum(row) for row in found["weights"]] == pytest.approx([1] * 6, abs=1e-4)
    assert (found["blocks"], found["heads"], found["cut"]) == (2, 2, False)
    assert attention(tiny, AttentionQuestion(text="my card is lost")) != found


def test_all_heads_are_those_one_by_one(tiny: WithBackbone) -> None:
    both = attention(tiny, AttentionQuestion(text="my card is lost", block=1, head=None))
    ones = [attention(tiny, AttentionQuestion(text="my card is lost", block=1, head=head)) for head in (0, 1)]
    assert both["weights"] == [one["weights"] for one in ones] and both["heads"] == 2


def as_module(tiny: WithBackbone, method: str) -> Any:
    """A task's module whose method starts from nothing and is then shaken."""
    setting = Setting(Task("mood", Path(), labels=("bad", "good")), kinds.get("classification"), tiny.backbone)
    model = build_model(methods.get(method)(), setting, 1)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.delta().values():
            weights.add_(torch.randn(weights.shape, generator=generator))
    fitted = FittedModel(model, {})
    described = {"method": {"name": method}}
    return SimpleNamespace(backbone=tiny.backbone, fitted=fitted, description=described)


def test_a_task_s_adapters_change_what_its_network_attends_to(tiny: WithBackbone) -> None:
    bank: Any = SimpleNamespace(open_backbone=tiny.open_backbone, module=lambda name: as_module(tiny, name))
    plain = attention(bank, AttentionQuestion(text="my card is lost", block=1))
    for method in ("adapter", "lora"):
        own = attention(bank, AttentionQuestion(text="my card is lost", block=1, task=method))
        assert own["words"] == plain["words"] and own["weights"] != plain["weights"]
    assert attention(bank, AttentionQuestion(text="my card is lost", block=1)) == plain  # the backbone is untouched
    assert network_of(bank, "adapter") is not tiny.backbone
    with pytest.raises(ConfigError, match="can't be shown") as caught:
        attention(bank, AttentionQuestion(text="my card is lost", task="prefix"))
    assert caught.value.got == "prefix"


def test_a_task_that_reads_frozen_states_has_the_backbone_s_attention(tiny: WithBackbone) -> None:
    class Reads:
        depth = 2
        facts: ClassVar[dict[str, Any]] = {}

        def read(self, seen: Any) -> None: ...

    described = {"method": {"name": "linear_probe"}}
    module = SimpleNamespace(backbone=tiny.backbone, fitted=Reads(), description=described)
    bank: Any = SimpleNamespace(module=lambda name: module)
    assert network_of(bank, "mood") is tiny.backbone
    module.fitted = object()
    with pytest.raises(ConfigError, match="can't be shown"):
        network_of(bank, "mood")


def test_an_unknown_task_is_refused(running: Any) -> None:
    status, found, _ = running.client.ask("POST", "/v1/attention", {"text": "my card", "task": "moods"})
    assert (status, found["error"]["where"]) == (404, "body.task")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ([], "body"),
        ({}, "body.text"),
        ({"text": "a", "layer": 1}, "body.layer"),
        ({"text": 3}, "body.text"),
        ({"text": "a", "block": "1"}, "body.block"),
        ({"text": "a", "head": True}, "body.head"),
        ({"text": "a", "head": -1}, "body.head"),
    ],
)
def test_another_shape_is_refused(running: Any, body: Any, where: str) -> None:
    status, found, _ = running.client.ask("POST", "/v1/attention", body)
    assert (status, found["error"]["where"]) == (422, where)


@pytest.mark.parametrize(("asked", "what"), [({"text": " \n"}, "blank"), ({"text": "a", "block": 9}, "no block 9")])
def test_what_is_asked_wrongly(tiny: WithBackbone, asked: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        attention(tiny, AttentionQuestion(**asked))


def test_a_picture_has_no_place_for_very_many_words(tiny: WithBackbone, monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(*given: Any) -> None:
        raise AssertionError("the words are counted before")

    monkeypatch.setattr("graftwork.pretrained.attention_weights._of_blocks", computed)
    monkeypatch.setattr("graftwork.serve.attention_route.MOST_WORDS", 4)
    with pytest.raises(ConfigError, match="too many words") as caught:
        attention(tiny, AttentionQuestion(text="my card is lost"))
    assert (caught.value.got, caught.value.expected) == ("6", "at most 4") and MOST_WORDS > 100
    told = Path(__file__).parents[2] / "docs" / "how-to" / "serve.md"  # [CLS] and [SEP] are two of the six
    assert f"{MOST_WORDS} words, punctuation and added tokens counted" in told.read_text()


def test_a_backbone_without_words_says_so() -> None:
    class Pictures:
        card = type("Card", (), {"id": "vit", "modality": "image"})

    with pytest.raises(ConfigError, match="no attention over words") as caught:
        attention(WithBackbone(Pictures()), AttentionQuestion(text="a"))
    assert caught.value.got == "vit reads images"


def test_over_http(running: Any, tiny: WithBackbone) -> None:
    running.bank.open_backbone = tiny.open_backbone
    status, found, _ = running.client.ask("POST", "/v1/attention", {"text": "my card is lost"})
    assert status == 200 and found["words"][1:3] == ["my", "card"]
    status, found, _ = running.client.ask("POST", "/v1/attention", {"text": "my card", "block": 5})
    assert status == 422 and found["error"]["expected"] == "0 to 1"
    assert running.client.ask("POST", "/v1/attention", b"{")[0] == 400
    running.client.token = "another"
    assert running.client.ask("POST", "/v1/attention", {"text": "my card is lost"})[0] == 401


@pytest.mark.parametrize("kind", [StorageError, IncompatibleModule, OutOfMemory])
def test_a_backbone_that_can_not_be_had_is_told(running: Any, kind: type[GraftworkError]) -> None:
    def gone() -> Backbone:
        raise kind("model.safetensors is another one", where="/models/ours")

    running.bank.open_backbone = gone
    status, found, headers = running.client.ask("POST", "/v1/attention", {"text": "my card is lost"})
    assert (status, headers["retry-after"]) == (503, "60")
    assert found["error"] == {"what": "model.safetensors is another one", "where": "backbone"}
    assert not any("traceback" in line for line in running.lines())


def test_one_picture_at_a_time(running: Any, tiny: WithBackbone) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slowly() -> Backbone:
        entered.set()
        assert go_on.wait(10)
        return tiny.backbone

    running.bank.open_backbone = slowly
    first = threading.Thread(target=running.client.ask, args=("POST", "/v1/attention", {"text": "a"}))
    first.start()
    assert entered.wait(10)
    status, _, headers = running.client.ask("POST", "/v1/attention", {"text": "b"})
    assert status == 429 and headers["retry-after"] == "1"
    go_on.set()
    first.join(10)
    running.bank.open_backbone = tiny.open_backbone
    assert running.client.ask("POST", "/v1/attention", {"text": "b"})[0] == 200
