# The commands of the project; `make` lists them. They need Rust, Python 3.10 or newer and make, and install everything else themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tools that are built from source, once, with pinned versions.
TOOLS := target/tools

# nextest runs each test in a process of its own, which the tests need: a process has one recorder. The nextest on the PATH is used if
# there is one.
ifneq ($(shell cargo nextest --version 2>/dev/null),)
NEXTEST := cargo nextest
else
NEXTEST_READY := $(TOOLS)/bin/cargo-nextest
NEXTEST := $(NEXTEST_READY) nextest
endif

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Not optimised: the build takes longer than the half second that the program runs.
.PHONY: demo
demo: export CARGO_PROFILE_DEV_OPT_LEVEL := 0
demo: export CARGO_PROFILE_DEV_DEBUG := 0
demo: $(VENV)/maturin ## Train a small model, print the table of a step and write its files; then let a slow program be explained
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet
	$(BIN)/python examples/train.py
	@echo
	$(BIN)/mindprof run --out out/slow_features examples/slow_features.py

.PHONY: test
test: test-rust test-loom test-python test-page ## Run every test: Rust, Python and the scripts of pages

.PHONY: quick
quick: setup $(NEXTEST_READY) ## Check what changed since origin/main: format, prose, the tests of changed crates and modules
	$(BIN)/python tools/quick.py --nextest "$(NEXTEST)" $(if $(SINCE),--since $(SINCE))

# The tests build the examples too, so these run as they are: `cargo run --package` would resolve features for that package alone and
# compile the workspace once more.
.PHONY: test-rust
test-rust: $(NEXTEST_READY) ## Run the Rust tests and the examples in the docs
	$(NEXTEST) run --workspace --no-fail-fast
	cargo test --workspace --doc --quiet
	target/debug/examples/profile > /dev/null
	target/debug/examples/read tests/goldens/h200-torch2.11/gpt-full.trace.json.gz out/read.pftrace > /dev/null

$(TOOLS)/bin/cargo-nextest:
	cargo install --quiet --locked --debug --root $(TOOLS) cargo-nextest@0.9.143

.PHONY: test-loom
test-loom: $(NEXTEST_READY) ## Check the lock-free parts of the recorder in every interleaving
	RUSTFLAGS="--cfg loom" $(NEXTEST) run --package mindprof-record --lib --target-dir target/loom

.PHONY: test-python
test-python: setup build ## Run the Python tests
	$(BIN)/python -m pytest -q tests
	$(BIN)/python -m pytest -q --doctest-modules python

# In a folder of its own: the native module without the embedded runtime, beside a copy of the packages.
WITHOUT_RUNTIME := target/without-runtime

.PHONY: test-without-runtime
test-without-runtime: setup build ## Build the native module without the embedded runtime and run the profiler's tests on it
	cargo build --quiet --package mindprof-python --no-default-features --features pyo3/extension-module --target-dir $(WITHOUT_RUNTIME)
	rm -rf $(WITHOUT_RUNTIME)/python
	cp -R python $(WITHOUT_RUNTIME)/python
	rm -f $(WITHOUT_RUNTIME)/python/mindprof/_core*.so
	cp $(WITHOUT_RUNTIME)/debug/lib_core.so $(WITHOUT_RUNTIME)/python/mindprof/_core.abi3.so
	PYTHONPATH=$(CURDIR)/$(WITHOUT_RUNTIME)/python $(BIN)/python -m pytest -q -p no:cacheprovider tests/python

# An interpreter that has torch. The target creates one unless TORCH_PYTHON names it.
ifndef TORCH_PYTHON
TORCH_PYTHON := target/parity/bin/python
PARITY_READY := target/parity/ready
endif
PARITY_TOOLS := target/parity-tools

.PHONY: parity
parity: $(PARITY_READY) $(PARITY_TOOLS)/ready ## Run the contract tests against the real torch
	CONTRACT_HOST=torch PYTHONPATH=$(PARITY_TOOLS) $(TORCH_PYTHON) -m pytest -q -p no:cacheprovider tests/contract

target/parity/ready: tools/parity-requirements.txt
	$(PYTHON) -m venv target/parity
	target/parity/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Installed beside the interpreter, so that a reused one stays unchanged.
$(PARITY_TOOLS)/ready: $(VENV)/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade --target $(PARITY_TOOLS) $$(grep ^pytest= tools/requirements.txt)
	touch $@

# The scripts of pages. Node runs their tests, and TypeScript checks their types; both are skipped, with a note, where they are missing.
PAGE := crates/report/page
NODE ?= node
TYPESCRIPT := target/typescript
TYPESCRIPT_VERSION := 5.9.3

.PHONY: test-page
test-page: ## Run the tests of the scripts of pages, by node
	@if command -v $(NODE) > /dev/null; then $(NODE) --test tests/page/; \
	else echo "skipped the tests of the scripts of pages: node is not installed"; fi

.PHONY: lint-page
lint-page: ## Check the types of the scripts of pages by TypeScript, which is installed where that is possible
	@if ! command -v $(NODE) > /dev/null; then echo "skipped the types of the scripts of pages: node is not installed"; \
	elif test -f $(TYPESCRIPT)/node_modules/typescript/lib/tsc.js || \
		npm install --silent --no-audit --no-fund --prefix $(TYPESCRIPT) typescript@$(TYPESCRIPT_VERSION) > /dev/null 2>&1; then \
		$(NODE) $(TYPESCRIPT)/node_modules/typescript/lib/tsc.js --noEmit --checkJs --strict --target es2023 --module nodenext \
			--moduleResolution nodenext --lib es2023,dom,dom.iterable $(PAGE)/main.js $(PAGE)/memory_main.js $(PAGE)/ranks_main.js; \
	else echo "skipped the types of the scripts of pages: TypeScript cannot be installed"; fi

# Real browsers: Debian's Chromium, installed where that is possible, and Firefox if it is installed.
AXE := target/axe/node_modules/axe-core/axe.min.js
CHROMIUM := $(firstword $(shell command -v chromium chromium-browser google-chrome 2> /dev/null))

.PHONY: test-browser
test-browser: setup build ## Open reports in Chromium, and in Firefox if there is one, and use every pane; installs Debian's chromium where it may
	$(if $(CHROMIUM),,timeout 300 apt-get install --yes --quiet chromium || echo "no Chromium: its tests are skipped")
	test -f $(AXE) || npm install --silent --no-audit --no-fund --prefix target/axe axe-core@4.11.0 > /dev/null 2>&1 || true
	BROWSER_TESTS=1 AXE=$(CURDIR)/$(AXE) $(BIN)/python -m pytest -q -p no:cacheprovider tests/browser

# Programs that read the files that mindprof writes, in an environment of their own. Those that could not be installed are tried again
# next time.
CLIENTS := target/clients

.PHONY: test-clients
test-clients: build $(CLIENTS)/ready ## Read our files with HTA, TensorBoard's plugin, Perfetto, speedscope, DuckDB, polars and pandas
	CLIENTS=$(CURDIR)/$(CLIENTS) PYTHONPATH=$(CURDIR)/python $(CLIENTS)/bin/python -m pytest -q -p no:cacheprovider tests/clients

$(CLIENTS)/ready: tools/clients.py tools/clients-requirements.txt
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python tools/clients.py $(CLIENTS)
	if [ ! -s $(CLIENTS)/unavailable ]; then touch $@; fi

# Clusters on this machine that read the files of a job, in an environment of their own.
RAY := target/ray

.PHONY: test-ray
test-ray: build $(RAY)/ready ## Read the ranks of a job on real Ray and Dask clusters whose workers are killed, and from object stores
	RAY_TESTS=1 PYTHONPATH=$(CURDIR)/python:$(CURDIR) $(RAY)/bin/python -m pytest -q -p no:cacheprovider tests/ray

$(RAY)/ready: tools/ray-requirements.txt
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

.PHONY: lint
lint: setup build lint-page ## Check format, lints, types, stubs, docs, prose and the dependencies between crates
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	$(BIN)/python tools/layers.py
	$(BIN)/python tools/prose.py
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy
	$(BIN)/stubtest mindprof._core --ignore-disjoint-bases

.PHONY: bench
bench: build-release ## Measure recorded scopes, operators, the Python API, imports, reading of traces and conclusions
	cargo bench --quiet --package mindprof-record
	cargo bench --quiet --package mindprof-answers
	$(BIN)/python benchmarks/python_face.py
	$(BIN)/python benchmarks/host_door.py
	$(BIN)/python benchmarks/import_time.py
	cargo build --quiet --release --package mindprof-cli
	$(BIN)/python benchmarks/read_trace.py

FUZZ_SECONDS ?= 600
FUZZ_TARGETS := bytes events compressed ascend database folder snapshot
FUZZ_NIGHTLY ?= nightly

ifeq ($(shell cargo fuzz --version 2>/dev/null),)
FUZZ_READY := $(TOOLS)/bin/cargo-fuzz
endif

.PHONY: fuzz
fuzz: $(FUZZ_READY) ## Feed damaged traces to the reader, each target for FUZZ_SECONDS; installs nightly Rust and cargo-fuzz
	@rustup toolchain list | grep -q "^$(FUZZ_NIGHTLY)" || rustup toolchain install $(FUZZ_NIGHTLY) --no-self-update --profile minimal
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target && \
		PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" cargo +$(FUZZ_NIGHTLY) fuzz run $$target fuzz/corpus/$$target fuzz/seeds -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done

$(TOOLS)/bin/cargo-fuzz:
	cargo install --quiet --locked --debug --root $(TOOLS) cargo-fuzz@0.13.2

SOAK_SECONDS ?= 600
SOAK_SEED ?=
SOAK_OPTIONS ?= --seconds $(SOAK_SECONDS)

# The second part needs torch, and takes half an hour.
.PHONY: soak
soak: build-release ## Stress the profiler for SOAK_SECONDS with random rounds from SOAK_SEED, then real torch with interrupts, forks and threads
	cd tools && ../$(BIN)/python -m soak $(SOAK_OPTIONS) $(if $(SOAK_SEED),--seed $(SOAK_SEED))
	@if $(TORCH_PYTHON) -c 'import torch' 2> /dev/null; then \
		CUDA_VISIBLE_DEVICES= PYTHONPATH=python:tools $(TORCH_PYTHON) -W ignore -m soak_torch all; \
	else \
		echo "skipped the stresses of real torch: $(TORCH_PYTHON) has no torch; name an interpreter with TORCH_PYTHON=..."; \
	fi

# The nightly compiler of the sanitizers, pinned because a newer one may not build the tree. NIGHTLY=... names another.
NIGHTLY ?= nightly-2026-05-20
NIGHTLY_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
NIGHTLY_PARTS := rust-src miri

.PHONY: sanitize
sanitize: sanitize-threads sanitize-memory sanitize-miri ## Run concurrent and unsafe code under ThreadSanitizer, AddressSanitizer and Miri; installs nightly Rust

# Without backtraces: tests that panic on purpose would resolve every frame under the sanitizer, which takes minutes.
sanitize-threads sanitize-memory sanitize-miri: export RUST_BACKTRACE := 0

.PHONY: nightly
nightly:
	@for part in $(NIGHTLY_PARTS); do \
		rustup component list --installed --toolchain $(NIGHTLY) 2>/dev/null | grep -q "^$$part" || \
		rustup toolchain install $(NIGHTLY) --no-self-update --profile minimal --component $$part || \
		{ echo "$(NIGHTLY) with $$part is not installed and cannot be fetched: name another with NIGHTLY=..." >&2; exit 1; }; \
	done

# The standard library is instrumented too, because its channels and locks order the threads. The recorder runs both as a program links
# it and, with the feature `loaded`, as the native module does.
.PHONY: sanitize-threads
sanitize-threads: nightly ## Run the tests of the recorder and of the PyTorch observer under ThreadSanitizer
	for features in "" loaded; do \
		RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" cargo +$(NIGHTLY) test -Zbuild-std \
			--target $(NIGHTLY_HOST) --target-dir target/tsan --package mindprof-record --features "$$features" \
			--lib --tests -- --test-threads=1 || exit 1; \
	done
	RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" cargo +$(NIGHTLY) test -Zbuild-std \
		--target $(NIGHTLY_HOST) --target-dir target/tsan --package mindprof-pytorch --lib -- --test-threads=1

# Object lifetimes, stacks, forks, tensors and numpy.
MEMORY_TESTS := $(addprefix tests/python/test_,life.py fork.py stacks.py stack_calls.py stack_leaks.py stack_tools.py \
	tensor_bad_input.py tensor_composites.py tensor_expressions.py tensor_fuzz.py tensor_limits.py tensor_memory.py tensor_numpy.py)
# These assert that memory does not grow, but the sanitizer quarantines freed memory to detect its use.
MEMORY_TESTS += $(addprefix --deselect tests/python/test_life.py::test_,500_cycles_leak_nothing \
	one_profiler_started_500_times_leaks_nothing threads_that_come_and_go_leak_nothing)

# The interpreter is not instrumented, so the sanitizer's runtime has to be preloaded; the C compiler has it as a shared library. Python
# allocates objects by malloc, so that they are checked too. Leak detection is off because the interpreter frees little at exit. An
# allocation that is too large returns null, as it does without a sanitizer.
.PHONY: sanitize-memory
sanitize-memory: nightly setup ## Run the tests of unsafe code under AddressSanitizer
	RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS="detect_leaks=0" cargo +$(NIGHTLY) test \
		--target $(NIGHTLY_HOST) --target-dir target/asan --package mindprof-pytorch --lib -- --test-threads=1
	RUSTFLAGS="-Zsanitizer=address" cargo +$(NIGHTLY) build --target $(NIGHTLY_HOST) --target-dir target/asan \
		--package mindprof-python --features pyo3/extension-module
	rm -rf target/asan/python
	cp -R python target/asan/python
	rm -f target/asan/python/mindprof/_core*.so
	cp target/asan/$(NIGHTLY_HOST)/debug/lib_core.so target/asan/python/mindprof/_core.abi3.so
	PYTHONPATH=$(CURDIR)/target/asan/python PYTHONMALLOC=malloc LD_PRELOAD="$$(cc -print-file-name=libasan.so)" \
		ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1" \
		$(BIN)/python -m pytest -q -p no:cacheprovider $(MEMORY_TESTS)

# Isolation is off because the recorder reads the system clock. Two cases per property are enough to find undefined behaviour.
# Left out because Miri is too slow: tests that fill thousands of slots or names, packed texts, and whole recordings.
# Left out because Miri does not support them: the feature `loaded` (inline assembly), fork hooks, the time stamp counter, huge pages.
# The other unsafe crates call C, which Miri cannot run; `sanitize-memory` covers them.
MIRI_RECORD := budget chunk clock diffing_writer fast_thread_local name nesting open::tests::plain::a_snapshot open::tests::plain::closing raw
MIRI_RECORD_SKIP := functions_are_bounded scopes_that_the_budget_has_no_slots_for

.PHONY: sanitize-miri
sanitize-miri: nightly ## Run the tests of the recorder and the model that Miri supports under Miri
	MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=2 PROPTEST_DISABLE_FAILURE_PERSISTENCE=true \
		cargo +$(NIGHTLY) miri test --target-dir target/miri --package mindprof-record --lib -- --test-threads=1 \
		$(MIRI_RECORD) $(addprefix --skip ,$(MIRI_RECORD_SKIP))
	MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=2 PROPTEST_DISABLE_FAILURE_PERSISTENCE=true \
		cargo +$(NIGHTLY) miri test --target-dir target/miri --package mindprof-model --lib -- --test-threads=1 \
		builder
	@echo "NOT RUN under Miri: the other tests of record and model, and all other crates; the Makefile explains why"

DENY := $(TOOLS)/bin/cargo-deny

$(DENY):
	cargo install --quiet --locked --debug --root $(TOOLS) cargo-deny@0.20.2

.PHONY: audit
audit: $(DENY) ## Check licences, advisories, duplicates and sources of dependencies by deny.toml; installs cargo-deny
	@status=0; \
	$(DENY) --locked check --deny unmatched-skip bans licenses sources || status=1; \
	if $(DENY) fetch db; then \
		$(DENY) --locked check advisories || status=1; \
	else \
		echo "ADVISORIES NOT CHECKED: the database could not be fetched; the other checks ran"; \
	fi; \
	exit $$status

# Interpreters that have torch, numpy and pytest. Without TORCH_PYTHONS, an environment is created for each version.
TORCH_VERSIONS ?= 2.15.0 2.11.0 2.7.1
ifndef TORCH_PYTHONS
TORCH_PYTHONS := $(TORCH_VERSIONS:%=target/torch-%/bin/python)
TORCHES_READY := $(TORCH_VERSIONS:%=target/torch-%/ready)
endif

target/torch-%/ready:
	$(PYTHON) -m venv target/torch-$*
	target/torch-$*/bin/pip install --quiet --disable-pip-version-check torch==$* numpy pytest
	touch $@

# Run once more if there is a GPU. All other tests cover recording without one.
DEVICE_TESTS := $(addprefix tests/pytorch/test_,device_links.py device_records.py devices.py kineto.py kineto_events.py \
	kineto_safety.py memory.py profiler_enabled.py stacks.py switches.py)

.PHONY: test-pytorch
test-pytorch: build $(TORCHES_READY) ## Record real PyTorch; TORCH_PYTHONS=... names interpreters that have it
	@status=0; for python in $(TORCH_PYTHONS); do \
		echo "$$python: torch $$($$python -c 'import torch; print(torch.__version__)')"; \
		CUDA_VISIBLE_DEVICES= PYTHONPATH=$(CURDIR)/python $$python -m pytest -q tests/pytorch || status=1; \
		if $$python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
			PYTHONPATH=$(CURDIR)/python $$python -m pytest -q $(DEVICE_TESTS) || status=1; \
		fi; \
	done; exit $$status

# An interpreter with the trainers. The target creates one unless TRAINERS_PYTHON names it.
ifndef TRAINERS_PYTHON
TRAINERS_PYTHON := target/trainers/bin/python
TRAINERS_READY := target/trainers/ready
endif

.PHONY: test-trainers
test-trainers: build $(TRAINERS_READY) ## Run the trainers of Hugging Face and Lightning with their profiler callbacks on the engine
	PYTHONPATH=$(CURDIR)/python $(TRAINERS_PYTHON) -m pytest -q -p no:cacheprovider tests/trainers

target/trainers/ready: tools/trainers-requirements.txt
	$(PYTHON) -m venv target/trainers
	target/trainers/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# The folder `src` of a checkout of MindTorch v2, which is not part of this project.
MINDTORCH_SRC ?=

.PHONY: test-mindtorch
test-mindtorch: setup build ## Record the real MindTorch v2 and run its profiler tests on the engine; needs MINDTORCH_SRC=.../src
	@test -d "$(MINDTORCH_SRC)/mindtorch_v2" || { echo "mindtorch_v2 not found: set MINDTORCH_SRC to the folder src of a MindTorch checkout" >&2; exit 1; }
	MINDTORCH_SRC="$(abspath $(MINDTORCH_SRC))" $(BIN)/python -m pytest -q -p no:cacheprovider tests/mindtorch

# A checkout of torch, which is not part of this project, and an interpreter with torch of about its version.
TORCH_SRC ?=
TORCH_SUITES := target/torch-suites
ifndef TORCH_SUITES_PYTHON
TORCH_SUITES_PYTHON := $(TORCH_SUITES)/bin/python
TORCH_SUITES_READY := $(TORCH_SUITES)/ready
endif

.PHONY: test-torch-suites
test-torch-suites: build $(TORCH_SUITES_READY) ## Run torch's own profiler tests with the engine installed; needs TORCH_SRC=..., FILES=... selects
	@test -d "$(TORCH_SRC)/test/profiler" || { echo "torch's tests not found: set TORCH_SRC to a checkout of torch" >&2; exit 1; }
	$(PYTHON) -m tests.torch_suites.run "$(TORCH_SRC)" $(FILES) --python $(abspath $(TORCH_SUITES_PYTHON))

$(TORCH_SUITES)/ready: tools/torch-suites-requirements.txt
	$(PYTHON) -m venv $(TORCH_SUITES)
	$(TORCH_SUITES)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

.PHONY: bench-mindtorch
bench-mindtorch: build-release ## Measure an operator of MindTorch v2 against its own profiler; needs MINDTORCH_SRC=.../src
	PYTHONPATH="$(abspath $(MINDTORCH_SRC)):$(CURDIR)/python" $(BIN)/python benchmarks/mindtorch.py

.PHONY: bench-torch
bench-torch: build-release $(PARITY_READY) ## Measure results against the real torch.profiler
	$(BIN)/python benchmarks/bench_torch.py --torch-python $(TORCH_PYTHON)

.PHONY: bench-pytorch
bench-pytorch: build-release $(PARITY_READY) ## Measure recording of real PyTorch against torch.profiler
	PYTHONPATH=python $(TORCH_PYTHON) benchmarks/pytorch.py

.PHONY: bench-kineto
bench-kineto: build-release $(PARITY_READY) ## Measure reading the results of torch's collector against torch itself
	PYTHONPATH=python $(TORCH_PYTHON) benchmarks/kineto.py

# An environment of its own, because HTA's critical path fails with the pandas that the clients are tested with. A million events.
HTA := target/hta
HTA_TRACES ?= tests/goldens/h200-torch2.11/gpt-full.trace.json.gz
HTA_MEGABYTES ?= 700

$(HTA)/ready:
	$(PYTHON) -m venv $(HTA)
	$(HTA)/bin/pip install --quiet --disable-pip-version-check HolisticTraceAnalysis==0.5.0 "pandas<3"
	touch $@

.PHONY: bench-hta
bench-hta: $(HTA)/ready ## Measure device and critical-path against HTA on HTA_TRACES, repeated up to HTA_MEGABYTES of JSON
	cargo build --quiet --release --package mindprof-cli
	$(HTA)/bin/python benchmarks/hta.py --hta-python $(HTA)/bin/python --rounds 1 --megabytes $(HTA_MEGABYTES) $(HTA_TRACES)

.PHONY: bench-write
bench-write: build-release $(PARITY_READY) ## Measure writing traces against the real torch.profiler
	$(BIN)/python benchmarks/write_trace.py --torch-python $(TORCH_PYTHON)

.PHONY: ci
ci: lint test test-browser ## Run lint and all tests, those in a browser included: every change has to pass them

.PHONY: format
format: setup ## Format all code
	cargo fmt
	$(BIN)/ruff format --quiet
	$(BIN)/ruff check --fix --quiet

# The selection of packages and targets decides on the features that cargo resolves: with that of the tests, the module, the program and
# the tests share one build of the workspace. `maturin develop` would compile most of it a second time; outside Linux it is needed to link.
.PHONY: build
build: $(VENV)/maturin ## Build the native module and the program in the test profile, quick to build, into the virtual environment
ifeq ($(shell uname -s),Linux)
	cargo build --quiet --workspace --lib --bins --examples --features pyo3/extension-module
	$(BIN)/python tools/develop.py target/debug
else
	cargo build --quiet --workspace --bins --examples
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet
endif

# Benchmarks and the soak run the profile that users get, but keep symbols, so that a native profiler can resolve frames.
bench build-release: export CARGO_PROFILE_RELEASE_STRIP := none

.PHONY: build-release
build-release: setup ## Build the native module in the profile of the wheels: quick to run
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet

WHEEL_TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
WHEEL_TOOLS := target/wheel-tools
# Passed on explicitly, because a source distribution is unpacked outside the reach of rust-toolchain.toml.
RUST_TOOLCHAIN = $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
# The wheels as linked, with symbols.
WHEELS_WITH_SYMBOLS := target/wheel/with-symbols

# Wheels are built from the source distribution, so that testing them tests it too. Paths of this machine are remapped out of the
# binaries. The build starts from scratch, because all files of a source distribution have the same old modification time, and cargo
# would take the artifacts of an earlier one for current.
.PHONY: wheel
wheel: $(WHEEL_TOOLS)/ready ## Build wheels for WHEEL_TARGETS and the source distribution into dist, and symbols into dist/debug; installs zig
	rm -rf dist target/wheel
	@for target in $(WHEEL_TARGETS); do \
		rustup target list --installed | grep -qx $$target || rustup target add $$target || exit 1; \
	done
	for target in $(WHEEL_TARGETS); do \
		PATH="$(CURDIR)/$(WHEEL_TOOLS)/bin:$$PATH" RUSTUP_TOOLCHAIN=$(RUST_TOOLCHAIN) \
		CARGO_TARGET_DIR=$(CURDIR)/target/wheel CARGO_PROFILE_RELEASE_STRIP=none \
		RUSTFLAGS="--remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=cargo" \
			maturin build --release --locked --quiet --sdist --zig --compatibility manylinux2014 \
			--target $$target --out $(WHEELS_WITH_SYMBOLS) || exit 1; \
	done
	$(WHEEL_TOOLS)/bin/python tools/strip_wheel.py $(WHEELS_WITH_SYMBOLS)/*.whl dist
	cp $(WHEELS_WITH_SYMBOLS)/*.tar.gz dist

$(WHEEL_TOOLS)/ready: tools/wheel-requirements.txt
	$(PYTHON) -m venv $(WHEEL_TOOLS)
	$(WHEEL_TOOLS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# EMULATOR="qemu-aarch64 -L ROOT ROOT/usr/bin/python3" runs the wheel of the other processor too.
EMULATOR ?=
# Further interpreters, beside those on the PATH and those of pyenv and uv.
PYTHONS ?=

.PHONY: test-wheel
test-wheel: ## Install the wheels of dist into empty environments of Python 3.10 to 3.14, as far as found, and use them
	$(PYTHON) tools/try_wheel.py dist $(addprefix --python ,$(PYTHONS)) $(if $(EMULATOR),--emulator "$(EMULATOR)")

.PHONY: setup
setup: $(VENV)/ready ## Create the virtual environment with the development tools

$(VENV)/ready: $(VENV)/maturin
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement tools/requirements.txt
	touch $@

# The demo needs maturin alone, and should not wait for the other tools.
$(VENV)/maturin: tools/requirements.txt
	$(PYTHON) -c 'import sys; sys.exit("mindprof needs Python 3.10 or newer") if sys.version_info < (3, 10) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $$(grep ^maturin= tools/requirements.txt)
	touch $@

.PHONY: clean
clean: ## Remove everything that was built, and the virtual environment
	cargo clean
	rm -rf $(VENV) dist out
