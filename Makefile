# Needs Python >= 3.11 with venv and pip, make and a C++17 compiler; all else goes into .venv.
#   PYTHON=python3.12             the interpreter
#   CXX=g++-13                    the compiler
#   PYTEST_ARGS='-m "not slow"'   which tests, for test and sanitize
#   BENCH_ARGS='--sets colon'     options of the scripts on the real sets in SIEVESVM_DATA
#   AUDIT_ARGS='--seed 1'         how much is audited, and what
# A file .venv/NAME is a stamp: what NAME stands for is installed there and up to date.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
AUDIT_ARGS ?=
export CXX

VENV := .venv
SANITIZED := .venv-sanitize
BUILD_TOOLS := "scikit-build-core>=0.11" "nanobind>=2.4" cmake ninja
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
           $(shell find src -type f ! -path '*/__pycache__/*' ! -name '*.so')
RUNTIMES = $(foreach name,asan ubsan stdc++,$(shell $(CXX) -print-file-name=lib$(name).so))

.DEFAULT_GOAL := help
.PHONY: help demo test lint sanitize mutants audit bench-kernels margins figures clean \
        check-data shared-sets liblinear side-by-side
.DELETE_ON_ERROR:
.SECONDARY:

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/plot ## install, run the main job on the embedded example, and draw its picture
	$(VENV)/bin/python -m sievesvm.demo

test: $(VENV)/test ## install with the test extra, and run the tests
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/dev ## style, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The interpreter is not a sanitized program, so the runtimes are loaded before it, and with them
# libstdc++, whose throw they intercept. Leaks are not looked for: Python leaves some by design.
sanitize: $(SANITIZED)/test ## run the tests with the address and undefined-behaviour sanitizers
	ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 \
	UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc LD_PRELOAD="$(RUNTIMES)" \
	$(SANITIZED)/bin/python -m pytest --capture=sys $(PYTEST_ARGS)

mutants: $(VENV)/test ## break the library on purpose: do the fast tests notice?
	$(VENV)/bin/python tools/mutants.py

audit: $(VENV)/test ## look for a wrong decision of the screening rules (SIEVESVM_DATA adds real data)
	$(VENV)/bin/python tools/audit.py $(AUDIT_ARGS)

bench-kernels: $(VENV)/package ## measure the products with columns
	$(VENV)/bin/python benchmarks/kernels.py

margins: $(VENV)/package ## tabulate what the margins against rounding cost
	$(VENV)/bin/python benchmarks/margins.py

check-data: $(VENV)/bench ## compare the loaded real sets in SIEVESVM_DATA with their README
	$(VENV)/bin/python benchmarks/datasets.py

shared-sets: $(VENV)/bench ## run the path with every rule on the real sets, and judge every model
	$(VENV)/bin/python benchmarks/shared_sets.py $(BENCH_ARGS)

liblinear: $(VENV)/bench ## compare objectives and times with LIBLINEAR's on the real sets
	$(VENV)/bin/python benchmarks/against_liblinear.py $(BENCH_ARGS)

side-by-side: $(VENV)/bench ## run ten paths with shared passes, and compare them with separate ones
	$(VENV)/bin/python benchmarks/side_by_side.py $(BENCH_ARGS)

figures: $(VENV)/plot ## redraw the pictures of the documentation
	$(VENV)/bin/python examples/paper_figures.py docs/figures
	$(VENV)/bin/python -m sievesvm.demo docs/images/path.png

clean: ## remove what make and the tools made
	rm -rf build dist $(VENV) $(SANITIZED) .hypothesis .mypy_cache .pytest_cache .ruff_cache

%/tools: pyproject.toml
	$(PYTHON) -m venv $*
	$*/bin/pip install $(BUILD_TOOLS)
	touch $@

$(SANITIZED)/package: BUILD_SETTINGS := $(addprefix --config-settings=, \
    build-dir=build/sanitize cmake.build-type=RelWithDebInfo cmake.define.SIEVESVM_SANITIZE=ON)
%/package: %/tools $(SOURCES)
	$*/bin/pip install --no-build-isolation $(BUILD_SETTINGS) .
	touch $@

# An extra of the package installed just before; the package itself is not touched. Not a pattern:
# of one with several targets, make takes all to be made when one is.
EXTRAS := $(addprefix $(VENV)/,test plot dev bench)
$(EXTRAS): $(VENV)/package
$(SANITIZED)/test: $(SANITIZED)/package
$(EXTRAS) $(SANITIZED)/test:
	$(@D)/bin/pip install "sievesvm[$(@F)]"
	touch $@
