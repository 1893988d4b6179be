"""Character accuracy: 1 minus the character error rate (CER), the edits that turn what was written into the reference,
for each character of it.

1 - `jiwer.cer` of all texts in lower case, without punctuation. Below 0 where errors outnumber characters.
"""

from functools import partial

from graftwork.registry import metrics
from graftwork.targets.mean_scores import RatioScore
from graftwork.targets.text_scores import edit_statistics

metrics.register("character_accuracy")(RatioScore(partial(edit_statistics, "character_accuracy", list), of_errors=True))
