# Two commands set everything up: `make predict` and `make test`. Both need Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HEADS := $(VENV)-heads
OUT ?= predict-out

.PHONY: predict test evidence formal docs paper benchmarks dist lowest clean

predict: $(VENV)/.models
	@echo "The built-in pair, offline. Step 1: latencies. Step 2: prompts, with a first answer after a quarter of them."
	@echo "Step 3: the answer; figures and JSON are in $(OUT)/. Step 4: counted calls of transformers' assisted generation"
	@echo "against the prediction. After an interruption the same command continues."
	$(BIN)/spectheory predict --check --out $(OUT)

# Types are checked beside the tests: alone they would keep one core busy. Bytecode is kept, also where the environment
# says otherwise: each worker would compile every test again.
test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy > $(VENV)/types.txt & types=$$!; \
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist loadfile -m 'not evidence'; \
	tests=$$?; wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests | types))

evidence: $(VENV)/.test $(VENV)/.openvino $(HEADS)/.ready $(VENV)/.browser $(VENV)/.prometheus
	HEADS_PYTHON=$(CURDIR)/$(HEADS)/bin/python OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal -m evidence tests

# The proofs in Coq: every file is compiled, every theorem asked for its axioms, the definitions compared with the
# enumeration in fractions. Where there is no Coq, Debian's is installed (as root).
formal: $(VENV)/.test
	command -v coqc || (apt-get update -qq && apt-get install -y -qq --no-install-recommends coq libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra)
	$(BIN)/spectheory verify --evidence formal
	$(BIN)/pytest -q -m '' tests/proofs_check/test_formal.py

# The site, in docs/_build/html: warnings are errors, notebooks are run, links between pages must lead somewhere.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# The paper, as the Journal of Open Source Software takes it: paper.html and .docx in paper-out, .pdf where LaTeX is.
# Where there is no pandoc, Debian's is installed (as root).
PAPER := pandoc paper.md --citeproc --standalone --metadata author='the spectheory developers' --metadata lang=en
paper:
	command -v pandoc || (apt-get update -qq && apt-get install -y -qq --no-install-recommends pandoc)
	mkdir -p paper-out
	$(PAPER) --self-contained --mathml -o paper-out/paper.html
	$(PAPER) -o paper-out/paper.docx
	! command -v xelatex || $(PAPER) --pdf-engine=xelatex -V geometry:margin=3cm -o paper-out/paper.pdf

benchmarks: $(VENV)/.test
	for script in $(filter-out benchmarks/_% benchmarks/plan_picks.py benchmarks/drafts.py benchmarks/serving.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit; done
	$(BIN)/python benchmarks/_benchmarks_page.py

# The wheel and the sources, checked, then the wheel in a bare environment of every Python that PYTHONS names.
PYTHONS ?= $(PYTHON)
dist: $(VENV)-dist/.ready
	rm -rf dist
	$(VENV)-dist/bin/python -m build
	$(VENV)-dist/bin/twine check --strict dist/*
	$(VENV)-dist/bin/python .ci/wheel.py $(PYTHONS)

# The theory without torch under the lowest versions that pyproject.toml allows. Old versions beside newer ones of what
# they need give deprecation warnings, which are no errors here.
LOWEST := tests/foundations tests/verification tests/drafting tests/limits tests/truncated tests/cost tests/trace
lowest: $(VENV)-lowest/.ready
	OMP_NUM_THREADS=1 $(VENV)-lowest/bin/python -m pytest -q -n auto -m 'not evidence' -W ignore::DeprecationWarning \
		$$(grep -rLE 'torch|tiny_|builtin:|heads|recorded_sample' --include='test_*.py' $(LOWEST))

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.models: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV) from pinned versions: some minutes, once."
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[models]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV) from pinned versions: some minutes, once."
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	touch $@

# Pages are opened in Chromium; where there is none, Debian's is installed (as root). Without one their tests are skipped.
$(VENV)/.browser: $(VENV)/.test
	command -v "$${CHROMIUM:-chromium}" || command -v google-chrome || (apt-get update -qq && apt-get install -y -qq chromium) || echo "No Chromium: tests of pages are skipped."
	touch $@

# Rules and alerts are tried in Prometheus; where there is none, Debian's is installed (as root), else these are skipped.
$(VENV)/.prometheus: $(VENV)/.test
	command -v prometheus || (apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus) || echo "No Prometheus: its tests are skipped."
	touch $@

$(VENV)/.openvino: $(VENV)/.test
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[openvino]'
	touch $@

# The package speculators, which our reading of draft heads is compared with. The torchvision that it pulls in does not
# fit the CPU build of torch, and transformers then fails to import.
$(HEADS)/.ready: | $(BIN)/python
	$(BIN)/python -m venv $(HEADS)
	$(HEADS)/bin/python -m pip install -q $(TORCH_CPU) torch==2.13.0
	$(HEADS)/bin/python -m pip install -q torch==2.13.0 speculators==0.9.0
	$(HEADS)/bin/python -m pip uninstall -q -y torchvision torchaudio
	touch $@

$(VENV)-dist/.ready: constraints.txt
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install -q -c constraints.txt build twine uv
	touch $@

$(VENV)-lowest/.ready: pyproject.toml $(VENV)-dist/.ready
	$(VENV)-dist/bin/uv venv -q --clear --python $(PYTHON) $(VENV)-lowest
	$(VENV)-dist/bin/uv pip install -q --python $(VENV)-lowest/bin/python --resolution lowest-direct \
		-e '.[proofs,pandas,report,engines]' pytest==9.0.0 pytest-xdist==3.6.0 array-api-strict==2.0 jsonschema==4.23.0 \
		|| { echo "the lowest versions could not be installed: this needs PyPI and Python 3.11 (PYTHON=python3.11)"; exit 1; }
	touch $@

include benchmarks/engines.mk

clean:
	rm -rf $(VENV) $(HEADS) $(VENV)-dist $(VENV)-lowest $(OUT) paper-out dist .mypy_cache .pytest_cache .ruff_cache
