"""The installed library versions, compared with the required and the tested ones."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from packaging.requirements import Requirement

from graftwork import __version__
from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.doctor.tested import EXTRAS, installed_version, of_extra, versions_tested
from graftwork.registry import checks


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "fails" for a library that is missing or has an unsupported version, a note for an untested version.

    Libraries of extras are examined only if they are installed; the check `optional` reports missing ones.
    """
    needed = of_extra("")
    needed += [one for extra in EXTRAS for one in of_extra(extra) if installed_version(one.name) is not None]
    tested = versions_tested()
    here = {one.name: installed_version(one.name) for one in needed}
    pinned = {name: tested.get(name) for name in here}
    facts = {"graftwork": __version__, "python": platform.python_version(), "installed": here, "tested": pinned}
    wrong = [one for one in needed if not _fits(one, here[one.name])]
    other = [name for name, version in here.items() if version and pinned[name] not in (None, version)]
    same = (
        f"{sum(version == pinned[name] for name, version in here.items())} of {len(here)} libraries are the tested ones"
    )
    known = same if tested and here else "the tested versions are not known here"
    yield Finding(f"graftwork {__version__}, Python {platform.python_version()}; {known}", facts=facts)
    for one in wrong:
        why = f"{one.name}{one.specifier} is needed"
        has = f"{one.name} is missing" if here[one.name] is None else f"{one.name} {here[one.name]}"
        yield Finding(has, "fails", why, f"pip install '{one.name}{one.specifier}'")
    if other:
        why = "last bits may differ from those of the tested versions; finished runs keep their ids and are found"
        listed = ", ".join(f"{name} {here[name]} (tested: {pinned[name]})" for name in other)
        yield Finding(listed, "note", why, f"pip install {' '.join(f'{name}=={pinned[name]}' for name in other)}")


def _fits(needed: Requirement, version: str | None) -> bool:
    return version is not None and needed.specifier.contains(version, prereleases=True)


checks.register("versions")(Check("software", look))
