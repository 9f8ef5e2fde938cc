# `make demo` and `make test` set up all they need in $(VENV), once.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= 2.13.0
bin = $(VENV)/bin

.PHONY: demo test conformance test-2.10 test-pythons matrix lint benchmarks docs clean

# The main job: a call that fails on plain torch, works under the patches, and fails again when they are undone.
demo: $(VENV)/.ready
	$(bin)/compat-patches demo

test: $(VENV)/.ready
	$(bin)/python -m pytest $(ARGS)

$(VENV)/.ready: setup.cfg pyproject.toml requirements/torch-$(TORCH).txt
	$(PYTHON) -m venv $(VENV)
	$(bin)/python -m pip install --quiet --requirement requirements/torch-$(TORCH).txt --editable '.[test,lint,dev]'
	touch $@

# The built-in manifest against the conformance suite that authors of manifests have.
conformance: $(VENV)/.ready
	$(bin)/python -m pytest --compat-patches-manifest=patches.toml $(ARGS)

# What only torch 2.10 can show.
test-2.10: $(VENV)/.ready
	$(bin)/nox --session "tests(torch='2.10.0')" -- \
		tests/test_builtin_manifest.py tests/test_patches_cpu_memory.py tests/test_patches_fxgraph_cache.py $(ARGS)
	$(bin)/nox --session "tests(torch='2.10.0')" -- --compat-patches-manifest=patches.toml $(ARGS)

# What needs no torch, on each supported Python that is here.
test-pythons: $(VENV)/.ready
	$(bin)/nox --session without_torch -- $(ARGS)

# Everything, on each torch of the matrix.
matrix: $(VENV)/.ready
	$(bin)/nox --session tests

# Pinned, as a new release of a linter finds new things.
lint: $(VENV)/.ready
	$(bin)/python -m pip install --quiet --requirement requirements/lint.txt
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy

benchmarks: $(VENV)/.ready
	$(bin)/python -m pip install --quiet --editable '.[bench]'
	$(bin)/python -m benchmarks

docs: $(VENV)/.ready
	$(bin)/python docs/generate.py

clean:
	rm -rf $(VENV) build dist *.egg-info
