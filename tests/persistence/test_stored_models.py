"""Files of earlier releases load, and their models answer as they did."""

from functools import cache

import numpy as np
import pytest

import sketchmeans
from sketchmeans.diagnostics import segment_names
from tests.stored_models import CALIBRATED, FOLDER, TABLES, answers

FILES = sorted(FOLDER.glob("*/*.skm"))
#: By the type of the features: squared distances are differences of kernel values, so
#: half of the digits are those of the processor.
TOLERANCE = {"float32": 1e-3, "float64": 1e-6}


@cache
def arrays(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize(("release", "n_files"), [("0.1.0", 48), ("0.2.0", 57)])
def test_there_are_files_of_each_release(release, n_files):
    assert sum(file.parent.name == release for file in FILES) == n_files


def test_stored_files_are_small():
    total = sum(file.stat().st_size for file in FOLDER.rglob("*.*") if file.is_file())
    assert total < 300_000 * len({file.parent for file in FILES})


FAMILIES = sorted({f"{file.parent.name}/{file.stem.split('-')[0]}" for file in FILES})


@pytest.mark.parametrize("family", FAMILIES)
def test_stored_models_answer_as_they_did(family):
    for file in FILES:
        if f"{file.parent.name}/{file.stem.split('-')[0]}" == family:
            check_answers(file)


@pytest.mark.parametrize("name", CALIBRATED)
def test_names_and_quantiles_of_stored_models_are_read(name):
    model = sketchmeans.load(FOLDER / "0.2.0" / f"{name}.skm")
    assert segment_names(model)[0] == "First segment"
    assert len(model.reference_.sizes) == 3


def check_answers(file):
    model = sketchmeans.load(file)
    expected = arrays(file.parent / "expected.npz")
    kind = str(expected[f"{file.stem}/table"])
    found = answers(model, TABLES[kind](arrays(file.parent / "tables.npz")))
    assert found
    for method, values in found.items():
        before = expected[f"{file.stem}/{method}"]
        assert values.dtype == before.dtype
        if method == "predict":
            np.testing.assert_array_equal(values, before)
        else:
            limit = TOLERANCE[before.dtype.name]
            np.testing.assert_allclose(values, before, rtol=limit, atol=limit)
