"""`curve`: learning curves of methods over training set sizes, and the labels that transfer saves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from graftwork.compare.curve_content import CurveRun, content_of, transfers
from graftwork.compare.curve_page import curve_chart, render_page
from graftwork.compare.curve_table import cells, header, saving_lines, title
from graftwork.compare.leaderboard import require_each_once
from graftwork.compare.leaderboard_display import chart_css, scored_columns
from graftwork.compare.majority_floor import MAJORITY
from graftwork.compare.workers import RunOrder, crew_of, with_threads
from graftwork.core.backbone import BackboneCard
from graftwork.core.configured_methods import ConfiguredMethod, of_a, parse_method
from graftwork.core.in_memory import beside
from graftwork.core.method import unfit
from graftwork.core.part_settings import split_words
from graftwork.core.progress import Progress
from graftwork.core.progress_bar import progress_or_bar
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Dataset, Task
from graftwork.data.splits.draws import Size, draw, parse_sizes, plan_draws
from graftwork.errors import ConfigError
from graftwork.io.display import card, frame, table
from graftwork.io.files import finite, require_writable, write_json, write_text
from graftwork.pretrained.open_backbone import FRESH
from graftwork.run.session import Session, open_session, with_backbone
from graftwork.run.sessions import Sessions
from graftwork.run.settings import GivenSettings, RunSettings, takes_settings
from graftwork.train.wrapper_method import trainings

DRAWS = 5
FEWEST_ROWS = 2  # training rows that every draw of a size needs
FROM_FRESH = "full:decay=1"  # default reference on fresh weights: the same network without transfer


@dataclass(frozen=True, repr=False)
class Curves:
    """The result of `curve`. `content` is exactly the content of `curve.json`."""

    content: Mapping[str, Any]
    folder: Path  # the folder of `curve.json`
    reused: int  # runs that were already stored
    executed: int

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: a row per method and size, with every metric's mean and 95 % interval (fractions),
        and every cost, its unit in the name. Raises `MissingExtra` without pandas."""
        points, own = self.content["points"], ("method", "size", "rows", "n_draws", "n_failed")
        return frame([{name: point[name] for name in own} | scored_columns(point, points) for point in points])

    def __repr__(self) -> str:
        lines = [title(self.content), *saving_lines(self.content)[:3], f"In {self.folder}, report.html shows it all."]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        rows = [[method, *told] for method, told in cells(self.content).items()]
        chart = f'<div class="chart">{curve_chart(self.content)}</div>'
        blocks = (table(["method", *header(self.content)], rows), chart)
        about = f"In {self.folder}, report.html shows it all."
        return card(title(self.content), saving_lines(self.content), *blocks, about=about, style=chart_css())


@dataclass(frozen=True)
class CurveMethod:
    """A method of the curve, on pretrained or on fresh weights."""

    item: ConfiguredMethod
    fresh: bool

    @property
    def label(self) -> str:
        """The label on the curve."""
        return (FRESH if self.fresh else "") + self.item.label


@dataclass(frozen=True)
class SizeRuns:
    """A training set size and the methods that run at it."""

    size: Size
    ways: Sequence[CurveMethod]


@takes_settings
def curve(
    task: Any,
    *,
    sizes: str | Sequence[str] | None = None,
    reference_sizes: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    **given: Unpack[GivenSettings],
) -> Curves:
    """Fit `methods` to `draws` subsets of the training split at each of `sizes`; score them on the whole test split.

    `task` is a `Task` or what `Task.from_data` takes.

    A size is a number of rows per class ("8/class") or a share ("10%"); within each class, the larger subsets of a draw
    contain the smaller ones, and subsets are a pure function of `seed`, the draw and the rows. At most as many
    validation rows as training rows are used for choices.
    A method with the prefix `random:` runs on the same architecture with fresh weights. At `reference_sizes`, even if
    they are also among `sizes`, only methods without pretrained weights run. Methods run in full, at their own learning
    rates, with the number of the draw as their seed; `jobs` runs are concurrent, as in `compare`.

    `out` (default `curves/<task>`) receives `curve.json` and `report.html`; the same call resumes an interrupted one.
    Raises `GraftworkError` for bad data or settings; a failed run is noted.
    """
    if draws < 1:
        raise ConfigError("draws must be at least 1", got=str(draws))
    setup = RunSettings.of(given)
    task = Task.from_data(task, folder=beside(setup.runs))
    ways = _ways(methods, setup.backbone)
    folder = Path(out) if out is not None else Path("curves") / task.name
    chosen = [way.item for way in ways if not way.fresh] or [way.item for way in ways]
    session = with_threads(open_session(task, chosen, setup, out=folder), jobs)
    listed = parse_sizes(sizes, session.dataset.task)
    apart = [] if reference_sizes is None else parse_sizes(reference_sizes, session.dataset.task)
    ways = _fitting(ways, session, asked=methods is not None)
    sessions = _sessions(session, ways)
    for way in ways:
        sessions[way.fresh].spec(way.item, setup.recipe, 0)  # raises for an invalid recipe before any run
    size_runs, notes = _size_runs(sessions, ways, listed, apart, draws, seed)
    require_writable(folder)
    with progress_or_bar(progress) as told:
        curve_runs, reused = _run(sessions, size_runs, setup.recipe, draws, seed, told)
    content = finite(content_of(session, curve_runs, [one.size.word for one in size_runs], notes, draws, seed))
    write_json(folder / "curve.json", content)
    write_text(folder / "report.html", render_page(content))
    return Curves(content, folder, reused, len(curve_runs) - reused)


def _sessions(session: Session, ways: Sequence[CurveMethod]) -> list[Session]:
    """Return the session on the backbone and, if some method needs it, one on the same backbone with fresh weights."""
    if not any(way.fresh for way in ways):
        return [session]
    assert session.opened_by is not None
    setup = replace(session.opened_by.setup, backbone=f"{FRESH}{session.opened_by.setup.backbone}")
    named = tuple(way.item.config for way in ways)
    return [session, with_backbone(session, replace(session.opened_by, methods=named, setup=setup))]


def _ways(words: str | Sequence[str] | None, backbone: str) -> list[CurveMethod]:
    """Return the named methods, or the default ones. Raises `UnknownName`, or `ConfigError` for one named twice."""
    if words is None:
        usual = [CurveMethod(item, False) for item in sorted(of_a("CURVE"), key=lambda item: item.method.uses_backbone)]
        return usual + ([] if backbone.startswith(FRESH) else [CurveMethod(parse_method(FROM_FRESH), True)])
    listed = [word.strip() for word in split_words(words) if word.strip()]
    ways = [CurveMethod(parse_method(word.removeprefix(FRESH)), word.startswith(FRESH)) for word in listed]
    require_each_once([way.label for way in ways])
    for way in ways:
        if way.fresh and not way.item.method.uses_backbone:
            raise ConfigError(
                f"method {way.item.label!r} uses no backbone that could have fresh weights",
                do="leave random: out before it",
            )
        if way.fresh and backbone.startswith(FRESH):
            raise ConfigError(
                "the backbone has fresh weights already",
                got=f"{backbone}, {way.label}",
                do="leave random: out on one side",
            )
    return ways


def _fitting(ways: Sequence[CurveMethod], session: Session, asked: bool) -> list[CurveMethod]:
    """Return the methods that fit the task and the backbone. Raises `ConfigError` if an `asked` method does not."""
    task, card = session.dataset.task, _card(session)
    reasons = {way.label: unfit(way.item.method, task, card) for way in ways}
    for label, reason in reasons.items():
        if reason and asked:
            raise ConfigError(f"method {label!r} can't be used here: {reason}", do="leave it out of --methods")
    return [way for way in ways if not reasons[way.label]]


def _size_runs(
    sessions: Sequence[Session],
    ways: Sequence[CurveMethod],
    sizes: Sequence[Size],
    apart: Sequence[Size],
    draws: int,
    seed: int,
) -> tuple[list[SizeRuns], list[str]]:
    """Return the methods that run at each size, from small to large, and notes on the sizes.

    At the sizes `apart` (`reference_sizes`) only methods without pretrained weights run. Raises `ConfigError` if none
    of the other sizes remains, or if only the majority class would run at the sizes `apart`.
    """
    references = [way for way in ways if not transfers(way.item, _card(sessions[way.fresh]))]
    if apart and all(way.label == MAJORITY for way in references):
        raise ConfigError(
            "no method is named that starts from no pretrained weights",
            got=", ".join(way.label for way in ways),
            do="leave --reference-sizes out, or name one: --methods tfidf_svm,random:full,full",
        )
    every = [size for size in sizes if size not in apart]
    kept, notes = _different(sessions[0].dataset, [*apart, *every], draws, seed)
    if not set(kept) & set(every):
        raise ConfigError("no size is left", got="; ".join(notes), do="give larger --sizes, for all methods")
    told = ", ".join(size.word for size in kept if size in apart)
    notes += [f"{told}: only methods that start from no pretrained weights were tried"] * bool(told)
    return [SizeRuns(size, references if size in apart else ways) for size in kept], notes


def _different(dataset: Dataset, sizes: Sequence[Size], draws: int, seed: int) -> tuple[list[Size], list[str]]:
    """Return the sizes from small to large, and a note on each one that is left out or is otherwise special.

    A size is left out if it takes the same rows as a later one in every draw (random rounding of a share may differ
    between draws), or if some draw has fewer than two rows, which is too few to learn from.
    """
    plans = plan_draws(dataset, sizes, draws, seed)
    empty = [size for size in sizes if min(plans[size].rows) < FEWEST_ROWS]
    notes = [f"{size.word} is left out: a draw of it has fewer than {FEWEST_ROWS} rows" for size in empty]
    sizes = [size for size in sizes if size not in empty]
    same = {size: [other for other in sizes if plans[other].taken == plans[size].taken][-1] for size in sizes}
    kept = sorted((size for size in sizes if same[size] is size), key=lambda size: sum(plans[size].rows))
    notes += [
        f"{size.word} is left out: it takes the same rows as {same[size].word}"
        for size in sizes
        if same[size] is not size
    ]
    notes += [
        f"{size.word}: {short} of {len(dataset.task.labels)} classes have fewer rows; all of theirs are taken"
        for size in kept
        if (short := plans[size].short)
    ]
    notes += [
        f"{larger.word} takes fewer rows of some classes than {smaller.word}: not all rows of a draw at {smaller.word} "
        f"are among those at {larger.word}"
        for smaller, larger in itertools.pairwise(kept)
        if not plans[smaller].is_within(plans[larger])
    ]
    return kept, notes


def _run(
    sessions: Sequence[Session],
    size_runs: Sequence[SizeRuns],
    recipe: Recipe,
    draws: int,
    seed: int,
    progress: Progress,
) -> tuple[list[CurveRun], int]:
    """Execute the runs draw by draw, so that an interrupted curve compares all methods on its finished draws."""
    asked = [
        (way, drawn)
        for number in range(draws)
        for of_size in size_runs
        for drawn in [draw(sessions[0].dataset, of_size.size, number, seed)]
        for way in of_size.ways
    ]
    orders = [
        RunOrder(
            way.label,
            way.item,
            recipe,
            drawn.number * trainings(way.item.method),
            f"{drawn.size.word} draw {drawn.number}",
            session=int(way.fresh),
            drawn=drawn.dataset,
        )
        for way, drawn in asked
    ]
    parts = [0.0] * len(orders)

    def report(place: int, done: float, text: str) -> None:
        parts[place], order = done, orders[place]
        progress(sum(parts) / len(parts), f"{order.label} {order.stage}: {text}")

    results: dict[int, RunResult] = {}
    reused = 0
    with crew_of(Sessions(*sessions)) as crew:
        for place, result, known in crew(orders, report):
            results[place], parts[place] = result, 1.0
            reused += known
    curve_runs = [
        CurveRun(way.label, way.item, _card(sessions[way.fresh]), drawn, results[place])
        for place, (way, drawn) in enumerate(asked)
    ]
    return curve_runs, reused


def _card(session: Session) -> BackboneCard | None:
    return session.backbone.card if session.backbone else None
