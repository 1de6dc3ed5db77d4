"""
A file that is read block by block
==================================

Every estimator takes a path. Rows are read block by block in each pass, so a file may
be larger than memory; `max_memory` says how much a fit may use. This one is small, 64
MB, so that the page builds quickly: the code is the same for 64 GB.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sketchmeans import NystromKMeans, open_rows

folder = Path(tempfile.mkdtemp())
path = folder / "rows.npy"
shape = (1_000_000, 16)
rows = np.lib.format.open_memmap(path, "w+", np.float32, shape)
centers = np.random.default_rng(0).uniform(-4, 4, (8, 16))
for start in range(0, shape[0], 100_000):
    rng = np.random.default_rng(start)
    block = centers[rng.integers(8, size=100_000)] + rng.normal(size=(100_000, 16))
    rows[start : start + 100_000] = block
rows.flush()
print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB, {open_rows(path).shape}")

# %%
# 100 MB for the fit, beyond its input.
model = NystromKMeans(8, n_landmarks=100, max_memory=100e6, random_state=0).fit(path)
print(f"W = {model.cost_:.4f} after {model.n_iter_} passes over all rows")

# %%
figure, ax = plt.subplots(figsize=(6, 3))
ax.bar(range(8), np.bincount(model.labels_, minlength=8))
ax.set(xlabel="Cluster", title="Rows of each cluster")

# %%
path.unlink()
folder.rmdir()
