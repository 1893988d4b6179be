"""Contract checks that every registered part must pass, and toy data for them; plug-ins can run them in their tests.

    from graftwork.testing import check_method

    def test_prefix():
        check_method("prefix", {"length": 4})

A check raises `AssertionError` with the broken promise as its message.
"""

from __future__ import annotations

from graftwork.testing.backbone_contract import check_backbone
from graftwork.testing.kind_contract import check_kind
from graftwork.testing.meter_contract import check_meter
from graftwork.testing.method_contract import check_method
from graftwork.testing.metric_contract import check_metric
from graftwork.testing.suite_contract import check_suite
from graftwork.testing.tiny_data import tiny_bench, tiny_dataset
from graftwork.testing.tokenizer_contract import check_tokenizer

__all__ = [
    "check_backbone",
    "check_kind",
    "check_meter",
    "check_method",
    "check_metric",
    "check_suite",
    "check_tokenizer",
    "tiny_bench",
    "tiny_dataset",
]
