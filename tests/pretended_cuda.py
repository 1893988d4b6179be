"""A CUDA card made of the processor: tensors on it say that they are there, and mix with none that are not.

A tensor moved there keeps its numbers, so a whole run computes there what it computes on the processor; and what CUDA
refuses is refused with torch's words. Every operator is watched where torch hands it to a device (`__torch_dispatch__`)
and not only where Python names it: what the backward pass and torch's own functions do is watched too, and a tensor
that they make knows where it is. Above that a `TorchFunctionMode` answers to the name "cuda", which a torch without
CUDA cannot allocate on: below the name the tensors lie on "meta", numbered so that it is told from the true one.

It does not pretend: streams, events, several cards, `torch.load`, and the rounding of a card's own kernels.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

CARD, BELOW, HOST = torch.device("cuda", 0), torch.device("meta", 0), torch.device("cpu")
NAME, MEMORY, CPU_GENERATOR = "Pretended GPU", 8 << 30, torch.default_generator
APART = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
ONLY_CPU = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
    "method"
)
MOVES = {"_to_copy", "copy_", "_copy_from"}
INDEXES = {"index", "index_put_", "_index_put_impl_", "index_put", "_unsafe_index"}  # (self, indices, values)
LENGTHS = {"_pack_padded_sequence": 1, "_pack_padded_sequence_backward": 2}  # place of what must lie on the CPU
# What reads an argument without dimensions as a tensor like others; elsewhere it is a number, wherever it lies.
TAKES_NO_NUMBER = {
    "cat", "stack", "equal", "index_select", "gather", "scatter", "scatter_", "scatter_add", "scatter_add_",
    "embedding", "take", "nll_loss_forward", "searchsorted", "bucketize", "index_add", "index_add_", "index_copy",
    "index_copy_",
}  # fmt: skip
LOWERED = {  # by autocast, to its precision
    functional.linear, functional.conv1d, functional.conv2d, functional.bilinear, torch.conv1d, torch.conv2d,
    functional.scaled_dot_product_attention, torch.matmul, torch.mm, torch.bmm, torch.addmm, torch.baddbmm, torch.mv,
    torch.einsum, Tensor.matmul, Tensor.mm, Tensor.bmm, Tensor.addmm, Tensor.__matmul__, torch._VF.lstm,
    functional.multi_head_attention_forward,
}  # fmt: skip
RAISED = {  # by autocast, to fp32
    functional.softmax, functional.log_softmax, functional.layer_norm, functional.cross_entropy, functional.nll_loss,
    functional.mse_loss, functional.cosine_similarity, functional.binary_cross_entropy_with_logits, torch.layer_norm,
    functional.group_norm, torch.softmax, torch.log_softmax, torch.exp, torch.log, torch.pow, torch.sum, torch.prod,
    torch.cumsum, torch.norm, torch.rsqrt, torch.logsumexp, Tensor.softmax, Tensor.log_softmax, Tensor.exp, Tensor.log,
    Tensor.pow, Tensor.sum, Tensor.prod, Tensor.cumsum, Tensor.norm, Tensor.rsqrt, Tensor.logsumexp,
}  # fmt: skip
INDEXING = {Tensor.__getitem__, Tensor.__setitem__}
CAST = LOWERED | RAISED
TYPES = {torch.float32: "Float", torch.float64: "Double", torch.bfloat16: "BFloat16", torch.int64: "Long"}


class Card:
    """What a card knows beside its tensors: who uses it, its random numbers, its memory."""

    def __init__(self) -> None:
        self.process: int | None = None  # that has initialised CUDA
        self.random = torch.Generator().manual_seed(0)
        self.synchronised = 0
        self.peak: int = 0
        self.room = MEMORY  # bytes for any one tensor
        self.given = HOST  # device of the generator that a function is being told: operators see it without its class

    def touch(self) -> None:
        """Initialise CUDA in this process. Raises `RuntimeError` in the child of one that has."""
        if self.process not in (None, os.getpid()):
            raise RuntimeError(FORKED)
        self.process = os.getpid()

    def hold(self, size: int) -> None:
        """Take a tensor of `size` bytes. Raises `torch.OutOfMemoryError`."""
        if size > self.room:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size / 2**20:.2f} MiB.")
        self.peak = max(self.peak, size)

    @contextlib.contextmanager
    def drawing(self, random: torch.Generator) -> Iterator[None]:
        """Draw from `random` what would be drawn from the processor's numbers, which stay as they are."""
        before = CPU_GENERATOR.get_state()
        CPU_GENERATOR.set_state(random.get_state())
        try:
            yield
        finally:
            random.set_state(CPU_GENERATOR.get_state())
            CPU_GENERATOR.set_state(before)

    def seed(self, seed: int) -> None:
        """Set the card's random numbers alone."""
        self.random.manual_seed(seed)


CARDS: list[Card] = []  # the one in use, if any


class OnCard(Tensor):
    """A tensor on the card; `here` is its content."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> OnCard:
        CARDS[0].touch()
        CARDS[0].hold(here.numel() * here.element_size())
        dense = here.layout == torch.strided
        made: OnCard = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            here.shape,
            strides=here.stride() if dense else None,
            storage_offset=here.storage_offset() if dense else None,
            dtype=here.dtype,
            layout=here.layout,
            device=BELOW,
        )
        made.here = here
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in PROPERTIES:
            return PROPERTIES[func]
        if func in TOLD:
            return TOLD[func](*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return computed(func, args, kwargs or {})


class Naming(TorchFunctionMode):
    """Hears "cuda" wherever a function is told it, and does autocast's part."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        args = tuple(map(_below, args))
        kwargs = {name: _below(item) for name, item in kwargs.items()} if kwargs else {}
        if func in NAMED:
            return NAMED[func](*args, **kwargs)
        if func in INDEXING:
            args = (args[0], _index(args[1]), *args[2:])
        CARDS[0].given = kwargs["generator"].device if isinstance(kwargs.get("generator"), Generator) else HOST
        if func in CAST and torch.is_autocast_enabled("cuda"):
            to = torch.get_autocast_dtype("cuda") if func in LOWERED else torch.float32
            with torch.autocast("cuda", enabled=False):
                return func(*_cast(args, to), **_cast(kwargs, to))
        return func(*args, **kwargs)


class Watching(TorchDispatchMode):
    """Sees every operator, those on the processor alone too: one of them may be asked for a tensor on the card."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else each call passes through a compiler that is not used

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return computed(func, args, kwargs or {})


class Generator(torch.Generator):
    """Random numbers of the processor, or of the card."""

    place: torch.device

    def __new__(cls, device: Any = "cpu") -> Generator:
        made = super().__new__(cls)
        made.place = CARD if torch.device(device).type == "cuda" else HOST
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.place

    def manual_seed(self, seed: int) -> Generator:
        super().manual_seed(seed)
        return self  # torch's returns one of its own class


def computed(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the operator `func` gives: on the card where its tensors are there or it is asked for there."""
    there = given = False
    target: torch.device | None = None
    for item in itertools.chain(_flat(args), kwargs.values()):
        kind = type(item)
        if kind is OnCard:
            there = True
        elif kind is torch.device:
            target = item
        elif kind is torch._C.Generator:
            given = True
    on_card = target == BELOW if target is not None else there
    if given and (CARDS[0].given.type == "cuda") != on_card:
        places = ("cuda", "cpu") if on_card else ("cpu", "cuda")
        raise RuntimeError("Expected a '{}' device type for generator but found '{}'".format(*places))
    if not (there or on_card):
        return func(*args, **kwargs)
    if _of_others(func):  # only while inference_mode hides that from torch itself
        with Watching():
            return func.decompose(*args, **kwargs)
    name = func.__name__.partition(".")[0]
    writes = func._schema.is_mutable
    if target is None:
        _refuse(name, args, kwargs, writes)
    plain, named = [_content(item) for item in args], {key: _content(item) for key, item in kwargs.items()}
    draws = torch.Tag.nondeterministic_seeded in func.tags and not given
    with CARDS[0].drawing(CARDS[0].random) if draws else contextlib.nullcontext():
        result = func(*plain, **named)
    if writes:
        return _written(args, kwargs, result)
    if not on_card:
        return result
    with torch.inference_mode(False):
        if name in LENGTHS and isinstance(result, tuple):
            return OnCard(result[0]), *result[1:]  # the sizes of batches stay
        return _on_card(result)


@functools.cache
def _of_others(func: Any) -> bool:
    """Whether an operator is only made of others, none of its own."""
    made: bool = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    return made


def _on_card(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return type(result)(map(_on_card, result))
    return OnCard(result) if isinstance(result, Tensor) else result


def _refuse(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], writes: bool) -> None:
    """Raise what CUDA's operators raise of tensors that are not all on the card."""
    told = [*_flat(args), *kwargs.values()]
    if name in MOVES or all(isinstance(item, OnCard) for item in told if isinstance(item, Tensor)):
        if name in LENGTHS:
            raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor")
        return
    if name in INDEXES:
        if not isinstance(args[0], OnCard) and any(isinstance(item, OnCard) for item in _flat(args[1])):
            raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
        told = [args[0], *args[2:3]]
    if name in LENGTHS:
        told = [item for place, item in enumerate(args) if place != LENGTHS[name]]
    here = [item for item in told if isinstance(item, Tensor) and not isinstance(item, OnCard)]
    if any(item.dim() or name in TAKES_NO_NUMBER for item in here):
        raise RuntimeError(f"{APART} (in {name})")
    if writes and isinstance(args[0], Tensor) and not isinstance(args[0], OnCard):
        raise RuntimeError(f"Output 0 with device cpu doesn't match the desired device cuda:0 (in {name})")


def _written(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """The tensors that an operator wrote into, as it was given them."""
    for item in (*_flat(args), *kwargs.values()):
        if isinstance(item, OnCard):
            assert item.here.shape == item.shape, "an operator changed the shape of a tensor of the card in place"
    if "out" in kwargs:
        return kwargs["out"]
    return args[0] if args and isinstance(args[0], Tensor) and isinstance(result, Tensor) else result


def _flat(items: Sequence[Any]) -> Iterator[Any]:
    return itertools.chain.from_iterable(item if isinstance(item, list | tuple) else (item,) for item in items)


def _content(item: Any) -> Any:
    if isinstance(item, OnCard):
        return item.here
    if isinstance(item, list | tuple):
        return [_content(one) for one in item]
    return HOST if isinstance(item, torch.device) and item == BELOW else item


def _below(item: Any) -> Any:
    """The device that stands for the card where `item` names it; else `item`."""
    if isinstance(item, str):
        return BELOW if item in ("cuda", "cuda:0") else item
    return BELOW if isinstance(item, torch.device) and item.type == "cuda" else item


def _index(index: Any) -> Any:
    """An index whose lists are tensors: of a list torch makes one on the device, and below it has no numbers."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    return torch.tensor(index) if isinstance(index, list) else index


def _cast(items: Any, to: torch.dtype) -> Any:
    def one(item: Any) -> Any:
        floats = isinstance(item, OnCard) and item.is_floating_point() and item.dtype != torch.float64
        return item.to(to) if floats else item

    return tree_map(one, items)


def _set_data(tensor: Tensor, data: Tensor) -> None:
    if isinstance(tensor, OnCard) and isinstance(data, OnCard):
        tensor.here = data.here
    elif not isinstance(data, OnCard):
        Tensor.data.__set__(tensor, data)  # type: ignore[attr-defined]
    else:
        moved = data.detach()
        torch.utils.swap_tensors(tensor, torch.nn.Parameter(moved, tensor.requires_grad))  # the object stays


def _type(tensor: Tensor, to: Any = None, *more: Any, **named: Any) -> Any:
    if to is not None:
        return tensor.to(to)
    return f"torch.cuda.{TYPES.get(tensor.dtype, str(tensor.dtype).removeprefix('torch.').title())}Tensor"


def _from_data(func: Any, *args: Any, requires_grad: bool = False, **named: Any) -> Tensor:
    """What torch makes of numbers: below the name "cuda" it would not read them."""
    if named.get("device") != BELOW:
        return func(*args, **named).requires_grad_(requires_grad)
    return func(*args, **(named | {"device": HOST})).to(BELOW).requires_grad_(requires_grad)


def _new_tensor(tensor: Tensor, data: Any, **named: Any) -> Tensor:
    if not isinstance(tensor, OnCard):
        return tensor.new_tensor(data, **named)
    return _from_data(torch.tensor, data, **({"dtype": tensor.dtype, "device": BELOW} | named))


def _pinned(tensor: Tensor, *device: Any) -> Tensor:
    if isinstance(tensor, OnCard):
        raise RuntimeError(f"cannot pin '{_type(tensor)}' only dense CPU tensors can be pinned")
    return tensor.clone()


def _not_numpy(tensor: Tensor, *more: Any, **named: Any) -> None:
    raise TypeError(ONLY_CPU)


PROPERTIES: dict[Any, Any] = {
    Tensor.device.__get__: CARD,  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
    Tensor.is_meta.__get__: False,  # type: ignore[attr-defined]
}
TOLD: dict[Any, Callable[..., Any]] = {  # of a tensor on the card
    Tensor.data.__set__: _set_data,  # type: ignore[attr-defined]
    Tensor.numpy: _not_numpy,
    Tensor.__array__: _not_numpy,
    Tensor.tolist: lambda tensor: tensor.here.tolist(),
    Tensor.type: _type,
    Tensor.get_device: lambda tensor: 0,
    Tensor.data_ptr: lambda tensor: tensor.here.data_ptr(),
    Tensor.untyped_storage: lambda tensor: tensor.here.untyped_storage(),
    Tensor.is_pinned: lambda tensor, *device: False,
    Tensor.__repr__: lambda tensor, **named: f"{tensor.here!r} on {CARD}",
}
NAMED: dict[Any, Callable[..., Any]] = {  # of any, with "cuda" named already
    Tensor.cuda: lambda tensor, device=None, non_blocking=False, **more: tensor.to(BELOW, non_blocking=non_blocking),
    Tensor.data.__set__: _set_data,  # type: ignore[attr-defined]
    Tensor.pin_memory: _pinned,
    Tensor.new_tensor: _new_tensor,
} | {func: functools.partial(_from_data, func) for func in (torch.tensor, torch.as_tensor, torch.asarray)}


def _told_of(card: Card) -> dict[str, Any]:
    """The functions of `torch.cuda` that answer for the card."""
    properties = SimpleNamespace(name=NAME, total_memory=MEMORY, major=8, minor=0, multi_processor_count=1)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: card.process == os.getpid(),
        "init": card.touch,
        "_lazy_init": card.touch,
        "_is_in_bad_fork": lambda: card.process not in (None, os.getpid()),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: NAME,
        "get_device_capability": lambda device=None: (8, 0),
        "get_device_properties": lambda device=None: properties,
        "is_bf16_supported": lambda including_emulation=True: True,
        "synchronize": lambda device=None: setattr(card, "synchronised", card.synchronised + 1),
        "mem_get_info": lambda device=None: (MEMORY // 2, MEMORY),
        "empty_cache": lambda: None,
        "memory_allocated": lambda device=None: card.peak,
        "max_memory_allocated": lambda device=None: card.peak,  # of the largest tensor alone
        "reset_peak_memory_stats": lambda device=None: setattr(card, "peak", 0),
        "manual_seed": card.seed,
        "manual_seed_all": card.seed,
        "get_rng_state": lambda device="cuda": card.random.get_state(),
        "set_rng_state": lambda state, device="cuda": card.random.set_state(state),
        "get_rng_state_all": lambda: [card.random.get_state()],
        "set_rng_state_all": lambda states: card.random.set_state(states[0]),
    }


BUILT_FOR_CUDA = torch.version.cuda is not None


@contextlib.contextmanager
def pretended_cuda(patch: pytest.MonkeyPatch) -> Iterator[Card]:
    """A card, for as long as the block runs: `--device auto` finds it.

    What is patched is undone by the owner of `patch`, so that a test may patch more of the same. Skips the test with a
    torch that is built for CUDA, whose accelerator asks its driver whatever is patched.
    """
    if BUILT_FOR_CUDA:
        pytest.skip("a card is pretended to a torch without CUDA")
    card = Card()
    CARDS[:] = [card]
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    with torch.autograd.set_multithreading_enabled(False):
        for name, answers in _told_of(card).items():
            patch.setattr(torch.cuda, name, answers)
        patch.setattr(torch.version, "cuda", "13.0")
        patch.setattr(torch, "Generator", Generator)
        patch.setattr(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
        patch.setattr(torch.backends.cudnn, "allow_tf32", True)  # as torch begins; what turns it off is undone
        torch.__future__.set_swap_module_params_on_conversion(True)  # a parameter stays the same object, as on a card
        try:
            with Naming(), Watching():
                yield card
        finally:
            torch.__future__.set_swap_module_params_on_conversion(swaps)
