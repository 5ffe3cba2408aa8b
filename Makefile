# Each target does all its own set-up on a fresh machine that has Rust (rust-toolchain.toml).

.PHONY: help demo first test build release packages chart lint bench book picture clean

CARGO ?= cargo
OUT ?= kindred-demo
COORDINATOR = $(or $(CARGO_TARGET_DIR),target)/debug/kindred-coordinator
# Others compile what these do not need.
PROGRAMS = --package coordinator --package site-agent
# The demo computes little, so what computes nothing itself is not optimised for it: that takes a quarter of the time to compile.
QUICK = $(foreach name,coordinator protocol report service site-agent wire,--config profile.dev.package.$(name).opt-level=0)
CHART = $(or $(CARGO_TARGET_DIR),target)/chart
BOOK = $(or $(CARGO_TARGET_DIR),target)/book
BENCH = $(or $(CARGO_TARGET_DIR),target)/bench
MDBOOK = 0.5.4

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make demo      four synthetic hospitals, a coordinator and mutual TLS on this machine; they go on, with pages in a browser
demo: first
	deploy/setup/packages.sh build
	$(CARGO) build --locked $(QUICK) $(PROGRAMS)
	@[ ! -e $(OUT)-federation ] || $(COORDINATOR) simulate --stop --out $(OUT)
	$(COORDINATOR) simulate --keep --out $(OUT) --force

first:
	@[ -e $(COORDINATOR) ] || echo 'The first build takes about nine minutes of processor time; the run itself, seconds.'

## make test      every test
test:
	deploy/setup/packages.sh test
	$(CARGO) build --locked --workspace --all-targets
	$(CARGO) test --locked --workspace --no-fail-fast

## make build     both programs, in the profile that the tests use
build:
	deploy/setup/packages.sh build
	$(CARGO) build --locked $(PROGRAMS)

## make release   both programs, for hospitals
release:
	deploy/setup/packages.sh build
	$(CARGO) build --locked --release $(PROGRAMS)

## make packages  Debian packages, a tarball, what they are made of and checksums, in target/packages; tried in a new Debian
packages: release
	deploy/packages/build.sh $(or $(CARGO_TARGET_DIR),target)/packages
	deploy/packages/check.sh $(or $(CARGO_TARGET_DIR),target)/packages

## make chart     the Helm chart: linted, rendered, and checked against the schemas of Kubernetes
chart: build
	deploy/setup/packages.sh test
	[ -e $(CHART)/whole ] || { python3 -m venv --clear $(CHART) && $(CHART)/bin/pip install --quiet \
	    --only-binary :all: --requirement deploy/helm/requirements.txt && touch $(CHART)/whole; }
	KINDRED_PROGRAMS=$(dir $(abspath $(COORDINATOR))) $(CHART)/bin/python -B deploy/helm/check.py

## make lint      formatting, clippy and documentation, warnings denied
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

## make bench     a table of ratios to other programs, installed for it: target/bench/ratios.md; the rest by cargo bench --package
bench: release
	deploy/setup/packages.sh test
	[ -e $(BENCH)/python/whole ] || { python3 -m venv --clear $(BENCH)/python && $(BENCH)/python/bin/pip install --quiet \
	    --only-binary :all: --requirement tests/benches/ratios/requirements.txt && touch $(BENCH)/python/whole; }
	CARGO="$(CARGO)" $(BENCH)/python/bin/python -B tests/benches/ratios/ratios.py $(BENCH) --programs $(or $(CARGO_TARGET_DIR),target)/release

## make book      all pages as one book with search, in target/book/html; the notebooks are run for it
book: build
	deploy/setup/packages.sh test
	mkdir -p $(BOOK)/src
	git ls-files '*.md' 'book/*' 'deploy/*.toml' 'deploy/*.service' 'deploy/*.sql' 'deploy/compose/*' \
	    'deploy/helm/*' \
	    'deploy/python/notebooks/*' 'deploy/python/src/*' 'tests/reference/vignette/*' \
	    | xargs cp --parents --target-directory=$(BOOK)/src
	cp book/book.toml $(BOOK)
	cp book/SUMMARY.md $(BOOK)/src
	[ -e $(BOOK)/python/whole ] || { python3 -m venv --clear $(BOOK)/python && $(BOOK)/python/bin/pip install --quiet \
	    --only-binary :all: --requirement deploy/python/tests/requirements.txt && touch $(BOOK)/python/whole; }
	KINDRED_PROGRAMS=$(dir $(abspath $(COORDINATOR))) PYTHONPATH=$(abspath $(BOOK))/src/deploy/python/src \
	    $(BOOK)/python/bin/python -m nbconvert --execute --to markdown $(BOOK)/src/deploy/python/notebooks/*.ipynb
	sed -i '/notebooks/s/\.ipynb)/.md)/g' $(BOOK)/src/SUMMARY.md $(BOOK)/src/deploy/python/README.md
	[ -x $(BOOK)/bin/mdbook ] || $(CARGO) install mdbook --version $(MDBOOK) --locked \
	    --no-default-features --features search --root $(BOOK)
	$(BOOK)/bin/mdbook build $(BOOK)

## make picture   the pictures of README and the book again, from the demo, by Debian's chromium
picture: demo
	deploy/setup/picture.sh $(OUT) book
	$(COORDINATOR) simulate --stop --out $(OUT)

clean:
	$(CARGO) clean
