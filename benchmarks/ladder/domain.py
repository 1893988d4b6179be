"""`minilm` pre-trained further on biomedical text: perplexity there and elsewhere, disease tagging before and after."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from boards import Place, board, method_of
from judged import judged
from plan import Plan
from rungs import Rung, pretrained
from tasks import write_once
from units import Result, Unit

import graftwork as gw
from graftwork.compare.grid import statistics_on_test
from graftwork.compare.statistics import RowSample, bootstrap
from graftwork.data.load import load
from graftwork.registry import metrics

METHODS = ("linear_probe", "top_layers")
SEEDS, EPOCHS = 5, 3
ROWS = {"train": 800, "validation": 200, "test": 500}  # sentences
SHARE = 2.0  # relative to a rung's budget
WINDOW = 40  # characters without spaces; a line sharing that many with the start of a test sentence is dropped
GENERAL = "lm_wikipedia_paragraphs"
RECIPE = {"batch": 32, "length": 64, "head_steps": 100}
NETWORKS = ("minilm", "biomedical")


def units(plan: Plan) -> list[Unit]:
    """Return one pre-training and two boards."""
    made = [
        Unit("pretrain.biomedical", partial(going_on, plan)),
        Unit("board.minilm.ncbi_disease", partial(tagging, plan, "minilm")),
        Unit("board.biomedical.ncbi_disease", partial(tagging, plan, "biomedical"), needs=("pretrain.biomedical",)),
    ]
    every = tuple(unit.name for unit in made)
    return [*made, Unit("judge.domain", partial(judge, plan), awaits=every, again=True)]


def going_on(plan: Plan) -> Result:
    """Continue masked language modelling on all text except the test sentences of the tagging task."""
    place = plan.place
    corpus = write_corpus(place, plan.corpus_bytes)
    general = place.work / "corpora" / "encyclopedia"
    general.mkdir(parents=True, exist_ok=True)
    for source in sorted((place.data / GENERAL).glob("*.txt*")):
        (general / source.name.removesuffix(".gz")).write_text(text_of(source), encoding="utf-8")
    rung = Rung("masked", recipe=RECIPE)
    recipe = None if plan.recipe is None else {**plan.recipe, "head_steps": 2}
    return pretrained(
        "pretrain.biomedical", rung, corpus, place.work, budget=SHARE * plan.budget, recipe=recipe, backbone="minilm",
        general=general, validation=0.05,
    )  # fmt: skip


def write_corpus(place: Place, most: int) -> Path:
    """Write a line per document, without those that share a stretch with a test sentence."""
    folder, tested = place.work / "corpora" / "biomedical", stretches(place.data)
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((place.data / "lm_biomedical").glob("*.txt*")):
        kept = [line for line in text_of(source)[:most].splitlines() if not shares(line, tested)]
        (folder / source.name.removesuffix(".gz")).write_text("\n".join(kept) + "\n", encoding="utf-8")
    return folder


def text_of(path: Path) -> str:
    """Return the text of a file that may be compressed."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode("utf-8")


def stretches(data: Path) -> set[str]:
    """Return the first `WINDOW` characters of every test sentence that is long enough, normalised by `letters`."""
    sentences = ("".join(words) for words, _ in sentences_of(data / "ncbi_disease" / "test.conll"))
    return {letters(sentence)[:WINDOW] for sentence in sentences if len(letters(sentence)) >= WINDOW}


def letters(text: str) -> str:
    """Return the text without spaces, in lower case, since joining tokens may change the spacing."""
    return "".join(text.split()).lower()


def shares(line: str, tested: set[str]) -> bool:
    """Return whether the start of a test sentence occurs in this line."""
    whole = letters(line)
    return any(whole[place : place + WINDOW] in tested for place in range(len(whole) - WINDOW + 1))


def sentences_of(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Yield words and tags of a CoNLL file, sentence by sentence."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n")]
        yield [row[0] for row in rows], [row[-1] for row in rows]


def task(plan: Plan) -> gw.Task:
    """Return the task on the first sentences of every split."""
    folder = plan.place.work / "tasks" / "ncbi_disease"
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"train": ROWS["train"], "dev": ROWS["validation"], "test": ROWS["test"]}
    most = plan.place.draw.train  # fewer when only trying
    for split, count in rows.items():
        source = plan.place.data / "ncbi_disease" / f"{split}.conll"
        blocks = source.read_text(encoding="utf-8").strip().split("\n\n")
        write_once(folder / f"{split}.conll", "\n\n".join(blocks[: min(count, most)]) + "\n\n")
    given = {"validation": folder / "dev.conll", "test": folder / "test.conll"}
    return gw.Task.from_file(folder / "train.conll", name="ncbi_disease", kind="tagging", **given)


def tagging(plan: Plan, network: str) -> Result:
    """Return the board of `minilm`, or of its further pre-trained version."""
    backbone = "minilm" if network == "minilm" else f"runs/{plan.bench.result('pretrain.biomedical')['run']}"
    seeds, epochs = (SEEDS, EPOCHS) if plan.place.seeds > 1 else (1, 1)
    settings = {"seeds": seeds, "epochs": epochs}
    return board(f"{network}.ncbi_disease", plan.place, task(plan), backbone, METHODS, **settings)


def judge(plan: Plan) -> Result:
    """Compare after with before, by each method."""
    asked = task(plan)
    dataset = load(asked)
    metric, made = dataset.task.metrics[0], []
    for network in NETWORKS:
        for row in plan.bench.result(f"board.{network}.ncbi_disease")["rows"]:
            read = [statistics_on_test(dataset, plan.place.work / "runs" / run, [metric]) for run in row["runs"]]
            made.append(RowSample(f"{network} {method_of(row['method'])}", tuple(stats[metric] for stats in read)))
    pairs = [(f"biomedical {method}", f"minilm {method}") for method in METHODS]
    return judged(bootstrap(made, metrics.get(metric)), {"after and before": pairs})
