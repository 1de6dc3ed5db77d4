"""What holds for every source of rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sketchmeans.cluster import NystromKMeans
from sketchmeans.data.sources.base import Source
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import Array


class SourceContract:
    """Tests of a source of rows; a subclass defines `make_source`.

    Running it costs seconds.

    See Also
    --------
    sketchmeans.open_rows : Opens one.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import open_rows, testing
    >>> class TestMine(testing.SourceContract):
    ...     def make_source(self, X, folder):
    ...         np.save(folder / "rows.npy", X)
    ...         return open_rows(folder / "rows.npy")
    """

    #: Share of the values by which they may change on their way: 0 if they are exact.
    rounding = 0.0

    def make_source(self, X: Array, folder: Path) -> Source:
        """Return a source with the rows of a float64 table; `folder` is empty."""
        raise NotImplementedError

    @pytest.fixture
    def table(self) -> Array:
        """Return the rows: several blocks of most sources."""
        return np.random.default_rng(0).normal(size=(2000, 3)).round(6)

    @pytest.fixture
    def source(self, table: Array, tmp_path: Path) -> Source:
        """Return the source of these rows."""
        return self.make_source(table, tmp_path)

    def _assert_rows(self, found: Array, expected: Array) -> None:
        np.testing.assert_allclose(toarray(found), expected, rtol=self.rounding)

    def test_it_says_what_it_holds(self, source: Source, table: Array) -> None:
        assert tuple(source.shape) == table.shape
        assert len(source) == len(table)
        assert source.dtype.kind in "fiub"
        assert isinstance(source.path, str)
        assert source.memory >= 0
        assert source.thread_memory >= 0
        names = source.feature_names
        assert names is None or len(names) == table.shape[1]
        assert source.locate(7)[1] == 7

    def test_blocks_are_rows_in_order(self, source: Source, table: Array) -> None:
        for start, stop in ((0, 2000), (0, 1), (700, 1501), (1999, 2000), (3, 5)):
            block = source.read(start, stop)
            assert block.dtype == source.dtype
            self._assert_rows(block, table[start:stop])

    def test_dense_blocks_are_written_where_asked(
        self, source: Source, table: Array
    ) -> None:
        if source.is_sparse:
            pytest.skip("blocks are CSR matrices")
        out = np.empty((50, 3), source.dtype, order=source.order)
        block = source.read(100, 150, out)
        assert np.shares_memory(block, out)
        self._assert_rows(out, table[100:150])

    def test_rows_of_any_numbers(self, source: Source, table: Array) -> None:
        for numbers in ([5], [1999, 0, 7, 7], np.arange(0, 2000, 13)):
            taken = source.take(np.asarray(numbers))
            self._assert_rows(taken, table[np.asarray(numbers)])

    def test_threads_may_read_at_the_same_time(
        self, source: Source, table: Array
    ) -> None:
        edges = [(i, min(i + 170, 2000)) for i in range(0, 2000, 170)] * 3
        with ThreadPoolExecutor(4) as pool:
            blocks = list(pool.map(lambda edge: source.read(*edge), edges))
        for (start, stop), block in zip(edges, blocks, strict=True):
            self._assert_rows(block, table[start:stop])

    def test_reading_goes_on_after_a_release(
        self, source: Source, table: Array
    ) -> None:
        source.read(0, 10)
        source.release()
        self._assert_rows(source.read(0, 10), table[:10])

    def test_the_estimator_takes_it(self, source: Source, table: Array) -> None:
        settings: Any = {"n_landmarks": 40, "random_state": 0}
        model = NystromKMeans(3, **settings).fit(source)
        expected = NystromKMeans(3, **settings).fit(table)
        assert model.cost_ == pytest.approx(expected.cost_, rel=1e-3)
        np.testing.assert_array_equal(model.predict(source), model.labels_)
