"""ROUGE-L: F1 of the longest series of words that a written text and its reference have in the same order
(Lin 2004, aclanthology.org/W04-1013).

Equal to the F-measure `rougeL` of Google's rouge-score without stemming, averaged over texts.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.mean_scores import MeanScore
from graftwork.targets.text_scores import rouge_f1

metrics.register("rougel")(MeanScore(partial(rouge_f1, "rougel", "rougeL")))
