# Every target creates what it needs: a virtual environment in .venv, filled by pip (or uv, where it is installed).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TORCH := $(VENV)/.torch
BENCH := .venv-bench
UV := $(shell command -v uv 2>/dev/null)
# $(call install,ENVIRONMENT,PACKAGES)
ifdef UV
install = uv pip install --quiet --python $(1)/bin/python $(2)
else
install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2)
endif

.PHONY: demo docs test test-package test-gpu test-lowest test-newest audit lock setup-locked licences check \
    bench paper paper-quick clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("kernelne needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install,$(VENV),--upgrade "pip>=25.1")
	$(call install,$(VENV),--editable ".[all]" --group dev)
	touch $@

demo: $(STAMP)
	$(BIN)/kernelne demo --output demo --overwrite

# The site, in site/: pages, reference and pictures, to be read without a network.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

# Where torch for the CPU is to be had nowhere, the tests of the GPU's kernels are skipped.
TORCH_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --group gpu-tests
$(TORCH): $(STAMP)
	$(BIN)/python -c 'import torch, triton' 2>/dev/null \
	    || $(TORCH_INSTALL) 2>/dev/null \
	    || $(TORCH_INSTALL) --extra-index-url https://download.pytorch.org/whl/cpu --retries 1 --timeout 15 \
	    || { echo "no torch for the CPU: the tests of the GPU's kernels will be skipped" >&2; exit 0; } \
	    && touch $@

# A process more than cores, as some tests wait for other programs; PYTEST_ARGS="-n 0 -x tests/graph" runs some
# of them in one process. Tests are imported once by each: sooner with their bytecode kept.
PROCESSES = $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() + 1, 8))')
unexport PYTHONDONTWRITEBYTECODE
# Threads of OpenMP and OpenBLAS wait for each other in a loop, which takes the cores from the other processes.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: $(STAMP) $(TORCH)
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder \
	    --ignore tests/test_packaging.py $(PYTEST_ARGS)

# What is published: builds both distributions and installs one in an environment of its own.
test-package: $(STAMP)
	$(BIN)/python -m pytest tests/test_packaging.py

# On a machine with a card, by any Python that has pytest, NumPy, SciPy, torch and Triton.
test-gpu:
	PYTHONPATH=src $(PYTHON) -m pytest -m gpu tests/training/test_gpu_device.py \
	    tests/training/test_resume_on_gpu.py tests/view/test_on_gpu_device.py

# The lowest versions that pyproject.toml allows, and the newest there are, each in an environment of its own:
# the tests of what depends on them. Old versions warn of themselves, so warnings are no failures there.
TESTED := tests/graph tests/io tests/embedding tests/walks tests/model tests/training/test_cpu.py \
    tests/training/test_checkpoint.py tests/test_estimators.py tests/growth/test_update.py tests/common/test_jit.py \
    tests/evaluation tests/links tests/view/test_layout.py tests/cli/test_embed_command.py
test-lowest: OF := --constraint .venv-lowest/bounds
test-newest: OF := --upgrade
test-lowest test-newest: test-%:
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	$(call install,.venv-$*,--upgrade "pip>=25.1")
	$(PYTHON) .ci/bounds.py lowest > .venv-$*/bounds
	$(call install,.venv-$*,$(OF) --editable ".[all]" pytest pytest-xdist hypothesis)
	.venv-$*/bin/python -m pip freeze --exclude-editable > .venv-$*/versions
	.venv-$*/bin/python -m pytest -n $(PROCESSES) --dist loadfile -o filterwarnings=ignore::DeprecationWarning \
	    $(if $(PYTEST_ARGS),$(PYTEST_ARGS),$(TESTED))

# Known vulnerabilities of what is installed. Needs a network; a package that could not be looked up is a failure.
audit: $(STAMP)
	$(call install,$(VENV),pip-audit)
	$(BIN)/pip-audit --strict --skip-editable --progress-spinner off

# All that developers have, with hashes of the files for this system and this Python.
lock: $(STAMP)
	$(PYTHON) .ci/bounds.py all > $(VENV)/requirements.in
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --dry-run --ignore-installed \
	    --only-binary :all: --report $(VENV)/report.json -r $(VENV)/requirements.in
	$(PYTHON) .ci/bounds.py lock < $(VENV)/report.json > requirements-dev.lock

# The environment of the lock, instead of the newest versions.
setup-locked:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install,$(VENV),--require-hashes -r requirements-dev.lock)
	$(call install,$(VENV),--no-deps --editable .)
	touch $(STAMP)

licences: $(STAMP)
	$(BIN)/python docs/_tools/licences.py > docs/licences.md

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(BENCH)/.installed: pyproject.toml benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(call install,$(BENCH),--upgrade "pip>=25.1")
	$(call install,$(BENCH),--editable . -r benchmarks/requirements.txt)
	touch $@

# BENCH_ARGS="--graph FILE --labels FILE" takes a graph of yours; without, one is generated.
bench: $(STAMP) $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/peers.py $(BENCH_ARGS)
	$(BENCH)/bin/python benchmarks/walks.py
	$(BIN)/python benchmarks/scaling.py

# The paper's tables and figures, quick ones first; what is finished is not run again. Timings want a quiet machine.
# paper-quick takes about ten minutes, and keeps its results apart in experiments/quick.
PAPER := table1 dolphins fig_time table7 fig_dim fig_sigma table6 tables2_5 default baselines report
paper-quick: QUICK := --quick
paper paper-quick: $(STAMP)
	@test -n "$$KERNELNE_DATA" || { echo "set KERNELNE_DATA to the folder with the paper's graphs" >&2; exit 2; }
	@failed=; for part in $(PAPER); do \
	    $(BIN)/python experiments/$$part.py $(QUICK) || failed="$$failed $$part"; \
	done; test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

clean:
	rm -rf $(VENV) $(BENCH) .venv-lowest .venv-newest demo site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
