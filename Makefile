# Every task of a contributor, by name. `make` alone lists them.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# The marks of slow tests; pyproject.toml explains them. Every test belongs to exactly one target.
SLOW := bench or long or processes
# Two processes share the tests; one of them runs those of Spark, so that a single JVM is started.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-edge test test-slow test-exhaustive bench lint format lock clean

help: ## Explain every target
	@echo "paneflow: make <target>"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## Create .venv from requirements.lock (PYTHON=python3.12 picks another Python)

demo: $(READY) ## Stream smart plugs through Spark, check the rows and draw them (a minute)
	$(BIN)/python -m paneflow.demo

demo-edge: $(READY) ## Run a tree of seven processes with MQTT sensors, kill a node, check the rows (a minute)
	$(BIN)/python -m paneflow.demo.edge

test: lint ## Check style, types and layering, then run the tests (a few minutes)
	$(PYTEST) -m "not exhaustive and not ($(SLOW))"

test-slow: $(READY) ## Run the slow tests: processes, restarts, many kernels, small benchmarks (CI runs both)
	$(PYTEST) -m "not exhaustive and ($(SLOW))"

test-exhaustive: $(READY) ## Compare the engines on a large number of random queries (hours, not in CI)
	$(BIN)/python -m pytest -m exhaustive

bench: $(READY) ## Compare paneflow with its peers (about two hours)
	$(BIN)/python -m bench

lint: $(READY) ## Check style, types and layering
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: | $(BIN)/python ## Rewrite requirements.lock from pyproject.toml (LOCK_FLAGS=--upgrade takes the newest versions)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command "make lock" \
		--quiet $(LOCK_FLAGS) --output-file requirements.lock

clean: ## Remove .venv, caches and everything built
	rm -rf .venv build demo-output dist
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("$(PYTHON) is Python " \
		+ sys.version.split()[0] + ", paneflow needs 3.11 or newer: name one with make PYTHON=...")'
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

# The project itself comes last, without dependencies and without an isolated build: whatever is
# not in the lock is not installed.
$(READY): requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing requirements.lock into .venv"
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
