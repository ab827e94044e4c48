# The list of commands. Needs Rust, Python 3.10 or newer and make; everything else is set up by the targets themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# nextest runs each test in a process of its own; without it one test at a time does, since the recorder is one per process.
ifneq ($(shell cargo nextest --version 2>/dev/null),)
RUST_TESTS := cargo nextest run --workspace --no-fail-fast
else
RUST_TESTS := cargo test --workspace --lib --bins --tests -- --test-threads=1
endif

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Not optimised at all: somebody waits for the build, and the program runs for half a second.
.PHONY: demo
demo: export CARGO_PROFILE_DEV_OPT_LEVEL := 0
demo: export CARGO_PROFILE_DEV_DEBUG := 0
demo: build ## Train a small model, print the table of a step, write its trace and its memory
	$(BIN)/python examples/train.py

.PHONY: test
test: test-rust test-loom test-python ## Run every test, Rust and Python

.PHONY: test-rust
test-rust: ## Run the Rust tests and the examples in the docs
	$(RUST_TESTS)
	cargo test --workspace --doc --quiet
	cargo run --quiet --package mindprof --example profile > /dev/null
	cargo run --quiet --package mindprof --example read -- \
		tests/goldens/h200-torch2.11/gpt-full.trace.json.gz out/read.pftrace > /dev/null

.PHONY: test-loom
test-loom: ## Check what crosses threads in every order in which it can happen
	RUSTFLAGS="--cfg loom" cargo test --package mindprof-record --lib --target-dir target/loom

.PHONY: test-python
test-python: setup build program ## Run the Python tests
	$(BIN)/python -m pytest -q tests
	$(BIN)/python -m pytest -q --doctest-modules python

# The interpreter with the real torch: one that the target makes itself, or one that is given, to be reused.
ifndef TORCH_PYTHON
TORCH_PYTHON := target/parity/bin/python
PARITY_READY := target/parity/ready
endif
PARITY_TOOLS := target/parity-tools

.PHONY: parity
parity: $(PARITY_READY) $(PARITY_TOOLS)/ready ## Run the contract's tests against the real torch
	CONTRACT_HOST=torch PYTHONPATH=$(PARITY_TOOLS) $(TORCH_PYTHON) -m pytest -q -p no:cacheprovider tests/contract

target/parity/ready: tools/parity-requirements.txt
	$(PYTHON) -m venv target/parity
	target/parity/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Beside the interpreter and not in it, so that one that is reused stays as it is.
$(PARITY_TOOLS)/ready: $(VENV)/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade --target $(PARITY_TOOLS) $$(grep ^pytest= tools/requirements.txt)
	touch $@

# Other programs that read what is written here, in an environment of their own. What could not be had is tried again next time.
CLIENTS := target/clients

.PHONY: test-clients
test-clients: build program $(CLIENTS)/ready ## Let HTA, TensorBoard's plugin, Perfetto, speedscope, DuckDB, polars and pandas read our files
	CLIENTS=$(CURDIR)/$(CLIENTS) PYTHONPATH=$(CURDIR)/python $(CLIENTS)/bin/python -m pytest -q -p no:cacheprovider tests/clients

$(CLIENTS)/ready: tools/clients.py tools/clients-requirements.txt
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python tools/clients.py $(CLIENTS)
	if [ ! -s $(CLIENTS)/unavailable ]; then touch $@; fi

.PHONY: lint
lint: setup build ## Check format, lints, types, stubs, docs and the direction of the crates
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	$(BIN)/python tools/layers.py
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy
	$(BIN)/stubtest mindprof._core --ignore-disjoint-bases

.PHONY: bench
bench: build-release ## Measure: a recorded scope, ops, the Python face
	cargo bench --quiet --package mindprof-record
	$(BIN)/python benchmarks/python_face.py
	$(BIN)/python benchmarks/host_door.py
	$(BIN)/python benchmarks/import_time.py
	cargo build --quiet --release --package mindprof-cli
	$(BIN)/python benchmarks/read_trace.py

FUZZ_SECONDS ?= 600
FUZZ_TARGETS := bytes events compressed

.PHONY: fuzz
fuzz: ## Feed the reader of traces with damage, each target for FUZZ_SECONDS; needs nightly Rust and cargo-fuzz
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target && \
		cargo +nightly fuzz run $$target fuzz/corpus/$$target fuzz/seeds -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done

SOAK_SECONDS ?= 600
SOAK_SEED ?=
SOAK_OPTIONS ?= --seconds $(SOAK_SECONDS)

.PHONY: soak
soak: build-release ## Use the profiler roughly for SOAK_SECONDS, at random from SOAK_SEED, and check after each round
	cd tools && ../$(BIN)/python -m soak $(SOAK_OPTIONS) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

# The compiler that the sanitizers come with, to the day: the newest may not build what is here. NIGHTLY=... names another.
NIGHTLY ?= nightly-2026-05-20
NIGHTLY_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
NIGHTLY_PARTS := rust-src miri

.PHONY: sanitize
sanitize: sanitize-threads sanitize-memory sanitize-miri ## Run what crosses threads and what is unsafe under three sanitizers; installs nightly Rust

# Tests that panic on purpose would look up each frame of their stacks under the sanitizer, which takes minutes.
sanitize-threads sanitize-memory sanitize-miri: export RUST_BACKTRACE := 0

.PHONY: nightly
nightly:
	@for part in $(NIGHTLY_PARTS); do \
		rustup component list --installed --toolchain $(NIGHTLY) 2>/dev/null | grep -q "^$$part" || \
		rustup toolchain install $(NIGHTLY) --no-self-update --profile minimal --component $$part || \
		{ echo "NOT SANITIZED: there is no $(NIGHTLY) with $$part, and it could not be installed" >&2; exit 1; }; \
	done

# With a standard library that is checked too: its channels and locks order what threads do. As a program has it, and as the native
# module does.
.PHONY: sanitize-threads
sanitize-threads: nightly ## Run the tests of the recorder and of the observer of torch under ThreadSanitizer
	for features in "" loaded; do \
		RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" cargo +$(NIGHTLY) test -Zbuild-std \
			--target $(NIGHTLY_HOST) --target-dir target/tsan --package mindprof-record --features "$$features" \
			--lib --tests -- --test-threads=1 || exit 1; \
	done
	RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" cargo +$(NIGHTLY) test -Zbuild-std \
		--target $(NIGHTLY_HOST) --target-dir target/tsan --package mindprof-pytorch --lib -- --test-threads=1

# Life, stacks, forks, tensors and numpy.
MEMORY_TESTS := $(addprefix tests/python/test_,life.py fork.py stacks.py stack_calls.py stack_leaks.py stack_tools.py \
	tensor_bad_input.py tensor_composites.py tensor_expressions.py tensor_fuzz.py tensor_limits.py tensor_memory.py tensor_numpy.py)
# The sanitizer keeps what was freed, so that a use of it is seen: these ask that memory does not grow.
MEMORY_TESTS += $(addprefix --deselect tests/python/test_life.py::test_,500_cycles_leak_nothing \
	one_profiler_started_500_times_leaks_nothing threads_that_come_and_go_leak_nothing)

# The runtime is that of the C compiler, because an interpreter that knows nothing of it needs one that can be loaded first.
# Python's objects come from malloc, so that they are checked too. Leaks are not looked for: the interpreter keeps what it has to the
# end. An allocation that is too large fails, as it does without a sanitizer.
.PHONY: sanitize-memory
sanitize-memory: nightly setup ## Run the tests of what is unsafe under AddressSanitizer
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

# Isolation is off because the clock looks at the system's. Two cases of a property are enough for what is looked for here.
# Not run, because Miri is too slow: what fills thousands of slots or names, packed texts, and tests of whole recordings.
# Not run, because Miri cannot: the feature `loaded` (an instruction of its own), hooks around forks, the time stamp counter, huge pages.
# The other unsafe crates call C, which Miri does not know: `sanitize-memory` is for them.
MIRI_RECORD := budget chunk clock diffing_writer fast_thread_local name nesting open::tests::plain::a_snapshot open::tests::plain::closing raw
MIRI_RECORD_SKIP := functions_are_bounded scopes_that_the_budget_has_no_slots_for

.PHONY: sanitize-miri
sanitize-miri: nightly ## Run under Miri what it can run of the recorder and the model
	MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=2 PROPTEST_DISABLE_FAILURE_PERSISTENCE=true \
		cargo +$(NIGHTLY) miri test --target-dir target/miri --package mindprof-record --lib -- --test-threads=1 \
		$(MIRI_RECORD) $(addprefix --skip ,$(MIRI_RECORD_SKIP))
	MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=2 PROPTEST_DISABLE_FAILURE_PERSISTENCE=true \
		cargo +$(NIGHTLY) miri test --target-dir target/miri --package mindprof-model --lib -- --test-threads=1 \
		builder
	@echo "NOT RUN under Miri: the other tests of record and model, and all other crates; the Makefile says why"

# Built once, unoptimised: it runs for seconds.
DENY := target/tools/bin/cargo-deny

$(DENY):
	cargo install --quiet --locked --debug --root target/tools cargo-deny@0.20.2

.PHONY: audit
audit: $(DENY) ## Check licences, advisories, duplicates and sources of the crates by deny.toml; installs cargo-deny
	@status=0; \
	$(DENY) --locked check --deny unmatched-skip bans licenses sources || status=1; \
	if $(DENY) fetch db; then \
		$(DENY) --locked check advisories || status=1; \
	else \
		echo "ADVISORIES NOT CHECKED: their database could not be fetched; all else was checked"; \
	fi; \
	exit $$status

# Interpreters that have torch and pytest; others are made, one environment for each version.
TORCH_VERSIONS ?= 2.15.0 2.11.0 2.7.1
ifndef TORCH_PYTHONS
TORCH_PYTHONS := $(TORCH_VERSIONS:%=target/torch-%/bin/python)
TORCHES_READY := $(TORCH_VERSIONS:%=target/torch-%/ready)
endif

target/torch-%/ready:
	$(PYTHON) -m venv target/torch-$*
	target/torch-$*/bin/pip install --quiet --disable-pip-version-check torch==$* numpy pytest
	touch $@

# Run once more where there is a device. The others are about the way that is taken without one.
DEVICE_TESTS := tests/pytorch/test_kineto.py tests/pytorch/test_kineto_safety.py

.PHONY: test-pytorch
test-pytorch: build $(TORCHES_READY) ## Record real PyTorch: TORCH_PYTHONS=... are interpreters that have it
	@status=0; for python in $(TORCH_PYTHONS); do \
		echo "$$python: torch $$($$python -c 'import torch; print(torch.__version__)')"; \
		CUDA_VISIBLE_DEVICES= PYTHONPATH=python $$python -m pytest -q tests/pytorch || status=1; \
		if $$python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
			PYTHONPATH=python $$python -m pytest -q $(DEVICE_TESTS) || status=1; \
		fi; \
	done; exit $$status

# An interpreter with the trainers: one that the target makes itself, or one that is given.
ifndef TRAINERS_PYTHON
TRAINERS_PYTHON := target/trainers/bin/python
TRAINERS_READY := target/trainers/ready
endif

.PHONY: test-trainers
test-trainers: build $(TRAINERS_READY) ## Run Hugging Face's and Lightning's trainers with their own profilers on the engine
	PYTHONPATH=$(CURDIR)/python $(TRAINERS_PYTHON) -m pytest -q -p no:cacheprovider tests/trainers

target/trainers/ready: tools/trainers-requirements.txt
	$(PYTHON) -m venv target/trainers
	target/trainers/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# A checkout of MindTorch v2: its folder src. Nothing of it is part of this project.
MINDTORCH_SRC ?=

.PHONY: test-mindtorch
test-mindtorch: setup build ## Record the real MindTorch v2 and run its own profiler tests on the engine: MINDTORCH_SRC=.../src
	@test -d "$(MINDTORCH_SRC)/mindtorch_v2" || { echo "MINDTORCH_SRC=... has to name the folder that holds mindtorch_v2" >&2; exit 1; }
	MINDTORCH_SRC="$(abspath $(MINDTORCH_SRC))" $(BIN)/python -m pytest -q -p no:cacheprovider tests/mindtorch

.PHONY: bench-mindtorch
bench-mindtorch: build-release ## Measure an operator of MindTorch v2 against its own profiler: MINDTORCH_SRC=.../src
	PYTHONPATH="$(abspath $(MINDTORCH_SRC)):$(CURDIR)/python" $(BIN)/python benchmarks/mindtorch.py

.PHONY: bench-torch
bench-torch: build-release $(PARITY_READY) ## Measure against the real torch.profiler, in an environment of its own
	$(BIN)/python benchmarks/bench_torch.py --torch-python $(TORCH_PYTHON)

.PHONY: bench-pytorch
bench-pytorch: build-release $(PARITY_READY) ## Measure recording of real PyTorch against torch.profiler
	PYTHONPATH=python $(TORCH_PYTHON) benchmarks/pytorch.py

.PHONY: bench-kineto
bench-kineto: build-release $(PARITY_READY) ## Measure results of torch's own collector, ours against torch's
	PYTHONPATH=python $(TORCH_PYTHON) benchmarks/kineto.py

.PHONY: bench-write
bench-write: build-release $(PARITY_READY) ## Measure writing of traces against the real torch.profiler
	$(BIN)/python benchmarks/write_trace.py --torch-python $(TORCH_PYTHON)

.PHONY: ci
ci: lint test ## What has to pass before a change lands

.PHONY: format
format: setup ## Format all code
	cargo fmt
	$(BIN)/ruff format --quiet
	$(BIN)/ruff check --fix --quiet

.PHONY: build
build: $(VENV)/maturin ## Build the native module into the virtual environment, in the profile of the tests: quick to build
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet

# Speed is measured, and rough use tried, on what users get; but with symbols, so that a profiler of programs can name what it sees.
bench build-release: export CARGO_PROFILE_RELEASE_STRIP := none

.PHONY: build-release
build-release: setup ## Build it in the profile of the wheels: quick to run
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet

WHEEL_TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
WHEEL_TOOLS := target/wheel-tools
# Named, because a source distribution is unpacked where rust-toolchain.toml is not seen.
RUST_TOOLCHAIN = $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
# As they are linked, with their symbols.
WHEELS_WITH_SYMBOLS := target/wheel/with-symbols

# Each from the source distribution, so that what is built from it is what was tried. Nothing tells where crates lay. From nothing each
# time: all files of a source distribution are of one day long ago, so that cargo takes what it built of an earlier one for new.
.PHONY: wheel
wheel: $(WHEEL_TOOLS)/ready ## Build wheels for WHEEL_TARGETS and the source distribution into dist, symbols aside; installs zig
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
	$(PYTHON) tools/strip_wheel.py $(WHEELS_WITH_SYMBOLS)/*.whl dist
	cp $(WHEELS_WITH_SYMBOLS)/*.tar.gz dist

$(WHEEL_TOOLS)/ready: tools/wheel-requirements.txt
	$(PYTHON) -m venv $(WHEEL_TOOLS)
	$(WHEEL_TOOLS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# EMULATOR="qemu-aarch64 -L ROOT ROOT/usr/bin/python3" tries the wheel of the other processor too.
EMULATOR ?=
# Pythons that are not where they are looked for.
PYTHONS ?=

.PHONY: test-wheel
test-wheel: ## Install the wheels of dist into empty environments of Python 3.10 to 3.14, those that are found, and use them
	$(PYTHON) tools/try_wheel.py dist $(addprefix --python ,$(PYTHONS)) $(if $(EMULATOR),--emulator "$(EMULATOR)")

.PHONY: program
program: ## Build the program mindprof as the Python tests run it
	cargo build --quiet --package mindprof-cli

.PHONY: setup
setup: $(VENV)/ready ## Make the virtual environment with the tools

$(VENV)/ready: $(VENV)/maturin
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement tools/requirements.txt
	touch $@

# All that the demo needs: the other tools are large, and somebody waits.
$(VENV)/maturin: tools/requirements.txt
	$(PYTHON) -c 'import sys; sys.exit("mindprof needs Python 3.10 or newer") if sys.version_info < (3, 10) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $$(grep ^maturin= tools/requirements.txt)
	touch $@

.PHONY: clean
clean: ## Remove everything that was built
	cargo clean
	rm -rf $(VENV) dist out
