# mintage's one interface. `make` lists the verbs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check
STAMPS := $(VENV)/stamps
PYTEST := $(BIN)/python -m pytest --numprocesses=$(or $(JOBS),2) --dist=worksteal # make test JOBS=0: one after the other

unexport PYTHONDONTWRITEBYTECODE # or every process that tests start would compile the package anew

RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name 'Cargo.toml')
TSAN := RUSTFLAGS="-Zsanitizer=thread" PROPTEST_CASES=8 cargo +nightly test --locked --quiet -Zbuild-std --target x86_64-unknown-linux-gnu --target-dir target/tsan -p mintage-core --lib --tests
LOOM := RUSTFLAGS="--cfg loom" cargo test --locked --quiet --release --target-dir target/loom -p mintage-core --test loom

.DEFAULT_GOAL := help
.PHONY: help run serve build test test-all test-quick check fix bench deep mutants docs clean rust-tests rust-rest python-tests python-rest

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: serve ## Set up everything and start the ID service on this machine; Ctrl-C stops it. make run ARGS="--http 127.0.0.1:8081" passes settings on

serve: toolchain build $(STAMPS)/serve
	@$(BIN)/mintage serve --log-format console $(ARGS)

build: toolchain $(STAMPS)/build ## Build the release extension into .venv

test: $(if $(ARGS),chosen-tests,rust-tests python-tests) ## Set up everything and run the tests that say most, in ten minutes. make test ARGS="tests/unit/test_sno.py -k parse" runs pytest with these arguments alone

test-all: rust-rest python-rest $(STAMPS)/tools ## Run the rest: every store, runtimes, stress, loom, the model, the newest CPython; half an hour
	timeout --foreground 25m $(BIN)/python -m tests.pythons --newest --seconds 900

test-quick: build $(STAMPS)/tests ## Run the tests that say most in three minutes, without servers
	PROPTEST_CASES=32 cargo test --locked --quiet -p mintage-core -p mintage-wire
	$(PYTEST) --hypothesis-profile=quick -m "not servers" tests/unit tests/contract tests/integration

.PHONY: pythons
pythons: toolchain $(STAMPS)/tools ## Build for every supported CPython, and run the quick tests on each. make pythons ARGS="3.15" for one
	$(BIN)/python -m tests.pythons $(ARGS)

.PHONY: platforms
platforms: build $(STAMPS)/tests $(STAMPS)/wheels ## Check the types for macOS and Windows, compile for other platforms and by the oldest Rust, and run tests on emulated processors
	$(BIN)/python -m tests.platforms $(ARGS)

.PHONY: wheel
wheel: toolchain $(STAMPS)/tools $(STAMPS)/wheels ## Build the last commit's wheels into dist, check them, and run the quick tests on them. make wheel ARGS="--python 3.11 --target x86_64-manylinux" for one
	$(BIN)/python -m tests.wheels $(ARGS)

rust-tests: toolchain
	cargo test --locked --quiet --workspace --exclude mintage-py

rust-rest: toolchain
	$(LOOM)
	spec/model/check.sh

python-tests: build $(STAMPS)/tests servers
	$(PYTEST) -m "not rest"

python-rest: build $(STAMPS)/tests servers
	$(PYTEST) -m rest

.PHONY: chosen-tests
chosen-tests: build $(STAMPS)/tests # in one process, so that -x and --pdb work
	$(BIN)/python -m pytest $(ARGS)

.PHONY: servers
servers:
	@tests/servers/install.sh
	@[ "$$MINTAGE_INSTALL_SERVERS" = 0 ] || tests/servers/unstable.sh

check: build $(STAMPS)/tests $(STAMPS)/audit docs ## Formatters, linters, types, layers, prose, spelling, docs, workflows, licences, known vulnerabilities
	cargo fmt --check
	cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
	cargo fmt --check --manifest-path spec/model/Cargo.toml
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.platforms types-darwin types-win32
	$(BIN)/python -m mypy.stubtest mintage._core --allowlist tests/typing/stubtest-allowlist.txt
	$(BIN)/lint-imports
	$(BIN)/python -m checks.crates
	$(BIN)/python -m checks.plain
	$(BIN)/codespell src crates docs tests checks deploy examples spec/vectors/README.md *.md
	$(BIN)/python -m benchmarks.render --check
	$(BIN)/python -m checks.audit $(AUDIT)

fix: $(STAMPS)/tools toolchain ## Format and repair what a tool can
	cargo fmt
	cargo clippy --quiet --fix --allow-dirty --allow-staged --workspace --all-targets
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: build $(STAMPS)/benchmarks ## Measure beside the peers, write a record, render its tables and charts
	@benchmarks/install.sh
	$(BIN)/python -m benchmarks

.PHONY: console-assets
console-assets: $(STAMPS)/venv ## Fetch the scripts of the console from their npm packages, if their hashes are the listed ones
	$(BIN)/python -m checks.assets

.PHONY: screenshots
screenshots: build $(STAMPS)/tests ## Draw the pictures of the console, in docs/pictures/console
	$(BIN)/python -m tests.service.screenshots

.PHONY: compatibility
compatibility: build $(STAMPS)/tests servers ## Build the last tagged version, and run it beside this one on each store
	$(BIN)/python -m pytest tests/compatibility

deep: build $(STAMPS)/tests $(STAMPS)/deep servers ## The long proofs: a billion IDs, a million faults, crowds of processes, Redis clients of eight languages, fuzzing, an hour of the service, stalls, many more cases
	$(BIN)/python -m benchmarks.deep_threads
	$(BIN)/python -m tests.stress.threads --ids 1000000000 --jobs 2
	@if [ -n "$$MINTAGE_FREE_THREADED" ] || [ -x .cache/pythons/built/free/bin/python3.14t ]; then \
		$(BIN)/python -m tests.pythons 3.14t --tests tests/stress/test_threads.py && \
		PYTHON_GIL=0 .cache/pythons/3.14t/venv/bin/python -m tests.stress.threads --ids 1000000000 --jobs 2; \
		else echo "No threads ran without the GIL: tests/pythons/build.sh SOURCE builds such a CPython."; fi
	$(BIN)/python -m tests.integration.faults.clones
	$(BIN)/python -m tests.simulator --ids 100000000 --faults 1000000 --batch 400 --jobs 2
	for region in uuid.v1 uuid.v6 uuid.v7 ulid 'ksuid$$' ksuid_ms xid objectid sandflake; do \
		$(BIN)/python -m tests.simulator --regions "$$region" --ids 10000000 --batch 400 --jobs 2 || exit 1; done
	for region in 'sno$$' sno.shards 'snowflake$$' snowflake.narrow locality sequence uuid.v1 uuid.v6 uuid.v7 ulid 'ksuid$$' \
		ksuid_ms xid objectid sandflake; do \
		$(BIN)/python -m tests.simulator --divided --regions "$$region" --ids 10000000 --batch 400 --jobs 2 || exit 1; done
	MINTAGE_CONTRACT_TURNS=150 $(BIN)/python -m pytest tests/contract -k crowd
	tests/servers/kubernetes.sh
	MINTAGE_MORE_STORES=galera,pgbouncer $(BIN)/python -m pytest tests/contract/every_store -k "galera or pgbouncer"
	MINTAGE_CLUSTERS=galera,mysql_group $(BIN)/python -m pytest tests/contract/test_clusters.py
	MINTAGE_WHO_STORES=sqlite,postgresql,redis,mariadb,etcd,kubernetes $(BIN)/python -m pytest tests/integration/test_who.py
	MINTAGE_PROVE_SECONDS=60 MINTAGE_PROVE_STORES=sqlite,redis,postgresql,mariadb,valkey,mysql,redis_sentinel,redis_cluster,etcd,etcd_cluster,galera,mysql_group,pgbouncer,kubernetes \
		$(BIN)/python -m pytest tests/integration/test_prove.py
	MINTAGE_INTERRUPT_EVERY=1 $(BIN)/python -m pytest tests/contract/test_interrupts.py
	$(BIN)/python -m tests.stress --scale 10
	$(BIN)/python -m tests.runtimes --ids 100000
	$(BIN)/python tests/deep/fuzz.py --seconds 60
	$(BIN)/python -m pytest tests/contract tests/integration/test_faults.py -k kubernetes
	tests/servers/install.sh clients
	$(BIN)/python -m pytest tests/deep/randomness.py tests/deep/bundles.py tests/deep/clients.py
	$(BIN)/python -m tests.deep.sparks
	$(BIN)/python -m tests.deep.soak
	$(BIN)/python -m tests.deep.stalls $(PYTEST) tests/service tests/stress tests/contract tests/integration
	PROPTEST_CASES=100000 cargo test --locked --quiet --release -p mintage-core
	@if rustup component list --toolchain nightly --installed 2>/dev/null | grep -q '^rust-src'; then $(TSAN); \
		else echo "ThreadSanitizer did not run: it needs rustup toolchain install nightly --component rust-src."; fi
	$(BIN)/python -m pytest --hypothesis-profile=deep tests/stateful tests/unit

mutants: build $(STAMPS)/tests $(STAMPS)/mutants ## Break the code a line at a time, and name what no test notices: hours
	PROPTEST_CASES=32 .cache/bin/cargo-mutants mutants --output .cache || case $$? in 2 | 3) ;; *) exit 1 ;; esac # some were missed, or took too long
	$(BIN)/mutmut run
	$(BIN)/mutmut results
	tests/mutants/lines.sh

docs: build $(STAMPS)/docs $(STAMPS)/tests ## Build the documentation into docs/_build/html
	$(BIN)/sphinx-build --quiet -E -W --keep-going -n docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean: ## Remove everything that was built
	rm -rf $(VENV) target docs/_build

# ------------------------------------------------------------------------------------------------------------- set-up

.PHONY: toolchain
toolchain:
	@cargo --version 2>/dev/null | awk '{ split($$2, v, "."); found = v[1] * 1000 + v[2] >= 1085 } END { exit !found }' || { echo "mintage needs Rust 1.85 or newer, and this is $$(cargo --version 2>/dev/null || echo none): install it with rustup (https://rustup.rs), then run make again." >&2; exit 1; }

# What was interrupted is made anew: half an environment, or half a package, looks whole to Python and to pip.
$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "mintage needs Python 3.11 or newer: name one with make PYTHON=python3.12." >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { echo "mintage needs Python's venv module: install python3-venv, then run make again." >&2; exit 1; }
	@mkdir -p $(STAMPS)
	@touch $@

define install
@echo "Installing $<."
@again=$$(test ! -e $@.begun || echo --ignore-installed); touch $@.begun; $(PIP) install $$again -r $<
@rm $@.begun
@touch $@
endef

$(STAMPS)/build: $(STAMPS)/tools $(RUST) pyproject.toml crates/py/backend.py | toolchain
	@echo "Building the extension. The first time, that takes a minute or two."
	@CARGO_TERM_QUIET=true PIP_QUIET=1 VIRTUAL_ENV="$(abspath $(VENV))" RUSTFLAGS="$$($(PYTHON) crates/py/backend.py)" $(BIN)/maturin develop --release --locked --quiet
	@touch $@

$(STAMPS)/tools: requirements.txt $(STAMPS)/venv
	$(install)

$(STAMPS)/serve: deploy/requirements.txt $(STAMPS)/venv
	$(install)

$(STAMPS)/tests: tests/requirements.txt deploy/requirements.txt $(STAMPS)/venv
	$(install)

$(STAMPS)/audit: checks/requirements.txt $(STAMPS)/venv
	$(install)

$(STAMPS)/docs: docs/requirements.txt $(STAMPS)/venv
	$(install)

$(STAMPS)/benchmarks: benchmarks/requirements.txt deploy/requirements.txt $(STAMPS)/venv
	$(install)

$(STAMPS)/mutants: tests/mutants/requirements.txt $(STAMPS)/venv | toolchain
	@cargo install --quiet --locked --root .cache cargo-mutants@27.1.0
	$(install)

$(STAMPS)/wheels: tests/wheels/requirements.txt $(STAMPS)/venv
	$(install)

$(STAMPS)/deep: tests/deep/requirements.txt $(STAMPS)/venv
	$(install)
