"""A second device made of the processor: tensors on it say that they are elsewhere, and mix with no others.

Torch's device "meta" lends its name, for a processor without accelerator knows no other. A tensor moved there keeps its
numbers, so a whole run computes there bit for bit what it computes on the processor; and what was left on one side when
it is needed on the other is an error, as it is on an accelerator.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim import adam
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

NAME = "meta"
MOVES = ("_to_copy.default", "copy_.default")
CREATING = (Tensor.__getitem__, Tensor.__setitem__, Tensor.backward)  # tensors of their own: indices, zeros
INDEXED = ("index.Tensor", "index_put_.default", "_index_put_impl_.default")  # indices may lie on the processor


class Elsewhere(Tensor):
    """A tensor of the second device; `here` is its content."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> Elsewhere:
        dense = here.layout == torch.strided
        made: Elsewhere = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            here.shape,
            strides=here.stride() if dense else None,
            storage_offset=here.storage_offset() if dense else None,
            dtype=here.dtype,
            layout=here.layout,
            device=torch.device(NAME),
        )
        made.here = here
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__self__", None) is Tensor.data and func.__name__ == "__set__":
            args[0].here = args[1].here
            return None
        if func is Tensor.tolist:
            return args[0].here.tolist()
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return computed(func, args, kwargs or {})


class Placing(TorchFunctionMode):
    """Makes what is moved to the second device, or created there, by whichever function is told its name."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = any(_is_name(item) for item in (*args, *(kwargs or {}).values()))
        with Watching() if named or func in CREATING else contextlib.nullcontext():
            return func(*args, **(kwargs or {}))


class Watching(TorchDispatchMode):
    """Sees every operator, and is too slow to be always there."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What `func` gives, on the side of its arguments or where it was asked for."""
    name, target = func.__name__, kwargs.get("device")
    flat, shape = tree_flatten((args, kwargs))
    there = [item for item in flat if isinstance(item, Elsewhere)]
    if there and name not in MOVES:
        watched = [args[0], *args[2:3]] if name in INDEXED else flat
        here = [item for item in watched if isinstance(item, Tensor) and not isinstance(item, Elsewhere) and item.dim()]
        assert not here, f"{name}: some tensors are on the processor, some are not"
    plain, named = tree_unflatten([_content(item) for item in flat], shape)
    result = func(*plain, **named)
    if func._schema.is_mutable:
        return args[0] if isinstance(args[0], Tensor) else result
    moved = torch.device(target).type == NAME if target is not None else bool(there)
    with torch.inference_mode(False):
        return tree_map(lambda item: Elsewhere(item) if isinstance(item, Tensor) else item, result) if moved else result


def _content(item: Any) -> Any:
    if isinstance(item, Elsewhere):
        return item.here
    return torch.device("cpu") if _is_name(item) else item


def _is_name(item: Any) -> bool:
    return isinstance(item, str | torch.device) and str(item) == NAME


@contextlib.contextmanager
def second_device(monkeypatch: pytest.MonkeyPatch, resolving: Sequence[Any]) -> Iterator[str]:
    """Its name, for as long as it is there; `resolving` are the modules that resolve the names of devices."""
    known: Callable[[str], str] = resolving[0].resolve_device
    for module in resolving:
        monkeypatch.setattr(module, "resolve_device", lambda name: name if name == NAME else known(name))
    monkeypatch.setattr(adam, "_device_dtype_check_for_fused", lambda *settings, **more: None)
    monkeypatch.setattr(torch, "autocast", lambda *settings, **more: contextlib.nullcontext())
    overwrites = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with torch.autograd.set_multithreading_enabled(False), Placing():
            yield NAME
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(overwrites)
