"""Exact match: the share of answers equal to a gold answer, up to case, punctuation and articles.

Equal to exact match of the official SQuAD 1.1 evaluation; of 2.0 where some questions have no answer.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.answer_scores import exact_match
from graftwork.targets.answer_texts import likeness
from graftwork.targets.mean_scores import MeanScore

metrics.register("exact_match")(MeanScore(partial(likeness, metric="exact_match", like=exact_match)))
