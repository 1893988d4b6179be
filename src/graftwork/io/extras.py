"""Libraries of optional extras: a missing one is an error with the pip line that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graftwork.errors import ConfigError


class MissingExtra(ConfigError):
    """A library of an extra that is not installed, or that can't be imported."""


@contextmanager
def extra(name: str, purpose: str, where: str = "", instead: str = "") -> Iterator[None]:
    """Convert an `ImportError` of this block, which imports libraries of the extra `name`, to a `MissingExtra`.

    The message begins with `purpose`, "… needs h5py", at `where`; `instead` is an alternative to installing the extra.
    """
    try:
        yield
    except ImportError as error:
        library = (error.name or f"the extra {name}").partition(".")[0]
        do = f'install it: pip install "graftwork[{name}]"' + (f", or {instead}" if instead else "")
        raise MissingExtra(f"{purpose} needs {library}", where=where, got=str(error), do=do) from None
