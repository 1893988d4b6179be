"""Display of a bank in Python and notebooks: its backbone and its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graftwork.io.display import card, table
from graftwork.units import named_scores, several, show

if TYPE_CHECKING:
    from graftwork.bank.bank import Bank

COLUMNS = ("task", "version", "kind", "labels", "method", "scores on test", "stored")


def bank_text(bank: Bank) -> str:
    """Return the text that a bank is shown as in Python: folder, backbone, and the names of its tasks."""
    names = ", ".join([*list(bank.tasks)[:12], *(["…"] if len(bank.tasks) > 12 else [])])
    return f"Bank {_heading(bank)}" + (f": {names}" if names else "")


def bank_html(bank: Bank) -> str:
    """Return the HTML that a bank is shown as in notebooks: a card with a row per task."""
    rows = []
    for told in (entry.as_json() for entry in bank.tasks.values()):
        labels = several(len(told["labels"]), "label") if told["labels"] else ""
        scores = named_scores(told["scores"], positive=told["positive"]) if told["scores"] else ""
        method, size = told["method"]["name"], show(told["bytes"], "bytes")
        rows.append([told["name"], str(told["version"]), told["kind"], labels, method, scores, size])
    failed = [f"{name} could not be opened: {message}" for name, message in bank.failed.items()]
    return card(f"Bank {_heading(bank)}", failed, table(COLUMNS, rows, left=(0, 2, 3, 4, 5)))


def _heading(bank: Bank) -> str:
    backbone = f"{bank.card.id}, {bank.precision}" if bank.card else "no backbone yet"
    return f"{bank.path} · {several(len(bank.tasks), 'task')} on {backbone}"
