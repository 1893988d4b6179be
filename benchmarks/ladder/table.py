"""Print results/ as the tables of the README: `python benchmarks/ladder/table.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.io.files import read_json
from graftwork.units import percent, show, with_prefix

RESULTS = Path(__file__).parent / "results"
Content = Mapping[str, Any]
RUNGS = ("word_vectors", "bidirectional", "awd_lstm", "causal", "masked")
GENERATIONS = ("mr", "cr", "sst2", "trec6", "imdb")
ABLATION = ("mrpc", "rte", "sst2", "trec6")
UNNAMED = ("baselines", "ulmfit")  # boards whose rows are named by the method only


def rows_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows))


def results_of(content: Content) -> dict[str, Any]:
    """Return unit -> result, of the successful units."""
    return {name: unit["result"] for name, unit in content["units"].items() if unit["status"] == "ok"}


def pretrainings(content: Content, names: Sequence[str]) -> str:
    """Format the cost of each network and how well it predicts text."""
    units, lines = results_of(content), []
    for name in names:
        found = units.get(f"pretrain.{name}")
        if found is None:
            lines.append([f"`{name}`", "failed or not run", *[""] * 9])
            continue
        facts, costs, own, other = found["facts"], found["costs"], found["scores"], found["wikitext2"]
        lines.append([
            f"`{name}`", f"`{found['objective']}`", cost(costs, "trained_parameters"),
            show(found["parameters_outside_embeddings"], "parameters"), with_prefix(facts["tokens_seen"], ""),
            f"{facts['passes']:.2f}", cost(costs, "train_flops"), cost(costs, "train_cpu_seconds"),
            cost(costs, "energy_joules"), predicts(own), predicts(other),
        ])  # fmt: skip
    head = ["network", "objective", "trained", "outside the embedding", "tokens seen", "passes", "FLOPs", "cpu time",
            "energy", "held-out text of its corpus: perplexity, bits per byte", "wikitext2"]  # fmt: skip
    return rows_of(head, lines)


def cost(costs: Mapping[str, Any], name: str) -> str:
    """Format one cost."""
    return show(costs[name]["value"], costs[name]["unit"]) if name in costs else ""


def predicts(scores: Mapping[str, float]) -> str:
    """Format perplexity and bits per byte, if there are any."""
    if "perplexity" not in scores:
        return "–"
    return f"{scores['perplexity']:,.1f}, {scores['bits_per_byte']:.3f}"


def method_of(label: str) -> str:
    """Return the label without its rate."""
    return ":".join(part for part in label.split(":") if not part.startswith("learning_rate="))


def rate_of(label: str) -> str:
    """Return the rate of a label."""
    return next((part.partition("=")[2] for part in label.split(":") if part.startswith("learning_rate=")), "")


def board_rows(units: Mapping[str, Any], networks: Sequence[str], tasks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return row name -> task -> its row of the board."""
    found: dict[str, dict[str, Any]] = {}
    for network in networks:
        name, fresh = network.removesuffix(".fresh"), network.endswith(".fresh")
        for task in tasks:
            for row in units.get(f"board.{network}.{task}", {"rows": ()})["rows"]:
                label = method_of(row["method"])
                label = label if name in UNNAMED else f"{name} {label}"
                found.setdefault(label + (", fresh" if fresh else ""), {})[task] = row
    return found


def scores(units: Mapping[str, Any], networks: Sequence[str], tasks: Sequence[str], judged: Content) -> str:
    """Format the rows of the boards with their scores on every task, best mean first."""
    rows, means, lines = board_rows(units, networks, tasks), judged.get("scores", {}), []
    for label in sorted(rows, key=lambda label: -means[label]["mean"] if label in means else 1):
        told = [score_of(rows[label].get(task)) for task in tasks]
        mean = means.get(label)
        spread = f"{percent(mean['low'])} to {percent(mean['high'])}" if mean else ""
        own = next(iter(rows[label].values()))
        price = [cost(own["costs"], "train_cpu_seconds"), cost(own["costs"], "trained_parameters")]
        lines.append(
            [f"`{label}`", rate_of(own["method"]), *told, percent(mean["mean"]) if mean else "", spread, *price]
        )
    head = ["network and method", "rate", *tasks, "mean", "95 % interval", f"cpu time on {tasks[0]}", "trained"]
    return rows_of(head, lines)


def score_of(row: Any) -> str:
    """Format points with their spread over seeds, or the status if there are none."""
    if row is None:
        return ""
    if row["status"] != "ok" or row["score"] is None:
        return str(row["status"])
    spread = f" ± {percent(row['score']['sd'])}" if row["score"]["sd"] else ""
    return f"{percent(row['score']['mean'])}{spread}"


def in_words(judged: Content) -> str:
    """Say for every family what was shown and what was not."""
    told = []
    for family, pairs in judged.get("differences", {}).items():
        shown = [pair for pair in pairs if pair["verdict"] != "cannot tell"]
        ordered = [
            (pair["a"], pair["b"], pair["delta"]) if pair["delta"] > 0 else (pair["b"], pair["a"], -pair["delta"])
            for pair in shown
        ]
        named = [f"`{a}` above `{b}` by {100 * delta:.1f}" for a, b, delta in sorted(ordered, key=lambda one: -one[2])]
        unsaid = [f"`{pair['a']}` and `{pair['b']}`" for pair in pairs if pair["verdict"] == "cannot tell"]
        told.append(
            f"- **{family}**. Shown: {', '.join(named) or 'nothing'}. Not shown: {', '.join(unsaid) or 'none'}."
        )
    return "\n".join(told)


def differences(judged: Content) -> str:
    """Format what was shown in words, and every pair of every family."""
    lines = []
    for family, pairs in judged.get("differences", {}).items():
        for pair in pairs:
            p = "" if pair["p_holm"] is None else f"{pair['p_holm']:.3f}"
            least = pair["smallest_detectable"]
            lines.append([
                family, f"`{pair['a']}`", f"`{pair['b']}`", f"{100 * pair['delta']:+.1f}",
                f"{100 * pair['low']:+.1f} to {100 * pair['high']:+.1f}", p, f"**{pair['verdict']}**"
                if pair["verdict"] != "cannot tell" else "cannot tell", "" if least is None else f"{100 * least:.1f}",
            ])  # fmt: skip
    head = ["family", "a", "b", "a - b, points", "95 % interval", "p (Holm, in the family)", "a is",
            "smallest difference these runs show"]  # fmt: skip
    return f"{in_words(judged)}\n\n{rows_of(head, lines)}"


def generations(content: Content) -> Iterator[str]:
    """Yield the sections on the five rungs."""
    units = results_of(content)
    judged = units.get("judge.generations", {})
    networks = ["baselines", *(f"{name}{fresh}" for name in RUNGS for fresh in ("", ".fresh"))]
    yield pretrainings(content, RUNGS)
    yield scores(units, networks, GENERATIONS, judged)
    if (RESULTS / "generations.svg").is_file():
        yield "![mean score against joules](results/generations.svg)"
    yield differences(judged)


def ablation(content: Content) -> Iterator[str]:
    """Yield the sections on the three networks."""
    units, networks = results_of(content), ("next_sentence", "masked", "causal")
    judged = units.get("judge.ablation", {})
    yield pretrainings(content, networks)
    yield scores(units, networks, ABLATION, judged.get("all", {}))
    for name, found in judged.items():
        yield f"Over {name}:\n\n{differences(found)}"


def ulmfit(content: Content) -> Iterator[str]:
    """Yield the sections on parts, then stages."""
    units = results_of(content)
    judged = units.get("judge.ulmfit", {})
    yield scores(units, ("ulmfit",), ("trec6", "mr"), judged.get("parts", {}))
    yield differences(judged.get("parts", {}))
    yield pretrainings(content, ("general", "target"))
    yield scores(units, ("general", "target"), ("mr",), judged.get("stages", {}))
    yield differences(judged.get("stages", {}))


def domain(content: Content) -> Iterator[str]:
    """Yield the sections on perplexity, then tagging."""
    units = results_of(content)
    found = units.get("pretrain.biomedical")
    if found is not None:
        facts = found["facts"]
        names = {"validation": "biomedical", "general": "encyclopedia"}
        lines = [
            [text, *(predicts(facts[when][split]) for when in ("before", "after"))] for split, text in names.items()
        ]
        yield rows_of(["held-out text: masked tokens' perplexity, bits per byte", "before", "after"], lines)
        costs = found["costs"]
        yield (
            f"{with_prefix(facts['tokens_seen'], '')} tokens seen, {cost(costs, 'train_flops')}, "
            f"{cost(costs, 'train_cpu_seconds')} of the processor, {cost(costs, 'energy_joules')}."
        )
    judged = units.get("judge.domain", {})
    yield scores(units, ("minilm", "biomedical"), ("ncbi_disease",), judged)
    yield differences(judged)


def resume(content: Content) -> Iterator[str]:
    """Yield a table with a line per objective."""
    lines = []
    for name, unit in content["units"].items():
        told = name.removeprefix("resume.")
        if unit["status"] != "ok":
            lines.append([told, unit["error"], "", "", ""])
            continue
        found = unit["result"]
        steps = ", ".join(f"{one['killed_after_step']} of {one['of']}" for one in found["broken"])
        logs = all(one["log_equal"] for one in found["broken"])
        equal = "yes" if found["equal"] else "**NO**"
        lines.append([told, steps, f"`{found['sha256'][:16]}`", equal, "yes" if logs else "**NO**"])
    yield rows_of(["objective", "killed after step", "sha256 of the weights", "equal every time", "logs equal"], lines)


PARTS: Mapping[str, tuple[str, Callable[[Content], Iterator[str]]]] = {
    "generations": ("Five generations", generations),
    "ablation": ("BERT's parts", ablation),
    "ulmfit": ("ULMFiT's parts", ulmfit),
    "domain": ("Another domain", domain),
    "resume": ("Killed and taken up again", resume),
}


def origin(content: Content) -> str:
    """Format commit, day, versions, and failures."""
    made = content["environment"]
    taken = sum(unit.get("cpu_seconds", 0.0) for unit in content["units"].values())
    told = f"Status {content['status']}. Commit {str((made['commit'] or {}).get('hash'))[:8]}, {made['time'][:10]}, "
    told += f"torch {made['torch']['version']}, {made['torch']['threads']} thread, "
    told += f"{taken / 60:.1f} minutes of the processor in all."
    for name in content["failed"]:
        told += f" Failed: `{name}`, {content['units'][name]['error']}."
    return told + (f" Not run: {', '.join(f'`{name}`' for name in content['not_run'])}." if content["not_run"] else "")


def table() -> str:
    """Format all parts, measured or not."""
    parts = []
    for name, (title, told) in PARTS.items():
        path = RESULTS / f"{name}.json"
        if not path.is_file():
            parts.append(f"### {title}\n\nNot measured yet.")
            continue
        content = read_json(path)
        parts.append("\n\n".join([f"### {title}", *told(content), origin(content)]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(table())
