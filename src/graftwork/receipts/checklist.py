"""A reproducibility checklist and a methods paragraph for a paper, from the receipts of a row's runs.

The questions follow published checklists (Pineau et al. 2020, arXiv:2003.12206; Dodge et al. 2019, arXiv:1909.03004),
in our words. No number is written by hand: each is in a receipt, or is the mean, the spread or the count of such
numbers.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graftwork.core.method import CONTENT
from graftwork.run.recorded_numerics import numerics_of
from graftwork.units import metric_title, several, show

Receipt = Mapping[str, Any]
TOLD_VERSIONS = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
NOT_HERE = "licences and consent of the data and the backbone, and what may be done wrong with the result"


@dataclass(frozen=True)
class RunGroup:
    """The receipts of runs that differ only in the seed, by seed, and the verdicts of their verification."""

    receipts: Sequence[Receipt]  # at least one, including failed runs
    verdicts: Sequence[Mapping[str, Any]] = ()  # lines of `verified.jsonl`

    @property
    def finished(self) -> list[Receipt]:
        """The receipts of successful runs."""
        return [receipt for receipt in self.receipts if receipt["outcome"]["status"] == "ok"]

    @property
    def first(self) -> Receipt:
        """A representative receipt, for the fields that all share."""
        return (self.finished or list(self.receipts))[0]

    @property
    def metrics(self) -> list[str]:
        """The metrics, the headline first."""
        return list(self.first["method"]["question"]["metrics"])

    @property
    def positive(self) -> str | None:
        """The class that f1 is computed for; None if there is none."""
        found: str | None = self.first["method"]["question"].get("positive")
        return found

    def scores(self, metric: str) -> list[float]:
        """Return the scores of the successful runs on test, or on validation for trials."""
        outcomes = [receipt["outcome"] for receipt in self.finished]
        return [(outcome["scores"] or outcome["validation"])[metric] for outcome in outcomes]


def checklist(row: RunGroup) -> str:
    """Return every question with its answer, in Markdown."""
    answers = {
        "What was adapted, to what, and how?": _what(row.first),
        "Which data, and how can one check that they are the same?": _data(row.first),
        "How were the rows split, and does anything leak?": _splits(row.first),
        "Every hyper-parameter, with its value?": _settings(row.first),
        "What did fitting choose and count, run by run?": _chosen(row),
        "What was tried before, and what was it chosen by?": _search(row.first),
        "How many runs, with which seeds, and how many failed?": _runs(row),
        "Which result, with its variation?": _result(row),
        "What did it cost, and on what machine?": _price(row),
        "Which code, and how is it run again?": _code(row.first),
        "Has anybody run it again?": _verified(row),
        "What can receipts not say?": NOT_HERE,
    }
    return "\n".join(f"- **{question}** {answer}." for question, answer in answers.items())


def paragraph(row: RunGroup) -> str:
    """Return a paragraph for a methods section."""
    first = row.first
    parts = [
        f"We adapted {_what(first)}.",
        f"{_splits(first)[0].upper()}{_splits(first)[1:]}.",
        f"{_trained(row)}{_search(first)}.",
        f"What fitting chose and counted, by run: {_chosen(row)}.",
        f"{_runs(row)[0].upper()}{_runs(row)[1:]}; {_result(row)}.",
        f"{_price(row)[0].upper()}{_price(row)[1:]}.",
        f"The software was {_versions(first)}.",
    ]
    return " ".join(parts)


def number(value: float) -> str:
    """Format a number: integers in full, others with four significant figures."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _what(receipt: Receipt) -> str:
    data, method, model = receipt["data"], receipt["method"], receipt["model"]
    labels = data["labels"]["count"]
    asked = f"{data['name']} ({method['question']['kind']}{f', {number(labels)} labels' if labels else ''})"
    by = f"{method['config']['name']}{_in_brackets(method['config'])}"
    if model is None:
        told = " and from the file that its settings name by a hash" if CONTENT in by else " alone"
        return f"no backbone to {asked}: the baseline {by} learns from the data{told}"
    size = f"{model['family']}, {number(model['parameters'])} parameters, revision {model['revision'][:12]}"
    weights = receipt["outcome"]["weights"]
    trained = f", which trains {number(weights['trained_parameters'])} parameters" if weights else ""
    return f"{model['id']} ({size}) to {asked} by {by}{trained}"


def _in_brackets(config: Mapping[str, Any]) -> str:
    told = [f"{name} {_value(value)}" for name, value in config.items() if name not in ("name", "version")]
    return f" ({', '.join(told)})" if told else ""


def _value(value: Any) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _data(receipt: Receipt) -> str:
    files = [f"{split} {_name(file)}" for split, file in receipt["data"]["files"].items()]
    return f"{'; '.join(files)}; rows as read, sha256 {receipt['data']['digest']}"


def _name(file: Mapping[str, Any]) -> str:
    """Format a file's name (without its folder), size and hash; for a hub data set, its path and commit."""
    if file["sha256"] is None:
        return f"{file['path']}{', commit ' + file['commit'] if 'commit' in file else ''}"
    return f"{file['path'].rpartition('/')[2]} ({number(file['bytes'])} bytes), sha256 {file['sha256']}"


def _splits(receipt: Receipt) -> str:
    data = receipt["data"]
    sizes = ", ".join(f"{number(split['rows'])} rows of {name}" for name, split in data["splits"].items())
    leaks = ", ".join(f"{number(count)} of {name}" for name, count in data["duplicates_across"].items()) or "none"
    if "test_in_validation" in data:  # older receipts only cover train
        leaks += f"; rows of test whose inputs are in validation too: {number(data['test_in_validation'])}"
    drawn = _drawn_splits(data)
    seed = f" and the seed {number(data['split_rule']['seed'])}" if data["split_rule"]["seed"] else ""
    by_hash = f"drawn from train by a hash of the rows' content{seed}"
    how = f"{' and '.join(drawn)} {by_hash}" if drawn else "from files"
    part = (receipt["rerun"] or {}).get("draw")
    rejected = number(data["rejected_rows"])
    how += f"; train and validation are draw {number(part['number'])} at {part['size']}" if part else ""
    return f"there are {sizes}, {how}; rows whose inputs are in train too: {leaks}; rows rejected: {rejected}"


def _drawn_splits(data: Mapping[str, Any]) -> list[str]:
    """Return the drawn splits. In older receipts, a hub set's own splits have no file, but the rule mentions them."""
    rule, named = data["split_rule"], data["files"]
    found = {name for name, split in data["splits"].items() if f"{name} {split['rows']:,} rows from " in rule["made"]}
    return [] if rule["seed"] is None else sorted(set(data["splits"]) - set(named) - found)


def _settings(receipt: Receipt) -> str:
    method = receipt["method"]
    told = {**method["config"], **method["recipe"]}
    told = {name: value for name, value in told.items() if value is not None and name not in ("name", "version")}
    return "; ".join(f"{name.replace('_', ' ')}: {_value(value)}" for name, value in told.items()) or "none were set"


def _chosen(row: RunGroup) -> str:
    """List the numbers and strings that runs recorded as facts and that are no settings; equal values once."""
    told: dict[str, list[str]] = {}
    for receipt in row.finished:
        given = receipt["method"]["recipe"] | receipt["method"]["config"]
        facts = receipt["outcome"].get("facts", {})  # older receipts have none
        for name, value in _flat({key: fact for key, fact in facts.items() if fact != given.get(key)}):
            told.setdefault(name.replace("_", " "), []).append(_value(value))
    lines = [f"{name} {', '.join(values if len(set(values)) > 1 else values[:1])}" for name, values in told.items()]
    return "; ".join(lines) or "nothing that was recorded"


def _flat(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name} ")
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            yield f"{above}{name}", value


def _trained(row: RunGroup) -> str:
    receipt = row.first
    recipe, config = receipt["method"]["recipe"], receipt["method"]["config"]
    steps = receipt["outcome"]["log"]["steps"]
    if not steps:
        return f"{_passes(row)}; "
    if "epochs" not in recipe:
        return f"Training took {number(steps)} steps, as the method has them; "
    rate = recipe["learning_rate"] if recipe["learning_rate"] is not None else config.get("learning_rate")
    speed = f" at a peak learning rate of {number(rate)}" if rate is not None else ""
    return (
        f"Training took {number(recipe['epochs'])} epochs of {number(recipe['batch_size'])} rows a step, "
        f"{number(recipe['steps'])} steps{speed}, with a {recipe['schedule']} schedule, a weight decay of "
        f"{number(recipe['weight_decay'])} and gradients clipped at {number(recipe['clip'])}; of its epochs "
        f"{recipe['kept'].removeprefix('the epoch that is ')} was kept; "
    )


def _passes(row: RunGroup) -> str:
    """Describe the epochs of a method that logs no steps. Older receipts have no count and can't rule epochs out."""
    logs = [receipt["outcome"]["log"] for receipt in row.finished or row.receipts]
    told = [log.get("epochs", 0) for log in logs]
    if any(log["lines"] and "epochs" not in log for log in logs):
        return "The log of a run tells of no gradient steps"
    if not any(told):
        return "No weights were trained by gradient steps over epochs"
    between = f"{number(min(told))} to {number(max(told))}" if min(told) < max(told) else number(told[0])
    return f"Training took {between} epoch{'' if told == [1] * len(told) else 's'}, as the method has them"


def _search(receipt: Receipt) -> str:
    search, chosen = receipt["method"]["search"], receipt["method"]["selection"]
    if not search["trials"]:
        return "no other run was tried before on this data by the command that ran it"
    space = "; ".join(
        f"{name.replace('_', ' ')} of {', '.join(map(_value, values))}" for name, values in search["space"].items()
    )
    listed = f" ({space})" if space else ""
    judge = metric_title(chosen["metric"], receipt["method"]["question"].get("positive"))
    return f"{several(search['trials'], 'trial')}{listed} came before it, judged by {judge} on {chosen['split']}"


def _runs(row: RunGroup) -> str:
    seeds = [number(receipt["randomness"]["seed"]) for receipt in row.receipts]
    failed = number(len(row.receipts) - len(row.finished))
    runs, with_seeds = ("run", "seed") if len(seeds) == 1 else ("runs", "seeds")
    luck = f" (for {' and '.join(decided)} alone, the rest as by seed 0)" if (decided := _varied_sources(row)) else ""
    return f"{number(len(seeds))} {runs} with {with_seeds} {', '.join(seeds)}{luck}, of which {failed} failed"


def _varied_sources(row: RunGroup) -> list[str]:
    """Return the sources of variation that use the seeds, if others are held at seed 0; empty if all vary."""
    held = {source for receipt in row.receipts for source in receipt["randomness"]["held"]}
    return [source for source in row.first["randomness"]["derived"] if source not in held] if held else []


def _result(row: RunGroup) -> str:
    if not row.finished:
        return f"there is none: {row.first['outcome']['failure']['message']}"
    told = []
    for metric in row.metrics:
        scores = row.scores(metric)
        varied = max(scores) > min(scores)
        spread = f" ± {number(statistics.stdev(scores))}" if varied else ""
        rest = f" (median {number(statistics.median(scores))}, least {number(min(scores))})" if varied else ""
        told.append(
            f"{metric_title(metric.replace('_', ' '), row.positive)} {number(statistics.fmean(scores))}{spread}{rest}"
        )
    split = "test" if row.first["outcome"]["scores"] else "validation"
    seeds = f"seeds of {' and '.join(decided)} alone" if (decided := _varied_sources(row)) else "seeds"
    spread = f" (mean ± sd over {seeds})" if len(row.finished) > 1 else "; of one run: its spread over seeds is unknown"
    if len(row.finished) > 1 and all(max(row.scores(metric)) == min(row.scores(metric)) for metric in row.metrics):
        spread = (
            f"; all runs score alike: over {seeds} there is no luck to see, and this says nothing of other examples"
        )
    return f"on {split}, {', '.join(told)}{spread}{_other_examples(row.finished)}"


def _other_examples(finished: Sequence[Receipt]) -> str:
    """List the interval of each run; empty for trials and for older receipts without intervals."""
    intervals = [interval for receipt in finished if (interval := receipt["outcome"].get("interval"))]
    if not intervals:
        return ""
    listed = ", ".join(_unique(f"{number(low)} to {number(high)}" for low, high in intervals))
    return f"; 95 % intervals of the first over other examples, of each run alone: {listed}"


def _price(row: RunGroup) -> str:
    numerics = numerics_of(row.first)
    names = {"train_seconds": "to train", "energy_joules": "of energy", "peak_memory_bytes": "of memory at most"}
    told = [_cost(row, name, words) for name, words in names.items()]
    listed = ", ".join(word for word in told if word)
    threads = f"{number(numerics['threads'])} thread{'' if numerics['threads'] == 1 else 's'}"
    precision = f" in {numerics['precision']}" if numerics["precision"] else ""
    where = numerics["accelerator"] or numerics["processor"] or "an unknown processor"
    return f"a run took {listed} on {where}, {threads}{precision}"


def _cost(row: RunGroup, name: str, words: str) -> str:
    """Format the median cost of the runs, with its grade; empty where no run has a meter of that name."""
    metered = [receipt["price_tag"][name] for receipt in row.receipts if name in receipt["price_tag"]]
    costs = [cost for cost in metered if cost["value"] is not None]
    if not costs:
        return ""
    return f"{show(statistics.median(cost['value'] for cost in costs), costs[0]['unit'])} {words} ({costs[0]['grade']})"


def _code(receipt: Receipt) -> str:
    code = receipt["code"]
    commit = f", commit {code['commit']}{' with changes' if code['dirty'] else ''}" if code["commit"] else ""
    source = f"graftwork {code['graftwork']}{commit}, source sha256 {code['source_sha256']}"
    return f"{source}, with {_versions(receipt)}; `graft verify {receipt['identity']['run']}` runs it again"


def _versions(receipt: Receipt) -> str:
    code = receipt["code"]
    known = {name: code["distributions"][name] for name in TOLD_VERSIONS if name in code["distributions"]}
    listed = {"graftwork": code["graftwork"], "python": code["python"], **known}
    return ", ".join(f"{name} {version}" for name, version in listed.items())


def _verified(row: RunGroup) -> str:
    if not row.verdicts:
        return "no verification is stored; `graft verify RUN --record` stores one"
    return "; ".join(
        _unique(f"{line['run']} {line['verdict']} on {line['processor']}, {line['time']}" for line in row.verdicts)
    )


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
