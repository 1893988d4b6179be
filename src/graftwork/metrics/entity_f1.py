"""Entity F1: the harmonic mean of precision and recall of spans, read strictly.

Equal to `seqeval.metrics.f1_score(mode="strict", scheme=IOB2)`: an I- that continues nothing is no span.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.mean_scores import RatioScore
from graftwork.targets.tag_spans import span_counts

metrics.register("entity_f1")(RatioScore(partial(span_counts, metric="entity_f1", strict=True)))
