"""What a model file may say of the columns of a table."""

from __future__ import annotations

from sketchmeans.data.preparation import (
    LEFT_OUT_KINDS,
    USED_KINDS,
    BooleanEncoder,
    CategoryEncoder,
    ColumnPlan,
    DateEncoder,
    NumberEncoder,
    OrdinalEncoder,
)
from sketchmeans.data.preparation.encoders import CYCLES
from sketchmeans.data.preparation.quantities import CLOCK
from sketchmeans.data.preparation.values import DATE_FORMATS
from sketchmeans.persistence.kinds import (
    POSITIVE,
    REAL,
    Many,
    Record,
    Tensor,
    nullable,
    text,
)

_SENTINELS = Many(REAL)
_NUMBER = Record(
    "NumberEncoder",
    NumberEncoder,
    {
        "unit": nullable(POSITIVE),
        "shift": REAL,
        "sentinels": _SENTINELS,
        "missing_words": Many(text()),
        "decimal": nullable(text(".", ",", CLOCK)),
        "suffix": text(),
        "day_start": REAL,
    },
)
_BOOLEAN = Record("BooleanEncoder", BooleanEncoder, {"words": Many(text(), 2)})
_CATEGORY = Record(
    "CategoryEncoder",
    CategoryEncoder,
    {"levels": Many(text()), "shares": Tensor((None,))},
)
_ORDINAL = Record(
    "OrdinalEncoder",
    OrdinalEncoder,
    {"levels": Many(text()), "missing_words": Many(text())},
)
_DATE = Record(
    "DateEncoder",
    DateEncoder,
    {
        "reference": REAL,
        "cycles": Many(text(*CYCLES)),
        "written": nullable(text(*DATE_FORMATS)),
        "sentinels": _SENTINELS,
    },
)
PLAN = Record(
    "ColumnPlan",
    ColumnPlan,
    {
        "name": text(),
        "kind": text(*USED_KINDS, *LEFT_OUT_KINDS),
        "reason": text(),
        "encoder": nullable(_NUMBER, _BOOLEAN, _CATEGORY, _ORDINAL, _DATE),
    },
)

#: All of them.
PLAN_RECORDS = (_BOOLEAN, _CATEGORY, _DATE, _NUMBER, _ORDINAL, PLAN)
