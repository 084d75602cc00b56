# The commands of this project; `make` alone lists them.

PYTHON ?= python3
VENV := .venv

.PHONY: help train test test-slow lint clean
# Two targets must not install into one environment at the same time.
.NOTPARALLEL:

help:  ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## /\1  /p' $(MAKEFILE_LIST)

train: $(VENV)/requirements.installed  ## Train RAT on the built-in digits with 50 labels.
	$(VENV)/bin/python -m rat_tf.train --flagfile=configs/digits50.cfg

test: $(VENV)/requirements-dev.installed  ## Run the tests.
	$(VENV)/bin/python -m pytest -n 2 --dist=worksteal

test-slow: $(VENV)/requirements-dev.installed  ## Run the tests that take minutes.
	$(VENV)/bin/python -m pytest -m slow

lint: $(VENV)/requirements-dev.installed  ## Check style and formatting.
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .

# Not runs/ or models/: those took time to make.
clean:  ## Remove the environment, caches and build products.
	rm -rf $(VENV) .pytest_cache .ruff_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define CHECK_PYTHON
import sys
if not (3, 10) <= sys.version_info[:2] <= (3, 11):
    sys.exit(
        "rat_tf needs Python 3.10 or 3.11 (TensorFlow Addons 0.23 supports no other); "
        "found " + sys.version.split()[0] + " at $(PYTHON). "
        "Try: make $(MAKECMDGOALS) PYTHON=python3.11"
    )
endef
export CHECK_PYTHON

# The environment is `complete` except while something is being installed. One that was interrupted
# is made again from nothing, because pip may take a half-written package for an installed one.
$(VENV)/%.installed: %.txt requirements.txt pyproject.toml
	@test -f $(VENV)/complete || { $(PYTHON) -c "$$CHECK_PYTHON" && $(PYTHON) -m venv --clear $(VENV); }
	@rm -f $(VENV)/complete
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation -e .
	@touch $(VENV)/complete $@
