"""Other libraries' ways to make a sentence-transformers network smaller, started by `beside_peers.py`.

One JSON line in, one out: first `{"make": NAME, …}`, then `{"answer": TEXTS}`. Nothing of Graftwork is imported: the
libraries may be installed in an environment of their own.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

PACKAGES = ("setfit", "model2vec", "optimum", "optimum-onnx", "sentence-transformers", "transformers", "torch")
STEPS = 500  # of SetFit's distillation, as in its documentation
RATES = (2e-5, 2e-4)  # its learning rates: the default, and ten times that
WIDTH = 256  # of model2vec's vectors, its default
Answer = Callable[[Sequence[str]], Sequence[int]]


def versions() -> dict[str, str]:
    """Return the versions that are installed."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def accuracy(answer: Answer, rows: dict[str, Any]) -> float:
    """Return the share of right answers."""
    return float(np.mean(np.asarray(answer(rows["texts"])) == np.asarray(rows["labels"])))


def best(candidates: dict[str, Answer], asked: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
    """Return the candidate that is best on validation, and the score of each there."""
    scores = {name: accuracy(answer, asked["validation"]) for name, answer in candidates.items()}
    kept = max(scores, key=lambda name: scores[name])
    return candidates[kept], {"kept": kept, "validation": scores}


def sentence_transformers_int8(asked: dict[str, Any], work: str) -> tuple[Answer, dict[str, Any]]:
    """Quantise the teacher with Optimum for onnxruntime, per tensor and per channel; its last layer gives logits."""
    import onnxruntime
    from optimum.onnxruntime.configuration import AutoQuantizationConfig
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.backend import export_dynamic_quantized_onnx_model

    def opened(**settings: Any) -> SentenceTransformer:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        named = {"session_options": options, "provider": "CPUExecutionProvider"} | settings
        return SentenceTransformer(asked["teacher"], backend="onnx", device="cpu", model_kwargs=named)

    whole = opened(export=True)
    candidates: dict[str, Answer] = {}
    for name, by_channel in (("per tensor", False), ("per channel", True)):
        settings = AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=by_channel)
        export_dynamic_quantized_onnx_model(whole, settings, asked["teacher"], file_suffix=f"int8_{by_channel:d}")
        model = opened(file_name=f"onnx/model_int8_{by_channel:d}.onnx")
        candidates[name] = lambda texts, model=model: model.encode(list(texts), batch_size=32).argmax(axis=1).tolist()
    return best(candidates, asked)


def setfit_distillation(asked: dict[str, Any], work: str) -> tuple[Answer, dict[str, Any]]:
    """Distil the teacher's embeddings into another network, on all texts; its head learns the teacher's answers."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from setfit import DistillationTrainer, SetFitModel, TrainingArguments
    from sklearn.linear_model import LogisticRegression

    body = SentenceTransformer(modules=list(SentenceTransformer(asked["teacher"], device="cpu"))[:3], device="cpu")
    train = asked["train"]
    head = LogisticRegression(max_iter=1000).fit(body.encode(train["texts"]), train["labels"])
    teacher = SetFitModel(model_body=body, model_head=head)
    candidates: dict[str, Answer] = {}
    for rate in RATES:
        student = SetFitModel.from_pretrained(asked["student"])
        settings = TrainingArguments(
            output_dir=f"{work}/{rate}", batch_size=16, max_steps=STEPS, body_learning_rate=rate, report_to="none"
        )
        texts = Dataset.from_dict({"text": [*train["texts"], *asked["texts"]]})
        DistillationTrainer(teacher_model=teacher, student_model=student, args=settings, train_dataset=texts).train()
        candidates[f"learning rate {rate:g}"] = lambda texts, student=student: student.predict(
            list(texts), as_numpy=True
        ).tolist()
    return best(candidates, asked)


def model2vec_distillation(asked: dict[str, Any], work: str) -> tuple[Answer, dict[str, Any]]:
    """Make word vectors of the teacher's encoder and train a classifier on them, with the labels and with answers."""
    from model2vec.distill import distill
    from model2vec.train import StaticModelForClassification

    train, further = asked["train"], asked["texts"]
    rows = {
        "labels": (train["texts"], train["labels"]),
        "labels and the teacher's answers": ([*train["texts"], *further], [*train["labels"], *asked["answers"]]),
    }
    candidates: dict[str, Answer] = {}
    for name, (texts, labels) in rows.items():
        vectors = distill(model_name=asked["teacher"], pca_dims=WIDTH, device="cpu")
        classifier = StaticModelForClassification.from_static_model(model=vectors)
        classifier.fit(list(texts), [str(label) for label in labels], device="cpu")
        pipeline = classifier.to_pipeline()
        candidates[name] = lambda texts, pipeline=pipeline: [int(one) for one in pipeline.predict(list(texts))]
    return best(candidates, asked)


MAKERS = {
    "sentence-transformers int8": sentence_transformers_int8,
    "SetFit distillation": setfit_distillation,
    "model2vec": model2vec_distillation,
}


def main() -> None:
    """Make what is asked for, then answer batch after batch."""
    answers, sys.stdout = sys.stdout, sys.stderr  # keep libraries' output out of the answers
    answer: Answer | None = None
    with tempfile.TemporaryDirectory() as work:
        for line in sys.stdin:
            asked = json.loads(line)
            began = time.process_time()
            if "make" in asked:
                answer, facts = MAKERS[asked["make"]](asked, work)
                said = facts | {"seconds": time.process_time() - began, "versions": versions()}
            else:
                assert answer is not None
                said = {"labels": list(answer(asked["answer"])), "seconds": time.process_time() - began}
            print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
