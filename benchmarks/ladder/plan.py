"""Shared by the parts: pre-trained networks, their learning rates, and their boards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from boards import Place, at_rates, board, chosen_rates, method_of
from rungs import NETWORKS, pretrained, scored, write_corpus
from tasks import SOURCES, rows_of
from units import Bench, Result, Unit

RATE_TASK = "mr"
WIKITEXT = "lm_wikitext2/valid.txt"
UNNAMED = ("baselines", "ulmfit")  # boards whose rows are named by the method only


@dataclass(frozen=True)
class Plan:
    """The settings of the benchmark: places, budgets and extents."""

    bench: Bench
    place: Place
    budget: float  # FLOP per pre-training
    corpus_bytes: int
    vocabulary: int | None = None  # overrides each network's own when only trying
    recipe: Mapping[str, Any] | None = None  # likewise

    @property
    def reviews(self) -> Path:
        """Return the text for pre-training; it contains no test text of imdb."""
        path = self.place.work / "corpora" / "imdb.txt"
        if not path.is_file():
            source = SOURCES["imdb"]
            assert source.test is not None
            held = rows_of(self.place.data / "imdb" / source.test, source.texts)
            tested = frozenset(row[0] for row in held)
            write_corpus(self.place.data / "lm_imdb_unsup/train.txt.gz", path, self.corpus_bytes, tested)
        return path


def pretraining(plan: Plan, name: str, corpus: Path | None = None, **settings: Any) -> Result:
    """Pre-train one network, and score it on another domain."""
    rung, place = NETWORKS[name], plan.place
    asked = {"budget": plan.budget * rung.share, "vocabulary": plan.vocabulary, "recipe": plan.recipe} | settings
    found = pretrained(f"pretrain.{name}", rung, corpus or plan.reviews, place.work, **asked)
    length = int((plan.recipe or rung.recipe).get("length", 0))
    return found | {"wikitext2": scored(found["run"], rung, length, place.data / WIKITEXT, place.work)}


def kept(name: str, fresh: bool) -> str:
    """Return the name of a network in units and boards."""
    return f"{name}.fresh" if fresh else name


def backbone_of(plan: Plan, name: str, fresh: bool = False) -> str:
    """Return the value of --backbone in the working folder."""
    return f"{'random:' if fresh else ''}runs/{plan.bench.result(f'pretrain.{name}')['run']}"


def rates(plan: Plan, name: str, fresh: bool) -> Result:
    """Return the rates of the methods that are trained by gradient."""
    asked, backbone = plan.place.task(RATE_TASK), backbone_of(plan, name, fresh)
    return chosen_rates(f"rates.{kept(name, fresh)}", plan.place, asked, backbone, NETWORKS[name].methods)


def network_board(plan: Plan, name: str, fresh: bool, task: str) -> Result:
    """Return the board of the network's methods on one task."""
    own = plan.bench.result(f"rates.{kept(name, fresh)}")
    methods = [*NETWORKS[name].probes, *at_rates(NETWORKS[name].methods, own)]
    asked = plan.place.task(task)
    return board(f"{kept(name, fresh)}.{task}", plan.place, asked, backbone_of(plan, name, fresh), methods)


def network_units(plan: Plan, name: str, fresh: bool, tasks: Sequence[str]) -> list[Unit]:
    """Return the units of rates and boards of one network that another unit pre-trains."""
    own, trained = kept(name, fresh), f"pretrain.{name}"
    return [
        Unit(f"rates.{own}", partial(rates, plan, name, fresh), needs=(trained,)),
        *(
            Unit(
                f"board.{own}.{task}", partial(network_board, plan, name, fresh, task), needs=(trained, f"rates.{own}")
            )
            for task in tasks
        ),
    ]


def row_name(name: str, method: str, fresh: bool = False) -> str:
    """Return `masked full`, `masked full, fresh`, `tfidf_svm`, `ulmfit:divisor=1.0`."""
    return method if name in UNNAMED else f"{name} {method}{', fresh' if fresh else ''}"


def runs_of(plan: Plan, networks: Iterable[tuple[str, bool]], tasks: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return row -> task -> runs of the existing boards; settings other than the rate are part of a row's name."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, fresh in networks:
        for task in tasks:
            unit = f"board.{kept(name, fresh)}.{task}"
            for row in plan.bench.result(unit)["rows"] if plan.bench.done(unit) else ():
                if row["status"] == "ok":
                    label = row_name(name, method_of(row["method"]), fresh)
                    found.setdefault(label, {})[task] = row["runs"]
    return found
