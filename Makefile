# make demo: the main job on real data.  make test: the tests.  Both install what they need.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
IOTOMY := $(TARGET)/release/iotomy
C_SOURCES := $(wildcard crates/observe/src/bpf/*.c crates/observe/src/bpf/*.h benches/src/bpf/*.c \
	benches/src/wait/*.c benches/src/files/*.c \
	crates/lab/src/experiments/files/worker/*.[ch])
PREFIX ?= /usr/local

.PHONY: demo test lint setup build articles bench bench-summary bench-trace bench-anatomy bench-copy bench-race bench-report bench-wait bench-files test-kernel install clean

demo: build
	@scripts/demo $(IOTOMY)

test:
	@scripts/setup test
	$(CARGO) test --workspace --locked --no-fail-fast

lint:
	@scripts/setup lint
	$(CARGO) fmt --all --check
	clang-format --dry-run --Werror $(C_SOURCES)
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) deny --locked check --hide-inclusion-graph licenses bans sources
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked

setup:
	@scripts/setup lint

build:
	@scripts/setup build
	$(CARGO) rustc --release --locked --package iotomy --bin iotomy -- $$(scripts/link-flags)

# Every bench below, one after another, some forty minutes in all; then the page of the run and the figures of
# README.md and docs/. ARGS="--quick" takes a few minutes and keeps nothing; ARGS="--only copy" is one.
bench: build
	@scripts/setup bench
	@scripts/setup-uutils $(TARGET)/peers
	@scripts/build-wait-peers $(TARGET)/peers
	@scripts/build-files-peers $(TARGET)/peers
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-all --iotomy $(IOTOMY) --peers $(TARGET)/peers $(ARGS)

# The pages of all runs, and the figures of README.md and docs/, from the raw records. ARGS="--check" only looks.
bench-summary:
	$(CARGO) run --quiet --locked --package iotomy-benches --bin bench-summary -- $(ARGS)

# The tables and pictures of docs/articles, of the records in results/.
articles:
	UPDATE=1 $(CARGO) test --locked --package iotomy --test articles -- tables_and_pictures

# Ratios in one run against the bare command and the peers; the raw record goes to results/.
# A block of runs takes some 40 s: ten minutes in all; ARGS="--quick" takes two and keeps nothing.
bench-trace: build
	@scripts/setup bench
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-trace --iotomy $(IOTOMY) $(ARGS)

# What `iotomy anatomy` adds to a process that is watched: samples, block I/O, stories; some three minutes.
bench-anatomy: build
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-anatomy --iotomy $(IOTOMY) $(ARGS)

# How fast `iotomy copy` is beside cat, cp, dd, pv and uutils' coreutils; some twelve minutes.
# ARGS="--sweep" races its movers with one another instead.
bench-copy: build
	@scripts/setup bench
	@scripts/setup-uutils $(TARGET)/peers
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-copy --iotomy $(IOTOMY) --uutils $(TARGET)/peers/bin/coreutils $(ARGS)

# How often `iotomy race` and hyperfine are wrong about a command against itself, and how soon they
# find a difference; some ten minutes. ARGS="--quick" is over in half a minute and keeps nothing.
bench-race: build
	@scripts/setup bench
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-race --iotomy $(IOTOMY) $(ARGS)

# How long a page of 50 MiB of records takes to make, and until it can be used in Chromium; a minute.
bench-report: build
	@scripts/setup bench
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-report --iotomy $(IOTOMY) $(ARGS)

# What the epoll waiter costs beside a bare loop, libevent, libuv and mio; some three minutes.
bench-wait:
	@scripts/setup bench
	@scripts/build-wait-peers $(TARGET)/peers
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-wait --peers $(TARGET)/peers/wait-peers $(ARGS)

# What the rounds of the experiment `files` cost beside a bare loop, by the library, and by io_uring;
# whether fio and sysbench read a file as fast as `device`; some three minutes.
bench-files:
	@scripts/setup bench
	@scripts/build-files-peers $(TARGET)/peers
	$(CARGO) build --release --locked --package iotomy-benches
	$(TARGET)/release/bench-files --peers $(TARGET)/peers $(ARGS)

# What iotomy does in BPF, on the kernel of this Debian release, under emulation; some three minutes.
test-kernel: build
	@scripts/test-kernel $(IOTOMY)

install: build
	install -Dm755 $(IOTOMY) $(DESTDIR)$(PREFIX)/bin/iotomy
	$(IOTOMY) generate man $(DESTDIR)$(PREFIX)/share/man/man1
	$(IOTOMY) generate completions $(DESTDIR)$(PREFIX)/share/iotomy/completions

clean:
	$(CARGO) clean
