"""Word accuracy: 1 minus the word error rate (WER), the edits that turn what was written into the reference, for each
word of it (Hunt 1990, doi:10.1016/0167-6393(90)90009-L).

1 - `jiwer.wer` of all texts in lower case, without punctuation. Below 0 where errors outnumber words.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.mean_scores import RatioScore
from graftwork.targets.text_scores import edit_statistics

metrics.register("word_accuracy")(RatioScore(partial(edit_statistics, "word_accuracy", str.split), of_errors=True))
