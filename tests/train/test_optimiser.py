"""The flat optimiser against torch's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from graftwork.train.optimiser import BETAS, EPSILON, FlatAdamW, warm_up_then_linear

RATE, DECAY, NEVER = 0.02, 0.1, 1e9
SHAPES = {"map.weight": (4, 3), "map.bias": (4,), "word_embeddings.weight": (5, 3), "scalar": (1,)}
SHARES = [1.0, 0.5, 0.25, 1.0, 0.0, 0.7]


def parameters(dtype: torch.dtype = torch.float32) -> dict[str, nn.Parameter]:
    random = torch.Generator().manual_seed(0)
    return {name: nn.Parameter(torch.randn(shape, generator=random).to(dtype)) for name, shape in SHAPES.items()}


def gradients(step: int) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(100 + step)
    return {name: torch.randn(shape, generator=random) for name, shape in SHAPES.items()}


def reference(own: dict[str, nn.Parameter]) -> torch.optim.AdamW:
    """Decay on matrices only, and not on embeddings."""
    decayed = [own["map.weight"]]
    plain = [parameter for name, parameter in own.items() if name != "map.weight"]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPSILON, fused=False, foreach=False)


def run(ours: FlatAdamW, own: dict[str, nn.Parameter], then: Callable[[int], None] = lambda step: None) -> list[float]:
    norms = []
    for step, share in enumerate(SHARES):
        for name, gradient in gradients(step).items():
            own[name].grad = gradient.to(own[name].dtype)
        norms.append(ours.step(share))
        then(step)
    return norms


@pytest.mark.parametrize("clip", [NEVER, 0.5])
def test_it_is_adamw(clip: float) -> None:
    own, theirs = parameters(), parameters()
    adam = reference(theirs)

    def compare(step: int) -> None:
        for name, gradient in gradients(step).items():
            theirs[name].grad = gradient
        expected_norm = clip_grad_norm_(theirs.values(), clip)
        for group in adam.param_groups:
            group["lr"] = RATE * SHARES[step]
        adam.step()
        for name in SHAPES:
            torch.testing.assert_close(own[name], theirs[name], atol=2e-6, rtol=0)
        norms.append(float(expected_norm))

    norms: list[float] = []
    found = run(FlatAdamW(own, RATE, DECAY, clip), own, compare)
    assert found == pytest.approx(norms, rel=1e-5)
    assert min(norms) > 0.5  # clipping at 0.5 did something
    assert not torch.allclose(own["map.weight"], parameters()["map.weight"], atol=RATE)


def test_a_share_of_the_rate() -> None:
    own, slow = parameters(), parameters()
    run(FlatAdamW(own, RATE / 2, DECAY, NEVER), own)
    run(FlatAdamW(slow, RATE, DECAY, NEVER, rates=dict.fromkeys(SHAPES, 0.5)), slow)
    for name in SHAPES:
        torch.testing.assert_close(own[name], slow[name])
    mixed = parameters()
    run(FlatAdamW(mixed, RATE, DECAY, NEVER, rates={"map.weight": 0.5}), mixed)
    torch.testing.assert_close(mixed["map.weight"], slow["map.weight"])
    assert not torch.allclose(mixed["map.bias"], slow["map.bias"])


def test_weights_in_bf16_have_an_fp32_master() -> None:
    half, exact = parameters(torch.bfloat16), parameters(torch.bfloat16)
    exact = {name: nn.Parameter(parameter.detach().float()) for name, parameter in exact.items()}
    rounded = FlatAdamW(half, RATE, DECAY, NEVER)
    run(rounded, half)
    whole = FlatAdamW(exact, RATE, DECAY, NEVER)
    for step, share in enumerate(SHARES):
        for name, gradient in gradients(step).items():
            exact[name].grad = gradient.bfloat16().float()
        whole.step(share)
    for name in SHAPES:
        assert half[name].dtype == torch.bfloat16
        assert torch.equal(half[name], exact[name].bfloat16()), name


def test_steps_below_the_grain_of_bf16_add_up() -> None:
    weight = nn.Parameter(torch.ones(1, 2, dtype=torch.bfloat16))
    optimiser = FlatAdamW({"w": weight}, 1e-4, 0.0, NEVER)
    for _ in range(100):  # each step is 1e-4, and 1 is followed below by 1 - 0.0039
        weight.grad = torch.ones_like(weight)
        optimiser.step(1.0)
    assert float(weight.detach().float().max()) == pytest.approx(0.99, abs=0.003)


def test_the_network_computes_with_the_new_weights() -> None:
    layer = nn.Linear(3, 2)
    optimiser = FlatAdamW(dict(layer.named_parameters()), RATE, 0.0, NEVER)
    before = layer(torch.ones(1, 3)).detach()
    layer(torch.ones(1, 3)).sum().backward()
    optimiser.step(1.0)
    assert not torch.equal(layer(torch.ones(1, 3)), before)
    assert layer.weight.grad is None and layer.bias.grad is None


def test_a_parameter_without_gradient_stays() -> None:
    own = {name: nn.Parameter(torch.ones(2)) for name in ("a", "b")}
    optimiser = FlatAdamW(own, RATE, DECAY, NEVER)
    own["a"].grad = torch.ones(2)
    assert optimiser.step(1.0) == pytest.approx(2**0.5)
    assert torch.equal(own["b"], torch.ones(2)) and not torch.equal(own["a"], torch.ones(2))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_no_number_changes_nothing(bad: float) -> None:
    own = parameters()
    optimiser = FlatAdamW(own, RATE, DECAY, 1.0)
    own["map.weight"].grad = torch.full((4, 3), bad)
    norm = optimiser.step(1.0)
    assert not norm < float("inf")
    for name, before in parameters().items():
        assert torch.equal(own[name], before)


def test_parameters_added_later_begin_then_and_the_others_go_on() -> None:
    own, theirs = parameters(), parameters()
    late = ["map.bias", "scalar"]
    ours = FlatAdamW({name: own[name] for name in SHAPES if name not in late}, RATE, DECAY, NEVER)
    adam = torch.optim.AdamW([theirs["map.weight"]], lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY)
    adam.add_param_group({"params": [theirs["word_embeddings.weight"]], "weight_decay": 0.0})
    for step in range(6):
        if step == 3:
            ours.add(own)
            adam.add_param_group({"params": [theirs[name] for name in late], "weight_decay": 0.0})
        for name, gradient in gradients(step).items():
            own[name].grad = gradient if step >= 3 or name not in late else None
            theirs[name].grad = gradient
        ours.step(1.0)
        adam.step()
        assert step >= 3 or all(torch.equal(own[name], parameters()[name]) for name in late)
    for name in SHAPES:
        torch.testing.assert_close(own[name], theirs[name], atol=2e-6, rtol=0)


def test_a_table_added_later_counts_its_own_steps() -> None:
    table, weight = nn.Embedding(3, 2, sparse=True), nn.Parameter(torch.zeros(2))
    optimiser = FlatAdamW({"b": weight}, RATE, 0.0, NEVER)
    for _ in range(5):
        weight.grad = torch.ones(2)
        optimiser.step(1.0)
    before = table.weight.detach().clone()
    optimiser.add({"e": table.weight}, tables=["e"])
    table(torch.tensor([1])).sum().backward()
    optimiser.step(1.0)
    torch.testing.assert_close(before[1] - table.weight[1], torch.full((2,), RATE))  # a first step of AdamW


def rows_of(table: nn.Embedding, tokens: list[int]) -> Tensor:
    loss: Tensor = (table(torch.tensor(tokens)) * torch.arange(1, len(tokens) + 1)[:, None]).sin().sum()
    return loss


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_touched_rows_of_a_table_are_adamws_and_others_rest(dtype: torch.dtype) -> None:
    table = nn.Embedding(6, 3, sparse=True, dtype=dtype)
    dense = nn.Parameter(table.weight.detach().float().clone())
    start = table.weight.detach().clone()
    own = {"e.weight": table.weight, "head": nn.Parameter(torch.zeros(1))}
    optimiser = FlatAdamW(own, RATE, DECAY, NEVER, tables=["e.weight"])
    adam = torch.optim.AdamW([dense], lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)
    for _ in range(4):
        rows_of(table, [1, 4, 4]).backward()  # type: ignore[no-untyped-call]
        assert table.weight.grad is not None and table.weight.grad.is_sparse
        dense.grad = table.weight.grad.to_dense().float()
        adam.step()
        optimiser.step(1.0)
        assert table.weight.grad is None
    touched = [1, 4]
    torch.testing.assert_close(table.weight[touched], dense[touched].to(dtype), atol=2e-6, rtol=2e-6)
    resting = [0, 2, 3, 5]
    assert torch.equal(table.weight[resting], start[resting])
    assert not torch.equal(table.weight[touched], start[touched])


def test_a_resting_row_keeps_its_place_and_its_moments() -> None:
    table = nn.Embedding(3, 2, sparse=True)
    optimiser = FlatAdamW({"e": table.weight, "b": nn.Parameter(torch.zeros(2))}, RATE, DECAY, NEVER, tables=["e"])
    rows = optimiser.tables[0][0]
    kept: list[Tensor] = []
    for tokens in ([0, 1], [1], [1], [0]):
        if tokens == [1]:
            kept.append(torch.stack([table.weight[0].detach(), rows.first[0], rows.second[0]]))
        table(torch.tensor(tokens)).sum().backward()
        optimiser.step(1.0)
    assert torch.equal(kept[0], kept[1]) and kept[0].abs().min() > 0
    # Two touches of gradient 1, at the first and at the fourth step: moments of two steps, bias correction of four.
    first, second = 1 - BETAS[0] ** 2, 1 - BETAS[1] ** 2
    torch.testing.assert_close(rows.first[0], torch.full((2,), first))
    moved = RATE * first / (1 - BETAS[0] ** 4) / (second / (1 - BETAS[1] ** 4)) ** 0.5
    torch.testing.assert_close(kept[1][0] - table.weight[0].detach(), torch.full((2,), moved))


def test_tables_count_in_the_norm_and_are_clipped_with_the_rest() -> None:
    table, layer = nn.Embedding(4, 2, sparse=True), nn.Parameter(torch.zeros(2))
    optimiser = FlatAdamW({"e": table.weight, "b": layer}, RATE, 0.0, 1.0, tables=["e"])
    table(torch.tensor([2])).sum().mul(3.0).backward()
    layer.grad = torch.tensor([4.0, 0.0])
    assert optimiser.step(1.0) == pytest.approx((9 + 9 + 16) ** 0.5)
    moments = optimiser.tables[0][0].first[2]
    torch.testing.assert_close(moments, torch.full((2,), 0.1 * 3 / 34**0.5))


def test_warm_up_then_linear() -> None:
    shares = [warm_up_then_linear(step, 20, 0.1) for step in range(21)]
    assert shares[:3] == [0.5, 1.0, 1.0]
    assert shares[2:] == pytest.approx([(20 - step) / 18 for step in range(2, 21)])
    assert shares[20] == 0 and shares[19] > 0


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_short_schedules_reach_the_peak_and_never_leave_the_range(steps: int) -> None:
    shares = [warm_up_then_linear(step, steps, 0.1) for step in range(steps)]
    assert max(shares) == 1.0 and min(shares) > 0


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_goes_on_from_its_tensors_to_the_last_bit(dtype: torch.dtype, weights: bool) -> None:
    """Dense weights, some added later, and tables; what is not given is set by the test, as by whoever keeps it."""

    def made() -> tuple[dict[str, nn.Parameter], nn.Embedding, FlatAdamW]:
        own, table = parameters(dtype), nn.Embedding(6, 3, sparse=True)
        table.weight = nn.Parameter(torch.arange(18.0).view(6, 3).to(dtype))
        first = {name: own[name] for name in SHAPES if name != "map.bias"}
        return own, table, FlatAdamW(first, RATE, DECAY, 2.0, rates={"scalar": 0.5})

    def unfreeze(own: dict[str, nn.Parameter], table: nn.Embedding, optimiser: FlatAdamW) -> None:
        optimiser.add({**own, "table": table.weight}, ["table"])

    def step(own: dict[str, nn.Parameter], table: nn.Embedding, optimiser: FlatAdamW, number: int) -> float:
        late = bool(optimiser.tables)
        for name, gradient in gradients(number).items():
            own[name].grad = gradient.to(dtype) if late or name != "map.bias" else None
        if late:
            rows_of(table, [1, 4, number % 3]).backward()  # type: ignore[no-untyped-call]
        return optimiser.step(1 / (1 + number))

    whole = made()
    for number in range(2):
        step(*whole, number)
    unfreeze(*whole)
    for number in range(2, 5):
        step(*whole, number)
    kept = {name: tensor.clone() for name, tensor in whole[2].tensors(weights=weights).items()}
    own_then = {name: weight.detach().clone() for name, weight in whole[0].items()}
    norms = [step(*whole, number) for number in range(5, 8)]

    again = made()
    unfreeze(*again)
    if not weights and dtype == torch.float32:
        for name, weight in again[0].items():
            weight.data.copy_(own_then[name])
    again[2].restore(kept)
    assert [step(*again, number) for number in range(5, 8)] == norms
    for name, weight in whole[0].items():
        assert torch.equal(weight, again[0][name]), name
    assert torch.equal(whole[1].weight, again[1].weight)
    assert len(kept["table0.rows"]) == 4 < 6
