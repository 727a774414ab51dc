# make demo: the main job on real data.  make test: the tests (ARGS="-E 'test(trace)'": some of them, as nextest
# takes them).  Both install what they need.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
IOTOMY := $(TARGET)/release/iotomy
C_SOURCES := $(wildcard crates/observe/src/bpf/*.c crates/observe/src/bpf/*.h benches/src/bpf/*.c \
	benches/src/*.h benches/src/wait/*.c benches/src/files/*.c benches/src/ports/*.c \
	crates/lab/src/files/worker/*.[ch] \
	crates/ports-c/include/*.h crates/ports-c/include/sys/*.h crates/ports-c/include/iotomy/*.h crates/ports-c/tests/c/*.[ch] \
	crates/ports-c/tests/clients/*.c)
PREFIX ?= /usr/local

.PHONY: docs demo test lint setup build build-ports build-export build-agent articles bench bench-summary test-kernel test-services test-fleet test-ports test-ports-threads install clean

demo: build
	@scripts/demo $(IOTOMY)

test:
	@scripts/setup test
	@CARGO=$(CARGO) scripts/test $(ARGS)

lint:
	@scripts/setup lint
	$(CARGO) fmt --all --check
	clang-format --dry-run --Werror $(C_SOURCES)
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) run --quiet --locked --package iotomy-layers
	$(CARGO) deny --locked check --hide-inclusion-graph licenses bans sources
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked

setup:
	@scripts/setup lint

build:
	@scripts/setup build
	@# What is compiled as one piece touches fewer pages when it starts.
	$(CARGO) rustc --release --locked --package iotomy --bin iotomy -- $$(scripts/link-flags) -C lto=fat
	@# Debuggers and backtraces find the debug symbols in a file beside the command.
	@objcopy --only-keep-debug $(IOTOMY) $(IOTOMY).debug
	@objcopy --strip-all --add-gnu-debuglink=$(IOTOMY).debug $(IOTOMY) $(IOTOMY).stripped
	@# objcopy writes in small pieces, and the page cache keeps the file in small folios, which cost a page fault
	@# each; cp writes it as one.
	@cp $(IOTOMY).stripped $(IOTOMY).copy
	@mv -f $(IOTOMY).copy $(IOTOMY)
	@rm $(IOTOMY).stripped

# The program that `iotomy export` becomes: beside the command, because the crates of Arrow are as large as it is.
build-export:
	@scripts/setup build
	$(CARGO) rustc --release --locked --package iotomy-export --bin iotomy-export -- -C lto=fat -C strip=symbols

# The program that `iotomy agent` becomes: beside the command, which needs no HTTP server.
build-agent:
	@scripts/setup build
	$(CARGO) rustc --release --locked --package iotomy-agent --bin iotomy-agent -- -C lto=fat -C strip=symbols

# Every bench, one after another, almost two hours in all; then the page of the run and the figures of
# docs/. ARGS="--quick" takes a few minutes and keeps nothing; ARGS="--only copy" is one.
bench: bench-all

# `make bench-copy` is the bench of copying alone, and so are the others: `make bench-all ARGS=--help` names
# them. Ratios in one run against the bare command and the peers; the raw record goes to results/.
# ARGS="--help" says what a bench can be told.
bench-%: build
	@scripts/setup bench
	$(CARGO) build --release --locked --package iotomy-benches
	@$(TARGET)/release/bench prepare $* --peers $(TARGET)/peers
	$(TARGET)/release/bench $* --iotomy $(IOTOMY) --peers $(TARGET)/peers $(ARGS)

# The pages of all runs, and the figures of docs/, from the raw records. ARGS="--check" only looks.
bench-summary:
	$(CARGO) run --quiet --locked --package iotomy-benches --bin bench -- summary $(ARGS)

# The tables of docs/ that are made from declarations: movers, waiters, limits, experiments, findings.
docs:
	UPDATE=1 $(CARGO) test --locked --package iotomy-record --lib -- guide
	UPDATE=1 $(CARGO) test --locked --package iotomy-export --test suite -- guide
	UPDATE=1 $(CARGO) test --locked --package iotomy-agent --test suite -- guide
	UPDATE=1 $(CARGO) test --locked --package iotomy-findings --lib -- catalogue
	UPDATE=1 $(CARGO) test --locked --package iotomy-waiters --test suite -- docs::
	UPDATE=1 $(CARGO) test --locked --package iotomy --test suite -- guide

# The tables and pictures of docs/articles, of the records in results/.
articles:
	UPDATE=1 $(CARGO) test --locked --package iotomy --test suite -- tables_and_pictures

# What iotomy does in BPF, on the kernel of this Debian release, under emulation; an hour or more.
test-kernel: build
	@scripts/setup kernel
	@CARGO=$(CARGO) scripts/test-kernel $(IOTOMY)

# A minute of load on each of eight servers, watched half of the time: counts to the byte, and what the watch costs.
# ARGS="-E 'test(redis)'" is one of them.
test-services:
	@scripts/setup services
	IOTOMY_REQUIRE=bpf,root,programs,servers $(CARGO) nextest run --locked --package iotomy --profile services \
	    --run-ignored only --no-capture $(ARGS)

# Many machines: Prometheus scrapes the agent, which pushes to a collector of OpenTelemetry, Slurm runs shards of an experiment, DuckDB reads exported records.
test-fleet:
	@scripts/setup fleet
	CARGO=$(CARGO) IOTOMY_REQUIRE=bpf,root,programs,servers NEXTEST_PROFILE=fleet scripts/test --run-ignored only $(ARGS)

# The C library of event ports, /dev/poll and kqueue.
build-ports:
	@scripts/setup build
	$(CARGO) build --release --locked --package iotomy-ports-c

# libevent's regression suite on event ports, /dev/poll and kqueue, with its own back ends; some minutes.
# ARGS=DIRECTORY is a tree of libevent, without it the Debian source package is fetched.
test-ports:
	@scripts/setup build
	@CARGO=$(CARGO) scripts/test-ports $(ARGS)

# The C library and its tests under ThreadSanitizer. ARGS=PROGRAM is one of crates/ports-c/tests/c.
test-ports-threads:
	@scripts/setup build
	@CARGO=$(CARGO) scripts/test-ports-threads $(ARGS)

install: build build-ports build-export build-agent
	install -Dm755 $(IOTOMY) $(DESTDIR)$(PREFIX)/bin/iotomy
	install -Dm755 $(TARGET)/release/iotomy-export $(DESTDIR)$(PREFIX)/bin/iotomy-export
	install -Dm755 $(TARGET)/release/iotomy-agent $(DESTDIR)$(PREFIX)/bin/iotomy-agent
	$(IOTOMY) generate man $(DESTDIR)$(PREFIX)/share/man/man1
	$(IOTOMY) generate completions $(DESTDIR)$(PREFIX)/share/iotomy/completions
	cd $(DESTDIR)$(PREFIX)/share/iotomy/completions && \
	install -Dm644 iotomy.bash ../../bash-completion/completions/iotomy && \
	install -Dm644 _iotomy ../../zsh/site-functions/_iotomy && \
	install -Dm644 iotomy.fish ../../fish/vendor_completions.d/iotomy.fish
	scripts/install-ports $(TARGET)/release $(PREFIX) $(DESTDIR)

clean:
	$(CARGO) clean
