"""F1 of answers: word overlap of each answer with the most similar gold answer, averaged over questions.

Equal to F1 of the official SQuAD 1.1 evaluation; of 2.0 where some questions have no answer.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.answer_scores import words_f1
from graftwork.targets.answer_texts import likeness
from graftwork.targets.mean_scores import MeanScore

metrics.register("span_f1")(MeanScore(partial(likeness, metric="span_f1", like=words_f1)))
