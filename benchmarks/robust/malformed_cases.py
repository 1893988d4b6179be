"""Files that are invalid, or only look so, for every reader: the content of each, and the expected outcome."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Content = bytes | Callable[[Path], None]  # or a function that writes the file


@dataclass(frozen=True)
class Right:
    """Exactly these rows."""

    rows: Any


@dataclass(frozen=True)
class Wrong:
    """A message about this place that contains these words."""

    place: str  # after the folder: `t.csv:3`; anything may follow, such as a column
    says: str


@dataclass(frozen=True)
class Case:
    """One or several files, and the expected outcome of the first."""

    reader: str  # a name in READERS of malformed.py
    what: str
    files: Mapping[str, Content]
    outcome: Right | Wrong
    flags: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> str:
        """Return the name of the file or folder to read."""
        return str(self.flags.get("open") or next(iter(self.files)))


CASES: list[Case] = []


def case(reader: str, what: str, content: Any, outcome: Right | Wrong, name: str = "t.csv", **flags: Any) -> None:
    """Add a case; `content` may be a text, bytes, JSON, or several files by name."""
    files = content if isinstance(content, dict) and name == "" else {name: content}
    CASES.append(Case(reader, what, {key: raw(key, value) for key, value in files.items()}, outcome, flags))


def raw(name: str, content: Any) -> Content:
    """Return texts in UTF-8, lists of a JSONL file as a line each, other JSON whole."""
    if isinstance(content, bytes) or callable(content):
        return content
    if isinstance(content, str):
        return content.encode()
    if ".jsonl" in name:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in content).encode()
    return json.dumps(content, ensure_ascii=False, indent=0).encode()


def tarred(content: bytes) -> bytes:
    """Return a tar archive with one file."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo("t.csv")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def zipped(content: bytes) -> bytes:
    """Return a zip archive with one file."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("xl/workbook.xml", content)
    return made.getvalue()


def packed(content: bytes) -> bytes:
    """Return the content in gzip, always the same bytes."""
    return gzip.compress(content, mtime=0)


GOOD = b"text,label\nfine,a\n"
DEEP = "[" * 100_000
TEXTS = ["NA", "null", "None", "nan", "N/A", "-", "NULL", "#N/A", "true", "0"]


def pairs(*rows: tuple[Any, Any]) -> Right:
    """Return rows of one text and its target."""
    return Right([[text, target] for text, target in rows])


def tables() -> None:
    """Add cases of CSV and TSV."""
    case("table", "a byte-order mark", b"\xef\xbb\xbf" + GOOD, pairs(("fine", "a")))
    case("table", "CRLF", "text,label\r\nfine,a\r\n", pairs(("fine", "a")))
    case("table", "LF and CRLF mixed", "text,label\r\nx,a\ny,b\r\nz,c", pairs(("x", "a"), ("y", "b"), ("z", "c")))
    listed = "text,label\n" + "".join(f"{word},{word}\n" for word in TEXTS)
    case("table", "NA, null and None as texts and labels", listed, pairs(*((word, word) for word in TEXTS)))
    odd = "a\u2028b\u2029c\x0bd\x0ce\x1cf\x85g"
    case("table", "line separators of Unicode in a text", f"text,label\n{odd},x\n", pairs((odd, "x")))
    spaced = pairs(("x", "a"), ("y", "a "), ("z", " a"), ("w", "A"))
    case("table", "labels that differ in spaces and case", "text,label\nx,a\ny,a \nz, a\nw,A\n", spaced)
    numbers = ["1", "01", "1.0", "1e0", "+1", "9" * 400]
    rows = "".join(f"t{number},{number}\n" for number in numbers)
    case("table", "numbers as labels", f"text,label\n{rows}", pairs(*((f"t{one}", one) for one in numbers)))
    quoted = 'text,label\n"a\r\nb ""c"", d",x\n"","y"\n"e",z\n'
    case("table", "an empty text in quotes", quoted, Wrong("t.csv:4", "the text is empty"))
    case("table", "quotes, commas and line ends within quotes", quoted.replace('"","y"\n', ""),
         pairs(('a\r\nb "c", d', "x"), ("e", "z")))  # fmt: skip
    long = " ".join(["word"] * 100_000)
    case("table", "a text of 100,000 words", f"text,label\n{long},a\n", pairs((long, "a")))
    case("table", "tabs in texts of CSV", "text,label\na\tb,x\n", pairs(("a\tb", "x")))
    composed = [("\u00e9", "a"), ("e\u0301", "b"), ("\U0001f1e9\U0001f1ea", "c"), ("\u202eabc", "d")]
    case("table", "accents composed and not, flags, text from right to left",
         "text,label\n" + "".join(f"{text},{label}\n" for text, label in composed), pairs(*composed))  # fmt: skip
    case("table", "formulas of spreadsheets", "text,label\n=1+1,a\n@x,b\n", pairs(("=1+1", "a"), ("@x", "b")))
    case("table", "empty lines at the end", GOOD + b"\n\r\n\n", pairs(("fine", "a")))
    case("table", "two packed files end to end", packed(GOOD) + packed(b"more,b\n"), pairs(("fine", "a"), ("more", "b")),
         "t.csv.gz")  # fmt: skip
    case("table", "further columns", "id,text,label,x\n1,fine,a,\n", pairs(("fine", "a")))
    case("table", "UTF-16 with its mark", "text,label\nx,a\n".encode("utf-16"), Wrong("t.csv:1", "UTF-16"))
    case("table", "UTF-16 without its mark", "text,label\nx,a\n".encode("utf-16-be"), Wrong("t.csv:1", "UTF-16BE"))
    case("table", "UTF-32", "text,label\nx,a\n".encode("utf-32"), Wrong("t.csv:1", "UTF-32"))
    case("table", "Latin-1", "text,label\nx,a\ncaf\xe9,b\n".encode("latin-1"), Wrong("t.csv:3", "not UTF-8"))
    case("table", "a character cut off at the end", GOOD + b"caf\xc3", Wrong("t.csv:3", "not UTF-8"))
    case("table", "half a character in UTF-8", GOOD + b"a\xed\xa0\xbdb,x\n", Wrong("t.csv:3", "not UTF-8"))
    case("table", "a NUL byte", GOOD + b"a\0b,x\n", Wrong("t.csv:3", "NUL"))
    case("table", "a quote that is never closed", GOOD + b'"open,x\nmore,y\n', Wrong("t.csv:3:1", "never closed"))
    case("table", "text behind a closing quote", GOOD + b'"a"b,x\n', Wrong("t.csv:3:4", "after a closing quote"))
    case("table", "a quote within a bare field", GOOD + b'a "b" c,x\n', Wrong("t.csv:3:3", "a quote inside"))
    case("table", "a short row", GOOD + b"alone\n", Wrong("t.csv:3", "too few fields"))
    case("table", "a long row", GOOD + b"a,b,c\n", Wrong("t.csv:3", "too many fields"))
    case("table", "a column twice", "text,label,text\na,b,c\n", Wrong("t.csv:1", "two columns"))
    case("table", "no column of labels", "text,answer\na,b\n", Wrong("t.csv:1", "no column 'label'"))
    case("table", "no column of texts", "body,label\na,b\n", Wrong("t.csv:1", "no column 'text'"))
    case("table", "a name with a space before it", "text, label\na,b\n", Wrong("t.csv:1", "no column 'label'"))
    case("table", "an empty label", GOOD + b"x,\n", Wrong("t.csv:3", "the label is empty"))
    case("table", "a label of spaces", GOOD + b"x,  \n", Wrong("t.csv:3", "the label is empty"))
    case("table", "a text of spaces", GOOD + "\u3000 \u00a0,a\n".encode(), Wrong("t.csv:3", "the text is empty"))
    case("table", "an empty file", b"", Wrong("t.csv", "the file is empty"))
    case("table", "a byte-order mark and nothing else", b"\xef\xbb\xbf", Wrong("t.csv", "the file is empty"))
    case("table", "a header and no rows", "text,label\n", Wrong("t.csv", "no rows"))
    case("table", "line ends of the old Mac", "text,label\rx,a\r", Wrong("t.csv:1", "carriage return"))
    case("table", "a carriage return in a row", GOOD + b"x\ry,a\n", Wrong("t.csv:3:2", "carriage return"))
    case("table", "CR CR LF", GOOD + b"x,a\r\r\n", Wrong("t.csv:3:4", "carriage return"))
    case("table", "an empty line between rows", GOOD + b"\nx,a\n", Wrong("t.csv:3", "empty line"))
    case("table", "semicolons", "text;label\na;b\n", Wrong("t.csv:1", "one column that holds ';'"))
    case("table", "tabs in a file called CSV", "text\tlabel\na\tb\n", Wrong("t.csv:1", "one column that holds"))
    case("table", "a torn gzip file", packed(GOOD * 200)[:60], Wrong("t.csv.gz:", "not a whole gzip"), "t.csv.gz")
    case("table", "gzip that is none", GOOD, Wrong("t.csv.gz:1", "not a whole gzip"), "t.csv.gz")
    case("table", "gzip with a wrong checksum", packed(GOOD)[:-8] + bytes(8), Wrong("t.csv.gz:1", "not a whole gzip"),
         "t.csv.gz")  # fmt: skip
    case("table", "gzip of a tar archive", packed(tarred(GOOD)), Wrong("t.csv.gz:1", "tar archive"), "t.csv.gz")
    case("table", "gzip of gzip", packed(packed(GOOD)), Wrong("t.csv.gz:1", "gzip"), "t.csv.gz")
    case("table", "gzip without its suffix", packed(GOOD), Wrong("t.csv:1", "the file is gzip"))
    case("table", "a zip archive", zipped(GOOD), Wrong("t.csv:1", "zip archive"))
    case("table", "a spreadsheet", zipped(GOOD), Wrong("t.xlsx", "unknown suffix '.xlsx'"), "t.xlsx")
    case("table", "an old spreadsheet", b"\xd0\xcf\x11\xe0", Wrong("t.xls", "unknown suffix '.xls'"), "t.xls")
    case("table", "no suffix", GOOD, Wrong("t", "no suffix"), "t")
    case("table", "a target that is no number", "text,label\na,1\nb,one\n", Wrong("t.csv:3", "not a finite number"),
         kind="regression")  # fmt: skip
    case("table", "a decimal comma", 'text,label\na,1\nb,"1,5"\n', Wrong("t.csv:3", "not a finite number"),
         kind="regression")  # fmt: skip
    case("table", "targets NaN and infinity", "text,label\na,1\nb,NaN\n", Wrong("t.csv:3", "not a finite number"),
         kind="regression")  # fmt: skip
    case("table", "a target too large", "text,label\na,1e999\n", Wrong("t.csv:2", "not a finite number"),
         kind="regression")  # fmt: skip
    case("table", "digits of another script", "text,label\na,\u0661\n", Wrong("t.csv:2", "not a finite number"),
         kind="regression")  # fmt: skip
    case("table", "a label twice", "text,label\nx,a|a\n", Wrong("t.csv:2", "stands twice"), kind="multilabel")
    case("table", "no label between separators", "text,label\nx,a||b\n", Wrong("t.csv:2", "the label is empty"),
         kind="multilabel")  # fmt: skip
    case("table", "rows without labels", "text,label\nx,\ny,b|a\n", Right([["x", []], ["y", ["a", "b"]]]),
         kind="multilabel")  # fmt: skip
    case("table", "quotes in TSV", 'text\tlabel\n"a" b\tx\n"c\ty\n', pairs(('"a" b', "x"), ('"c', "y")), "t.tsv")
    case("table", "a tab within a text of TSV", "text\tlabel\na\tb\tx\n", Wrong("t.tsv:2", "too many"), "t.tsv")
    case("table", "a short row of TSV", "text\tlabel\na\n", Wrong("t.tsv:2", "too few"), "t.tsv")
    case(
        "table", "commas in a file called TSV", "text,label\na,b\n", Wrong("t.tsv:1", "one column that holds"), "t.tsv"
    )


def lines_of_json() -> None:
    """Add cases of JSONL, its choices, and doccano."""
    good = {"text": "fine", "label": "a"}
    rows = [{"text": word, "label": word} for word in TEXTS]
    case("table", "JSONL: NA, null and None as texts", rows, pairs(*((word, word) for word in TEXTS)), "t.jsonl")
    mixed = '{"text":"a","label":1}\n{"text":"b","label":"1"}\n{"text":"c","label":1.0}\n{"text":"d","label":true}\n'
    told = pairs(("a", "1"), ("b", "1"), ("c", "1.0"), ("d", "true"))
    case("table", "JSONL: labels of several types", mixed, told, "t.jsonl")
    huge = '{"text": "a", "label": ' + "9" * 5000 + "}\n"
    case("table", "JSONL: a label of 5,000 digits", huge, pairs(("a", "9" * 5000)), "t.jsonl")
    case("table", "JSONL: U+2028 and an escaped NUL", '{"text":"a\u2028b\\u0000","label":"x"}\n',
         pairs(("a\u2028b\0", "x")), "t.jsonl")  # fmt: skip
    case("table", "JSONL: keys in another order, and more", '{"label":"a","text":"x"}\n{"z":[],"text":"y","label":"b"}\n',
         pairs(("x", "a"), ("y", "b")), "t.jsonl")  # fmt: skip
    bad: list[tuple[str, str, str]] = [
        ("a key missing", '{"text": "a"}', "the key 'label' is missing"),
        ("a label null", '{"text": "a", "label": null}', "'label' is null"),
        ("a label that is an object", '{"text": "a", "label": {"a": 1}}', "'label' is no text"),
        ("a text that is a number", '{"text": 1, "label": "a"}', "'text' is no text"),
        ("a text null", '{"text": null, "label": "a"}', "'text' is null"),
        ("a key twice", '{"text": "a", "text": "b", "label": "c"}', "stands twice"),
        ("a label NaN", '{"text": "a", "label": NaN}', "NaN is no JSON number"),
        ("lists too deep", '{"text": "a", "label": ' + DEEP, "too deep"),
        ("a list", '["a", "b"]', "not a JSON object"),
        ("a comma at the end", '{"text": "a", "label": "b",}', "not a whole JSON object"),
        ("quotes of Python", "{'text': 'a', 'label': 'b'}", "not a whole JSON object"),
        ("two objects on a line", '{"text": "a", "label": "b"} {"text": "c", "label": "d"}', "not a whole JSON object"),
        ("half of a character", '{"text": "\\ud83d", "label": "b"}', "half of a character"),
        ("a byte-order mark in the middle", '\ufeff{"text": "a", "label": "b"}', "not a whole JSON object"),
        ("a list of labels", '{"text": "a", "label": ["b", "c"]}', "a list of labels"),
        ("an empty list of labels", '{"text": "a", "label": []}', "a list of labels"),
    ]
    for what, line, says in bad:
        first = json.dumps(good) + "\n"
        case("table", f"JSONL: {what}", first + line + "\n", Wrong("t.jsonl:2", says), "t.jsonl")
    case("table", "JSONL: an array over several lines", "[\n" + json.dumps(good) + "\n]\n", Wrong("t.jsonl:1", "JSON"),
         "t.jsonl")  # fmt: skip
    case("table", "another suffix of JSONL", json.dumps(good), Wrong("t.ndjson", "unknown suffix"), "t.ndjson")

    listed = {"text": "q", "choices": ["a", "b"], "label": 1}
    case(
        "table", "choices: a list and a number", [listed], Right([["q", ["a", "b"], [0, 1]]]), "t.jsonl", kind="choice"
    )
    for what, changes, says in (
        ("a label beyond them", {"label": 2}, "no choice"),
        ("a single one", {"choices": ["a"], "label": 0}, "single choice"),
        ("an empty one", {"choices": ["a", " "]}, "empty"),
        ("the same twice", {"choices": ["a", "a"]}, "right and wrong"),
        ("one that is a number", {"choices": ["a", 1]}, "no list of strings"),
        ("labels that can be read in two ways", {"choices": ["1", "0"]}, "two ways"),
    ):
        case("table", f"choices: {what}", [{**listed, **changes}], Wrong("t.jsonl:1", says), "t.jsonl", kind="choice")
    ranked = "query\tcandidate\trelevance\nq\ta\t1\nq\tb\t0\n"
    case("table", "ranking: rows of candidates", ranked, Right([["q", ["a", "b"], [1, 0]]]), "t.tsv", kind="ranking")
    case(
        "table",
        "ranking: a relevance of 2",
        ranked + "r\ta\t2\n",
        Wrong("t.tsv:4", "right or not"),
        "t.tsv",
        kind="ranking",
    )
    case("table", "ranking: candidates apart", ranked + "r\tx\t1\nr\ty\t0\nq\tc\t0\n", Wrong("t.tsv:6", "stand together"),
         "t.tsv", kind="ranking")  # fmt: skip

    spans = [{"text": "Ann \U0001f600 lost it", "label": [[0, 3, "PER"], [4, 5, "SIGN"]]}]
    words = ["Ann", "\U0001f600", "lost", "it"]
    case("table", "doccano: signs beyond the first 65,536", spans,
         Right([[words, ["B-PER", "B-SIGN", "O", "O"]]]), "t.jsonl", kind="tagging")  # fmt: skip
    for what, marks, says in (
        ("a span outside the text", [[0, 99, "PER"]], "cannot be tagged"),
        ("a span that ends before it begins", [[3, 1, "PER"]], "cannot be tagged"),
        ("a span of spaces", [[3, 4, "PER"]], "holds no word"),
        ("spans that overlap", [[0, 7, "A"], [6, 10, "B"]], "share a word"),
        ("a span without a type", [[0, 3, " "]], "cannot be tagged"),
        ("offsets that are no whole numbers", [[0, 3.5, "PER"]], "not a row of doccano"),
        ("offsets below zero", [[-3, 3, "PER"]], "cannot be tagged"),
    ):
        rows = [*spans, {"text": "Ann lost it", "label": marks}]
        case("table", f"doccano: {what}", rows, Wrong("t.jsonl:2", says), "t.jsonl", kind="tagging")
    twice = json.dumps(spans[0]) + '\n{"text": "a", "text": "b", "label": []}\n'
    case("table", "doccano: a key twice", twice, Wrong("t.jsonl:2", "stands twice"), "t.jsonl", kind="tagging")
    case("table", "doccano: lists too deep", json.dumps(spans[0]) + "\n" + DEEP + "\n", Wrong("t.jsonl:2", "too deep"),
         "t.jsonl", kind="tagging")  # fmt: skip


def sentences() -> None:
    """Add cases of CoNLL, CoNLL-U, brat and Label Studio."""
    plain = "My O\ncard B-THING\n\nis O\nlost O\n"
    told = Right([[["My", "card"], ["O", "B-THING"]], [["is", "lost"], ["O", "O"]]])
    tagging = {"kind": "tagging"}
    case(
        "table",
        "CoNLL: CRLF and a byte-order mark",
        ("\ufeff" + plain).replace("\n", "\r\n"),
        told,
        "t.conll",
        **tagging,
    )
    case("table", "CoNLL: documents and spaces at line ends", "-DOCSTART- O\n\n" + plain.replace("card B-THING", "card  B-THING  "),
         told, "t.conll", **tagging)  # fmt: skip
    case("table", "CoNLL: NA and None as words", "NA O\nNone B-X\n", Right([[["NA", "None"], ["O", "B-X"]]]), "t.conll",
         **tagging)  # fmt: skip
    case("table", "CoNLL: I- tags that continue nothing", "a I-X\nb O\nc I-Y\n", Right([[["a", "b", "c"], ["B-X", "O", "B-Y"]]]),
         "t.conll", **tagging)  # fmt: skip
    case("table", "CoNLL: the same, refused", "a O\nb I-X\n", Wrong("t.conll:1", "continues nothing"), "t.conll",
         stray_tags="refuse", **tagging)  # fmt: skip
    for what, line, place, says in (
        ("a short line", "is\n", 4, "too few"),
        ("a long line", "is O O\n", 4, "too many"),
        ("line ends of the old Mac", "is O\rlost O\n", 4, "carriage return"),
        ("a NUL byte", "i\0s O\n", 4, "NUL"),
    ):
        case(
            "table",
            f"CoNLL: {what}",
            f"My O\ncard B-X\n\n{line}",
            Wrong(f"t.conll:{place}", says),
            "t.conll",
            **tagging,
        )
    case(
        "table",
        "CoNLL: Latin-1",
        "My O\ncaf\xe9 O\n".encode("latin-1"),
        Wrong("t.conll:2", "not UTF-8"),
        "t.conll",
        **tagging,
    )
    case(
        "table",
        "CoNLL: words without tags",
        "My\ncard\n",
        Wrong("t.conll:1", "no column 'tags'"),
        "t.conll",
        **tagging,
    )
    case("table", "CoNLL: an empty file", "\n\n", Wrong("t.conll", "empty"), "t.conll", **tagging)
    mixed = "".join(f"a{n} B-X\nb E-X\nc O\n\n" for n in range(30))
    case("load", "CoNLL: another tag scheme", mixed, Wrong("t.conll", "some tags mark spans"), "t.conll", **tagging)
    header = "# text = don't\n"
    word = "{0}\t{1}\tl\t{2}\t_\t_\t0\troot\t_\t_\n"
    lines = header + "1-2\tdon't" + "\t_" * 8 + "\n" + word.format(1, "do", "AUX") + word.format(2, "n't", "PART")
    case("table", "CoNLL-U: words in one and empty nodes", lines + "2.1\tx" + "\t_" * 8 + "\n",
         Right([[["do", "n't"], ["AUX", "PART"]]]), "t.conllu", **tagging)  # fmt: skip
    case("table", "CoNLL-U: nine columns", header + word.format(1, "do", "AUX").replace("\t_\n", "\n"),
         Wrong("t.conllu:2", "too few"), "t.conllu", **tagging)  # fmt: skip

    text, good = "Ann lost it.\nBob found it.\n", "T1\tPER 0 3\tAnn\n"
    rows = [[["Ann", "lost", "it", "."], ["B-PER", "O", "O", "O"]], [["Bob", "found", "it", "."], ["O"] * 4]]
    case("table", "brat: other annotations beside spans", {"b/a.txt": text, "b/a.ann": good + "R1\tx Arg1:T1 Arg2:T1\n#1\tN T1\tx\n"},
         Right(rows), "", open="b", **tagging)  # fmt: skip
    for what, line, says in (
        ("a span outside the text", "T2\tPER 900 903\t", "another text"),
        ("a span outside the text, with words", "T2\tPER 900 903\tAnn", "another text"),
        ("another text", "T2\tPER 4 8\tfound", "another text"),
        ("a span with gaps", "T2\tPER 0 3;4 8\tAnn lost", "span with gaps"),
        ("spans that overlap", "T2\tPER 0 8\tAnn lost", "share a word"),
        ("an id twice", "T1\tPER 4 8\tlost", "stands twice"),
        ("an offset of 5,000 digits", "T2\tPER 0 " + "9" * 5000 + "\tAnn", "not an annotation"),
        ("a line of prose", "Every line is an annotation", "not an annotation"),
        ("a span of spaces", "T2\tPER 3 4\t ", "another text"),
    ):
        files = {"b/a.txt": text, "b/a.ann": good + line + "\n"}
        case("table", f"brat: {what}", files, Wrong("b/a.ann:2", says), "", open="b", **tagging)
    case("table", "brat: a text without annotations", {"b/a.txt": text, "b/a.ann": good, "b/c.txt": text},
         Wrong("b/c.txt", "without its annotations"), "", open="b", **tagging)  # fmt: skip
    case("table", "brat: annotations without a text", {"b/a.txt": text, "b/a.ann": good, "b/c.ann": good},
         Wrong("b/c.ann", "without their text"), "", open="b", **tagging)  # fmt: skip

    def studio(*results: Any, data: Any = None) -> dict[str, Any]:
        return {"id": 7, "data": data or {"text": "Ann lost it"}, "annotations": [{"result": list(results)}]}

    def span(start: Any, end: Any, **more: Any) -> dict[str, Any]:
        return {"type": "labels", "value": {"start": start, "end": end, "labels": ["PER"], **more}}

    choice = {"type": "choices", "value": {"choices": ["a"]}}
    case("table", "Label Studio: relations beside spans", [studio(span(0, 3), {"type": "relation", "from_id": "x"})],
         Right([[["Ann", "lost", "it"], ["B-PER", "O", "O"]]]), "t.json", **tagging)  # fmt: skip
    case("table", "Label Studio: choices", [studio(choice)], pairs(("Ann lost it", "a")), "t.json")
    for what, tasks, says in (
        ("spans that overlap", [studio(span(0, 8), span(4, 8))], "share a word"),
        ("a span outside the text", [studio(span(0, 99))], "cannot be tagged"),
        ("a span of another text", [studio(span(0, 3, text="Bob"))], "own text is another"),
        ("a span without an end", [studio(span(0, None))], "not a span"),
        ("a span with two labels", [studio(span(0, 3, labels=["A", "B"]))], "more than one label"),
        ("a result without a type", [studio({"value": {}})], "with a type"),
        ("a result without its value", [studio(span(0, 3)), studio({"type": "labels"})], "without its value"),
        ("choices that are no texts", [studio(span(0, 3)), studio({"type": "choices", "value": {"choices": [1]}})],
         "no list of texts"),
        ("nobody has annotated it", [studio(span(0, 3)), {**studio(), "annotations": []}], "nobody"),
        ("annotators that differ", [{**studio(), "annotations": [{"result": [span(0, 3)]}, {"result": []}]}], "not the same"),
        ("annotations that are no list", [studio(span(0, 3)), {**studio(), "annotations": {"result": []}}], "no list"),
        ("no text", [studio(span(0, 3)), studio(span(0, 3), data={"a": "x", "b": "y"})], "no text, or more"),
        ("another export", [{"text": "a", "label": "b"}], "not a task"),
        ("an object", {"data": []}, "not a list of tasks"),
        ("no choices and no spans", [studio({"type": "rating", "value": {"rating": 3}})], "neither choices nor spans"),
    ):  # fmt: skip
        case("table", f"Label Studio: {what}", tasks, Wrong("t.json", says), "t.json", **tagging)
    whole = json.dumps([studio(span(0, 3))])
    for what, content, says in (
        ("a list that breaks off", whole[:-1], "breaks off"),
        ("a task that breaks off", whole[:-9], "not whole JSON"),
        ("two exports end to end", whole + whole, "more stands behind"),
        ("a comma too many", whole[:-1] + ",]", "not whole JSON"),
        ("lists too deep", DEEP, "too deep"),
        ("a key twice", whole.replace('"id": 7', '"id": 7, "id": 8'), "stands twice"),
        ("NaN", whole.replace('"id": 7', '"id": NaN'), "no JSON number"),
        ("half of a character", whole.replace("Ann", "\\ud83d"), "half of a character"),
    ):
        case("table", f"Label Studio: {what}", content, Wrong("t.json:1", says), "t.json", **tagging)


def answers() -> None:
    """Add cases of questions about passages."""
    context = "A \U0001f600 long river."

    def asked(**changes: Any) -> dict[str, Any]:
        plain = {"id": "1", "context": context, "question": "What is long?",
                 "answers": {"text": ["river"], "answer_start": [9]}}  # fmt: skip
        return {key: value for key, value in {**plain, **changes}.items() if value != "left out"}

    case("questions", "SQuAD: offsets count characters", [asked()], Right([["What is long?", ["river@9"]]]), "t.jsonl")
    for what, changes, says in (
        ("an offset that counts bytes", {"answers": {"text": ["river"], "answer_start": [12]}}, "at their offsets"),
        ("an offset beyond the passage", {"answers": {"text": ["river"], "answer_start": [999]}}, "at their offsets"),
        ("an answer that is not there", {"answers": {"text": ["lake"], "answer_start": [9]}}, "not in its context"),
        ("an empty answer", {"answers": {"text": [" "], "answer_start": [9]}}, "an answer is empty"),
        ("an offset that is a text", {"answers": {"text": ["river"], "answer_start": ["9"]}}, "no whole number"),
        ("an offset of 5,000 digits", {"answers": {"text": ["river"], "answer_start": ["left"]}}, "no whole number"),
        ("an offset below zero", {"answers": {"text": ["river"], "answer_start": [-1]}}, "no whole number"),
        ("fewer offsets than answers", {"answers": {"text": ["river"], "answer_start": []}}, "don't match"),
        ("answers and said to be impossible", {"is_impossible": True}, "said to have none"),
        ("impossible that is a text", {"is_impossible": "false"}, "neither true nor false"),
        ("no answers", {"answers": "left out"}, "'answers' is missing"),
        ("no context", {"context": "left out"}, "no text 'context'"),
        ("an empty question", {"question": " "}, "the question is empty"),
    ):
        files = {"t.jsonl": [asked(id="0"), asked(**changes)]}
        if "digits" in what:
            files = {"t.jsonl": raw("t.jsonl", files["t.jsonl"]).replace(b'"left"', b"9" * 5000)}  # type: ignore[union-attr, dict-item]
        place = "t.jsonl" if "at their" in says else "t.jsonl:2"
        case("questions", f"SQuAD: {what}", files, Wrong(place, says), "")
    case("questions", "SQuAD: an id twice", [asked(), asked()], Wrong("t.jsonl:2", "stands twice"), "t.jsonl")
    for what, content, place, says in (
        ("JSON that breaks off", '{"data": [', "t.json:1:11", "not whole JSON"),
        ("a list", "[]", "t.json", "no list of articles"),
        ("lists too deep", DEEP, "t.json", "too deep"),
        ("a key twice", '{"data": [], "data": []}', "t.json", "stands twice"),
        ("no questions", '{"data": []}', "t.json", "no questions"),
        ("paragraphs that are none", '{"data": [{"paragraphs": 1}]}', "t.json: data[0]", "no list 'paragraphs'"),
        ("an empty file", "", "t.json:1", "not whole JSON"),
    ):
        case("questions", f"SQuAD: {what}", content, Wrong(place, says), "t.json")


def parquet_of(columns: Mapping[str, Any], names: list[str] | None = None) -> bytes:
    """Return a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    made = io.BytesIO()
    table = pyarrow.table(dict(columns)) if names is None else pyarrow.Table.from_arrays(list(columns.values()), names)
    parquet.write_table(table, made)
    return made.getvalue()


def binary_tables() -> None:
    """Add cases of Parquet."""

    def of(columns: Mapping[str, Any], keep: slice = slice(None), names: list[str] | None = None) -> Content:
        return lambda path: (path.write_bytes(parquet_of(columns, names)[keep]), None)[1]

    good = {"text": ["a", "NA"], "label": ["x", "None"]}
    name = "t.parquet"
    case("table", "Parquet: NA and None as texts", of(good), pairs(("a", "x"), ("NA", "None")), name)
    case(
        "table",
        "Parquet: numbers as labels",
        of({"text": ["a", "b"], "label": [1, 2]}),
        pairs(("a", "1"), ("b", "2")),
        name,
    )
    case("table", "Parquet: torn", of(good, slice(200)), Wrong(name, "not a whole Parquet file"), name)
    case("table", "Parquet: empty", b"", Wrong(name, "not a whole Parquet file"), name)
    case("table", "Parquet: CSV by its content", GOOD, Wrong(name, "not a whole Parquet file"), name)
    case(
        "table",
        "Parquet: no rows",
        of({"text": np.array([], str), "label": np.array([], str)}),
        Wrong(name, "no rows"),
        name,
    )
    for what, columns, says in (
        ("a label that is missing", {"text": ["a", "b"], "label": ["x", None]}, "'label' is null"),
        (
            "a label NaN, as pandas leaves it",
            {"text": ["a", "b"], "label": [1.0, float("nan")]},
            "'label' is no number",
        ),
        ("a text that is missing", {"text": ["a", None], "label": ["x", "y"]}, "'text' is null"),
        ("texts that are bytes", {"text": ["a", "b"], "label": [b"x", b"y"]}, "'label' is no text"),
    ):
        case("table", f"Parquet: {what}", of(columns), Wrong(f"{name}:{1 if 'bytes' in what else 2}", says), name)
    case("table", "Parquet: a column twice", lambda path: (path.write_bytes(twice_named()), None)[1],
         Wrong(f"{name}:1", "two columns"), name)  # fmt: skip
    case("table", "Parquet: packed", lambda path: (path.write_bytes(packed(parquet_of(good))), None)[1],
         Wrong("t.parquet.gz", "packed Parquet"), "t.parquet.gz")  # fmt: skip


def twice_named() -> bytes:
    """Return a Parquet file with two columns of one name."""
    import pyarrow

    return parquet_of(
        {"a": pyarrow.array(["x"]), "b": pyarrow.array(["y"]), "c": pyarrow.array(["z"])}, ["text", "label", "text"]
    )


def png(side: int = 4) -> bytes:
    """Return a small image."""
    from PIL import Image

    made = io.BytesIO()
    Image.fromarray(np.arange(3 * side * side, dtype=np.uint8).reshape(side, side, 3)).save(made, "PNG")
    return made.getvalue()


def wav(samples: Any, subtype: str = "PCM_16") -> bytes:
    """Return a small sound."""
    import soundfile

    made = io.BytesIO()
    soundfile.write(made, np.asarray(samples, np.float32), 8000, format="WAV", subtype=subtype)
    return made.getvalue()


def media() -> None:
    """Add cases of class folders and lists of images and sounds."""
    image, loud = png(), wav(np.sin(np.arange(400)))
    case("table", "folders: what file managers leave", {"f/a/1.png": image, "f/b/2.png": image, "f/a/Thumbs.db": b"x", "f/a/.x": b""},
         Right([["a/1.png", "a"], ["b/2.png", "b"]]), "", open="f")  # fmt: skip
    for what, files, place, says in (
        ("no class folders", {"f/1.png": image}, "f", "neither splits nor class folders"),
        ("empty class folders", {"f/a/.keep": b""}, "f", "class folders are empty"),
        ("a text among images", {"f/a/1.png": image, "f/a/notes.txt": b"x"}, "f/a/notes.txt", "neither an image"),
        ("a folder in a class folder", {"f/a/b/1.png": image}, "f/a/b", "folder inside a class folder"),
        ("images and sounds", {"f/a/1.png": image, "f/b/1.wav": loud}, "f", "images and sounds"),
        ("an image cut off", {"f/a/1.png": image[:-30], "f/b/2.png": image}, "f/a/1.png", "damaged"),
        ("an empty image", {"f/a/1.png": b"", "f/b/2.png": image}, "f/a/1.png", "empty"),
        ("a page instead of an image", {"f/a/1.jpg": b"<html>404</html>"}, "f/a/1.jpg", "not an image"),
        ("a sound cut off", {"f/a/1.wav": loud[:20]}, "f/a/1.wav", "not a sound"),
        ("a silent sound", {"f/a/1.wav": wav(np.zeros(400))}, "f/a/1.wav", "silent"),
        ("samples that are no numbers", {"f/a/1.wav": wav([0.5, np.nan], "FLOAT")}, "f/a/1.wav", "no numbers"),
        ("a recording without samples", {"f/a/1.wav": wav([])}, "f/a/1.wav", "empty"),
    ):
        case("table", f"folders: {what}", files, Wrong(place, says), "", open="f")
    for what, cell, says in (
        ("a file that is not there", "2.png", "is not there"),
        ("a path of 5,000 characters", "x" * 5000, "is not there"),
        ("an empty path", '""', "no image is named"),
    ):
        files = {"t.csv": f"image,label\n1.png,a\n{cell},b\n", "1.png": image}
        case("table", f"a list of images: {what}", files, Wrong("t.csv:3", says), "")


def suites() -> None:
    """Add cases of official files of GLUE, SuperGLUE and SQuAD."""
    header = "sentence\tlabel\n"
    task = {"suite": "glue", "task": "SST-2", "open": "."}
    case("suite", "GLUE: quotes as text", {"SST-2/train.tsv": header + '"a\t1\nNA\t0\n'},
         Right([{"text": '"a', "label": "1"}, {"text": "NA", "label": "0"}]), "", **task)  # fmt: skip
    for what, content, place, says in (
        ("a short row", header + "a\n", ":2", "too few"),
        ("a long row", header + "a\tb\t1\n", ":2", "too many"),
        ("another header", "text\tlabel\na\t1\n", ":1", "no column 'sentence'"),
        ("a column twice", "sentence\tsentence\tlabel\na\tb\t1\n", ":1", "two columns"),
        ("an empty file", "", ":1", "no column"),
        ("Latin-1", (header + "caf\xe9\t1\n").encode("latin-1"), ":2", "not UTF-8"),
    ):
        files = {"SST-2/train.tsv": content}
        case("suite", f"GLUE: {what}", files, Wrong(f"SST-2/train.tsv{place}", says), "", **task)
    good = {"question": "q", "passage": "p", "idx": 0, "label": True}
    for name, what, row, says in (
        ("BoolQ", "a key missing", {"question": "q", "idx": 0, "label": True}, "'passage' is missing"),
        ("BoolQ", "a passage that is a number", {**good, "passage": 1}, "is no text"),
        ("BoolQ", "a label that is a number", {**good, "label": 1}, "is no text"),
        ("COPA", "a label beyond the choices", {"premise": "p", "choice1": "a", "choice2": "b", "question": "cause", "label": 2},
         "is no choice"),
        ("COPA", "another question", {"premise": "p", "choice1": "a", "choice2": "b", "question": "why", "label": 0},
         "neither cause nor effect"),
        ("WiC", "a word outside its sentence", {"sentence1": "ab", "sentence2": "cd", "start1": 0, "end1": 9, "start2": 0,
         "end2": 1, "label": True}, "lie outside"),
        ("WSC", "a span outside the text", {"text": "a b", "target": {"span1_index": 5, "span1_text": "a", "span2_index": 0,
         "span2_text": "b"}, "label": True}, "outside the text"),
        ("WSC", "a span that is a number", {"text": "a b", "target": {"span1_index": 0, "span1_text": 1, "span2_index": 0,
         "span2_text": "b"}, "label": True}, "is no text"),
    ):  # fmt: skip
        where = f"{name}/train.jsonl"
        case(
            "suite",
            f"SuperGLUE: {what}",
            {where: [row]},
            Wrong(f"{where}:1", says),
            "",
            suite="superglue",
            task=name,
            open=".",
        )
    twice = '{"question": "q", "question": "r", "passage": "p", "label": true}\n'
    for what, content, says in (("a key twice", twice, "stands twice"), ("lists too deep", DEEP, "too deep")):
        case("suite", f"SuperGLUE: {what}", {"BoolQ/train.jsonl": content}, Wrong("BoolQ/train.jsonl:1", says), "",
             suite="superglue", task="BoolQ", open=".")  # fmt: skip
    for what, content, says in (
        ("JSON that breaks off", '{"data": [', "not whole JSON"),
        (
            "a question that is a list",
            '{"data": [{"title": "t", "paragraphs": [{"context": "c", "qas": [[]]}]}]}',
            "not a file of SQuAD",
        ),
        ("no list of articles", "{}", "not a file of SQuAD"),
    ):
        case("suite", f"SQuAD's own files: {what}", {"train-v1.1.json": content}, Wrong("train-v1.1.json", says), "",
             suite="squad", task="SQuAD1.1", open=".")  # fmt: skip


def vectors() -> None:
    """Add cases of word vectors in the formats of other programs."""
    good = "the 1 0.5\ncat -1e-3 2\n"
    table = [["the", [1.0, 0.5]], ["cat", [-0.001, 2.0]]]
    case("vectors", "GloVe: words that are spaces and signs", "\u00a0 1 2\n. . 3 4\n", Right([["\u00a0", [1.0, 2.0]], [". .", [3.0, 4.0]]]),
         "t.txt")  # fmt: skip
    case("vectors", "GloVe: a word twice", good + "the 9 9\n", Right(table), "t.txt")
    case("vectors", "word2vec: a header and CRLF", "2 2\r\n" + good.replace("\n", "\r\n"), Right(table), "t.vec")
    for what, content, place, says in (
        ("a word for a number", good + "dog one 2\n", "t.txt:3", "not a line of word vectors"),
        ("too few numbers", good + "dog 2\n", "t.txt:3", "not a line of word vectors"),
        ("NaN", good + "dog nan 2\n", "t.txt:3", "no number"),
        ("an infinity", good + "dog 1e99 2\n", "t.txt:3", "no number"),
        ("an underscore in a number", good + "dog 1_0 2\n", "t.txt:3", "not a line of word vectors"),
        ("digits of another script", good + "dog \u0661 2\n", "t.txt:3", "not a line of word vectors"),
        ("prose", "This is a sentence.\n", "t.txt:1", "not a line of word vectors"),
        ("Latin-1", (good + "caf\xe9 1 2\n").encode("latin-1"), "t.txt:3", "not UTF-8"),
        ("an empty file", "", "t.txt", "empty"),
        ("a header with too many words", "3 2\n" + good, "t.txt", "that its header states"),
        ("a header with no words", "0 2\n", "t.txt:1", "states no table"),
        ("a header with 99,999,999,999 numbers", "1 99999999999\n", "t.txt:1", "states no table"),
        ("fastText's own format", b"\xba\x16\x4f\x2f" + bytes(40), "t.txt", "fastText"),
        ("gzip without its suffix", packed(good.encode()), "t.txt", "gzip"),
    ):
        case("vectors", f"vectors: {what}", content, Wrong(place, says), "t.txt")
    binary = b"2 2\n" + b"the " + struct.pack("<2f", 1, 0.5) + b"\ncat " + struct.pack("<2f", -0.001, 2) + b"\n"
    case("vectors", "word2vec binary", binary, Right(table), "t.bin")
    case("vectors", "word2vec binary: torn", binary[:-6], Wrong("t.bin, word 2 of 2", "ends before"), "t.bin")
    case("vectors", "word2vec binary: more than it states", binary + b"x", Wrong("t.bin", "more follows"), "t.bin")
    case(
        "vectors",
        "word2vec binary: a word in Latin-1",
        binary.replace(b"cat", b"c\xe9t"),
        Wrong("t.bin, word 2", "not UTF-8"),
        "t.bin",
    )
    case(
        "vectors",
        "vectors: torn gzip",
        packed(good.encode() * 100)[:50],
        Wrong("t.txt.gz", "not a whole gzip"),
        "t.txt.gz",
    )


def texts() -> None:
    """Add cases of plain text and JSONL for pre-training."""
    case("corpus", "corpus: CRLF, U+2028 and a byte-order mark", "\ufeffone\r\ntwo\u2028lines\n\nNone\n", Right(["one", "two\u2028lines", "None"]),
         "t.txt")  # fmt: skip
    long = "word " * 60_000
    case("corpus", "corpus: a line of 300,000 characters", long, Right(long.split()), "t.txt", words=True)
    for what, content, name, place, says in (
        ("Latin-1", "fine\ncaf\xe9\n".encode("latin-1"), "t.txt", "t.txt:2", "not UTF-8"),
        ("a NUL character", "fine\n" * 3000 + "a\0b\n", "t.txt", "t.txt:3001", "NUL"),
        ("UTF-16", "fine\n".encode("utf-16"), "t.txt", "t.txt", "not UTF-8"),
        ("torn gzip", packed(b"fine\n" * 1000)[:30], "t.txt.gz", "t.txt.gz", "not a whole gzip"),
        ("gzip that is none", b"fine\n", "t.txt.gz", "t.txt.gz", "not a whole gzip"),
        ("nothing but spaces", " \n\t\n", "t.txt", "t.txt", "no text"),
        ("JSONL: no field", '{"text": "a"}\n{"body": "b"}\n', "t.jsonl", "t.jsonl:2", "no field 'text'"),
        ("JSONL: a field that is a number", '{"text": 1}\n', "t.jsonl", "t.jsonl:1", "is no text"),
        ("JSONL: a key twice", '{"text": "a", "text": "b"}\n', "t.jsonl", "t.jsonl:1", "stands twice"),
        ("JSONL: lists too deep", DEEP, "t.jsonl", "t.jsonl:1", "too deep"),
        ("JSONL: a line cut off", '{"text": "a"}\n{"text": "b', "t.jsonl", "t.jsonl:2", "not JSON"),
        ("JSONL: half of a character", '{"text": "\\ud83d"}\n', "t.jsonl", "t.jsonl:1", "half"),
    ):
        case("corpus", f"corpus: {what}", content, Wrong(place, says), name)


def task_files() -> None:
    """Add cases of task files."""
    case("task", "task file: a byte-order mark and CRLF", '\ufeffdata = "t.csv"\r\nseeds = 3\r\n',
         Right({"name": "t", "data": "t.csv", "seeds": 3}), "t.toml")  # fmt: skip
    for what, content, says in (
        ("a key twice", 'data = "a.csv"\ndata = "b.csv"\n', "not a TOML file"),
        ("no data", 'kind = "span"\n', "names no data"),
        ("an unknown key", 'data = "t.csv"\nlabal = "x"\n', "unknown setting 'labal'"),
        ("a number for a text", "data = 1\n", "wrong type"),
        ("a text for a number", 'data = "t.csv"\nseeds = "3"\n', "wrong type"),
        ("a list of numbers", 'data = "t.csv"\nlabels = [1]\n', "strings only"),
        ("Latin-1", 'data = "caf\xe9.csv"\n'.encode("latin-1"), "not a TOML file"),
        ("an empty file", "", "names no data"),
        ("YAML", "data: t.csv\n", "not a TOML file"),
        ("UTF-16", 'data = "t.csv"\n'.encode("utf-16"), "not a TOML file"),
    ):
        case("task", f"task file: {what}", content, Wrong("t.toml", says), "t.toml")


for add in (tables, lines_of_json, sentences, answers, binary_tables, media, suites, vectors, texts, task_files):
    add()
