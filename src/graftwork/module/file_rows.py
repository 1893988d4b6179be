"""The unlabelled rows of a file, by the columns that a module was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.core.media import MEDIA
from graftwork.data.readers.choice_tables import JOINED
from graftwork.data.readers.label_columns import APART
from graftwork.data.readers.table import open_table
from graftwork.module.input_format import Rows
from graftwork.module.inputs import OF_ROLES
from graftwork.module.task_module import TaskModule


def rows_for(module: TaskModule, source: Path, columns: Mapping[str, str]) -> Rows:
    """Return a reader of the rows of `source`.

    Its columns are `columns` (role -> column), else those of the module's training file if `source` has them, else
    those called like the module's roles. Raises as `Form.rows`.
    """
    named = columns or _known_columns(module, source)
    return OF_ROLES[module.roles].rows(source, module.task, named)


def _known_columns(module: TaskModule, source: Path) -> dict[str, str]:
    roles = [role for role in ("text", "text_a", "text_b", *MEDIA) if isinstance(module.read_by.get(role), str)]
    if not roles or {"question", "choices"} & set(module.roles):  # their readers know other layouts
        return {}
    return columns_of_training(roles, module.read_by, open_table(source, spans="words" in module.roles).header)


def columns_of_training(roles: Sequence[str], told: Mapping[str, Any], header: Sequence[str]) -> dict[str, Any]:
    """Return the training file's column names of these roles, from `read_by`; empty if a file lacks one of them."""
    names = [name for role in roles for name in ([told[role]] if isinstance(told[role], str) else told[role])]
    apart = APART if roles == ["label"] else JOINED
    parts = [part for name in names for part in ([name] if name in header else name.split(apart))]
    return {role: told[role] for role in roles} if set(parts) <= set(header) else {}
