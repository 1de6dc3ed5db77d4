"""Columns of any kind as rows of numbers, encoded as they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchmeans.data.preparation.column_plan import ColumnPlan
from sketchmeans.data.preparation.encoders import NumberEncoder, OtherKindError
from sketchmeans.data.preparation.plan import layout_of, used
from sketchmeans.data.preparation.tables import Table
from sketchmeans.data.rows import float_type
from sketchmeans.data.sources.base import Block, Source
from sketchmeans.data.sources.derived import WrappedSource
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import warn_user

#: Bytes that a value of a record takes while it is encoded, and rows that are encoded
#: together of many that are taken.
_VALUE_BYTES, _TAKEN = 64, 4096


def open_encoded(
    table: Table, plans: Sequence[ColumnPlan], names: Sequence[str] | None = None
) -> Source:
    """Return the rows of a table in the features of a plan, with NaN for gaps.

    `names` are what the table calls the used columns, if not what the plan does.
    Columns that are numbers already are read as such, in their own type.
    """
    plans = used(plans)
    names = [plan.name for plan in plans] if names is None else list(names)
    types = table.types or {}
    encoders = [plan.encoder for plan in plans]
    numbers = [encoder for encoder in encoders if isinstance(encoder, NumberEncoder)]
    if len(numbers) == len(plans) and all(types[name] is None for name in names):
        source = table.open(names)
        if all(encoder == NumberEncoder() for encoder in numbers):
            return source
        return _EncodedNumbers(source, numbers)
    return EncodedSource(table, plans, names)


def warn_of_unseen(source: Source) -> None:
    """Warn of values that were read, and that are not levels of the fit."""
    counts = source.unseen() if isinstance(source, EncodedSource) else {}
    for name, count in counts.items():
        if count:
            what = "value" if count == 1 else "values"
            verb = "is" if count == 1 else "are"
            warn_user(
                f"{source.path} has {count:,} {what} in column {name!r} that {verb} no "
                "level of the fit: counted with the rare levels, or as average."
            )


class _EncodedNumbers(WrappedSource):
    """Columns of numbers, some of them on a logarithmic scale or with codes."""

    def __init__(self, inner: Source, encoders: Sequence[NumberEncoder]) -> None:
        super().__init__(inner)
        self._encoders = [
            (j, encoder)
            for j, encoder in enumerate(encoders)
            if encoder != NumberEncoder()
        ]
        self.dtype = float_type(inner.dtype)
        self.thread_memory += 4096 * inner.shape[1] * inner.dtype.itemsize

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        out = self._new_block(stop - start) if out is None else out
        out[...] = self.inner.read(start, stop)
        return self._encode(out)

    def take(self, indices: Array) -> Block:
        return self._encode(np.array(self.inner.take(indices), self.dtype))

    def _encode(self, block: Array) -> Array:
        for j, encoder in self._encoders:
            values = block[:, j].astype(np.float64)
            encoder.encode_numbers(values)
            block[:, j] = values
        return block


class EncodedSource(Source):
    """Records of a table, each column encoded by what was learned of it."""

    def __init__(
        self, table: Table, plans: Sequence[ColumnPlan], names: Sequence[str]
    ) -> None:
        self.path = table.path
        self._records = table.records(names)
        layout = layout_of(plans)
        self.feature_names = layout.names
        #: The column of each feature, for messages.
        self.column_names = tuple(plans[i].name for i in layout.column)
        self._columns = [
            (name, plan, span)
            for name, plan, span in zip(names, plans, layout.slices(), strict=True)
        ]
        self.shape = (len(self._records), len(layout.names))
        self.dtype = np.dtype(np.float64)
        self.memory = self._records.memory
        self.thread_memory = 4096 * _VALUE_BYTES * len(plans)
        self._unseen: dict[str, Array] = {}

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        out = self._new_block(stop - start) if out is None else out
        self._encode(self._records.read(start, stop), out, slice(start, stop))
        return out

    def take(self, indices: Array) -> Block:
        out = self._new_block(len(indices))
        order = np.argsort(indices, kind="stable")  # each batch is decoded once
        for start in range(0, len(order), _TAKEN):
            places = order[start : start + _TAKEN]
            block = self._new_block(len(places))
            self._encode(self._records.take(indices[places]), block, indices[places])
            out[places] = block
        return out

    def _encode(self, records: Any, out: Array, rows: slice | Array) -> None:
        for name, plan, span in self._columns:
            assert plan.encoder is not None
            try:
                new = plan.encoder.encode(records.column(name), out[:, span])
            except OtherKindError as error:
                row = int(np.arange(len(self))[rows][error.row])
                raise ValueError(
                    f"{self.path} has another kind of value in row {row}, column "
                    f"{name!r}: {error}. Correct it, or leave out the column with "
                    "exclude=."
                ) from error
            if new is not None and (new.any() or plan.name in self._unseen):
                mask = self._unseen.setdefault(plan.name, np.zeros(len(self), bool))
                mask[rows] = new

    def unseen(self) -> dict[str, int]:
        """Return how many of the values read so far are not known levels, by column."""
        return {name: int(mask.sum()) for name, mask in self._unseen.items()}

    def locate(self, row: int) -> tuple[str, int]:
        locate = getattr(self._records, "locate", None)
        return (self.path, row) if locate is None else locate(row)

    def release(self) -> None:
        release = getattr(self._records, "release", None)
        if release is not None:
            release()
