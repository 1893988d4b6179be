"""The questions of this benchmark: which contenders run on which data, and how their answers are evaluated."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from choosing import Chosen
from driver import Entrant, Heat
from pieces import Piece

Result = dict[str, Any]
LONG = 256  # tokens, to truncate imdb
PIECES = {
    "trec6": Piece("trec6"),
    "sst2": Piece("sst2"),
    "mrpc": Piece("mrpc"),
    "imdb": Piece("imdb", train=2_000, test=1_000, max_length=LONG),
    "rte": Piece("rte", max_length=LONG),
    "sms_spam": Piece("sms_spam"),
    "crowdflower_political_message": Piece("crowdflower_political_message"),
}
TUNED = ("trec6", "sst2", "mrpc", "imdb")  # data sets on which `full` is tuned
RACED = ("trec6", "mrpc", "sms_spam", "crowdflower_political_message")
RACE_ROWS = {"mrpc": 1_500, "crowdflower_political_message": 1_500}  # per file; with all rows a board takes an hour
PORTION = 640  # rows per epoch of the slowest peer: 20 steps of 32
SIZES = (1_000, 4_000, 16_000, 64_000)
BOARD = ("majority", "tfidf_svm", "linear_probe", "bitfit", "lora", "adapter", "top_layers", "full")
BOARD_PEERS = {  # method -> what the Trainer trains for it; other methods count as free for the peer
    "linear_probe": "head", "bitfit": "bias", "lora": "lora", "adapter": "lora", "top_layers": "top:2", "full": "all",
}  # fmt: skip
TRAINED = tuple(dict.fromkeys(BOARD_PEERS.values()))
COMPARE, EXHAUSTIVE = "graft compare", "graft compare --exhaustive"
RACING_BARS = {"times_as_long": 8.0, "points_lost": 0.3}  # at least, at most
LADDER = ("linear_probe", "top_layers", "adapter", "full")
TRAINER, DEFAULTS = "Trainer, best", "Trainer, run_glue"
BOARD_CONTENDERS = {"peers": TRAINER, "peers_at_defaults": DEFAULTS}  # for which a whole board is computed
NEAR, TIMES_AS_LONG = 0.995, 4.0  # share of the better full fit's test accuracy; the bar, at least


@dataclass(frozen=True)
class Bench:
    """The data folder, the extent of the measurement, and the function that runs a heat."""

    data: Path
    heat: Callable[[Heat], Result]
    chosen: Chosen
    backbone: str = "minilm"
    epochs: int | None = None  # override of a question's own number
    seeds: int | None = None
    rows: int | None = None  # at most, per file: to try the benchmark
    only: Sequence[str] = ()  # data sets; empty: all
    trains: Sequence[str] = ()  # trained parts of peers for which settings are chosen; empty: all

    def names(self, usual: Iterable[str]) -> list[str]:
        """Return the requested data sets of a question."""
        return [name for name in usual if name in self.only or not self.only]

    def piece(self, name: str) -> Piece:
        """Return a data set of `PIECES`, cut if the benchmark is only tried."""
        return PIECES[name].at_most(self.rows)

    def raced(self, name: str) -> Piece:
        """Return the part of it on which whole boards are measured."""
        return self.piece(name).at_most(RACE_ROWS.get(name))

    def ours(self, piece: Piece, method: str, name: str | None = None, off: Sequence[str] = ()) -> Entrant:
        """Return Graftwork's engine as an entrant."""
        settings = {"method": method, "backbone": self.backbone, "off": list(off)}
        return Entrant(name or f"graftwork {method}", "ours", self._on(piece) | settings)

    def peer(self, piece: Piece, name: str, settings: Mapping[str, Any], portion: int | None = None) -> Entrant:
        """Return the Trainer with these `PeerSettings`."""
        return Entrant(name, "peer", self._on(piece) | {"peer": dict(settings), "portion": portion})

    def best(self, piece: Piece, trains: str, name: str = TRAINER) -> Entrant:
        """Return the Trainer with the settings that were fastest at an equal score."""
        return self.peer(piece, name, self.chosen.best(trains, piece.name))

    def _on(self, piece: Piece) -> dict[str, Any]:
        return {"piece": asdict(piece), "data": str(self.data.absolute()), "by_epoch": False}

    def run(self, heat: Heat) -> Result:
        """Measure a heat with the requested number of epochs and seeds."""
        return self.heat(replace(heat, epochs=self.epochs or heat.epochs, seeds=self.seeds or heat.seeds))


def full(bench: Bench) -> Result:
    """Measure full fine-tuning: tokens per second, and each peer's time for the same rows relative to ours."""
    heats = []
    for name in bench.names(TUNED):
        piece = bench.piece(name)
        entrants = [
            bench.ours(piece, "full"),
            bench.best(piece, "all"),
            bench.peer(piece, "Trainer, dynamic fp32", {"padding": "dynamic"}),
            bench.peer(piece, DEFAULTS, {}, portion=PORTION),
        ]
        heats.append(bench.run(Heat(name, entrants, epochs=5, ratios=_against(entrants))))
    return {"heats": heats}


def machine_share(bench: Bench) -> Result:
    """Measure the share of the machine's bf16 matrix rate that full fine-tuning on sst2 reaches, real tokens only."""
    entrants = [bench.ours(bench.piece("sst2"), "full"), Entrant("machine", "machine", {})]
    heat = bench.run(Heat("sst2", entrants, epochs=5))
    return {"heats": [heat], "share": share(heat)}


def share(heat: Result) -> Result | None:
    """Return the share; FLOPs = 6 x the blocks' parameters x tokens + 12 x blocks x width x the sum of squared lengths.

    The second term is attention. Forward and backward, 2 FLOP per multiply-add, real tokens only. Pairs are consecutive
    epochs.
    """
    if heat["status"] != "ok":
        return None
    weights, attention = flops_of_an_epoch(heat["contenders"]["graftwork full"]["about"])
    by_turn: dict[int, dict[str, Any]] = {}
    for answer in heat["raw"]:
        if answer["do"] == "epoch":
            by_turn.setdefault(answer["turn"], {})[answer["contender"]] = answer
    pairs = [
        (weights + attention) / turn["graftwork full"]["seconds"] / turn["machine"]["flops_per_second"]
        for turn in by_turn.values()
    ]
    return {"flops_per_epoch": weights + attention, "attention_flops": attention, "shares": pairs}


def flops_of_an_epoch(ours: Mapping[str, Any]) -> tuple[float, float]:
    """Return the FLOPs of the blocks' weights, and of attention."""
    weights = 6.0 * ours["block_parameters"] * ours["tokens"]
    return weights, 12.0 * ours["blocks"] * ours["width"] * ours["squared_lengths"]


def side_by_side(bench: Bench) -> Result:
    """Measure two full fine-tuning runs on sst2 at once, one thread each, beside one run with both threads."""
    piece = bench.piece("sst2")
    settings = bench._on(piece) | {"methods": ["full"], "seeds": 2, "backbone": bench.backbone, "exhaustive": True}
    entrants = [Entrant(EXHAUSTIVE, "board", settings), bench.ours(piece, "full"), Entrant("machine", "machine", {})]
    heat = bench.heat(Heat("sst2", entrants, epochs=bench.epochs or 1))
    return {"heats": [heat], "together": together(heat)}


def together(heat: Result) -> Result | None:
    """Return the total rate of parallel runs, from the phases forward, backward, optimiser and other of their receipts.

    They begin together and take equally long, so the sum of their rates is the machine's rate.
    """
    if heat["status"] != "ok":
        return None
    ours, machine = heat["contenders"]["graftwork full"], heat["contenders"]["machine"]
    flops = sum(flops_of_an_epoch(ours["about"]))
    rate = sum(run["epochs"] * flops / run["seconds"] for run in found(heat, EXHAUSTIVE)["training"])
    alone, most = flops / ours["epoch_seconds"]["median"], machine["flops_per_second"]["median"]
    return {"flops_per_epoch": flops, "share": rate / most, "share_alone": alone / most, "times_as_fast": rate / alone}


def top_layers(bench: Bench) -> Result:
    """Measure training two blocks, 5 epochs x 5 seeds: total time, including the frozen pass."""
    heats = []
    for name in bench.names(("trec6", "sst2")):
        piece = bench.piece(name)
        entrants = [bench.ours(piece, "top_layers:k=2"), bench.best(piece, "top:2")]
        heats.append(bench.run(Heat(name, entrants, seeds=5, epochs=5, ratios=_against(entrants))))
    return {"heats": heats}


def adapters(bench: Bench) -> Result:
    """Measure adapter and LoRA per epoch against peft's best LoRA; peft has no bottleneck adapter."""
    heats = []
    for name in bench.names(("trec6", "sst2")):
        piece = bench.piece(name)
        peers = [
            bench.best(piece, "lora", "peft LoRA, best"),
            bench.peer(
                piece, "peft LoRA, dynamic fp32", {"trains": "lora", "padding": "dynamic", "learning_rate": 2e-3}
            ),
        ]
        entrants = [bench.ours(piece, "adapter"), bench.ours(piece, "lora"), *peers]
        ratios = [(ours.name, peer.name) for ours in entrants[:2] for peer in peers]
        heats.append(bench.run(Heat(name, entrants, epochs=5, ratios=ratios)))
    return {"heats": heats}


RULES = {  # method -> switches that apply to it
    "full": ("bf16", "length_buckets", "short_padding", "touched_rows", "no_dropout"),
    "top_layers:k=2": ("bf16", "length_buckets", "prefix_cache", "shared_pass", "no_dropout"),
    "lora": ("bf16", "length_buckets", "short_padding", "no_dropout", "no_frozen_gradients"),
}


def rules(bench: Bench) -> Result:
    """Measure the slowdown when each rule of the engine is switched off in turn, on trec6."""
    heats = []
    piece = bench.piece("trec6")
    for method, switches in RULES.items():
        entrants = [bench.ours(piece, method, "all rules")]
        entrants += [bench.ours(piece, method, f"without {switch}", [switch]) for switch in switches]
        heats.append(bench.run(Heat(method, entrants, seeds=2, epochs=3, ratios=_against(entrants))))
    return {"heats": heats}


def pairs(bench: Bench) -> Result:
    """Measure full fine-tuning on premises with short hypotheses: at their own lengths, or padded to the longer."""
    piece = bench.piece("rte")
    entrants = [
        bench.ours(piece, "full", "all rules"),
        bench.ours(piece, "full", "without own_lengths", ["own_lengths"]),
    ]
    entrants.append(bench.best(piece, "all"))
    return {"heats": [bench.run(Heat("rte", entrants, seeds=2, epochs=2, ratios=_against(entrants)))]}


def growth(bench: Bench) -> Result:
    """Measure seconds and peak memory of one epoch of sst2_glue by rows, each size in its own process."""
    heats = []
    for method in ("full", "top_layers:k=2"):
        sized = [(rows, Piece("sst2_glue", train=rows, test=500).at_most(bench.rows)) for rows in SIZES]
        entrants = [bench.ours(piece, method, f"{rows} rows", ["shared_pass"]) for rows, piece in sized]
        heats.append(bench.run(Heat(method, entrants, seeds=3, epochs=1)))
    return {"heats": heats, "slopes": {heat["label"]: slope(heat) for heat in heats}}


def slope(heat: Result) -> float | None:
    """Return the exponent e of seconds ~ rows^e between the smallest and the largest size."""
    points = [
        (entry["about"]["train_rows"], entry["fit_seconds"]["median"])
        for entry in heat["contenders"].values()
        if "fit_seconds" in entry
    ]
    (least, first), (most, last) = min(points), max(points)
    return math.log(last / first) / math.log(most / least) if most > least else None


def board(bench: Bench) -> Result:
    """Measure the whole board on trec6, 8 methods x 5 seeds, against the peers.

    The peers make the same runs one by one, at their best settings and at their defaults.
    """
    seeds, piece = bench.seeds or 5, bench.raced("trec6")
    slow = [bench.peer(piece, f"{DEFAULTS}: {trains}", {"trains": trains}, portion=PORTION) for trains in TRAINED]
    boards = _boards(bench, "trec6", seeds, [EXHAUSTIVE])
    heat = bench.heat(replace(boards, entrants=[*boards.entrants, *slow]))
    peers = {name: one_by_one(heat, seeds, EXHAUSTIVE, peer) for name, peer in BOARD_CONTENDERS.items()}
    return {"heats": [heat], "seeds": seeds} | peers


def racing(bench: Bench) -> Result:
    """Measure the whole board with its race, 8 methods x 3 seeds.

    It is compared with the same runs one by one with the peers (time), and with our own board without a race (time and
    the winner's score).
    """
    seeds = bench.seeds or 3
    heats = [bench.heat(_boards(bench, name, seeds, [COMPARE, EXHAUSTIVE])) for name in bench.names(RACED)]
    raced = {heat["label"]: race_of(heat, seeds) for heat in heats}
    return {"heats": heats, "seeds": seeds, "bars": RACING_BARS, "races": raced}


def _boards(bench: Bench, name: str, seeds: int, boards: Sequence[str]) -> Heat:
    """Return a heat of these boards and of the peers' runs for one of them. Two comparisons of each."""
    piece = bench.raced(name)
    settings = bench._on(piece) | {"methods": list(BOARD), "seeds": seeds, "backbone": bench.backbone}
    entrants = [Entrant(board, "board", settings | {"exhaustive": board == EXHAUSTIVE}) for board in boards]
    entrants += [bench.best(piece, trains, f"{TRAINER}: {trains}") for trains in TRAINED]
    return Heat(name, entrants, epochs=bench.epochs or 2)


def one_by_one(heat: Result, seeds: int, board: str, peer: str = TRAINER) -> Result | None:
    """Compute `peer`'s time for the runs of `board`: seeds x (start + epochs) of each, from medians.

    The epochs are those of our own runs' recipe. Majority and TF-IDF + SVM count as zero. Nothing is run.
    """
    if heat["status"] != "ok":
        return None
    epochs = found(heat, board)["epochs_of_a_run"]
    seconds = {}
    for method, trains in BOARD_PEERS.items():
        entry = heat["contenders"][f"{peer}: {trains}"]
        once = trains == "head" and peer == TRAINER  # at best, features of a frozen network are computed once
        epoch = entry["epoch_seconds"]["median"] / (entry.get("about") or {}).get("share", 1.0)
        seconds[method] = seeds * (entry["start_seconds"]["median"] + (1 if once else epochs) * epoch)
    ours = heat["contenders"][board]["epoch_seconds"]["median"]
    whole = sum(seconds.values())
    return {"computed": True, "epochs": epochs, "seconds": seconds, "sum": whole, "ratio": whole / ours}


def race_of(heat: Result, seeds: int) -> Result | None:
    """Return the time the race saved and the score it cost; test scores are means over seeds of each winner."""
    boards = {name: heat["contenders"][name] for name in (COMPARE, EXHAUSTIVE)}
    if any("error" in entry for entry in boards.values()):
        return None
    said = {name: found(heat, name) for name in boards}
    metric = said[COMPARE]["headline_metric"]
    winners = {
        name: {"method": one["best"], "test": one["test_by_method"][one["best"]][metric]} for name, one in said.items()
    }
    seconds = {name: entry["epoch_seconds"]["median"] for name, entry in boards.items()}
    return {
        "peers": one_by_one(heat, seeds, COMPARE),
        "metric": metric,
        "winners": winners,
        "points_lost": 100 * (winners[EXHAUSTIVE]["test"] - winners[COMPARE]["test"]),
        "exhaustive_ratio": seconds[EXHAUSTIVE] / seconds[COMPARE],
        "left": said[COMPARE]["decision"]["left"],
    }


def found(heat: Result, board: str) -> Result:
    """Return the scores of a board's last comparison."""
    return next(answer for answer in reversed(heat["raw"]) if (answer["contender"], answer["do"]) == (board, "score"))


def time_to_full(bench: Bench) -> Result:
    """Measure the seconds, including the start, to 99.5 % of the final test accuracy of the better full fit.

    Contenders: each of our methods, and the Trainer at its best.
    """
    heats = []
    for name in bench.names(RACED):
        piece = bench.raced(name)
        entrants = [*(bench.ours(piece, method) for method in LADDER), bench.best(piece, "all")]
        told = [replace(entrant, settings={**entrant.settings, "by_epoch": True}) for entrant in entrants]
        heats.append(bench.run(Heat(name, told, seeds=3, epochs=None)))
    arrivals = {heat["label"]: arrivals_of(heat) for heat in heats}
    return {"heats": heats, "share": NEAR, "bar": TIMES_AS_LONG, "arrivals": arrivals}


def arrivals_of(heat: Result) -> Result | None:
    """Return when each contender reached the target, and the Trainer's time relative to our fastest method.

    If the Trainer did not reach it in most seeds, its whole fit is used, and `at_least` says so.
    """
    if heat["status"] != "ok":
        return None
    target = NEAR * max(heat["contenders"][name]["test"]["mean"] for name in ("graftwork full", TRAINER))
    reached = {name: arrival([a for a in heat["raw"] if a["contender"] == name], target) for name in heat["contenders"]}
    trainer = reached[TRAINER]["median"] or heat["contenders"][TRAINER]["fit_seconds"]["median"]
    ours = {name: one["median"] for name, one in reached.items() if name != TRAINER and one["median"]}
    quickest = min(ours, key=lambda name: ours[name], default=None)
    return {
        "target": target,
        "contenders": reached,
        "times_as_long": {name: trainer / seconds for name, seconds in ours.items()},
        "at_least": reached[TRAINER]["median"] is None,
        "quickest": quickest,
    }


def arrival(raw: Sequence[Result], target: float) -> Result:
    """Return the first epoch of each seed with `target` or more on the test split, and the seconds until its end.

    None if there is no such epoch. The median counts None as infinite, and is None if it is infinite.
    """
    spent: dict[int, float] = {}
    first: dict[int, tuple[int, float] | None] = {}
    for answer in raw:
        if answer["do"] in ("start", "epoch"):
            seed = answer["seed"]
            spent[seed] = spent.get(seed, 0.0) + answer["seconds"]
            first.setdefault(seed, None)
            if answer["do"] == "epoch" and first[seed] is None and answer["test_now"] >= target:
                first[seed] = (answer["epoch"], spent[seed])
    middle = statistics.median(math.inf if at is None else at[1] for at in first.values())
    return {
        "epochs": [at and at[0] for at in first.values()],
        "seconds": [at and at[1] for at in first.values()],
        "median": None if math.isinf(middle) else middle,
    }


def _against(entrants: Sequence[Entrant]) -> list[tuple[str, str]]:
    """Return the pairs of the first contender and each of the others."""
    return [(entrants[0].name, other.name) for other in entrants[1:]]


QUESTIONS: Mapping[str, Callable[[Bench], Result]] = {
    "full": full,
    "machine_share": machine_share,
    "side_by_side": side_by_side,
    "top_layers": top_layers,
    "adapters": adapters,
    "rules": rules,
    "pairs": pairs,
    "growth": growth,
    "board": board,
    "racing": racing,
    "time_to_full": time_to_full,
}
