"""What becomes of a column, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from sketchmeans.data.preparation.encoders import Encoder

#: The kinds that a user may give a column.
USED_KINDS = ("numeric", "boolean", "category", "ordinal", "date")
#: Those that are left out; too many levels leave out a category as well.
LEFT_OUT_KINDS = (
    "text",
    "identifier",
    "code",
    "constant",
    "duplicate",
    "empty",
    "other",
)

#: How the reason of a column that is left out ends.
LEFT_OUT = ": left out"


@dataclass(frozen=True)
class ColumnPlan:
    """What a column is, why, and how it is used: its encoder, None to leave it out.

    Attributes
    ----------
    name : str
    kind : str
        numeric, boolean, category, ordinal, date; text, identifier, code, constant,
        duplicate, empty or other, which are left out.
    reason : str
        Why, and what is done, in a line.
    encoder : Encoder or None
    weight : float
        Of the column in a fit, beside 1; less for one that depends on no other.
    """

    name: str
    kind: str
    reason: str
    encoder: Encoder | None = None
    weight: float = field(default=1.0, compare=False)

    @property
    def is_used(self) -> bool:
        """Whether clusters depend on the column."""
        return self.encoder is not None


@dataclass(frozen=True)
class Rules:
    """How columns are planned: the scale, and whether gaps get a level of their own.

    `n_rows` is the number of rows of the table, of which a sample is read.
    """

    n_rows: int
    scale: str = "auto"
    keeps_gaps: bool = True


def leave_out(name: str, kind: str, reason: str) -> ColumnPlan:
    """Return the plan of a column that is not used."""
    return ColumnPlan(name, kind, f"{reason}{LEFT_OUT}")
