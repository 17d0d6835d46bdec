# Everything from nothing: Python >= 3.11 with venv, git and make are all that is needed.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
RUN := $(VENV)/bin/python -m
# MkDocs Material announces what comes after MkDocs at every build.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs
# Two test processes share the machine: BLAS threads that spin against each other are slower than one thread.
# Compiled tests are kept, also where Python is told not to: rewriting their assertions anew takes longer than many run.
TEST_ENV := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo quick test record full check lint format docs docs-serve pictures notebooks release bench system services load soak clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## run Undertow on a generated stream of traffic matrices and draw what it found
	$(VENV)/bin/undertow demo

quick: $(STAMP) ## for every save: the tests that compile nothing large (a minute)
	$(TEST_ENV) $(RUN) pytest -n 2 --dist loadfile -m "not slow and not full and not soak"

test: lint ## everything that a change needs: lint, types, imports, tests (about twelve minutes; what CI runs)
	$(TEST_ENV) $(RUN) pytest -n 2 --dist loadfile

full: lint ## test, and the long suites: every shape, kills, signals and crash points, fuzzing, with counts (an hour or more)
	$(RUN) pip install --quiet --constraint constraints.txt --editable '.[spark,ray]'
	$(TEST_ENV) $(RUN) pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not soak" --cov --cov-report=term --durations=40

check: test ## exactly what continuous integration runs

lint: $(STAMP) ## style, types and the direction of imports
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(VENV)/bin/lint-imports

format: $(STAMP) ## put the source into the house format
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

docs: $(STAMP) ## build the documentation into site/; a broken link or a missing page is an error
	$(MKDOCS) build --strict --quiet
	@echo "Read it: make docs-serve, or $(PYTHON) -m http.server --directory site"

docs-serve: $(STAMP) ## show the documentation in a browser while you write it
	$(MKDOCS) serve

pictures: $(STAMP) ## make the pictures of the documentation by running its code
	$(VENV)/bin/python docs/pictures.py
	$(VENV)/bin/python docs/live_page.py

notebooks: $(STAMP) ## write the tutorials as notebooks, with what they print and draw
	$(VENV)/bin/python docs/notebooks.py

release: $(STAMP) ## build wheel and sdist, and use both in fresh environments without developer tools
	rm -rf dist
	$(RUN) build --outdir dist
	.ci/check-release $(VENV)/bin/python dist/*

record: $(STAMP) ## record what compiled programs and small streams give anew, after a change of numbers that is meant
	PYTHONPATH=tests $(TEST_ENV) $(RUN) recorded.record

bench: $(STAMP) ## speed beside the plain matrix product and the baselines, then accuracy on the benchmark streams
	$(VENV)/bin/undertow bench speed
	$(VENV)/bin/undertow bench accuracy

system: ## install what tests need beside Python, on Debian (as root): chromium, PostgreSQL, Java for Spark
	apt-get update
	apt-get install --yes --no-install-recommends chromium chromium-driver fonts-dejavu-core postgresql default-jre-headless

services: $(STAMP) ## the long tests of service and cluster; a browser, PostgreSQL and Java must be there (make system)
	$(RUN) pip install --quiet --constraint constraints.txt --editable '.[spark,ray]'
	UNDERTOW_REQUIRE=chromium,postgres,spark $(TEST_ENV) $(RUN) pytest -n 2 --dist loadfile -m "not soak" tests/service tests/cluster tests/incidents

load: $(STAMP) ## 200 streams through the service for two minutes, killed five times: speed, latency, what was lost
	$(TEST_ENV) $(RUN) undertow.service.load

soak: $(STAMP) ## the long tests
	$(TEST_ENV) $(RUN) pytest -m soak

clean: ## remove everything that was built
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache site undertow-bench undertow-demo undertow-reproduce undertow-scoreboard
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found: install Python 3.11 or newer (apt install python3 python3-venv), or name it with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Undertow needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1): name a newer one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) has neither pip nor ensurepip: apt install python3-pip" >&2; exit 1; }
	@# Debian's python3-pip comes without ensurepip (that is python3-venv): then the pip at hand fills the environment.
	if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then $(PYTHON) -m venv $(VENV); else $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip; fi
	$(RUN) pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@
