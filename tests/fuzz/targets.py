"""What is fuzzed: for each kind of file how a valid one is written, and how it is used.

A further kind is one entry in `TARGETS`.
"""

import gzip
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import feather
from pyarrow import parquet as pq
from scipy import sparse

from sketchmeans import NystromKMeans, TableClusterer, open_rows
from sketchmeans.data.sources import column_types, open_records
from tests.fuzz.mutations import mutate, mutate_inside_archive

RNG = np.random.default_rng(0)
ROWS = np.round(RNG.normal(size=(30, 3)) + np.repeat([[0.0], [9.0]], 15, axis=0), 2)
TABLE = pa.table({name: ROWS[:, j] for j, name in enumerate("abc")})
TABLE = TABLE.append_column("d", pa.array([True, False] * 15))
TABLE = TABLE.append_column("e", pa.array(["one", "two", "three"] * 10))
MATRIX = sparse.csr_array(np.where(ROWS > 0.0, ROWS, 0.0))


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Attributes
    ----------
    suffix : str
    write : callable
        Writes a small valid file to a path.
    use : callable
        Reads a file, and does with it what users do.
    mutate : callable
        Returns damaged bytes, given bytes and a Generator.
    """

    suffix: str
    write: Callable[[Path], object]
    use: Callable[[Path], object]
    mutate: Callable[..., bytes] = mutate


def fit(path):
    """Read a file of rows in every way, and cluster it."""
    source = open_rows(path, missing="nan")
    n, d = source.shape
    if n * d < 10**6:
        source.read(0, n)
        source.take(np.array([n - 1, 0]))
    source.release()
    model = NystromKMeans(
        2,
        n_landmarks=4,
        n_init=1,
        max_iter=2,
        max_memory="100MB",
        n_jobs=1,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(source)


def fit_table(path):
    """Read the numbers of a table that has text, too; set a column aside."""
    types = column_types(path)
    if types is None:
        fit(path)
        return
    words = [name for name, kind in types.items() if kind is not None]
    numbers = [name for name, kind in types.items() if kind is None]
    label = words[0] if words else None
    source = open_rows(path, numbers or None, label_column=label, missing="nan")
    if label is not None:
        source.labels()
    model = TableClusterer(
        NystromKMeans(2, n_landmarks=4, n_init=1, max_iter=2, n_jobs=1, random_state=0),
        exclude=words,
        missing="drop",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(path)


def write_csv(path):
    lines = ["a,b,c,d,e"]
    for row, truth, word in zip(ROWS.tolist(), TABLE["d"], TABLE["e"], strict=True):
        lines.append(",".join([*map(str, row), str(truth), f'"{word}\n""x"""']))
    path.write_text("\n".join(lines) + "\n")


def write_messy_csv(path):
    """Write what people export: titles, decimal commas, money, Latin letters."""
    lines = ["Bericht über alles", "", "größe;betrag;c;wort"]
    for (a, b, c), word in zip(ROWS.tolist(), TABLE["e"], strict=True):
        cells = [f"{a:.2f}".replace(".", ","), f"{b:.1f} €".replace(".", ","), c, word]
        lines.append(";".join(map(str, cells)))
    path.write_bytes("\n".join(lines).replace("€", "EUR").encode("cp1252"))


def write_packed_csv(path):
    plain = path.with_suffix(".plain")
    write_csv(plain)
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))


def write_utf16(path):
    plain = path.with_suffix(".plain")
    write_csv(plain)
    path.write_text(plain.read_text(), encoding="utf-16")


def write_sheet(path):
    TABLE.to_pandas().to_excel(str(path), index=False)


def use_records(path):
    """Read all columns with their types, and cluster the numbers."""
    records = open_records(path)
    records.read(0, len(records))
    records.take([len(records) - 1, 0])
    fit_table(path)


def write_arrow(path):
    with pa.ipc.new_file(path, TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=12)


def write_svmlight(path):
    rows = [
        " ".join(f"{j + 1}:{value}" for j, value in enumerate(row) if value)
        for row in MATRIX.toarray().tolist()
    ]
    path.write_text("# rows\n" + "".join(f"1 {row} # x\n" for row in rows))


TARGETS = {
    "npy": Target("npy", lambda path: np.save(path, ROWS), fit),
    "npy in Fortran order": Target(
        "npy", lambda path: np.save(path, np.asfortranarray(ROWS)), fit
    ),
    "npz": Target(
        "npz", lambda path: np.savez(path, X=ROWS), fit, mutate_inside_archive
    ),
    "packed npz": Target(
        "npz",
        lambda path: np.savez_compressed(path, X=ROWS, y=ROWS[:, 0]),
        fit,
        mutate_inside_archive,
    ),
    "CSR": Target(
        "npz",
        lambda path: sparse.save_npz(path, MATRIX, compressed=False),
        fit,
        mutate_inside_archive,
    ),
    "packed CSR": Target(
        "npz", lambda path: sparse.save_npz(path, MATRIX), fit, mutate_inside_archive
    ),
    "Parquet": Target(
        "parquet",
        lambda path: pq.write_table(TABLE, path, row_group_size=14),
        fit_table,
    ),
    "plain Parquet": Target(
        "parquet",
        lambda path: pq.write_table(
            TABLE, path, compression="none", use_dictionary=False
        ),
        fit_table,
    ),
    "Arrow": Target("arrow", write_arrow, fit_table),
    "packed Feather": Target(
        "feather",
        lambda path: feather.write_feather(TABLE, str(path), compression="lz4"),
        fit_table,
    ),
    "CSV": Target("csv", write_csv, fit_table),
    "CSV without names": Target(
        "csv", lambda path: np.savetxt(path, ROWS, delimiter=","), fit_table
    ),
    "messy CSV": Target("csv", write_messy_csv, use_records),
    "packed CSV": Target("csv.gz", write_packed_csv, use_records),
    "CSV in UTF-16": Target("csv", write_utf16, use_records),
    "Excel": Target("xlsx", write_sheet, use_records, mutate_inside_archive),
    "OpenDocument": Target("ods", write_sheet, use_records, mutate_inside_archive),
    "svmlight": Target("svmlight", write_svmlight, fit),
}
