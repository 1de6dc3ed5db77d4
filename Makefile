# Every target that needs Python builds its own virtual environment first.
#   make test PYTHON=python3.12      another interpreter (with a VENV of its own)
#   make test VENV=/tmp/sketch-venv  another place for the environment
#   make test JOBS=8                 more test processes

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

# The tests that state equal bits and numerical laws.
NUMERICAL := $(addprefix tests/, contracts/test_kernels.py kernels/test_bandwidth.py \
	diagnostics/test_paths.py cluster/test_exactness.py cluster/test_extreme_scales.py \
	data/test_inputs.py numerics/test_linalg.py \
	engine/test_lloyd.py engine/test_many_clusters.py cluster/test_memory_order.py reduction/test_reducers.py reduction/test_weights.py \
	reduction/test_svd.py cluster/test_table.py numerics/test_threads.py)

# Test processes start many others, which should not compile the library again each time.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
STAMP := $(VENV)/.sketchmeans-dev
DOCS_STAMP := $(VENV)/.sketchmeans-docs
PORT ?= 8000

.DEFAULT_GOAL := help
.PHONY: help test test-slow test-numerical style lint demo docs docs-serve bench bench-plane clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

# Types are checked while the tests run: mypy has a single thread.
test: style  ## Lint, check types, run the tests and the doctests
	$(BIN)/mypy & types=$$!; \
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope -m "not slow"; \
	tests=$$?; wait $$types && exit $$tests

test-slow: $(STAMP)  ## The tests that take long: faults of a cluster, large files, Spark
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope -m slow tests

test-numerical: $(STAMP)  ## The numerical tests alone, say with OPENBLAS_CORETYPE=Nehalem
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope $(NUMERICAL)

style: $(STAMP)  ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style  ## Check style, format and types
	$(BIN)/mypy

demo: $(STAMP)  ## Segments of customers, then clusters of any shape: tables and reports
	$(BIN)/sketchmeans demo --out build/demo

docs: $(DOCS_STAMP)  ## Build the documentation, build/site/index.html; a warning is an error
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/site

docs-serve: docs  ## Build the documentation and serve it at http://localhost:8000
	$(BIN)/python -m http.server --directory build/site --bind localhost $(PORT)

bench: $(STAMP)  ## Run the benchmarks against scikit-learn (minutes)
	$(BIN)/python -m benchmarks.fit --store

bench-plane: $(STAMP)  ## All table sizes and numbers of clusters beside six peers (hours)
	$(BIN)/python -m benchmarks.plane --store

clean:  ## Remove .venv, caches and build products
	rm -rf .venv build dist docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an interrupted set-up starts again.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@
