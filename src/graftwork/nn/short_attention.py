"""Attention for short texts on a CPU: the softmax as one exponential, with its sum inside a matrix product.

A softmax over a last axis of ten to sixty keys is not vectorised, forward or backward, and takes longer than the
products around it. Here exp runs over flat memory; the sum over keys is one more column of the product
with the values, and in backward the softmax's correction is one more column of the product with the gradient (the
rearrangement of Dao et al. 2022, arXiv:2205.14135, without its tiles). Padded keys are zero rows of the values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as dropped
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.hooks import RemovableHandle

from graftwork.nn.tracing import being_traced

NAME = "graftwork"
HOOKS = "_key_hooks"  # attribute of an attention module: its hooks
SAFE = 60.0  # exp(60) and its sums stay far inside fp32 and bf16; scores beyond it are shifted first


class ShortAttention(torch.autograd.Function):
    """softmax(q kᵀ · scale) v over the real keys."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, real: Tensor | None, scale: float) -> Tensor:
        """Map queries (S, H, T, d), keys and values (S, H, K, d), `real` (S, K) bool or None to (S, H, T, d)."""
        sequences, heads, _, width = value.shape
        q, k = query.flatten(0, 1), key.flatten(0, 1)  # (S H, T, d), (S H, K, d)
        v = _with_ones(value, real)  # (S H, K, d + 1)
        weights = _exponentials(_product(q, k.transpose(1, 2), scale), real, heads)  # (S H, T, K), unnormalised
        summed = torch.bmm(weights, v)
        share = summed[..., width:].reciprocal()  # (S H, T, 1)
        output = summed[..., :width] * share
        ctx.save_for_backward(q, k, v, weights, share, output, real)
        ctx.scale = scale
        return output.view(sequences, heads, query.shape[2], width)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `forward`'s tensors, those that are required."""
        q, k, v, weights, share, output, real = ctx.saved_tensors
        outer = gradient.shape[:2]
        g = gradient.reshape(output.shape) * share  # (S H, T, d)
        of_query = of_key = of_value = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            correction = (g * output).sum(dim=-1, keepdim=True).neg_()  # (S H, T, 1)
            of_scores = torch.bmm(torch.cat([g, correction], dim=-1), v.transpose(1, 2)).mul_(weights)  # (S H, T, K)
            if ctx.needs_input_grad[0]:
                of_query = _product(of_scores, k, ctx.scale).unflatten(0, outer)
            if ctx.needs_input_grad[1]:
                of_key = _product(of_scores.transpose(1, 2), q, ctx.scale).unflatten(0, outer)
        if ctx.needs_input_grad[2]:
            of_value = torch.bmm(weights.transpose(1, 2), g).unflatten(0, outer)
            if real is not None:
                of_value = of_value * real[:, None, :, None]
        return of_query, of_key, of_value, None, None


def _with_ones(value: Tensor, real: Tensor | None) -> Tensor:
    """Append a column of ones and zero the rows of padding: (S, H, K, d) -> (S H, K, d + 1)."""
    sequences, heads, length, width = value.shape
    wide = value.new_empty(sequences, heads, length, width + 1)
    wide[..., :width] = value
    wide[..., width] = 1.0
    if real is not None:
        wide *= real[:, None, :, None]
    return wide.flatten(0, 1)


def _product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    return torch.baddbmm(left.new_empty(()), left, right, beta=0, alpha=scale)


def _exponentials(scores: Tensor, real: Tensor | None, heads: int) -> Tensor:
    """Exponentiate (S H, T, K), in place; rows may be scaled freely, so they are shifted only if exp could overflow."""
    low, high = torch.aminmax(scores)
    if high <= SAFE and low >= -SAFE:
        return scores.exp_()
    if real is not None:  # a padded key must not be the maximum that pushes the real ones out of range
        scores = scores.masked_fill(~real.repeat_interleave(heads, dim=0)[:, None, :], -torch.inf)
    return (scores - scores.amax(dim=-1, keepdim=True)).exp_()


KeyHook = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # keys and values (S, H, T, d) -> (S, H, K, d), K >= T


def register_key_hook(module: nn.Module, hook: KeyHook) -> RemovableHandle:
    """Let `hook` replace the keys and values of an attention `module` until the handle is removed.

    The K - T added keys are in front of those of the text, and every query attends to them. H is the number of heads of
    the keys, which may be fewer than those of the queries.
    """
    hooks: OrderedDict[int, KeyHook] = module.__dict__.setdefault(HOOKS, OrderedDict())
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _after_hooks(module: nn.Module, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, int]:
    """Apply the hooks of `module` to keys and values (S, H, T, d); also return the number of keys added in front."""
    length = key.shape[2]
    for hook in module.__dict__.get(HOOKS, {}).values():
        key, value = hook(key, value)
    return key, value, key.shape[2] - length


def _extended_mask(mask: Tensor | None, added: int) -> Tensor | None:
    """Extend a mask (S, 1, T, K) by keys in front that every query sees."""
    if mask is None or not added:
        return mask
    if mask.stride(2) == 0:  # the same for every query: it stays a view
        return pad(mask[:, :, :1], (added, 0), value=True).expand(-1, -1, mask.shape[2], -1)
    return pad(mask, (added, 0), value=True)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    **unused: object,  # arguments of the interface for other kernels
) -> tuple[Tensor, None]:
    """Implement transformers' attention interface: (S, H, T, d) each, mask (S, 1, T, T) bool or None -> (S, T, H, d).

    `position_bias` (1, H, T, T) is added to the scores, as in T5; it is 0 for keys that hooks add.

    Keys and values first pass the hooks of `register_key_hook`; if they have fewer heads than the queries, each serves
    a group of adjacent query heads (Ainslie et al. 2023, arXiv:2305.13245). No weights are returned. Accelerators
    use torch's kernel; on a CPU it is slower than plain products at the lengths of a text. Masks that differ between
    queries (left-to-right and windowed networks) use a plain softmax.
    """
    key, value, added = _after_hooks(module, key, value)
    attention_mask = _extended_mask(attention_mask, added)
    if (shared := query.shape[1] // key.shape[1]) > 1:
        key, value = (heads.repeat_interleave(shared, dim=1) for heads in (key, value))
    scale = int(query.shape[-1]) ** -0.5 if scaling is None else scaling  # a constant where it is traced
    by_key = attention_mask is None or (attention_mask.shape[1] == 1 and attention_mask.stride(2) == 0)
    plain = softcap is not None  # scores stay within it, by tanh (Gemma 2): no kernel here does that
    if position_bias is not None:
        position_bias = pad(position_bias, (added, 0)).to(query.dtype)
        if attention_mask is not None:
            position_bias = position_bias.masked_fill(~attention_mask, torch.finfo(query.dtype).min)
    if query.is_cuda and not plain:
        mask = attention_mask if position_bias is None else position_bias
        output = scaled_dot_product_attention(query, key, value, mask, dropout, scale=scale)
    elif (
        by_key and dropout == 0.0 and not plain and position_bias is None and query.shape[2] > 1 and not being_traced()
    ):
        real = None if attention_mask is None else attention_mask[:, 0, 0]  # (S, K)
        output = ShortAttention.apply(query, key, value, real, scale)  # type: ignore[no-untyped-call]
    else:
        scores = torch.matmul(query, key.transpose(2, 3)) * scale  # (S, H, T, K)
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        if position_bias is not None:
            scores += position_bias
        elif attention_mask is not None:  # the lowest finite number, not -inf: a row of only padding must stay finite
            lowest = torch.finfo(scores.dtype).min
            if being_traced():  # onnxruntime adds a row of keys in half the time that it takes to choose by one
                scores = scores + torch.where(attention_mask, 0.0, lowest)
            else:
                scores = scores.masked_fill(~attention_mask, lowest)
        weights = scores.softmax(dim=-1)
        output = torch.matmul(dropped(weights, dropout) if dropout else weights, value)
    return output.transpose(1, 2).contiguous(), None


def visible_keys(*, allow_is_causal_skip: bool = False, **options: Any) -> Tensor | None:
    """Implement transformers' mask interface: bool (S, 1, T, T), True where a query sees a key; None if all see all.

    A mask that is the same for every query is an expanded view, which `attend` recognises by its stride.
    """
    from transformers.masking_utils import bidirectional_mask_function, sdpa_mask

    mask: Tensor | None = sdpa_mask(allow_is_causal_skip=False, **options)
    if mask is not None and options.get("mask_function") is bidirectional_mask_function:
        return mask[:, :, :1].expand_as(mask)
    return mask
