"""The character encodings of the terminal and of file names."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Iterator

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.registry import checks

VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONIOENCODING", "PYTHONUTF8")


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report a note if the terminal is not UTF-8, "fails" if file names are not; file contents always are."""
    names, shown = sys.getfilesystemencoding(), getattr(sys.stdout, "encoding", None) or "utf-8"
    said = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    facts = {"file_names": names, "terminal": shown, "preferred": locale.getpreferredencoding(False), "variables": said}
    listed = "; ".join(f"{name}={value}" for name, value in said.items())
    yield Finding(f"file names {names}, terminal {shown}{f'; {listed}' if listed else ''}", facts=facts)
    if names.lower().replace("-", "") != "utf8":
        why = "a task, a label or a file whose name is not ASCII can't be written"
        yield Finding(f"file names are {names}", "fails", why, "set LC_ALL=C.UTF-8")
    if shown.lower().replace("-", "") != "utf8":
        yield Finding(f"the terminal takes {shown}", "note", "other characters are shown as ?", "set LC_ALL=C.UTF-8")


checks.register("encoding")(Check("software", look))
