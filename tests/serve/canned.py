"""What a server could say, for tests of the page: tasks of every kind, a board, answers, attention."""

from __future__ import annotations

from typing import Any

EVIL = "<img src=x onerror='document.title=`pwned`'>"
LONG = {f"intent_number_{i}": (0.5 if i == 0 else 0.5 / 76) for i in range(77)}


def cost(value: float | None, unit: str, grade: str = "meter") -> dict[str, Any]:
    return {"value": value, "unit": unit, "grade": grade}


COSTS = {
    "co2e_grams": cost(None, "g", "guess"),
    "energy_joules": cost(910.89, "J", "guess"),
    "money": cost(None, "", "model"),
    "peak_memory_bytes": cost(1303822336, "bytes", "counter"),
    "predict_latency_seconds": cost(0.0070013, "s"),
    "predict_per_second": cost(792.86, "per second"),
    "stored_bytes": cost(2439326, "bytes", "counter"),
    "train_flops": cost(23205041746944.0, "FLOP", "model"),
    "train_seconds": cost(96.72583, "s"),
    "trained_parameters": cost(606726, "parameters", "counter"),
}


def task(name: str, kind: str, inputs: list[list[str]], labels: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "inputs": inputs,
        "labels": list(labels),
        "method": {"name": "adapter", "size": 64},
        "version": 3,
        "scores": {"accuracy": 0.9664, "macro_f1": 0.9629},
        "costs": COSTS,
        "bytes": 2439326,
        "trained_parameters": 606726,
        "has_board": False,
    } | more


TEXT = [["text"]]
RUN = "54408718a4b6"
TASKS = [
    task("trec6", "classification", TEXT, ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"), has_board=True),
    task("banking77", "classification", TEXT, tuple(LONG)),
    task("evil", "classification", TEXT, (EVIL, "fine")),
    task("tickets", "multilabel", TEXT, ("refund", "delay", "damage")),
    task("stsb", "regression", [["text_a", "text_b"]], scores={"pearson": 0.85}),
    task("diseases", "tagging", [["text"], ["words"]], ("B-Disease", "I-Disease", "O"), scores={"entity_f1": 0.8}),
    task("upos", "tagging", [["text"], ["words"]], ("NOUN", "VERB", "DET"), costs=None),
    task("squad", "span", [["context", "question"]], scores={"span_f1": 0.53}),
    task("copa", "choice", [["choices", "text"]]),
    task("wiki", "ranking", [["choices", "text"]], scores={"mean_average_precision": 0.7}),
    task("blends", "generation", [["text_a", "text_b"]], scores={"chrf": 0.61}),
    task("flowers", "classification", [], ("rose", "tulip")),
    {"name": "torn", "failed": "the self-test gives other logits than on the day it was made"},
]
BANK = {"backbone": {"id": "minilm", "revision": "7c7bd9c5b487" * 5, "blocks": 6}, "precision": "bf16", "tasks": 12}
PROSE = "Anna🙂 Müller has lung cancer."


def scored(mean: float) -> dict[str, Any]:
    return {"accuracy": {"mean": mean, "sd": 0.004, "low": mean - 0.015, "high": mean + 0.013}}


def row(method: str, mean: float | None, **more: Any) -> dict[str, Any]:
    return {
        "method": method,
        "config": {"name": method},
        "status": "ok",
        "n_seeds": 5,
        "n_failed": 0,
        "scores": {} if mean is None else scored(mean),
        "costs": COSTS,
        "below_majority": False,
        "runs": ["c7f1d0a2b394"],
        "errors": [],
        "dropped": None,
    } | more


BOARD = {
    "format": 1,
    "task": {"name": "trec6"},
    "backbone": BANK["backbone"],
    "rows": [
        row("adapter", 0.9664, runs=[RUN]),
        row("linear_probe", 0.926),
        row("tfidf_svm", 0.9),
        row("constant", 0.1, below_majority=True),
        row("majority", 0.188),
        row("bitfit", None, status="diverged", n_seeds=0),
        row("full", None, status="out_of_memory", n_seeds=0, errors=[f"no memory {EVIL}\nmore"]),
    ],
    "headline_metric": "accuracy",
    "frontier": ["adapter", "majority"],
    "frontier_cost": "train_seconds",
    "differences": [],
    "search_costs": {},
    "notes": ["not enough runs to rank: 5 runs of a method"],
}
SAID = {
    "answer": "The best is adapter with accuracy 96.6 ± 0.4 [95.1, 98.0]; nothing cheaper to train goes unbeaten.",
    "verdicts": ["adapter is better than linear_probe by 4.0 [2.0, 6.1]"],
    "search": "Its runs, shared work counted once: time 36 min 27 s",
    "warnings": ["3 rows stand in two splits"],
}
CARD = f"# trec6: adapter\n\nA Graftwork task module. {EVIL}\n"


def told(name: str) -> dict[str, Any] | None:
    """What `GET /v1/tasks/NAME` says."""
    found = next((each for each in TASKS if each["name"] == name and "failed" not in each), None)
    if found is None:
        return None
    more: dict[str, Any] = {"recipe": {"epochs": 5, "batch_size": 32}, "run": RUN, "card": CARD}
    more["versions"] = [found | {"name": "trec6@1", "version": 1}] if name == "trec6" else []
    board = {"board": BOARD, "board_in_words": SAID} if found["has_board"] else {"board": None}
    return found | more | board


ANSWERS: dict[str, dict[str, Any]] = {
    "trec6": {
        "label": "HUM",
        "probabilities": {"ABBR": 0.0001, "DESC": 0.04, "ENTY": 0.02, "HUM": 0.92, "LOC": 0.01, "NUM": 0.0099},
    },
    "banking77": {"label": "intent_number_0", "probabilities": LONG},
    "evil": {"label": EVIL, "probabilities": {EVIL: 0.75, "fine": 0.25}},
    "tickets": {"label": ["refund", "delay"], "probabilities": {"refund": 0.9, "delay": 0.6, "damage": 0.1}},
    "stsb": {"value": 3.14159},
    "blends": {
        "text": f"one {EVIL}\n two",
        "probability": 0.0408,
        "log_probability": -3.2,
        "cut": True,
        "alternatives": [{"text": "", "probability": 0.0183, "log_probability": -4.0, "cut": False}],
    },
    "diseases": {
        "spans": [
            {"label": "Person", "start": 0, "end": 12, "text": "Anna🙂 Müller", "probability": 0.6},
            {"label": EVIL, "start": 17, "end": 28, "text": "lung cancer", "probability": 0.97},
        ]
    },
    "upos": {"tags": ["NOUN", "VERB"], "words": ["cards", EVIL], "probabilities": [0.9, 0.8]},
    "squad": {
        "answer": "Müller",
        "start": 6,
        "end": 12,
        "probability": 0.7,
        "n_best": [
            {"answer": "Müller", "start": 6, "end": 12, "probability": 0.7},
            {"answer": "", "start": None, "end": None, "probability": 0.2},
        ],
    },
    "copa": {"choice": "two", "index": 1, "probabilities": [0.3, 0.7]},
    "wiki": {"ranking": [{"choice": "two", "index": 1, "score": 1.25}, {"choice": "one", "index": 0, "score": -0.5}]},
}


def answered(asked: dict[str, Any]) -> dict[str, Any]:
    """What `POST /v1/predict` answers to one row, or to many."""
    if "rows" in asked:
        return {"rows": [answered(row)["rows"][0] for row in asked["rows"]]}
    given = sorted(name for name in asked if name != "task")
    every = [each["name"] for each in TASKS if given in each.get("inputs", ())]
    names = every if asked["task"] == "*" else [asked["task"]] if isinstance(asked["task"], str) else asked["task"]
    return {
        "rows": [
            {"answers": {name: ANSWERS[name.partition("@")[0]] for name in names}, "cut": "very long" in str(asked)}
        ]
    }


def attended(asked: dict[str, Any]) -> dict[str, Any]:
    """What `POST /v1/attention` answers: a word reads mostly the one before it, the more so in a higher head."""
    words = ["[CLS]", *asked["text"].split(), "[SEP]"]
    weights = []
    for head in range(12):
        near = 0.4 + 0.04 * head
        rest = (1 - near) / (len(words) - 1)
        rows = [[near if j == max(i - 1, 0) else rest for j in range(len(words))] for i in range(len(words))]
        weights.append(rows)
    added = [i in (0, len(words) - 1) for i in range(len(words))]
    return {"words": words, "added": added, "weights": weights, "blocks": 6, "heads": 12, "cut": False}
