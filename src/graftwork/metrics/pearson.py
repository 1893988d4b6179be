"""Pearson's correlation of predicted and true numbers: `scipy.stats.pearsonr`, but 0 for constant predictions."""

from __future__ import annotations

from graftwork.registry import metrics
from graftwork.targets.correlation import Correlation

metrics.register("pearson")(Correlation("pearson"))
