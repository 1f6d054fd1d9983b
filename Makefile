# mintage's one interface. `make` lists the verbs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check
STAMPS := $(VENV)/stamps

RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name 'Cargo.toml')
LOOM := RUSTFLAGS="--cfg loom" cargo test --locked --quiet --release --target-dir target/loom -p mintage-core --test loom

.DEFAULT_GOAL := help
.PHONY: help run serve build test check fix bench deep docs clean rust-tests python-tests

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: serve ## Set up everything and start the ID service on this machine; Ctrl-C stops it

serve: toolchain build $(STAMPS)/serve
	@$(BIN)/mintage serve --log-format console

build: toolchain $(STAMPS)/build ## Build the release extension into .venv

test: rust-tests python-tests ## Set up everything and run all tests

rust-tests: toolchain
	cargo test --locked --quiet --workspace --exclude mintage-py
	$(LOOM)
	spec/model/check.sh

python-tests: build $(STAMPS)/tests servers
	$(BIN)/python -m pytest

.PHONY: servers
servers:
	@tests/servers/install.sh

check: build $(STAMPS)/tests docs ## Formatters, linters, types, layers, docs
	cargo fmt --check
	cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
	cargo fmt --check --manifest-path spec/model/Cargo.toml
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest mintage._core --allowlist tests/typing/stubtest-allowlist.txt
	$(BIN)/lint-imports
	$(BIN)/python -m benchmarks.render --check

fix: $(STAMPS)/tools toolchain ## Format and repair what a tool can
	cargo fmt
	cargo clippy --quiet --fix --allow-dirty --allow-staged --workspace --all-targets
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: build $(STAMPS)/benchmarks ## Measure beside the peers, write a record, render its table
	@benchmarks/install.sh
	$(BIN)/python -m benchmarks

deep: build $(STAMPS)/tests $(STAMPS)/deep servers ## The long proofs: a billion IDs, a million faults, fuzzing, an hour of the service, many more cases
	$(BIN)/python -m benchmarks.deep_threads
	$(BIN)/python -m tests.simulator --ids 100000000 --faults 1000000 --batch 400 --jobs 2
	MINTAGE_CONTRACT_SECONDS=60 $(BIN)/python -m pytest tests/contract -k crowd
	$(BIN)/python tests/deep/fuzz.py --seconds 60
	$(BIN)/python -m tests.deep.soak
	PROPTEST_CASES=100000 cargo test --locked --quiet --release -p mintage-core
	$(BIN)/python -m pytest --hypothesis-profile=deep tests/stateful tests/unit

docs: build $(STAMPS)/docs ## Build the documentation into docs/_build/html
	$(BIN)/sphinx-build --quiet -W --keep-going -n docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean: ## Remove everything that was built
	rm -rf $(VENV) target docs/_build

# ------------------------------------------------------------------------------------------------------------- set-up

.PHONY: toolchain
toolchain:
	@cargo --version >/dev/null 2>&1 || { echo "mintage needs Rust 1.89 or newer: install it with rustup (https://rustup.rs), then run make again." >&2; exit 1; }

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "mintage needs Python 3.11 or newer: name one with make PYTHON=python3.12." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "mintage needs Python's venv module: install python3-venv, then run make again." >&2; exit 1; }
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/tools: requirements.txt $(STAMPS)/venv
	$(PIP) install -r $<
	@touch $@

$(STAMPS)/build: $(STAMPS)/tools $(RUST) pyproject.toml | toolchain
	PIP_QUIET=1 VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

$(STAMPS)/serve: deploy/requirements.txt $(STAMPS)/venv
	$(PIP) install -r $<
	@touch $@

$(STAMPS)/tests: tests/requirements.txt deploy/requirements.txt $(STAMPS)/venv
	$(PIP) install -r $<
	@touch $@

$(STAMPS)/docs: docs/requirements.txt $(STAMPS)/venv
	$(PIP) install -r $<
	@touch $@

$(STAMPS)/benchmarks: benchmarks/requirements.txt deploy/requirements.txt $(STAMPS)/venv
	$(PIP) install -r $<
	@touch $@

$(STAMPS)/deep: tests/deep/requirements.txt $(STAMPS)/venv
	$(PIP) install -r $<
	@touch $@
