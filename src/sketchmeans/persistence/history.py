"""How model files of earlier versions are read: what has been renamed since.

A parameter that a file does not have takes the default of its class, so a new parameter
needs no line here, if the default is what older models did.  Everything else that has
changed is a `Change`, and stays in `HISTORY` for as long as such files are read.
``docs/model-files.md`` says what to do when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any
Version = tuple[int, int]

#: The version that is written.  The first number is raised when older readers would
#: misunderstand a file, the second one with each release that adds or renames anything.
VERSION: Version = (1, 2)


@dataclass(frozen=True)
class Change:
    """What became of parameters and fitted attributes of one class.

    Attributes
    ----------
    version : tuple of int
        The first version with the change; files before it are brought up to date.
    cls : str
        The name of the class.
    renamed : mapping of str to str
        New names by old ones.
    removed : frozenset of str
        Names that are gone, and that no prediction depends on.
    older : mapping of str to JSON
        The values that older files stand for where they say nothing, if these are not
        the defaults; and values of fitted attributes that older files lack.
    reworded : mapping of str to mapping
        New values by old ones, of a parameter that is a word.
    """

    version: Version
    cls: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    older: Mapping[str, Json] = field(default_factory=dict)
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
            if not _is_fitted_name(name):
                params.setdefault(name, value)
            elif fitted is not None:
                fitted.setdefault(name, value)


def _is_fitted_name(name: str) -> bool:
    return name.startswith("_") or name.endswith("_")


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
)


def upgraded(
    name: str,
    params: Mapping[str, Json],
    fitted: Mapping[str, Json] | None,
    version: Version,
    history: Sequence[Change] | None = None,
) -> tuple[dict[str, Json], dict[str, Json] | None]:
    """Return parameters and fitted attributes of an object in today's names.

    Examples
    --------
    >>> change = Change((1, 2), "Uniform", renamed={"repeat": "replace"})
    >>> upgraded("Uniform", {"repeat": True}, None, (1, 1), [change])
    ({'replace': True}, None)
    """
    new_params = dict(params)
    new_fitted = None if fitted is None else dict(fitted)
    for change in HISTORY if history is None else history:
        if change.cls == name and version < change.version:
            change.apply(new_params, new_fitted)
    return new_params, new_fitted


def version_text(version: Version) -> str:
    """Return a version as it is written."""
    return f"{version[0]}.{version[1]}"
