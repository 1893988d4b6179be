"""Spearman's rank correlation of predicted and true numbers (Spearman 1904).

It equals `scipy.stats.spearmanr` on the whole sample, but is 0 for constant predictions. A bootstrap of the statistics
keeps the ranks in the whole sample and does not rank each resample again: a close approximation from about a hundred
examples on.
"""

from __future__ import annotations

from scipy.stats import rankdata

from graftwork.registry import metrics
from graftwork.targets.correlation import Correlation

metrics.register("spearman")(Correlation("spearman", rankdata))
