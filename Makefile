# Everything a contributor runs. `make` alone lists it; every target builds .venv first when it is missing or out of date.

PYTHON ?= python3
# Another Python has an environment of its own: make test PYTHON=python3.12 leaves .venv as it is.
VENV := $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ADAPTERS := .venv-adapters/.installed
DOCS := $(VENV)/.installed-docs
CODE := src tests $(wildcard benchmarks)
# In this order; one that fails does not stop the others, and is told at the end.
ROBUST := kills full_disk hostile
# The tests of PART, a file of src/graftwork (methods/lora) or a room of it (methods).
OF_PART = $(if $(wildcard src/graftwork/$(PART).py),$(wildcard tests/$(dir $(PART))test_$(notdir $(PART)).py),\
	$(if $(wildcard src/graftwork/$(PART)/.),$(wildcard tests/$(PART))))

CASES ?= ../shared/cases

.DEFAULT_GOAL := help
.PHONY: help setup demo test real browser adapters cases docs dist robust check fix clean

test real browser adapters cases robust: export HF_HUB_OFFLINE = 1
test real browser adapters cases robust: export OMP_NUM_THREADS = 1
test real browser adapters cases robust: export TOKENIZERS_PARALLELISM = false

# What pytest makes of assertions, and Python of code, is kept: every process would take seconds to make it anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## build .venv with the pinned versions; afterwards .venv/bin/graft works

demo: $(INSTALLED) ## which method to use on the built-in tickets, at most 3 seeds of 5 epochs; the report is demo/report.html
	$(BIN)/graft compare builtin:tickets --seeds 3 --epochs 5 --out demo

test: $(INSTALLED) ## unit tests: four minutes on 2 cores, no network; PART=methods/lora: of one part, in seconds
ifdef PART
	@test -n "$(strip $(OF_PART))" || { echo "no tests of $(PART): PART is a file of src/graftwork without .py that has \
	tests/FOLDER/test_NAME.py, or a folder that has tests/FOLDER" >&2; exit 2; }
	$(BIN)/pytest -n 0 -m "not real and not slow" $(OF_PART)
else
	$(BIN)/pytest -n 2 --dist worksteal -m "not real and not slow"
endif

real: $(INSTALLED) ## slow tests, and tests on real data and weights, which skip when ../shared is missing
	$(BIN)/pytest -n 2 --dist worksteal -m "(real or slow) and not browser"

browser: $(INSTALLED) ## the pages in chromium, by keyboard, on a phone's width, by axe-core's rules; skips when chromium is missing
	$(BIN)/pytest -n 2 -m browser -rs

adapters: export GRAFTWORK_ADAPTERS_PYTHON = $(CURDIR)/.venv-adapters/bin/python
adapters: $(INSTALLED) $(ADAPTERS) ## what goes to and comes from the library adapters, compared with it in an environment of its own
	$(BIN)/pytest tests/bank/exchange/test_adapters_bottleneck.py

cases: $(INSTALLED) ## inputs that once went wrong, in CASES=FOLDER, and what should come out; minutes; skips without
	$(BIN)/python benchmarks/cases.py $(CASES)

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(INSTALLED) $(DOCS) ## the documentation in site/, links checked; no network
	$(BIN)/mkdocs build --strict

dist: $(INSTALLED) ## wheel and source archive in dist/, checked; the wheel is unpacked apart and trains
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps --target dist/unpacked dist/*.whl
	cd dist && PYTHONPATH=unpacked ../$(BIN)/python -m graftwork train builtin:tickets --method tfidf_svm

robust: $(INSTALLED) ## all of benchmarks/robust: hours
	@failed=; for part in $(ROBUST); do \
		echo "== $$part"; \
		$(BIN)/python benchmarks/robust/$$part.py || failed="$$failed $$part"; \
	done; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

check: $(INSTALLED) ## format, lint and types
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

fix: $(INSTALLED) ## format, and mend what the linter can mend
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

clean: ## remove .venv and caches; runs, reports and data stay
	rm -rf .venv .venv-adapters .venv-python* .mypy_cache .pytest_cache .ruff_cache build dist site

# The stamp is written last: an interrupted installation is taken up again by the next call.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Graftwork needs Python 3.11 or later; name one with make PYTHON=python3.12 setup" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

# Apart from the rest, so that tests and demo do not wait for it.
$(DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $@

$(ADAPTERS): constraints-adapters.txt
	$(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python -m pip install --disable-pip-version-check -c constraints-adapters.txt adapters torch
	@touch $@
