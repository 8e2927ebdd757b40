# Every way in. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Files in their order: those of a folder, which share a running service, follow each other.
SPREAD := --dist loadfile --no-loadscope-reorder
# Each process that a test starts reads compiled modules, also where the machine's settings forbid it.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install up test test-long check format bench screenshots lock sbom migrate clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | column -t -s '|'

install: $(STAMP) ## set up everything in .venv

$(STAMP): pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

up: install ## start Maat here: SQLite, embedded worker, demo cluster
	@exec $(BIN)/maat up

test: install ## the checks and the tests
	@TIMEFORMAT="%U s of user and %S s of system CPU time, %R s in all"; time ( \
		$(MAKE) --no-print-directory check & checks=$$!; \
		$(BIN)/pytest -n 3 $(SPREAD); tests=$$?; \
		wait $$checks || { echo "make check failed: see above"; exit 1; }; exit $$tests )

test-long: install ## all tests, including the long ones
	@MAAT_TESTS_LONG=1 $(BIN)/pytest -n 2 $(SPREAD) -m "long or not long"

check: install ## ruff, mypy, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=. $(BIN)/lint-imports

format: install ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: install ## measure, and print tables
	@$(BIN)/python -m benchmarks

screenshots: install ## take pictures of every page, into var/screenshots
	@PYTHONPATH=.:tests $(BIN)/python -m browser.screenshots $(ARGUMENTS)

LOCK := .venv-lock/bin/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links
lock: ## lock the newest versions that pyproject.toml allows; of these, what the image of Dockerfile installs; and its SBOM
	@$(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet pip-tools
	@$(LOCK) --upgrade --extra dev --output-file requirements.lock pyproject.toml
	@cp requirements.lock requirements-server.lock
	@$(LOCK) --extra server --build-deps-for editable --output-file requirements-server.lock pyproject.toml
	@$(MAKE) --no-print-directory sbom
	@rm -rf .venv-lock

sbom: ## write what the image of Dockerfile is made of, with licences: sbom.cdx.json
	@rm -rf .venv-lock .venv-image && $(PYTHON) -m venv .venv-lock && $(PYTHON) -m venv .venv-image
	@.venv-lock/bin/pip install --quiet cyclonedx-bom
	@.venv-image/bin/pip install --quiet --require-hashes -r requirements-server.lock && .venv-image/bin/pip uninstall --quiet --yes pip
	@.venv-lock/bin/cyclonedx-py environment --output-reproducible --short-PURLs --pyproject pyproject.toml -o sbom.cdx.json .venv-image/bin/python
	@rm -rf .venv-lock .venv-image
	@sed -i -e '/^# WARNING: pip install/,/^# Consider using/d' -e '/^maat @ /,+1d' requirements.lock requirements-server.lock

migrate: install ## bring the database that MAAT_DATABASE_URL names to the newest version
	@$(BIN)/alembic upgrade head

clean: ## remove .venv, var and caches
	@rm -rf $(VENV) var .pytest_cache .mypy_cache .ruff_cache .hypothesis
