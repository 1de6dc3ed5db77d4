"""Files that declare what they do not hold: refused before anything is believed."""

import io
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq
from scipy import sparse

from sketchmeans import NystromKMeans, open_rows
from tests.written import stream_small_files

MATRIX = sparse.csr_array(
    np.where(np.random.default_rng(0).random((300, 7)) < 0.4, 1.5, 0.0)
)


@pytest.fixture(autouse=True)
def _streamed(monkeypatch):
    stream_small_files(monkeypatch)


def csr_parts(matrix=MATRIX, **changed):
    parts = {
        "data": matrix.data.copy(),
        "indices": matrix.indices.copy(),
        "indptr": matrix.indptr.copy(),
        "shape": np.array(matrix.shape),
        "format": np.array("csr"),
    }
    return parts | changed


def saved(path, parts, packed):
    (np.savez_compressed if packed else np.savez)(path, **parts)
    return path


def changed_at(array, place, value):
    array = array.copy()
    array[place] = value
    return array


INDICES, INDPTR, DATA = MATRIX.indices, MATRIX.indptr, MATRIX.data
WRONG_CSR = {
    "column too high": ({"indices": changed_at(INDICES, 50, 7)}, "in column 7"),
    "column far too high": ({"indices": changed_at(INDICES, 50, 2**30)}, "in column"),
    "negative column": ({"indices": changed_at(INDICES, 50, -1)}, "in column -1"),
    "falling": ({"indptr": changed_at(INDPTR, 100, 2**30)}, "fall at row 100"),
    "negative pointer": ({"indptr": changed_at(INDPTR, 100, -5)}, "fall at row 99"),
    "first pointer": ({"indptr": changed_at(INDPTR, 0, 1)}, "start at 1"),
    "last pointer": ({"indptr": changed_at(INDPTR, 300, len(DATA) + 1)}, "end at"),
    "few pointers": ({"indptr": INDPTR[:-1]}, "not a CSR matrix of 300 rows"),
    "few columns": ({"indices": INDICES[:-1]}, "not a CSR matrix of 300 rows"),
    "two dimensions": ({"data": DATA[None]}, "not a CSR matrix of 300 rows"),
    "fractions": ({"indices": INDICES.astype(float)}, "should hold whole numbers"),
    "negative shape": ({"shape": np.array([-1, 7])}, "its shape is"),
    "three sizes": ({"shape": np.array([300, 7, 1])}, "its shape is"),
    "words": ({"data": DATA.astype(str)}, "should be real numbers"),
    "format": ({"format": np.array("coo")}, "should be 'csr'"),
}


@pytest.mark.parametrize("packed", [False, True])
def test_a_csr_matrix_is_checked_before_use(packed, tmp_path):
    for changes, text in WRONG_CSR.values():
        path = saved(tmp_path / "rows.npz", csr_parts(**changes), packed)
        with pytest.raises(ValueError, match=text) as caught:
            open_rows(path).read(0, 300)
        assert str(path) in str(caught.value)


@settings(max_examples=40, deadline=None)
@given(
    heights=st.lists(st.integers(0, 7), min_size=1, max_size=60),
    packed=st.booleans(),
    kinds=st.sampled_from(["i4", "i8", "u2", ">i4"]),
    batch_bytes=st.sampled_from([1, 100, 700, 10**6]),
    data=st.data(),
)
def test_csr_rows_are_those_of_the_matrix(
    tmp_path_factory, heights, packed, kinds, batch_bytes, data
):
    # Rows of any length, some of them empty, in batches of any size.
    matrix = sparse.csr_array(
        (
            np.arange(1.0, sum(heights) + 1.0),
            np.concatenate([np.arange(h)[::-1] for h in heights]).astype(np.int32),
            np.cumsum([0, *heights]),
        ),
        shape=(len(heights), 7),
    )
    parts = csr_parts(matrix)
    parts["indices"] = parts["indices"].astype(kinds)
    parts["indptr"] = parts["indptr"].astype(kinds)
    path = saved(tmp_path_factory.mktemp("csr") / "rows.npz", parts, packed)
    n = len(heights)
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sketchmeans.data.sources.csr.BATCH_BYTES", batch_bytes)
        patch.setattr("sketchmeans.data.sources.csr.RUN_BYTES", batch_bytes)
        patch.setattr("sketchmeans.data.sources.npz.RUN_BYTES", max(batch_bytes, 8))
        source = open_rows(path)
        assert source.nnz == matrix.nnz
        np.testing.assert_array_equal(source.read(0, n).toarray(), matrix.toarray())
        start = data.draw(st.integers(0, n - 1))
        np.testing.assert_array_equal(
            source.read(start, n).toarray(), matrix[start:].toarray()
        )
        np.testing.assert_array_equal(
            source.take(np.array(rows)).toarray(), matrix[rows].toarray()
        )


def test_a_csr_matrix_with_repeated_columns_is_their_sum(tmp_path):
    parts = csr_parts(
        data=np.repeat(DATA, 2) * np.tile([3.0, -2.0], len(DATA)),
        indices=np.repeat(INDICES, 2),
        indptr=2 * INDPTR,
    )
    path = saved(tmp_path / "rows.npz", parts, packed=False)
    model = NystromKMeans(2, random_state=0).fit(path)
    expected = NystromKMeans(2, random_state=0).fit(MATRIX)
    assert model.cost_ == pytest.approx(expected.cost_, rel=1e-12)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def npy_bytes(shape, descr="<f8", order=False):
    header = io.BytesIO()
    about = {"descr": descr, "fortran_order": order, "shape": shape}
    np.lib.format.write_array_header_1_0(header, about)
    return header.getvalue() + bytes(64)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((2**62, 4), "needs 147,573,952,589,676,413,056 bytes, the file has 192"),
        ((10**30, 4), "the file has 192"),
        ((-5, 4), "no size should be negative"),
        ((-5, -4), "no size should be negative"),
        ((2**64, 0), "rows"),
    ],
)
def test_absurd_shapes_are_refused_at_once(shape, text, tmp_path):
    path, packed = tmp_path / "rows.npy", tmp_path / "rows.npz"
    path.write_bytes(npy_bytes(shape))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy_bytes(shape))
    with pytest.raises(ValueError, match=text):
        open_rows(path).read(0, 1)
    with pytest.raises(ValueError, match=text.replace("the file", "its member 'X'")):
        open_rows(packed).read(0, 1)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', [1]: 2}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4",
        b"(" * 9_000,
        b"{'descr': '|O', 'fortran_order': False, 'shape': (3, 4)}",
        b"{'descr': 'V0', 'fortran_order': False, 'shape': (3, 4)}",
        b"{'descr': ('<f8', (2, 2)), 'fortran_order': False, 'shape': (3, 4)}",
    ],
)
def test_headers_that_are_none(header, tmp_path):
    path = tmp_path / "rows.npy"
    start = np.lib.format.magic(1, 0) + len(header).to_bytes(2, "little")
    path.write_bytes(start + header + bytes(300))
    with pytest.raises(ValueError, match=r"rows\.npy"):
        open_rows(path)
    # 4 GB of header, of which NumPy would read what is there.
    start = np.lib.format.magic(2, 0) + (2**32 - 1).to_bytes(4, "little")
    path.write_bytes(start + header + bytes(300))
    with pytest.raises(ValueError, match="its header has 4,294,967,295 bytes"):
        open_rows(path)


def test_a_member_cannot_be_larger_than_deflate_packs(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, X=np.zeros((1_000, 8)))
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")  # the directory; the size is at byte 24
    data[entry + 24 : entry + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ValueError, match="declares 2,147,483,648 bytes from"):
        open_rows(path)


def test_parquet_whose_statistics_contradict_its_types_does_not_end_the_process(
    tmp_path,
):
    if int(pa.__version__.partition(".")[0]) < 20:
        pytest.skip("pyarrow writes such statistics from version 20 on")
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({name: np.arange(9.0) for name in "ab"}), path)
    # Column b, of optional doubles, becomes one of required doubles: its chunk counts
    # gaps and values, where a required column has values alone.
    optional, required = b"\x15\x0a\x25\x02\x18\x01b", b"\x15\x0a\x25\x00\x18\x01b"
    whole = path.read_bytes()
    assert whole.count(optional) == 1
    path.write_bytes(whole.replace(optional, required))
    with pytest.raises(ValueError, match=r"rows.parquet is damaged in row group 0: "):
        open_rows(path)
    np.testing.assert_array_equal(open_rows(path, ["a"]).read(0, 9).ravel(), range(9))
