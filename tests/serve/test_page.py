"""The page in a real browser: Chromium by Playwright, over canned answers and the page's own headers."""

from __future__ import annotations

import ast
import csv
import importlib.util
import io
import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import graftwork
from graftwork import units
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.serve.pages import HEADERS, TYPES, page_files

pytestmark = [pytest.mark.slow, pytest.mark.browser]

FOLDER = Path(graftwork.__file__).parent / "serve" / "page"
FILES = {file.name: file for file in page_files()}
SITE = "http://graftwork.test"
WIDTHS = (320, 360, 390, 430, 768, 981, 1101, 1400)
HANDLERS = dict[str, Callable[[Any], None]]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


canned = load(Path(__file__).with_name("canned.py"))


@dataclass
class Stage:
    """A tab on the page, what it asked for, and what went wrong in it."""

    tab: Any
    token: str = "good"
    instead: HANDLERS = field(default_factory=dict)  # path -> what answers in place of the canned answer
    asked: list[tuple[str, Any]] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def answer(self, route: Any) -> None:
        """What a server would."""
        request = route.request
        if not request.url.startswith(f"{SITE}/"):
            self.elsewhere.append(request.url)
            return route.abort()
        path = request.url.removeprefix(SITE).partition("#")[0]
        if not path.startswith("/v1/"):
            file = FILES["index.html" if path == "/" else path.removeprefix("/page/")]
            headers = HEADERS | {"Content-Type": TYPES[Path(file.name).suffix]}
            return route.fulfill(body=file.read_bytes(), headers=headers)
        self.asked.append((path, request.post_data_json if request.method == "POST" else None))
        if request.headers.get("authorization") != f"Bearer {self.token}":
            error = {"what": "the token is wrong", "where": "Authorization", "expected": "Bearer TOKEN"}
            return route.fulfill(status=401, json={"error": error})
        if path in self.instead:
            return self.instead[path](route)
        return route.fulfill(json=self.canned(path, self.asked[-1][1]))

    def canned(self, path: str, body: Any) -> Any:
        if path == "/v1/tasks":
            return {"bank": canned.BANK, "tasks": canned.TASKS}
        if path == "/v1/predict":
            return canned.answered(body)
        if path == "/v1/attention":
            return canned.attended(body)
        return canned.told(path.rsplit("/")[-1])

    def open(self, view: str = "#token=good") -> Stage:
        """The page as a link opens it, and further to a view."""
        self.tab.goto(f"{SITE}/#token=good")
        self.tab.wait_for_selector("main h1")
        if not view.startswith("#token"):
            self.tab.evaluate("view => { location.hash = view }", view)
            wanted = ".map svg" if view == "#/attention" else "main .back"
            self.tab.wait_for_selector(wanted)
        return self

    def choose(self, task: str) -> Stage:
        self.tab.select_option("[name=task]", label=task)
        return self

    def type(self, **inputs: str) -> Stage:
        for name, text in inputs.items():
            self.tab.fill(f"[name={name}]", text)
        return self

    def send(self, shown: str = ".answer-of") -> Stage:
        self.tab.click("button.main")
        self.tab.wait_for_selector(shown)
        return self

    def text(self, selector: str = "main") -> str:
        return str(self.tab.inner_text(selector))

    def status(self) -> str:
        return str(self.tab.inner_text("p.status"))


@pytest.fixture
def stage(browser: Any) -> Iterator[Callable[..., Stage]]:
    """Opens tabs; in the end nothing may have gone wrong in one, and nothing may have been asked of another site."""
    stages: list[Stage] = []

    def opened(width: int = 1200, scheme: str = "light", motion: str = "no-preference") -> Stage:
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion=motion)
        made = Stage(context.new_page())
        made.tab.on("pageerror", lambda error: made.wrong.append(str(error)))
        made.tab.on("console", lambda told: made.wrong.append(told.text) if "Policy" in told.text else None)
        made.tab.route("**/*", made.answer)
        stages.append(made)
        return made

    yield opened
    for each in stages:
        each.tab.context.close()
    assert [each.wrong for each in stages] == [[]] * len(stages)
    assert [each.elsewhere for each in stages] == [[]] * len(stages)


@pytest.fixture
def page(stage: Callable[..., Stage]) -> Stage:
    return stage()


def test_tasks_with_scores_and_price_tags(page: Stage) -> None:
    page.open()
    assert page.text("h1") == "12 tasks on minilm"
    assert "revision 7c7bd9c5b487" in page.text(".about") and "bf16" in page.text(".about")
    row = re.sub(r"\s+", " ", page.text("table tbody tr:first-child"))
    assert row == "trec6 classification adapter accuracy 96.6 1 min 37 sA 7 msA 2.44 MBB 607 kB 1.3 GBB"
    assert "torn could not be opened: the self-test gives other logits" in page.text()
    assert "D guess: a guess" in page.text("section:last-of-type .legend")


def test_a_task_is_found_by_part_of_its_name_or_kind(page: Stage) -> None:
    page.open().tab.fill("[type=search]", "TAGG")
    assert page.tab.locator("tbody tr:visible").count() == 2
    assert "2 of 12 tasks" in page.text()


def test_the_token_of_the_link_leaves_the_address_bar(page: Stage) -> None:
    page.open()
    assert page.tab.evaluate("location.hash") == "#/"
    assert page.tab.evaluate("history.length") <= 2 and "good" not in page.tab.url
    assert page.tab.evaluate("Object.values(sessionStorage)") == ["good"]
    assert page.tab.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"
    page.tab.reload()
    page.tab.wait_for_selector("table")


def test_a_token_is_asked_for_and_a_wrong_one_is_refused(page: Stage) -> None:
    page.tab.goto(f"{SITE}/#/attention")
    page.tab.wait_for_selector("[name=token]")
    assert page.tab.locator("[role=alert]").count() == 0
    for wrong, told in (("bad", "the token is wrong"), ("zwei wörter", "without spaces")):
        page.type(token=wrong).tab.keyboard.press("Enter")
        page.tab.wait_for_selector(f"[role=alert]:has-text('{told}')")
        assert page.tab.evaluate("document.activeElement.name") == "token"
    page.type(token=" good ").tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".map svg")
    assert page.tab.title() == "Attention · Graftwork"


def test_a_token_that_is_no_longer_good_leads_to_the_form_and_back(page: Stage) -> None:
    page.open().type(text="where is my card")
    page.token = "new"
    page.tab.click("button.main")
    page.tab.wait_for_selector("[name=token]")
    page.type(token="new").tab.keyboard.press("Enter")
    page.tab.wait_for_selector("table")
    assert page.tab.input_value("[name=text]") == "where is my card"


def test_the_token_is_forgotten(page: Stage) -> None:
    page.open().tab.click("#forget")
    page.tab.wait_for_selector("[name=token]")
    assert page.tab.evaluate("Object.values(sessionStorage)") == []


PAIR = {"text_a": "a man plays", "text_b": "someone plays"}
CASES: list[tuple[str, dict[str, str], dict[str, Any], list[str]]] = [
    ("trec6", {"text": "Who?"}, {"text": "Who?"}, ["HUM (the answer) 92.0 %", "DESC 4.0 %", "1 more"]),
    ("banking77", {"text": "a\nb"}, {"text": "a\nb"}, ["intent_number_0 (the answer) 50.0 %", "72 more"]),
    ("tickets", {"text": "x"}, {"text": "x"}, ["refund (the answer) 90.0 %", "delay (the answer) 60.0 %", "damage"]),
    ("stsb", PAIR, PAIR, ["3.142"]),
    (
        "blends",
        PAIR,
        PAIR,
        [
            f"one {canned.EVIL} two",
            "Log-probability -3.2. It was cut at the longest length.",
            "1 more(nothing was written) -4",
        ],
    ),
    ("diseases", {"text": canned.PROSE}, {"text": canned.PROSE}, ["Anna🙂 Müller · Person 60.0 %"]),
    ("upos", {"text": "cards"}, {"text": "cards"}, ["cards", "NOUN", "VERB"]),
    (
        "squad",
        {"question": "Who?", "context": canned.PROSE},
        {"question": "Who?", "context": canned.PROSE},
        ["Müller (the answer) 70.0 %", "no answer 20.0 %"],
    ),
    (
        "copa",
        {"text": "so", "choices": " one\n\ntwo "},
        {"text": "so", "choices": ["one", "two"]},
        ["one 30.0 %", "two (the answer) 70.0 %"],
    ),
    (
        "wiki",
        {"text": "so", "choices": "one\ntwo"},
        {"text": "so", "choices": ["one", "two"]},
        ["two 1.25", "one -0.50"],
    ),
]


@pytest.mark.parametrize(("task", "typed", "sent", "shown"), CASES, ids=[case[0] for case in CASES])
def test_a_task_is_tried(page: Stage, task: str, typed: dict[str, str], sent: dict[str, Any], shown: list[str]) -> None:
    page.open().choose(task).type(**typed).send()
    assert page.asked[-1] == ("/v1/predict", {"task": task} | sent)
    text = re.sub(r"\s+", " ", page.tab.text_content(".answer-of"))
    assert all(each in text for each in shown), text
    assert page.status().startswith(f"{task}: ")


def test_a_text_is_shown_as_it_grows(page: Stage) -> None:
    sent = 'event: text\ndata: {"text":"one"}\n\nevent: text\ndata: {"text":" two"}\n\n'
    stream = {"content_type": "text/event-stream", "body": sent}
    page.instead["/v1/predict"] = lambda route: route.fulfill(**stream)
    page.open().choose("blends").type(text_a="a", text_b="b").send(".error")
    assert "the answer broke off" in page.text(".error")
    answer = {"answers": {"blends": canned.ANSWERS["blends"]}, "cut": False}
    stream["body"] = f"{sent}event: answer\ndata: {json.dumps(answer)}\n\n"
    page.send()
    assert "Log-probability -3.2." in page.text(".answer-of") and page.status().startswith("blends: one")


def test_words_may_be_given_one_to_a_line(page: Stage) -> None:
    page.open()
    places = page.tab.eval_on_selector_all("option", "all => all.filter(o => o.label === 'upos').map(o => o.value)")
    page.tab.select_option("[name=task]", value=places[1])
    page.type(words="cards\n <b> \n").send()
    assert page.asked[-1][1] == {"task": "upos", "words": ["cards", "<b>"]}


def test_all_tasks_that_take_a_text_answer_together(page: Stage) -> None:
    page.open().type(text=canned.PROSE).send()
    assert page.asked[-1][1] == {"task": "*", "text": canned.PROSE}
    names = page.tab.locator(".answer-of h3").all_inner_texts()
    assert names == ["trec6", "banking77", "evil", "tickets", "diseases", "upos"]
    assert page.status() == "6 tasks have answered."


def test_bars_are_as_long_as_probabilities(page: Stage) -> None:
    page.open("#/tasks/tickets").type(text="x").send()
    page.tab.wait_for_timeout(300)  # they grow
    shares = page.tab.eval_on_selector_all(
        ".filled", "all => all.map(e => e.offsetWidth / e.parentElement.offsetWidth)"
    )
    assert shares == pytest.approx([0.9, 0.6, 0.1], abs=0.02)


def test_spans_count_characters_and_not_units_of_strings(page: Stage) -> None:
    page.open().choose("diseases").type(text=canned.PROSE).send()
    marks = page.tab.eval_on_selector_all("mark", "all => all.map(mark => mark.firstChild.data)")
    assert marks == ["Anna🙂 Müller", "lung cancer"]
    page.choose("squad").type(question="Who?", context=canned.PROSE).send("mark.hue0:has-text('Müller')")
    assert page.tab.inner_text(".answer-of .verdict") == "Müller"
    assert page.tab.text_content(".marked") == canned.PROSE


def test_line_ends_count_as_one_character(page: Stage) -> None:
    page.open().choose("diseases").type(text="one\ntwo").send()
    assert page.asked[-1][1]["text"] == "one\ntwo"


def test_a_text_that_was_cut_is_said_to_be(page: Stage) -> None:
    page.open().choose("trec6").type(text="very long").send()
    assert "only its beginning was read" in page.text(".results")


def with_task(page: Stage, name: str, **more: Any) -> Stage:
    """The canned task with other facts, in the list and by itself."""
    listed = [task | more if task["name"] == name else task for task in canned.TASKS]
    page.instead["/v1/tasks"] = lambda route: route.fulfill(json={"bank": canned.BANK, "tasks": listed})
    page.instead[f"/v1/tasks/{name}"] = lambda route: route.fulfill(json=(canned.told(name) or {}) | more)
    return page


def test_an_example_is_tried_by_a_click(page: Stage) -> None:
    with_task(page, "trec6", examples=[{"text": "Who is Ada?"}, {"text": f"{canned.EVIL} {'long ' * 40}"}])
    page.open("#/tasks/trec6")
    assert page.tab.locator(".example").count() == 2 and page.text(".example >> nth=1").endswith("…")
    page.tab.click(".example >> nth=0")
    page.tab.wait_for_selector(".answer-of")
    assert page.tab.input_value("[name=text]") == "Who is Ada?"
    assert page.asked[-1] == ("/v1/predict", {"task": "trec6", "text": "Who is Ada?"})


def test_words_of_an_example_are_a_text_too(page: Stage) -> None:
    with_task(page, "upos", examples=[{"words": ["my", "cards"]}]).open().choose("upos")
    page.tab.click(".example")
    page.tab.wait_for_selector(".answer-of")
    assert page.asked[-1][1] == {"task": "upos", "text": "my cards"}


def test_two_tasks_side_by_side(page: Stage) -> None:
    page.open("#/tasks/trec6")
    offered = page.tab.locator("[name=second] option").all_inner_texts()
    assert "banking77" in offered and "trec6" not in offered and "stsb" not in offered
    page.tab.select_option("[name=second]", "banking77")
    page.type(text="Who?").send()
    assert page.asked[-1][1] == {"task": ["trec6", "banking77"], "text": "Who?"}
    assert page.tab.locator(".answer-of h3").all_inner_texts() == ["trec6", "banking77"]


def test_two_versions_side_by_side(page: Stage) -> None:
    page.open("#/tasks/trec6")
    assert "Stored besides: trec6@1." in page.text(".about")
    page.tab.select_option("[name=second]", "trec6@1")
    page.type(text="Who?").send()
    assert page.asked[-1][1] == {"task": ["trec6", "trec6@1"], "text": "Who?"}
    assert page.tab.locator(".answer-of h3").all_inner_texts() == ["trec6", "trec6@1"]


def test_what_is_in_the_form_as_code(page: Stage) -> None:
    text = 'it\'s \\ "quoted" $HOME `x`\n🙂 \u2028'
    page.open().choose("trec6").type(text=text)
    page.tab.click("summary:has-text('As Python or curl')")
    python, curl = page.tab.locator(".ask pre").all_text_contents()
    assert json.loads(shlex.split(curl.replace("\\\n", " "))[-1]) == {"task": "trec6", "text": text}
    told = next(node for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Dict))
    assert ast.literal_eval(told) == {"task": "trec6", "text": text}
    assert "good" not in python + curl and f"{SITE}/v1/predict" in curl


def upload(page: Stage, content: bytes) -> None:
    page.tab.click("summary:has-text('Answer a CSV file')")
    page.tab.set_input_files("input[type=file]", {"name": "in.csv", "mimeType": "text/csv", "buffer": content})


def test_a_csv_file_comes_back_answered(page: Stage) -> None:
    texts = ['say "hi", Ann', "two\nlines", "🙂", *(f"text {at}" for at in range(80))]
    stream = io.StringIO()
    csv.writer(stream).writerows([["id", "text", "label"], *([str(at), text, "x"] for at, text in enumerate(texts))])
    page.open().choose("trec6")
    upload(page, b"\xef\xbb\xbf" + stream.getvalue().encode())
    page.tab.wait_for_selector("text=83 of 83 rows answered.")
    with page.tab.expect_download() as coming:
        page.tab.click("a[download]")
    with coming.value.path().open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert [row["text"] for row in found] == texts and [row["id"] for row in found] == list(map(str, range(83)))
    assert found[0]["label"] == "x" and found[0]["predicted.label"] == "HUM" and found[0]["p(DESC)"] == "0.04"
    sent = [body["rows"] for path, body in page.asked if path == "/v1/predict"]
    assert [len(rows) for rows in sent] == [64, 19] and sent[0][1] == {"task": "trec6", "text": texts[1]}


def labelled(route: Any) -> None:
    """A question with `when` is of a number, any other of a person."""
    rows = []
    for row in route.request.post_data_json["rows"]:
        label = "NUM" if "when" in row["text"] else "HUM"
        rows.append({"answers": {"trec6": {"label": label, "probabilities": {label: len(row["text"]) / 100}}}})
    route.fulfill(json={"rows": rows})


def test_answers_beside_the_labels_of_a_file(page: Stage) -> None:
    page.instead["/v1/predict"] = labelled
    page.open().choose("trec6")
    upload(page, b"id,text,label\n1,who,HUM\n2,when,NUM\n3,where,LOC\n4,where is it,LOC\n5,when then,HUM\n")
    page.tab.wait_for_selector(".matrix")
    assert "2 of 5 agree, 40.0 %." in page.text(".confusions")
    rows = [re.split(r"\s+", text.strip()) for text in page.tab.locator(".matrix tr").all_inner_texts()]
    assert rows == [["HUM", "NUM"], ["HUM", "1", "1"], ["LOC", "2"], ["NUM", "1"]]
    page.tab.click("[aria-label='2 of LOC, answered HUM']")
    listed = page.tab.locator(".confusions .rows li").all_inner_texts()
    assert listed == ["Line 5, 11.0 % 4 · where is it · LOC", "Line 4, 5.0 % 3 · where · LOC"]
    page.tab.select_option("[name=labels]", label="id")
    assert "0 of 5 agree" in page.text(".confusions") and page.tab.locator(".rows li").count() == 0
    page.tab.select_option("[name=labels]", label="nothing")
    assert page.tab.locator(".matrix").count() == 0


def test_many_labels_of_a_file_are_listed_by_the_commonest_confusions(page: Stage) -> None:
    page.instead["/v1/predict"] = labelled
    page.open().choose("trec6")
    upload(page, b"text,target\n" + b"".join(b"who %d,%d\n" % (at, at // 2) for at in range(40)) + b"when,0\n")
    page.tab.wait_for_selector(".confusions ul")
    told = page.tab.locator(".confusions ul button").all_inner_texts()
    assert len(told) == 20 and "1, answered HUM: 2" in told and "0 of 41 agree" in page.text(".confusions")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"text\ncaf\xe9\n", "not text in UTF-8"),
        (b"text\n", "no rows below its header"),
        (b"id,sentence\n1,a\n", "Line 1: no column text; the header has id, sentence."),
        (b"text,text\na,b\n", "Line 1: the column text occurs twice."),
        (b'id,text\r\n1,"a\r\nb"\r\n2\r\n', "Line 4: 1 cells, where the header has 2."),
        (b'text\n"a\n', "Line 2: a quoted cell does not end"),
        (b'text\na "b"\n', "Line 2: a quote is inside a cell"),
        (b"id,text\n1, \n", "Line 2: the cell of text is empty."),
    ],
)
def test_a_bad_file_gets_a_message(page: Stage, content: bytes, told: str) -> None:
    page.open().choose("trec6")
    upload(page, content)
    page.tab.wait_for_selector("[role=alert]")
    assert told in page.text("[role=alert]") and "in.csv" in page.text("[role=alert]")
    assert not any(path == "/v1/predict" for path, _ in page.asked)


def test_a_row_that_the_server_refuses_is_told_by_its_line(page: Stage) -> None:
    error = {"what": "too many characters", "where": "rows[1]"}
    page.instead["/v1/predict"] = lambda route: route.fulfill(status=413, json={"error": error})
    page.open().choose("trec6")
    upload(page, b'text\n"a\nb"\nlong\n')
    page.tab.wait_for_selector("[role=alert]:has-text('line 4')")


def occluded(route: Any) -> None:
    """Without `lost` it is less probable, without `not` more."""
    rows = []
    for row in route.request.post_data_json.get("rows", [route.request.post_data_json]):
        share = 0.5 + 0.3 * ("lost" in row["text"]) - 0.2 * ("not" in row["text"])
        answer = {"label": "HUM", "probabilities": {"HUM": share, "LOC": 1 - share}}
        rows.append({"answers": {"trec6": answer}, "cut": False})
    route.fulfill(json={"rows": rows})


def test_the_words_that_decided(page: Stage) -> None:
    page.instead["/v1/predict"] = occluded
    page.open().choose("trec6").type(text="is my card not lost?").send()
    page.tab.click("text=Which words decided?")
    page.tab.wait_for_selector(".deciding-words")
    told = page.tab.locator(".deciding-words li").all_inner_texts()
    assert told[:3] == ["lost: 30.0 points less probable", "not: 20.0 points more probable", "is: as probable"]
    sent = [row["text"] for row in page.asked[-1][1]["rows"]]
    assert sent == ["my card not lost?", "is card not lost?", "is my not lost?", "is my card lost?", "is my card not ?"]
    assert page.text(".deciding .marked") == "is my card not lost?"
    assert page.tab.locator("mark.against").all_inner_texts() == ["not"]


def test_words_that_can_not_be_left_out(page: Stage) -> None:
    page.open().choose("trec6").type(text="Who?").send()
    page.type(text=" ".join(["word"] * 201)).send()
    page.tab.wait_for_function("document.querySelector('[name=text]').value.length > 100")
    page.tab.click("text=Which words decided?")
    page.tab.wait_for_selector("text=more than 200 are not tried")
    page.choose("stsb").type(text_a="a", text_b="b").send(".verdict")
    assert page.tab.locator("text=Which words decided?").count() == 0


def test_a_label_is_confirmed_or_corrected_where_the_server_keeps_it(page: Stage) -> None:
    page.open().choose("trec6").type(text="Who?").send()
    assert page.tab.locator(".feedback").count() == 0
    with_task(page, "trec6", feedback=True)
    page.instead["/v1/feedback"] = lambda route: route.fulfill(json={"kept": {}})
    page.open("#/tasks/trec6").type(text="Who?").send()
    page.tab.get_by_role("button", name="Right", exact=True).click()
    page.tab.wait_for_selector("text=Kept as a row to train on: HUM.")
    kept = {"task": "trec6", "text": "Who?", "label": "HUM", "predicted": "HUM"}
    assert page.asked[-1] == ("/v1/feedback", kept)
    page.send(".feedback button")
    page.tab.get_by_role("button", name="Wrong").click()
    assert "HUM" not in page.tab.locator(".feedback option").all_inner_texts()
    page.tab.get_by_label("Right label").select_option("LOC")
    page.tab.get_by_role("button", name="Keep").click()
    page.tab.wait_for_selector("text=Kept as a row to train on: LOC.")
    assert page.asked[-1][1] == kept | {"label": "LOC"}


def test_a_label_that_is_refused_is_told(page: Stage) -> None:
    error = {"what": "the feedback file is full"}
    page.instead["/v1/feedback"] = lambda route: route.fulfill(status=507, json={"error": error})
    with_task(page, "tickets", feedback=True).open().choose("tickets").type(text="x").send()
    page.tab.get_by_role("button", name="Wrong").click()
    page.tab.get_by_label("Right labels").select_option(["damage"])
    page.tab.get_by_role("button", name="Keep").click()
    page.tab.wait_for_selector(".feedback [role=alert]:has-text('is full')")
    assert page.asked[-1][1]["label"] == ["damage"] and page.asked[-1][1]["predicted"] == ["refund", "delay"]


def test_an_answer_that_is_withheld_is_not_sure(page: Stage) -> None:
    answer = {"label": None, "probabilities": {"HUM": 0.4, "LOC": 0.35}, "best_guess": "HUM"}
    rows = {"rows": [{"answers": {"trec6": answer}, "cut": False}]}
    page.instead["/v1/predict"] = lambda route: route.fulfill(json=rows)
    page.open().choose("trec6").type(text="Who?").send()
    assert page.text(".answer-of .verdict") == "not sure" and "HUM" in page.text(".answer-of .chosen")
    assert page.status() == "trec6: not sure, perhaps HUM"


def test_an_answer_by_costs_says_what_it_costs(page: Stage) -> None:
    answer = {"label": "LOC", "probabilities": {"HUM": 0.6, "LOC": 0.4}, "expected_cost": 0.6}
    page.instead["/v1/predict"] = lambda route: route.fulfill(json={"rows": [{"answers": {"trec6": answer}}]})
    page.open().choose("trec6").type(text="Who?").send()
    assert "LOC" in page.text(".answer-of .chosen")
    assert page.text(".answer-of .caption") == "Expected cost 0.6, the least of all answers."


def test_a_probability_to_abstain_below_goes_with_the_rows(page: Stage) -> None:
    page.open().choose("trec6").type(text="Who?", abstain_below="0.6").send()
    body = {"rows": [{"task": "trec6", "text": "Who?"}], "abstain_below": 0.6}
    assert page.asked[-1] == ("/v1/predict", body)
    curl = page.tab.locator(".ask pre").all_text_contents()[1]
    assert json.loads(shlex.split(curl.replace("\\\n", " "))[-1]) == body
    upload(page, b"text\nWho?\n")
    page.tab.wait_for_selector("text=1 of 1 rows answered.")
    assert page.asked[-1] == ("/v1/predict", body)
    page.type(abstain_below="7").tab.click("button.main")
    assert page.tab.evaluate("document.activeElement.name") == "abstain_below" and page.asked[-1][1] == body


@pytest.mark.parametrize("view", ["#token=good", "#/tasks/trec6", "#/attention"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(stage: Callable[..., Stage], view: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")
    for width in (390, 1400):
        page = stage(width=width, scheme=scheme).open(view)
        page.type(text=canned.PROSE).send(".answer-of" if view != "#/attention" else "[role=option]:has-text('Anna')")
        page.tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        page.tab.wait_for_timeout(300)
        found = axe.Axe().run(page.tab)
        told = [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found.response["violations"]]
        assert told == [] and len(found.response["passes"]) > 20


def test_data_never_becomes_markup(page: Stage) -> None:
    page.open().type(text=canned.EVIL).send()
    assert canned.EVIL in page.text(".results")
    page.tab.evaluate("location.hash = '#/tasks/trec6'")
    page.tab.wait_for_selector(".board")
    assert canned.EVIL in page.text(".card") and f"full: no memory {canned.EVIL}" in page.text()
    page.tab.evaluate("location.hash = '#/attention'")
    page.tab.wait_for_selector(".map svg")
    page.type(text=canned.EVIL).send("[role=option]:has-text('onerror')")
    error = {"what": canned.EVIL, "got": canned.EVIL}
    page.instead["/v1/attention"] = lambda route: route.fulfill(status=422, json={"error": error})
    page.send("[role=alert]")
    assert page.text("[role=alert]").count(canned.EVIL) == 2
    assert page.tab.locator("img").count() == 0 and page.tab.title() == "Attention · Graftwork"


def busy_times(number: int, after: str = "1") -> Callable[[Any], None]:
    left = [number]

    def answer(route: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            return route.fulfill(
                status=429, json={"error": {"what": "the queue is full"}}, headers={"Retry-After": after}
            )
        return route.fulfill(json=canned.answered(route.request.post_data_json))

    return answer


def test_a_full_queue_is_waited_for(page: Stage) -> None:
    page.open().choose("trec6").type(text="x")
    page.instead["/v1/predict"] = busy_times(2)
    page.tab.click("button.main")
    page.tab.wait_for_selector("p.status:has-text('The next try is in 1 s')")
    page.tab.wait_for_selector(".answer-of")
    assert len([path for path, _ in page.asked if path == "/v1/predict"]) == 3
    assert page.status() == "trec6: HUM, 92.0 %" and not page.tab.is_visible("text=Stop waiting")


def test_waiting_can_be_stopped(page: Stage) -> None:
    page.open().choose("trec6").type(text="x")
    page.instead["/v1/predict"] = busy_times(1, after="30")
    page.tab.click("button.main")
    page.tab.click("text=Stop waiting")
    assert page.status() == "Stopped; nothing was answered."


def test_errors_say_what_where_got_expected_and_do(page: Stage) -> None:
    error = {"what": "too long", "where": "text", "got": "9", "expected": "at most 8", "do": "shorten it"}
    page.instead["/v1/predict"] = lambda route: route.fulfill(status=413, json={"error": error})
    page.open().type(text="x").send("[role=alert]")
    told = " ".join(page.text("[role=alert]").split())
    assert told == "too long where text got 9 expected at most 8 do shorten it"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda route: route.abort(), "the server does not answer"),
        (lambda route: route.fulfill(status=502, body="<h1>bad gateway</h1>"), "answered 502 and no JSON"),
        (lambda route: route.fulfill(body="{"), "answered 200 and no JSON"),
    ],
)
def test_a_server_that_fails_is_told_and_tried_again(page: Stage, answer: Callable[[Any], None], told: str) -> None:
    page.open()
    page.instead["/v1/tasks"] = answer
    page.tab.evaluate("location.hash = '#/attention'")
    page.tab.wait_for_selector(".map svg")
    page.tab.evaluate("location.hash = '#/'")
    page.tab.wait_for_selector(f"[role=alert]:has-text('{told}')")
    page.instead.clear()
    page.tab.get_by_role("button", name="Try again").click()
    page.tab.wait_for_selector("table")


def test_an_empty_bank_says_how_to_fill_it(page: Stage) -> None:
    bank = {"backbone": None, "precision": None, "tasks": 0}
    page.instead["/v1/tasks"] = lambda route: route.fulfill(json={"bank": bank, "tasks": []})
    page.open()
    assert page.text("h1") == "0 tasks" and "graft train DATA --bank BANK --task NAME" in page.text()


def test_a_task_with_its_leaderboard(page: Stage) -> None:
    page.open("#/tasks/trec6")
    assert page.text("h1") == "trec6" and page.tab.title() == "trec6 · Graftwork"
    assert "run 54408718a4b6" in page.text(".about")
    tables = [re.sub(r"\s+", " ", text) for text in page.tab.locator("table").all_inner_texts()]
    assert "accuracy 96.6 96.6 ± 0.4 [95.1, 97.9]" in tables[0] and "macro f1 96.3 – –" in tables[0]
    assert "train time 1 min 37 sA" in tables[1] and "train FLOP 23.2 TFLOPC" in tables[1]
    assert "money –" in tables[1] and "energy 911 JD" in tables[1] and "predictions per second 793A" in tables[1]
    rows = [re.sub(r"\s+", " ", text) for text in page.tab.locator(".board tbody tr").all_inner_texts()]
    assert rows[0].startswith("◆ adapter 5 96.6 ± 0.4 [95.1, 97.9] 1 min 37 s")
    assert rows[3].startswith("! constant") and rows[5].strip().startswith("bitfit 0 diverged")
    assert "out of memory" in rows[6] and page.tab.locator(".own").count() == 1
    for said in (canned.SAID["answer"], *canned.SAID["verdicts"], *canned.SAID["warnings"]):
        assert said in page.text()
    assert "not enough runs to rank" in page.text() and f"{canned.SAID['search']}." in page.text()
    assert page.text("pre.card").startswith("# trec6: adapter")
    page.tab.click("summary:has-text('All prices')")
    prices = re.sub(r"\s+", " ", page.tab.locator("details[open] tbody tr").last.inner_text())
    assert prices == "predictions per second" + " 793A" * 7
    page.tab.click("summary:has-text('Runs')")
    assert "tfidf_svm: c7f1d0a2b394" in page.text()


@pytest.mark.parametrize("ran", [True, False])
def test_the_row_of_a_task_is_the_one_of_its_run(page: Stage, ran: bool) -> None:
    """Other settings of the method stand above it; of a run that is of no row none is shown."""
    runs = [canned.RUN if ran else "0a1b2c3d4e5f"]
    rows = [canned.row("adapter", 0.5), canned.row("adapter", 0.9664, runs=runs)]
    told = (canned.told("trec6") or {}) | {"board": canned.BOARD | {"rows": rows}}
    page.instead["/v1/tasks/trec6"] = lambda route: route.fulfill(json=told)
    page.open("#/tasks/trec6")
    scores = re.sub(r"\s+", " ", page.tab.locator("table").first.inner_text())
    assert ("over 5 seeds" in scores, "96.6 ± 0.4" in scores, "50.0" in scores) == (ran, ran, False)
    own = [re.sub(r"\s+", " ", text) for text in page.tab.locator(".own").all_inner_texts()]
    assert len(own) == ran and all("96.6 ± 0.4" in text for text in own)


def test_a_task_without_a_board_and_one_over_files(page: Stage) -> None:
    page.open("#/tasks/flowers")
    assert "None was stored with this task" in page.text() and "It answers for files" in page.text()


def test_a_task_that_is_not_there(page: Stage) -> None:
    error = {"what": "no such task", "got": "a b", "do": "did you mean 'ab'?"}
    page.instead["/v1/tasks/a%20b"] = lambda route: route.fulfill(status=404, json={"error": error})
    page.open()
    page.tab.evaluate("location.hash = '#/tasks/a%20b'")
    page.tab.wait_for_selector("[role=alert]:has-text('did you mean')")


def test_attention_by_keyboard(page: Stage) -> None:
    page.open("#/attention").type(text="my card is lost").send("[role=option]:has-text('lost')")
    assert page.tab.locator("[role=option]").all_inner_texts() == ["[CLS]", "my", "card", "is", "lost", "[SEP]"]
    page.tab.locator("[role=option][tabindex='0']").focus()
    for key, word, reads in (("ArrowRight", "card", "my"), ("End", "[SEP]", "lost"), ("ArrowLeft", "lost", "is")):
        page.tab.keyboard.press(key)
        assert page.tab.inner_text("[role=option]:focus") == word
        assert page.text("[aria-live]") == f"“{word}” reads most of “{reads}”, 40.0 %."
        assert page.tab.text_content("text.chosen[data-row]") == word
    assert page.tab.locator("[role=option][aria-selected=true]").count() == 1
    assert re.sub(r"\s+", " ", page.text(".row-told li:first-child")) == "is 40.0 %"


def test_the_block_and_the_head_are_chosen(page: Stage) -> None:
    page.open("#/attention")
    assert page.tab.locator("[name=block] option").count() == 6
    page.tab.select_option("[name=head]", "11")
    page.tab.wait_for_selector("p.status:has-text('head 11')")
    page.tab.select_option("[name=block]", "3")
    page.tab.wait_for_selector("p.status:has-text('Block 3, head 11')")
    assert page.asked[-1][1]["block"] == 3 and "84.0 %" in page.text("figcaption")


def test_all_heads_at_a_glance_and_a_task_s_own_network(page: Stage) -> None:
    page.open("#/attention")
    asked = len(page.asked)
    pictures = page.tab.get_by_role("group", name="Heads of the block").get_by_role("button")
    assert pictures.count() == 12 and pictures.nth(0).get_attribute("aria-pressed") == "true"
    pictures.nth(11).click()
    page.tab.wait_for_selector("p.status:has-text('Block 0, head 11')")
    assert "84.0 %" in page.text("figcaption") and page.tab.input_value("[name=head]") == "11"
    assert pictures.nth(11).get_attribute("aria-pressed") == "true" and len(page.asked) == asked
    page.tab.select_option("[name=task]", "trec6")
    page.tab.wait_for_function("document.querySelector('p.status').textContent.includes('head 11')")
    page.tab.wait_for_selector(".heads")
    assert page.asked[-1][1]["task"] == "trec6" and page.asked[-1][1]["head"] is None


def test_added_tokens_can_be_left_out(page: Stage) -> None:
    page.open("#/attention").type(text="my card is lost").send("[role=option]:has-text('lost')")
    page.tab.get_by_label("without added tokens").check()
    assert page.tab.locator("[role=option]").all_inner_texts() == ["my", "card", "is", "lost"]
    page.tab.wait_for_selector(".cells rect")  # drawn in the next frame, when its width is known
    assert page.tab.locator(".cells rect").count() == 16 and "100 % with the tokens left out" in page.text("figcaption")
    page.tab.select_option("[name=head]", "5")
    page.tab.wait_for_selector("p.status:has-text('head 5')")
    assert page.tab.locator("[role=option]").count() == 4
    page.tab.get_by_label("without added tokens").uncheck()
    assert page.tab.locator("[role=option]").count() == 6


def test_pointing_at_the_picture_tells_row_and_column(page: Stage) -> None:
    page.open("#/attention").type(text="my card is lost").send("[role=option]:has-text('lost')")
    cell = page.tab.locator(".cells rect").nth(2 * 6 + 1)  # row "card", column "my"
    cell.hover()
    assert page.text("[aria-live]") == "“card” reads “my”, 40.0 %."
    assert float(cell.get_attribute("fill-opacity")) == 1
    assert page.tab.locator(".cells rect").count() == 36


def test_the_picture_follows_the_width(page: Stage) -> None:
    page.open("#/attention")
    width = "document.querySelector('.map svg')?.getBoundingClientRect().width"  # the answer replaces the element
    page.tab.wait_for_function(f"{width} > 330")
    page.tab.set_viewport_size({"width": 360, "height": 700})
    page.tab.wait_for_function(f"{width} <= 330")


def test_every_label_of_the_picture_is_whole(page: Stage) -> None:
    page.open("#/attention").type(text="WWWWWWWWWWWW 東京都は日本の首都 i").send("[role=option]:has-text('WWW')")
    outside = """all => all.filter(text => {
      const own = text.getBoundingClientRect(), around = text.ownerSVGElement.getBoundingClientRect();
      return own.left < around.left - 1 || own.top < around.top - 1;
    }).map(text => text.textContent)"""
    page.tab.wait_for_selector("svg text")  # drawn in the next frame
    assert page.tab.locator("svg text").count() == 10
    assert page.tab.eval_on_selector_all("svg text", outside) == []


def test_by_keyboard_alone(page: Stage) -> None:
    page.open()
    press = page.tab.keyboard.press
    press("Tab")
    assert page.tab.inner_text(":focus") == "Skip to the content"
    assert page.tab.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    press("Enter")
    assert page.tab.evaluate("document.activeElement.id") == "main" and page.tab.evaluate("location.hash") == "#/"
    press("Tab")
    assert page.tab.evaluate("document.activeElement.name") == "task"
    press("Tab")
    page.tab.keyboard.type("who")
    press("Control+Enter")
    page.tab.wait_for_selector(".answer-of")
    while page.tab.inner_text(":focus") != "1 more":
        press("Tab")
    press("Enter")
    assert page.tab.is_visible("text=ABBR")
    while page.tab.evaluate("document.activeElement.closest('tbody')") is None:
        press("Tab")
    press("Enter")
    page.tab.wait_for_selector(".back")
    assert page.tab.evaluate("document.activeElement.tagName") == "H1"
    page.tab.go_back()
    page.tab.wait_for_selector("h1:has-text('12 tasks')")
    assert page.tab.input_value("[name=text]") == "who"


VIEWS = ("#token=good", "#/tasks/trec6", "#/attention")


@pytest.mark.parametrize("view", VIEWS)
def test_whatever_has_the_focus_shows_it(page: Stage, view: str) -> None:
    page.open(view)
    page.tab.focus(".skip")
    seen = set()
    for _ in range(80):
        told = page.tab.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            e.dataset.place ??= String(Math.random());
            return [e.tagName, e.dataset.place, s.outlineStyle, parseFloat(s.outlineWidth)]; }"""
        )
        if told[0] == "BODY" or told[1] in seen:
            break
        seen.add(told[1])
        assert told[2] == "solid" and told[3] >= 2, told
        page.tab.keyboard.press("Tab")
    assert len(seen) >= 8


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(stage: Callable[..., Stage], view: str, width: int) -> None:
    page = stage(width).open(view)
    page.type(text=f"{canned.PROSE} {'x' * 90}").send(".answer-of" if view != "#/attention" else ".map svg")
    page.tab.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
    page.tab.wait_for_timeout(100)
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert (
        max(page.tab.eval_on_selector_all(".scroll", "all => [0, ...all.map(e => e.scrollWidth - e.clientWidth)]")) <= 0
    )
    sizes = page.tab.eval_on_selector_all(
        "button:not([hidden]), select, textarea", "all => all.map(e => e.getBoundingClientRect().height)"
    )
    assert width > 560 or min(size for size in sizes if size) >= 44


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_of_the_interface_is_broken(stage: Callable[..., Stage], view: str, width: int) -> None:
    page = stage(width).open(view)
    broken = page.tab.evaluate(
        """() => { const found = [], range = document.createRange();
        for (const e of document.querySelectorAll("header *, h1, h2, h3, label, button, summary, th, dt, footer *")) {
          for (const node of e.childNodes) {
            if (node.nodeType !== Node.TEXT_NODE || e.closest("option, .unseen, .skip, .cards thead")) continue;
            for (const word of node.data.matchAll(/[\\p{L}]+/gu)) {
              range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
              if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) found.push(word[0]);
            }
          }
        } return found; }"""
    )
    assert broken == []


@pytest.mark.parametrize("width", [981, 1101])
def test_a_board_of_many_metrics_is_not_wider_either(stage: Callable[..., Stage], width: int) -> None:
    names = ("accuracy", "macro_f1", "f1", "matthews", "mean_average_precision")
    rows = [
        row | {"scores": dict.fromkeys(names, row["scores"]["accuracy"]) if row["scores"] else {}}
        for row in canned.BOARD["rows"]
    ]
    page = stage(width)
    told = canned.told("trec6") | {"board": canned.BOARD | {"rows": rows}}
    page.instead["/v1/tasks/trec6"] = lambda route: route.fulfill(json=told)
    page.open("#/tasks/trec6")
    assert page.tab.locator(".board").first.locator("tbody tr:first-child td").count() == 12
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert page.tab.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") <= 0


def test_colours_of_the_system_and_the_switch(stage: Callable[..., Stage]) -> None:
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light, dark = (stage(scheme=scheme).open() for scheme in ("light", "dark"))
    assert light.tab.evaluate(paper) == "rgb(255, 255, 255)" and dark.tab.evaluate(paper) == "rgb(19, 23, 28)"
    light.tab.select_option("#colours", "dark")
    assert light.tab.evaluate(paper) == "rgb(19, 23, 28)"
    light.tab.reload()
    light.tab.wait_for_selector("table")
    assert light.tab.evaluate(paper) == "rgb(19, 23, 28)" and light.tab.input_value("#colours") == "dark"
    light.tab.select_option("#colours", "")
    assert light.tab.evaluate(paper) == "rgb(255, 255, 255)"


CONTRASTS = """() => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const brush = canvas.getContext("2d", {willReadFrequently: true});
  const rgb = (colour, below) => {
    brush.fillStyle = below; brush.fillRect(0, 0, 1, 1);
    brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
  const light = part => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const ground = e => e ? rgb(getComputedStyle(e).backgroundColor, css(ground(e.parentElement))) : [255, 255, 255];
  return [...document.querySelectorAll("body *")].filter(e => e.checkVisibility()
      && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).map(e => {
    const behind = ground(e), style = getComputedStyle(e);
    const front = rgb(e instanceof SVGElement ? style.fill : style.color, css(behind));
    const [a, b] = [luminance(front), luminance(behind)].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 100)];
  });
}"""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(stage: Callable[..., Stage], view: str, scheme: str) -> None:
    page = stage(scheme=scheme).open(view)
    page.type(text=canned.PROSE).send(".answer-of" if view != "#/attention" else "[role=option]:has-text('Anna')")
    page.tab.wait_for_timeout(300)
    found = page.tab.evaluate(CONTRASTS)
    assert len(found) > 20
    assert [each for each in found if each[0] < 4.5] == []


@pytest.mark.parametrize(("motion", "moves"), [("reduce", False), ("no-preference", True)])
def test_motion_only_where_it_is_wanted(stage: Callable[..., Stage], motion: str, moves: bool) -> None:
    page = stage(motion=motion).open().type(text="x").send()
    durations = "all => all.map(e => getComputedStyle(e)).map(s => [s.transitionDuration, s.animationDuration])"
    found = {each for pair in page.tab.eval_on_selector_all("*", durations) for each in pair}
    assert (found != {"0s"}) is moves


@pytest.mark.parametrize("view", VIEWS)
def test_names_roles_and_headings(page: Stage, view: str) -> None:
    page.open(view).type(text="x").send(".answer-of" if view != "#/attention" else ".map svg")
    tab = page.tab
    unnamed = "all => all.filter(e => !e.labels?.length && !e.ariaLabel).map(e => e.outerHTML)"
    assert tab.eval_on_selector_all("input, select, textarea", unnamed) == []
    assert tab.locator("h1").count() == tab.locator("main").count() == tab.locator("header nav").count() == 1
    levels = tab.eval_on_selector_all("h1, h2, h3", "all => all.map(e => Number(e.tagName[1]))")
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    ids = tab.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))
    named = tab.eval_on_selector_all("[aria-labelledby]", "all => all.map(e => e.getAttribute('aria-labelledby'))")
    assert set(named) <= set(ids)
    assert tab.locator("nav [aria-current=page]").inner_text() == ("Attention" if view == "#/attention" else "Tasks")
    assert tab.locator("[role=status]").count() >= 1
    assert tab.get_attribute("html", "lang") == "en"


def test_a_table_stays_one_on_a_phone(stage: Callable[..., Stage]) -> None:
    page = stage(360).open()
    assert page.tab.get_by_role("table").count() == 1
    assert page.tab.get_by_role("rowheader").first.inner_text() == "trec6"
    assert page.tab.get_by_role("row").count() == 13  # twelve tasks and the heading


NUMBERS = [0.0, 1e-9, 4.2e-5, 0.000123456, 0.0042, 0.5, 0.9994, 0.9996, 1, 9.996, 59.94, 59.96, 75, 3599.7, 7300, 1e6]
NUMBERS += [607_000, 999_499, 999_600, 1_303_822_336, 2.32e13, 4.7e12, 9.99951e17, 123456.789, 1.77e-6, 96.72583175]


@pytest.mark.parametrize("unit", ["s", "bytes", "FLOP", "J", "parameters", "g", "EUR", "per second", ""])
def test_numbers_are_shown_as_the_report_shows_them(page: Stage, unit: str) -> None:
    page.open()
    script = (
        "async ([all, unit]) => { const u = await import('/page/units.js'); return all.map(n => u.show(n, unit)); }"
    )
    shown = page.tab.evaluate(script, [[*NUMBERS, None], unit])
    assert shown == [units.show(number, unit) for number in [*NUMBERS, None]]


def test_points_are_shown_as_the_report_shows_them(page: Stage) -> None:
    page.open()
    script = "async all => { const u = await import('/page/units.js'); return all.map(u.percent); }"
    fractions = [0, 1, 0.9664, 0.17, 0.0004, -0.031, 0.12345]
    assert page.tab.evaluate(script, fractions) == [units.percent(fraction) for fraction in fractions]


def test_probabilities_are_neither_nothing_nor_certain_by_rounding(page: Stage) -> None:
    page.open()
    script = "async all => { const u = await import('/page/units.js'); return all.map(u.chance); }"
    shown = page.tab.evaluate(script, [0, 0.0004, 0.0006, 0.5, 0.9994, 0.9996, 1])
    assert shown == ["0.0 %", "< 0.1 %", "0.1 %", "50.0 %", "99.9 %", "> 99.9 %", "100.0 %"]


def test_names_of_costs_are_those_of_the_report(page: Stage) -> None:
    from graftwork.compare.report_tables import BOARD_COSTS, GRADES
    from graftwork.compare.sentences import PRICE_TAG, cost_name

    page.open()
    script = "async () => { const p = await import('/page/prices.js'); return [p.COSTS, p.LISTED]; }"
    costs, listed = page.tab.evaluate(script)
    assert costs == {name: cost_name(name) for name in PRICE_TAG} and list(costs) == list(PRICE_TAG)
    assert listed == list(BOARD_COSTS)
    source = (FOLDER / "prices.js").read_text()
    assert all(f"{grade}: {json.dumps(list(told))}" in source for grade, told in GRADES.items())


def test_over_the_real_server(browser: Any, running: Any) -> None:
    """Its own headers, routes and refusals; the link as `graft serve` prints it."""
    running.bank.answers = lambda rows, tell: [
        {"label": "good", "probabilities": {"good": 0.75, "bad": 0.25}} for _ in rows
    ]
    running.bank.open_backbone = lambda: open_backbone("tiny_text", precision="fp32")
    tab = browser.new_page()
    wrong: list[str] = []
    tab.on("console", lambda told: wrong.append(told.text))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    site = f"http://127.0.0.1:{running.server.port}"
    tab.goto(f"{site}/#token={running.client.token}")
    tab.wait_for_selector("h1:has-text('7 tasks on tiny_text')")
    tab.select_option("[name=task]", label="mood")
    tab.fill("[name=text]", "a warm film")
    tab.click("button.main")
    tab.wait_for_selector("p.status:has-text('mood: good, 75.0 %')")
    tab.click("a:text-is('mood')")
    tab.wait_for_selector(".back")
    tab.click("nav a:has-text('Attention')")
    tab.wait_for_selector("[role=option]:has-text('river')")
    assert tab.locator("[name=block] option").count() == tab.locator("[name=head] option").count() == 2
    assert wrong == []
    tab.click("#forget")
    tab.fill("[name=token]", "another-token-than-its")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("[role=alert]:has-text('the token is wrong')")
    tab.close()
