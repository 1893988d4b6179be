"""Print `results/` as Markdown; the README of this folder shows the same, and a test compares them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.units import duration, percent, with_prefix

RESULTS = Path(__file__).parent / "results"
Result = dict[str, Any]
Rows = list[list[str]]


def table(folder: Path = RESULTS) -> str:
    """Format a section per answered question, then those of other machines, a folder each."""
    parts = []
    for place in (folder, *sorted(path for path in folder.glob("*/") if path.is_dir())):
        on = "" if place == folder else f" (`{place.name}`)"
        for name, (title, lines) in SECTIONS.items():
            path = place / f"{name}.json"
            if path.exists():
                result = json.loads(path.read_text(encoding="utf-8"))
                parts.append(f"### {title}{on}\n\n{lines(result)}\n\n{_origin(result)}")
    return "\n\n".join(parts)


def _origin(result: Result) -> str:
    """Format where and when it was measured, and what failed."""
    where = result["environment"]
    commits: dict[str, list[str]] = {}
    for heat in result["heats"]:
        commit = heat.get("measured", where)["commit"] or {}
        commits.setdefault(commit.get("hash", "unknown")[:8], []).append(heat["label"])
    listed = " and ".join(name + (f" ({', '.join(of)})" if len(commits) > 1 else "") for name, of in commits.items())
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    cores = f"{where['torch']['threads']} threads on {where['cores']} cores"
    said = f"{where['processor']}, {cores}; commit {listed}, {versions}; {where['time'][:10]}."
    errors = [
        f"{heat['label']}: {name} failed: {entry['error']}."
        for heat in result["heats"]
        for name, entry in heat["contenders"].items()
        if "error" in entry
    ]
    if result["rows_at_most"]:
        errors.append("Tried on a few rows only: these numbers say nothing.")
    return " ".join([said, *errors])


def _markdown(header: Sequence[str], rows: Rows) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [list(header), ["---"] * len(header), *rows])


def _contenders(result: Result) -> str:
    """Format every contender: time per epoch and per fit, rate, score, and time relative to ours."""
    rows = []
    for heat in result["heats"]:
        for name, entry in heat["contenders"].items():
            scores, epoch = entry.get("test"), entry.get("epoch_seconds")
            shared = "share" in (entry["about"] or {})
            rows.append(
                [
                    heat["label"],
                    name + (" (a part, scaled)" if shared else ""),
                    _seconds(epoch, (entry["about"] or {}).get("share", 1.0)),
                    "–" if shared else _seconds(entry.get("fit_seconds")),
                    with_prefix(entry["tokens_per_second"]["median"], "").strip()
                    if "tokens_per_second" in entry
                    else "–",
                    "–" if scores is None or shared else percent(scores["mean"]),
                    "; ".join(_ratios(heat, name)) or "–",
                ]
            )
    header = ("data", "contender", "an epoch", "a fit", "tokens/s", "test accuracy", "times as long (epochs; in all)")
    return _markdown(header, rows)


def _ratios(heat: Result, peer: str) -> Iterable[str]:
    several = len({ratio["ours"] for ratio in heat["ratios"]}) > 1
    for ratio in heat["ratios"]:
        if ratio["peer"] == peer:
            whole = "" if ratio["all_fits"] is None else f"; {ratio['all_fits']:.2f}"
            of = f" of {ratio['ours']}" if several else ""
            yield f"{_spread(ratio['epoch'])}{whole}{of}"


def _spread(values: Mapping[str, float]) -> str:
    return f"{values['median']:.2f} ({values['min']:.2f}–{values['max']:.2f})"


def _seconds(values: Mapping[str, float] | None, share: float = 1.0) -> str:
    if values is None:
        return "–"
    least, most = (_digits(values[name] / share) for name in ("min", "max"))
    return f"{duration(values['median'] / share)} ({least}–{most})"


def _digits(value: float) -> str:
    """Format to three digits; from a thousand on all digits."""
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"


def _share(result: Result) -> str:
    """Format the share of the machine's rate, the rate, and what was counted."""
    found = result["share"]
    machine = result["heats"][0]["contenders"]["machine"]
    if found is None:
        return "No share: a contender failed."
    shares = sorted(found["shares"])
    middle = shares[len(shares) // 2]
    rate = machine["flops_per_second"]["median"]
    row = [
        f"{percent(middle)} % ({percent(shares[0])}–{percent(shares[-1])})",
        with_prefix(rate, "FLOP/s"),
        with_prefix(found["flops_per_epoch"], "FLOP"),
    ]
    return _markdown(("share", "the machine's rate", "an epoch of sst2"), [row])


def _together(result: Result) -> str:
    """Format the total rate of parallel runs, and of one run alone."""
    found = result["together"]
    if found is None:
        return "No share: a contender failed."
    row = [f"{percent(found[name])} %" for name in ("share", "share_alone")] + [f"{found['times_as_fast']:.2f}"]
    return _markdown(("two runs at once", "one run alone", "times as fast"), [row])


def _growth(result: Result) -> str:
    rows = [
        [
            heat["label"],
            f"{entry['about']['train_rows']:,}",
            _seconds(entry["fit_seconds"]),
            f"{entry['fit_seconds']['median'] / entry['about']['train_rows'] * 1000:.3g}",
            with_prefix(entry["peak_bytes"], "B"),
        ]
        for heat in result["heats"]
        for entry in heat["contenders"].values()
        if "fit_seconds" in entry
    ]
    grows = "; ".join(f"{name}: rows^{value:.2f}" for name, value in result["slopes"].items() if value is not None)
    text = _markdown(("method", "rows", "fit of one epoch", "ms a row", "peak memory"), rows)
    return f"{text}\n\nBetween the smallest and the largest, time grows as {grows}." if grows else text


def _board(result: Result) -> str:
    name, ours = next(iter(result["heats"][0]["contenders"].items()))
    rows = [[f"{name}, measured", _seconds(ours.get("epoch_seconds")), "1"]]
    for key, how in (("peers", ""), ("peers_at_defaults", " at run_glue's defaults")):
        found = result.get(key)
        if found is None:
            continue
        rows.append([f"peers one by one{how}, computed", duration(found["sum"]), f"{found['ratio']:.2f}"])
        for method, seconds in found["seconds"].items():
            rows.append([f"of it {method}", duration(seconds), "–"])
    return _markdown(("", f"8 methods x {result['seeds']} seeds", "times as long"), rows)


def _racing(result: Result) -> str:
    """Format per data set: the race, the peers, our board without a race; the winners, and the dropped methods."""
    rows, notes = [], []
    for heat in result["heats"]:
        name, race = heat["label"], result["races"][heat["label"]]
        if race is None:
            notes.append(f"{name}: a board failed.")
            continue
        boards = [heat["contenders"][board] for board in race["winners"]]
        peers = race["peers"]
        told = [f"{winner['method']} {percent(winner['test'])}" for winner in race["winners"].values()]
        rows.append(
            [
                name,
                str(heat.get("measured", {}).get("seeds", result["seeds"])),
                _seconds(boards[0]["epoch_seconds"]),
                "–" if peers is None else duration(peers["sum"]),
                "–" if peers is None else f"{peers['ratio']:.2f}",
                f"{_seconds(boards[1]['epoch_seconds'])}; {race['exhaustive_ratio']:.2f}",
                *told,
                f"{race['points_lost']:+.2f}",
            ]
        )
        dropped = "; ".join(f"{drop['method']} after {drop['stage']}" for drop in race.get("dropped", ()))
        left = ", ".join(race.get("left", ()))
        notes.append(f"{name}: {race['metric']}; dropped: {dropped or left or 'nothing'}.")
    bars = result["bars"]
    header = (
        "data",
        "seeds",
        "the race, 8 methods",
        "peers one by one, computed",
        f"times as long (bar: {bars['times_as_long']:g})",
        "exhaustive; times as long",
        "winner of the race, test",
        "winner without it, test",
        f"points lost (bar: {bars['points_lost']:g})",
    )
    return _markdown(header, rows) + "\n\n" + "\n".join(f"- {note}" for note in notes)


def _time_to_full(result: Result) -> str:
    """Format every contender's time to the target; our fastest is marked."""
    rows = []
    for heat in result["heats"]:
        name, arrivals = heat["label"], result["arrivals"][heat["label"]]
        if arrivals is None:
            rows.append([name, "a contender failed", *["–"] * 6])
            continue
        for contender, reached in arrivals["contenders"].items():
            entry, times = heat["contenders"][contender], arrivals["times_as_long"].get(contender)
            rows.append(
                [
                    f"{name} ({percent(arrivals['target'])})",
                    contender + (" (our quickest)" if contender == arrivals["quickest"] else ""),
                    "never" if reached["median"] is None else duration(reached["median"]),
                    ", ".join(str(epoch or "never") for epoch in reached["epochs"]),
                    _seconds(entry["start_seconds"]),
                    _seconds(entry["fit_seconds"]),
                    percent(entry["test"]["mean"]),
                    "–" if times is None else f"{'at least ' if arrivals['at_least'] else ''}{times:.2f}",
                ]
            )
    header = (
        "data (target)",
        "contender",
        "to the target, median",
        "epochs to it, by seed",
        "of it the start",
        "a whole fit",
        "test accuracy after it",
        f"the Trainer takes times as long (bar: {result['bar']:g})",
    )
    return _markdown(header, rows)


def _settings(result: Result) -> str:
    """Format the chosen settings and the candidates."""
    keys = ("attention", "precision", "dropout", "loaders", "compiled", "learning_rate")
    rows = [[name, *(str(chosen[key]) for key in keys)] for name, chosen in result["chosen"].items()]
    return _markdown(("trains@data", *keys), rows) + "\n\n" + _contenders(result)


SECTIONS: Mapping[str, tuple[str, Callable[[Result], str]]] = {
    "full": ("Full fine-tuning", _contenders),
    "machine_share": ("Share of the machine's own bf16 matrix rate", _share),
    "side_by_side": ("The same share, two runs at once", _together),
    "top_layers": ("Two blocks trained, 5 epochs x 5 seeds", _contenders),
    "adapters": ("Adapter and LoRA", _contenders),
    "rules": ("Each rule of the engine switched off", _contenders),
    "pairs": ("Pairs whose texts differ in length", _contenders),
    "growth": ("Growth with the rows", _growth),
    "board": ("The whole board", _board),
    "racing": ("The whole board with its race", _racing),
    "time_to_full": ("Time to the quality of full fine-tuning", _time_to_full),
    "peer_settings": ("How the peers' best settings were chosen", _settings),
}


if __name__ == "__main__":
    print(table())
