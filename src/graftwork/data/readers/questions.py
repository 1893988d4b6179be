"""Reader of questions about passages: parses them, locates their answers in the passage, and splits by article."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graftwork.core.example import Example
from graftwork.core.task import SPLITS, Task
from graftwork.data.readers.rejects import Bad, Rejects
from graftwork.data.readers.squad import Question, questions
from graftwork.data.splits.content_split import draw, made_told, require_enough, salt_of, seed_words
from graftwork.errors import ConfigError, DataError, clip
from graftwork.targets.passages import Gold, Golds, Passage, question_of

FRACTIONS = {"test": 0.1, "validation": 0.1}  # shares of the training file's articles drawn where no file is given
FEWEST = 10  # fewest questions to draw splits from
ROUNDED = "Answers that begin or end inside a word, taken with the whole word"
REALIGNED = "Answers with a wrong offset; the occurrence nearest to the offset was taken"


@dataclass(frozen=True)
class QuestionFiles:
    """The examples read from a task's files."""

    examples: Mapping[str, list[Example]]  # by split
    made: str  # description of how the splits were made
    mended: Mapping[str, Mapping[str, int]]  # kind of repair while reading -> split -> number of answers


@dataclass
class _File:
    """The questions of one file, and errors found in their answers."""

    path: Path
    realign: bool
    passages: dict[str, Passage]  # by text, shared by all files: many questions share a passage
    examples: list[Example] = field(default_factory=list)  # ids without a split
    groups: list[str] = field(default_factory=list)  # each example's article, or its passage
    named: list[bool] = field(default_factory=list)  # whether each example names its article
    mended: list[dict[str, int]] = field(default_factory=list)  # repairs of each example
    misplaced: list[str] = field(default_factory=list)  # location and text of each misplaced answer

    @property
    def titled(self) -> bool:
        """Return True if all questions name their article."""
        return all(self.named)


def read_questions(task: Task, files: Mapping[str, Path], rejects: Mapping[str, Rejects]) -> QuestionFiles:
    """Read the examples of every split; splits without a file are drawn from the training file by article.

    Bad questions go to the `rejects` of their split's file.

    Raises `ConfigError` for a setting about columns, `DataError` for a wrong question, answer or file.
    """
    _require_no_columns(task)
    passages: dict[str, Passage] = {}
    read = {split: _read(path, task.settings.realign, passages, rejects[split]) for split, path in files.items()}
    missing = {split: share for split, share in FRACTIONS.items() if split not in files}
    drawn = (
        _split_of_each(read["train"], missing, task.split_seed) if missing else ["train"] * len(read["train"].examples)
    )
    chosen = {split: [(read["train"], n) for n, name in enumerate(drawn) if name == split] for split in SPLITS}
    chosen |= {
        split: [(file, n) for n in range(len(file.examples))] for split, file in read.items() if split != "train"
    }
    examples = {split: [_named(split, file.examples[n]) for file, n in rows] for split, rows in chosen.items()}
    mended = {
        what: {split: sum(file.mended[n].get(what, 0) for file, n in rows) for split, rows in chosen.items()}
        for what in (ROUNDED, REALIGNED)
    }
    unit = "article (title)" if read["train"].titled else "context"
    by = f"the {unit}{seed_words(task)}, {len(set(_groups(read['train']))):,} in all: no {unit} is in two of them"
    given, counts = (
        {split: path.name for split, path in files.items()},
        {split: len(examples[split]) for split in SPLITS},
    )
    return QuestionFiles(examples, made_told(given, counts, "questions", task.data, by), mended)


def questions_of(task: Task, path: Path, rejects: Rejects) -> list[Example]:
    """Read the questions of one file, of any split. Raises as `read_questions`."""
    _require_no_columns(task)
    return _read(path, task.settings.realign, {}, rejects).examples


def _require_no_columns(task: Task) -> None:
    for role in ("text", "text_a", "text_b", "label"):
        if getattr(task, role) is not None:
            raise ConfigError(
                f"{role} is set: questions about passages are under names of their own",
                got=getattr(task, role),
                expected="context, question and answers in the file",
                do=f"leave --{role.replace('_', '-')} out",
            )


def _read(path: Path, realign: bool, passages: dict[str, Passage], rejects: Rejects) -> _File:
    """Read one file. Raises `DataError` where it has no questions, an id twice, or misplaced answers."""
    file, seen = _File(path, realign, passages), dict[str, str]()
    for number, asked in enumerate(questions(path), 1):
        if isinstance(asked, Bad):
            rejects.refuse(asked)
            continue
        misplaced = len(file.misplaced)
        try:
            _require_new(asked, seen)
            _add(file, number, asked)
        except DataError as error:
            rejects.refuse(Bad(path, asked.line, error, asked.last))
            continue
        if rejects.aside and len(file.misplaced) > misplaced:
            _take_back(file, rejects, asked)
    rejects.require_rows(path, len(file.examples))
    if not file.examples:
        raise DataError(
            "the file has no questions",
            where=str(path),
            expected="one question or more",
            do="check that it was written whole",
        )
    if file.misplaced:
        raise _misplaced(file, f"{len(file.misplaced):,} answers; the first: {file.misplaced[0]}", str(path))
    return file


def _require_new(asked: Question, seen: dict[str, str]) -> None:
    if asked.id in seen:
        raise DataError(
            f"the id {clip(asked.id)} occurs twice",
            where=asked.where,
            got=f"it is at {seen[asked.id]}, too",
            expected="an id of its own for every question",
            do="give every question an id of its own, or remove the one that is there again",
        )
    if asked.id is not None:
        seen[asked.id] = asked.where


def _misplaced(file: _File, got: str, where: str) -> DataError:
    return DataError(
        "the answers are not at their offsets",
        where=where,
        got=got,
        expected="context[answer_start:] begins with the answer; offsets count characters, not bytes",
        do="mend the offsets, or take each answer where it is nearest to its offset: --realign",
    )


def _take_back(file: _File, rejects: Rejects, asked: Question) -> None:
    """Set the last question aside: one of its answers is misplaced."""
    for listed in (file.examples, file.groups, file.named, file.mended):
        listed.pop()
    rejects.refuse(Bad(file.path, asked.line, _misplaced(file, file.misplaced[-1], asked.where), asked.last))
    file.misplaced.clear()


def _add(file: _File, number: int, asked: Question) -> None:
    if asked.context not in file.passages:
        file.passages[asked.context] = Passage.of(asked.context)
    passage = file.passages[asked.context]
    counts: Counter[str] = Counter()
    golds = [_located_answer(file, passage, text, start, asked.where, counts) for text, start in asked.answers]
    for gold in golds:
        first, last = passage.words_at(gold.start, gold.start + len(gold.text))
        inside = passage.starts[first] < gold.start or passage.ends[last] > gold.start + len(gold.text)
        counts[ROUNDED] += inside
    file.examples.append(question_of(str(number), asked.question, passage, Golds(golds, passage)))
    file.groups.append(asked.title if asked.title is not None else asked.context)
    file.named.append(asked.title is not None)
    file.mended.append(dict(counts))


def _located_answer(
    file: _File, passage: Passage, text: str, start: int | None, where: str, counts: Counter[str]
) -> Gold:
    """Return the answer at its position in the passage; raise `DataError` if the passage does not contain it."""
    if start is not None and passage.text.startswith(text, start):
        return Gold(text, start)
    found = list(_occurrences(text, passage.text))
    if not found:
        raise DataError(
            "the answer is not in its context",
            where=where,
            got=clip(text),
            expected=f"a stretch of {clip(passage.text)}",
            do="mend the answer or remove the question",
        )
    if file.realign:
        counts[REALIGNED] += 1
    else:
        file.misplaced.append(f"{where}: {clip(text)} at {'no place' if start is None else start}")
    return Gold(text, min(found, key=lambda place: (abs(place - (start or 0)), place)))


def _occurrences(text: str, passage: str) -> Iterator[int]:
    at = passage.find(text)
    while at >= 0:
        yield at
        at = passage.find(text, at + 1)


def _split_of_each(file: _File, fractions: Mapping[str, float], seed: int | None) -> list[str]:
    """Return the split of every question of the training file. Raises `DataError` where one would stay empty."""
    require_enough(len(file.examples), "questions", FEWEST, fractions, file.path)
    groups = _groups(file)
    articles = sorted(set(groups))  # each counts once, so that a long one does not fill a split
    names = draw([{"article": one} for one in articles], [""] * len(articles), fractions, salt_of(seed))
    chosen = dict(zip(articles, names, strict=True))
    for split in fractions:
        if split not in chosen.values():
            about = "articles" if file.titled else "passages"
            raise DataError(
                f"no question is left for {split}: questions about one of the {about} stay in one split",
                where=str(file.path),
                got=f"{len(groups):,} questions about {len(articles):,} {about}",
                do=f"add questions about other {about}, or give a file: --{split} FILE",
            )
    return [chosen[group] for group in groups]


def _groups(file: _File) -> Sequence[str]:
    """Return each question's group, kept in one split: its article if every question names one, else its passage."""
    if file.titled:
        return file.groups
    return [example.source or "" for example in file.examples]


def _named(split: str, example: Example) -> Example:
    return Example(f"{split}/{example.id}", example.inputs, example.target, example.source)
