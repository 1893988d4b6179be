"""Optional libraries: those missing, and the features that they add."""

from __future__ import annotations

from collections.abc import Iterator

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.doctor.tested import EXTRAS, installed_version, of_extra
from graftwork.registry import checks


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report each extra with missing libraries: the libraries, the feature and the command that installs them."""
    lacking = {extra: [one.name for one in of_extra(extra) if installed_version(one.name) is None] for extra in EXTRAS}
    missing = {extra: names for extra, names in lacking.items() if names}
    facts = {"missing": missing}
    if not missing:
        yield Finding("all are installed", facts=facts)
    for extra, names in missing.items():
        says = f"no {', '.join(names)}: {EXTRAS[extra]} (pip install 'graftwork[{extra}]')"
        yield Finding(says, facts=facts)


checks.register("optional")(Check("software", look))
