# Everything from nothing: Python >= 3.11 with venv, git and make are all that is needed.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
RUN := $(VENV)/bin/python -m
# Two test processes share the machine: BLAS threads that spin against each other are slower than one thread.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo quick test full check lint format bench soak clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## run Undertow on a generated stream of traffic matrices and draw what it found
	$(VENV)/bin/undertow demo

quick: $(STAMP) ## for every save: the tests that compile nothing large (a minute)
	$(TEST_ENV) $(RUN) pytest -n 2 -m "not slow and not full and not soak"

test: lint ## everything that a change needs: lint, types, imports, tests (minutes; what CI runs)
	$(TEST_ENV) $(RUN) pytest -n 2 --dist loadfile

full: lint ## test, and the long suites: every shape, kills and crash points, fuzzing (an hour or more)
	$(TEST_ENV) $(RUN) pytest -n 2 --dist loadfile -m "not soak" --cov --cov-report=term

check: test ## exactly what continuous integration runs

lint: $(STAMP) ## style, types and the direction of imports
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(VENV)/bin/lint-imports

format: $(STAMP) ## put the source into the house format
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

bench: $(STAMP) ## speed beside the plain matrix product and the rivals, then accuracy on the benchmark streams
	$(VENV)/bin/undertow bench
	$(RUN) benchmarks

soak: $(STAMP) ## the long tests
	$(TEST_ENV) $(RUN) pytest -m soak

clean: ## remove everything that was built
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache undertow-bench undertow-demo undertow-reproduce undertow-scoreboard
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found: install Python 3.11 or newer (apt install python3 python3-venv), or name it with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Undertow needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1): name a newer one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) has neither pip nor ensurepip: apt install python3-pip" >&2; exit 1; }
	@# Debian's python3-pip comes without ensurepip (that is python3-venv): then the pip at hand fills the environment.
	if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then $(PYTHON) -m venv $(VENV); else $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip; fi
	$(RUN) pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@
