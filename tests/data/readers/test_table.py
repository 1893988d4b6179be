"""The readers: what stands in the file comes out, and every way in which a file can be bad is named with its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from pathlib import Path

import pytest

from graftwork.data.readers.table import open_table
from graftwork.errors import DataError, StorageError


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def read(path: Path, label: str | None = "label") -> list[tuple[int, tuple[object, ...]]]:
    table = open_table(path)
    return [(row.line, row.cells) for row in table.rows(table.header, label)]


def refusal(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path)
    return caught.value


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_same_rows_from_every_format(tmp_path: Path, suffix: str, eol: str, bom: str, last: bool) -> None:
    end = eol if last else ""
    lines = {
        "csv": ["text,label", "NA,None", "b\u2028c,1.0"],
        "tsv": ["text\tlabel", "NA\tNone", "b\u2028c\t1.0"],
        "jsonl": ['{"text": "NA", "label": "None"}', '{"text": "b\u2028c", "label": 1.0}'],
    }
    for name, content in lines.items():
        path = write(tmp_path, f"t.{name}{suffix}", bom + eol.join(content) + end)
        rows = read(path)
        assert [cells for _, cells in rows] == [("NA", "None"), ("b\u2028c", "1.0")]
        assert [line for line, _ in rows] == ([1, 2] if name == "jsonl" else [2, 3])


def test_a_label_of_more_digits_than_python_reads(tmp_path: Path) -> None:
    digits = "9" * 5000
    assert read(write(tmp_path, "t.jsonl", f'{{"text": "a", "label": {digits}}}\n')) == [(1, ("a", digits))]


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, "t.csv", "id,text,label\n1,a,x\n"))
    assert [row.cells for row in table.rows(["label", "text"])] == [("x", "a")]
    assert [row.cells for row in table.rows(["label", "text"])] == [("x", "a")], "a table can be read twice"


def test_csv_quotes_newlines_and_line_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", 'text,label\n"a ""b"", c\r\n\nd",x\n"",y\n"e","z"\n')
    assert read(path) == [(2, ('a "b", c\r\n\nd', "x")), (5, ("", "y")), (6, ("e", "z"))]


def test_csv_equals_the_standard_reader_on_random_tables(tmp_path: Path) -> None:
    dice = random.Random(0)
    for case in range(200):
        rows = [["".join(dice.choices('ab,"\n \té', k=dice.randint(0, 6))) for _ in range(3)] for _ in range(5)]
        buffer = io.StringIO()
        quoting = dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        csv.writer(buffer, lineterminator=dice.choice(["\n", "\r\n"]), quoting=quoting).writerows(
            [["a", "b", "c"], *rows]
        )
        path = write(tmp_path, f"{case}.csv", buffer.getvalue())
        assert [list(cells) for _, cells in read(path)] == rows


def test_tsv_is_never_quoted(tmp_path: Path) -> None:
    path = write(tmp_path, "t.tsv", 'text\tlabel\n"open\tx\nsay "hi", you\ty\n')
    assert read(path) == [(2, ('"open', "x")), (3, ('say "hi", you', "y"))]


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("t.csv", "text;label\na, b;x\n3,5;y\n", [(2, ("a, b", "x")), (3, ("3,5", "y"))]),
        ("t.csv", '"text";"label"\n"a; ""b""";"x"\n', [(2, ('a; "b"', "x"))]),
        ("t.csv", "text, original;label\na, b;x\nc, d;y\n", [(2, ("a, b", "x")), (3, ("c, d", "y"))]),
        ("t.csv", 'text\tlabel\n5,0\tx\n"a\tb"\ty\n', [(2, ("5,0", "x")), (3, ("a\tb", "y"))]),
        ("t.csv", "text|label\na;b|x\n", [(2, ("a;b", "x"))]),
        ("t.csv", "sep=;\r\ntext;label\r\na,b;x\r\n", [(3, ("a,b", "x"))]),
        ("t.csv", '"sep=|"\ntext|label\na|x\n', [(3, ("a", "x"))]),
        ("t.csv", "sep=\\t\ntext\tlabel\na\tx\n", [(3, ("a", "x"))]),
        ("t.csv", "sep=\t\ntext\tlabel\na\tx\n", [(3, ("a", "x"))]),
        ("t.csv", "sep=,\ntext,a;b\na,1;2\n", [(3, ("a", "1;2"))]),
        ("t.csv", "text,a;b,label\na,1;2,x\n", [(2, ("a", "1;2", "x"))]),
        ("t.csv", "text,a|b\na,1|2\n", [(2, ("a", "1|2"))]),
        ("t.csv", "text,label\na|b,x;y\n", [(2, ("a|b", "x;y"))]),
        ("t.tsv", 'sep=;\ntext;label\n"a;b";x\n', [(3, ("a;b", "x"))]),
        ("t.tsv", '"text"\t"label"\n"a\tb"\t"x"\n', [(2, ("a\tb", "x"))]),
        ("t.tsv", 'text\tlabel\n"a"\tx\n', [(2, ('"a"', "x"))]),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_separates_the_columns(
    tmp_path: Path, name: str, content: str, rows: list[tuple[int, tuple[str, ...]]], suffix: str
) -> None:
    assert read(write(tmp_path, name + suffix, "\ufeff" + content)) == rows


def test_jsonl_labels(tmp_path: Path) -> None:
    labels = ['"a"', "1", "2.50", "true", "[]", '["a", "b"]']
    path = write(tmp_path, "t.jsonl", "".join(f'{{"text": "t", "label": {label}}}\n' for label in labels))
    assert [cells[1] for _, cells in read(path)] == ["a", "1", "2.50", "true", (), ("a", "b")]
    deep = write(tmp_path, "deep.jsonl", '{"text": "t", "label": "a", "meta": {"k": [1]}}\n')
    assert [row.cells for row in open_table(deep).rows(["text"])] == [("t",)], "columns not asked for may hold anything"


def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path) -> None:
    assert len(read(write(tmp_path, "t.csv", "text,label\na,b\n\n\r\n"))) == 1
    assert len(read(write(tmp_path, "t.jsonl", '{"text": "a", "label": "b"}\n\n'))) == 1


def test_an_empty_cell_in_quotes_is_no_blank_line(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", 'text\na\n""\nb\n""\n\n')
    assert [(row.line, row.cells) for row in open_table(path).rows(["text"])] == [
        (2, ("a",)), (3, ("",)), (4, ("b",)), (5, ("",)),
    ]  # fmt: skip


BAD = [
    ("t.csv", "", "", "the file is empty", ""),
    ("t.csv", "\n\n", "", "the file is empty", ""),
    ("t.jsonl", "", "", "the file is empty", ""),
    ("t.csv", "text,label\n", "", "a header and no rows", "add rows"),
    ("t.tsv", "text\tlabel", "", "a header and no rows", "add rows"),
    ("t.csv", "text,label\na,b\nc\n", ":3", "too few fields", "2 fields: text, label"),
    ("t.csv", "text,label\na,b,c\n", ":2", "too many fields", "put quotes round"),
    ("t.tsv", "text\tlabel\na\tb\tc\n", ":2", "too many fields", "replace the tab"),
    ("t.csv", "text,label\na,b\ntext,label\n", ":3", "the line repeats the header", "a row"),
    ("t.tsv", "text\tlabel\na\n", ":2", "too few fields", "missing tab"),
    ("t.csv", 'text,label\na,b\nc,"d\ne,f\n', ":3:3", "never closed", "double a quote"),
    ("t.csv", 'text,label\n5" disk,b\n', ":2:2", "a quote inside an unquoted field", "quote the field"),
    ("t.csv", 'text,label\n"a" b,c\n', ":2:4", "text follows a closing quote", "the quote opened at"),
    ("t.csv", 'text,label\n"a,b\nc" d,"e"\n', ":3:3", "text follows a closing quote", "t.csv:2:1"),
    ("t.csv", "text,label\na\rb,c\n", ":2:2", "a carriage return inside", ""),
    ("t.csv", "text,label\ra,b\r", ":1:11", "a carriage return", ""),
    ("t.tsv", "text\tlabel\ra\tb\r", ":1", "a carriage return in the header", "old Mac"),
    ("t.csv", "text,label\na,b\n\nc,d\n", ":3", "the line is empty", "remove the line"),
    ("t.jsonl", '{"text": "a", "label": "b"}\n\n{"text": "a", "label": "b"}\n', ":2", "the line is empty", ""),
    ("t.csv", "text,label,text\na,b,c\n", ":1", "two columns are called 'text'", "columns 1 and 3"),
    ("t.csv", '"text,label"\n"a,b"\n', ":1", "one column that holds ','", "take the quotes round"),
    ("t.csv", "text;label\na;b\nc;d;e\n", ":3", "too many fields", "holds a semicolon"),
    ("t.csv", 'text;label\na;"b"c\n', ":2:6", "text follows a closing quote", "a semicolon or the end"),
    ("t.tsv", 'text\tlabel\n"a\nb"\tc\n', ":2", "too few fields", "rename the file to .csv"),
    ("t.tsv", "text,label\na,b\n", ":1", "one column that holds ','", "rename the file to .csv"),
    ("t.tsv", "text;label\na;b\n", ":1", "one column that holds ';'", "rename the file to .csv"),
    ("t.csv", b"text,label\na,b\nc\0,d\n", ":3", "the line has a NUL byte (byte 16 ", "export it again"),
    ("t.csv", b"text,label\na,b\ncaf\xe9,d\n", ":3", "not UTF-8 (byte 18 ", "WINDOWS-1252"),
    ("t.csv.gz", b"text,label\na,b\ncaf\xe9,d\n", ":3", "not UTF-8 (byte 18 ", "gunzip t.csv.gz && iconv"),
    ("t.csv", "text,label\na,b\n".encode("utf-16"), ":1", "UTF-16, not UTF-8", "iconv -f UTF-16 -t UTF-8 t.csv"),
    ("t.csv", "text,label\na,b\n".encode("utf-16-le"), ":1", "UTF-16LE, not UTF-8", "iconv -f UTF-16LE"),
    ("t.csv", "text,label\na,b\n".encode("utf-16-be"), ":1", "UTF-16BE, not UTF-8", "iconv -f UTF-16BE"),
    ("t.csv", gzip.compress(b"text,label\na,b\n", mtime=0), ":1", "the file is gzip", "rename it to t.csv.gz"),
    ("t.csv", b"PK\x03\x04rest", ":1", "a spreadsheet", "save the sheet as CSV"),
    (
        "t.jsonl",
        '{"text": "a", "label": "b"}\n{"text": "a",\n',
        ":2:14",
        "the line is not valid JSON",
        "one JSON object",
    ),
    ("t.jsonl", '["a"]\n', ":1", "not a JSON object", '{"text": "…", "label": "…"}'),
    ("t.jsonl", '{"text": "a", "text": "b"}\n', ":1", "'text' occurs twice", ""),
    ("t.jsonl", '{"text": "a", "label": NaN}\n', ":1", "NaN is no JSON number", ""),
    ("t.jsonl", '{"text": "a", "label": "b"}\n{"txt": "a", "label": "b"}\n', ":2", "'text' is missing", "called 'txt'"),
    ("t.jsonl", '{"text": null, "label": "b"}\n', ":1", "'text' is null", "fill the value in"),
    ("t.jsonl", '{"text": 5, "label": "b"}\n', ":1", "'text' is not a text", "5"),
    ("t.jsonl", '{"text": ["a"], "label": "b"}\n', ":1", "'text' is not a text", "a string"),
    ("t.jsonl", '{"text": "a", "label": null}\n', ":1", "'label' is null", "fill the value in"),
    ("t.jsonl", '{"text": "a", "label": {"k": 1}}\n', ":1", "'label' is not a text", "a list of strings"),
    ("t.jsonl", '{"text": "a", "label": [{}]}\n', ":1", "'label' is not a text", "a list of strings"),
    ("t.jsonl", '{"text": "\\ud83d", "label": "b"}\n', ":1", "half of a character", "UTF-8"),
    ("t.txt", "text\tlabel\n", "", "unknown suffix '.txt'", ".csv, .tsv, .jsonl, "),
    ("t.json", "[]", "", "the file is empty", "the export of Label Studio"),
    ("t", "text\tlabel\n", "", "no suffix", ".parquet with .gz"),
    ("t.json", '{"text": "a", "label": "b"}\n', "", "the file is not a list", "is called .jsonl"),
]


@pytest.mark.parametrize(("name", "content", "place", "what", "more"), BAD)
def test_bad_files_are_refused(
    tmp_path: Path, name: str, content: str | bytes, place: str, what: str, more: str
) -> None:
    path = write(tmp_path, name, content)
    error = refusal(path)
    assert error.where == f"{path}{place}"
    assert what in error.what
    assert more in error.message


def test_whole_surrogate_pairs_are_text(tmp_path: Path) -> None:
    path = write(tmp_path, "t.jsonl", json.dumps({"text": "😀", "label": "b"}) + "\n")
    assert read(path) == [(1, ("😀", "b"))]


def test_torn_and_false_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(("text,label\n" + "a,b\n" * 1000).encode())
    for content in (whole[:-20], b"text,label\na,b\n"):
        path = tmp_path / "t.csv.gz"
        path.write_bytes(content)
        assert "not a whole gzip file" in refusal(path).what


def test_missing_file_suggests_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "tickets.csv", "text,label\na,b\n")
    with pytest.raises(StorageError, match=r"did you mean 'tickets\.csv'"):
        open_table(tmp_path / "ticket.csv")


def test_bad_row_far_down_is_found_while_streaming(tmp_path: Path) -> None:
    path = write(tmp_path, "t.tsv", "text\tlabel\n" + "a\tb\n" * 5000 + "broken\n")
    rows = open_table(path).rows(["text"])
    assert next(rows).cells == ("a",)
    with pytest.raises(DataError, match=":5002: the row has too few fields"):
        list(rows)
