# Two commands matter: `make run` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BROWSER := $(VENV)/.browser
# Timings and tests use one BLAS thread: small matrices, and both cores belong to the test runner.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
# The tests start hundreds of processes, and none of them shall compile our sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run serve test test-cores test-device lint bench bakeoff soak tutorials docs clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sketchbandit needs Python 3.11 or newer; '$(PYTHON)' is older. Try: make PYTHON=python3.12 ..."; exit 1; }
	@echo "installing into $(VENV): a minute or two, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

run: $(READY)  ## a first look: who loses how much, at what cost, and what the paper claims (about a minute, once installed)
	$(BIN)/sketchbandit tour --out results --fresh

PORT ?= 8000
serve: $(READY)  ## the decision service with a demo bandit and traffic for it: open the dashboard it names
	$(BIN)/sketchbandit serve --state results/demo-state --demo --log-format text --port $(PORT)

$(BROWSER): $(READY)
	@sh tests/install-browser $(BIN)/playwright >$@.log 2>&1 && touch $@

test: $(READY) $(BROWSER)  ## run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

# OPENBLAS_CORETYPE chooses the kernels of numpy's OpenBLAS on x86-64; elsewhere the same ones are played again.
CORES := Prescott Sandybridge
test-cores: $(READY)  ## the tests on which last digits matter, with the BLAS kernels of other CPUs (a minute)
	for core in $(CORES); do OPENBLAS_CORETYPE=$$core \
	  $(BIN)/python -m pytest -n 2 -q -m cores $$(grep -l mark.cores tests/*.py) || exit 1; done

# On a machine with a GPU, with its own Python: torch, numpy, scipy, safetensors and pytest are enough.
test-device:  ## the tests that need torch, on the GPU there is
	PYTHONPATH=src $(PYTHON) -m pytest -c /dev/null --rootdir . --noconftest -q tests/device

lint: $(READY)  ## ruff, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: $(READY) $(BROWSER)  ## the service overloaded, attacked and killed (half an hour), then the tests with many more examples
	$(BIN)/python -m benchmarks.service_soak
	$(BIN)/python -m benchmarks.service_hostile
	$(BIN)/python -m benchmarks.service_kills
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n 2 tests

bench: $(READY)  ## speed beside the rivals, and the scaling plots (twenty minutes)
	$(BIN)/python -m benchmarks --out results

bakeoff: $(READY)  ## the default beside other libraries on raw features; writes docs/bakeoff.md (hours, resumable)
	$(BIN)/python -m benchmarks.bakeoff

NAMES ?=
tutorials: $(READY)  ## run the tutorials and write their pages into docs/ (minutes); NAMES='clicks drift' for some
	$(BIN)/python -m tutorials.build $(NAMES)

# Not --quiet: that would hide warnings from --strict too. The variable silences the theme's advertisement.
docs: $(READY)  ## build the site into site/: open site/index.html; warnings and broken links fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## remove what the other commands made
	rm -rf $(VENV) results site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
