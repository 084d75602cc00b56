# The commands of this project; `make` alone lists them. TF=modern uses today's TensorFlow.

# The stack: TensorFlow 2.15 with TensorFlow Addons, or with TF=modern today's TensorFlow. Each has an
# environment of its own; docs/stacks.md compares them.
TF ?= 2.15
ifeq ($(TF),2.15)
VENV := .venv
LOCK := requirements
LAST_PYTHON := 11
else ifeq ($(TF),modern)
VENV := .venv-modern
LOCK := requirements-modern
LAST_PYTHON := 13
else
$(error TF: expected 2.15 or modern, got $(TF))
endif

# The first Python that the stack supports; if there is none, python3, which is refused below.
ifndef PYTHON
IS_SUPPORTED := import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, $(LAST_PYTHON)))
PYTHON := $(shell for name in python3 python3.12 python3.13 python3.11 python3.10; do \
	$$name -c "$(IS_SUPPORTED)" 2>/dev/null && echo $$name && exit; done; echo python3)
endif

.PHONY: help train test test-slow lint clean
# Two targets must not install into one environment at the same time.
.NOTPARALLEL:

help:  ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## /\1  /p' $(MAKEFILE_LIST)
	@echo "With TF=modern: on today's TensorFlow, without TensorFlow Addons (docs/stacks.md)."

train: $(VENV)/$(LOCK).installed  ## Train RAT on the built-in digits with 50 labels.
	$(VENV)/bin/python -m rat_tf.train --flagfile=configs/digits50.cfg

test: $(VENV)/$(LOCK)-dev.installed  ## Run the tests.
	$(VENV)/bin/python -m pytest -n 2 --dist=worksteal

test-slow: $(VENV)/$(LOCK)-dev.installed  ## Run the tests that take minutes.
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-slow.txt
	$(VENV)/bin/python -m pytest -m slow

lint: $(VENV)/$(LOCK)-dev.installed  ## Check style and formatting.
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .

# Not runs/ or models/: those took time to make.
clean:  ## Remove the environments, caches and build products.
	rm -rf .venv .venv-modern .pytest_cache .ruff_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define CHECK_PYTHON
import sys
if not (3, 10) <= sys.version_info[:2] <= (3, $(LAST_PYTHON)):
    sys.exit(
        "TF=$(TF) needs Python 3.10 to 3.$(LAST_PYTHON) (its TensorFlow supports no other); found "
        + sys.version.split()[0] + " at $(PYTHON). "
        "Try: " + ("" if "$(TF)" == "modern" else "make $(MAKECMDGOALS) TF=modern, or ")
        + "make $(MAKECMDGOALS) TF=$(TF) PYTHON=python3.11"
    )
endef
export CHECK_PYTHON

# The environment is `complete` except while something is being installed. One that was interrupted
# is made again from nothing, because pip may take a half-written package for an installed one.
$(VENV)/%.installed: %.txt $(LOCK).txt pyproject.toml
	@test -f $(VENV)/complete || { $(PYTHON) -c "$$CHECK_PYTHON" && $(PYTHON) -m venv --clear $(VENV); }
	@rm -f $(VENV)/complete
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation -e .
	@touch $(VENV)/complete $@
