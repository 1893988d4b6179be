"""`pretrain`: trains a backbone on text, with a receipt and a price tag; interrupted runs resume exactly."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graftwork.config import Prices
from graftwork.core.arguments import told_arguments
from graftwork.core.progress import Progress, silent
from graftwork.core.run import RunResult, RunSpec
from graftwork.errors import ConfigError
from graftwork.io.files import only_one_process, require_writable, storage_errors, write_json
from graftwork.machine.cards import choose_card
from graftwork.machine.environment import numerics, resolve_device
from graftwork.pretrain.corpus import VALIDATION
from graftwork.pretrain.corpus_cache import corpora_folder
from graftwork.pretrain.duration import Extent, account_of
from graftwork.pretrain.library_training import at_once
from graftwork.pretrain.objective import AtOnce, Continues, Objective, OwnVocabulary, PretrainingRecipe, ReadsPairs
from graftwork.pretrain.parallel import JointWatch, Peers, peers
from graftwork.pretrain.pretrain_folder import CHECKPOINT
from graftwork.pretrain.pretrain_report import write_report
from graftwork.pretrain.pretrain_run import PretrainOrder, PretrainSession, ResolvedPretraining, by_gradient
from graftwork.pretrain.start_point import NamedObjective, folder_of, parse_objective, recipe_of, revision_of, size_of
from graftwork.pretrain.text_files import PAIR, UNITS
from graftwork.pretrain.training_text import TextChoice, open_texts, tokenise_texts, vocabulary_of
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrained.open_backbone import PRETRAINED
from graftwork.run.price_tag import begin_all, with_prices
from graftwork.run.store import FORMAT, RunStore, read_result, write_run
from graftwork.units import read_amount

KIND = "pretraining"  # "kind" of the question in spec.json
CHECKPOINT_EVERY = "1min"
SIZE = "tiny"


@dataclass(frozen=True)
class Pretrained:
    """A finished pre-training."""

    result: RunResult
    folder: Path
    reused: bool  # True if the run was finished already

    @property
    def backbone(self) -> Path:
        """The folder for `--backbone`, which also accepts `self.folder`."""
        return self.folder / PRETRAINED


@told_arguments
def pretrain(
    corpus: str | Path | Sequence[str | Path],
    *,
    objective: str = "masked",
    backbone: str | None = None,
    size: str | None = None,
    tokenizer: str | None = None,
    vocabulary: int | None = None,
    lowercase: bool | None = None,
    steps: int | None = None,
    tokens: int | None = None,
    budget: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    validation: float = VALIDATION,
    unit: str = "line",
    field: str = "text",
    encoding: str = "utf-8",
    general: str | Path | None = None,
    replay: float = 0.0,
    validate_every: int | None = None,
    prompt: str = "",
    seed: int = 0,
    runs: str | Path = "runs",
    checkpoint_every: str = CHECKPOINT_EVERY,
    precision: str = "auto",
    device: str = "auto",
    prices: str | Path | None = None,
    cache: str | Path | None = None,
    progress: Progress = silent,
) -> Pretrained:
    """Train `objective` on the texts of `corpus` (files and folders): a network of `size` (else "tiny"), or `backbone`.

    Training lasts `steps`, `tokens` or a `budget` ("20min", "50kJ", "1e15FLOP"), else one pass over the corpus.
    `recipe` replaces fields of the objective's `PretrainingRecipe`. `general` is text of another domain to validate on
    as well; a share `replay` of every batch is drawn from it. The same call again returns a finished run, or resumes an
    unfinished one from its last checkpoint. Started by torchrun, several processes share every batch.

    Raises `GraftworkError` for bad data or settings, `Diverged` for a loss that is no longer a number.
    """
    watch, marks = JointWatch(), begin_all()
    listed, extent = Prices.from_file(Path(prices) if prices is not None else None), Extent(steps, tokens, budget)
    account, made = account_of(extent, listed, watch), parse_objective(objective)
    if backbone is not None:
        _require_unset({"size": size, "tokenizer": tokenizer, "vocabulary": vocabulary, "lowercase": lowercase})
    if isinstance(made.objective, AtOnce):
        _require_no_steps({"steps": extent.steps, "general": general, "validate_every": validate_every})
    named, kept = tokenizer or made.objective.tokenizer, _seconds(checkpoint_every)
    unit = _unit(unit, made.objective)
    own, other = ([paths] if isinstance(paths, str | Path) else list(paths) for paths in (corpus, general or []))
    asked = TextChoice(own, validation, other, replay, unit, field, encoding, named, vocabulary, lowercase)
    require_writable(Path(runs))
    with peers() as group:
        if group.size > 1 and isinstance(made.objective, AtOnce):
            raise ConfigError("this objective runs in one process only", do="start it without torchrun")
        learner = _learner(made, backbone, size or SIZE, recipe or {}, group)
        computed_in = _computed_in(precision, device, made.objective, group)
        session = PretrainSession(computed_in, listed, group, watch, account, marks, progress)
        order = PretrainOrder(learner, session, seed, extent, validate_every, kept, prompt)
        return _run(order, asked, Path(runs), corpora_folder(cache))


def _unit(unit: str, objective: Objective) -> str:
    """Return the unit of documents: `PAIR` if the objective learns from pairs. Raises `ConfigError` for other units."""
    if not isinstance(objective, ReadsPairs):
        return unit
    if unit not in (UNITS[0], PAIR):
        raise ConfigError("this objective reads pairs of texts", got=f"--unit {unit}", do="leave --unit out")
    return PAIR


def _computed_in(precision: str, device: str, objective: Objective, group: Peers) -> dict[str, Any]:
    """Return the numerics, with the leading process's precision: each process may find another one faster.

    Several processes take one GPU each, and share GPUs if there are fewer. An `AtOnce` objective runs on the CPU.
    """
    resolve_device(device)
    at_once = isinstance(objective, AtOnce)
    found = numerics(precision, "cpu" if at_once else device, not at_once)
    if found["device"] == "cuda" and group.size > 1:
        choose_card(group.rank)
    bf16 = group.broadcast(float(found["precision"] == "bf16"))
    return found | {"precision": "bf16" if bf16 else "fp32"}


def _learner(
    made: NamedObjective, backbone: str | None, size: str, changes: Mapping[str, Any], group: Peers
) -> ResolvedPretraining:
    """Resolve what is trained; a backbone brings its own size and vocabulary."""
    objective = made.objective
    recipe = _recipe(objective, changes, group, continuing=backbone is not None)
    if backbone is None:
        return ResolvedPretraining(objective, made.config, None, None, size_of(objective, size), recipe)
    folder = folder_of(backbone)
    return ResolvedPretraining(objective, made.config, folder, Vocabulary.open(folder), {}, recipe)


def _run(order: PretrainOrder, asked: TextChoice, runs: Path, root: Path) -> Pretrained:
    """Return the finished run, or execute it."""
    group = order.session.peers
    order.session.progress(0.0, "reading the corpus")
    if not group.leads:
        group.wait()  # the leading process computes the vocabulary and tokens; the others read them from the cache
    texts = open_texts(asked)
    objective, brought = order.learner.objective, order.learner.brought
    vocabulary = brought or vocabulary_of(texts, root)
    if brought is None and isinstance(objective, OwnVocabulary):
        vocabulary = objective.extended(vocabulary)
    material = tokenise_texts(texts, vocabulary, root)
    if group.leads:
        group.wait()
    spec = _spec(order, texts.identity(brought))
    store, folder = RunStore(runs), runs / spec.id
    known = store.find(spec.id)
    group.wait()
    if known is not None:
        return Pretrained(with_prices(known, order.session.prices), folder, True)
    with _alone(folder) if group.leads else nullcontext():
        known = store.find(spec.id)  # another process may have finished it meanwhile
        if group.broadcast(float(known is not None)):
            known = known or read_result(folder / "result.json")
            return Pretrained(with_prices(known, order.session.prices), folder, True)
        if group.leads:
            write_json(folder / "spec.json", {"format": FORMAT} | asdict(spec))
        execute = at_once if isinstance(objective, AtOnce) else by_gradient
        result = execute(order, spec, folder, material)
        if group.leads:
            write_report(spec, result, folder)
            write_run(folder, spec, result)
            shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    group.wait()
    return Pretrained(result if group.leads else read_result(folder / "result.json"), folder, False)


def _alone(folder: Path) -> AbstractContextManager[None]:
    """Create the folder and lock it. Raises `StorageError` if another process holds the lock."""
    with storage_errors(folder):
        folder.mkdir(exist_ok=True)
    return only_one_process(folder / ".lock", "another process trains this run", "wait for it, or give another --seed")


def _spec(order: PretrainOrder, reads: Mapping[str, Any]) -> RunSpec:
    """Return the identity of a pre-training as a run specification."""
    settings, extent = order.learner.recipe, order.extent
    recipe = {} if settings is None else asdict(settings)
    if settings is not None or extent != Extent():  # an objective without steps has its own default number of passes
        recipe |= extent.as_json()
    every = {"validate_every": order.validate_every} if order.validate_every is not None else {}
    return RunSpec(
        question={"kind": KIND, **{name: reads[name] for name in ("general", "tokenizer")}},
        data=reads["corpus"],
        backbone=revision_of(order.learner.source) if order.learner.source is not None else None,
        method={**order.learner.config, "size": dict(order.learner.size)},
        recipe=recipe | every,
        seed=order.seed,
        numerics={**order.session.computed_in, "processes": order.session.peers.size},
    )


def _recipe(
    objective: Objective, changes: Mapping[str, Any], group: Peers, *, continuing: bool
) -> PretrainingRecipe | None:
    """Resolve the recipe; None for an objective not trained in steps. Each process gets at least one pass per step."""
    if isinstance(objective, AtOnce):
        if continuing:
            raise ConfigError("this objective can't start from a backbone", do="leave --from out")
        if given := _flags(changes):
            raise ConfigError("these options do not apply to this objective", got=given, do="leave these out")
        return None
    default = objective.continuing if continuing and isinstance(objective, Continues) else objective.recipe
    recipe = recipe_of(default, changes)
    if group.size > recipe.batch:
        raise ConfigError(
            "there are more processes than rows of a batch",
            got=f"{group.size} processes, --batch {recipe.batch}",
            do="start fewer, or raise --batch",
        )
    passes = recipe.batch // recipe.rows_at_once if recipe.rows_at_once else 1
    if group.size > 1 and passes < group.size:
        recipe = recipe_of(recipe, {"rows_at_once": max(1, recipe.batch // group.size)})
    return recipe


def _flags(settings: Mapping[str, Any]) -> str:
    """List the flags that were given."""
    return ", ".join(f"--{name.replace('_', '-')}" for name, value in settings.items() if value is not None)


def _require_no_steps(settings: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for settings that an `AtOnce` objective does not use."""
    if given := _flags(settings):
        raise ConfigError(
            "these options do not apply to this objective",
            got=given,
            do="leave these out; give --tokens or --budget for the length of the training",
        )


def _require_unset(settings: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for settings that the backbone to continue from already fixes."""
    for name, value in settings.items():
        if value is not None:
            raise ConfigError(
                "size and tokenizer are those of the backbone of --from",
                got=f"{'--cased' if value is False else f'--{name}'}{'' if isinstance(value, bool) else f' {value}'}",
                do="leave it out",
            )


def _seconds(words: str) -> float:
    """Parse the time between two checkpoints, in seconds; "0" writes one after every step."""
    if words == "0":
        return 0.0
    amount, unit = read_amount(words)
    if unit != "s":
        raise ConfigError("--checkpoint-every is a time", got=words, expected="like 10min, or 0 for every step")
    return amount
