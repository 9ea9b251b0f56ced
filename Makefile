# Everything a developer runs. `make help` lists it.

# The interpreter that makes .venv: 3.11 to 3.13.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8000
VOLCANIC_VAR ?= var
export PORT VOLCANIC_VAR

BIN := .venv/bin
INSTALLED := .venv/.installed

# What `manage.py check --deploy` needs to read production's settings; nothing is contacted.
PRODUCTION := VOLCANIC_ENV=production \
	SECRET_KEY=for-the-check-only-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEF \
	FIELD_KEYS=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE= \
	DATABASE_URL=postgresql://check@localhost/check REDIS_URL=redis://localhost/0 \
	PUBLIC_URL=https://volcanic.example ALLOWED_HOSTS=volcanic.example

.PHONY: up test check bench clean lock help
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*  ## /  make \1\t/p' $(MAKEFILE_LIST)

up: $(INSTALLED)  ## run the product on PORT (8000), its data in VOLCANIC_VAR (var)
	@exec $(BIN)/python manage.py up

test: $(INSTALLED)  ## all tests, on database and broker of their own
	@exec $(BIN)/python -m pytest -n auto --dist loadgroup tests

check: $(INSTALLED)  ## format, lint, types, import contracts, settings, migrations
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run

bench: $(INSTALLED)  ## measure against the A2A SDK's own server
	@exec $(BIN)/python -m bench

clean:  ## delete VOLCANIC_VAR, .venv and caches; refused while something runs there
	@if [ -e "$(VOLCANIC_VAR)" ]; then \
		$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) -m volcanic.processes.embedded remove "$(VOLCANIC_VAR)"; fi
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: $(INSTALLED)  ## pin versions anew: requirements*.txt from pyproject.toml
	$(BIN)/pip-compile $(LOCK) --output-file requirements.txt pyproject.toml
	$(BIN)/pip-compile $(LOCK) --extra dev --constraint requirements.txt --output-file requirements-dev.txt pyproject.toml
LOCK := --quiet --upgrade --strip-extras --no-emit-index-url --no-emit-find-links --no-header

# The stamp is written last: an installation that broke off is done again.
$(INSTALLED): requirements.txt requirements-dev.txt
	@[ -x $(BIN)/python ] || "$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
