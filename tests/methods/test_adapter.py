"""Bottleneck adapters: where they stand, how many parameters they have, and what they compute."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu

from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.methods.adapter import Adapter, Bottleneck, Rescale
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.train.loop import build_model

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
D, L = BACKBONE.card.width, BACKBONE.card.blocks


def attached(method: Adapter) -> Model:
    return build_model(method, Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)


def count(model: Model) -> int:
    return sum(parameter.numel() for name, parameter in model.delta().items() if "head" not in name)


def bottleneck(size: int) -> int:
    return 2 * size * D + size + D  # down and up, each with its bias


@pytest.mark.parametrize("size", [1, 4, 64])
def test_parameters(size: int) -> None:
    houlsby, pfeiffer = (attached(Adapter(size=size, placement=name)) for name in ("houlsby", "pfeiffer"))
    assert count(houlsby) == L * (2 * bottleneck(size) + 2 * 2 * D)  # and gain and bias of both norms
    assert count(pfeiffer) == L * bottleneck(size)


def test_they_stand_where_the_papers_put_them() -> None:
    houlsby, pfeiffer = (set(attached(Adapter(placement=name)).adapters) for name in ("houlsby", "pfeiffer"))
    after_feed_forward = {f"encoder/layer/{i}/output/dense" for i in range(L)}
    after_attention = {f"encoder/layer/{i}/attention/output/dense" for i in range(L)}
    assert pfeiffer == after_feed_forward
    assert houlsby == after_feed_forward | after_attention | {
        f"encoder/layer/{i}/{part}LayerNorm" for i in range(L) for part in ("output/", "attention/output/")
    }


def test_a_bottleneck_is_its_formula() -> None:
    torch.manual_seed(0)
    adapter = Bottleneck(nn.Linear(5, 3), size=2)
    x, y = torch.randn(1, 4, 5), torch.randn(1, 4, 3)
    assert torch.equal(adapter(x, y), y)
    nn.init.normal_(adapter.up.weight)
    nn.init.normal_(adapter.up.bias)
    expected = y + gelu(y @ adapter.down.weight.T + adapter.down.bias) @ adapter.up.weight.T + adapter.up.bias
    torch.testing.assert_close(adapter(x, y), expected)


def test_a_norms_own_gain_and_bias_are_retrained() -> None:
    torch.manual_seed(0)
    norm = nn.LayerNorm(4)
    adapter, x = Rescale(norm), torch.randn(2, 3, 4)
    y = norm(x)
    assert torch.equal(adapter(x, y), y)
    gain, bias = torch.randn(4), torch.randn(4)
    with torch.no_grad():
        adapter.g.copy_(gain)
        adapter.b.copy_(bias)
        norm.weight.mul_(1 + gain)
        norm.bias.add_(bias)
    torch.testing.assert_close(adapter(x, y), norm(x))


def test_it_computes_in_the_precision_of_the_network() -> None:
    y = torch.randn(1, 4, 3, dtype=torch.bfloat16)
    for adapter in (Bottleneck(nn.Linear(3, 3), 2), Rescale(nn.LayerNorm(3))):
        assert adapter(y, y).dtype == torch.bfloat16
        assert all(parameter.dtype == torch.float32 for parameter in adapter.parameters())


def test_what_does_not_fit_is_said() -> None:
    assert "houlsby, pfeiffer, not 'houlsbi'" in Adapter(placement="houlsbi").unfit(DATA.task, None)
    assert "size must be above 0, not 0" in Adapter(size=0).unfit(DATA.task, None)
    assert Adapter().unfit(DATA.task, BACKBONE.card) == ""
