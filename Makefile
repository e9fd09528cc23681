# Every target makes .venv by itself and installs only what it needs; with nothing changed it starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
unexport PYTHONDONTWRITEBYTECODE  # the suite starts some hundred processes, and each would compile the package
ICU_SEPSIS := --no-deps icu-sepsis  # it asks for gym, which its files do not need

.DEFAULT_GOAL := help
.PHONY: help demo setup reproduce test lint suite golden format bench calibrate coverage field docs docs-check tables clean

help:  ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.package  ## show the main job in a minute: logs that mislead, and what they save all the same
	$(BIN)/causal-shaping demo $(ARGS)

setup: $(VENV)/.package  ## install the package, its command, figures and environments into .venv

reproduce: $(VENV)/.studies  ## run the paper's study and write report/index.html; ARGS='--quick' for a few minutes of it
	$(BIN)/python -m studies.paper $(ARGS)

test: lint suite  ## check style and types, run the whole test suite

lint: $(VENV)/.test  ## check style, types, and that nothing is committed that should not be
	$(BIN)/python .ci/check_leaks.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

suite: $(VENV)/.test  ## run the whole test suite
	$(BIN)/pytest

golden: $(VENV)/.test  ## compare what is computed with version 0.2, with all seeds
	$(BIN)/python tests/golden/golden.py --compare $(ARGS)

format: $(VENV)/.format  ## format the code, fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.test  ## measure speed and memory beside yardsticks, in one table; ARGS='--quick' for minutes of it
	$(BIN)/python -m studies.speed $(ARGS)

calibrate: $(VENV)/.test  ## run what is too long for the suite; resumes; ARGS='--help' says what there is
	$(BIN)/python -m studies.calibration $(ARGS)

coverage: $(VENV)/.test  ## run the suite and say which lines and branches no test passes
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

field: $(VENV)/.field  ## measure what logs save outside of the paper's worlds; resumes; ARGS='--quick' for minutes of it
	$(BIN)/python -m studies.field $(ARGS)

docs: $(VENV)/.docs  ## build the documentation into site/, without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

docs-check: $(VENV)/.docs  ## check links, spelling and the build of the documentation, run all examples and notebooks
	$(BIN)/codespell
	$(BIN)/python docs/check.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/python docs/check.py --site site
	$(BIN)/pytest tests/test_readme.py tests/test_docs.py
	$(BIN)/python examples/run.py

tables: $(VENV)/.studies  ## run again what the tables and figures of docs/ report
	$(BIN)/python -m studies.docs.tables
	$(BIN)/python -m studies.docs.figures

clean:  ## remove .venv and caches
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis site
	find src tests studies docs examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: a file in .venv says what is installed there, and is remade when the declarations change.
$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.package: $(VENV)/.venv pyproject.toml constraints.txt
	$(PIP) --editable '.[plot,worlds]'
	@touch $@

$(VENV)/.studies: $(VENV)/.venv pyproject.toml constraints.txt
	$(PIP) --editable '.[studies]'
	@touch $@ $(VENV)/.package

$(VENV)/.field: $(VENV)/.studies
	$(PIP) $(ICU_SEPSIS)
	@touch $@

$(VENV)/.docs: $(VENV)/.venv pyproject.toml constraints.txt
	$(PIP) --editable '.[test,docs]'
	$(PIP) $(ICU_SEPSIS)
	@touch $@ $(VENV)/.package $(VENV)/.studies $(VENV)/.format $(VENV)/.test $(VENV)/.field

$(VENV)/.test: $(VENV)/.venv pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	$(PIP) $(ICU_SEPSIS)
	@touch $@ $(VENV)/.package $(VENV)/.studies $(VENV)/.format $(VENV)/.field

$(VENV)/.format: $(VENV)/.venv constraints.txt
	$(PIP) ruff
	@touch $@
