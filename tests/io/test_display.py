"""Cards and tables of results: escaped, small, with the notebook's own colours."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from graftwork.io.display import MOST_ROWS, ShownJson, card, facts, frame, table
from graftwork.io.extras import MissingExtra

EVIL = "<script>alert('x')</script>"


def test_all_text_is_escaped() -> None:
    made = card(EVIL, [EVIL], table([EVIL], [[EVIL]]), facts({EVIL: EVIL}), about=EVIL)
    assert "<script" not in made and made.count("&lt;script&gt;") == 7


def test_a_card_sets_no_background_of_its_own() -> None:
    made = card("tickets", ["Use lora."], table(["method"], [["lora"]]))
    assert "background:none" in made and "background:#" not in made and "color:inherit" in made


def test_a_long_table_is_cut_and_says_so() -> None:
    made = table(["n"], [[str(number)] for number in range(MOST_ROWS + 7)])
    assert made.count("<tr>") == MOST_ROWS + 1 and "and 7 more" in made


def test_facts_without_a_value_are_left_out() -> None:
    assert "label" not in facts({"kind": "regression", "label": ""})


def told(content: Any) -> list[str]:
    return [f"{content['score']:.0%}", "of all"]


def test_json_shows_itself_by_its_lines_and_stays_json() -> None:
    found = ShownJson({"score": 0.5, "rows": list(range(1000))}, told)
    assert repr(found) == "50%\nof all" and found == {"score": 0.5, "rows": list(range(1000))}
    assert json.loads(json.dumps(found)) == found
    assert repr(copy.copy(found)) == repr(pickle.loads(pickle.dumps(found))) == repr(found)


def test_a_frame_has_a_row_each(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    made = frame([{"method": "lora", "score": 0.5}, {"method": "full", "score": None}])
    assert list(made.columns) == ["method", "score"] and made.score.isna().tolist() == [False, True]


def test_without_pandas_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *given: Any, **options: Any) -> Any:
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(MissingExtra, match="needs pandas") as error:
        frame([])
    assert 'pip install "graftwork[pandas]"' in str(error.value)


def test_json_is_a_card_of_its_lines_in_notebooks() -> None:
    made = ShownJson({"score": 0.5}, lambda found: ["tickets", "", f"  {found['score']:.0%}", EVIL])._repr_html_()
    assert "<h4>tickets</h4>" in made and ">  50%\n&lt;script" in made and "pre-wrap" in made
