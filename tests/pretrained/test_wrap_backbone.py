"""A torch encoder of one's own keeps the contract of backbones, and methods train on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import graftwork as gw
from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import backbones
from graftwork.testing.backbone_contract import check_backbone


class OfTorch(nn.Module):
    """Torch's own encoder."""

    def __init__(self, rows: int = 3000, width: int = 16, blocks: int = 3):
        super().__init__()
        self.words = nn.Embedding(rows, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, blocks)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.encoder(self.words(ids), src_key_padding_mask=mask == 0)
        return states


class Mixing(nn.Module):
    """A block that mixes with the mean of the real tokens."""

    def __init__(self, width: int):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        mean = (x * mask[..., None]).sum(1, keepdim=True) / mask.sum(1)[:, None, None]
        made: Tensor = x + self.down(torch.relu(self.up(x + mean)))
        return made


class OfOwn(nn.Module):
    """An encoder of one's own, with a norm behind its blocks."""

    def __init__(self, rows: int = 3000, width: int = 16, blocks: int = 2):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.mixers = nn.ModuleList(Mixing(width) for _ in range(blocks))
        self.last = nn.LayerNorm(width)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.table(ids)
        for mixer in self.mixers:
            x = mixer(x, mask.to(x.dtype))
        made: Tensor = self.last(x)
        return made


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No backbone of a test stays registered."""
    yield
    for name in backbones.here_only():
        del backbones._parts[name]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_both_keep_the_contract(precision: str) -> None:
    torch.manual_seed(0)
    gw.wrap_backbone(OfTorch(), tiny_tokenizer(), name="of_torch", max_length=64)
    roles = {"mlp.up": "up", "mlp.down": "down"}
    gw.wrap_backbone(OfOwn(), tiny_tokenizer(), name="of_own", roles=roles, pooling="first", max_length=64)
    for name, blocks in (("of_torch", 3), ("of_own", 2)):
        opened = open_backbone(name, precision=precision)
        assert opened.card.blocks == blocks and opened.card.width == 16 and opened.card.max_length == 64
        assert {"mlp.up", "mlp.down"} <= {role for role in ("mlp.up", "mlp.down") if opened.sites(role)}
        check_backbone(opened, absent=opened.card.lacks)


def test_its_identity_is_its_weights_and_it_is_a_copy() -> None:
    torch.manual_seed(0)
    network = OfOwn()
    gw.wrap_backbone(network, tiny_tokenizer(), name="mine")
    first = open_backbone("mine", precision="fp32").card.revision
    with torch.no_grad():
        network.table.weight[5] += 1
    assert open_backbone("mine", precision="fp32").card.revision == first, "what is trained later changes nothing"
    gw.wrap_backbone(network, tiny_tokenizer(), name="mine")
    assert open_backbone("mine", precision="fp32").card.revision != first
    fresh = open_backbone("random:mine", precision="fp32", seed=1)
    assert fresh.card.revision not in (first, open_backbone("random:mine", precision="fp32", seed=2).card.revision)


@pytest.mark.slow
def test_methods_train_on_it_and_modules_open_again(tmp_path: Path) -> None:
    torch.manual_seed(0)
    gw.wrap_backbone(OfTorch(), tiny_tokenizer(), name="of_torch", max_length=64)
    given = {"backbone": "of_torch", "runs": tmp_path / "runs", "cache_size": "0", "epochs": 1}
    for method in ("linear_probe", "bitfit", "top_layers:k=1"):
        run = gw.train("builtin:tickets", method=method, **given)  # type: ignore[arg-type]
        assert run.module.predict(["my card is lost"])[0]["label"]


def test_what_cannot_be_found_is_said() -> None:
    with pytest.raises(ConfigError, match="no list of blocks"):
        gw.wrap_backbone(nn.Sequential(nn.Embedding(3000, 4)), tiny_tokenizer(), name="mine")
    with pytest.raises(ConfigError, match="no such blocks") as error:
        gw.wrap_backbone(OfOwn(), tiny_tokenizer(), name="mine", blocks="layers.*")
    assert error.value.expected == "mixers.*"
    with pytest.raises(ConfigError, match="can't be at"):
        gw.wrap_backbone(OfOwn(), tiny_tokenizer(), name="mine", roles={"mlp.up": "upwards"})
    with pytest.raises(ConfigError, match="exists already"):
        gw.wrap_backbone(OfOwn(), tiny_tokenizer(), name="minilm")
    with pytest.raises(ConfigError, match="tokenizer"):
        gw.wrap_backbone(OfOwn(), "words", name="mine")
    with pytest.raises(ConfigError, match="pooling"):
        gw.wrap_backbone(OfOwn(), tiny_tokenizer(), name="mine", pooling="best")


def test_another_process_says_where_the_name_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    gw.wrap_backbone(OfTorch(), tiny_tokenizer(), name="of_torch", max_length=64)
    given = {"backbone": "of_torch", "runs": tmp_path / "runs", "cache_size": "0"}
    run = gw.train("builtin:tickets", method="linear_probe", **given)  # type: ignore[arg-type]
    del backbones._parts["of_torch"]
    monkeypatch.setattr("graftwork.module.task_module._OPEN", {})
    with pytest.raises(IncompatibleModule, match=r"unknown backbone 'of_torch'(?s:.*)gw.wrap_backbone\(…, name="):
        gw.TaskModule.load(run.folder)
