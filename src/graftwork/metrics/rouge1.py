"""ROUGE-1: F1 of the words that a written text shares with the reference most like it
(Lin 2004, aclanthology.org/W04-1013).

Equal to the F-measure `rouge1` of Google's rouge-score without stemming, averaged over texts.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.mean_scores import MeanScore
from graftwork.targets.text_scores import rouge_f1

metrics.register("rouge1")(MeanScore(partial(rouge_f1, "rouge1", "rouge1")))
