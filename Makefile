# Two commands set everything up: `make predict` and `make test`. Both need Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= predict-out

.PHONY: predict test evidence benchmarks clean

predict: $(VENV)/.models
	$(BIN)/spectheory predict --check --out $(OUT)

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist loadfile -m 'not evidence'

evidence: $(VENV)/.test $(VENV)/.openvino
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal -m evidence tests

benchmarks: $(VENV)/.test
	for script in $(filter-out benchmarks/_% benchmarks/plan_picks.py benchmarks/drafts.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit; done

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.models: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[models,plots]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	touch $@

$(VENV)/.openvino: $(VENV)/.test
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[openvino]'
	touch $@

include benchmarks/engines.mk

clean:
	rm -rf $(VENV) $(OUT) .mypy_cache .pytest_cache .ruff_cache
