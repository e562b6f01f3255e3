# Every target creates what it needs: a virtual environment in .venv, filled by pip (or uv, where it is installed).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)
# $(call install,ENVIRONMENT,PACKAGES)
ifdef UV
install = uv pip install --quiet --python $(1)/bin/python $(2)
else
install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2)
endif

.PHONY: demo test check bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("kernelne needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install,$(VENV),--upgrade "pip>=25.1")
	$(call install,$(VENV),--editable ".[all]" --group dev)
	touch $@

demo: $(STAMP)
	$(BIN)/kernelne demo --output demo --overwrite

test: $(STAMP)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .venv-bench demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
