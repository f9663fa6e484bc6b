# `make demo` and `make test` are all a newcomer needs; each makes .venv if it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help .venv demo test torture lint format types bench docs wheel clean

help:
	@echo "make demo     run producers and workers on real stores, also of Dramatiq and RQ; some are killed in mid-job"
	@echo "make test     run the tests, 20 minutes  (ARGS='-k name' passes options to pytest)"
	@echo "make torture  run the long crash tests   (minutes)"
	@echo "make lint     ruff: rules and format     make format  apply them"
	@echo "make types    mypy --strict"
	@echo "make bench    measure against other queues; writes docs/benchmarks*.md"
	@echo "              (ARGS='--part dramatiq': one part alone; ARGS=--help: what there is)"
	@echo "make docs     build the documentation into site/"
	@echo "make wheel    build the wheel and the source archive into dist/"
	@echo "make clean    remove .venv and everything that was built"
	@echo "PYTHON=python3.12 make ... chooses the interpreter of a new .venv"

.venv: $(VENV)/.dev

# Each stamp is a set of what is installed; a changed pyproject.toml makes it stale.
$(VENV)/.runtime: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "equeue needs Python 3.10 or newer, and '$(PYTHON)' is not: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 \
	  || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo 'Installing into $(VENV): equeue and what it needs'
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --editable '.[dramatiq,rq]'
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo 'Installing into $(VENV): the tools for the tests'
	@$(PIP) install --group dev --editable '.[cli]'
	@touch $@

$(VENV)/.bench: $(VENV)/.runtime
	@echo 'Installing into $(VENV): the queues to compare with'
	@$(PIP) install --group bench
	@touch $@

$(VENV)/.docs: $(VENV)/.runtime
	@echo 'Installing into $(VENV): the tools for the documentation'
	@$(PIP) install --group docs
	@touch $@

demo: $(VENV)/.runtime
	$(BIN)/python -m equeue_core.demo
	@echo
	$(BIN)/python -m equeue_dramatiq.demo
	@echo
	$(BIN)/python -m equeue_rq.demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(ARGS)

torture: $(VENV)/.dev
	HYPOTHESIS_PROFILE=torture $(BIN)/python -m pytest -m torture --timeout=3600 $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

format: $(VENV)/.dev
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

types: $(VENV)/.dev
	$(BIN)/python -m mypy

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --strict

wheel: $(VENV)/.dev
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) .ci-work build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
