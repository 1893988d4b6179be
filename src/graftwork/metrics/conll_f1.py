"""CoNLL F1: the harmonic mean of precision and recall of spans, as read by the script of the CoNLL shared tasks.

Equal to FB1 of `conlleval`, and to seqeval's default mode: an I- that continues nothing begins a span.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.mean_scores import RatioScore
from graftwork.targets.tag_spans import span_counts

metrics.register("conll_f1")(RatioScore(partial(span_counts, metric="conll_f1", strict=False)))
