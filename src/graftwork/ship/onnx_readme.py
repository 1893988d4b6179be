"""The README of a folder exported to ONNX, and a short program in it that needs onnxruntime, tokenizers and numpy."""

from __future__ import annotations

from textwrap import dedent

from graftwork.core.method import THRESHOLDS_FACT
from graftwork.module.task_module import TaskModule

DOCKERFILE = """\
FROM python:3.12-slim
RUN pip install --no-cache-dir numpy onnxruntime tokenizers
WORKDIR /task
COPY . .
ENTRYPOINT ["python", "example.py"]
"""
HEAD = '''\
"""Answers with an exported task: python example.py {usage}"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

HERE = Path(__file__).parent
TOLD = json.loads((HERE / "graftwork.json").read_text(encoding="utf-8"))
READER, TASK = TOLD["export"]["reader"], TOLD["task"]
TOKENIZER = Tokenizer.from_file(str(HERE / "tokenizer.json"))  # it truncates at READER["max_length"]
SESSION = onnxruntime.InferenceSession(str(HERE / "model.onnx"))


def logits(sequences):
    """Logits, one row per {row}; a sequence is {sequence}."""
    encoded = TOKENIZER.encode_batch(sequences{options})
    ids, types, mask = (np.zeros((len(encoded), max(map(len, encoded))), np.int64) for _ in range(3))
    ids[:] = READER["pad_id"]
    for row, one in enumerate(encoded):
        ids[row, : len(one)], types[row, : len(one)], mask[row, : len(one)] = one.ids, one.type_ids, 1
    given = {{"input_ids": ids, "token_type_ids": types, "attention_mask": mask}}
'''
WORDS = """\
    given["words"] = np.zeros(ids.shape, bool)  # True at the first token of each word
    for row, one in enumerate(encoded):
        seen = set()
        for place, word in enumerate(one.word_ids):
            given["words"][row, place] = word is not None and word not in seen
            seen.add(word)
"""
PASSAGE = """\
    given["words"] = np.zeros(ids.shape, bool)  # True at the first token of each word of the passage
    for row, one in enumerate(encoded):
        words = [word if part == 1 else None for word, part in zip(one.word_ids, one.sequence_ids)]
        for place, word in enumerate(words):
            given["words"][row, place] = word is not None and word not in words[:place]
        given["words"][row, 0] = True  # for "no answer"
"""
RUN = """\
    return SESSION.run(None, {one.name: given[one.name] for one in SESSION.get_inputs()})[0]
"""
SEQUENCES = {  # roles -> (arguments of the program, a row, a sequence, how the arguments become sequences)
    ("text",): ('"a text" …', "text", "a text", "sys.argv[1:]"),
    ("text_a", "text_b"): ('"a text" "its partner" …', "pair", "a pair", "[*zip(sys.argv[1::2], sys.argv[2::2])]"),
    ("text", "choices"): ('"a text" CHOICE CHOICE …', "choice", "a pair", "[(sys.argv[1], c) for c in sys.argv[2:]]"),
    ("words",): ("WORD WORD …", "word", "a list of words", '[[f" {word}" for word in words]]'),
    ("question", "words"): (
        '"a question" WORD WORD …  (a passage that fits)',
        'word, after one for "no answer"',
        "a question and a list of words",
        '[([sys.argv[1]], [f" {word}" for word in words])]',
    ),
}
SPAN = """\
scores = found[1:, :1] + found[None, 1:, 1]  # from each word, to each word
every = np.ones(scores.shape, bool)
scores[np.tril(every, -1) | np.triu(every, 30)] = -np.inf  # an answer has at most 30 words
first, last = np.unravel_index(scores.argmax(), scores.shape)
silent = TASK.get("unanswerable") and found[0].sum() >= scores.max()
print("" if silent else " ".join(words[first : last + 1]))
"""
APART = "a text; those of a pair follow each other"
ANSWER = {  # kind -> code that prints predictions from logits
    "classification": 'print(*[TASK["labels"][best] for best in found.argmax(axis=1)], sep="\\n")',
    "tagging": 'print(*[TASK["labels"][best] for best in found.argmax(axis=1)])',
    "multilabel": 'for row in found:\n    print(*[label for label, logit in zip(TASK["labels"], row) if logit > 0])',
    "regression": 'mean, deviation = TASK["scale"]\nprint(*(found[:, 0] * deviation + mean), sep="\\n")',
    "span": SPAN,
    "choice": "print(sys.argv[2:][found[:, 0].argmax()])",
    "ranking": 'print(*[sys.argv[2:][i] for i in (-found[:, 0]).argsort()], sep="\\n")',
}
ANSWER_BY_COSTS = """\
labels = TASK["labels"]
costs = np.array([[TASK["costs"][true][said] for said in labels] for true in labels])
chances = np.exp(found - found.max(axis=1, keepdims=True))
print(*[labels[best] for best in (chances @ costs).argmin(axis=1)], sep="\\n")
"""


def example_of(module: TaskModule) -> str:
    """Return example.py, which prints a prediction per input, or the logits of a kind that is not in `ANSWER`."""
    usage, row, sequence, given = SEQUENCES[module.roles]
    two = len(module.roles) > 1 and "words" not in module.roles
    apart = two and module.backbone is not None and module.backbone.card.towers == 2
    sequence = APART if apart else sequence
    options = ", is_pretokenized=True" if "words" in module.roles else ""
    head = HEAD.format(usage=usage, row=row, sequence=sequence, options=options)
    given = f"[text for pair in {given} for text in pair]" if apart else given
    least = len(module.roles) + (module.roles[-1] == "choices")
    lines = [f"if len(sys.argv) <= {least}:", "    sys.exit(__doc__)"]
    if module.roles[-1] == "words":
        lines.append(f'words = " ".join(sys.argv[{least}:]).split()')
    lines.append(f"found = logits({given})")
    if THRESHOLDS_FACT in module.description["facts"]:
        shifted = "found[0]" if module.task.kind == "span" else "found"  # of a span the score of no answer
        lines.append(f'{shifted} = {shifted} + np.array(TOLD["facts"]["{THRESHOLDS_FACT}"])  # chosen on validation')
    costs = module.task.kind == "classification" and module.task.settings.costs is not None
    lines += (ANSWER_BY_COSTS if costs else ANSWER.get(module.task.kind, "print(found)")).splitlines()
    body = "".join(f"    {line}\n" for line in lines)
    marked = PASSAGE if "question" in module.roles else WORDS if "words" in module.roles else ""
    return f'{head}{marked}{RUN}\n\nif __name__ == "__main__":\n{body}'


def readme_of(module: TaskModule) -> str:
    """Return README.md."""
    card = module.description["backbone"]
    return dedent(f"""\
        # {module.task.name}, for ONNX

        A task of Graftwork ({module.task.kind}), trained with {module.description["method"]["name"]} on {card["id"]}.

        - `model.onnx`: from tokens to logits, for any number of rows of any length up to {card["max_length"]} tokens
        - `tokenizer.json`: for the library tokenizers; it truncates, and pads nothing
        - `graftwork.json`: labels, scores, settings, what was compared when it was exported, and the hash of each file
        - `selftest.json`: inputs and their logits
        - `example.py`: the program below; `Dockerfile`: an image that runs it

        With Graftwork it opens like a task module: `graft predict FOLDER "…"`. Without, with numpy, onnxruntime and
        tokenizers:

        ```python
        """) + (
        f"{example_of(module)}```\n\n"
        "Inputs of the graph are 64-bit integers (rows, length): `input_ids`, `attention_mask` (1 at a token, 0 at\n"
        "the padding on the right) and, where the network has them, `token_type_ids`.\n\n"
        "Java: `ai.onnxruntime` runs the graph, and `ai.djl.huggingface.tokenizers.HuggingFaceTokenizer` reads\n"
        "tokenizer.json. JavaScript: `onnxruntime-node` or `onnxruntime-web` (64-bit integers: `BigInt64Array`) and\n"
        "`@huggingface/tokenizers`. Both then truncate as tokenizer.json says; pad each batch to its longest row.\n"
    )


def bank_readme_of(module: TaskModule, tasks: list[str]) -> str:
    """Return README.md of an exported bank; `module` is any of its tasks."""
    card = module.description["backbone"]
    return dedent(f"""\
        # {len(tasks)} tasks on {card["id"]}, for ONNX

        - `model.onnx`: the backbone, once. Adapters are inputs of the graph: `shelf_N|place|weight`, stacked over tasks
          with slot 0 all zero, and `slot_N`, the slot of each row's task. It gives `pooled_D` (rows, width) or, for
          words, `states_D` (rows, length, width) after D blocks.
        - `tokenizer.json`: for the library tokenizers; it truncates at {card["max_length"]} tokens, and pads nothing
        - `tasks/NAME.json`: labels, roles, thresholds, scores; `tasks/NAME.safetensors`: head, and
          adapters as the graph takes them: in fp16 or fp32, or in 8-bit integers, each with its `|scale`
        - `graftwork_bank.json`: slots of the tasks, what was compared, and the hash of each file

        With Graftwork it opens like a bank: `graft predict FOLDER TASK "…"`, `graft serve FOLDER`. Without, the logits
        of a task are, for features x (rows, width) and the arrays of its file:

        ```python
        x = sum(share * unit(pooled[depth]) for depth, share in enumerate(arrays["head.shares"]) if share)
        logits = x @ arrays["head.weight"].T + arrays["head.bias"]  # unit(p) = p / |p| * width ** 0.5
        ```

        For a pair whose texts are read separately, with features u and v, x is |u - v| followed by u * v.
        """)
