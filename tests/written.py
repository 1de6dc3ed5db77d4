"""The same rows in files of every kind."""

from importlib import import_module

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather
from pyarrow import parquet as pq
from scipy import sparse

# Several blocks, and enough rows for subsamples; every third value is zero.
N_ROWS, N_FEATURES = 9_000, 6
RNG = np.random.default_rng(0)
CENTRES = RNG.normal(scale=4.0, size=(4, N_FEATURES))
TRUTH = RNG.integers(4, size=N_ROWS)
X = CENTRES[TRUTH] + RNG.normal(size=(N_ROWS, N_FEATURES))
X[RNG.random(X.shape) < 0.3] = 0.0
NAMES = [f"feature {j}" for j in range(N_FEATURES)]
WEIGHTS = RNG.integers(0, 4, N_ROWS)


def as_table(rows):
    return pa.table({name: rows[:, j] for j, name in enumerate(NAMES)})


def write_npy(folder, rows):
    np.save(folder / "rows.npy", rows)
    return folder / "rows.npy"


def write_npy_fortran(folder, rows):
    return write_npy(folder, np.asfortranarray(rows))


def write_npy_folder(folder, rows):
    # Edges inside blocks, a file of one row, and files that are none of ours.
    for i, part in enumerate(np.split(rows, [1, 2_500, 2_600, 7_001])):
        np.save(folder / f"part-{i}.npy", part)
    (folder / "README.txt").write_text("no rows")
    (folder / "_SUCCESS").write_text("")
    return folder


def write_npy_pattern(folder, rows):
    np.save(folder / "other.npy", rows[:1, :2])
    return write_npy_folder(folder, rows) / "part-?.npy"


def write_npy_mixed_orders(folder, rows):
    np.save(folder / "a.npy", np.asfortranarray(rows[:3_000]))
    np.save(folder / "b.npy", rows[3_000:])
    return folder


def write_npz(folder, rows):
    np.savez(folder / "rows.npz", y=TRUTH, X=rows, other=rows[:5])
    return folder / "rows.npz"


def write_npz_only_table(folder, rows):
    np.savez(folder / "rows.npz", y=TRUTH, values=rows)
    return folder / "rows.npz"


def write_npz_packed(folder, rows):
    np.savez_compressed(folder / "rows.npz", X=rows)
    return folder / "rows.npz"


def write_npz_packed_fortran(folder, rows):
    return write_npz_packed(folder, np.asfortranarray(rows))


def write_parquet(folder, rows):
    pq.write_table(as_table(rows), folder / "rows.parquet", row_group_size=2_222)
    return folder / "rows.parquet"


def write_parquet_one_group(folder, rows):
    pq.write_table(as_table(rows), folder / "rows.pq", compression="zstd")
    return folder / "rows.pq"


def write_parquet_folder(folder, rows):
    for i, part in enumerate(np.split(rows, [2_500, 2_600, 2_600, 7_001])):
        pq.write_table(as_table(part), folder / f"part-{i}.parquet", row_group_size=999)
    return folder


def write_arrow(folder, rows):
    with pa.ipc.new_file(folder / "rows.arrow", as_table(rows).schema) as file:
        file.write_table(as_table(rows), max_chunksize=1_234)
    return folder / "rows.arrow"


def write_feather_packed(folder, rows):
    path = str(folder / "rows.feather")
    feather.write_feather(as_table(rows), path, compression="lz4", chunksize=1_234)
    return path


def delimited(path, rows, delimiter=",", header=True, end="\n"):
    with open(path, "w", newline="") as file:
        if header:
            file.write(delimiter.join(f'"{name}"' for name in NAMES) + end)
        for row in rows.tolist():
            file.write(delimiter.join(map(repr, row)) + end)
    return path


def write_csv(folder, rows):
    return delimited(folder / "rows.csv", rows)


def write_csv_without_header(folder, rows):
    return delimited(folder / "rows.csv", rows, header=False, end="\r\n")


def write_tsv(folder, rows):
    return delimited(folder / "rows.tsv", rows, "\t")


TYPED = [
    write_npy,
    write_npy_fortran,
    write_npy_folder,
    write_npy_pattern,
    write_npy_mixed_orders,
    write_npz,
    write_npz_only_table,
    write_npz_packed,
    write_npz_packed_fortran,
    write_parquet,
    write_parquet_one_group,
    write_parquet_folder,
    write_arrow,
    write_feather_packed,
]
TEXT = [write_csv, write_csv_without_header, write_tsv]
NAMED = {
    write_parquet,
    write_parquet_one_group,
    write_parquet_folder,
    write_arrow,
    write_feather_packed,
}
NAMED |= {write_csv, write_tsv}


def write_csr(folder, rows):
    sparse.save_npz(folder / "rows.npz", rows, compressed=False)
    return folder / "rows.npz"


def write_csr_packed(folder, rows):
    sparse.save_npz(folder / "rows.npz", rows)
    return folder / "rows.npz"


def write_csr_folder(folder, rows):
    for i, (start, stop) in enumerate([(0, 10), (10, 5_000), (5_000, N_ROWS)]):
        sparse.save_npz(folder / f"{i}.npz", rows[start:stop], compressed=False)
    return folder


def svmlight(path, rows, base=1):
    with open(path, "w") as file:
        file.write("# a comment\n\n")
        for i in range(rows.shape[0]):
            span = slice(rows.indptr[i], rows.indptr[i + 1])
            numbers = (rows.indices[span] + base).tolist()
            entries = zip(numbers, rows.data[span].tolist(), strict=True)
            values = " ".join(f"{j}:{value!r}" for j, value in entries)
            file.write(f"{TRUTH[i]} {values} # row {i}\n")
    return path


def write_svmlight_from_one(folder, rows):
    return svmlight(folder / "rows.svmlight", rows)


def write_svmlight_from_zero(folder, rows):
    return svmlight(folder / "rows.svm", rows, base=0)


def write_svmlight_folder(folder, rows):
    svmlight(folder / "a.libsvm", rows[:4_000])
    (folder / "b.libsvm").write_text("# no rows\n")
    svmlight(folder / "c.libsvm", rows[4_000:])
    return folder


SPARSE = [write_csr, write_csr_packed, write_csr_folder]
SPARSE += [write_svmlight_from_one, write_svmlight_from_zero, write_svmlight_folder]


def write_people(folder, **columns):
    given = {"age": [20.5, 30, 40, 50], "height": [1, 2, 3, 4], "name": list("abba")}
    table = pa.table(given | columns)
    pq.write_table(table, folder / "people.parquet")
    feather.write_feather(table, str(folder / "people.feather"))
    csv.write_csv(table, folder / "people.csv")
    kinds = ("parquet", "feather", "csv")
    return [folder / f"people.{kind}" for kind in kinds]


def stream_small_files(monkeypatch):
    """Have small files read like large ones, in many batches."""
    monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", 0)
    places = ("base", "npz", "csr", "parquet")
    for place in places:  # all, before one of them copies a changed number
        import_module(f"sketchmeans.data.sources.{place}")
    for place in places:
        monkeypatch.setattr(f"sketchmeans.data.sources.{place}.BATCH_BYTES", 20_000)
    monkeypatch.setattr("sketchmeans.data.sources.csr.RUN_BYTES", 20_000)
    monkeypatch.setattr("sketchmeans.data.sources.files.PIECE_BYTES", 30_000)
