"""The pretended card: what CUDA refuses is refused, what it takes is taken, and numbers are those of the processor."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pretended_cuda import Card, pretended_cuda

APART = "Expected all tensors to be on the same device"


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    with pretended_cuda(monkeypatch) as made:
        yield made


class Doubled(torch.autograd.Function):
    """y = 2 x, with a backward pass that a test gives a tensor of its own."""

    factor: Tensor

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient * Doubled.factor


def here(*shape: int) -> Tensor:
    return torch.ones(*shape)


def there(*shape: int) -> Tensor:
    return torch.ones(*shape, device="cuda")


def numbers(*values: int) -> Tensor:
    return torch.tensor(values)


def backward_with(factor: Tensor) -> Tensor:
    Doubled.factor = factor
    x = there(3).requires_grad_()
    Doubled.apply(x).sum().backward()
    assert x.grad is not None
    return x.grad


def packed(lengths: Tensor) -> Tensor:
    return nn.utils.rnn.pack_padded_sequence(there(2, 3, 4), lengths, batch_first=True).data


def in_a_child(work: Callable[[], object]) -> None:
    """Call `work` in a forked process. Raises `RuntimeError` with the last line of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            work()
        except RuntimeError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 10_000).decode()
    os.close(reading)
    if said:
        raise RuntimeError(said)


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: there(3) + here(3), APART),
    (lambda: here(3) + there(3), APART),
    (lambda: here(3) * there(3).sum(), APART),  # a number of the card does not come to the processor by itself
    (lambda: there(3).add_(here(3)), APART),
    (lambda: here(3).add_(there(3)), APART),
    (lambda: torch.tensor(1.0).add_(there(3).sum()), "Output 0 with device cpu"),
    (lambda: torch.add(there(3), 1, out=here(3)), APART),
    (lambda: torch.cat([there(3), here(3)]), APART),
    (lambda: torch.stack([there(3).sum(), here(3).sum()]), APART),
    (lambda: torch.where(here(3) > 0, there(3), there(3)), APART),
    (lambda: there(3).masked_fill(here(3) > 0, 0.0), APART),
    (lambda: there(3, 2).masked_select(here(3, 2) > 0), APART),
    (lambda: here(3)[numbers(0).to("cuda")], "indices should be either on cpu"),
    (lambda: there(3).index_put_((numbers(0, 1),), here(2)), APART),
    (lambda: there(3).index_select(0, numbers(0)), APART),
    (lambda: there(3).gather(0, numbers(0)), APART),
    (lambda: there(3).scatter_add_(0, numbers(0), there(1)), APART),
    (lambda: there(2, 3) @ here(3, 2), APART),
    (lambda: functional.linear(there(2, 3), here(2, 3)), APART),
    (lambda: nn.Linear(3, 2)(there(2, 3)), APART),
    (lambda: nn.Linear(3, 2).to("cuda")(here(2, 3)), APART),
    (lambda: nn.LSTM(3, 2).to("cuda")(there(4, 1, 3), (here(1, 1, 2), here(1, 1, 2))), "same device"),
    (lambda: functional.embedding(numbers(0, 1), there(3, 2)), APART),
    (lambda: functional.embedding(numbers(0)[0], there(3, 2)), APART),
    (lambda: functional.cross_entropy(there(2, 3), numbers(0, 1)), APART),
    (
        lambda: functional.scaled_dot_product_attention(there(1, 1, 2, 4), there(1, 1, 2, 4), here(1, 1, 2, 4)),
        "same device",
    ),
    (lambda: torch.equal(there(3), here(3)), APART),
    (lambda: torch.allclose(there(3), here(3)), APART),
    (lambda: there(3).numpy(), "can't convert cuda:0 device type tensor to numpy"),
    (lambda: np.asarray(there(3)), "can't convert cuda:0 device type tensor to numpy"),
    (lambda: np.concatenate([there(3), np.ones(3)]), "can't convert cuda:0 device type tensor to numpy"),  # type: ignore[arg-type]
    (lambda: there(3).pin_memory(), "cannot pin 'torch.cuda.FloatTensor'"),
    (lambda: torch.rand(3, device="cuda", generator=torch.Generator()), "Expected a 'cuda' device type for generator"),
    (lambda: there(3).normal_(generator=torch.Generator().manual_seed(1)), "Expected a 'cuda' device type"),
    (lambda: torch.rand(3, generator=torch.Generator("cuda")), "Expected a 'cpu' device type for generator"),
    (lambda: torch.randperm(3, generator=torch.Generator(device="cuda")), "Expected a 'cpu' device type"),
    (lambda: packed(numbers(3, 2).to("cuda")), "'lengths' argument should be a 1D CPU int64 tensor"),
    (lambda: backward_with(torch.full((3,), 2.0)), APART),
    (lambda: (there(3), in_a_child(lambda: there(3))), "Cannot re-initialize CUDA in forked subprocess"),
]

RIGHT: list[tuple[Callable[[], object], object]] = [
    (lambda: there(3) + 1, [2, 2, 2]),
    (lambda: there(3) + torch.tensor(2.0), [3, 3, 3]),
    (lambda: torch.tensor(2.0) - there(3), [1, 1, 1]),
    (lambda: torch.tensor(2.0) - there(3).sum(), -1),
    (lambda: there(3).add_(torch.tensor(2.0)), [3, 3, 3]),
    (lambda: torch.where(there(3) > 0, there(3), torch.tensor(2.0)), [1, 1, 1]),
    (lambda: there(3).masked_fill(there(3) > 0, torch.tensor(2.0)), [2, 2, 2]),
    (lambda: here(3).copy_(there(3)), [1, 1, 1]),
    (lambda: there(3).copy_(here(3) * 2), [2, 2, 2]),
    (lambda: there(3)[numbers(0, 1)], [1, 1]),
    (lambda: there(3)[here(3) > 0], [1, 1, 1]),
    (lambda: there(3)[[0, 1]], [1, 1]),
    (lambda: there(3, 2)[[0, 1], [1, 1]], [1, 1]),
    (lambda: there(3)[np.array([0, 1])], [1, 1]),
    (lambda: there(3).index_put_((numbers(0, 1),), torch.tensor(3.0)), [3, 3, 1]),
    (lambda: there(2).new_tensor([1.0, 2.0]) + there(2), [2, 3]),
    (lambda: there(2).new_zeros(2) + there(2), [1, 1]),
    (lambda: torch.zeros_like(there(2)) + there(2), [1, 1]),
    (lambda: torch.zeros(2, device=there(1).device) + there(2), [1, 1]),
    (lambda: torch.tensor([2.0], device="cuda:0") + there(1), [3]),
    (lambda: torch.from_numpy(np.ones(1)).to(torch.device("cuda")) + there(1), [2]),
    (lambda: here(2).to(there(1)) + there(2), [2, 2]),
    (lambda: here(2).cuda().to("cuda", torch.float64) + there(2), [2, 2]),
    (lambda: here(2).pin_memory().to("cuda", non_blocking=True) + there(2), [2, 2]),
    (lambda: there(2).cpu() + here(2), [2, 2]),
    (lambda: there(2).to("cpu", copy=True).numpy() + np.ones(2), [2, 2]),
    (lambda: torch.arange(2, device="cuda") + there(2), [1, 2]),
    (lambda: [there(2).sum().item(), float(there(1)), *there(1).tolist()], [2, 1, 1]),
    (lambda: nn.Linear(3, 2, bias=False).to("cuda")(there(1, 3)).isfinite(), [[True, True]]),
    (lambda: nn.Linear(3, 2).cuda().cpu()(here(1, 3)).isfinite(), [[True, True]]),
    (lambda: copy.deepcopy(nn.Linear(3, 2).cuda())(there(1, 3)).isfinite(), [[True, True]]),
    (lambda: nn.LSTM(3, 2).cuda()(there(4, 1, 3))[0].shape, [4, 1, 2]),
    (lambda: packed(numbers(3, 2)).shape, [5, 4]),
    (lambda: backward_with(there(3) * 2), [2, 2, 2]),
    (lambda: backward_with(torch.tensor(2.0)), [2, 2, 2]),
    (lambda: torch.rand(2, device="cuda", generator=torch.Generator("cuda")).shape, [2]),
    (lambda: in_a_child(lambda: there(3)), None),  # the first to use CUDA
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_cuda_refuses_is_refused(number: int, card: Card) -> None:
    wrong, why = WRONG[number]
    with pytest.raises((RuntimeError, TypeError), match=why):
        wrong()


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_what_cuda_takes_is_taken(number: int, card: Card) -> None:
    right, expected = RIGHT[number]
    found = right()
    assert (
        found.tolist() if isinstance(found, Tensor | np.ndarray) else found if expected is None else list(found)
    ) == expected  # type: ignore[call-overload]


def test_a_tensor_says_where_it_is(card: Card) -> None:
    assert not card.process
    x = there(2, 3)
    assert (x.device, x.is_cuda, x.is_cpu, x.is_meta, x.get_device()) == (
        torch.device("cuda", 0),
        True,
        False,
        False,
        0,
    )
    assert x.type() == "torch.cuda.FloatTensor" and here(1).device.type == "cpu"
    grown = x.requires_grad_() @ there(3, 2)
    grown.sum().backward()
    assert x.grad is not None and x.grad.is_cuda and x.grad.tolist() == [[2, 2, 2], [2, 2, 2]]
    assert torch.empty(1, device="meta").is_meta and card.process == os.getpid()
    with torch.device("cuda"):
        assert torch.zeros(1).is_cuda


def test_a_module_moves_with_what_is_tied_in_it(card: Card) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    both, weight = nn.ModuleList([first, second]), first.weight
    both.register_buffer("mean", torch.zeros(1))
    both.to("cuda")
    assert second.weight is first.weight is weight and weight.is_cuda and isinstance(weight, nn.Parameter)
    assert both.mean.is_cuda and {name for name, _ in both.named_parameters()} == {"0.weight", "0.bias", "1.bias"}
    optimiser = torch.optim.AdamW([weight], fused=True)
    before = weight.tolist()
    both[0](there(1, 3)).sum().backward()
    optimiser.step()
    assert weight.tolist() != before and optimiser.state[weight]["exp_avg"].is_cuda


def test_the_card_has_random_numbers_of_its_own(card: Card) -> None:
    torch.manual_seed(1)
    card_first, processor_first = torch.rand(3, device="cuda").tolist(), torch.rand(3).tolist()
    assert card_first == processor_first  # seeded as the processor's are
    with torch.random.fork_rng(devices=[]):
        after = torch.rand(3, device="cuda")
    assert torch.rand(3, device="cuda").tolist() != after.tolist()  # nothing was put back
    kept, own = torch.cuda.get_rng_state(), torch.get_rng_state()
    drawn = functional.dropout(there(50)).tolist()
    assert torch.equal(torch.get_rng_state(), own) and functional.dropout(there(50)).tolist() != drawn
    torch.cuda.set_rng_state(kept)
    assert functional.dropout(there(50)).tolist() == drawn


def test_autocast_lowers_what_cuda_lowers(card: Card) -> None:
    linear = nn.Linear(3, 3).to("cuda")
    with torch.autocast("cuda", torch.bfloat16):
        product = linear(there(2, 3))
        assert product.dtype == torch.bfloat16 and (product @ product.T).dtype == torch.bfloat16
        assert functional.layer_norm(product, (3,)).dtype == product.softmax(-1).dtype == torch.float32
        with torch.autocast("cuda", enabled=False):
            assert linear(there(2, 3)).dtype == torch.float32
        assert nn.Linear(3, 3)(here(2, 3)).dtype == torch.float32  # autocast of another device
    assert linear(there(2, 3)).dtype == torch.float32
    product.float().sum().backward()
    assert linear.weight.grad is not None and linear.weight.grad.dtype == torch.float32


def test_torch_tells_of_the_card(card: Card) -> None:
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and not torch.cuda.is_initialized()
    there(1000)
    assert torch.cuda.is_initialized() and torch.cuda.max_memory_allocated() == 4000
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() == 0 and card.synchronised == 1
    assert torch.cuda.get_device_properties(0).name == torch.cuda.get_device_name() == "Pretended GPU"
    card.room = 100
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        there(26)
    assert torch.cuda.is_bf16_supported(including_emulation=False) and torch.cuda.mem_get_info()[0] > 0


def test_what_is_only_answered_stays_on_the_card(card: Card) -> None:
    with torch.inference_mode():  # where torch hands over what is only made of other operators, too
        x = here(1, 3).to(torch.device("cuda"), torch.float64)
        found = functional.linear(x, x.new_ones(2, 3, device="cuda:0"))
        assert found.is_cuda and found.tolist() == [[3, 3]] and here(1).new_zeros(1, device=x.device).is_cuda
        with pytest.raises(RuntimeError, match=APART):
            functional.linear(x, torch.ones(2, 3, dtype=torch.float64))


def test_nothing_of_it_stays() -> None:
    with pytest.MonkeyPatch.context() as patch, pretended_cuda(patch):
        patch.setattr(torch.cuda, "device_count", lambda: 4)
        torch.backends.cudnn.allow_tf32 = False
        x = there(2)
    assert torch.cuda.device_count() == 0 and torch.backends.cudnn.allow_tf32
    assert not torch.cuda.is_available() and torch.Generator is torch._C.Generator
    with pytest.raises((RuntimeError, AssertionError)):
        there(2)
    assert here(2).device.type == "cpu" and x.cpu().tolist() == [1, 1]
