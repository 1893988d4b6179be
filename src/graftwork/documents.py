"""Locations of the documentation's pages: in the installed package, or in the checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def document(page: str = "") -> str:
    """Return the path of `page` ("how-to/serve.md") of the documentation, or of its folder.

    A wheel holds `docs` as `graftwork/docs`, as set in pyproject.toml; a checkout has it beside `src`.
    """
    packaged = _PACKAGE / "docs"
    folder = packaged if packaged.is_dir() else _PACKAGE.parents[1] / "docs"
    return str(folder / page)
