# The project's commands. `make demo` and `make test` need nothing but a Rust toolchain and a C compiler; where
# redis-server is missing they install it on Debian and Ubuntu (as root), or say what is missing.

CARGO ?= cargo
DYNO := $(or $(CARGO_TARGET_DIR),target)/release/dyno

# Tests that miss one of these are skipped, counted and named.
TESTED_WITH := deny redis mongo mongod valkey memcached tcpdump storage ycsb prometheus faketime ssh network s3

.PHONY: demo check test test-all bench build install worker image kubernetes fuzz reliability deb dist docs audit reproducible pictures

build:
	DYNO_COMMIT=$$(git rev-parse --short=12 HEAD 2>/dev/null) $(CARGO) build --release --locked -p dyno-cli

# Without the forms of `dyno export` and the embedded stores that take two minutes of CPU to compile.
demo:
	$(CARGO) build --release --locked -p dyno-cli --no-default-features
	@scripts/need redis || true
	$(DYNO) run --workload a --records 100k --rate 10k --connections 32 --duration 10s --require 'errors < 0.1%'

# The inner loop: formatting, clippy, unit tests, and whole runs that need no server.
check:
	@scripts/need nextest
	@scripts/test.sh check

test:
	@scripts/need nextest
	@scripts/need $(TESTED_WITH) || true
	@scripts/test.sh

# What is slow or rare: `make test`, then the programs that dyno stands in for beside it, the embedded stores that need a library (LMDB, RocksDB, WiredTiger) and the official
# MongoDB driver, the Python package with its notebook, the reports in a browser, Ansible, the diagnosis against seeded truth, presets as
# they are written, aarch64 under emulation, and the files of a release, installed. Pods of a real Kubernetes are a part of `make test`
# where its binaries are there (`make kubernetes` builds them once, in 20 CPU minutes).
test-all: test
	@scripts/advisories.sh
	@scripts/test-peers.py $(DYNO)
	@scripts/test-all.sh
	@scripts/test-official.sh
	@scripts/test-python.sh
	@scripts/test-browser.sh
	@scripts/test-ansible.sh
	@scripts/test-diagnosis.sh
	@scripts/test-presets.sh
	@scripts/test-aarch64.sh
	@scripts/test-dist.sh

bench: build
	@scripts/need redis || true
	$(CARGO) run --release --locked -p dyno-bench --features official

install: build
	$(CARGO) install --locked --path crates/cli

# The documentation as a site that works offline: target/book/index.html. Tests of `make check` follow its links.
docs:
	@scripts/need mdbook
	@scripts/docs.sh

# A static program of what runs on other hosts and in pods: make worker ARCH=aarch64.
worker:
	scripts/static.sh dyno-worker $(ARCH)

# The pictures of README and guides, and the output that README and first-run.md show, from real runs on a quiet host.
pictures: build
	scripts/pictures.sh
	scripts/outputs.py $(DYNO)

# Builds this commit's static program twice and compares the bytes.
reproducible:
	scripts/reproducible.sh $(ARCH)

# Known weaknesses of dependencies, where RustSec's database can be reached. `make test` checks their licences.
audit:
	scripts/advisories.sh

# The files of a release, in target/dist-VERSION: make dist ARCH=aarch64 makes those of one architecture.
dist:
	@scripts/dist.sh $(ARCH)

# An image of the static program for containers and pods, in target/dist-VERSION: make image ARCH=aarch64.
image:
	@scripts/dist.sh image $(or $(ARCH),$(shell uname -m))

# A Debian package of the static program, with manual pages and completions, in target/dist-VERSION.
deb:
	@scripts/dist.sh deb $(or $(ARCH),$(shell uname -m))

# Tables of docs/reliability.md, measured again: all, or PART='chaos dips'. It takes hours.
reliability:
	scripts/reliability.py $(PART)

# Decoders and parsers under cargo-fuzz, MINUTES each (needs a nightly Rust).
fuzz:
	MINUTES=$(MINUTES) scripts/fuzz.sh

kubernetes:
	tests/kubernetes/build.sh
	scripts/test-kubernetes.sh
