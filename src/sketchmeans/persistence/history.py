"""Versions of the model format, and what has been renamed since older ones.

A parameter that a file does not have takes the default of its class, so a new parameter
needs no line here if older models did what the default does.  Every other change is a
`Change` in `HISTORY`, for as long as such files are read.  ``docs/model-files.md`` says
what to do when.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any
Version = tuple[int, int]

#: The version that is written.  The first number is raised when older readers would
#: misunderstand a file, the second one with each release that adds or renames anything.
VERSION: Version = (1, 2)

#: "1" of the first release is 1.0.
_VERSION_TEXT = re.compile(r"(0|[1-9][0-9]{0,8})(?:\.(0|[1-9][0-9]{0,8}))?")


def format_version(version: Version = VERSION) -> str:
    """Return a version as it is written."""
    return f"{version[0]}.{version[1]}"


def parse_version(text: Any) -> Version:
    """Return the version of a file, if this library can read it."""
    found = _VERSION_TEXT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"its version {text!r:.40} should be two numbers, as in 1.1")
    version = int(found[1]), int(found[2] or 0)
    if version[0] > VERSION[0]:
        raise ValueError(
            f"it was written by a newer sketchmeans, in format {text}; this one "
            f"reads formats up to {format_version()}. Upgrade sketchmeans"
        )
    if version[0] < 1:
        raise ValueError(f"its version {text} should be at least 1")
    return version


@dataclass(frozen=True)
class Change:
    """What became of the parameters and fitted attributes of one class or record."""

    #: The first version with the change; files before it are brought up to date.
    version: Version
    cls: str
    #: New names by old ones.
    renamed: Mapping[str, str] = field(default_factory=dict)
    #: Names that are gone, and that no prediction depends on.
    removed: frozenset[str] = frozenset()
    #: What older files stand for where they say nothing, if not the defaults; and
    #: values of fitted attributes that they lack.
    older: Mapping[str, Json] = field(default_factory=dict)
    #: New values by old ones, of a parameter that is a word.
    reworded: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def apply(self, params: dict[str, Json], fitted: dict[str, Json] | None) -> None:
        """Bring the names and values of an older file up to date, in place."""
        for values in (params, {} if fitted is None else fitted):
            for name in self.removed:
                values.pop(name, None)
            for old, new in self.renamed.items():
                if old in values:
                    values[new] = values.pop(old)
        for name, words in self.reworded.items():
            if isinstance(params.get(name), str):
                params[name] = words.get(params[name], params[name])
        for name, value in self.older.items():
            is_fitted = name.startswith("_") or name.endswith("_")
            if not is_fitted:
                params.setdefault(name, value)
            elif fitted is not None:
                fitted.setdefault(name, value)


#: In the order of versions.
HISTORY: Sequence[Change] = (
    Change(
        (1, 2),
        "Nystrom",
        renamed={
            "components_": "_root",
            "landmarks_": "components_",
            "landmark_indices_": "component_indices_",
        },
    ),
    Change((1, 2), "SketchedKMeans", renamed={"polish": "refine_max_iter"}),
    # Tables were standardised as they were, whatever their columns held.
    Change(
        (1, 2),
        "TableClusterer",
        older={"scale": "standard", "missing": "error", "plan_": [], "n_filled_": 0},
    ),
)


def upgrade(
    name: str,
    params: Mapping[str, Json],
    fitted: Mapping[str, Json] | None,
    version: Version,
    history: Sequence[Change] | None = None,
) -> tuple[dict[str, Json], dict[str, Json] | None]:
    """Return parameters and fitted attributes of an object under their current names.

    Examples
    --------
    >>> change = Change((1, 2), "Uniform", renamed={"repeat": "replace"})
    >>> upgrade("Uniform", {"repeat": True}, None, (1, 1), [change])
    ({'replace': True}, None)
    """
    new_params = dict(params)
    new_fitted = None if fitted is None else dict(fitted)
    for change in HISTORY if history is None else history:
        if change.cls == name and version < change.version:
            change.apply(new_params, new_fitted)
    return new_params, new_fitted
