"""A model: what it trains, what it leaves alone, and how towers are joined."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from graftwork.core.model import Model, join_towers, joined_width, place_of, site_of
from graftwork.errors import ConfigError
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
INPUTS = BACKBONE.collate(BACKBONE.encode(DATA.train.examples), [0, 1, 2, 3])


class Stretch(nn.Module):
    """y -> y (1 + s)."""

    def __init__(self, start: float = 0.0):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(start))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return y * (1 + self.s)


class Twice(nn.Module):
    """Every key and value a second time, the first of them changed by s."""

    def __init__(self) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.5))

    def forward(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([key, key], dim=2), torch.cat([value + self.s, value], dim=2)


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model(BACKBONE, kinds.get("classification"), DATA.task, towers=1).eval()


def shared_pooled() -> Tensor:
    return BACKBONE.features(INPUTS).pooled


def test_what_trains_can_be_narrowed_and_widened_again(model: Model) -> None:
    model.own_blocks(0)
    whole = model.delta().keys()
    model.train_from(1)
    assert {name.split(".")[3] for name in model.delta() if name.startswith("network.")} == {"1"}
    assert (model.start, model.prefix, model.tables()) == (1, 1, [])
    model.train_from(0)
    assert model.delta().keys() == whole and model.start == 0 and model.tables()


def test_a_model_is_its_head_until_something_is_attached(model: Model) -> None:
    assert model.delta().keys() == {"head.out.weight", "head.out.bias"}
    assert model.start == BACKBONE.card.blocks and model.prefix is None
    assert model.network is BACKBONE.module


def test_adapters_change_the_answers_and_not_the_backbone(model: Model) -> None:
    plain, before = model(INPUTS), shared_pooled()
    model.plug("mlp.down", lambda site: Stretch(0.5))
    assert not torch.allclose(model(INPUTS), plain)
    assert torch.equal(shared_pooled(), before)
    assert [name for name in model.delta() if "head" not in name] == [
        "adapters.encoder/layer/0/output/dense.s",
        "adapters.encoder/layer/1/output/dense.s",
    ]
    assert model.start == 0
    model.unplug()
    assert torch.equal(model(INPUTS), plain) and model.delta().keys() == {"head.out.weight", "head.out.bias"}


def test_two_models_share_the_weights_and_not_the_adapters(model: Model) -> None:
    other = copy.deepcopy(model)
    other.backbone, other.network = model.backbone, model.network  # over one backbone
    model.plug("mlp.down", lambda site: Stretch(0.5))
    other.plug("attention.query", lambda site: Stretch(0.5))
    assert model.network is not other.network
    for ours, theirs in zip(model.network.parameters(), other.network.parameters(), strict=True):
        assert ours is theirs
    assert not torch.allclose(model(INPUTS), other(INPUTS))


def test_adapters_of_several_roles_add_up(model: Model) -> None:
    model.plug("mlp.down", lambda site: Stretch(0.5))
    one, network = model(INPUTS), model.network
    model.plug("norm", lambda site: Stretch(0.5))
    assert model.network is network and not torch.allclose(model(INPUTS), one)
    assert len(model.adapters) == 2 + 4


def test_keys_and_values_can_be_added_and_taken_away(model: Model) -> None:
    plain, before = model(INPUTS), shared_pooled()
    model.plug("attention", lambda site: Twice(), at="attention")
    added, twin = model(INPUTS), copy.deepcopy(model)
    assert not torch.allclose(added, plain) and torch.equal(shared_pooled(), before)
    names = {f"adapters.encoder/layer/{block}/attention/self:attention.s" for block in range(2)}
    assert names == {name for name in model.delta() if "head" not in name} and model.start == 0
    assert site_of(place_of("a.b", "attention")) == ("a.b", "attention")
    with pytest.raises(ConfigError, match="two adapters at one place"):
        model.plug("attention", lambda site: Twice(), at="attention")
    model(INPUTS).sum().backward()
    assert all(parameter.grad is not None for name, parameter in model.delta().items() if name in names)
    model.unplug()
    assert torch.equal(model(INPUTS), plain) and torch.equal(twin(INPUTS), added)
    twin.unplug()
    assert torch.equal(twin(INPUTS), plain)


def test_a_role_that_the_backbone_lacks(model: Model) -> None:
    with pytest.raises(ConfigError, match=r"'tiny_text' has no 'attention.qkv'"):
        model.plug("attention.qkv", lambda site: Stretch())


def test_owned_blocks_are_a_private_copy(model: Model) -> None:
    before = shared_pooled()
    model.own_blocks(1)
    assert model.start == model.prefix == 1
    names = [name for name in model.delta() if "head" not in name]
    assert names and all(name.startswith("network.encoder.layer.1.") for name in names)
    with torch.no_grad():
        for parameter in model.delta().values():
            parameter.mul_(1.5)
    assert torch.equal(shared_pooled(), before)
    assert not torch.allclose(model.backbone.features(INPUTS).pooled, before)


def test_owning_everything(model: Model) -> None:
    model.own_blocks(0)
    assert model.prefix is None
    assert sum(p.numel() for name, p in model.delta().items() if "head" not in name) == BACKBONE.card.parameters
    assert not any(parameter.requires_grad for parameter in BACKBONE.module.parameters())


def test_lower_blocks_learn_more_slowly(model: Model) -> None:
    model.own_blocks(0, decay=0.5)
    rates = {name.removeprefix("network."): share for name, share in model.rates.items()}
    assert rates["encoder.layer.1.output.dense.bias"] == 1.0
    assert rates["encoder.layer.0.output.dense.bias"] == 0.5
    assert rates["embeddings.word_embeddings.weight"] == 0.25


def test_only_rows_of_a_batch_have_a_gradient(model: Model) -> None:
    model.own_blocks(0)
    assert model.tables() == ["network.embeddings.word_embeddings.weight"]
    model(INPUTS).sum().backward()
    gradient = model.get_parameter(model.tables()[0]).grad
    assert gradient is not None and gradient.is_sparse
    touched = set(gradient.coalesce().indices()[0].tolist())
    assert touched <= set(INPUTS["input_ids"].flatten().tolist()) and len(touched) > 5


def test_starting_from_cached_states(model: Model) -> None:
    model.own_blocks(1)
    entering = BACKBONE.states(INPUTS)[1]
    torch.testing.assert_close(model(INPUTS, entering), model(INPUTS), atol=1e-6, rtol=0)
    assert not torch.allclose(model(INPUTS, entering.roll(1, 0)), model(INPUTS))


def test_a_delta_of_another_model_is_refused(model: Model) -> None:
    with pytest.raises(ConfigError, match=r"do not belong[\s\S]*adapters.x"):
        model.load_delta({**model.delta(), "adapters.x": torch.zeros(1)})
    with pytest.raises(ConfigError, match=r"head.out.bias"):
        model.load_delta({"head.out.weight": model.delta()["head.out.weight"]})


def test_a_copy_is_whole(model: Model) -> None:
    model.plug("mlp.down", lambda site: Stretch(0.5))
    twin = copy.deepcopy(model)
    assert torch.equal(twin(INPUTS), model(INPUTS))
    twin.unplug()
    assert not torch.allclose(twin(INPUTS), model(INPUTS))


def test_one_tower_is_read_as_it_is() -> None:
    pooled = torch.randn(4, 6)
    single = join_towers(pooled, 1)
    assert single.shape == pooled.shape and joined_width(6, 1) == 6
    assert torch.allclose(single.square().mean(dim=1), torch.ones(len(pooled)))


def test_two_towers_are_what_differs_and_what_is_shared() -> None:
    u, v = torch.tensor([3.0, 4.0]), torch.tensor([4.0, -3.0])
    joined = join_towers(torch.stack([u, v, u, u]), 2)  # two pairs
    scale = 2**0.5 / 5  # both have length 5; a mean square of 1 is length sqrt(D)
    expected = torch.stack([
        torch.cat([(u - v).abs() * scale, u * v * scale**2]),
        torch.cat([torch.zeros(2), u * u * scale**2]),
    ])  # fmt: skip
    torch.testing.assert_close(joined, expected)
    assert joined.shape == (2, joined_width(2, 2))
    assert joined[:, 2:].sum(1).tolist() == pytest.approx([0.0, 2.0])  # D x cosine
    assert torch.equal(join_towers(torch.stack([v, u, u, u]), 2), joined)  # whichever comes first


def test_a_network_that_cannot_start_from_kept_states_is_computed_in_full(model: Model) -> None:
    assert isinstance(BACKBONE, TransformerBackbone)
    model.backbone = replace(BACKBONE, card=replace(BACKBONE.card, shared_blocks=True))
    model.own_blocks(1)
    assert model.start == 0 and model.prefix is None
    trained = {name.split(".")[1] for name in model.delta() if name.startswith("network.")}
    assert trained == {"encoder"}  # the blocks, which change together, and no embeddings
