"""Sentences in columns: words and tags come out, and every way in which a file can be bad is named with its place."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, DataError, GraftworkError, UnknownName

TABS = "EU\tB-ORG\nrejects\tO\n\nGerman\tB-MISC\ncall\tO\n"
SENTENCES = [(1, (("EU", "rejects"), ("B-ORG", "O"))), (4, (("German", "call"), ("B-MISC", "O")))]


def write(folder: Path, content: str, name: str = "t.conll") -> Path:
    path = folder / name
    raw = content.encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def read(path: Path, *columns: str) -> list[tuple[int, tuple[object, ...]]]:
    return [(row.line, row.cells) for row in open_table(path).rows(columns or ("tokens", "tags"))]


@pytest.mark.parametrize("name", ["t.conll", "t.conll.gz", "t.bio", "t.iob"])
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("blank", ["\n", " \t\n"])
@pytest.mark.parametrize("end", ["", "\n\n\n"])
def test_the_same_sentences_however_written(
    tmp_path: Path, name: str, eol: str, bom: str, blank: str, end: str
) -> None:
    for separator in ("\t", " ", "  "):
        content = TABS.replace("\t", separator).replace("\n\n", f"\n{blank}") + end
        assert read(write(tmp_path, bom + content.replace("\n", eol), name)) == SENTENCES


def test_columns_in_between_have_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path, "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n-DOCSTART- -X- O O\n\nx Y Z O\n"
    )
    assert open_table(path).header == ("tokens", "2", "3", "tags")
    assert read(path, "2", "tags") == [(3, (("NNP", "VBZ"), ("B-ORG", "O"))), (8, (("Y",), ("O",)))]
    assert open_table(write(tmp_path, "one\n\ntwo\n", "w.conll")).header == ("tokens",)


def test_universal_dependencies(tmp_path: Path) -> None:
    rest = "\t_" * 6
    content = (
        f"# newdoc\n# text = don't #1\n1-2\tdon't{rest}\t_\t_\n1\tdo\tdo\tAUX{rest}\n2\tn't\tnot\tPART{rest}\n"
        f"2.1\tempty\t_\tVERB{rest}\n3\t#\t#\tSYM{rest}\n4\t1 000\t1\tNUM{rest}\n\n"
    )
    path = write(tmp_path, content, "t.conllu")
    assert read(path, "tokens", "upos") == [(4, (("do", "n't", "#", "1 000"), ("AUX", "PART", "SYM", "NUM")))]


def test_a_first_line_of_a_document_says_nothing_of_the_separator(tmp_path: Path) -> None:
    path = write(tmp_path, "-DOCSTART-\n\na b\tO\nc\tO\n")
    assert read(path) == [(3, (("a b", "c"), ("O", "O")))]


@pytest.mark.parametrize("separator", ["\t", " "])
def test_a_number_sign_may_be_a_word(tmp_path: Path, separator: str) -> None:
    comments = "# sent_id = 3\n# newpar\n# text = # 1\n"
    path = write(tmp_path, f"a{separator}O\n\n{comments}#{separator}O\n1{separator}O\n")
    assert read(path) == [(1, (("a",), ("O",))), (6, (("#", "1"), ("O", "O")))]


@pytest.mark.parametrize(
    ("comment", "row"),
    [
        ("#\thttp://de.example.org/a [2009-10-17]", "{}\tEU\tB-ORG\tO"),  # GermEval 2014
        ("#\tsource\tof it\tn-tv.de vom 26.02.2005", "{}\tEU\tB-ORG\tO"),
        ("#\tn-tv.de vom 26.02.2005 [2005-02-26]", "EU\tB-ORG"),
        ("# id 1db4a2f3-02b8\tdomain=en", "EU _ _ B-ORG"),  # MultiCoNER
        ("# id 1db4a2f3-02b8\tdomain=en", "EU\t_\t_\tB-ORG"),
        ("#begin document (bc/cctv/00/cctv_0000); part 000", "EU NNP B-ORG"),  # CoNLL-2012
        ("# a comment of its own", "EU B-ORG"),
        ("# http://example.org/a", "EU B-ORG"),
    ],
)
def test_comments_before_a_sentence(tmp_path: Path, comment: str, row: str) -> None:
    sentence = f"{row.format(1)}\n{row.format(2)}\n"
    plain = write(tmp_path, f"{sentence}\n{sentence}", "plain.conll")
    commented = write(tmp_path, f"{comment}\n{sentence}\n{comment}\n{sentence}", "commented.conll")
    header = open_table(plain).header
    assert open_table(commented).header == header
    assert [cells for _, cells in read(commented, *header)] == [cells for _, cells in read(plain, *header)]


@pytest.mark.parametrize("row", ["{}\tO", "{} O", "{} NN O"])
def test_words_that_begin_with_a_number_sign(tmp_path: Path, row: str) -> None:
    words = ("#", "#tag", "##", "a", "#")
    content = "".join(f"{row.format(word)}\n" for word in words)
    for before in ("", f"{row.format('b')}\n\n", "\n\n"):
        assert read(write(tmp_path, before + content), "tokens")[-1][1] == (words,)


def test_a_document_ends_the_sentence_before(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a O\n-DOCSTART- -X-\nb O\n\n\n-DOCSTART-\n# x = 1\nc O\n"), "tokens") == [
        (1, (("a",),)),
        (3, (("b",),)),
        (8, (("c",),)),
    ]


def test_numbers_in_place_of_words_are_refused(tmp_path: Path) -> None:
    sentence = "1\tEU\tB-ORG\tO\n2\tcalls\tO\tO\n3\t.\tO\tO\n"
    path = write(tmp_path, "\n".join([sentence.replace("EU", f"EU{i}") for i in range(20)]))
    with pytest.raises(DataError, match="the words are only the numbers of their places") as caught:
        load(Task.from_file(path, kind="tagging"))
    assert "--text 2" in caught.value.do
    assert len(load(Task.from_file(path, kind="tagging", text="2", label="3")).train.examples) == 14


def test_only_spaces_and_tabs_separate(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a\u00a0b O\n\u2028 O\n")) == [(1, (("a\u00a0b", "\u2028"), ("O", "O")))]
    assert read(write(tmp_path, "a b\tO\n")) == [(1, (("a b",), ("O",)))]


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("a\tO\nb\n", 2, "too few fields"),
        ("a O\nb c O\n", 2, "too many fields"),
        ("a\tO\n\tO\n", 2, "a field is empty"),
        ("a O\nb O\rc O\n", 2, "a carriage return"),
        ("a\tO\nb\t\n", 2, "a field is empty"),
    ],
)
def test_bad_lines(tmp_path: Path, content: str, line: int, what: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=what) as caught:
        read(path)
    assert caught.value.where == f"{path}:{line}"


def test_nothing_in_it(tmp_path: Path) -> None:
    for content in ("", "\n\n", "-DOCSTART- O\n\n"):
        with pytest.raises(DataError, match="the file is empty"):
            open_table(write(tmp_path, content))


# From a file to a data set.

ROWS = [(("the", "film", "was", f"good{i}"), ("O", "O", "O", ("B-A", "B-B")[i % 2])) for i in range(40)]


def conll(folder: Path, rows: list[tuple[tuple[str, ...], tuple[str, ...]]], name: str = "t.conll") -> Path:
    return write(folder, "\n".join("".join(f"{w}\t{t}\n" for w, t in zip(*row, strict=True)) for row in rows), name)


def refusal(error: type[GraftworkError], path: Path, **flags: object) -> GraftworkError:
    with pytest.raises(error) as caught:
        load(Task.from_file(path, kind="tagging", **flags))
    return caught.value


def test_a_conll_file_is_split_and_encoded(tmp_path: Path) -> None:
    data = load(Task.from_file(conll(tmp_path, ROWS), kind="tagging"))
    assert {name: len(split.examples) for name, split in data.splits.items()} == {
        "train": 28, "validation": 4, "test": 8,
    }  # fmt: skip
    assert data.task.labels == ("B-A", "B-B", "O")
    assert data.task.metrics == ("entity_f1", "conll_f1", "accuracy")
    example = data.train.examples[0]
    assert example.inputs == {"words": ROWS[int(example.id.removeprefix("train/")) - 1][0]}
    assert [len(rows) for rows in data.train.targets] == [4] * 28
    assert data.report["majority_share"]["train"] == 3 / 4 and data.report["answers"]["test"] == 32
    assert data.report["words"]["max"] == 4


def test_jsonl_says_the_same(tmp_path: Path) -> None:
    import json

    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"tokens": w, "tags": t}) + "\n" for w, t in ROWS))
    assert (
        load(Task.from_file(path, kind="tagging")).digest
        == load(Task.from_file(conll(tmp_path, ROWS), kind="tagging")).digest
    )


@pytest.mark.parametrize(
    ("line", "what", "more"),
    [
        ('{"tokens": ["a", "b"], "tags": ["O"]}', "the numbers of words and tags differ", "2 words, 1 tags"),
        ('{"tokens": ["a"], "tags": "O"}', "one text, where every word has a tag", ""),
        ('{"tokens": "a", "tags": ["O"]}', "not a list of strings", ""),
        ('{"tokens": ["a", 1], "tags": ["O", "O"]}', "not a list of strings", ""),
        ('{"tokens": [], "tags": []}', "there are no words", ""),
        ('{"tokens": ["a", " "], "tags": ["O", "O"]}', "a word is empty", ""),
        ('{"tokens": ["a"], "tags": [""]}', "the label is empty", ""),
        ('{"tokens": ["a"]}', "the key 'tags' is missing", ""),
    ],
)
def test_bad_rows(tmp_path: Path, line: str, what: str, more: str) -> None:
    path = write(tmp_path, '{"tokens": ["a"], "tags": ["O"]}\n' + line + "\n", "t.jsonl")
    error = refusal(DataError, path)
    assert what in error.message and more in error.message
    assert error.where == f"{path}:2"


def test_stray_tags_are_mended_and_counted_or_refused(tmp_path: Path) -> None:
    strays = [*ROWS, (("a", "b", "c"), ("I-A", "I-A", "I-B"))]
    path, test = conll(tmp_path, strays), conll(tmp_path, ROWS[:4], "test.conll")
    data = load(Task.from_file(path, kind="tagging", test=test, validation=conll(tmp_path, ROWS[:2], "dev.conll")))
    assert data.train.examples[-1].target == ("B-A", "I-A", "B-B")
    assert list(data.report["mended"].values()) == [{"train": 2, "validation": 0, "test": 0}]
    assert any("I- tags that continue nothing, read as B-: 2 of train." in line for line in data.report["warnings"])
    error = refusal(DataError, path, stray_tags="refuse")
    assert error.where == f"{path}:201" and "'I-A' continues nothing" in error.what
    assert isinstance(refusal(UnknownName, path, stray_tags="drop"), ConfigError)


def test_other_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "".join(f"w{i} {'XY'[i % 2]} O\nv W B-A\n\n" for i in range(20)))
    data = load(Task.from_file(path, kind="tagging", label="2"))
    assert data.task.labels == ("W", "X", "Y") and data.task.metrics == ("accuracy",)
    assert "did you mean" in refusal(ConfigError, path, label="tag").message


@pytest.mark.parametrize(
    ("tags", "what"),
    [
        (("B-A", "NOUN"), "some tags mark spans and some do not"),
        (("B-A", "X-A"), "some tags mark spans and some do not"),
        (("O", "O"), "all words have the same tag"),
    ],
)
def test_tags_that_make_no_sense(tmp_path: Path, tags: tuple[str, str], what: str) -> None:
    rows = [(("a", f"b{i}"), tags) for i in range(20)]
    assert what in refusal(DataError, conll(tmp_path, rows)).what


def test_a_tag_that_train_lacks_is_kept_and_warned_of(tmp_path: Path) -> None:
    train, dev = conll(tmp_path, ROWS), conll(tmp_path, ROWS[:2], "dev.conll")
    test = conll(tmp_path, [(("a", "b"), ("B-A", "I-A"))], "test.conll")
    data = load(Task.from_file(train, kind="tagging", test=test, validation=dev))
    assert data.task.labels == ("B-A", "B-B", "I-A", "O") and data.test.targets.tolist() == [[0, 2]]
    assert any("fewer than 10 words in train: 1 of 4: 'I-A' (0)" in line for line in data.report["warnings"])


def test_a_tag_of_one_sentence_stays_in_train(tmp_path: Path) -> None:
    data = load(Task.from_file(conll(tmp_path, [*ROWS, (("once",), ("B-C",))]), kind="tagging"))
    assert "train/41" in [example.id for example in data.train.examples]


def test_without_a_kind_the_right_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the file has words") as caught:
        load(Task.from_file(conll(tmp_path, ROWS)))
    assert "--kind tagging" in caught.value.do


def test_words_are_no_text(tmp_path: Path) -> None:
    path = conll(tmp_path, ROWS)
    with pytest.raises(DataError, match="the cell is a list of words, where a text is needed") as caught:
        load(Task.from_file(path, kind="multilabel", text="tokens", label="tags"))
    assert caught.value.where == f"{path}:1"


def test_a_pair_has_no_words(tmp_path: Path) -> None:
    assert (
        "of one text, not of a pair" in refusal(ConfigError, conll(tmp_path, ROWS), text_a="tokens", text_b="tags").what
    )
    csv = write(tmp_path, "tokens,tags\n" + "a b,O O\n" * 10, "t.csv")
    assert "one text, where its words are needed" in refusal(DataError, csv).what
    assert "no column 'tokens'" in refusal(DataError, write(tmp_path, "text,label\n" + "a,b\n" * 10, "u.csv")).what
