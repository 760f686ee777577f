# CirrusMQ: everything a developer does, by name. Needs make and a python3 of 3.11 or newer.
#   make up            install what is missing and start the service on this machine
#   make test          install what is missing and run every check
# Overridable: PYTHON=python3.12 HOST=0.0.0.0 PORT=9000 DATA=/var/lib/cirrusmq SCALE=60 ENVIRONMENTS=cloud

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8080
DATA ?= .local
SCALE ?= 1
ENVIRONMENTS ?= shared
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN | awk '{ print ($$1 < 2 ? 2 : $$1 < 6 ? $$1 : 6) }')
ASKED ?= $(MAKECMDGOALS)

VENV := .venv
SAM_VENV := .venv-sam
CHECKOV_VENV := .venv-checkov
MUTANTS_VENV := .venv-mutants
NODE_SDKS := .node
EMQ_SDK := .emq-sdk
PEERS := .peers
BROWSER := .node/console
SITE := functions/pages/docs
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check --no-input install --quiet --no-deps --no-compile
SOURCES := $(wildcard layers functions infra tests spark_emr)

ON := --no-print-directory ASKED="$(ASKED)"

# The lock files are complete, so that pip has nothing to resolve (--no-deps above). Much of the
# packages is never imported: a module is compiled when it is (--no-compile).

export DIST_EXTRA_CONFIG := $(CURDIR)/infra/wheels.cfg

# An activated environment or search path must not decide what is checked here.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
# Nor how long it takes: a test's process would compile what it imports, each time anew.
unexport PYTHONDONTWRITEBYTECODE

# A virtual environment holds absolute paths: one that was made in another folder (a copied
# checkout) is made anew, whatever its stamp says.
MADE_AT := made-at
elsewhere = $(if $(filter $(CURDIR),$(shell cat $(1)/$(MADE_AT) 2>/dev/null)),,$(1)/$(2))
.PHONY: $(call elsewhere,$(VENV),.made) $(call elsewhere,$(SAM_VENV),.installed)
.PHONY: $(call elsewhere,$(CHECKOV_VENV),.installed) $(call elsewhere,$(MUTANTS_VENV),.installed)

define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "Python 3.11 or newer is needed: make PYTHON=<its path> $(ASKED)" >&2; exit 1; }
@grep -qsxF '$(CURDIR)' $(1)/$(MADE_AT) || { \
	echo "making $(1) with $$($(PYTHON) -V)"; \
	$(PYTHON) -m venv --clear $(2) $(1); \
	echo '$(CURDIR)' > $(1)/$(MADE_AT); }
endef

# Others than .venv have no pip of their own, whose installation takes seconds: that of .venv serves.
define make_tools
$(call make_venv,$(1),--without-pip)
@echo "installing the packages of $<"
@$(BIN)/python $(subst -m pip,-m pip --python $(1)/bin/python,$(PIP)) --require-hashes -r $<
@touch $@
endef

# Editors and type checkers know folders, but not the hook by which pip finds this package's.
see_sources = printf '%s\n' $(CURDIR)/layers/client $(CURDIR)/layers/core $(CURDIR)/infra \
	> "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/cirrusmq-sources.pth"

.PHONY: help install up test lint hooks types pytest pytest-spark pytest-others pytest-alone pytest-client pytest-long pytest-cloud compiled tools check-long
.PHONY: mutants template deploy-tools job-zip wheels openapi reports-tables site bench peers report clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## the virtual environment with all packages, from the lock file

# The pip that comes with an older Python takes twice as long to choose among a package's wheels.
$(VENV)/.made: infra/requirements-pip.lock
	$(call make_venv,$(VENV))
	@$(BIN)/python $(PIP) --require-hashes -r $<
	@touch $@

# What the service needs to run, a tenth of all; reports add Spark, and tests the rest.
$(VENV)/.up: $(VENV)/.made infra/requirements-up.lock pyproject.toml
	@echo "installing the packages of infra/requirements-up.lock"
	@$(BIN)/python $(PIP) --require-hashes -r infra/requirements-up.lock
	@PYTHONWARNINGS=ignore $(BIN)/python $(PIP) --no-build-isolation -e .
	@$(call see_sources)
	@touch $@

$(VENV)/.reports: $(VENV)/.up infra/requirements-reports.lock
	@echo "installing the packages of infra/requirements-reports.lock"
	@$(BIN)/python $(PIP) --require-hashes -r infra/requirements-reports.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.up infra/requirements.lock
	@echo "installing the packages of infra/requirements.lock"
	@$(BIN)/python $(PIP) --require-hashes -r infra/requirements.lock
	@touch $@ $(VENV)/.reports

# The SAM command line, for the tests of the templates; a browser for the console.
tools: $(SAM_VENV)/.installed $(NODE_SDKS)/.tried $(BROWSER)/.tried $(EMQ_SDK)/.installed
	@:

# SDKs for Node, Express and the compiler of TypeScript, where that is found and its registry answers; their tests are skipped elsewhere.
$(NODE_SDKS)/.tried: tests/dialects/node/package-lock.json
	@mkdir -p $(NODE_SDKS) && cp tests/dialects/node/package*.json $(NODE_SDKS)
	@cd $(NODE_SDKS) && npm ci --ignore-scripts --no-audit --no-fund --silent \
			--fetch-retries 0 --fetch-timeout 20000 \
		|| echo "without npm, or its registry, the SDKs for Node are not tried"
	@touch $@

# EMQ's SDK brings a thrift, so that it is in a separate folder.
$(EMQ_SDK)/.installed: infra/requirements-emq.lock | $(VENV)/.made
	@$(BIN)/python $(PIP) --upgrade --require-hashes --target $(EMQ_SDK) -r $<
	@touch $@

# Clients of other queues' servers and an emulator, for the bench alone: it brings a botocore.
$(PEERS)/.installed: infra/requirements-peers.lock | $(VENV)/.made
	@$(BIN)/python $(PIP) --upgrade --require-hashes --target $(PEERS) -r $<
	@touch $@

# Chromium, where the path has none, and the rules of axe, for the console's tests. They are skipped
# where npm or its registry is missing, and fail where a browser is there and does not start.
$(BROWSER)/.tried: tests/console/node/package-lock.json
	@mkdir -p $(BROWSER) && cp tests/console/node/*.* $(BROWSER)
	@cd $(BROWSER) && npm ci --ignore-scripts --no-audit --no-fund --silent \
			--fetch-retries 0 --fetch-timeout 60000 \
		|| echo "without npm, or its registry, the console is not tried in a browser"
	@touch $@

# They pull boto3 below what the product uses, each to another place.
$(SAM_VENV)/.installed: infra/requirements-sam.lock | $(VENV)/.made
	$(call make_tools,$(SAM_VENV))

$(CHECKOV_VENV)/.installed: infra/requirements-checkov.lock | $(VENV)/.made
	$(call make_tools,$(CHECKOV_VENV))

$(MUTANTS_VENV)/.installed: infra/requirements-mutants.lock | $(VENV)/.made
	$(call make_tools,$(MUTANTS_VENV))

# Made again when a page, or what its tables are made of, is newer.
MANUAL := $(wildcard infra/manual/* infra/manual/*/* infra/bench/charts/*.svg)
MANUAL += layers/core/cirrusmq_lambda/openapi.json layers/core/cirrusmq/base/errors.py

$(SITE)/index.html: $(VENV)/.up $(MANUAL)
	@$(BIN)/python -m infra.manual $(SITE)

site: $(SITE)/index.html ## the manual as static pages, which the service has at /docs

up: $(VENV)/.up $(SITE)/index.html ## start the service on this machine
	@$(BIN)/cirrusmq up --host $(HOST) --port $(PORT) --data $(DATA) --time-scale $(SCALE) --environments $(ENVIRONMENTS)

# One graph, so that no core waits for another: packages come, sources are checked, tests run.
test: ## every check but the long ones
	@$(MAKE) $(ON) --jobs 5 lint types pytest-spark pytest-others pytest-client

lint: install ## ruff: rules and format; the order of the packages; turns of phrase; the manual's made parts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo | tail -n 12
	@$(BIN)/python -m infra.prose
	@$(BIN)/python -m infra.manual --check

hooks: install ## run lint and types before every commit of this checkout
	@$(BIN)/pre-commit install

types: install ## mypy, strict
	@nice $(BIN)/mypy $(SOURCES)

# Once, and not by each process of the tests, which all wait for it.
pytest-spark pytest-others pytest-alone: compiled tools

compiled: install
	@mkdir -p build
	@$(BIN)/python -m pytest --collect-only -qq > build/collected.txt 2>&1 \
		|| { cat build/collected.txt; exit 1; }

# The reports' tests run in a process of their own: PySpark leaves sockets to the garbage collector,
# whose warnings would fail tests that have no part in them. The clients' tests wait for most of
# their time, and some have little of it: the others fill the cores, and give way to them (nice).
pytest: ## the tests alone
	@$(MAKE) $(ON) --jobs 3 pytest-spark pytest-others pytest-client

pytest-spark:
	@mkdir -p build
	@nice $(BIN)/python -m pytest -m "not long" --durations=30 tests/spark \
		> build/pytest-spark.txt 2>&1 \
		|| { cat build/pytest-spark.txt; exit 1; }
	@grep ' passed' build/pytest-spark.txt

pytest-others:
	@nice $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal \
		-m "not long and not alone" --ignore tests/spark --ignore tests/client

# They wait for nine tenths of their time: of two at a time, one seldom wants a core.
pytest-alone:
	@mkdir -p build
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "alone and not long" \
		tests/client tests/local > build/pytest-alone.txt 2>&1 \
		|| { cat build/pytest-alone.txt; exit 1; }
	@grep ' passed' build/pytest-alone.txt

# The clients' tests wait for four fifths of theirs, so that more run at a time.
CLIENT_TESTS := -n 3 --dist worksteal -m "not long and not alone" tests/client

pytest-client: pytest-alone
	@$(BIN)/python -m pytest $(CLIENT_TESTS) > build/pytest-client.txt 2>&1 \
		|| { cat build/pytest-client.txt; exit 1; }
	@grep ' passed' build/pytest-client.txt

# The mutants take one core, and as long as the tests beside them.
check-long: install tools $(CHECKOV_VENV)/.installed $(MUTANTS_VENV)/.installed ## thousands of seeds, millions of rows, planted faults
	@$(MAKE) $(ON) --jobs 2 mutants pytest-long
	@ALL_BY_SDK=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not long" tests/service
	@$(MAKE) $(ON) pytest-cloud
	@$(BIN)/python -m pytest -m "long and alone"

pytest-long:
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "long and not alone"

# The clients once more, on functions with caches of their own: most of it waits for changes to hold.
pytest-cloud:
	@STACK_ENVIRONMENTS=cloud $(BIN)/python -m pytest $(CLIENT_TESTS)

mutants: $(MUTANTS_VENV)/.installed ## faults planted in the pure modules: the tests must notice 96 %
	@rm -rf build/mutants
	@nice $(MUTANTS_VENV)/bin/python -m infra.mutants build/mutants

template: install $(SAM_VENV)/.installed $(CHECKOV_VENV)/.installed ## the template: lint, scans, a build, its state machines
	@$(BIN)/python -m pytest tests/infra

deploy-tools: $(VENV)/.up $(SAM_VENV)/.installed ## what a deployment to an account needs: the SAM command line

job-zip: $(VENV)/.up ## what the report jobs take along to EMR, into build/jobs
	@$(BIN)/python -m infra.job_zip build/jobs

wheels: $(VENV)/.up ## the packages cirrusmq-client and cirrusmq, into build/wheels
	@rm -rf build/wheels
	@$(BIN)/python -m infra.wheels build/wheels

openapi: install ## the document of the HTTP contract and the client's types, anew
	@$(BIN)/python -m infra.openapi
	@$(BIN)/python -m infra.manual --write

reports-tables: install ## the reports' tables and views for DuckDB and Athena, anew
	@$(BIN)/python -m infra.reports.tables --write

peers: $(PEERS)/.installed ## clients of other queues, for `PARTS=cells` and `throughput`

bench: install ## units, cost, growth, throughput and delay beside other queues; PARTS=...
	@$(BIN)/python -m infra.bench $(PARTS)

report: $(VENV)/.reports ## the newest billing and backlog reports of the running service
	@$(BIN)/cirrusmq report billing
	@$(BIN)/cirrusmq report backlog

clean: ## remove what was made here, but not the service's data
	@rm -rf $(VENV) $(SAM_VENV) $(CHECKOV_VENV) $(MUTANTS_VENV) $(NODE_SDKS) $(PEERS) $(SITE) .aws-sam build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
