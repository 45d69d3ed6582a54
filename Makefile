# Two commands do everything, their own set-up included: `make demo` and `make test`.
# What a target needs is made once and again only when its source changes; nothing here needs the network twice.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The interpreter that the engine is linked to: PYTHON=... chooses another.
PYTHON ?= python3
VENV := .venv
# How the wheel that the tests use is built; what is published is built with `release`.
WHEEL_PROFILE ?= release
# Further interpreters that the wheel is tested on, where they are present.
OTHERS := $(shell tests/interpreters.sh 3.11 3.12 3.13)

RUST_SOURCES := $(shell find src build.rs Cargo.toml Cargo.lock -type f)
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' -o -name py.typed)
WHEEL := target/wheels/.built
OTHER_VENVS := $(foreach entry,$(OTHERS),$(VENV)-$(firstword $(subst =, ,$(entry))))
RUN_TESTS := $(shell cargo nextest --version > /dev/null 2>&1 && echo cargo nextest run || echo cargo test)
# The engine's tests of what runs on a lane and of the sandbox's thread; without nextest all of them.
ON_A_LANE := $(if $(findstring nextest,$(RUN_TESTS)),-E 'test(/^(converting|driving|executing|hostile_tools|isolating|loading|observing|registering|returning|sandbox|signalling|supervising)::/)')

.SECONDARY:
.PHONY: help demo test test-rust test-python test-model lint bench clean needs

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.ready ## Play recorded conversations through two of the examples, then talk to two agents and an app, and run an execution
	@cargo build --quiet
	@for example in mask-private-data guard-tool-calls; do \
	    echo; echo "tenterhook run hooks-examples/$$example --input hooks-examples/$$example/conversations.jsonl --diff"; echo; \
	    VIRTUAL_ENV=$(CURDIR)/$(VENV) target/debug/tenterhook run hooks-examples/$$example \
	        --input hooks-examples/$$example/conversations.jsonl --diff; \
	done
	@echo; echo "tenterhook init target/demo-agent; tenterhook chat target/demo-agent --trace"; echo
	@rm -rf target/demo-agent
	@export VIRTUAL_ENV=$(CURDIR)/$(VENV); target/debug/tenterhook init target/demo-agent 2> /dev/null; \
	for text in "Where is my parcel?" "Is it insured?" "My card is 4111 1111 1111 1111"; do \
	    echo "you> $$text"; target/debug/tenterhook chat target/demo-agent --trace --message "$$text"; \
	done
	@echo; echo "tenterhook chat hooks-examples/airline-desk"; echo
	@export VIRTUAL_ENV=$(CURDIR)/$(VENV); sed 's/^/you> /' hooks-examples/airline-desk/messages.txt; echo; \
	target/debug/tenterhook chat hooks-examples/airline-desk < hooks-examples/airline-desk/messages.txt
	@echo; echo "tenterhook chat hooks-examples/memory-app/app.json --trace"; echo
	@export VIRTUAL_ENV=$(CURDIR)/$(VENV); \
	target/debug/tenterhook chat hooks-examples/memory-app/app.json --trace < hooks-examples/memory-app/messages.txt
	@echo; echo "tenterhook execute hooks-examples/execution-check-input"; echo
	@export VIRTUAL_ENV=$(CURDIR)/$(VENV); target/debug/tenterhook execute hooks-examples/execution-check-input

test: test-rust test-python ## Build and pass all tests: Rust, then pytest against the built wheel

test-rust: $(VENV)/.ready $(addsuffix /.ready,$(OTHER_VENVS))
	@test -n "$${TENTERHOOK_SHARED:-}" || echo "TENTERHOOK_SHARED is not set: the tests on shared modules and conversations pass without looking"
	$(RUN_TESTS) --lib --bins --tests
	cargo test --doc
	@# Tasks start in another way from 3.12 on: what runs on a lane is tested with a newer interpreter, which is a build of its own.
	@if [ -x $(VENV)-3.13/bin/python ]; then \
	    export PYO3_PYTHON=$(CURDIR)/$(VENV)-3.13/bin/python VIRTUAL_ENV=$(CURDIR)/$(VENV)-3.13 CARGO_TARGET_DIR=target/python-3.13; \
	    echo "The engine's tests on $$($$PYO3_PYTHON --version)"; \
	    $(RUN_TESTS) --test engine $(ON_A_LANE); \
	fi

test-python: $(VENV)/.wheel $(addsuffix /.wheel,$(OTHER_VENVS))
	@for venv in $(VENV) $(OTHER_VENVS); do \
	    echo "pytest on $$($$venv/bin/python --version)"; \
	    $$venv/bin/python -m pytest -q || exit 1; \
	done

lint: $(VENV)/.wheel ## Check format, lints and types
	cargo fmt --check
	cargo clippy --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy python tests/python
	@# The examples as their authors check them: against the installed wheel and the stubs that the command writes.
	$(VENV)/bin/tenterhook stubs target/typings 2> /dev/null
	@for example in hooks-examples/*/; do \
	    (cd $$example && MYPYPATH=$(CURDIR)/target/typings $(CURDIR)/$(VENV)/bin/mypy --no-error-summary --config-file= --explicit-package-bases --strict .) || exit 1; \
	done
	$(VENV)/bin/python -m mypy.stubtest tenterhook._engine

bench: $(VENV)/.wheel $(addsuffix /.wheel,$(OTHER_VENVS)) ## Measure, in one run beside plain Python and pyo3-async-runtimes
	benches/run.sh

test-model: $(VENV)/.wheel $(VENV)-model/.served ## Run turns against a real small model; its server is compiled at the first run, about 10 minutes
	$(VENV)/bin/python tests/model/talk.py --server $(VENV)-model/bin/python --transcript docs/transcript.md

clean: ## Remove what was built and installed
	rm -rf target $(VENV) $(VENV)-*

# --- set-up

$(VENV)-model/.served: tests/model/requirements.txt | needs
	@test -x $(VENV)-model/bin/python || $(PYTHON) -m venv $(VENV)-model
	CMAKE_ARGS=-DGGML_NATIVE=OFF $(VENV)-model/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

needs:
	@tests/needs.sh $(PYTHON)

$(VENV)/.ready: tests/requirements.txt tests/providers/requirements.txt | needs
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -r ,$(filter %.txt,$^))
	@touch $@

$(VENV)-%/.ready: tests/requirements.txt | needs
	@test -x $(VENV)-$*/bin/python || $(patsubst $*=%,%,$(filter $*=%,$(OTHERS))) -m venv $(VENV)-$*
	@$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check $$(grep -vE '^(#|maturin|mypy|ruff)' $<)
	@touch $@

$(WHEEL): $(RUST_SOURCES) $(PYTHON_SOURCES) pyproject.toml LICENSE README.md $(VENV)/.ready
	@rm -f target/wheels/*.whl
	$(VENV)/bin/maturin build --profile $(WHEEL_PROFILE) --quiet --out target/wheels
	@touch $@

%/.wheel: %/.ready $(WHEEL)
	@$*/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall target/wheels/*.whl
	@touch $@
