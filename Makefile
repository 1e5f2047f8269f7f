# Two commands matter to a newcomer: `make demo` and `make test`. Both set up everything they need in .venv.
# Works with GNU make 3.81 and any Python from 3.11 on that has venv.

SHELL := /bin/sh
# A suitable Python, those we test with first; PYTHON=/path/to/python overrides.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3; do \
	if $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
BASE := $(VENV)/.base-installed
DEV := $(VENV)/.dev-installed
# CI runs the few tests that failed once more, alone: PYTEST='.venv/bin/python tools/run_tests.py'.
PYTEST ?= $(BIN)/python -m pytest
# One process more than there are processors, since some tests wait. Forks share one collection; only Linux forks safely.
WORKERS := $(shell [ "`uname`" = Linux ] && echo "--forks $$((`nproc` + 1))" || echo "-n auto --dist worksteal")
# Slow proofs wait more than they compute: four at a time, files that take longest first (tests/e2e/conftest.py).
SLOW_WORKERS := -n 4 --dist loadfile --no-loadscope-reorder
# The slow proofs end with a list of those that took longest.
LONGEST := --durations=30 --durations-min=5
# Without bytecode every worker, and every command that a test starts, would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help docs demo test quick check lint types arrows format tools cluster proofs long e2e bench lock clean

help:
	@echo "make demo    set up, answer questions from the catalog, plan two workloads, write a report"
	@echo "make test    set up and run the tests"
	@echo "make quick   run only the tests that your changes can reach"
	@echo "make check   tests, linters, types and import arrows"
	@echo "make tools   get the programs that the slow proofs use, where they are missing"
	@echo "make cluster build a real Kubernetes for the slow proofs, once, into the cache (minutes)"
	@echo "make e2e     make proofs: a base install, rendered files in the real tools, reports in a browser;"
	@echo "             beside it make long: tests that take long, and those by chance with all their cases"
	@echo "make bench   print the figures, one JSON line each"
	@echo "make docs    write the reference pages and the outputs shown in the docs anew"
	@echo "make lock    pin the versions anew in constraints.txt"

$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "chipwise needs Python 3.11 or newer with venv (Debian: apt install python3-venv)." >&2; exit 1; fi
	@$(PYTHON) -m venv $(VENV)

$(BASE): $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "setting up $(VENV) ..." >&2
	@$(PIP) install --quiet --constraint constraints.txt --editable . >&2
	@touch $@

$(DEV): $(BASE)
	@echo "adding what tests and checks need ..." >&2
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]' >&2
	@$(BIN)/python -m compileall -q -j 0 src  # pip does so for what it copies
	@touch $@

demo: $(BASE)
	@$(BIN)/python examples/demo.py

test: $(DEV)
	$(PYTEST) $(WORKERS) -m "not e2e and not long"

quick: $(DEV)
	@$(BIN)/python tools/quick.py

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/names.py --check

types: $(DEV)
	$(BIN)/mypy

arrows: $(DEV)
	$(BIN)/lint-imports --no-logo

check: test lint types arrows

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

tools: $(DEV)
	@$(BIN)/python tools/install_tools.py
	@$(BIN)/python tools/checks/get.py

cluster: $(VENV)/bin/python
	@$(BIN)/python tools/cluster/build.py

proofs: $(DEV)
	$(PYTEST) $(SLOW_WORKERS) -m e2e --no-other-skips $(LONGEST)

long: $(DEV)
	CHIPWISE_TESTS=long $(PYTEST) $(WORKERS) -m "(chance or long) and not e2e" $(LONGEST)

# While proofs wait for servers and programs, the processors are free for tests that compute.
e2e: $(DEV)
	@$(BIN)/python tools/side_by_side.py proofs long

bench: $(DEV)
	@$(BIN)/python benchmarks/run.py

lock: $(VENV)/bin/python
	$(BIN)/python tools/lock.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

docs: $(DEV)
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/audit_rules.py
	$(BIN)/python -m pytest -q tests/docs --update-golden
