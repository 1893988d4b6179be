"""The pooled head, as every kind builds it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graftwork.core.backbone import Features
from graftwork.core.task import Task
from graftwork.registry import kinds
from graftwork.targets.linear_head import PooledHead


def features(pooled: torch.Tensor) -> Features:
    return Features(torch.zeros(3, 2, 8), torch.ones(3, 2, dtype=torch.bool), pooled)


@pytest.mark.parametrize(("kind", "outputs"), [("classification", 3), ("multilabel", 3), ("regression", 1)])
def test_every_kind_reads_the_pooled_features(kind: str, outputs: int) -> None:
    task = Task("t", Path("t"), labels=("a", "b", "c"))
    head = kinds.get(kind).build_head(task, 8)
    assert isinstance(head, PooledHead)
    pooled = torch.randn(3, 8)
    torch.testing.assert_close(head(features(pooled)), pooled @ head.out.weight.T + head.out.bias)
    assert head.out.weight.shape == (outputs, 8)


def test_logits_stay_in_fp32_under_autocast_and_bf16_features() -> None:
    head, pooled = PooledHead(8, 2), torch.randn(3, 8).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = head(features(pooled))
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, head(features(pooled.float())), rtol=0, atol=0)
