"""Choice of a peer's best settings: the fastest whose validation accuracy is within a point of the best one's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from driver import Heat

from graftwork.io.files import read_json

Settings = dict[str, Any]
Result = dict[str, Any]
TOLERANCE = 0.01  # of validation accuracy
RATES: Mapping[str, tuple[float, ...]] = {  # the first is a user's usual choice
    "all": (5e-5, 1e-4, 2e-4),
    "top:2": (5e-5, 3e-4, 1e-3),
    "lora": (1e-3, 2e-3, 5e-4),
    "bias": (1e-3,),
    "head": (1e-3,),
}
CHOSEN_ON = {"all": ("trec6", "imdb"), "top:2": ("trec6",), "lora": ("trec6",)}  # on imdb only for speed
LIKE = {"bias": "lora", "head": "top:2"}  # -> the settings that it reuses


@dataclass(frozen=True)
class Chosen:
    """Chosen settings, by trained part and data set: "all@imdb"."""

    settings: Mapping[str, Settings] = field(default_factory=dict)
    heats: Sequence[Result] = ()  # by which they were chosen

    @classmethod
    def read(cls, path: Path) -> Chosen:
        """Read the result of `choose`; empty if that has not been run."""
        if not path.exists():
            return cls()
        result = read_json(path)
        return cls(result["chosen"], result["heats"])

    def best(self, trains: str, piece: str) -> Settings:
        """Return the settings for `trains` on `piece`: those of that data set, else of trec6, else defaults."""
        like = LIKE.get(trains, trains)
        guess = _settings(like, "sdpa", "autocast", True)
        found = self.settings.get(f"{like}@{piece}") or self.settings.get(f"{like}@trec6") or guess
        rate = RATES[trains][0] if trains in LIKE else found["learning_rate"]
        return {**found, "trains": trains, "learning_rate": rate}


def _settings(trains: str, attention: str, precision: str, dropout: bool) -> Settings:
    return {
        "trains": trains,
        "attention": attention,
        "precision": precision,
        "dropout": dropout,
        "padding": "dynamic",
        "grouped": True,
        "loaders": 0,
        "compiled": False,
        "learning_rate": RATES[trains][0],
    }


def choose(bench: Any) -> Result:
    """Run three heats: attention x precision x dropout; then a data loader process and compilation; then the rate.

    On data other than trec6 only the first two, with the rate of trec6. Other settings stay as they were
    chosen before.
    """
    asked = {trains: names for trains, names in CHOSEN_ON.items() if trains in bench.trains or not bench.trains}
    kept = [f"{trains} on " for trains in CHOSEN_ON if trains not in asked]
    heats = [heat for heat in bench.chosen.heats if str(heat["label"]).startswith(tuple(kept))]
    chosen = dict(bench.chosen.settings)
    for trains, names in asked.items():
        for name in bench.names(names):
            piece = bench.piece(name)

            def heat(stage: str, options: Mapping[str, Settings], piece: Any = piece, place: str = name) -> Settings:
                entrants = [bench.peer(piece, label, settings) for label, settings in options.items()]
                heats.append(bench.run(Heat(f"{options_of(options)} on {place}: {stage}", entrants, epochs=3)))
                return options[fastest(heats[-1])]

            best = _faster(trains, heat, compiles=bench.epochs != 1)
            if name == "trec6":
                rates = {f"rate {rate:g}": best | {"learning_rate": rate} for rate in RATES[trains]}
                heat("rate", rates)
                best = rates[most_accurate(heats[-1])]
            else:
                best = best | {"learning_rate": chosen[f"{trains}@trec6"]["learning_rate"]}
            chosen[f"{trains}@{name}"] = best
    return {"heats": heats, "chosen": chosen, "tolerance": TOLERANCE}


def options_of(options: Mapping[str, Settings]) -> str:
    """Return which part the options train; all train the same."""
    return str(next(iter(options.values()))["trains"])


def _faster(trains: str, heat: Callable[[str, Mapping[str, Settings]], Settings], compiles: bool) -> Settings:
    """Choose attention, precision and dropout, then data loading and, if `compiles`, compilation."""
    grid = {
        f"{attention}, {precision}, {'dropout' if dropout else 'no dropout'}": _settings(
            trains, attention, precision, dropout
        )
        for attention, precision, dropout in product(("sdpa", "eager"), ("autocast", "bf16"), (True, False))
    }
    best = heat("numerics", grid)
    options = {"as it is": best, "1 loader": best | {"loaders": 1}, "compiled": best | {"compiled": True}}
    return heat("process", options if compiles else {name: options[name] for name in ("as it is", "1 loader")})


def fastest(heat: Result) -> str:
    """Return the contender with the shortest epochs among those scoring within the tolerance of the best."""
    done: Result = {name: entry for name, entry in heat["contenders"].items() if "error" not in entry}
    best = max(entry["validation"]["median"] for entry in done.values())
    equal = [name for name, entry in done.items() if entry["validation"]["median"] >= best - TOLERANCE]
    return min(equal, key=lambda name: float(done[name]["epoch_seconds"]["median"]))


def most_accurate(heat: Result) -> str:
    """Return the contender with the best validation accuracy, the first of equals."""
    done: Result = {name: entry for name, entry in heat["contenders"].items() if "error" not in entry}
    return max(done, key=lambda name: float(done[name]["validation"]["median"]))
