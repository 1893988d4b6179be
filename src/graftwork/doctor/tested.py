"""The library versions that Graftwork was tested with and requires, from a checkout or an installation."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement

from graftwork.machine.environment import version

NAME = "graftwork"
EXTRAS = {  # name of an optional extra -> the features that it adds
    "elmo": "ELMo's published weights, which are HDF5",
    "generation": "scores of written texts: BLEU, chrF, ROUGE",
    "gguf": "networks in llama.cpp's files",
    "hub": "data sets by name, hub:NAME",
    "images": "tasks over images",
    "onnx": "export to ONNX, and running what was exported",
    "pandas": "to_frame() of boards and curves",
    "parquet": "data in Parquet files",
    "sentence-transformers": "export to SentenceTransformer",
    "serve": "graft serve",
    "sound": "tasks over sound",
    "vectors": "training of word vectors; opening them needs nothing more",
}
CHECKOUT = Path(__file__).resolve().parents[3]  # root of the checkout, if this file is in one
CONSTRAINTS = "constraints.txt"


def versions_tested() -> Mapping[str, str]:
    """Return distribution -> version of constraints.txt, from the checkout or the installation; empty if not found.

    A wheel contains the file beside its metadata, as set in pyproject.toml.
    """
    beside = CHECKOUT / CONSTRAINTS
    if beside.is_file():
        text = beside.read_text(encoding="utf-8")
    else:
        try:
            text = importlib.metadata.distribution(NAME).read_text(f"extra_metadata/{CONSTRAINTS}") or ""
        except importlib.metadata.PackageNotFoundError:
            text = ""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {
        name.strip().lower(): version.strip()
        for name, _, version in (line.partition("==") for line in lines)
        if version
    }


def requirements() -> list[Requirement]:
    """Return all requirements of the installed package, extras included; empty if it is not installed."""
    try:
        told = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Requirement(line) for line in told]


def of_extra(extra: str) -> list[Requirement]:
    """Return the requirements that `pip install graftwork[EXTRA]` adds; for "", the requirements without extras."""
    needed = [one for one in requirements() if one.marker is None or one.marker.evaluate({"extra": extra})]
    return [one for one in needed if (one.marker is not None and "extra" in str(one.marker)) == bool(extra)]


def installed_version(distribution: str) -> str | None:
    """Return the installed version without its local label (`+cpu`); None when not installed."""
    found = version(distribution)
    return None if found is None else found.partition("+")[0]
