# durasim. `make demo` needs rust, python3 (3.11 or later), gcc, make and git; everything else it installs into .venv.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
SECONDS ?= 600
VENV := .venv
BIN := $(VENV)/bin
STAMPS := build/stamps
CORE := python/durasim/_core.abi3.so

RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates machines -type f 2>/dev/null)

.PHONY: help setup quick demo demo-cold test test-cold test-all test-deep wheel generate campaign planted test-programs models validate lint fmt bench docs page clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(CORE) ## Make .venv with the built package in it

$(STAMPS)/environment: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("durasim needs python3 3.11 or later, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "installing the pinned Python packages into $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off -r requirements.lock
	@mkdir -p $(STAMPS) && touch $@

$(CORE): $(STAMPS)/environment $(RUST_SOURCES)
	@echo "building the Rust core (some minutes when nothing is cached)"
	@PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --quiet
	@$(BIN)/python -m compileall -q python/durasim
	@touch $@

# The module gets an old date, so that `make setup` builds the optimised one again.
quick: $(STAMPS)/environment ## Build the module incrementally, without link-time optimisation: to try a change, not to measure speed
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) CARGO_TARGET_DIR=$(CURDIR)/target/fast CARGO_PROFILE_RELEASE_LTO=off \
		CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_INCREMENTAL=true PIP_QUIET=1 \
		$(BIN)/maturin develop --release --locked --quiet
	@touch -d @0 $(CORE)

demo: $(CORE) ## Run the B+-tree under five designs, crash two of them, print both verdicts
	@$(BIN)/durasim demo

demo-cold: ## make demo in a clone with every cache cold and nothing else installed; print the seconds
	@tools/fresh_machine.sh demo

test-cold: ## make test in such a clone; print the seconds
	@tools/fresh_machine.sh test

test: ## Formatters, linters and every test but the long ones; ends with the slowest tests and the seconds of each stage
	@$(PYTHON) tools/test_stages.py

test-all: ## make test, the wheel, all planted faults, full products of cases, all documents' commands; FROM=STAGE resumes
	@$(PYTHON) tools/test_stages.py --all $(if $(FROM),--from $(FROM))

test-deep: ## make test-all, then every campaign on sound designs and equivalent faults: takes hours; FROM=STAGE resumes
	@$(PYTHON) tools/test_stages.py --deep $(if $(FROM),--from $(FROM))

wheel: $(CORE) $(STAMPS)/page ## Build the wheel into dist/, twice to the same bytes, and try it in an empty environment; PGO=1 uses a profile
	@$(BIN)/python -m tools.wheel $(if $(PGO),--profile)
	$(BIN)/python -m pytest -m long tests/long/test_wheel.py

generate: $(CORE) ## Rewrite what is generated: schemas, lists in documents, recorded statistics, tables of assumptions
	@$(BIN)/python -m tools.generate

campaign: $(CORE) ## Crash every row in every way for SECONDS (600); goes on where an earlier campaign ended
	@$(BIN)/durasim campaign campaigns/all.toml --seconds $(SECONDS) --store build/campaigns/all.sqlite

test-programs: $(CORE) ## Programs of others (SQLite, bzip2, Debian packages ...), downloaded, run and crashed; takes fifteen minutes or more
	$(BIN)/python -m pytest tests/programs_of_others/programs_of_others.py
	$(BIN)/python tests/programs_of_others/distribution.py
	$(BIN)/python tests/programs_of_others/libpmem.py
	$(BIN)/python tests/programs_of_others/durable.py

models: ## All states of the protocols of designs in wider bounds than make test has; takes some minutes
	DURASIM_MODEL=deep DURASIM_SEEDS=20000 cargo test --locked -p durasim-models -- --nocapture

planted: $(CORE) ## Every planted fault and the table of what caught it; takes some minutes
	@$(BIN)/durasim mutation

validate: $(CORE) ## Programs beside gem5's O3 model, messages beside BookSim 2, memories beside Ramulator; takes some minutes
	@$(BIN)/python tests/timing/validation.py
	@cargo test --locked --quiet -p durasim-machine --lib interconnect::booksim -- --include-ignored --nocapture
	@$(BIN)/python tests/timing/memory_validation.py

lint: $(STAMPS)/environment ## Linters alone
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check

fmt: $(STAMPS)/environment ## Format everything
	cargo fmt --all
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

bench: $(CORE) $(STAMPS)/bench ## Simulated MIPS, beside qemu-riscv64 (if installed) and rvsim
	@$(BIN)/python -m tools.bench

$(STAMPS)/bench: $(STAMPS)/environment pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off -c requirements.lock rvsim==2.1.0
	@touch $@

docs: $(CORE) $(STAMPS)/docs ## Build the site of the documents into build/site, without network; checks links and anchors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m tools.build_site
	@echo "to read it: $(BIN)/python -m http.server --directory build/site"

# The lock file has all packages that are needed: nothing is resolved.
$(STAMPS)/docs: $(STAMPS)/environment requirements-docs.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off --no-deps -r requirements-docs.lock
	@touch $@

# Tests of pages in a browser are skipped where this cannot be installed. The browser itself is Debian's.
$(STAMPS)/browser: $(STAMPS)/environment requirements-browser.lock
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off --no-deps -r requirements-browser.lock && touch $@

page: $(STAMPS)/page ## Build the page of `durasim explore`; the wheel has it

# npm needs its registry. Nothing else needs the page, so only this and the wheel build it.
$(STAMPS)/page: $(STAMPS)/environment requirements-page.lock tools/page.py $(shell find page -type f -not -path '*/node_modules/*' 2>/dev/null)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off --no-deps -r requirements-page.lock
	@$(BIN)/python -m tools.page
	@touch $@

clean: ## Remove everything that was built
	rm -rf build target $(VENV) python/durasim/_core.*.so python/durasim/explore/page
	find . -name __pycache__ -not -path './$(VENV)/*' -type d -prune -exec rm -rf {} +
