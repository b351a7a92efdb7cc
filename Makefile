# Set-up needs only make and Python 3.11+: every target prepares the environment it runs in.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.cocopt-installed

.DEFAULT_GOAL := help
.PHONY: help test test-slow lint bench reproduce clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# one process a core already: more threads would only wait for one another
test test-slow: export OPENBLAS_NUM_THREADS = 1

test: $(STAMP) ## all tests and doctests but the slow ones
	$(BIN)/cocopt compile
	$(BIN)/python -m pytest -q -m "not slow" -n auto --dist worksteal

test-slow: $(STAMP) ## the slow tests
	$(BIN)/python -m pytest -q -m slow

lint: $(STAMP) ## style, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP) ## speed, beside what one would write instead
	$(BIN)/python benchmarks/run.py

reproduce: $(STAMP) ## the paper's experiments: tables and figures in results/; prints the wall time
	$(BIN)/cocopt compile
	$(BIN)/cocopt reproduce --out results

clean: ## remove caches and builds (the environment stays: rm -r .venv)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "cocopt needs Python 3.11 or newer, and $(PYTHON) is not; name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
